import { expect, it } from "vitest";
import { chartsLeft, sharesOf } from "./room.ts";

const WINDOWS = [
  { width: 488, height: 690 },
  { width: 856, height: 790 },
  { width: 1976, height: 1190 },
];

/** What all of it takes, by the sizes of the style sheet: titles, a strip, a line of charts. */
function taken({ width }: { width: number }, { strip, second, charts }: ReturnType<typeof sharesOf>): number {
  const lines = Math.ceil(charts / (width >= 1440 ? 4 : 2));
  return 86 + strip + (second ? strip + 38 : 0) + lines * 158;
}

it("few devices leave room for a second quantity and more charts, many for more rows", () => {
  for (const window_ of WINDOWS) {
    const few = sharesOf({ ...window_, rows: 8, beside: true });
    const many = sharesOf({ ...window_, rows: 1000, beside: true });
    expect(few.second).toBe(true);
    expect(many.second).toBe(false);
    expect(many.strip).toBeGreaterThan(few.strip);
    expect(many.charts).toBe(4);
  }
  expect(sharesOf({ width: 1976, height: 1190, rows: 8, beside: false }).charts).toBe(12);
  expect(sharesOf({ width: 1976, height: 1190, rows: 8, beside: true }).charts).toBe(12);
});

it("takes no more than there is, and leaves no third of it empty", () => {
  for (const window_ of WINDOWS) {
    for (const rows of [3, 8, 13, 20, 33, 66, 128, 225, 1000]) {
      const used = taken(window_, sharesOf({ ...window_, rows, beside: true }));
      expect(used, `${rows} rows in ${window_.height}`).toBeLessThanOrEqual(window_.height + 1);
      expect(used, `${rows} rows in ${window_.height}`).toBeGreaterThan(
        window_.height * (window_.width > 1440 && rows < 8 ? 0.4 : 0.66),
      );
    }
  }
});

it("charts stand in what is left, in whole lines of them", () => {
  expect([157, 158, 315, 316].map((height) => chartsLeft(1000, height))).toEqual([0, 2, 2, 4]);
  expect(chartsLeft(1440, 200)).toBe(4);
  expect(chartsLeft(1440, -20)).toBe(0);
});
