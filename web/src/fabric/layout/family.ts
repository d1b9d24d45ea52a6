/**
 * Which family a fabric belongs to, found from its trunks alone: switches are numbered as named topologies number
 * them, the first coordinate running fastest.
 */

export type Pairs = readonly (readonly [number, number])[];

/** Where a switch stands in a grid of columns and rows; `block` is how many gaps between blocks lie before it. */
export interface Cell {
  readonly column: number;
  readonly row: number;
  readonly blocks: readonly [across: number, down: number];
}

export type Family =
  /** Every trunk runs along a row or a column. */
  | { readonly kind: "grid"; readonly cells: readonly Cell[] }
  /** Every trunk joins a level to the next one; the root or the spines are level 0. */
  | { readonly kind: "levels"; readonly level: readonly number[]; readonly tree: boolean }
  /** Around a circle in this order; a new group begins at each of `begins`. */
  | { readonly kind: "circle"; readonly order: readonly number[]; readonly begins: ReadonlySet<number> };

/** A row of switches longer than this is laid in several. */
const ROW_MAX = 10;

export function familyOf(switches: number, pairs: Pairs, withHosts: readonly boolean[]): Family {
  const known = new Set(pairs.map(keyOf));
  const is = (made: readonly (readonly [number, number])[]): boolean =>
    made.length === known.size && made.every((pair) => known.has(keyOf(pair)));
  const inOrder: Family = { kind: "circle", order: [...Array(switches).keys()], begins: new Set() };
  if (is(gridPairs([switches], "open"))) return { kind: "grid", cells: folded(switches) };
  if (is(gridPairs([switches], "ring")) || is(gridPairs([switches], "complete"))) return inOrder;
  const comb = combPairs(switches);
  if (switches > 3 && is(comb)) return { kind: "grid", cells: gridCells(switches, [Math.ceil(switches / 2), 2]) };
  for (const sizes of factorings(switches)) {
    if (sizes.length < 2) continue;
    if ((["open", "ring", "complete"] as const).some((kind) => is(gridPairs(sizes, kind))))
      return { kind: "grid", cells: gridCells(switches, sizes) };
  }
  const levels = levelsOf(switches, pairs, withHosts);
  if (levels !== null) return levels;
  const group = groupSize(switches, known);
  if (group !== null)
    return { ...inOrder, begins: new Set(Array.from({ length: switches / group }, (_, at) => at * group)) };
  return { kind: "circle", order: shortOrder(switches, pairs), begins: new Set() };
}

export function keyOf([one, other]: readonly [number, number]): number {
  return Math.min(one, other) * 65_536 + Math.max(one, other);
}

/** Lines along each dimension: open, closed to rings from 3 switches on, or complete. */
export function gridPairs(sizes: readonly number[], kind: "open" | "ring" | "complete"): [number, number][] {
  const switches = sizes.reduce((all, size) => all * size, 1);
  const pairs: [number, number][] = [];
  let stride = 1;
  for (const size of sizes) {
    for (let place = 0; place < switches; place += 1) {
      const at = Math.floor(place / stride) % size;
      const steps = kind === "complete" ? size - 1 - at : Math.min(1, size - 1 - at);
      for (let step = 1; step <= steps; step += 1) pairs.push([place, place + step * stride]);
      if (kind === "ring" && size > 2 && at === size - 1) pairs.push([place, place - at * stride]);
    }
    stride *= size;
  }
  return pairs;
}

/** A row, and one more switch hanging from each. */
function combPairs(switches: number): [number, number][] {
  const row = Math.ceil(switches / 2);
  return Array.from({ length: switches - 1 }, (_, at) => (at + 1 < row ? [at, at + 1] : [at + 1 - row, at + 1]));
}

/** All ways to write the number as an ordered product of factors from 2 on, those of fewer factors first. */
function factorings(number: number): number[][] {
  const all: number[][] = [];
  const extend = (rest: number, factors: number[]): void => {
    if (rest === 1) all.push(factors);
    for (let factor = 2; factor <= rest; factor += 1)
      if (rest % factor === 0) extend(rest / factor, [...factors, factor]);
  };
  extend(number, []);
  return all.sort((one, other) => one.length - other.length);
}

