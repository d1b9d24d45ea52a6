import { expect, it } from "vitest";
import { alignedRequest, chooseBin } from "./bin_choice.ts";

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
