/**
 * Trees of callers: what a flame graph is drawn from. Nodes are columns, the root is the first, and a node stands
 * behind its caller with all that it called right behind it, so that every walk is one loop.
 */

import type { FlameBody, FrameBody } from "../api/types.ts";

export interface FlameTree {
  /** What is counted; ns off the CPU take the place of samples otherwise. */
  readonly counted: string;
  readonly frames: readonly FrameBody[];
  readonly parent: Uint32Array;
  readonly frame: Uint32Array;
  /** The root has 0. */
  readonly depth: Uint32Array;
  /** Samples in the function itself, and in it and all that it called. */
  readonly own: Float64Array;
  readonly total: Float64Array;
  /** The same of what is compared with; null where nothing is. */
  readonly thanOwn: Float64Array | null;
  readonly thanTotal: Float64Array | null;
}

export function treeOf(body: FlameBody): FlameTree {
  const compared = body.than_total.length > 0;
  return withDepths({
    counted: body.counted,
    frames: body.frames,
    parent: Uint32Array.from(body.parent),
    frame: Uint32Array.from(body.frame),
    own: Float64Array.from(body.own),
    total: Float64Array.from(body.total),
    thanOwn: compared ? Float64Array.from(body.than_own) : null,
    thanTotal: compared ? Float64Array.from(body.than_total) : null,
  });
}

function withDepths(of: Omit<FlameTree, "depth">): FlameTree {
  const depth = new Uint32Array(of.parent.length);
  for (let node = 1; node < depth.length; node += 1) depth[node] = (depth[of.parent[node] ?? 0] ?? 0) + 1;
  return { ...of, depth };
}

export function frameOf(tree: FlameTree, node: number): FrameBody | null {
  return node === 0 ? null : (tree.frames[tree.frame[node] ?? 0] ?? null);
}

/** How wide a node is: its samples, or the mean of its shares of both sides, so that what is gone has a width, too. */
export function weightOf(tree: FlameTree, node: number): number {
  const total = tree.total[node] ?? 0;
  if (tree.thanTotal === null) return total;
  const [all, than] = [tree.total[0] ?? 0, tree.thanTotal[0] ?? 0];
  return (all === 0 ? 0 : total / all) + (than === 0 ? 0 : (tree.thanTotal[node] ?? 0) / than);
}

/** The share of the samples less that of those compared with, from -1 to 1; NaN where one side has none at all. */
export function changeOf(tree: FlameTree, node: number): number {
  const [all, than] = [tree.total[0] ?? 0, tree.thanTotal?.[0] ?? 0];
  return all === 0 || than === 0 ? Number.NaN : (tree.total[node] ?? 0) / all - (tree.thanTotal?.[node] ?? 0) / than;
}

/** Where each node begins, from 0 to the weight of the root. Callees stand at the left, what is a function's own at the right. */
export function beginsOf(tree: FlameTree): Float64Array {
  const count = tree.parent.length;
  const [begins, next] = [new Float64Array(count), new Float64Array(count)];
  for (let node = 1; node < count; node += 1) {
    const parent = tree.parent[node] ?? 0;
    begins[node] = next[parent] ?? 0;
    next[node] = begins[node] ?? 0;
    next[parent] = (next[parent] ?? 0) + weightOf(tree, node);
  }
  return begins;
}

/** Behind the last node that a node called, directly or not. */
export function endOf(tree: FlameTree, node: number): number {
  const depth = tree.depth[node] ?? 0;
  let end = node + 1;
  while (end < tree.parent.length && (tree.depth[end] ?? 0) > depth) end += 1;
  return end;
}

/** Names from the outermost function to a node. */
export function namesTo(tree: FlameTree, node: number): string[] {
  const names: string[] = [];
  for (let at = node; at !== 0; at = tree.parent[at] ?? 0) names.unshift(frameOf(tree, at)?.name ?? "");
  return names;
}

/** The node that names lead to, or as far as they lead. */
export function nodeAt(tree: FlameTree, names: readonly string[]): number {
  let at = 0;
  for (const name of names) {
    const end = endOf(tree, at);
    let next = at + 1;
    while (next < end && (tree.parent[next] !== at || frameOf(tree, next)?.name !== name)) next += 1;
    if (next >= end) return at;
    at = next;
  }
  return at;
}

/** Nodes whose function is `wanted` and that are not below another one that is. */
function outermost(tree: FlameTree, wanted: (frame: number) => boolean): number[] {
  const found: number[] = [];
  for (let node = 1; node < tree.parent.length; node += 1) {
    if (!wanted(tree.frame[node] ?? 0)) continue;
    found.push(node);
    node = endOf(tree, node) - 1;
  }
  return found;
}

export interface FunctionTotals {
  readonly frame: number;
  readonly own: number;
  readonly total: number;
  readonly thanOwn: number;
  readonly thanTotal: number;
}

