/** Cluster: a grid of all devices, the heat strip, and lines of the few that are selected. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Grid } from "../grid/grid.tsx";
import type { Quantity } from "../address/address.ts";
import { busiestDevices } from "../lines/busiest.ts";
import { isEmpty, Lines } from "../lines/lines.tsx";
import { unreadOf, useRows, useSeries, useWatch } from "../live/watching.ts";
import type { Watch } from "../live/watch.ts";
import { counters } from "../paint/painter.ts";
import { drawIntervalCells } from "../paint/interval_cells.ts";
import { useSize } from "../paint/size.ts";
import { health } from "../session/health.ts";
import { columnOf, drawable, intervalUs, recording, tableOf, usualQuantities } from "../session/recordings.ts";
import { pan, show, view, zoom } from "../session/view.ts";
import { Strip, type Rectangle } from "../strip/strip.tsx";
import { Legend } from "../strip/legend.tsx";
import { stripKeys } from "../strip/strip_keys.ts";
import { useBounds, useScale } from "../strip/window_of_strip.ts";
import type { RowModel } from "../strip/rows.ts";
import { StripTable } from "../table/strip_table.tsx";
import type { Bounds } from "../time/window.ts";
import { columnWords, plural, quantityTitle } from "../words/names.ts";
import { CollectorCard } from "./collector_card.tsx";
import { EventList, ReadingCard, SelectionCard } from "./cards.tsx";
import { Empty } from "./empty.tsx";
import { Damaged, Problem } from "./problem.tsx";
import { QuantityPicker } from "./quantity_picker.tsx";
import { LOADING } from "./told.tsx";

const CHARTS = 4;
const LINES_MAX = 4;
/** What the charts need in two lines, and from what width on they stand in one (style.css: 2000 pixels of the window). */
const CHARTS_PX = 300;
const ONE_LINE_PX = 1440;

