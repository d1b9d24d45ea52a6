/**
 * Switches in rows and columns. A trunk to the next switch is straight; any other runs in a lane above its row, or
 * left of its column, and so behind nothing.
 */

import type { Cell } from "./family.ts";
import { boxLabels, boxSize, CLEAR, type Drawn, type Point, pitchOf, rounded, type Wanted } from "./shape.ts";

/** Between boxes, and between blocks of further dimensions. */
const GAP = 24;
const BLOCK_GAP = 16;
/** Boxes stand no farther apart than this, on wide screens no farther than a share of the room. */
const GAP_MAX = 110;
const gapMax = (room: number): number => Math.max(GAP_MAX, room / 8 - 32);
const CORNER = 12;

/** A trunk along a row (or column) that passes others: from one column (row) to another. */
interface Run {
  readonly pair: number;
  readonly from: number;
  readonly to: number;
  /** The lane beside its row, counted from the boxes. */
  readonly lane: number;
}

/** The places of columns (or rows): the middle of each, and where the lanes beside it begin. */
interface Axis {
  readonly middle: readonly number[];
  readonly end: number;
}

export function drawGrid(wanted: Wanted, cells: readonly Cell[]): Drawn {
  const along = (axis: "row" | "column", pair: number): [line: number, from: number, to: number] | null => {
    const [one, other] = (wanted.pairs[pair] ?? []).map((place) => cells[place]);
    const across = axis === "row" ? "column" : "row";
    if (one === undefined || other === undefined || one[axis] !== other[axis]) return null;
    return [one[axis], Math.min(one[across], other[across]), Math.max(one[across], other[across])];
  };
  const rows = runsOf(wanted, (pair) => along("row", pair));
  const columns = runsOf(wanted, (pair) => along("column", pair));
  const pitch = pitchOf(wanted);
  // Every run ends at a port of its own, left or right of the middle, where straight trunks end.
  const ports = (runs: readonly (readonly Run[])[]): number => Math.max(0, ...runs.map(mostPorts));
  const sizes = wanted.names.map((_, place) => boxSize(wanted, place));
  const width = Math.max(...sizes.map((size) => size.width), portsRoom(ports(rows), pitch));
  const height = Math.max(...sizes.map((size) => size.height), portsRoom(ports(columns), pitch));
  const lanes = (runs: readonly (readonly Run[])[]): number[] =>
    runs.map((own) => Math.max(0, ...own.map(({ lane }) => lane + 1)) * pitch);
  const x = axisOf(
    lanes(columns),
    width,
    cells.map(({ column, blocks }) => [column, blocks[0]]),
    wanted.room.width,
  );
  const y = axisOf(
    lanes(rows),
    height,
    cells.map(({ row, blocks }) => [row, blocks[1]]),
    wanted.room.height,
  );
  const at = cells.map(({ column, row }): Point => ({ x: x.middle[column] ?? 0, y: y.middle[row] ?? 0 }));
  const lines: Point[][] = wanted.pairs.map(([one, other]) => straight(at[one], at[other], width, height));
  for (const [row, runs] of rows.entries()) {
    const top = (y.middle[row] ?? 0) - height / 2;
    for (const run of runs)
      lines[run.pair] = turnedToFirst(wanted, at, run.pair, laneLine(runs, run, x.middle, top, pitch));
  }
  for (const [column, runs] of columns.entries()) {
    const left = (x.middle[column] ?? 0) - width / 2;
    const swapped = (run: Run): Point[] =>
      laneLine(runs, run, y.middle, left, pitch).map((point) => ({ x: point.y, y: point.x }));
    for (const run of runs) lines[run.pair] = turnedToFirst(wanted, at, run.pair, swapped(run));
  }
  return {
    width: x.end,
    height: y.end,
    lines,
    switches: at.map((middle, place) => ({
      ...middle,
      dot: false,
      width,
      height,
      labels: boxLabels(wanted, place, middle),
    })),
  };
}