/** Samples of each function, one that calls itself counted once; most of its own first. */
export function functionTotals(tree: FlameTree): FunctionTotals[] {
  const sums = tree.frames.map(() => [0, 0, 0, 0] as [number, number, number, number]);
  const open = new Uint32Array(tree.frames.length);
  const path: number[] = [];
  for (let node = 1; node < tree.parent.length; node += 1) {
    for (let left = path.length; left >= (tree.depth[node] ?? 1); left -= 1) {
      const frame = path.pop() ?? 0;
      open[frame] = (open[frame] ?? 1) - 1;
    }
    const frame = tree.frame[node] ?? 0;
    const sum = sums[frame];
    if (sum !== undefined) {
      sum[0] += tree.own[node] ?? 0;
      sum[2] += tree.thanOwn?.[node] ?? 0;
      if (open[frame] === 0) {
        sum[1] += tree.total[node] ?? 0;
        sum[3] += tree.thanTotal?.[node] ?? 0;
      }
    }
    open[frame] = (open[frame] ?? 0) + 1;
    path.push(frame);
  }
  const all = sums.map(([own, total, thanOwn, thanTotal], frame) => ({ frame, own, total, thanOwn, thanTotal }));
  return all
    .filter(({ total, thanTotal }) => total + thanTotal > 0)
    .sort((one, other) => other.own - one.own || other.total - one.total || one.frame - other.frame);
}

/** The samples of all functions that are found, one below another counted once. */
export function foundSamples(tree: FlameTree, found: (frame: number) => boolean): number {
  return outermost(tree, found).reduce((sum, node) => sum + (tree.total[node] ?? 0), 0);
}

export interface Sandwich {
  /** Who called the function: the nearest caller first, outwards. */
  readonly callers: FlameTree;
  /** What it called. */
  readonly callees: FlameTree;
}

/** Callers and callees of a function wherever it was called; where it is below itself, the outermost counts. */
export function sandwich(tree: FlameTree, name: string): Sandwich {
  const nodes = outermost(tree, (frame) => tree.frames[frame]?.name === name);
  const [callers, callees] = [new Merged(tree), new Merged(tree)];
  for (const node of nodes) {
    const end = endOf(tree, node);
    const into = new Map<number, number>();
    for (let at = node; at < end; at += 1) {
      const under = at === node ? 0 : (into.get(tree.parent[at] ?? 0) ?? 0);
      const merged = callees.below(under, tree.frame[at] ?? 0);
      into.set(at, merged);
      callees.addTotal(merged, at);
      callees.addOwn(merged, [tree.own[at] ?? 0, tree.thanOwn?.[at] ?? 0]);
    }
    callees.addTotal(0, node);
    let merged = 0;
    for (let at = node; at !== 0; at = tree.parent[at] ?? 0) {
      merged = callers.below(merged, tree.frame[at] ?? 0);
      callers.addTotal(merged, node);
    }
    callers.addTotal(0, node);
    // What has no caller any more ends the chain.
    callers.addOwn(merged, [tree.total[node] ?? 0, tree.thanTotal?.[node] ?? 0]);
  }
  return { callers: callers.tree(), callees: callees.tree() };
}

/** A tree that is put together from nodes of another one. */
class Merged {
  private readonly of: FlameTree;
  private readonly parent: number[] = [0];
  private readonly frame: number[] = [0];
  private readonly sums: [number, number, number, number][] = [[0, 0, 0, 0]];
  private readonly known = new Map<string, number>();

  constructor(of: FlameTree) {
    this.of = of;
  }

  /** The callee of that function below a node. */
  below(node: number, frame: number): number {
    const key = `${node} ${frame}`;
    const found = this.known.get(key);
    if (found !== undefined) return found;
    const made = this.parent.length;
    this.parent.push(node);
    this.frame.push(frame);
    this.sums.push([0, 0, 0, 0]);
    this.known.set(key, made);
    return made;
  }

  /** Adds the samples of a node of the other tree and of all that it called. */
  addTotal(node: number, from: number): void {
    const sum = this.sums[node];
    if (sum === undefined) return;
    sum[1] += this.of.total[from] ?? 0;
    sum[3] += this.of.thanTotal?.[from] ?? 0;
  }

  addOwn(node: number, [own, thanOwn]: readonly [number, number]): void {
    const sum = this.sums[node];
    if (sum === undefined) return;
    sum[0] += own;
    sum[2] += thanOwn;
  }

  /** The tree, callees of a node with most samples first. */
  tree(): FlameTree {
    const callees: number[][] = this.parent.map(() => []);
    for (let node = 1; node < this.parent.length; node += 1) callees[this.parent[node] ?? 0]?.push(node);
    const weight = (node: number): number => (this.sums[node]?.[1] ?? 0) + (this.sums[node]?.[3] ?? 0);
    for (const list of callees)
      list.sort((one, other) => weight(other) - weight(one) || (this.frame[one] ?? 0) - (this.frame[other] ?? 0));
    const [order, parents, open]: [number[], number[], [number, number][]] = [[], [], [[0, 0]]];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const [node, parent] = next;
      const number = order.length;
      order.push(node);
      parents.push(parent);
      for (const callee of [...(callees[node] ?? [])].reverse()) open.push([callee, number]);
    }
    const column = (at: 0 | 1 | 2 | 3): Float64Array => Float64Array.from(order, (node) => this.sums[node]?.[at] ?? 0);
    const compared = this.of.thanTotal !== null;
    return withDepths({
      counted: this.of.counted,
      frames: this.of.frames,
      parent: Uint32Array.from(parents),
      frame: Uint32Array.from(order, (node) => this.frame[node] ?? 0),
      own: column(0),
      total: column(1),
      thanOwn: compared ? column(2) : null,
      thanTotal: compared ? column(3) : null,
    });
  }
}
