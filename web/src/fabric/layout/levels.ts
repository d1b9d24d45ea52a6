/** Levels above each other, all trunks in the gaps between them: trees, leaves and spines, fat trees. */

import { boxLabels, boxSize, type Drawn, type Point, pitchOf, type Wanted } from "./shape.ts";

const BETWEEN = 14;
const EDGE = 12;
const GAP_MIN = 70;
const GAP_MAX = 190;
/** Steps of a line's curve. */
const STEPS = 18;

export function drawLevels(wanted: Wanted, level: readonly number[], tree: boolean): Drawn {
  const count = Math.max(...level) + 1;
  const members = Array.from({ length: count }, (_, own) => level.flatMap((of, place) => (of === own ? [place] : [])));
  const sizes = members.map((of) => sizeOf(wanted, of));
  const widths = members.map((of, own) => of.length * ((sizes[own]?.width ?? 0) + BETWEEN));
  // A drawing that could be wider is somewhat wider, so that lines lie apart.
  const width = Math.max(...widths, Math.min(wanted.room.width - 2 * EDGE, Math.max(...widths) * 1.8));
  const heights = sizes.reduce((sum, { height }) => sum + height, 0);
  const gap = Math.min(GAP_MAX, Math.max(GAP_MIN, (wanted.room.height - heights - 2 * EDGE) / Math.max(1, count - 1)));
  const x =
    (tree ? treePlaces(wanted, level, members, sizes, width) : null) ?? evenPlaces(members, width, wanted.names.length);
  const tops: number[] = [];
  let down = EDGE;
  for (const { height } of sizes) {
    tops.push(down);
    down += height + gap;
  }
  const at = wanted.names.map((_, place): Point => {
    const own = level[place] ?? 0;
    return { x: (x[place] ?? 0) + EDGE, y: (tops[own] ?? 0) + (sizes[own]?.height ?? 0) / 2 };
  });
  const port = portsOf(wanted, level, at, (place) => sizes[level[place] ?? 0]?.width ?? 0);
  const lines = wanted.pairs.map(([one, other], pair) => {
    const [upper, lower] = (level[one] ?? 0) < (level[other] ?? 0) ? [one, other] : [other, one];
    const end = (place: number, side: 1 | -1): Point => ({
      x: port(pair, place),
      y: (at[place]?.y ?? 0) + (side * (sizes[level[place] ?? 0]?.height ?? 0)) / 2,
    });
    const chain = swung(end(upper, 1), end(lower, -1));
    return upper === one ? chain : chain.reverse();
  });
  return {
    width: width + 2 * EDGE,
    height: down - gap + EDGE,
    lines,
    switches: at.map((middle, place) => {
      const own = sizes[level[place] ?? 0] ?? { width: 0, height: 0, turned: 0 };
      return {
        ...middle,
        dot: false,
        width: own.width,
        height: own.height,
        labels: boxLabels(wanted, place, middle, own.turned),
      };
    }),
  };
}

/** All boxes of a level have one size; where they would not stand side by side they are turned. */
function sizeOf(wanted: Wanted, members: readonly number[]): { width: number; height: number; turned: number } {
  const sizes = members.map((place) => boxSize(wanted, place));
  const [width, height] = [Math.max(...sizes.map((size) => size.width)), Math.max(...sizes.map((size) => size.height))];
  const turned = members.length * (width + BETWEEN) > Math.max(600, wanted.room.width) && width > height;
  return turned ? { width: height, height: width, turned: -90 } : { width, height, turned: 0 };
}

function evenPlaces(members: readonly (readonly number[])[], width: number, switches: number): number[] {
  const x = Array<number>(switches).fill(0);
  for (const own of members)
    own.forEach((place, at) => {
      x[place] = ((at + 0.5) / own.length) * width;
    });
  return x;
}

/** Leaves side by side, each other switch above the middle of what hangs from it; null where those would overlap. */
function treePlaces(
  wanted: Wanted,
  level: readonly number[],
  members: readonly (readonly number[])[],
  sizes: readonly { width: number }[],
  width: number,
): number[] | null {
  const below: number[][] = wanted.names.map(() => []);
  for (const [one, other] of wanted.pairs) {
    const [upper, lower] = (level[one] ?? 0) < (level[other] ?? 0) ? [one, other] : [other, one];
    below[upper]?.push(lower);
  }
  const roots = members[0] ?? [];
  const leaves: number[] = [];
  const walk = (place: number): void => {
    if (below[place]?.length === 0) leaves.push(place);
    for (const next of below[place] ?? []) walk(next);
  };
  roots.forEach(walk);
  const x = Array<number>(wanted.names.length).fill(0);
  leaves.forEach((place, at) => {
    x[place] = ((at + 0.5) / leaves.length) * width;
  });
  const settle = (place: number): number => {
    const under = (below[place] ?? []).map(settle);
    const [first, last] = [under[0], under.at(-1)];
    if (first !== undefined && last !== undefined) x[place] = (first + last) / 2;
    return x[place] ?? 0;
  };
  roots.forEach(settle);
  const apart = members.every((own, at) => {
    const sorted = own.map((place) => x[place] ?? 0).sort((one, other) => one - other);
    return sorted.every(
      (one, place) => place === 0 || one - (sorted[place - 1] ?? 0) >= (sizes[at]?.width ?? 0) + BETWEEN / 2,
    );
  });
  return apart ? x : null;
}

/** Where each trunk ends along the edge of a box: in the order of the other ends, so that they do not cross there. */
function portsOf(
  wanted: Wanted,
  level: readonly number[],
  at: readonly Point[],
  width: (place: number) => number,
): (pair: number, place: number) => number {
  const ports = new Map<string, number>();
  wanted.names.forEach((_, place) => {
    for (const side of [-1, 1]) {
      const own = wanted.pairs.flatMap(([one, other], pair) => {
        if (one !== place && other !== place) return [];
        const far = one === place ? other : one;
        return (level[far] ?? 0) - (level[place] ?? 0) === side ? [{ pair, far }] : [];
      });
      own.sort((one, other) => (at[one.far]?.x ?? 0) - (at[other.far]?.x ?? 0));
      const step = Math.min(pitchOf(wanted), (width(place) - wanted.band - 4) / Math.max(1, own.length - 1));
      for (const [rank, { pair }] of own.entries()) {
        ports.set(`${pair} ${place}`, (at[place]?.x ?? 0) + (rank - (own.length - 1) / 2) * Math.max(0, step));
      }
    }
  });
  return (pair, place) => ports.get(`${pair} ${place}`) ?? at[place]?.x ?? 0;
}

/** Upright at both ends, so that a line keeps away from the boxes beside its own. */
function swung(from: Point, to: Point): Point[] {
  const middle = (from.y + to.y) / 2;
  return Array.from({ length: STEPS + 1 }, (_, step) => {
    const part = step / STEPS;
    const rest = 1 - part;
    const [a, b, c, d] = [rest ** 3, 3 * rest * rest * part, 3 * rest * part * part, part ** 3];
    return { x: (a + b) * from.x + (c + d) * to.x, y: a * from.y + (b + c) * middle + d * to.y };
  });
}
