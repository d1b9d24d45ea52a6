import { expect, it } from "vitest";
import type { RawRow } from "../api/readings.ts";
import { costOf, type Generation, historyOf } from "./history.ts";

const row = (time_us: number, host: string, event: string, more: RawRow = {}): RawRow => ({
  time_us,
  host,
  event: `checkpoint_${event}`,
  text: "",
  ...more,
});
const prepared = (us: number, host: string, generation: number, stop_ns: number): RawRow =>
  row(us, host, "prepared", { generation, bytes: 100, changed_bytes: 40, received_bytes: 20, sent_bytes: 21, stop_ns });

const ROWS = [
  prepared(1e6, "node1", 1, 5e6),
  prepared(1.1e6, "node2", 1, 7e6),
  row(1.2e6, "node1", "committed", { generation: 1, step: 1, duration_ns: 3e8 }),
  row(1.3e6, "node1", "aborted", { generation: 2 }),
  // Half a second after the loss was noticed; the program runs again a second later.
  row(2.5e6, "run", "replaced", { duration_ns: 5e8, text: "spare1 takes the place of node2" }),
  row(3e6, "spare1", "rebuilt", { generation: 1, text: "100 octets came from other hosts" }),
  row(3.2e6, "run", "ready", { duration_ns: 12e8, step: 1 }),
  row(3.5e6, "run", "runs_again", { duration_ns: 15e8, step: 1 }),
  prepared(4e6, "node1", 3, 4e6),
  prepared(4e6, "spare1", 3, 3e6),
  row(4.2e6, "node1", "committed", { generation: 3, step: 2, duration_ns: 2e8 }),
];

it("knows which generations were whole, and who has what of them", () => {
  const { generations, givenUp } = historyOf(ROWS);
  expect(generations.map(({ number, stopUs, tookUs }) => [number, stopUs, tookUs])).toEqual([
    [1, 7000, 300_000],
    [3, 4000, 200_000],
  ]);
  expect([...(generations[1]?.parts.keys() ?? [])]).toEqual(["node1", "spare1"]);
  expect(givenUp).toBe(1);
});

it("says of each host how it stands and why", () => {
  const stands = historyOf(ROWS).hosts.map(({ host, state, generation, why }) => [host, state, generation, why]);
  expect(stands).toEqual([
    ["node1", "whole", 3, ""],
    ["node2", "lost", 1, "spare1 takes the place of node2"],
    ["spare1", "whole", 3, "100 octets came from other hosts"],
  ]);
});

it("says how long each step of the way back took", () => {
  const expected = { lostUs: 2e6, replacedUs: 5e5, readyUs: 1.2e6, runsUs: 1.5e6, step: 1 };
  expect(historyOf(ROWS).recoveries).toEqual([{ ...expected, what: "spare1 takes the place of node2" }]);
  // Lost once more on the way.
  const twice = [
    ...ROWS.slice(0, 5),
    row(4.5e6, "run", "replaced", { duration_ns: 0, text: "b takes the place of a" }),
  ];
  expect(historyOf(twice).recoveries.map(({ what, runsUs }) => [what, runsUs])).toEqual([
    ["spare1 takes the place of node2", null],
    ["b takes the place of a", null],
  ]);
});

it("compares the cost with Young's and Daly's intervals", () => {
  // The published example: 100 s of cost and 8 h between failures.
  const generation = (number: number): Generation => ({
    number,
    step: null,
    wholeUs: number * 3600e6,
    tookUs: 0,
    stopUs: 100e6,
    parts: new Map(),
  });
  const cost = costOf([1, 2, 3].map(generation), 2, 2 * 28_800e6);
  expect(cost?.costUs).toBe(100e6);
  expect(cost?.everyUs).toBe(3600e6);
  expect(cost?.youngUs).toBeCloseTo(2400e6, 0);
  expect((cost?.dalyUs ?? 0) / 1e6).toBeCloseTo(2333.796, 2);
  expect(cost?.lostLeast).toBeLessThan(cost?.lost ?? 0);
  expect(costOf([], 2, 1e6)).toBeNull();
});
