/** CPUs over time: how many samples each of them has in each second, with the readings of their hosts above, on the same time bar. */

import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { Quantity } from "../address/address.ts";
import type { CoresBody, RecordingBody } from "../api/types.ts";
import { unreadOf, useRows, useSeries, useWatch } from "../live/watching.ts";
import { quantityIn, recordings, recordingTitle, tableOf } from "../session/recordings.ts";
import { pan, show, view, zoom } from "../session/view.ts";
import { Bins } from "../strip/bins.ts";
import { OK } from "../strip/ramp.ts";
import type { Group, Row, RowModel } from "../strip/rows.ts";
import { Strip } from "../strip/strip.tsx";
import { stripKeys } from "../strip/strip_keys.ts";
import { useScale } from "../strip/window_of_strip.ts";
import type { Bounds } from "../time/window.ts";
import { quantityTitle } from "../words/names.ts";
import type { ProfileView } from "./profile_address.ts";

const SECOND_US = 1_000_000;
const ROW_PX = 9;
const HEIGHT_MAX_PX = 150;
const READINGS_PX = 64;

/** Rows of a strip, and the samples that stand in them. */
export interface CoreRows {
  readonly model: RowModel;
  readonly bins: Bins;
  readonly greatest: number;
}

/** A row for each CPU in the order of hosts and numbers; a second is a bin. */
export function coreRows(body: CoresBody): CoreRows {
  const rows: Row[] = body.cores.map(({ host, cpu }) => ({
    device: host,
    part: `CPU ${cpu}`,
    name: `${host} CPU ${cpu}`,
  }));
  const rowsOfDevice = new Map<string, number[]>();
  const groups: Group[] = [];
  rows.forEach(({ device }, row) => {
    const own = rowsOfDevice.get(device) ?? [];
    if (own.length === 0) groups.push({ name: device, first: row, rows: 0 });
    own.push(row);
    rowsOfDevice.set(device, own);
  });
  const counted = groups.map((group) => ({ ...group, rows: rowsOfDevice.get(group.name)?.length ?? 0 }));
  const seconds = body.cores[0]?.seconds.length ?? 0;
  const bins = new Bins(Math.max(1, rows.length), SECOND_US, Math.max(2, seconds));
  const first = Math.floor(body.from_us / SECOND_US);
  let greatest = 0;
  for (let second = 0; second < seconds; second += 1) {
    body.cores.forEach((core, row) => {
      const samples = core.seconds[second] ?? 0;
      bins.put(first + second, row, samples, OK);
      greatest = Math.max(greatest, samples);
    });
  }
  return {
    model: { rows, rowOf: new Int32Array(), groups: counted, rowsOfDevice, seriesOfRow: rows.map(() => []) },
    bins,
    greatest,
  };
}

export interface CoreStripProps {
  readonly of: ProfileView;
  readonly body: CoresBody | null;
  readonly bounds: () => Bounds;
  readonly live: boolean;
  readonly onPick: (host: string, cpu: number) => void;
  readonly onSelect: (bounds: Bounds) => void;
}

export function CoreStrip({ body, bounds, live, onPick, onSelect }: CoreStripProps) {
  const made = useMemo(() => (body === null ? null : coreRows(body)), [body]);
  const model = made?.model ?? EMPTY;
  const pick = (row: number): void => {
    const core = body?.cores[row];
    if (core !== undefined) onPick(core.host, core.cpu);
  };
  return (
    <Strip
      label="Samples of each CPU in each second"
      bins={made?.bins ?? null}
      model={model}
      height={Math.min(HEIGHT_MAX_PX, Math.max(36, model.rows.length * ROW_PX)) + 18}
      scale={() => Math.max(1, made?.greatest ?? 1)}
      bounds={bounds}
      live={live}
      selectedRows={NO_ROWS}
      selected={view.value.selected}
      onSelect={({ fromUs, toUs }) => onSelect({ fromUs: Math.round(fromUs), toUs: Math.round(toUs) })}
      onPick={pick}
      onZoom={zoom}
      onPan={pan}
      onKey={stripKeys(model, bounds, pick)}
    />
  );
}

