/** Cluster: a grid of all devices, the heat strip, and lines of the few that are selected. */

import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Grid } from "../grid/grid.tsx";
import { Lines } from "../lines/lines.tsx";
import { useRows, useSeries, useWatch } from "../live/watching.ts";
import type { Watch } from "../live/watch.ts";
import { counters } from "../paint/painter.ts";
import { drawIntervalCells } from "../paint/interval_cells.ts";
import { cursor } from "../session/cursor.ts";
import { health } from "../session/health.ts";
import { newestUs } from "../session/now.ts";
import { drawable, intervalUs, recording, tableOf } from "../session/recordings.ts";
import { addressOf, pan, show, view, zoom } from "../session/view.ts";
import { Strip, type Rectangle } from "../strip/strip.tsx";
import { Scale } from "../strip/scale.ts";
import type { RowModel } from "../strip/rows.ts";
import { StripTable } from "../table/strip_table.tsx";
import { palette } from "../theme/theme.ts";
import type { Bounds } from "../time/window.ts";
import { columnWords, plural, quantityTitle } from "../words/names.ts";
import { quantityText } from "../words/quantity.ts";
import { CollectorCard } from "./collector_card.tsx";
import { EventList, ReadingCard, SelectionCard } from "./cards.tsx";
import { Empty } from "./empty.tsx";
import { QuantityPicker } from "./quantity_picker.tsx";

/** What belongs to a quantity and arrives with it. */
const PARTNERS: Readonly<Record<string, readonly string[]>> = {
  "interfaces.out_octets": ["in_octets"],
  "interfaces.in_octets": ["out_octets"],
  "interfaces.out_packets": ["in_packets"],
  "interfaces.in_packets": ["out_packets"],
};

/** Lines that are drawn where nothing was chosen, if the recording has them. */
const USUAL_LINES = ["interfaces.out_octets", "interfaces.in_octets", "load.load_1min", "storage.used_bytes", "memory.available_bytes"];
const CHARTS = 4;
const LINES_MAX = 4;

export function useWidth(): [preact.RefObject<HTMLElement>, number, number] {
  const element = useRef<HTMLElement>(null);
  const [size, setSize] = useState([0, 0]);
  useLayoutEffect(() => {
    const target = element.current;
    if (target === null) return undefined;
    const measure = (): void => setSize([target.clientWidth, target.clientHeight]);
    measure();
    const sizes = new ResizeObserver(measure);
    sizes.observe(target);
    return () => sizes.disconnect();
  }, []);
  return [element, size[0] ?? 0, size[1] ?? 0];
}

/** The bounds of a strip: a live one ends with its newest bin, so that columns never straddle its edges. */
export function useBounds(watch: Watch | null): () => Bounds {
  return useCallback(() => {
    const { window: shown } = view.peek();
    if (!shown.live) return { fromUs: shown.fromUs, toUs: shown.toUs };
    const bins = watch?.bins;
    const endUs = bins === undefined || bins.newestBin < 0 ? newestUs.peek() : (bins.newestBin + 1) * bins.binUs;
    return { fromUs: endUs - shown.spanUs, toUs: endUs };
  }, [watch]);
}

