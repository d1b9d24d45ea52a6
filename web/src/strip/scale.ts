/**
 * The end of the ramp. It is chosen so that the usual traffic can be told apart: a spike is marked as beyond the scale
 * (`cellPixel`) instead of pressing everything else down to the colour of nothing.
 *
 * Linear: the 99th percentile of what is not 0, and at least what some row does half of the time, since what lasts is no
 * spike. Where the greatest value is not far beyond that, the scale holds it too. Logarithmic: the greatest value.
 */

import { niceScale } from "../words/quantity.ts";
import type { Bins } from "./bins.ts";

export type ScaleKind = "linear" | "log";

/** How often the whole window is looked through. */
export const LOOK_MS = 2000;
/** How often at most, where the newest interval is beyond the scale in many rows. */
const HURRY_MS = 250;
/** A value beyond the scale is a spike in fewer rows than this share, and a change of load in more. */
const MANY_ROWS = 0.1;
/** It shrinks to at most this share of itself: two steps of 1, 2, 5, so that colours do not flicker. */
const SHRINK = 0.41;
/** And only where it would still do so with values this much greater. */
const SHRINK_MARGIN = 1.25;
/** The greatest value sets the scale where it is at most so many times what is usual. */
const NEAR = 2;
/** Most cells that are looked at for the percentile: a few ms of work, and its rank is right to a tenth of a percent. */
const CELLS_MAX = 20_000;
/** Readings of each row for what it does half of the time. */
const ROW_READINGS = 15;
const PERCENTILE = 0.99;

export class Scale {
  private end = 0;
  private most = 0;
  private of: Bins | null = null;
  private newest = -1;
  private kind: ScaleKind = "linear";
  private lookedMs = 0;
  private lookedRevision = -1;

  /** The end of the scale for what is shown now; equal scales of two strips come from one `Scale`. */
  endFor(all: readonly (Bins | null)[], unit: string, nowMs: number, kind: ScaleKind = "linear"): number {
    const [first] = all;
    if (first == null) return this.end || 1;
    // While nothing was found, whatever comes is looked at: it may be all that ever comes.
    const found = this.most > 0 || first.revision === this.lookedRevision;
    const fresh = this.of !== first || this.kind !== kind || !found;
    const hurry = first.newestBin !== this.newest && nowMs - this.lookedMs > HURRY_MS && beyondInMany(first, this.end);
    this.newest = first.newestBin;
    if (fresh || hurry || nowMs - this.lookedMs > LOOK_MS) {
      this.of = first;
      this.kind = kind;
      this.lookedMs = nowMs;
      this.lookedRevision = first.revision;
      const shown = all.filter((bins): bins is Bins => bins !== null);
      const greatest = Math.max(
        0,
        ...shown.map((bins) => bins.greatest(0, Number.MAX_SAFE_INTEGER)).filter((value) => !Number.isNaN(value)),
      );
      const usual = kind === "log" ? greatest : Math.max(percentile(shown), greatestOfRowMedians(shown));
      const wanted = endOf(usual, greatest, unit);
      this.most = greatest;
      if (wanted > this.end || endOf(usual * SHRINK_MARGIN, greatest, unit) <= this.end * SHRINK) this.end = wanted;
    }
    return this.end || 1;
  }

  /** Whether values came since the last look, so that the scale may change without further ones. */
  get isBehind(): boolean {
    return this.of !== null && this.of.revision !== this.lookedRevision;
  }

  /** The greatest value of the last look; beyond the scale where there was a spike. */
  get greatest(): number {
    return this.most;
  }
}

function endOf(usual: number, greatest: number, unit: string): number {
  const [end, whole] = [niceScale(usual, unit), niceScale(greatest, unit)];
  return whole <= end * NEAR ? whole : end;
}

/** Whether the newest interval is beyond the scale in so many rows that it is no spike. */
function beyondInMany(bins: Bins, end: number): boolean {
  const values = bins.column(bins.newestBin)?.values;
  if (values === undefined) return false;
  let beyond = 0;
  for (const value of values) if (value > end) beyond += 1;
  return beyond > values.length * MANY_ROWS;
}

/** The 99th percentile (nearest rank) of the values above 0; 0 if there is none. */
function percentile(all: readonly Bins[]): number {
  const cells = all.reduce((sum, bins) => sum + bins.rows * bins.capacity, 0);
  const values: number[] = [];
  // A prime step visits rows and bins evenly, whatever their numbers are.
  const step = cells <= CELLS_MAX ? 1 : nextPrime(Math.ceil(cells / CELLS_MAX));
  for (const bins of all) {
    for (let at = 0; at < bins.rows * bins.capacity; at += step) {
      const value = bins.cell(at);
      if (value > 0) values.push(value);
    }
  }
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.ceil(sorted.length * PERCENTILE) - 1] ?? 0;
}

function nextPrime(from: number): number {
  for (let one = from; ; one += 1) {
    let factor = 2;
    while (factor * factor <= one && one % factor !== 0) factor += 1;
    if (factor * factor > one) return one;
  }
}

/** What the busiest row does at least half of the time. */
function greatestOfRowMedians(all: readonly Bins[]): number {
  let greatest = 0;
  const readings = new Float64Array(ROW_READINGS);
  for (const bins of all) {
    const first = Math.max(0, bins.newestBin - bins.capacity + 1);
    const step = Math.max(1, Math.ceil((bins.newestBin - first + 1) / ROW_READINGS));
    const columns: Float32Array[] = [];
    for (let bin = bins.newestBin; bin >= first; bin -= step) {
      const column = bins.column(bin);
      if (column !== null) columns.push(column.values);
    }
    for (let row = 0; row < bins.rows; row += 1) {
      let [known, beyond] = [0, 0];
      for (const values of columns) {
        const value = values[row] ?? Number.NaN;
        if (Number.isNaN(value)) continue;
        readings[known++] = value;
        if (value > greatest) beyond += 1;
      }
      // Few rows are busier than all before them, and only those are sorted.
      if (2 * beyond <= known) continue;
      greatest = readings.subarray(0, known).sort()[Math.floor((known - 1) / 2)] ?? 0;
    }
  }
  return greatest;
}
