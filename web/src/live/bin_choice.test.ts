import { expect, it } from "vitest";
import { alignedRequest, binAhead, chooseBin } from "./bin_choice.ts";

/** The server's rule (server/src/range/level.rs), in its words: the coarsest summary that fits, whole multiples of it. */
function serverBin(spanUs: number, width: number): number {
  const exact = Math.max(1000, Math.ceil(spanUs / width));
  const level = [1e6, 10e6, 60e6, 600e6].filter((one) => one <= exact).at(-1) ?? 1000;
  return Math.ceil(exact / level) * level;
}

it("asks such that the server answers with the very bins that live frames fall into", () => {
  for (let round = 0; round < 3000; round += 1) {
    const intervalUs = [10_000, 100_000, 500_000, 1_000_000][round % 4] ?? 100_000;
    const spanUs = Math.round(intervalUs * 2 + Math.random() * 10 ** (6 + (round % 7)));
    const fromUs = 1.79e15 + Math.floor(Math.random() * 1e12);
    const binUs = chooseBin(spanUs, 50 + Math.floor(Math.random() * 1500), intervalUs);
    const request = alignedRequest(fromUs, fromUs + spanUs, binUs);
    expect(binUs % intervalUs).toBe(0);
    expect(serverBin(request.toUs - request.fromUs, request.width)).toBe(binUs);
    expect(request.fromUs).toBeLessThanOrEqual(fromUs);
    expect(request.toUs).toBeGreaterThanOrEqual(fromUs + spanUs);
  }
});

it("a bin is two pixels at most, and one interval where those are longer", () => {
  const width = 1000;
  for (const [seconds, binS] of [
    [86_400, 120],
    [40_000, 60],
    [29_000, 30],
    [6_000, 10],
    [4_000, 4],
    [600, 1],
    [499, 0.5],
    [60, 0.1],
  ] as const) {
    expect(chooseBin(seconds * 1e6, width, 100_000)).toBe(binS * 1e6);
  }
  expect(chooseBin(60e6, width, 500_000)).toBe(500_000);
  expect(chooseBin(60e6, width, 5e6)).toBe(5e6);
});

it("reads ahead where the next step closer needs finer summaries", () => {
  const width = 1000;
  expect(binAhead(86_400e6, width, 100_000)).toBe(null);
  expect(binAhead(36_000e6, width, 100_000)).toBe(30e6);
  expect(binAhead(6_000e6, width, 100_000)).toBe(5e6);
  expect(binAhead(600e6, width, 100_000)).toBe(null);
});