export function Cluster() {
  const current = recording.value;
  const { quantity, rows: kind, find, window: window_, play, also, devices, selected } = view.value;
  const { table, column } = quantity;
  const { series, error, ask } = useSeries(current?.id ?? null, table);
  const model = useRows(current?.devices ?? [], series, kind, find);
  const [middle, width, height] = useWidth();
  const known = tableOf(current, table);
  const more = (also ?? PARTNERS[`${table}.${column}`] ?? []).filter((name) => known?.columns.some((one) => one.name === name && drawable(one)) === true);
  const watch = useWatch({
    recording: known === null ? null : current, table, column, also: more, model, window: window_, play, width: Math.max(100, width - 100),
    intervalUs: intervalUs.value, leads: true, onUnknownSeries: ask,
  });
  const bounds = useBounds(watch);
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
  const rowHeight = Math.floor(Math.min(14, Math.max(1, (height - 360) / Math.max(1, model.rows.length))) * 2) / 2;
  const stripHeight = Math.round(Math.min(Math.max(180, height - 360), Math.max(60, rowHeight * model.rows.length))) + 18;
  const live = window_.live && (current?.running === true || play !== null);
  const hint = live ? "each row a device, newest at the right; drag to select" : "drag to select, wheel to zoom";
  return (
    <main class="columns">
      <section aria-label="Devices">
        <h2>Devices <small>{roles(model, current?.devices ?? [])}</small></h2>
        <QuantityPicker />
        <Grid
          label={`${quantityTitle(quantity, kind)}, newest reading of each row`}
          bins={watch?.bins ?? null} model={model} width={220} heightMax={Math.max(200, height - 330)} scale={scale}
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
        {model.rows.length === 0 && current !== null && (find !== ""
          ? <Empty text={`No device is called like “${find}”.`}><p>Press <kbd>Esc</kbd> to see all again.</p></Empty>
          : <Empty text={`This recording has no readings in ${table} yet.`} command="meikyo measure --out RECORDING" />)}
        {model.rows.length > 0 && (
          <Strip
            label={quantityTitle(quantity, kind)} bins={watch?.bins ?? null} model={model} height={stripHeight} scale={scale} bounds={bounds} live={live}
            selectedRows={selectedRows} selected={selected} marker={view.value.marker === null ? null : { us: view.value.marker, name: "marker" }}
            onSelect={select} onPick={(row, _, add) => pick(row, add)} onZoom={zoom} onPan={pan} counted={true}
            onKey={stripKeys(model, bounds, pick)} onPainted={paintCells}
          />
        )}
        {view.value.tables && watch !== null && <StripTable watch={watch} rows={selectedRows.size > 0 ? [...selectedRows] : everyRow} bounds={bounds} />}
        {watch !== null && <Charts watch={watch} bounds={bounds} selectedDevices={devices} />}
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

export function useScale(key: string, watch: Watch | null): () => number {
  const scale = useRef({ key: "", scale: new Scale() });
  if (scale.current.key !== key) scale.current = { key, scale: new Scale() };
  const of = scale.current.scale;
  return useCallback(() => of.endFor([watch?.bins ?? null], watch?.unit.peek() ?? "", performance.now()), [of, watch]);
}

function roles(model: RowModel, devices: readonly { readonly name: string; readonly role: string }[]): string {
  const shown = devices.filter(({ name }) => model.rowsOfDevice.has(name));
  const hosts = shown.filter(({ role }) => role === "host").length;
  const switches = shown.filter(({ role }) => role === "switch").length;
  const others = shown.length - hosts - switches;
  return [hosts > 0 ? plural(hosts, "host") : "", switches > 0 ? plural(switches, "switch") : "", others > 0 ? plural(others, "device") : ""]
    .filter((text) => text !== "").join(", ");
}

export function Problem({ error, known, table }: { error: string | null; known: boolean; table: string }) {
  if (!known) return <Empty text={`This recording has no table ${table}. Choose another quantity on the left.`} />;
  return error === null ? null : <p class="kin" role="alert">{error}</p>;
}

/** A gap that is damage is not left to be taken for silence. */
function Damaged({ files }: { files: number }) {
  if (files === 0) return null;
  return <p role="status"><span class="shu">{plural(files, "file")} of this time cannot be read</span>; what they held is missing below. <a href={addressOf({ name: "data" })}>Which ones</a></p>;
}

export function Legend({ scale, watch }: { scale: () => number; watch: Watch | null }) {
  const bar = useRef<HTMLCanvasElement>(null);
  const [end, setEnd] = useState("");
  useEffect(() => {
    const context = bar.current?.getContext("2d");
    if (context === null || context === undefined) return;
    const { css } = palette.value;
    context.canvas.width = css.length;
    context.canvas.height = 1;
    css.forEach((colour, at) => {
      context.fillStyle = colour;
      context.fillRect(at, 0, 1, 1);
    });
  }, [palette.value]);
  useEffect(() => {
    const tell = (): void => setEnd(quantityText(scale(), watch?.unit.peek() ?? ""));
    tell();
    const timer = window.setInterval(tell, 500);
    return () => window.clearInterval(timer);
  }, [scale, watch]);
  return <div class="legend"><span>0</span><canvas ref={bar} role="img" aria-label="from 0, dark, to the end of the scale, bright" /><span>{end}</span></div>;
}

/** Arrow keys inside the strip: rows up and down, intervals left and right; Enter selects. */
export function stripKeys(model: RowModel, bounds: () => Bounds, pick: (row: number, add: boolean) => void) {
  return (event: KeyboardEvent): void => {
    const at = cursor.value;
    const row = Math.max(0, model.rows.findIndex(({ device, part }) => device === at?.device && part === at.part));
    const { fromUs, toUs } = bounds();
    const us = at?.us ?? toUs - intervalUs.peek() / 2;
    const stepUs = Math.max(intervalUs.peek(), (toUs - fromUs) / 200);
    const go = (row_: number, us_: number): void => {
      const there = model.rows[Math.min(model.rows.length - 1, Math.max(0, row_))];
      if (there !== undefined) cursor.value = { device: there.device, part: there.part, us: Math.min(toUs - 1, Math.max(fromUs, us_)) };
    };
    if (event.key === "ArrowUp") go(row - 1, us);
    else if (event.key === "ArrowDown") go(at === null ? 0 : row + 1, us);
    else if (event.key === "ArrowLeft") go(row, us - stepUs);
    else if (event.key === "ArrowRight") go(row, us + stepUs);
    else if (event.key === "Enter" && at !== null) pick(row, event.shiftKey || event.ctrlKey);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
}

/** Line charts of the selected devices, of the busiest ones where none is selected. */
function Charts({ watch, bounds, selectedDevices }: { watch: Watch; bounds: () => Bounds; selectedDevices: readonly string[] }) {
  const current = recording.value;
  const busiest = useBusiest(watch);
  const names = useMemo(() => (selectedDevices.length > 0 ? selectedDevices : busiest).slice(0, LINES_MAX), [selectedDevices, busiest]);
  const shown = `${watch.request.table}.${watch.request.column}`;
  const wanted = [shown, ...USUAL_LINES.filter((one) => one !== shown)].filter((one) => {
    const [table = "", column = ""] = one.split(".");
    return tableOf(current, table)?.columns.some(({ name }) => name === column) === true;
  }).slice(0, CHARTS);
  if (names.length === 0) return null;
  return (
    <>
      <div class="keys">
        <span>{selectedDevices.length === 0 ? "the busiest:" : selectedDevices.length > LINES_MAX ? `the first ${LINES_MAX} of ${selectedDevices.length}:` : ""}</span>
        {names.map((name, at) => <span key={name}><i class={`ink${at}`} />{name}</span>)}
      </div>
      <div class="charts">
        {wanted.map((one) => <Chart key={one} quantity={one} names={names} bounds={bounds} />)}
      </div>
    </>
  );
}

function Chart({ quantity, names, bounds }: { quantity: string; names: readonly string[]; bounds: () => Bounds }) {
  const [table = "", column = ""] = quantity.split(".");
  const current = recording.value;
  const { series } = useSeries(current?.id ?? null, table);
  const devices = useMemo(() => names.map((name, ordinal) => ({ ordinal, name, role: "unknown" as const, group: null })), [names]);
  const own = useMemo(() => series.filter(({ labels }) => names.includes(labels["device"] ?? "")), [series, names]);
  const model = useRows(devices, own, "devices", "");
  const [element, width] = useWidth();
  const watch = useWatch({
    recording: current, table, column, model, window: view.value.window, play: view.value.play, width: Math.max(100, width - 66),
    intervalUs: intervalUs.value, devices: names, withLeast: true,
  });
  const rows = useMemo(() => [...model.rows.keys()], [model]);
  return (
    <div ref={element as preact.RefObject<HTMLDivElement>}>
      <Lines
        title={columnWords(table, column)} watch={watch} rows={rows} bounds={bounds}
        onSelect={(chosen) => show({ selected: chosen })}
      />
    </div>
  );
}

/** How often the busiest rows are looked for anew: often enough to be true, rarely enough to be calm. */
const BUSIEST_MS = 15_000;

function useBusiest(watch: Watch): readonly string[] {
  const [names, setNames] = useState<readonly string[]>([]);
  useEffect(() => {
    const look = (): void => {
      const { bins, request } = watch;
      const peaks = request.model.rows.map(({ device }, row) => {
        let sum = 0;
        for (let bin = bins.newestBin; bin > bins.newestBin - Math.min(200, bins.capacity); bin -= 1) sum += bins.value(bin, row) || 0;
        return { device, sum };
      });
      const best = [...new Set(peaks.filter(({ sum }) => sum > 0).sort((left, right) => right.sum - left.sum).slice(0, 64).map(({ device }) => device))];
      const next = best.slice(0, LINES_MAX).sort();
      setNames((before) => (before.join() === next.join() ? before : next));
    };
    const stop = watch.filled.subscribe((filled) => filled && look());
    const timer = window.setInterval(look, BUSIEST_MS);
    return () => {
      stop();
      window.clearInterval(timer);
    };
  }, [watch]);
  return names;
}
