/** The matrix of a large fabric: a row and a column for each switch, a cell where a trunk joins the two. */

/** Fabrics of more switches are told as a table only. */
export const MATRIX_MAX = 1000;

const NAME_PX = 14;
const CELL_MAX_PX = 14;

export interface MatrixLayout {
  /** Pixels of a cell's side, at least one. */
  readonly cell: number;
  /** Room for the names at the left and, turned, at the top. */
  readonly margin: number;
  readonly size: number;
  /** The switches whose names are written: every one, every second, every fifth, ... */
  readonly named: readonly number[];
}

export function layoutMatrix(switches: number, nameWidth: number, width: number, height: number): MatrixLayout {
  const margin = Math.ceil(nameWidth) + 8;
  const cell = Math.max(
    1,
    Math.min(CELL_MAX_PX, Math.floor((Math.max(width, Math.min(height, width)) - margin) / Math.max(1, switches))),
  );
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500].find((every) => every * cell >= NAME_PX) ?? 1000;
  const named = Array.from({ length: Math.ceil(switches / step) }, (_, at) => at * step);
  return { cell, margin, size: margin + cell * switches, named };
}

/** The switches of the row and the column at a point; null beside the cells. */
export function cellAt(
  { cell, margin }: MatrixLayout,
  switches: number,
  x: number,
  y: number,
): readonly [row: number, column: number] | null {
  const [row, column] = [Math.floor((y - margin) / cell), Math.floor((x - margin) / cell)];
  return row < 0 || column < 0 || row >= switches || column >= switches ? null : [row, column];
}

/** Trunks by their two switches, in both directions. */
export function trunksByCell(
  trunks: readonly { readonly ends: readonly { readonly switch: number }[] }[],
): ReadonlyMap<number, readonly number[]> {
  const cells = new Map<number, number[]>();
  trunks.forEach(({ ends }, place) => {
    const [one, other] = ends.map((end) => end.switch);
    if (one === undefined || other === undefined) return;
    for (const key of [cellKey(one, other), cellKey(other, one)]) {
      const own = cells.get(key);
      if (own === undefined) cells.set(key, [place]);
      else own.push(place);
    }
  });
  return cells;
}

export function cellKey(row: number, column: number): number {
  return row * 65_536 + column;
}

/** The cell that an arrow key leads to: along a row from trunk to trunk, or to the next row's nearest trunk. */
export function nextCell(
  cells: ReadonlyMap<number, readonly number[]>,
  switches: number,
  at: readonly [number, number] | null,
  step: readonly [right: number, down: number],
): readonly [row: number, column: number] | null {
  const ofRow = (row: number): number[] =>
    [...cells.keys()]
      .filter((key) => Math.floor(key / 65_536) === row)
      .map((key) => key % 65_536)
      .sort((one, other) => one - other);
  let [row, column] = at ?? [0, -1];
  const [right, down] = at === null ? [1, 0] : step;
  if (right !== 0) {
    const own = ofRow(row);
    const next = right > 0 ? own.find((one) => one > column) : own.filter((one) => one < column).at(-1);
    return next === undefined ? at : [row, next];
  }
  for (row += down; row >= 0 && row < switches; row += down) {
    const own = ofRow(row);
    const nearest = own.sort((one, other) => Math.abs(one - column) - Math.abs(other - column))[0];
    if (nearest !== undefined) return [row, nearest];
  }
  return at;
}
