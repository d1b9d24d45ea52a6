import { expect, it } from "vitest";
import type { HealthBody, HealthOfBody } from "../api/types.ts";
import { healthOfAll } from "./health.ts";

function health(ok: readonly number[], missed: readonly number[], more: Partial<HealthBody> = {}): HealthBody {
  const none = ok.map(() => 0);
  const sum = (of: readonly number[]): number => of.reduce((left, right) => left + right, 0);
  return {
    from_us: 5e6,
    bin_us: 1e6,
    bins: { ok, late: none, missed, error: none, skipped: none },
    totals: { ok: sum(ok), late: 0, missed: sum(missed), error: 0, skipped: 0, intervals: 10 },
    silent: [],
    stalest: null,
    intervals_per_s: 10,
    problems: [],
    ...more,
  };
}

it("sums clusters bin by bin and names devices behind their cluster", () => {
  const of = (recording: string, body: HealthBody | null): HealthOfBody => ({ recording, health: body });
  const west = health([10, 9, 10], [0, 1, 0], {
    silent: ["node1"],
    stalest: { device: "node2", object: "", age_us: 5 },
  });
  const east = health([20, 20, 18], [0, 0, 2], {
    silent: ["node1", "node7"],
    stalest: { device: "node9", object: "", age_us: 9 },
    intervals_per_s: 1,
  });
  const all = healthOfAll([of("west", west), of("lost", null), of("east", east)]);
  expect(all.bins.ok).toEqual([30, 29, 28]);
  expect(all.bins.missed).toEqual([0, 1, 2]);
  expect(all.totals).toEqual({ ok: 87, late: 0, missed: 3, error: 0, skipped: 0, intervals: 20 });
  expect(all.silent).toEqual(["west: node1", "east: node1", "east: node7"]);
  expect(all.stalest?.device).toBe("east: node9");
  expect([all.from_us, all.bin_us, all.intervals_per_s]).toEqual([5e6, 1e6, 10]);
  expect(healthOfAll([]).totals.ok).toBe(0);
  // Bins of another length cannot be added up.
  const other = healthOfAll([of("west", west), of("far", health([1], [0], { bin_us: 2e6 }))]);
  expect(other.bins.ok).toEqual([10, 9, 10]);
});
