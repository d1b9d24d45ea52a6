import { expect, it } from "vitest";
import { foldNames, unfoldNames } from "./host_range.ts";

it("folds as Slurm writes it", () => {
  expect(foldNames(["node001", "node002", "node003", "node007"])).toBe("node[001-003,007]");
  expect(foldNames(["node020"])).toBe("node020");
  expect(foldNames(["node099", "node100", "node101"])).toBe("node[099-101]");
  expect(foldNames(["sw1", "sw2", "login"])).toBe("login,sw[1-2]");
  expect(foldNames([])).toBe("");
});

it("keeps node1 and node001 apart", () => {
  const names = ["node1", "node2", "node001", "node002"];
  expect(unfoldNames(foldNames(names)).sort()).toEqual([...names].sort());
});

it("unfolds what it folds, for any set of names", () => {
  for (let round = 0; round < 300; round += 1) {
    const names = new Set<string>();
    const width = 1 + (round % 4);
    for (let at = 0; at < 40; at += 1) {
      const number = Math.floor(Math.random() * 10 ** width);
      names.add(`${["node", "sw-r", "n2x", ""][at % 4]}${String(number).padStart(round % 2 ? width : 0, "0")}`);
      if (at % 10 === 0) names.add(`login${"abc"[at % 3]}`);
    }
    expect(unfoldNames(foldNames([...names])).sort()).toEqual([...names].sort());
  }
});
