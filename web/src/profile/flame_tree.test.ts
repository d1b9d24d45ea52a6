import { describe, expect, it } from "vitest";
import type { FlameBody } from "../api/types.ts";
import {
  beginsOf,
  endOf,
  type FlameTree,
  foundSamples,
  functionTotals,
  namesTo,
  nodeAt,
  sandwich,
  treeOf,
  weightOf,
} from "./flame_tree.ts";

type Stack = readonly string[];

/** Stacks of few functions, which call each other and themselves. */
function stacks(): Stack[] {
  let random = 7;
  const next = (below: number): number => {
    random = (random * 1103515245 + 12345) % 2147483648;
    return Math.floor(random / 65536) % below;
  };
  return Array.from({ length: 400 }, () => Array.from({ length: 1 + next(5) }, () => `f${next(4)}`));
}

/** The answer that a server gives for stacks, and for those they are compared with. */
function bodyOf(of: readonly Stack[], than: readonly Stack[] = []): FlameBody {
  const names = [...new Set([...of, ...than].flat())].sort();
  const [parent, frame, own, total, thanOwn, thanTotal]: number[][] = [[], [], [], [], [], []];
  const add = (path: Stack, from: number): number => {
    const within = (all: readonly Stack[]): readonly Stack[] =>
      all.filter((stack) => path.every((name, at) => stack[at] === name));
    const at = parent?.length ?? 0;
    const [here, there] = [within(of), within(than)];
    const exact = (all: readonly Stack[]): number => all.filter(({ length }) => length === path.length).length;
    parent?.push(from);
    frame?.push(Math.max(0, names.indexOf(path.at(-1) ?? "")));
    own?.push(exact(here));
    total?.push(here.length);
    thanOwn?.push(exact(there));
    thanTotal?.push(there.length);
    const callees = [
      ...new Set([...here, ...there].map((stack) => stack[path.length] ?? "").filter((name) => name !== "")),
    ].sort();
    for (const name of callees) add([...path, name], at);
    return at;
  };
  add([], 0);
  const frames = names.map((name) => ({ name, file: "/bin/x", kind: "code" }));
  const compared = than.length > 0;
  return {
    counted: "samples",
    frames,
    parent: parent ?? [],
    frame: frame ?? [],
    own: own ?? [],
    total: total ?? [],
    than_own: compared ? (thanOwn ?? []) : [],
    than_total: compared ? (thanTotal ?? []) : [],
    left_out: 0,
    problems: 0,
    unnamed: {},
    sides: [],
  };
}

const paths = (tree: FlameTree): Map<string, number> =>
  new Map([...tree.parent.keys()].slice(1).map((node) => [namesTo(tree, node).join(), tree.total[node] ?? 0]));

/** How many stacks have each beginning. */
function prefixes(all: readonly Stack[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const stack of all)
    for (let end = 1; end <= stack.length; end += 1)
      counts.set(stack.slice(0, end).join(), (counts.get(stack.slice(0, end).join()) ?? 0) + 1);
  return counts;
}

describe("trees of callers", () => {
  const all = stacks();
  const tree = treeOf(bodyOf(all));

  it("have each function's samples counted once, also where it calls itself", () => {
    const totals = functionTotals(tree);
    for (const { frame, own, total } of totals) {
      const name = tree.frames[frame]?.name ?? "";
      expect(own).toBe(all.filter((stack) => stack.at(-1) === name).length);
      expect(total).toBe(all.filter((stack) => stack.includes(name)).length);
    }
    expect(totals.map(({ own }) => own)).toEqual(totals.map(({ own }) => own).sort((one, other) => other - one));
    expect(foundSamples(tree, (frame) => tree.frames[frame]?.name !== "f0")).toBe(
      all.filter((stack) => stack.some((name) => name !== "f0")).length,
    );
  });

  it("become a sandwich of who called a function and what it called", () => {
    const { callers, callees } = sandwich(tree, "f2");
    const through = all.filter((stack) => stack.includes("f2"));
    expect(paths(callees)).toEqual(prefixes(through.map((stack) => stack.slice(stack.indexOf("f2")))));
    expect(paths(callers)).toEqual(prefixes(through.map((stack) => stack.slice(0, stack.indexOf("f2") + 1).reverse())));
    expect([callers.total[0], callees.total[0]]).toEqual([through.length, through.length]);
    expect(sandwich(tree, "none").callees.total[0]).toBe(0);
  });

  it("are boxes inside the boxes of their callers, side by side", () => {
    const begins = beginsOf(tree);
    for (let node = 1; node < tree.parent.length; node += 1) {
      const parent = tree.parent[node] ?? 0;
      const [begin, end] = [begins[node] ?? 0, (begins[node] ?? 0) + weightOf(tree, node)];
      expect(begin).toBeGreaterThanOrEqual(begins[parent] ?? 0);
      expect(end).toBeLessThanOrEqual((begins[parent] ?? 0) + weightOf(tree, parent));
      const next = endOf(tree, node);
      if (next < tree.parent.length && tree.parent[next] === parent) expect(begins[next]).toBe(end);
    }
  });

  it("are found again by names, as far as there are such nodes", () => {
    for (let node = 1; node < tree.parent.length; node += 1) expect(nodeAt(tree, namesTo(tree, node))).toBe(node);
    const names = namesTo(tree, 3);
    expect(nodeAt(tree, [...names, "none", "f1"])).toBe(3);
    expect(nodeAt(tree, [])).toBe(0);
  });

  it("give what is gone a width when they are compared", () => {
    const compared = treeOf(bodyOf([["a"], ["a", "b"]], [["a", "c"], ["a"], ["a"], ["a"]]));
    const at = (...names: string[]): number => weightOf(compared, nodeAt(compared, names));
    expect([at("a"), at("a", "b"), at("a", "c")]).toEqual([2, 0.5, 0.25]);
  });
});
