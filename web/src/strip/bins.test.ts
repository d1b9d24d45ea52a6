import { describe, expect, it } from "vitest";
import { Bins, foldColumn } from "./bins.ts";
import { NO_STATE } from "./ramp.ts";

describe("bins", () => {
  it("hold exactly what a plain map of the newest bins holds, in any order of arrival", () => {
    for (let round = 0; round < 60; round += 1) {
      const [rows, capacity] = [1 + (round % 5), 2 + (round % 11)];
      const bins = new Bins(rows, 100_000, capacity);
      const oracle = new Map<string, { value: number; state: number }>();
      let newest = -1;
      for (let step = 0; step < 200; step += 1) {
        const bin = Math.max(0, Math.floor(step / 3 + (Math.random() - 0.7) * capacity * 1.5));
        const row = Math.floor(Math.random() * rows);
        const value = Math.random() < 0.2 ? Number.NaN : Math.fround(Math.random());
        const state = [0, 1, 2, 3, 4, NO_STATE][Math.floor(Math.random() * 6)] ?? 0;
        bins.put(bin, row, value, state);
        if (bin > newest - capacity) {
          newest = Math.max(newest, bin);
          const key = `${bin} ${row}`;
          const before = oracle.get(key) ?? { value: Number.NaN, state: NO_STATE };
          const known = [before.value, value].filter((one) => !Number.isNaN(one));
          const states = [before.state, state].filter((one) => one !== NO_STATE);
          oracle.set(key, {
            value: known.length > 0 ? Math.max(...known) : Number.NaN,
            state: states.length > 0 ? Math.max(...states) : NO_STATE,
          });
        }
      }
      for (let bin = newest - capacity - 3; bin <= newest + 2; bin += 1) {
        for (let row = 0; row < rows; row += 1) {
          const expected = bin > newest - capacity ? oracle.get(`${bin} ${row}`) : undefined;
          expect(bins.value(bin, row)).toEqual(expected?.value ?? Number.NaN);
          expect(bins.state(bin, row)).toBe(expected?.state ?? NO_STATE);
        }
      }
    }
  });

  it("take a frame's series to their rows, the greatest of a device's interfaces", () => {
    const bins = new Bins(2, 100_000, 4);
    bins.putFrame(
      7,
      Uint32Array.of(0, 1, 2, 3),
      Float32Array.of(1, 5, Number.NaN, 9),
      Uint8Array.of(0, 0, 4, 0),
      Int32Array.of(0, 0, 1, -1),
    );
    expect(bins.value(7, 0)).toBe(5);
    expect(bins.value(7, 1)).toBeNaN();
    expect(bins.state(7, 1)).toBe(4);
    expect(bins.greatest(0, 10)).toBe(5);
  });

  it("find the bin of a due instant in spite of the clock's rounding", () => {
    const bins = new Bins(1, 100_000, 4);
    for (let at = 0; at < 1000; at += 1) {
      const index = 17_637_000_000 + at;
      expect(bins.binOf(index * 100_000)).toBe(index);
      expect(bins.binOf(index * 100_000 + 99_000)).toBe(index);
    }
  });

  it("stay within their memory for many rows", () => {
    expect(new Bins(10_000, 100_000, 10_000).capacity * 10_000).toBeLessThanOrEqual(16 * 1024 * 1024);
  });
});

it("folding keeps every spike and every fault", () => {
  for (let round = 0; round < 100; round += 1) {
    const rows = 1 + Math.floor(Math.random() * 3000);
    const lines = 1 + Math.floor(Math.random() * Math.min(rows, 600));
    const values = Float32Array.from({ length: rows }, () => (Math.random() < 0.3 ? Number.NaN : Math.random()));
    const states = Uint8Array.from({ length: rows }, () => (Math.random() < 0.01 ? 4 : 0));
    const [foldedValues, foldedStates] = [new Float32Array(lines), new Uint8Array(lines)];
    foldColumn(values, states, lines, foldedValues, foldedStates);
    const known = (from: Float32Array): number[] => [...from].filter((value) => !Number.isNaN(value));
    expect(Math.max(...known(foldedValues), -1)).toBe(Math.max(...known(values), -1));
    expect(foldedStates.includes(4)).toBe(states.includes(4));
    for (let row = 0; row < rows; row += 1) {
      const line = [...Array(lines).keys()].find((at) => Math.floor(((at + 1) * rows) / lines) > row) ?? 0;
      if (row % 97 === 0 && !Number.isNaN(values[row]))
        expect(foldedValues[line]).toBeGreaterThanOrEqual(values[row] ?? 0);
    }
  }
});
