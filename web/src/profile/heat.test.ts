import { expect, it } from "vitest";
import type { HeatBody } from "../api/types.ts";
import { brushed, cellAt, cellBegin, heatPicture, newestSampleUs, renewed, samplesBetween } from "./heat.ts";

const FROM_US = 1_795_294_799_000_000;

function body(seconds: number): HeatBody {
  const tiles = Array.from({ length: seconds * 50 }, (_, at) => (at * 7) % 11);
  const samples = Array.from({ length: seconds }, (_, second) =>
    tiles.slice(second * 50, second * 50 + 50).reduce((sum, value) => sum + value, 0),
  );
  return { from_us: FROM_US, tile_us: 20_000, tiles_per_second: 50, samples, tiles, cores: [] };
}

it("columns of several seconds have their sums, and nothing is lost", () => {
  const whole = body(10);
  const picture = heatPicture(whole, 4);
  expect([picture.columns, picture.secondsPerColumn]).toEqual([4, 3]);
  const sum = (column: number, row: number): number =>
    [0, 1, 2].reduce((all, second) => all + (whole.tiles[(column * 3 + second) * 50 + row] ?? 0), 0);
  for (let column = 0; column < 4; column += 1)
    for (let row = 0; row < 50; row += 1) expect(picture.values[column * 50 + row]).toBe(sum(column, row));
  expect(picture.samples).toBe(whole.samples.reduce((all, value) => all + value, 0));
  expect(heatPicture(whole, 10).secondsPerColumn).toBe(1);
});

it("a choice is all that passed between two cells, whichever is first", () => {
  const picture = heatPicture(body(10), 10);
  const [one, other] = [
    { column: 2, row: 49 },
    { column: 4, row: 0 },
  ];
  const chosen = { fromUs: FROM_US + 2_980_000, toUs: FROM_US + 4_020_000 };
  expect(brushed(picture, one, other)).toEqual(chosen);
  expect(brushed(picture, other, one)).toEqual(chosen);
  // A tile, a second, a tile.
  const { tiles, samples } = body(10);
  expect(samplesBetween(picture, chosen)).toBe((tiles[2 * 50 + 49] ?? 0) + (samples[3] ?? 0) + (tiles[4 * 50] ?? 0));
  expect(brushed(picture, one, one)).toEqual({ fromUs: FROM_US + 2_980_000, toUs: FROM_US + 3_000_000 });
});

it("a moment lies in the cell that begins with it", () => {
  const picture = heatPicture(body(10), 3);
  for (const cell of [
    { column: 0, row: 0 },
    { column: 2, row: 17 },
  ]) {
    expect(cellAt(picture, cellBegin(picture, cell))).toEqual(cell);
    expect(cellAt(picture, cellBegin(picture, cell) + 19_999)).toEqual(cell);
  }
  expect(cellAt(picture, FROM_US - 1)).toEqual({ column: -1, row: 49 });
});

it("the newest seconds replace those of a map, which stays as long and loses no count", () => {
  const map = body(6);
  const later: HeatBody = {
    ...body(3),
    from_us: FROM_US + 4_000_000,
    samples: [1, 900, 7],
    tiles: [...Array<number>(50).fill(0), ...Array<number>(50).fill(18), 7, ...Array<number>(49).fill(0)],
  };
  const shown = renewed(map, later);
  expect([shown.from_us, shown.samples.length, shown.tiles.length]).toEqual([FROM_US + 1_000_000, 6, 300]);
  // An older answer about a second has fewer of its samples.
  expect(shown.samples).toEqual([...map.samples.slice(1, 5), 900, 7]);
  expect(shown.tiles.slice(150, 200)).toEqual(map.tiles.slice(200, 250));
  expect(shown.tiles.slice(200, 251)).toEqual([...Array<number>(50).fill(18), 7]);
  expect(newestSampleUs(shown)).toBe(FROM_US + 6_020_000);
  expect(newestSampleUs({ ...later, tiles: [0, 0] })).toBeNull();
  // A map that ends before the newest seconds cannot be put together with them.
  expect(renewed(map, { ...later, from_us: FROM_US + 7_000_000 })).toBe(map);
  expect(renewed(map, { ...later, from_us: FROM_US - 1_000_000 })).toBe(map);
});
