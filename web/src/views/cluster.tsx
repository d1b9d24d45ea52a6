/** Cluster: a grid of all devices, the heat strip, and lines of the few that are selected. */

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Quantity } from "../address/address.ts";
import { Grid } from "../grid/grid.tsx";
import { busiestDevices } from "../lines/busiest.ts";
import { isEmpty, Lines } from "../lines/lines.tsx";
import type { Watch } from "../live/watch.ts";
import { unreadOf, useRows, useSeries, useWatch } from "../live/watching.ts";
import { drawIntervalCells } from "../paint/interval_cells.ts";
import { counters } from "../paint/painter.ts";
import { useSize } from "../paint/size.ts";
import { health } from "../session/health.ts";
import {
  columnOf,
  drawable,
  intervalUs,
  recording,
  shownQuantity,
  tableOf,
  usualQuantities,
} from "../session/recordings.ts";
import { pan, show, view, zoom } from "../session/view.ts";
import { Legend } from "../strip/legend.tsx";
import type { RowModel } from "../strip/rows.ts";
import { type Rectangle, Strip } from "../strip/strip.tsx";
import { stripKeys } from "../strip/strip_keys.ts";
import { useBounds, useScale } from "../strip/window_of_strip.ts";
import { StripTable } from "../table/strip_table.tsx";
import type { Bounds } from "../time/window.ts";
import { columnWords, plural, quantityTitle } from "../words/names.ts";
import { BusiestCard } from "./busiest_card.tsx";
import { EventList, EventsAge, ReadingCard, SelectionCard } from "./cards.tsx";
import { CollectorCard } from "./collector_card.tsx";
import { Empty } from "./empty.tsx";
import { Damaged, Problem } from "./problem.tsx";
import { QuantityPicker } from "./quantity_picker.tsx";
import { sharesOf } from "./room.ts";
import { LOADING } from "./told.tsx";

const LINES_MAX = 4;

