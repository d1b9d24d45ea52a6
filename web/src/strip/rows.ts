/** Which series stands in which row of strip and grid, and in which group. */

import type { DeviceBody, SeriesBody } from "../api/types.ts";
import { inNaturalOrder } from "../words/natural.ts";

export interface Row {
  readonly device: string;
  /** Empty when the row is a whole device: `eth0`, `/`. */
  readonly part: string;
  readonly name: string;
}

export interface Group {
  readonly name: string;
  readonly first: number;
  readonly rows: number;
}

export interface RowModel {
  readonly rows: readonly Row[];
  /** Row of each series; -1: not shown. */
  readonly rowOf: Int32Array;
  readonly groups: readonly Group[];
  /** Rows of each device, by name. */
  readonly rowsOfDevice: ReadonlyMap<string, readonly number[]>;
  /** Series of each row. */
  readonly seriesOfRow: readonly (readonly number[])[];
}

const ROLE_GROUPS: Readonly<Record<string, string>> = { host: "Hosts", switch: "Switches", unknown: "Devices" };

/** The group that a device stands in: its rack, or what it is. */
export function groupOf(device: DeviceBody): string {
  return device.group ?? ROLE_GROUPS[device.role] ?? "Devices";
}

/** Whether a name is found: every word of what was typed is in it. */
export function matches(name: string, find: string): boolean {
  const lower = name.toLowerCase();
  return find
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word));
}

function partOf(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .filter(([name]) => name !== "device")
    .map(([, text]) => text)
    .join(" ");
}

/**
 * Rows in the order of groups, then devices as the recording lists them, then series in natural order. Devices without a series have a row too when rows are
 * devices: that nothing is known of them is worth seeing.
 */
export function buildRows(
  devices: readonly DeviceBody[],
  series: readonly SeriesBody[],
  kind: "devices" | "series",
  find: string,
): RowModel {
  const names = new Map(devices.map((device) => [device.name, device]));
  const parts = new Map<string, SeriesBody[]>();
  let ordinals = 0;
  for (const one of series) {
    const name = one.labels["device"] ?? "";
    const list = parts.get(name) ?? [];
    list.push(one);
    parts.set(name, list);
    ordinals = Math.max(ordinals, one.ordinal + 1);
  }
  const all = [...devices];
  for (const name of inNaturalOrder([...parts.keys()], (one) => one)) {
    if (!names.has(name) && name !== "")
      all.push({ ordinal: all.length, name, role: "unknown", group: null, agent: null });
  }
  const ordered = groupedInOrder(all);
  const rows: Row[] = [];
  const seriesOfRow: number[][] = [];
  const groups: Group[] = [];
  const rowsOfDevice = new Map<string, number[]>();
  const rowOf = new Int32Array(ordinals).fill(-1);
  const add = (row: Row, of: readonly SeriesBody[]): void => {
    for (const one of of) rowOf[one.ordinal] = rows.length;
    const own = rowsOfDevice.get(row.device) ?? [];
    own.push(rows.length);
    rowsOfDevice.set(row.device, own);
    rows.push(row);
    seriesOfRow.push(of.map(({ ordinal }) => ordinal));
  };
  for (const [group, members] of ordered) {
    const first = rows.length;
    for (const { name } of members) {
      const own = parts.get(name) ?? [];
      if (kind === "devices") {
        if (matches(name, find)) add({ device: name, part: "", name }, own);
        continue;
      }
      for (const { one, part } of inNaturalOrder(
        own.map((of) => ({ one: of, part: partOf(of.labels) })),
        (of) => of.part,
      )) {
        const whole = part === "" ? name : `${name} ${part}`;
        if (matches(whole, find)) add({ device: name, part, name: whole }, [one]);
      }
    }
    if (rows.length > first) groups.push({ name: group, first, rows: rows.length - first });
  }
  return { rows, rowOf, groups, rowsOfDevice, seriesOfRow };
}

function groupedInOrder(devices: readonly DeviceBody[]): Map<string, DeviceBody[]> {
  const groups = new Map<string, DeviceBody[]>();
  for (const device of devices) {
    const name = groupOf(device);
    const members = groups.get(name) ?? [];
    members.push(device);
    groups.set(name, members);
  }
  return groups;
}

/** Least distance between the names of two rows, from middle to middle. */
export const LABEL_STEP_PX = 13;
const LABEL_STEPS = [1, 2, 4, 8, 16, 32, 48, 64, 128, 256, 512, 1024, 2048];
/** A name has that much above and below its middle. */
const LABEL_HALF_PX = 5;

/** Which of some rows have their names beside a picture of that height, and how far down. */
export function labelPlaces(rows: number, height: number): readonly { readonly row: number; readonly y: number }[] {
  const rowHeight = height / rows;
  // The first and the last name are moved into the picture.
  const moved = Math.max(0, LABEL_HALF_PX - rowHeight / 2);
  const least = Math.ceil((LABEL_STEP_PX + moved) / rowHeight);
  const step = LABEL_STEPS.find((one) => one >= least) ?? least;
  return Array.from({ length: Math.ceil(rows / step) }, (_, at) => {
    const row = at * step;
    return { row, y: Math.min(height - LABEL_HALF_PX, Math.max(LABEL_HALF_PX, (row + 0.5) * rowHeight)) };
  });
}