export function Cluster() {
  const current = recording.value;
  const { quantity, rows: kind, find, window: window_, play, also, devices, selected } = view.value;
  const { table, column } = quantity;
  const { known: told, series, error, ask } = useSeries(current?.id ?? null, table);
  const model = useRows(current?.devices ?? [], series, kind, find);
  const [left, leftWidth] = useSize();
  const [middle, width, height] = useSize();
  const known = tableOf(current, table);
  const more = (also ?? [columnOf(current, table, column)?.beside].filter((name) => name != null)).filter((name) => known?.columns.some((one) => one.name === name && drawable(one)) === true);
  const watch = useWatch({
    recording: known === null || !told ? null : current, table, column, also: more, model, window: window_, play, width: width === 0 ? 0 : Math.max(100, width - 100),
    intervalUs: intervalUs.value, leads: true, onUnknownSeries: ask,
  });
  const bounds = useBounds(watch);
  const whole = (): boolean => {
    if (watch?.filled.peek() !== true) return false;
    const { fromUs, toUs } = bounds();
    return window_.live || (watch.request.fromUs === fromUs && watch.request.toUs === toUs);
  };
  const scale = useScale(`${current?.id} ${table} ${column}`, watch);
  const selectedRows = useMemo(() => new Set(devices.flatMap((name) => model.rowsOfDevice.get(name) ?? [])), [devices, model]);
  const silent = useMemo(() => new Set(health.value?.silent ?? []), [health.value]);
  const everyRow = useMemo(() => [...model.rows.keys()], [model]);
  const pick = (row: number, add: boolean): void => {
    const name = model.rows[row]?.device;
    if (name === undefined) return;
    const alone = devices.length === 1 && devices[0] === name;
    const next = !add ? (alone ? [] : [name]) : devices.includes(name) ? devices.filter((one) => one !== name) : [...devices, name];
    show({ devices: next });
  };
  const select = (rectangle: Rectangle): void => {
    const names = new Set(model.rows.slice(rectangle.firstRow, rectangle.lastRow + 1).map(({ device }) => device));
    show({ devices: [...names], selected: { fromUs: Math.round(rectangle.fromUs), toUs: Math.round(rectangle.toUs) } });
  };
  // Where charts stand in one line, the strip takes the room of the other.
  const below = width >= ONE_LINE_PX ? CHARTS_PX / 2 + 60 : CHARTS_PX + 60;
  const rowHeight = Math.floor(Math.min(14, Math.max(1, (height - below) / Math.max(1, model.rows.length))) * 2) / 2;
  const stripHeight = Math.round(Math.min(Math.max(180, height - below), Math.max(60, rowHeight * model.rows.length))) + 18;
  const live = window_.live && (current?.running === true || play !== null);
  const hint = live ? `each row ${kind === "devices" ? "a device" : "a series"}, newest at the right; drag to select` : "drag to select, wheel to zoom";
  return (
    <main class="columns">
      <section ref={left} aria-label="Devices">
        <h2>Devices <small>{roles(model, current?.devices ?? [])}</small></h2>
        <QuantityPicker />
        <Grid
          label={`${quantityTitle(quantity, kind)}, newest reading of each row`}
          bins={watch?.bins ?? null} model={model} width={Math.max(120, leftWidth - 32)} heightMax={Math.max(200, height - 330)} scale={scale}
          selectedRows={selectedRows} silent={silent} onPick={pick}
          onOpen={(row) => show({ name: "device", device: model.rows[row]?.device ?? null }, true)}
        />
        <Legend scale={scale} watch={watch} />
        <h2 class="gap">Events</h2>
        <EventList />
      </section>
      <section ref={middle} aria-label={quantityTitle(quantity, kind)}>
        <h1>{quantityTitle(quantity, kind)} <small>{hint}</small></h1>
        <Problem error={watch?.error.value ?? error} known={known !== null || current === null} table={table} />
        <Damaged files={watch?.problems.value ?? 0} />
        {model.rows.length === 0 && current !== null && known !== null && !told && error === null && <Empty text={LOADING} />}
        {model.rows.length === 0 && current !== null && (told || known === null) && (find !== ""
          ? <Empty text={`No device is called like “${find}”.`}><p>Press <kbd>Esc</kbd> to see all again.</p></Empty>
          : <Empty text={`This recording has no readings in ${table} yet.`} command="meikyo measure --out RECORDING" />)}
        {model.rows.length > 0 && (
          <Strip
            label={quantityTitle(quantity, kind)} bins={watch?.bins ?? null} model={model} height={stripHeight} scale={scale} bounds={bounds} live={live}
            unread={unreadOf(watch)} selectedRows={selectedRows} selected={selected} marker={view.value.marker === null ? null : { us: view.value.marker, name: "marker" }}
            onSelect={select} onPick={(row, _, add) => pick(row, add)} onZoom={zoom} onPan={pan} counted={true} whole={whole}
            onKey={stripKeys(model, bounds, pick)} onPainted={paintCells}
          />
        )}
        {view.value.tables && watch !== null && <StripTable watch={watch} rows={selectedRows.size > 0 ? [...selectedRows] : everyRow} bounds={bounds} />}
        {watch !== null && <Charts watch={watch} bounds={bounds} selectedDevices={devices} width={Math.floor((width - 50) / 2)} />}
      </section>
      <section aria-label="Facts">
        <ReadingCard watch={watch} fallback={devices[0] ?? model.rows[0]?.device ?? null} />
        <SelectionCard watch={watch} rows={selectedRows.size > 0 ? [...selectedRows] : everyRow} bounds={bounds} />
        <CollectorCard />
      </section>
      {view.value.bench && <canvas class="cells" id="interval-cells" aria-hidden="true" />}
    </main>
  );
}

function paintCells(): void {
  const canvas = document.getElementById("interval-cells");
  if (canvas instanceof HTMLCanvasElement) drawIntervalCells(canvas, Math.max(0, counters.lastPaintedInterval));
}

