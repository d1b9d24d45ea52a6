/** Values of the past: least, mean and greatest per series and bin, as Arrow. */

import { tableFromIPC } from "@uwdata/flechette";
import { apiPath, getBytes, type Parameter, recordingPath } from "./client.ts";

export interface RangeRequest {
  readonly recording: string;
  readonly table: string;
  readonly column: string;
  readonly fromUs: number;
  readonly toUs: number;
  readonly width: number;
  readonly labels?: Readonly<Record<string, readonly string[]>>;
  readonly fold?: number;
  /** Rates lie where the reading was due that brought them, as in live frames; otherwise where they were counted. */
  readonly rates?: "read";
  /** What of each bin is wanted; all when absent. */
  readonly values?: readonly ("min" | "mean" | "max")[];
}

export interface Range {
  readonly fromUs: number;
  readonly binUs: number;
  readonly unit: string;
  /** Files that could not be read: what they held is missing. */
  readonly problems: number;
  readonly bins: Uint32Array;
  readonly series: Uint32Array;
  /** Those that were not wanted are empty. */
  readonly min: Float32Array;
  readonly mean: Float32Array;
  readonly max: Float32Array;
}

export function rangePath(request: RangeRequest, more: Readonly<Record<string, Parameter>> = {}): string {
  return apiPath(recordingPath(request.recording, "range"), {
    table: request.table,
    column: request.column,
    from: Math.round(request.fromUs),
    to: Math.round(request.toUs),
    width: Math.max(1, Math.round(request.width)),
    fold: request.fold ?? null,
    values: request.values?.join() ?? null,
    rates: request.rates ?? null,
    ...request.labels,
    ...more,
  });
}

/** Most series times bins that the server answers with at once. */
const CELLS_MAX = 8_000_000;

/** The width that so many series allow. */
export function widthFor(series: number, wanted: number): number {
  return Math.max(1, Math.min(wanted, 10_000, Math.floor(CELLS_MAX / Math.max(1, series)) - 2));
}

export async function getRange(request: RangeRequest, signal: AbortSignal): Promise<Range> {
  const { bytes, headers } = await getBytes(rangePath(request, { format: "arrow" }), signal);
  return decodeRange(bytes, {
    fromUs: Number(headers.get("Meikyo-From-Us") ?? request.fromUs),
    binUs: Number(headers.get("Meikyo-Bin-Us") ?? (request.toUs - request.fromUs) / request.width),
    unit: headers.get("Meikyo-Unit") ?? "",
    problems: Number(headers.get("Meikyo-Problems") ?? 0),
  });
}

export function decodeRange(
  bytes: Uint8Array,
  head: { fromUs: number; binUs: number; unit: string; problems: number },
): Range {
  const table = tableFromIPC(bytes);
  const u32 = (name: string): Uint32Array =>
    (table.getChild(name)?.toArray() as Uint32Array | undefined) ?? new Uint32Array();
  const f32 = (name: string): Float32Array =>
    (table.getChild(name)?.toArray() as Float32Array | undefined) ?? new Float32Array();
  return { ...head, bins: u32("bin"), series: u32("series"), min: f32("min"), mean: f32("mean"), max: f32("max") };
}
