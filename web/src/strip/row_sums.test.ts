import { expect, it } from "vitest";
import { Bins } from "./bins.ts";
import { NO_STATE } from "./ramp.ts";
import { rowSums } from "./row_sums.ts";

it("agrees with looking at every cell by itself, over the ring's end and bins that were passed over", () => {
  const bins = new Bins(23, 1e6, 17);
  for (let at = 0; at < 400; at += 1) {
    const [bin, row] = [170_000_000_00 + Math.floor(at / 12), (at * 7) % 23];
    if (bin % 5 === 3 || row === 4) continue;
    bins.put(bin, row, at % 11 === 0 ? Number.NaN : ((at * 37) % 101) - 20, at % 6 === 0 ? NO_STATE : at % 5);
  }
  const rows = [3, 22, 4, 0, 11];
  for (const [first, last] of [
    [0, Number.MAX_SAFE_INTEGER],
    [bins.newestBin - 9, bins.newestBin - 2],
    [5, 3],
  ] as const) {
    const [peaks, means]: [number[], number[]] = [[], []];
    let faults = 0;
    for (const row of rows) {
      const values: number[] = [];
      for (let bin = Math.max(first, bins.newestBin - 16); bin <= Math.min(last, bins.newestBin); bin += 1) {
        const [state, value] = [bins.state(bin, row), bins.value(bin, row)];
        if ([1, 3, 4].includes(state)) faults += 1;
        if (!Number.isNaN(value)) values.push(value);
      }
      if (values.length === 0) continue;
      peaks.push(Math.max(...values));
      means.push(values.reduce((sum, value) => sum + value, 0) / values.length);
    }
    const told = rowSums(bins, rows, first, last);
    expect([...told.peaks]).toEqual(peaks);
    expect([...told.means].map((mean) => mean.toFixed(9))).toEqual(means.map((mean) => mean.toFixed(9)));
    expect(told.faults).toBe(faults);
  }
});
