/**
 * What is drawn is measured with geometry of its own: no trunk runs behind a switch at which it does not end, no label
 * lies over another or over a line, whatever the family, the size, the names and the room.
 */

import { describe, expect, it } from "vitest";
import { chance, complete, families, fatTree, mesh, ring, type Topology, torus } from "../../../tests/topologies.ts";
import { drawingOf, SCALE_MIN } from "./layout.ts";
import type { Drawn, Wanted } from "./shape.ts";

interface At {
  readonly x: number;
  readonly y: number;
}
/** A convex shape by its corners; a disc is a corner with a radius. */
interface Shape {
  readonly corners: readonly At[];
  readonly radius: number;
}

const ROOMS = [
  { width: 690, height: 560 },
  { width: 1130, height: 660 },
  { width: 1900, height: 1060 },
];

function box(x: number, y: number, width: number, height: number, degrees = 0): Shape {
  const [cos, sin] = [Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)];
  const corners = [
    [-1, -1],
    [1, -1],
    [1, 1],
    [-1, 1],
  ].map(([right = 0, down = 0]) => {
    const [dx, dy] = [(right * width) / 2, (down * height) / 2];
    return { x: x + dx * cos - dy * sin, y: y + dx * sin + dy * cos };
  });
  return { corners, radius: 0 };
}

function toSegment(point: At, from: At, to: At): number {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const part = Math.max(
    0,
    Math.min(1, ((point.x - from.x) * dx + (point.y - from.y) * dy) / Math.max(1e-12, dx * dx + dy * dy)),
  );
  return Math.hypot(point.x - from.x - part * dx, point.y - from.y - part * dy);
}

const side = (a: At, b: At, c: At): number => Math.sign((b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x));
const edges = ({ corners }: Shape): [At, At][] =>
  corners.map((corner, at) => [corner, corners[(at + 1) % corners.length] ?? corner]);
const holds = (shape: Shape, point: At): boolean =>
  shape.corners.length > 2 &&
  Math.abs(edges(shape).reduce((sum, [one, other]) => sum + side(one, other, point), 0)) === shape.corners.length;

/** Distance between a segment and a shape, 0 where they touch. */
function apart(from: At, to: At, shape: Shape): number {
  if (holds(shape, from) || holds(shape, to)) return 0;
  const distances = edges(shape).map(([one, other]) => {
    const cross = side(from, to, one) * side(from, to, other) < 0 && side(one, other, from) * side(one, other, to) < 0;
    return cross
      ? 0
      : Math.min(
          toSegment(one, from, to),
          toSegment(other, from, to),
          toSegment(from, one, other),
          toSegment(to, one, other),
        );
  });
  return Math.max(0, Math.min(...distances) - shape.radius);
}

function touch(one: Shape, other: Shape): boolean {
  return (
    edges(one).some(([from, to]) => apart(from, to, other) === 0) ||
    (one.corners[0] !== undefined && holds(other, one.corners[0]))
  );
}

