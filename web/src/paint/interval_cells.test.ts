import { expect, it } from "vitest";
import { intervalCells, readIntervalCells } from "./interval_cells.ts";

it("a number painted as cells is read back, and a wrong cell is noticed", () => {
  for (let round = 0; round < 500; round += 1) {
    const number = Math.floor(Math.random() * 2 ** 36);
    const cells = intervalCells(number);
    expect(readIntervalCells(cells)).toBe(Number(BigInt(number) & 0xffff_ffffn));
    cells[2 + (round % 33)] = cells[2 + (round % 33)] !== true;
    expect(readIntervalCells(cells)).toBeNull();
  }
});
