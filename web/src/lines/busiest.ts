/** Which devices did most in the shown time: the lines that are drawn where none is selected. */

import type { Bins } from "../strip/bins.ts";
import type { RowModel } from "../strip/rows.ts";
import { naturally } from "../words/natural.ts";

export interface Ranked {
  readonly device: string;
  /** Mean over the bins that have a value, of a device with several rows over all of them. */
  readonly mean: number;
  readonly peak: number;
}

/** Devices by the sums of their rows between two times, the greatest first; those with nothing are left out. */
export function rankedDevices(bins: Bins, { rows }: RowModel, fromUs: number, toUs: number): readonly Ranked[] {
  const found = new Map<string, { sum: number; values: number; peak: number }>();
  const first = Math.max(bins.binOf(fromUs), bins.newestBin - bins.capacity + 1);
  const last = Math.min(bins.binOf(toUs), bins.newestBin);
  for (let bin = first; bin <= last; bin += 1) {
    const values = bins.column(bin)?.values;
    if (values === undefined) continue;
    rows.forEach(({ device }, row) => {
      const value = values[row] ?? Number.NaN;
      if (Number.isNaN(value)) return;
      const own = found.get(device) ?? { sum: 0, values: 0, peak: 0 };
      own.sum += value;
      own.values += 1;
      own.peak = Math.max(own.peak, value);
      found.set(device, own);
    });
  }
  return [...found]
    .filter(([, { sum }]) => sum > 0)
    .sort((left, right) => right[1].sum - left[1].sum || naturally(left[0], right[0]))
    .map(([device, { sum, values, peak }]) => ({ device, mean: sum / values, peak }));
}

/**
 * The devices of the rows with the greatest sums between two times, at most `most` of them: the greatest `together` in
 * natural order, behind them the next ones, and so on. Those that are `kept` stand first, as they stood.
 */
export function busiestDevices(
  bins: Bins,
  model: RowModel,
  fromUs: number,
  toUs: number,
  most: number,
  together = most,
  kept: readonly string[] = [],
): readonly string[] {
  const ranked = rankedDevices(bins, model, fromUs, toUs)
    .map(({ device }) => device)
    .filter((device) => !kept.includes(device))
    .slice(0, Math.max(0, most - kept.length));
  const names = [...kept];
  while (ranked.length > 0) {
    names.push(...ranked.splice(0, together - (names.length % together)).sort(naturally));
  }
  return names;
}
