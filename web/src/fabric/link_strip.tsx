/** What passed over the fabric's links as time went on: a row for each measured port of a trunk, or for each switch where none is. */

import { useMemo } from "preact/hooks";
import type { Quantity } from "../address/address.ts";
import type { DeviceBody, FabricBody, SeriesBody } from "../api/types.ts";
import { Lines } from "../lines/lines.tsx";
import type { Watch } from "../live/watch.ts";
import { unreadOf, useRows, useWatch } from "../live/watching.ts";
import { columnOf, intervalUs, recording } from "../session/recordings.ts";
import { pan, show, view, zoom } from "../session/view.ts";
import { Legend } from "../strip/legend.tsx";
import { AXIS_PX, Strip } from "../strip/strip.tsx";
import { stripKeys } from "../strip/strip_keys.ts";
import { useBounds, useScale } from "../strip/window_of_strip.ts";
import type { Bounds } from "../time/window.ts";
import { chartsLeft } from "../views/room.ts";
import { columnWords, quantityTitle } from "../words/names.ts";
import { portsOf } from "./ports.ts";

const ROW_PX = 14;
/** Rows grow no higher than this where there is more room. */
const ROW_MAX_PX = 28;
/** Its title and its legend. */
const AROUND_PX = 84;
/** Lower than this it would tell nothing. */
const LEAST_PX = 90;
/** Lines in a chart: as many as there are inks for them. */
const CHART_LINES = 4;
const NO_ROWS: ReadonlySet<number> = new Set();

export interface LinkStripProps {
  readonly fabric: FabricBody;
  /** What of each interface is shown. */
  readonly traffic: Quantity;
  /** The series of interfaces that the recording has. */
  readonly series: readonly SeriesBody[];
  readonly width: number;
  /** What is left below the drawing. */
  readonly room: number;
}

export function LinkStrip({ fabric, traffic, series, width, room }: LinkStripProps) {
  const current = recording.value;
  const found = useMemo(() => portsOf(fabric, series), [fabric, series]);
  const own = found.trunks.length > 0 ? found.trunks : found.switches;
  const kind = found.trunks.length > 0 ? "series" : "devices";
  const devices = useMemo((): readonly DeviceBody[] => {
    const names = new Set(own.map(({ labels }) => labels["device"]));
    return (current?.devices ?? []).filter(({ name }) => names.has(name));
  }, [current, own]);
  const names = useMemo(() => devices.map(({ name }) => name), [devices]);
  const model = useRows(devices, own, kind, "");
  const rows = model.rows.length;
  // The other direction, too, where both have room.
  const other = columnOf(current, traffic.table, traffic.column)?.beside ?? null;
  const least = Math.max(LEAST_PX, rows * ROW_PX + AXIS_PX);
  const both = other !== null && room >= 2 * (AROUND_PX + least);
  const each = (both ? room / 2 : room) - AROUND_PX;
  const fits = each >= LEAST_PX && rows > 0;
  const spec = {
    table: traffic.table,
    model,
    window: view.value.window,
    play: view.value.play,
    width: fits ? Math.max(100, width - 100) : 0,
    intervalUs: intervalUs.value,
    devices: names,
  };
  const watch = useWatch({ ...spec, recording: fits ? current : null, column: traffic.column, leads: true });
  const otherWatch = useWatch({ ...spec, recording: fits && both ? current : null, column: other ?? traffic.column });
  const bounds = useBounds(watch);
  const scale = useScale(`${current?.id} fabric ${kind}`, watch, both ? otherWatch : null);
  if (!fits) return null;
  const row = Math.min(ROW_MAX_PX, Math.max(ROW_PX, (each - AXIS_PX) / rows));
  const height = Math.min(each, rows * row + AXIS_PX);
  const select = ({ fromUs, toUs }: Bounds): void =>
    show({ selected: { fromUs: Math.round(fromUs), toUs: Math.round(toUs) } });
  const open = (at: number): void => show({ name: "device", device: model.rows[at]?.device ?? null }, true);
  const strip = (column: string, shown: Watch | null) => {
    const quantity = { table: traffic.table, column };
    const title =
      kind === "series" ? `${quantityTitle(quantity, "series")} of a trunk` : quantityTitle(quantity, "devices");
    return (
      <>
        <h2>
          {title} <small>in the shown time; click to see the switch</small>
        </h2>
        <Strip
          label={title}
          bins={shown?.bins ?? null}
          model={model}
          height={height}
          scale={scale}
          bounds={bounds}
          live={view.value.window.live && current?.running === true}
          unread={unreadOf(shown)}
          selectedRows={NO_ROWS}
          selected={view.value.selected}
          onSelect={select}
          onPick={open}
          onZoom={zoom}
          onPan={pan}
          onKey={stripKeys(model, bounds, open)}
        />
      </>
    );
  };
  // The same as lines where room is left: both directions of the first rows beside each other.
  const directions = both && other !== null ? [traffic.column, other] : [traffic.column];
  const charts = chartsLeft(width, room - directions.length * (AROUND_PX + height));
  const drawn = Array.from({ length: Math.ceil(rows / CHART_LINES) }, (_, chart) =>
    [...model.rows.keys()].slice(chart * CHART_LINES, (chart + 1) * CHART_LINES),
  );
  const lines = drawn.flatMap((of) => directions.map((column) => ({ of, column })));
  return (
    <>
      {strip(traffic.column, watch)}
      {both && other !== null && strip(other, otherWatch)}
      <Legend scale={scale} watch={watch} />
      {charts > 0 && (
        <div class="charts">
          {lines.slice(0, charts).map(({ of, column }) => (
            <Lines
              key={`${column} ${of[0]}`}
              title={columnWords(traffic.table, column)}
              names={of.map((at) => model.rows[at]?.name ?? "")}
              watch={column === traffic.column ? watch : otherWatch}
              rows={of}
              bounds={bounds}
              onSelect={select}
            />
          ))}
        </div>
      )}
    </>
  );
}