const EMPTY: RowModel = { rows: [], rowOf: new Int32Array(), groups: [], rowsOfDevice: new Map(), seriesOfRow: [] };
const NO_ROWS: ReadonlySet<number> = new Set();

/** The recording that has readings of the chosen quantity: this one, else the first that overlaps it. */
function readingsOf(current: RecordingBody, all: readonly RecordingBody[], table: string): RecordingBody | null {
  if (tableOf(current, table) !== null) return current;
  const overlaps = (one: RecordingBody): boolean =>
    one.from_us !== null &&
    one.to_us !== null &&
    current.from_us !== null &&
    current.to_us !== null &&
    one.from_us <= current.to_us &&
    one.to_us >= current.from_us;
  return all.find((one) => one.id !== current.id && tableOf(one, table) !== null && overlaps(one)) ?? null;
}

/** The readings of the same moments, of the chosen host or of all devices, and which of them are shown. */
export function Readings({
  current,
  of,
  width,
  bounds,
  live,
  picker,
}: {
  current: RecordingBody;
  of: ProfileView;
  width: number;
  bounds: () => Bounds;
  live: boolean;
  /** Chooses among the quantities of the recording that is shown. */
  picker: (of: RecordingBody, quantity: Quantity) => ComponentChildren;
}) {
  const { window: window_ } = view.value;
  const quantity = quantityIn([current, ...(recordings.value ?? [])]);
  const { table, column } = quantity;
  const there = readingsOf(current, recordings.value ?? [], table);
  const { known, series, ask } = useSeries(there?.id ?? null, table);
  const wanted = useMemo(
    () => (there?.devices ?? []).filter(({ name }) => of.host === null || name === of.host),
    [there, of.host],
  );
  const own = useMemo(
    () => series.filter(({ labels }) => of.host === null || labels["device"] === of.host),
    [series, of.host],
  );
  const model = useRows(wanted, own, "devices", "");
  // A measurement that goes on after the profile has ended is looked at as it was then.
  const watch = useWatch({
    recording: there !== null && known && model.rows.length > 0 ? there : null,
    table,
    column,
    model,
    window: live ? window_ : { live: false, ...bounds() },
    width: Math.max(0, width - 100),
    intervalUs: there?.interval_us ?? 100_000,
    onUnknownSeries: ask,
  });
  const scale = useScale(`${there?.id} ${table} ${column} ${of.host}`, watch);
  const titled = (chooser: ComponentChildren, picture: ComponentChildren) => (
    <>
      <h2>Readings of the same time {chooser}</h2>
      {picture}
    </>
  );
  if (there === null)
    return titled(
      null,
      <p class="quiet">
        No recording of this server has readings{table === "" ? "" : ` of ${table}`} at this time. Serve the
        measurement, too: <code>meikyo serve PROFILE MEASUREMENT</code>
      </p>,
    );
  if (known && model.rows.length === 0)
    return titled(
      null,
      <p class="quiet">
        {recordingTitle(there, recordings.value ?? [])} has no device called {of.host}.
      </p>,
    );
  return titled(
    picker(there, quantity),
    <Strip
      label={`${quantityTitle(quantity, "devices", there)} at the same time`}
      bins={watch?.bins ?? null}
      model={model}
      height={READINGS_PX}
      scale={scale}
      bounds={bounds}
      live={live}
      unread={unreadOf(watch)}
      selectedRows={NO_ROWS}
      selected={view.value.selected}
      onSelect={({ fromUs, toUs }) => show({ selected: { fromUs: Math.round(fromUs), toUs: Math.round(toUs) } })}
      onPick={() => undefined}
      onZoom={zoom}
      onPan={pan}
      onKey={stripKeys(model, bounds, () => undefined)}
    />,
  );
}
