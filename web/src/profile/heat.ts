/**
 * Samples by second and by part of the second. Seconds are columns, from left to right; the parts of a second are
 * rows. A column that stands for several seconds has their sums: a phase that is short in one of them stays as
 * bright among many as it is for its samples.
 */

import type { HeatBody } from "../api/types.ts";
import type { Bounds } from "../time/window.ts";

const SECOND_US = 1_000_000;

export interface HeatPicture {
  /** Where the first column begins: a whole second. */
  readonly fromUs: number;
  readonly columns: number;
  readonly secondsPerColumn: number;
  readonly rows: number;
  readonly tileUs: number;
  /** Samples of a column's rows, column after column. */
  readonly values: Float64Array;
  readonly greatest: number;
  readonly samples: number;
}

/** At most `columnsMax` columns of whole seconds. */
export function heatPicture(body: HeatBody, columnsMax: number): HeatPicture {
  const seconds = body.samples.length;
  const rows = body.tiles_per_second;
  const secondsPerColumn = Math.max(1, Math.ceil(seconds / Math.max(1, columnsMax)));
  const columns = Math.ceil(seconds / secondsPerColumn);
  const values = new Float64Array(columns * rows);
  let samples = 0;
  body.tiles.forEach((count, at) => {
    const column = Math.floor(Math.floor(at / rows) / secondsPerColumn);
    const to = column * rows + (at % rows);
    values[to] = (values[to] ?? 0) + count;
    samples += count;
  });
  return {
    fromUs: body.from_us,
    columns,
    secondsPerColumn,
    rows,
    tileUs: body.tile_us,
    values,
    greatest: values.reduce((most, value) => Math.max(most, value), 0),
    samples,
  };
}

/**
 * A map with a later answer about its newest seconds, and as long as before: what is now before its begin goes. Counts
 * of a second only grow, so the greater one is the later one. A map that ends before the newest seconds stays as it is.
 */
export function renewed(map: HeatBody, newest: HeatBody): HeatBody {
  const rows = map.tiles_per_second;
  const at = Math.round((newest.from_us - map.from_us) / SECOND_US);
  if (at < 0 || at > map.samples.length || newest.tiles_per_second !== rows) return map;
  const samples = later(map.samples, newest.samples, at);
  const tiles = later(map.tiles, newest.tiles, at * rows);
  const gone = samples.length - map.samples.length;
  return {
    ...map,
    from_us: map.from_us + gone * SECOND_US,
    samples: samples.slice(gone),
    tiles: tiles.slice(gone * rows),
  };
}

function later(all: readonly number[], newest: readonly number[], at: number): number[] {
  const length = Math.max(all.length, at + newest.length);
  return Array.from({ length }, (_, index) => Math.max(all[index] ?? 0, newest[index - at] ?? 0));
}

/** The end of the newest part of a second that has samples, µs; null: there are none. */
export function newestSampleUs(body: HeatBody): number | null {
  const last = body.tiles.findLastIndex((count) => count > 0);
  return last < 0 ? null : body.from_us + (last + 1) * body.tile_us;
}

/** A cell of the picture. */
export interface Cell {
  readonly column: number;
  readonly row: number;
}

/** When a cell begins; of a column of several seconds, in the first of them. */
export function cellBegin(of: HeatPicture, { column, row }: Cell): number {
  return of.fromUs + column * of.secondsPerColumn * SECOND_US + row * of.tileUs;
}

/** The cell that a moment is in, which may be outside of the picture. */
export function cellAt(of: HeatPicture, us: number): Cell {
  const second = Math.floor((us - of.fromUs) / SECOND_US);
  const intoUs = us - of.fromUs - second * SECOND_US;
  return {
    column: Math.floor(second / of.secondsPerColumn),
    row: Math.min(of.rows - 1, Math.floor(intoUs / of.tileUs)),
  };
}

/**
 * The time from one cell to another, both included, whichever is first: all that passed between them. In columns of
 * several seconds it goes from the first second of the one to the last second of the other.
 */
export function brushed(of: HeatPicture, one: Cell, other: Cell): Bounds {
  const order = one.column - other.column || one.row - other.row;
  const [first, last] = order <= 0 ? [one, other] : [other, one];
  return {
    fromUs: cellBegin(of, first),
    toUs: cellBegin(of, last) + (of.secondsPerColumn - 1) * SECOND_US + of.tileUs,
  };
}

/** The samples of a time, of whole cells. */
export function samplesBetween(of: HeatPicture, { fromUs, toUs }: Bounds): number {
  let sum = 0;
  for (let at = 0; at < of.values.length; at += 1) {
    const begin = cellBegin(of, { column: Math.floor(at / of.rows), row: at % of.rows });
    if (begin >= fromUs && begin + of.tileUs <= toUs) sum += of.values[at] ?? 0;
  }
  return sum;
}