/** The first dimension to the right, the second down, the third in blocks to the right, and so on. */
function gridCells(switches: number, sizes: readonly number[]): Cell[] {
  return Array.from({ length: switches }, (_, place) => {
    let rest = place;
    const [steps, at, blocks] = [
      [1, 1],
      [0, 0],
      [0, 0],
    ] as [number[], number[], [number, number]];
    sizes.forEach((size, dimension) => {
      const axis = dimension % 2;
      at[axis] = (at[axis] ?? 0) + (rest % size) * (steps[axis] ?? 1);
      steps[axis] = (steps[axis] ?? 1) * size;
      if (dimension >= 2) blocks[axis] = (blocks[axis] ?? 0) + (rest % size);
      rest = Math.floor(rest / size);
    });
    return { column: at[0] ?? 0, row: at[1] ?? 0, blocks };
  });
}

/** A line of switches in rows that run to and fro. */
function folded(switches: number): Cell[] {
  const rows = Math.ceil(switches / ROW_MAX);
  const length = Math.ceil(switches / rows);
  return Array.from({ length: switches }, (_, place) => {
    const row = Math.floor(place / length);
    return { column: row % 2 === 0 ? place % length : length - 1 - (place % length), row, blocks: [0, 0] };
  });
}

/** Levels above each other: by the distance from switches with hosts if some have none, else from the middle of a tree. */
function levelsOf(switches: number, pairs: Pairs, withHosts: readonly boolean[]): Family | null {
  const beside: number[][] = Array.from({ length: switches }, () => []);
  for (const [one, other] of pairs) {
    beside[one]?.push(other);
    beside[other]?.push(one);
  }
  const tree = pairs.length === switches - 1;
  const hosts = [...Array(switches).keys()].filter((place) => withHosts[place] === true);
  if (!tree && (hosts.length === switches || hosts.length === 0)) return null;
  const down = hosts.length < switches && hosts.length > 0;
  const from = down ? hosts : [middleOf(beside)];
  const far = distances(beside, from);
  const highest = Math.max(...far);
  if (!Number.isFinite(highest) || highest === 0) return null;
  const level = far.map((steps) => (down ? highest - steps : steps));
  if (!pairs.every(([one, other]) => Math.abs((level[one] ?? 0) - (level[other] ?? 0)) === 1)) return null;
  return { kind: "levels", level, tree };
}

function distances(beside: readonly (readonly number[])[], from: readonly number[]): number[] {
  const far = beside.map(() => Number.POSITIVE_INFINITY);
  const open = [...from];
  for (const place of from) far[place] = 0;
  for (let place = open.shift(); place !== undefined; place = open.shift()) {
    for (const next of beside[place] ?? []) {
      if (Number.isFinite(far[next])) continue;
      far[next] = (far[place] ?? 0) + 1;
      open.push(next);
    }
  }
  return far;
}

/** The first switch from which the farthest is nearest. */
function middleOf(beside: readonly (readonly number[])[]): number {
  const farthest = beside.map((_, place) => Math.max(...distances(beside, [place])));
  return farthest.indexOf(Math.min(...farthest));
}

/** The size of the complete groups that the switches fall into one after the other, as in a dragonfly. */
function groupSize(switches: number, known: ReadonlySet<number>): number | null {
  for (let size = Math.floor(switches / 2); size >= 2; size -= 1) {
    if (switches % size !== 0) continue;
    const complete = gridPairs([size], "complete");
    const groups = Array.from({ length: switches / size }, (_, at) => at * size);
    if (groups.every((begin) => complete.every(([one, other]) => known.has(keyOf([begin + one, begin + other])))))
      return size;
  }
  return null;
}

/** An order around a circle in which trunks are short: places are exchanged as long as that shortens them. */
function shortOrder(switches: number, pairs: Pairs): number[] {
  const slot = [...Array(switches).keys()];
  const beside: number[][] = slot.map(() => []);
  for (const [one, other] of pairs) {
    beside[one]?.push(other);
    beside[other]?.push(one);
  }
  const long = (from: number, to: number): number => {
    const apart = Math.abs(from - to);
    return Math.min(apart, switches - apart);
  };
  const cost = (place: number, at: number, without: number): number =>
    (beside[place] ?? []).reduce((sum, other) => (other === without ? sum : sum + long(at, slot[other] ?? 0)), 0);
  for (let round = 0, better = true; better && round < 20; round += 1) {
    better = false;
    for (let one = 0; one < switches; one += 1) {
      for (let other = one + 1; other < switches; other += 1) {
        const [here, there] = [slot[one] ?? 0, slot[other] ?? 0];
        const gain =
          cost(one, here, other) + cost(other, there, one) - cost(one, there, other) - cost(other, here, one);
        if (gain <= 0) continue;
        [slot[one], slot[other]] = [there, here];
        better = true;
      }
    }
  }
  const order = Array<number>(switches).fill(0);
  slot.forEach((at, place) => {
    order[at] = place;
  });
  return order;
}
