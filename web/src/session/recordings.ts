/** The recordings that the server has, and the one that is looked at. */

import { batch, computed, signal } from "@preact/signals";
import type { Quantity } from "../address/address.ts";
import { apiPath, errorText, getJson, recordingPath, wasAborted } from "../api/client.ts";
import type { AnswerTables } from "../api/readings.ts";
import type { ColumnBody, RecordingBody, SeriesBody, TableBody } from "../api/types.ts";
import { dayAndClock } from "../time/moment.ts";
import { beginUs, endUs, newestUs } from "./now.ts";
import { view } from "./view.ts";

export const recordings = signal<readonly RecordingBody[] | null>(null);
/** Why there are none. */
export const recordingsError = signal<string | null>(null);

export const recording = computed<RecordingBody | null>(() => {
  const all = recordings.value ?? [];
  const wanted = view.value.recording;
  return wanted === null ? usualRecording(all) : (all.find(({ id }) => id === wanted) ?? null);
});

let usual: string | null = null;

/**
 * The recording that is looked at where the address names none: the first with rows, as long as it is there. That of a
 * receiver itself stays empty where only clusters are sent to it.
 */
export function usualRecording(all: readonly RecordingBody[]): RecordingBody | null {
  const found = all.find(({ id }) => id === usual) ?? all.find(({ from_us }) => from_us !== null);
  usual = found?.id ?? null;
  return found ?? all[0] ?? null;
}

/** The interval of the recording; a tenth of a second where it is not known yet. */
export const intervalUs = computed(() => recording.value?.interval_us ?? 100_000);

/** The name of a recording, with what tells it apart where others are called the same, and whether it is simulated. */
export function recordingTitle(of: RecordingBody, all: readonly RecordingBody[]): string {
  return of.kind === "measured" ? distinctName(of, all) : `${distinctName(of, all)} (${of.kind})`;
}

function distinctName(of: RecordingBody, all: readonly RecordingBody[]): string {
  const alike = all.filter(({ name }) => name === of.name);
  if (alike.length < 2) return of.name;
  const begins = (one: RecordingBody): string => (one.from_us === null ? "empty" : `from ${dayAndClock(one.from_us)}`);
  return alike.filter((one) => begins(one) === begins(of)).length > 1
    ? `${of.name}, ${of.id}`
    : `${of.name}, ${begins(of)}`;
}

let looked: string | null = null;

/** Asks for the list; called at the start, after joining again, and now and then for growth and new devices. */
export async function refreshRecordings(stop?: AbortSignal): Promise<void> {
  try {
    const all = await getJson<readonly RecordingBody[]>(apiPath("recordings"), stop);
    batch(() => {
      // Equal lists must not wake everybody who looks at them.
      if (JSON.stringify(lasting(all)) !== JSON.stringify(lasting(recordings.peek() ?? []))) recordings.value = all;
      recordingsError.value = null;
      const wanted = view.peek().recording;
      const current = wanted === null ? usualRecording(all) : (all.find(({ id }) => id === wanted) ?? null);
      endUs.value = current?.to_us ?? 0;
      beginUs.value = current?.from_us ?? null;
      if (current !== null && current.id !== looked) {
        looked = current.id;
        const play = view.peek().play;
        newestUs.value = (play === null ? current.to_us : (play.fromUs ?? current.from_us)) ?? 0;
      } else if (current?.to_us != null && view.peek().play === null && current.to_us > newestUs.peek()) {
        newestUs.value = current.to_us;
      }
    });
  } catch (error) {
    if (!wasAborted(error)) recordingsError.value = errorText(error);
  }
}

/** A list without what changes all the time. */
function lasting(all: readonly RecordingBody[]): unknown {
  return all.map((one) => (one.running ? { ...one, to_us: null } : one));
}

export function tableOf(of: RecordingBody | null, table: string): TableBody | null {
  return of?.tables.find(({ name }) => name === table) ?? null;
}

export function columnOf(of: RecordingBody | null, table: string, column: string): ColumnBody | null {
  return tableOf(of, table)?.columns.find(({ name }) => name === column) ?? null;
}

/** Whether a column can be drawn. */
export function drawable(column: ColumnBody): boolean {
  return column.meaning === "gauge" || column.meaning === "counter";
}

/** The table that is for something, whatever it is called. */
export function tableFor(of: RecordingBody | null, role: string): TableBody | null {
  return of?.tables.find((table) => table.role === role) ?? null;
}

/** What is shown without being asked for, in the order that the tables declare. */
export function usualQuantities(of: RecordingBody | null): readonly Quantity[] {
  const places = (of?.tables ?? []).flatMap((table) =>
    table.columns.map((column) => ({ place: column.shown, table: table.name, column: column.name })),
  );
  return places
    .filter(({ place }) => place !== null)
    .sort((one, other) => (one.place ?? 0) - (other.place ?? 0))
    .map(({ table, column }) => ({ table, column }));
}

/** Everything that can be drawn of a device, the usual first. */
export function allQuantities(of: RecordingBody | null): readonly Quantity[] {
  const usual = usualQuantities(of);
  const readings = (of?.tables ?? []).filter(({ role, labels }) => role === "readings" && labels.includes("device"));
  const all = readings.flatMap(({ name: table, columns }) =>
    columns.filter(drawable).map(({ name: column }) => ({ table, column })),
  );
  return [
    ...usual,
    ...all.filter((one) => !usual.some(({ table, column }) => table === one.table && column === one.column)),
  ];
}

const NO_QUANTITY: Quantity = { table: "", column: "" };

/** What is shown: what the address says, else what the first of some recordings that has readings declares first. */
export function quantityIn(some: readonly RecordingBody[]): Quantity {
  return view.value.quantity ?? some.flatMap((one) => allQuantities(one).slice(0, 1))[0] ?? NO_QUANTITY;
}

export const shownQuantity = computed<Quantity>(() => quantityIn(recording.value === null ? [] : [recording.value]));

/** What passes through each interface of a device, in the direction that is shown first; null where no table says it. */
export function trafficOf(of: RecordingBody | null): Quantity | null {
  const passes = ({ table, column }: Quantity): boolean =>
    (tableOf(of, table)?.labels.includes("interface") ?? false) && columnOf(of, table, column)?.unit === "octets/s";
  return usualQuantities(of).find(passes) ?? null;
}

/** The tables that tell how and when devices answered, and when they were asked. */
export function answerTables(of: RecordingBody | null): AnswerTables | null {
  const answers = tableFor(of, "answers");
  const requests = tableFor(of, "requests");
  return answers === null ? null : { answers: answers.name, requests: requests?.name ?? null };
}

const known = new Map<string, Promise<readonly SeriesBody[]>>();

/** The series of a table; asked for once, and again after `forgetSeries`. */
export function seriesOf(id: string, table: string): Promise<readonly SeriesBody[]> {
  const key = `${id}\u0000${table}`;
  const found = known.get(key);
  if (found !== undefined) return found;
  const asked = getJson<readonly SeriesBody[]>(apiPath(recordingPath(id, "series"), { table }));
  known.set(key, asked);
  asked.catch(() => known.delete(key));
  return asked;
}

/** Ordinals hold as long as the server runs; after a restart, or when new series come, they are asked for anew. */
export function forgetSeries(): void {
  known.clear();
}
