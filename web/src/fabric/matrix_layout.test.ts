import { expect, it } from "vitest";
import { torus } from "../../tests/topologies.ts";
import { cellAt, cellKey, layoutMatrix, nextCell, trunksByCell } from "./matrix_layout.ts";

const trunks = (of: ReturnType<typeof torus>) =>
  of.pairs.map((ends) => ({ ends: ends.map((place) => ({ switch: place })) }));

it("every trunk has a cell on either side of the diagonal, and every cell is found again where it is drawn", () => {
  for (const [sizes, width] of [
    [[9, 9], 690],
    [[10, 10, 10], 690],
    [[10, 10, 10], 2000],
    [[65], 1100],
  ] as const) {
    const of = torus(...sizes);
    const cells = trunksByCell(trunks(of));
    expect(cells.size).toBe(2 * of.pairs.length);
    const layout = layoutMatrix(of.switches, 48, width, 700);
    expect(layout.cell).toBeGreaterThanOrEqual(1);
    for (const [one, other] of of.pairs) {
      expect(cells.has(cellKey(one, other)) && cells.has(cellKey(other, one))).toBe(true);
      const at = cellAt(
        layout,
        of.switches,
        layout.margin + (other + 0.5) * layout.cell,
        layout.margin + (one + 0.5) * layout.cell,
      );
      expect(at).toEqual([one, other]);
    }
    // Names lie side by side and not over one another.
    for (const [at, place] of layout.named.entries()) {
      expect(at === 0 || (place - (layout.named[at - 1] ?? 0)) * layout.cell >= 14).toBe(true);
    }
    expect(cellAt(layout, of.switches, layout.margin - 1, layout.margin + 1)).toBeNull();
  }
});

it("arrow keys go from trunk to trunk, to the ends and no further", () => {
  const of = torus(4, 4);
  const cells = trunksByCell(trunks(of));
  let at = nextCell(cells, 16, null, [1, 0]);
  expect(at).toEqual([0, 1]);
  at = nextCell(cells, 16, at, [1, 0]);
  expect(at).toEqual([0, 3]);
  for (let step = 0; step < 9; step += 1) at = nextCell(cells, 16, at, [1, 0]);
  expect(at).toEqual([0, 12]);
  at = nextCell(cells, 16, at, [0, 1]);
  expect(at).toEqual([1, 13]);
  expect(nextCell(cells, 16, at, [0, -1])).toEqual([0, 12]);
});
