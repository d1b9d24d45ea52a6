import { expect, it } from "vitest";
import { Bins } from "./bins.ts";
import { NO_STATE } from "./ramp.ts";
import { Scale } from "./scale.ts";

function bins(...values: readonly number[]): Bins {
  const made = new Bins(1, 1e6, 100);
  values.forEach((value, bin) => made.put(bin, 0, value, NO_STATE));
  return made;
}

it("grows at once with a value that is beyond it, and shrinks only when it was looked through", () => {
  const [scale, shown] = [new Scale(), bins(3, 50, 4)];
  const first = scale.endFor([shown], "", 0);
  expect(first).toBeGreaterThanOrEqual(50);
  expect(first).toBeLessThan(50 * 2.6);
  shown.put(3, 0, 900, NO_STATE);
  const grown = scale.endFor([shown], "", 10);
  expect(grown).toBeGreaterThanOrEqual(900);
  // Far smaller values leave it for as long as the great one is shown.
  for (let bin = 4; bin < 60; bin += 1) shown.put(bin, 0, 5, NO_STATE);
  expect(scale.endFor([shown], "", 5_000)).toBe(grown);
  for (let bin = 60; bin < 200; bin += 1) shown.put(bin, 0, 5, NO_STATE);
  expect(scale.endFor([shown], "", 5_500)).toBe(grown);
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