function roles(model: RowModel, devices: readonly { readonly name: string; readonly role: string }[]): string {
  const shown = devices.filter(({ name }) => model.rowsOfDevice.has(name));
  const hosts = shown.filter(({ role }) => role === "host").length;
  const switches = shown.filter(({ role }) => role === "switch").length;
  const others = shown.length - hosts - switches;
  return [hosts > 0 ? plural(hosts, "host") : "", switches > 0 ? plural(switches, "switch") : "", others > 0 ? plural(others, "device") : ""]
    .filter((text) => text !== "").join(", ");
}

/** Line charts of the selected devices, of the busiest ones where none is selected. */
function Charts({ watch, bounds, selectedDevices, width }: { watch: Watch; bounds: () => Bounds; selectedDevices: readonly string[]; width: number }) {
  const current = recording.value;
  const { names: busiest, again } = useBusiest(watch, bounds);
  const names = useMemo(() => (selectedDevices.length > 0 ? selectedDevices : busiest).slice(0, LINES_MAX), [selectedDevices, busiest]);
  const { table, column } = watch.request;
  const wanted = [{ table, column }, ...usualQuantities(current).filter((one) => one.table !== table || one.column !== column)].slice(0, CHARTS);
  if (names.length === 0) return null;
  return (
    <>
      <div class="keys">
        <span>{selectedDevices.length === 0 ? "the busiest:" : selectedDevices.length > LINES_MAX ? `the first ${LINES_MAX} of ${selectedDevices.length}:` : ""}</span>
        {names.map((name, at) => <span key={name}><i class={`ink${at}`} />{name}</span>)}
        {selectedDevices.length === 0 && <button type="button" class="tag" title="the lines stay the same until the window changes" onClick={again}>choose again</button>}
      </div>
      <div class="charts">
        {wanted.map((one) => <Chart key={`${one.table}.${one.column}`} quantity={one} names={names} bounds={bounds} width={width} />)}
      </div>
    </>
  );
}

function Chart({ quantity: { table, column }, names, bounds, width }: { quantity: Quantity; names: readonly string[]; bounds: () => Bounds; width: number }) {
  const current = recording.value;
  const { known, series } = useSeries(current?.id ?? null, table);
  const devices = useMemo(() => names.map((name, ordinal) => ({ ordinal, name, role: "unknown" as const, group: null, agent: null })), [names]);
  const own = useMemo(() => series.filter(({ labels }) => names.includes(labels["device"] ?? "")), [series, names]);
  const model = useRows(devices, own, "devices", "");
  const watch = useWatch({
    recording: known ? current : null, table, column, model, window: view.value.window, play: view.value.play, width: width <= 0 ? 0 : Math.max(100, width - 66),
    intervalUs: intervalUs.value, devices: names, withLeast: true,
  });
  const rows = useMemo(() => [...model.rows.keys()], [model]);
  if (own.length === 0 || isEmpty(watch)) return null;
  return <Lines title={columnWords(table, column)} watch={watch} rows={rows} bounds={bounds} onSelect={(chosen) => show({ selected: chosen })} />;
}

/**
 * The busiest devices of the shown time. They stay the same as long as the window, the quantity and the rows do, so that
 * no line loses its history; `again` chooses anew.
 */
function useBusiest(watch: Watch, bounds: () => Bounds): { names: readonly string[]; again: () => void } {
  const [names, setNames] = useState<readonly string[]>([]);
  const chosen = useRef("");
  const { recording: id, table, column, model } = watch.request;
  const { window: window_, find } = view.value;
  const key = [id, table, column, find, model.rows.length, JSON.stringify(window_)].join(" ");
  const choose = (): void => {
    const { fromUs, toUs } = bounds();
    const next = busiestDevices(watch.bins, model, fromUs, toUs, LINES_MAX);
    chosen.current = next.length > 0 ? key : "";
    setNames((before) => (before.join() === next.join() ? before : next));
  };
  useEffect(() => watch.filled.subscribe((filled) => {
    if (filled && chosen.current !== key) choose();
  }), [watch, key]);
  return { names, again: choose };
}