export function Cluster() {
  const current = recording.value;
  const { rows: kind, find, window: window_, play, also, devices, selected } = view.value;
  const { table, column } = shownQuantity.value;
  const { known: told, series, error, ask } = useSeries(current?.id ?? null, table);
  const model = useRows(current?.devices ?? [], series, kind, find);
  const [left, leftWidth] = useSize();
  const [middle, width, height] = useSize();
  const known = tableOf(current, table);
  const more = (also ?? [columnOf(current, table, column)?.beside].filter((name) => name != null)).filter(
    (name) => known?.columns.some((one) => one.name === name && drawable(one)) === true,
  );
  const other = columnOf(current, table, column)?.beside ?? null;
  const {
    strip: stripHeight,
    second,
    charts,
  } = sharesOf({
    width,
    height,
    rows: model.rows.length,
    beside: other !== null && known?.columns.some((one) => one.name === other && drawable(one)) === true,
  });
  const watch = useWatch({
    recording: known === null || !told ? null : current,
    table,
    column,
    also: more,
    model,
    window: window_,
    play,
    width: width === 0 ? 0 : Math.max(100, width - 100),
    intervalUs: intervalUs.value,
    leads: true,
    onUnknownSeries: ask,
  });
  // The quantity that is looked at together with the first, with the same rows, times and colours.
  const besideWatch = useWatch({
    recording: second && told ? current : null,
    table,
    column: other ?? column,
    model,
    window: window_,
    play,
    width: width === 0 ? 0 : Math.max(100, width - 100),
    intervalUs: intervalUs.value,
  });
  const bounds = useBounds(watch);
  const whole = (): boolean => {
    if (watch?.filled.peek() !== true) return false;
    const { fromUs, toUs } = bounds();
    return window_.live || (watch.request.fromUs === fromUs && watch.request.toUs === toUs);
  };
  const scale = useScale(`${current?.id} ${table} ${column}`, watch, second ? besideWatch : null);
  const selectedRows = useMemo(
    () => new Set(devices.flatMap((name) => model.rowsOfDevice.get(name) ?? [])),
    [devices, model],
  );
  const silent = useMemo(() => new Set(health.value?.silent ?? []), [health.value]);
  const everyRow = useMemo(() => [...model.rows.keys()], [model]);
  const pick = (row: number, add: boolean): void => {
    const name = model.rows[row]?.device;
    if (name === undefined) return;
    const alone = devices.length === 1 && devices[0] === name;
    const only = alone ? [] : [name];
    const others = devices.filter((one) => one !== name);
    const further = devices.includes(name) ? others : [...devices, name];
    show({ devices: add ? further : only });
  };
  const select = (rectangle: Rectangle): void => {
    const names = new Set(model.rows.slice(rectangle.firstRow, rectangle.lastRow + 1).map(({ device }) => device));
    show({ devices: [...names], selected: { fromUs: Math.round(rectangle.fromUs), toUs: Math.round(rectangle.toUs) } });
  };
  const live = window_.live && (current?.running === true || play !== null);
  const hint = live
    ? `each row ${kind === "devices" ? "a device" : "a series"}, newest at the right; drag to select`
    : "drag to select, wheel to zoom";
  const strip = {
    model,
    height: stripHeight,
    scale,
    bounds,
    live,
    selectedRows,
    selected,
    marker: view.value.marker === null ? null : { us: view.value.marker, name: "marker" },
    onSelect: select,
    onPick: (row: number, _: number, add: boolean) => pick(row, add),
    onZoom: zoom,
    onPan: pan,
    onKey: stripKeys(model, bounds, pick),
  };
  return (
    <main class="columns">
      <section ref={left} aria-label="Devices">
        <h2>
          Devices <small>{roles(model, current?.devices ?? [])}</small>
        </h2>
        <QuantityPicker />
        <Grid
          label={`${quantityTitle(shownQuantity.value, kind)}, newest reading of each row`}
          bins={watch?.bins ?? null}
          model={model}
          width={Math.max(120, leftWidth - 32)}
          heightMax={Math.max(200, height - 330)}
          scale={scale}
          selectedRows={selectedRows}
          silent={silent}
          onPick={pick}
          onOpen={(row) => show({ name: "device", device: model.rows[row]?.device ?? null }, true)}
        />
        <Legend scale={scale} watch={watch} />
        <h2 class="gap">
          Events <EventsAge />
        </h2>
        <EventList />
      </section>
      <section ref={middle} aria-label={quantityTitle(shownQuantity.value, kind)}>
        <h1>
          {quantityTitle(shownQuantity.value, kind)} <small>{hint}</small>
        </h1>
        <Problem error={watch?.error.value ?? error} known={known !== null || current === null} table={table} />
        <Damaged files={watch?.problems.value ?? 0} />
        {model.rows.length === 0 && current !== null && known !== null && !told && error === null && (
          <Empty text={LOADING} />
        )}
        {model.rows.length === 0 &&
          current !== null &&
          (told || known === null) &&
          (find !== "" ? (
            <Empty text={`No device is called like “${find}”.`}>
              <p>
                Press <kbd>Esc</kbd> to see all again.
              </p>
            </Empty>
          ) : (
            <Empty text={`This recording has no readings in ${table} yet.`} command="meikyo measure --out RECORDING" />
          ))}
        {model.rows.length > 0 && (
          <Strip
            {...strip}
            label={quantityTitle(shownQuantity.value, kind)}
            bins={watch?.bins ?? null}
            unread={unreadOf(watch)}
            counted={true}
            whole={whole}
            onPainted={paintCells}
          />
        )}
        {second && other !== null && model.rows.length > 0 && (
          <>
            <h2>{quantityTitle({ table, column: other }, kind)}</h2>
            <Strip
              {...strip}
              label={quantityTitle({ table, column: other }, kind)}
              bins={besideWatch?.bins ?? null}
              unread={unreadOf(besideWatch)}
            />
          </>
        )}
        {view.value.tables && watch !== null && (
          <StripTable watch={watch} rows={selectedRows.size > 0 ? [...selectedRows] : everyRow} bounds={bounds} />
        )}
        {watch !== null && (
          <Charts
            watch={watch}
            bounds={bounds}
            selectedDevices={devices}
            amount={charts}
            width={Math.floor((width - 50) / 2)}
          />
        )}
      </section>
      <section aria-label="Facts">
        <ReadingCard watch={watch} fallback={devices[0] ?? model.rows[0]?.device ?? null} />
        <SelectionCard watch={watch} rows={selectedRows.size > 0 ? [...selectedRows] : everyRow} bounds={bounds} />
        <CollectorCard />
        <BusiestCard watch={watch} bounds={bounds} />
      </section>
      {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: without tabindex it takes no focus; benches read its pixels. */}
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
  return [
    hosts > 0 ? plural(hosts, "host") : "",
    switches > 0 ? plural(switches, "switch") : "",
    others > 0 ? plural(others, "device") : "",
  ]
    .filter((text) => text !== "")
    .join(", ");
}

/**
 * Line charts of the selected devices, of the busiest ones where none is selected: every usual quantity of the first
 * four, and where there is room, the shown quantity of the next ones.
 */
function Charts({
  watch,
  bounds,
  selectedDevices,
  amount,
  width,
}: {
  watch: Watch;
  bounds: () => Bounds;
  selectedDevices: readonly string[];
  amount: number;
  width: number;
}) {
  const current = recording.value;
  const { table, column } = watch.request;
  const [empty, setEmpty] = useState<ReadonlySet<string>>(new Set());
  // What nobody tells anything of takes no place.
  const wanted: Quantity[] = [];
  let shown = 0;
  for (const one of [
    { table, column },
    ...usualQuantities(current).filter((of) => of.table !== table || of.column !== column),
  ]) {
    if (shown >= amount) break;
    wanted.push(one);
    if (!empty.has(nameOf(one))) shown += 1;
  }
  const most = LINES_MAX * (1 + Math.max(0, amount - shown));
  const onEmpty = useCallback((name: string, is: boolean): void => {
    setEmpty((before) =>
      before.has(name) === is ? before : new Set(is ? [...before, name] : [...before].filter((one) => one !== name)),
    );
  }, []);
  const { names: busiest, again } = useBusiest(watch, bounds, most);
  const all = useMemo(
    () => (selectedDevices.length > 0 ? selectedDevices : busiest).slice(0, most),
    [selectedDevices, busiest, most],
  );
  const groups = useMemo(
    () =>
      Array.from({ length: Math.ceil(all.length / LINES_MAX) }, (_, at) =>
        all.slice(at * LINES_MAX, (at + 1) * LINES_MAX),
      ),
    [all],
  );
  const [first, ...further] = groups;
  if (first === undefined) return null;
  const others = selectedDevices.length - all.length;
  return (
    <>
      <div class="keys">
        <span>
          {selectedDevices.length === 0 && "the busiest:"}
          {selectedDevices.length > 0 && others > 0 && `the first ${all.length} of ${selectedDevices.length}:`}
        </span>
        {first.map((name, at) => (
          <span key={name}>
            <i class={`ink${at}`} />
            {name}
          </span>
        ))}
        {selectedDevices.length === 0 && (
          <button type="button" class="tag" title="the lines stay the same until the window changes" onClick={again}>
            choose again
          </button>
        )}
      </div>
      <div class="charts">
        {wanted.map((one) => (
          <Chart key={nameOf(one)} quantity={one} names={first} bounds={bounds} width={width} onEmpty={onEmpty} />
        ))}
        {further.map((names) => (
          <Chart key={names.join()} quantity={{ table, column }} names={names} named bounds={bounds} width={width} />
        ))}
      </div>
    </>
  );
}

function nameOf({ table, column }: Quantity): string {
  return `${table}.${column}`;
}

interface ChartProps {
  readonly quantity: Quantity;
  readonly names: readonly string[];
  /** The names stand above this chart: they are not those of all. */
  readonly named?: boolean;
  readonly bounds: () => Bounds;
  readonly width: number;
  readonly onEmpty?: (name: string, is: boolean) => void;
}

function Chart({ quantity: { table, column }, names: given, named = false, bounds, width, onEmpty }: ChartProps) {
  const current = recording.value;
  const { known, series } = useSeries(current?.id ?? null, table);
  // The same names in a new list are no reason to read their past anew.
  const names = useMemo(() => given, [given.join("\u0000")]);
  const devices = useMemo(
    () => names.map((name, ordinal) => ({ ordinal, name, role: "unknown" as const, group: null, agent: null })),
    [names],
  );
  const own = useMemo(() => series.filter(({ labels }) => names.includes(labels["device"] ?? "")), [series, names]);
  const model = useRows(devices, own, "devices", "");
  const watch = useWatch({
    recording: known ? current : null,
    table,
    column,
    model,
    window: view.value.window,
    play: view.value.play,
    width: width <= 0 ? 0 : Math.max(100, width - 66),
    intervalUs: intervalUs.value,
    devices: names,
    withLeast: true,
  });
  const rows = useMemo(() => [...model.rows.keys()], [model]);
  const none = own.length === 0 || isEmpty(watch);
  useEffect(() => {
    if (known && watch?.filled.value !== false) onEmpty?.(nameOf({ table, column }), none);
  });
  if (none) return null;
  return (
    <Lines
      title={columnWords(table, column)}
      names={named ? names : []}
      watch={watch}
      rows={rows}
      bounds={bounds}
      onSelect={(chosen) => show({ selected: chosen })}
    />
  );
}

/**
 * The busiest devices of the shown time. They stay the same as long as the window, the quantity and the rows do, so that
 * no line loses its history; where room for more comes, others stand behind them. `again` chooses anew.
 */
function useBusiest(watch: Watch, bounds: () => Bounds, most: number): { names: readonly string[]; again: () => void } {
  const [names, setNames] = useState<readonly string[]>([]);
  const drawn = useRef(names);
  const chosen = useRef("");
  const { recording: id, table, column, model } = watch.request;
  const { window: window_, find } = view.value;
  const key = [id, table, column, find, model.rows.length, JSON.stringify(window_)].join(" ");
  const choose = (kept: readonly string[]): void => {
    const { fromUs, toUs } = bounds();
    const next = busiestDevices(watch.bins, model, fromUs, toUs, most, LINES_MAX, kept);
    chosen.current = next.length > 0 ? key : "";
    if (drawn.current.join() === next.join()) return;
    drawn.current = next;
    setNames(next);
  };
  useEffect(
    () =>
      watch.filled.subscribe((filled) => {
        if (!filled) return;
        if (chosen.current !== key) choose([]);
        else if (drawn.current.length < most) choose(drawn.current);
      }),
    [watch, key, most],
  );
  return { names, again: () => choose([]) };
}
