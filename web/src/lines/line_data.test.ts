import { expect, it } from "vitest";
import { Bins } from "../strip/bins.ts";
import { lineColumn, timeColumn, yRange } from "./line_data.ts";

function binsOf(values: Record<number, number>): Bins {
  const bins = new Bins(1, 100_000, 100);
  for (const [bin, value] of Object.entries(values)) bins.put(Number(bin), 0, value, 0);
  return bins;
}

it("breaks the line where readings are missing", () => {
  const bins = binsOf({ 0: 1, 1: 2, 2: 3, 6: 4, 7: 5, 8: 6 });
  expect(lineColumn(bins, 0, 0, 8)).toEqual([1, 2, 3, null, null, null, 4, 5, 6]);
});

it("does not break the line of what is read only now and then", () => {
  const bins = binsOf({ 0: 1, 10: 2, 20: 3, 30: 4, 70: 5 });
  const points = lineColumn(bins, 0, 0, 70);
  expect(points.slice(1, 10).every((point) => point === undefined)).toBe(true);
  expect(points.slice(31, 70).every((point) => point === null)).toBe(true);
});

it("keeps what lies before the first and behind the last reading open", () => {
  expect(lineColumn(binsOf({ 5: 1 }), 0, 3, 7)).toEqual([undefined, undefined, 1, undefined, undefined]);
});

it("counts times in seconds", () => expect(timeColumn(binsOf({ 10: 1 }), 10, 12)).toEqual([1, 1.1, 1.2]));

it("a chart begins at 0 where that does not flatten it, and holds all of its values", () => {
  for (const [least, greatest] of [
    [0, 10],
    [3, 10],
    [95, 100],
    [99.9, 100],
    [-5, 5],
    [-100, -99],
    [0, 0],
    [7, 7],
  ] as const) {
    const [low, high] = yRange(least, greatest);
    expect(low).toBeLessThanOrEqual(least);
    expect(high).toBeGreaterThan(greatest);
    // What moves takes up a good part of the height.
    if (greatest > least) expect((greatest - least) / (high - low)).toBeGreaterThan(0.04);
  }
  expect(yRange(3, 10)[0]).toBe(0);
  expect(yRange(99.9, 100)[0]).toBeGreaterThan(99);
  expect(yRange(0.5, 0.51)[0]).toBeGreaterThanOrEqual(0);
  expect(yRange(null, null)).toEqual([0, 1.06]);
});
