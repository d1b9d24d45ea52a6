/** Which devices did most in the shown time: the lines that are drawn where none is selected. */

import type { Bins } from "../strip/bins.ts";
import type { RowModel } from "../strip/rows.ts";
import { naturally } from "../words/natural.ts";

/** The devices of the rows with the greatest sums between two times, at most `most` of them, in natural order. */
export function busiestDevices(bins: Bins, { rows }: RowModel, fromUs: number, toUs: number, most: number): readonly string[] {
  const sums = new Map<string, number>();
  const first = Math.max(bins.binOf(fromUs), bins.newestBin - bins.capacity + 1);
  const last = Math.min(bins.binOf(toUs), bins.newestBin);
  for (let bin = first; bin <= last; bin += 1) {
    const values = bins.column(bin)?.values;
    if (values === undefined) continue;
    rows.forEach(({ device }, row) => {
      const value = values[row] ?? Number.NaN;
      if (value > 0) sums.set(device, (sums.get(device) ?? 0) + value);
    });
  }
  return [...sums].sort((left, right) => right[1] - left[1] || naturally(left[0], right[0])).slice(0, most).map(([device]) => device).sort(naturally);
}
