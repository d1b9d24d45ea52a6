import { expect, it } from "vitest";
import { layoutGrid, neighbour, rowAt } from "./grid_layout.ts";

const groups = (...sizes: number[]) => {
  let first = 0;
  return sizes.map((rows, at) => {
    const group = { name: `rack${at}`, first, rows };
    first += rows;
    return group;
  });
};

it("no two cells overlap, all lie inside, and each is found where it is drawn", () => {
  for (const sizes of [[64, 4], [1], [241], [40, 40, 40, 40], [1000, 48], [10_000]]) {
    const layout = layoutGrid(groups(...sizes), 220, 420);
    const rows = sizes.reduce((sum, size) => sum + size, 0);
    const seen = new Set<string>();
    for (let row = 0; row < rows; row += 1) {
      const [x, y] = [layout.places[2 * row] ?? -1, layout.places[2 * row + 1] ?? -1];
      expect(x >= 0 && x + layout.cell <= 220.01 && y >= 0 && y + layout.cell <= layout.height).toBe(true);
      seen.add(`${x.toFixed(2)} ${y.toFixed(2)}`);
      if (row % 37 === 0) expect(rowAt(layout, x + layout.cell / 2, y + layout.cell / 2)).toBe(row);
    }
    expect(seen.size).toBe(rows);
  }
});

it("64 hosts stand in lines of eight and fill the width", () => {
  const { cell, places } = layoutGrid(groups(64), 220, 420);
  expect(cell).toBeGreaterThan(20);
  expect(places[2 * 8]).toBe(0);
});

it("arrow keys reach the cell above and below, and stay at the edge", () => {
  const layout = layoutGrid(groups(64, 4), 220, 420);
  expect(neighbour(layout, 20, 0, 1)).toBe(28);
  expect(neighbour(layout, 20, 0, -1)).toBe(12);
  expect(neighbour(layout, 60, 0, 1)).toBe(64 + Math.min(3, 4));
  expect(neighbour(layout, 3, 0, -1)).toBe(3);
  expect(neighbour(layout, 0, -1, 0)).toBe(0);
});
