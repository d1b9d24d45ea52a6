/** Where each device's cell stands: groups below each other, cells in lines, as large as the space allows. */

import type { Group } from "../strip/rows.ts";

export interface GridLayout {
  /** Left and top of the cell of each row, two numbers a row. */
  readonly places: Float32Array;
  readonly cell: number;
  readonly gap: number;
  readonly titles: readonly { readonly name: string; readonly y: number; readonly rows: number }[];
  readonly height: number;
}

const TITLE_PX = 20;
const CELL_MAX_PX = 25;
const CELL_WISH_PX = 24;
const CELL_MIN_PX = 2;

/** Lays out cells so that all groups fit into `height` if they can; otherwise with the least cells, and taller. */
export function layoutGrid(groups: readonly Group[], width: number, height: number): GridLayout {
  for (let cell = CELL_WISH_PX; cell > CELL_MIN_PX; cell -= cell > 8 ? 1 : 0.5) {
    const layout = layoutWith(groups, width, cell);
    if (layout.height <= height) return layout;
  }
  return layoutWith(groups, width, CELL_MIN_PX);
}

function layoutWith(groups: readonly Group[], width: number, wished: number): GridLayout {
  const smallGap = wished >= 5 ? 1 : 0;
  const gap = wished >= 12 ? 3 : smallGap;
  const columns = Math.max(1, Math.floor((width + gap) / (wished + gap)));
  // Lines of eight, as racks are counted, where cells are large.
  const even = columns >= 8 && wished >= 12 ? Math.floor(columns / 8) * 8 : columns;
  const cell = wished >= 12 ? Math.min(CELL_MAX_PX, (width + gap) / even - gap) : wished;
  const rows = groups.reduce((sum, group) => Math.max(sum, group.first + group.rows), 0);
  const places = new Float32Array(rows * 2);
  const titles: { name: string; y: number; rows: number }[] = [];
  let y = 0;
  for (const group of groups) {
    titles.push({ name: group.name, y: y + 12, rows: group.rows });
    y += TITLE_PX;
    for (let at = 0; at < group.rows; at += 1) {
      places[2 * (group.first + at)] = (at % even) * (cell + gap);
      places[2 * (group.first + at) + 1] = y + Math.floor(at / even) * (cell + gap);
    }
    y += Math.ceil(group.rows / even) * (cell + gap) + 6;
  }
  return { places, cell, gap, titles, height: Math.ceil(y) };
}

/** The row whose cell is at a point; -1 if there is none. */
export function rowAt(layout: GridLayout, x: number, y: number): number {
  for (let row = 0; row * 2 < layout.places.length; row += 1) {
    const left = layout.places[2 * row] ?? 0;
    const top = layout.places[2 * row + 1] ?? 0;
    if (x >= left && x < left + layout.cell + layout.gap && y >= top && y < top + layout.cell + layout.gap) return row;
  }
  return -1;
}

/** The row of the cell one step away, for the arrow keys; the same row at an edge. */
export function neighbour(layout: GridLayout, row: number, stepX: number, stepY: number): number {
  const [x, y] = [layout.places[2 * row] ?? 0, layout.places[2 * row + 1] ?? 0];
  const rows = layout.places.length / 2;
  if (stepX !== 0) return Math.min(rows - 1, Math.max(0, row + stepX));
  let best = row;
  let least = Number.POSITIVE_INFINITY;
  for (let other = 0; other < rows; other += 1) {
    const down = ((layout.places[2 * other + 1] ?? 0) - y) * stepY;
    if (down <= 0) continue;
    const distance = down * 1000 + Math.abs((layout.places[2 * other] ?? 0) - x);
    if (distance < least) {
      least = distance;
      best = other;
    }
  }
  return best;
}
