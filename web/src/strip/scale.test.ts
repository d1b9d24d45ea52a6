import { describe, expect, it } from "vitest";
import { Bins } from "./bins.ts";
import { NO_STATE } from "./ramp.ts";
import { Scale } from "./scale.ts";

function bins(...values: readonly number[]): Bins {
  const made = new Bins(1, 1e6, 100);
  for (const [bin, value] of values.entries()) made.put(bin, 0, value, NO_STATE);
  return made;
}

/** Rows of usual traffic between 5 and 20. */
function usual(rows: number, columns: number): Bins {
  const made = new Bins(rows, 1e6, columns);
  for (let bin = 0; bin < columns; bin += 1)
    for (let row = 0; row < rows; row += 1) made.put(bin, row, 5 + ((bin * 7 + row * 3) % 16), NO_STATE);
  return made;
}

describe("a scale", () => {
  it("holds the usual traffic, however great one spike is", () => {
    const shown = usual(225, 600);
    const before = new Scale().endFor([shown], "", 0);
    expect(before).toBe(20);
    shown.put(300, 100, 1e9, NO_STATE);
    const scale = new Scale();
    expect(scale.endFor([shown], "", 0)).toBe(before);
    expect(scale.greatest).toBe(1e9);
  });

  it("is found at once when readings come that were not there at the first look, and knows what it has not seen", () => {
    const shown = new Bins(225, 1e6, 600);
    const scale = new Scale();
    expect(scale.endFor([shown], "", 0)).toBe(1);
    const come = usual(225, 300);
    for (let bin = 0; bin < 300; bin += 1)
      for (let row = 0; row < 225; row += 1) shown.put(bin, row, come.value(bin, row), NO_STATE);
    expect(scale.endFor([shown], "", 10)).toBe(20);
    expect(scale.isBehind).toBe(false);
    for (let row = 0; row < 225; row += 1) for (let bin = 300; bin < 600; bin += 1) shown.put(bin, row, 100, NO_STATE);
    expect(scale.endFor([shown], "", 20)).toBe(20);
    expect(scale.isBehind).toBe(true);
    expect(scale.endFor([shown], "", 20 + 2001)).toBe(100);
  });

  it("does not take what a row does all the time for a spike", () => {
    const shown = usual(225, 600);
    for (let bin = 0; bin < 600; bin += 1) shown.put(bin, 7, 900, NO_STATE);
    expect(new Scale().endFor([shown], "", 0)).toBeGreaterThanOrEqual(900);
  });

  it("holds everything where the greatest value is not far from what is usual", () => {
    const shown = usual(225, 600);
    shown.put(300, 100, 38, NO_STATE);
    for (let row = 0; row < 225; row += 1) for (let bin = 0; bin < 30; bin += 1) shown.put(bin, row, 30, NO_STATE);
    expect(new Scale().endFor([shown], "", 0)).toBe(50);
  });

  it("is not set by rows that do nothing", () => {
    const shown = new Bins(200, 1e6, 300);
    for (let bin = 0; bin < 300; bin += 1) for (let row = 0; row < 200; row += 1) shown.put(bin, row, 0, NO_STATE);
    for (let bin = 0; bin < 20; bin += 1) shown.put(bin, 3, 40 + bin, NO_STATE);
    expect(new Scale().endFor([shown], "", 0)).toBe(100);
  });

  it("agrees with sorting everything, also where it looks at a part only", () => {
    const shown = new Bins(1000, 1e6, 1000);
    const all: number[] = [];
    for (let bin = 0; bin < 1000; bin += 1)
      for (let row = 0; row < 1000; row += 1) {
        const value = Math.exp(((bin * 7919 + row * 104_729) % 100_003) / 10_000);
        shown.put(bin, row, value, NO_STATE);
        all.push(value);
      }
    const exact = all.sort((left, right) => left - right)[990_000 - 1] ?? 0;
    const end = new Scale().endFor([shown], "", 0);
    expect(end).toBeGreaterThanOrEqual(exact);
    expect(end).toBeLessThan(exact * 2.6);
  });

  it("comes back from a spike of the first moment once more is known", () => {
    const [scale, shown] = [new Scale(), new Bins(50, 1e6, 400)];
    shown.put(0, 3, 5000, NO_STATE);
    expect(scale.endFor([shown], "", 0)).toBe(5000);
    for (let bin = 1; bin < 400; bin += 1) for (let row = 0; row < 50; row += 1) shown.put(bin, row, 12, NO_STATE);
    expect(scale.endFor([shown], "", 3000)).toBe(20);
  });

  it("of logarithms reaches the greatest value", () => {
    const shown = usual(225, 600);
    shown.put(300, 100, 1e9, NO_STATE);
    expect(new Scale().endFor([shown], "", 0, "log")).toBe(1e9);
  });
});

it("grows soon where the load changes, and shrinks only when it was looked through", () => {
  const [scale, shown] = [new Scale(), bins(3, 50, 4)];
  const first = scale.endFor([shown], "", 0);
  expect(first).toBeGreaterThanOrEqual(50);
  expect(first).toBeLessThan(50 * 2.6);
  shown.put(3, 0, 900, NO_STATE);
  const grown = scale.endFor([shown], "", 300);
  expect(grown).toBeGreaterThanOrEqual(900);
  // Far smaller values leave it until the next look.
  for (let bin = 4; bin < 200; bin += 1) shown.put(bin, 0, 5, NO_STATE);
  expect(scale.endFor([shown], "", 600)).toBe(grown);
  const shrunk = scale.endFor([shown], "", 9_000);
  expect(shrunk).toBeGreaterThanOrEqual(5);
  expect(shrunk).toBeLessThan(50);
});

it("grows at once where another window holds more", () => {
  const scale = new Scale();
  expect(scale.endFor([bins(5)], "", 0)).toBeLessThan(50);
  expect(scale.endFor([bins(800, 5)], "", 1)).toBeGreaterThanOrEqual(800);
});

it("stays where values shrink a little, so that colours do not flicker", () => {
  const [scale, shown] = [new Scale(), bins(100)];
  const end = scale.endFor([shown], "", 0);
  expect(scale.endFor([bins(40)], "", 10_000)).toBe(end);
});

it("is one for all that is compared", () => {
  const alone = new Scale().endFor([bins(2)], "", 0);
  const both = new Scale().endFor([bins(2), null, bins(700)], "", 0);
  expect(both).toBeGreaterThanOrEqual(700);
  expect(alone).toBeLessThan(both);
});

it("is never 0, which nothing could be divided by", () => {
  expect(new Scale().endFor([null], "", 0)).toBe(1);
  expect(new Scale().endFor([bins()], "", 0)).toBeGreaterThan(0);
});
