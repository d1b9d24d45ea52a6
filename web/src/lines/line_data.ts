/** Bins as the columns that uPlot draws: times in seconds, one column a line, gaps where readings are missing. */

import type { Bins } from "../strip/bins.ts";

/** A hole so many times as long as the usual step between readings is a gap; a shorter one is how often it is read. */
const GAP_STEPS = 2.5;

export type Points = (number | null | undefined)[];

/**
 * `undefined`: nothing was due here, the line goes on; `null`: a reading is missing, the line is broken.
 */
export function lineColumn(bins: Bins, row: number, first: number, last: number, sign: 1 | -1 = 1): Points {
  const points: Points = [];
  const at: number[] = [];
  for (let bin = first; bin <= last; bin += 1) {
    const value = bins.value(bin, row);
    if (Number.isNaN(value)) points.push(undefined);
    else {
      at.push(bin - first);
      points.push(value * sign);
    }
  }
  const steps = at
    .slice(1)
    .map((place, index) => place - (at[index] ?? 0))
    .sort((left, right) => left - right);
  const usual = Math.max(1, steps[Math.floor(steps.length / 2)] ?? 1);
  for (let index = 1; index < at.length; index += 1) {
    const [before, after] = [at[index - 1] ?? 0, at[index] ?? 0];
    if (after - before > usual * GAP_STEPS)
      for (let place = before + 1; place < after; place += 1) points[place] = null;
  }
  return points;
}

export function timeColumn(bins: Bins, first: number, last: number): number[] {
  const times: number[] = [];
  for (let bin = first; bin <= last; bin += 1) times.push((bin * bins.binUs) / 1e6);
  return times;
}

/** From 0, unless that would flatten what moves: used disk space, uptime. */
export function yRange(least: number | null, greatest: number | null): [number, number] {
  const [low, high] = [least ?? 0, greatest ?? 1];
  if (low >= 0 && high - low > high * 0.05) return [0, high * 1.06 || 1];
  const margin = (high - low) * 0.2 || Math.abs(high) * 0.05 || 1;
  return [Math.max(low >= 0 ? 0 : Number.NEGATIVE_INFINITY, low - margin), high + margin];
}
