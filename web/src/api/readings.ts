/** Raw rows as objects, and answers with their round trips. */

import { apiPath, getJson, type Parameter, recordingPath } from "./client.ts";
import type { RowsBody } from "./types.ts";

export type Value = number | string | null;
export type RawRow = Readonly<Record<string, Value>>;

/** Rows of a table, the newest last. */
export async function getRows(
  id: string,
  what: string,
  parameters: Readonly<Record<string, Parameter>>,
  signal: AbortSignal,
): Promise<RawRow[]> {
  return rowsOf(await getJson<RowsBody>(apiPath(recordingPath(id, what), parameters), signal));
}

export function rowsOf(body: RowsBody): RawRow[] {
  return (body.rows as readonly (readonly Value[])[]).map((row) =>
    Object.fromEntries(body.columns.map((name, at) => [name, row[at] ?? null])),
  );
}

export function numberOf(value: Value | undefined): number | null {
  if (value === null || value === undefined || value === "") return null;
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}

/** Where answers, and the requests that they answer, stand in a recording. */
export interface AnswerTables {
  readonly answers: string;
  readonly requests: string | null;
}

/** One answer of a device, with the sent time of the batch that asked for it. */
export interface Answer {
  readonly dueUs: number;
  readonly pdu: number;
  /** Kernel receive time; null: it did not answer. */
  readonly receivedUs: number | null;
  readonly roundTripUs: number | null;
  readonly state: string;
  readonly reason: string | null;
  readonly uptimeUs: number | null;
}

/** Answers have times after the due instant, batches when each was handed to the kernel. */
export function answersOf(polls: readonly RawRow[], batches: readonly RawRow[]): Answer[] {
  const sent = new Map(batches.map((row) => [`${row["time_us"]} ${row["batch"]}`, numberOf(row["sent_us"])]));
  return polls.map((row) => {
    const dueUs = numberOf(row["time_us"]) ?? 0;
    const after = numberOf(row["received_us"]);
    const sentAfter = sent.get(`${row["time_us"]} ${row["batch"]}`) ?? null;
    const uptime = numberOf(row["uptime_cs"]);
    return {
      dueUs,
      pdu: numberOf(row["pdu"]) ?? 0,
      receivedUs: after === null ? null : dueUs + after,
      roundTripUs: after === null || sentAfter === null ? null : after - sentAfter,
      state: String(row["state"] ?? ""),
      reason: row["reason"] === null || row["reason"] === undefined ? null : String(row["reason"]),
      uptimeUs: uptime === null ? null : uptime * 10_000,
    };
  });
}

export async function getAnswers(
  id: string,
  tables: AnswerTables,
  device: string,
  from: Parameter,
  to: Parameter,
  signal: AbortSignal,
): Promise<Answer[]> {
  const [polls, batches] = await Promise.all([
    getRows(id, "readings", { table: tables.answers, device, from, to, limit: 1000 }, signal),
    tables.requests === null
      ? []
      : getRows(id, "readings", { table: tables.requests, from, to, limit: 20_000 }, signal),
  ]);
  return answersOf(polls, batches);
}