interface Reach {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

function reachOf(points: readonly At[], by: number): Reach {
  const reach = {
    left: Number.POSITIVE_INFINITY,
    right: Number.NEGATIVE_INFINITY,
    top: Number.POSITIVE_INFINITY,
    bottom: Number.NEGATIVE_INFINITY,
  };
  for (const { x, y } of points) {
    reach.left = Math.min(reach.left, x - by);
    reach.right = Math.max(reach.right, x + by);
    reach.top = Math.min(reach.top, y - by);
    reach.bottom = Math.max(reach.bottom, y + by);
  }
  return reach;
}

/** Shapes and lines whose surroundings do not meet need no closer look. */
const meet = (one: Reach, other: Reach): boolean =>
  one.left <= other.right && other.left <= one.right && one.top <= other.bottom && other.top <= one.bottom;

/** All that is wrong with a drawing, in words. */
function faults(of: Topology, drawn: Drawn, band: number): string[] {
  const found = new Set<string>();
  const shapes = drawn.switches.map(
    (at): Shape => (at.dot ? { corners: [at], radius: at.width / 2 } : box(at.x, at.y, at.width, at.height)),
  );
  const labels = drawn.switches.flatMap((at, place) =>
    at.labels.map((label) => ({
      place,
      text: label.text,
      shape: box(label.x, label.y, label.width, label.height - 4, label.turned),
    })),
  );
  const obstacles = [
    ...shapes.map((shape, place) => ({ shape, place, label: null as string | null })),
    ...labels.map(({ shape, place, text }) => ({ shape, place, label: text as string | null })),
  ].map((of_) => ({
    ...of_,
    reach: reachOf(of_.shape.corners, of_.shape.radius),
    own: (one: number, other: number) => of_.place === one || of_.place === other,
  }));
  of.pairs.forEach(([one, other], pair) => {
    const line = drawn.lines[pair] ?? [];
    const name = `trunk ${one} to ${other}`;
    const [begin, end] = [line[0], line.at(-1)];
    if (begin === undefined || end === undefined) {
      found.add(`${name} is missing`);
      return;
    }
    for (const [point, place] of [
      [begin, one],
      [end, other],
    ] as const)
      if (shapes[place] === undefined || apart(point, point, shapes[place]) > 1)
        found.add(`${name} does not reach ${place}`);
    const whole = reachOf(line, band);
    const near = obstacles.filter(
      (obstacle) => !(obstacle.label === null && obstacle.own(one, other)) && meet(whole, obstacle.reach),
    );
    for (let at = 1; near.length > 0 && at < line.length; at += 1) {
      const [from, to] = [line[at - 1] ?? begin, line[at] ?? end];
      const [left, right, top, bottom] = [
        Math.min(from.x, to.x) - band,
        Math.max(from.x, to.x) + band,
        Math.min(from.y, to.y) - band,
        Math.max(from.y, to.y) + band,
      ];
      for (const obstacle of near) {
        const { reach } = obstacle;
        // A line ends at the edge of its own box, bluntly, so that it covers nothing within.
        const clear = obstacle.own(one, other) && shapes[obstacle.place]?.radius === 0 ? 0.5 : band / 2;
        if (
          left > reach.right ||
          right < reach.left ||
          top > reach.bottom ||
          bottom < reach.top ||
          apart(from, to, obstacle.shape) >= clear
        )
          continue;
        found.add(
          obstacle.label === null
            ? `${name} runs behind ${obstacle.place}`
            : `${name} runs through ${obstacle.label} of ${obstacle.place}`,
        );
      }
    }
  });
  shapes.forEach((shape, place) => {
    const own =
      shape.radius > 0
        ? box(shape.corners[0]?.x ?? 0, shape.corners[0]?.y ?? 0, 2 * shape.radius, 2 * shape.radius)
        : shape;
    shapes.slice(0, place).forEach((other, before) => {
      if (
        shape.radius > 0
          ? apart(other.corners[0] ?? { x: 0, y: 0 }, other.corners[0] ?? { x: 0, y: 0 }, shape) < other.radius + 1
          : touch(own, other)
      )
        found.add(`switch ${place} lies over ${before}`);
    });
    for (const label of labels) {
      const inside = label.place === place && shape.radius === 0;
      if (inside && !label.shape.corners.every((corner) => holds(own, corner)))
        found.add(`${label.text} does not fit into ${place}`);
      if (!inside && touch(own, label.shape)) found.add(`${label.text} of ${label.place} lies over ${place}`);
    }
  });
  labels.forEach((label, at) => {
    for (const other of labels.slice(0, at))
      if (touch(label.shape, other.shape))
        found.add(`${label.text} of ${label.place} lies over ${other.text} of ${other.place}`);
    if (label.shape.corners.some(({ x, y }) => x < 0 || y < 0 || x > drawn.width || y > drawn.height))
      found.add(`${label.text} is cut off`);
  });
  return [...found];
}

function wantedOf(of: Topology, room: { width: number; height: number }, band: number, seed: number): Wanted {
  const draw = chance(seed);
  const noted = seed % 2 === 0;
  const names = of.withHosts.map((_, place) =>
    seed % 3 === 0 ? `rack${Math.floor(place / 4)}-leaf${place}` : `sw${place + 1}`,
  );
  return {
    names,
    notes: of.withHosts.map((hosts) => (noted && hosts ? `${Math.ceil(draw() * 48)} hosts` : "")),
    withHosts: of.withHosts,
    pairs: of.pairs,
    band,
    room,
    measure: (text) => text.length * 6.8,
  };
}

describe("no trunk runs behind a switch, no label over another or over a line", () => {
  // Each family and size in one of the rooms with thin lines, and in another with thick ones; seeds go on with the sizes.
  it.each(families().map((of, at) => [of.name, at, of] as const))("%s", (_, at, of) => {
    for (const [room, band] of [
      [ROOMS[at % 3], 4],
      [ROOMS[(at + 1) % 3], 18],
    ] as const) {
      if (room === undefined) continue;
      const drawn = drawingOf(wantedOf(of, room, band, at));
      expect(faults(of, drawn, band), `${JSON.stringify(room)}, lines of ${band}, seed ${at}`).toEqual([]);
    }
  });
});

it("no two trunks of a torus lie upon one another, wrap-around links among them", () => {
  for (const of of [torus(4, 4), torus(5, 3), torus(4, 4, 4)]) {
    const drawn = drawingOf(wantedOf(of, { width: 1130, height: 660 }, 4, 1));
    for (const [at, line] of drawn.lines.entries()) {
      const middle = line[Math.floor(line.length / 2)] ?? { x: 0, y: 0 };
      const upon = drawn.lines.filter(
        (other, place) =>
          place !== at &&
          other.some((to, step) => {
            const from = other[step - 1] ?? to;
            const begin = line[Math.floor(line.length / 2) - 1] ?? middle;
            // Lines may cross: they lie upon one another where they run the same way.
            const parallel =
              Math.abs((to.x - from.x) * (middle.y - begin.y) - (to.y - from.y) * (middle.x - begin.x)) <
              1e-6 * Math.hypot(to.x - from.x, to.y - from.y);
            return step > 0 && parallel && toSegment(middle, from, to) < 4;
          }),
      );
      expect(upon.length, `${of.name}, trunk ${of.pairs[at]?.join(" to ")}`).toBe(0);
    }
  }
});

it("families are drawn as they are known: a grid in rows, levels above each other, a ring around a circle", () => {
  const room = { width: 1130, height: 660 };
  const places = (of: Topology): readonly At[] => drawingOf(wantedOf(of, room, 4, 1)).switches;
  const grid = places(mesh(4, 3));
  expect(new Set(grid.map(({ x }) => Math.round(x))).size).toBe(4);
  expect(new Set(grid.map(({ y }) => Math.round(y))).size).toBe(3);
  const levels = places(fatTree(4)).map(({ y }) => Math.round(y));
  expect(new Set(levels).size).toBe(3);
  // Cores are at the top, switches with hosts at the bottom.
  expect(levels[19]).toBeLessThan(levels[8] ?? 0);
  expect(levels[8]).toBeLessThan(levels[0] ?? 0);
  for (const of of [ring(9), complete(9)]) {
    const at = places(of);
    const middle = { x: at.reduce((sum, { x }) => sum + x, 0) / 9, y: at.reduce((sum, { y }) => sum + y, 0) / 9 };
    const far = at.map(({ x, y }) => Math.hypot(x - middle.x, y - middle.y));
    expect(Math.max(...far) - Math.min(...far)).toBeLessThan(0.5);
  }
});

it("what fits into the room is drawn without making its text small", () => {
  for (const of of [ring(64), complete(64), torus(8, 8), fatTree(6), torus(4, 2)]) {
    for (const room of ROOMS) {
      const { width } = drawingOf(wantedOf(of, room, 4, 1));
      expect(width * SCALE_MIN, `${of.name} in ${room.width}`).toBeLessThanOrEqual(room.width);
    }
  }
});