/** The trunks of each row that pass others, the short ones in the lanes nearest to the boxes. */
function runsOf(wanted: Wanted, along: (pair: number) => [line: number, from: number, to: number] | null): Run[][] {
  const found: { pair: number; from: number; to: number }[][] = [];
  wanted.pairs.forEach((_, pair) => {
    const [line, from, to] = along(pair) ?? [0, 0, 0];
    while (found.length <= line) found.push([]);
    if (to - from > 1) found[line]?.push({ pair, from, to });
  });
  return found.map((own) => {
    const lanes: { from: number; to: number }[][] = [];
    return own
      .sort((one, other) => one.to - one.from - (other.to - other.from) || one.from - other.from)
      .map((run) => {
        let lane = lanes.findIndex((taken) => taken.every(({ from, to }) => run.to <= from || run.from >= to));
        if (lane < 0) lane = lanes.push([]) - 1;
        lanes[lane]?.push(run);
        return { ...run, lane };
      });
  });
}

/** The most runs that begin, or end, at one box. */
function mostPorts(runs: readonly Run[]): number {
  const count = (end: "from" | "to"): number => {
    const counts = new Map<number, number>();
    for (const run of runs) counts.set(run[end], (counts.get(run[end]) ?? 0) + 1);
    return Math.max(0, ...counts.values());
  };
  return Math.max(count("from"), count("to"));
}

/** The side of a box that has so many ports on either half, and a straight trunk in the middle. */
function portsRoom(ports: number, pitch: number): number {
  return ports === 0 ? 0 : 2 * (ports + 1) * pitch;
}

/** Lanes stand before each column; what room is left is shared by the gaps. */
function axisOf(
  lanes: readonly number[],
  size: number,
  cells: readonly (readonly [number, number])[],
  room: number,
): Axis {
  const count = Math.max(...cells.map(([at]) => at)) + 1;
  const blocks = Array<number>(count).fill(0);
  for (const [at, before] of cells) blocks[at] = before;
  const least = Array.from({ length: count }, (_, at) =>
    Math.max(GAP, (lanes[at] ?? 0) > 0 ? (lanes[at] ?? 0) + 2 * CLEAR + 10 : 0),
  );
  const fixed = count * size + least.reduce((sum, gap) => sum + gap, 0) + (blocks.at(-1) ?? 0) * BLOCK_GAP + GAP;
  const wider = Math.max(0, Math.min(gapMax(room) - GAP, (room - fixed) / Math.max(1, count)));
  let end = 0;
  const middle = least.map((gap, at) => {
    const first = (lanes[0] ?? 0) > 0 ? 0 : -GAP / 2;
    end += gap + (at === 0 ? first : wider) + (at > 0 ? ((blocks[at] ?? 0) - (blocks[at - 1] ?? 0)) * BLOCK_GAP : 0);
    end += size;
    return end - size / 2;
  });
  return { middle, end: end + GAP / 2 };
}

function straight(one: Point | undefined, other: Point | undefined, width: number, height: number): Point[] {
  if (one === undefined || other === undefined) return [];
  const [dx, dy] = [Math.sign(other.x - one.x) * (width / 2), Math.sign(other.y - one.y) * (height / 2)];
  return [
    { x: one.x + dx, y: one.y + dy },
    { x: other.x - dx, y: other.y - dy },
  ];
}

/** The line of a run, drawn above a row whose boxes have their upper edge at `edge`. */
function laneLine(runs: readonly Run[], run: Run, middle: readonly number[], edge: number, pitch: number): Point[] {
  // The longer a run, the nearer to the middle it begins, so that it crosses none of the same box.
  const port = (end: "from" | "to"): number => {
    const own = runs
      .filter((other) => other[end] === run[end])
      .sort((one, other) => other.to - other.from - (one.to - one.from));
    return (own.indexOf(run) + 1) * pitch;
  };
  const [left, right] = [(middle[run.from] ?? 0) + port("from"), (middle[run.to] ?? 0) - port("to")];
  const lane = edge - CLEAR - 6 - (run.lane + 0.5) * pitch;
  return rounded(
    [
      { x: left, y: edge },
      { x: left, y: lane },
      { x: right, y: lane },
      { x: right, y: edge },
    ],
    CORNER,
  );
}

/** Lines go from the first switch of their pair to the second. */
function turnedToFirst(wanted: Wanted, at: readonly Point[], pair: number, line: Point[]): Point[] {
  const first = at[wanted.pairs[pair]?.[0] ?? 0];
  const [begin, end] = [line[0], line.at(-1)];
  if (first === undefined || begin === undefined || end === undefined) return line;
  return Math.hypot(begin.x - first.x, begin.y - first.y) <= Math.hypot(end.x - first.x, end.y - first.y)
    ? line
    : line.reverse();
}
