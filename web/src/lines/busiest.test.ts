import { expect, it } from "vitest";
import { Bins } from "../strip/bins.ts";
import { NO_STATE } from "../strip/ramp.ts";
import { buildRows } from "../strip/rows.ts";
import { busiestDevices, rankedDevices } from "./busiest.ts";

it("are those with the greatest sums of the time, all their series together", () => {
  const names = ["n1", "n2", "n3", "n10"];
  const series = names.flatMap((device, at) =>
    ["a", "b"].map((part, half) => ({ ordinal: 2 * at + half, labels: { device, interface: part } })),
  );
  const model = buildRows([], series, "series", "");
  const bins = new Bins(model.rows.length, 1e6, 50);
  const row = (device: string, part: number): number => (model.rowsOfDevice.get(device) ?? [])[part] ?? -1;
  // n1 was busy before the time; n10 is busy in two series, n3 in one, n2 idle.
  bins.put(2, row("n1", 0), 1e6, NO_STATE);
  for (let bin = 10; bin < 20; bin += 1) {
    bins.put(bin, row("n10", 0), 6, NO_STATE);
    bins.put(bin, row("n10", 1), 6, NO_STATE);
    bins.put(bin, row("n3", 0), 10, NO_STATE);
    bins.put(bin, row("n2", 0), 0, NO_STATE);
    bins.put(bin, row("n1", 0), 1, NO_STATE);
  }
  expect(busiestDevices(bins, model, 10e6, 20e6, 1)).toEqual(["n10"]);
  expect(busiestDevices(bins, model, 10e6, 20e6, 2)).toEqual(["n3", "n10"]);
  expect(busiestDevices(bins, model, 10e6, 20e6, 9)).toEqual(["n1", "n3", "n10"]);
  // Lines come in groups: the busiest two, then the next two.
  expect(busiestDevices(bins, model, 10e6, 20e6, 4, 2)).toEqual(["n3", "n10", "n1"]);
  // What stands there already stays first, and others fill its group.
  expect(busiestDevices(bins, model, 10e6, 20e6, 4, 2, ["n1"])).toEqual(["n1", "n10", "n3"]);
  expect(busiestDevices(bins, model, 10e6, 20e6, 1, 2, ["n1"])).toEqual(["n1"]);
  expect(rankedDevices(bins, model, 10e6, 20e6)).toEqual([
    { device: "n10", mean: 6, peak: 6 },
    { device: "n3", mean: 10, peak: 10 },
    { device: "n1", mean: 1, peak: 1 },
  ]);
});
