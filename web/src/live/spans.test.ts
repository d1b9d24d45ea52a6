import { expect, it } from "vitest";
import { Spans } from "./spans.ts";

it("agrees with a map of every microsecond, whatever was added in whatever order", () => {
  for (let round = 0; round < 300; round += 1) {
    const [spans, read] = [new Spans(), new Set<number>()];
    for (let step = 0; step < 8; step += 1) {
      const from = Math.floor(Math.random() * 60);
      const to = from + Math.floor(Math.random() * 15);
      spans.add(from, to);
      for (let us = from; us < to; us += 1) read.add(us);
    }
    const gaps = spans.gaps(5, 55);
    for (let us = 5; us < 55; us += 1) {
      expect(gaps.some(({ fromUs, toUs }) => us >= fromUs && us < toUs)).toBe(!read.has(us));
      expect(spans.has(us)).toBe(read.has(us));
    }
    // Neighbouring gaps would be one gap.
    for (const [at, gap] of gaps.slice(1).entries()) expect(gap.fromUs).toBeGreaterThan(gaps[at]?.toUs ?? 0);
  }
});

it("forgets only what ended before", () => {
  const spans = new Spans();
  spans.add(0, 10);
  spans.add(20, 30);
  spans.forgetBefore(15);
  expect(spans.gaps(0, 40)).toEqual([
    { fromUs: 0, toUs: 20 },
    { fromUs: 30, toUs: 40 },
  ]);
});
