import { describe, expect, it } from "vitest";
import { cellPixel, FAILED, LATE, MISSED, OK, PALETTES, SKIPPED, type Theme } from "./ramp.ts";

/** CIE 1976 lightness from sRGB (CIE 15:2004), written independently of the OKLab code under test. */
function lightness(pixel: number): number {
  const channel = (byte: number): number => (byte <= 10 ? byte / 3294.6 : ((byte / 255 + 0.055) / 1.055) ** 2.4);
  const y =
    0.2126 * channel(pixel & 255) + 0.7152 * channel((pixel >> 8) & 255) + 0.0722 * channel((pixel >> 16) & 255);
  return y > 216 / 24389 ? 116 * Math.cbrt(y) - 16 : (24389 / 27) * y;
}

describe.each(["dark", "light"] as Theme[])("the %s ramp", (theme) => {
  const palette = PALETTES[theme];

  it("changes its lightness evenly, so that it reads in grey", () => {
    const steps = Array.from({ length: 8 }, (_, at) => lightness(palette.ramp[Math.round((at * 255) / 7)] ?? 0));
    const mean = ((steps[7] ?? 0) - (steps[0] ?? 0)) / 7;
    expect(Math.abs(mean)).toBeGreaterThan(8);
    for (let at = 1; at < 8; at += 1) {
      const ratio = ((steps[at] ?? 0) - (steps[at - 1] ?? 0)) / mean;
      expect(ratio).toBeGreaterThan(0.7);
      expect(ratio).toBeLessThan(1.3);
    }
  });

  it("never goes back", () => {
    const direction = theme === "dark" ? 1 : -1;
    for (let at = 1; at < 256; at += 1) {
      const step = lightness(palette.ramp[at] ?? 0) - lightness(palette.ramp[at - 1] ?? 0);
      expect(step * direction).toBeGreaterThan(-0.35);
    }
  });

  it("keeps vermilion for what is missing and gold for what is late", () => {
    expect(cellPixel(palette, Number.NaN, MISSED, 1)).toBe(palette.broken);
    expect(cellPixel(palette, 0.5, FAILED, 1)).toBe(palette.broken);
    expect(cellPixel(palette, 0.5, LATE, 1)).toBe(palette.doubtful);
    expect(cellPixel(palette, Number.NaN, SKIPPED, 1)).toBe(palette.skipped);
    const marks = new Set([palette.broken, palette.doubtful, palette.skipped]);
    for (let at = -10; at < 300; at += 1) expect(marks.has(cellPixel(palette, at / 256, OK, 1))).toBe(false);
  });

  it("shows a missing value as the ground, and 0 as the beginning of the ramp", () => {
    expect(cellPixel(palette, Number.NaN, OK, 1)).toBe(palette.empty);
    expect(cellPixel(palette, 0, OK, 1)).toBe(palette.ramp[0]);
    expect(cellPixel(palette, 1, OK, 1)).toBe(palette.ramp[255]);
  });

  it("marks what is beyond the scale, as strong as its end and like nothing else", () => {
    expect(cellPixel(palette, 1.01, OK, 1)).toBe(palette.beyond);
    expect([...palette.ramp, palette.broken, palette.doubtful, palette.skipped, palette.empty]).not.toContain(
      palette.beyond,
    );
    expect(Math.abs(lightness(palette.beyond) - lightness(palette.ramp[255] ?? 0))).toBeLessThan(20);
    expect(Math.abs(lightness(palette.beyond) - lightness(palette.empty))).toBeGreaterThan(60);
  });

  it("of logarithms gives each power of ten an equal part", () => {
    const places = [1e-4, 1e-3, 1e-2, 1e-1, 1].map((value) =>
      palette.ramp.indexOf(cellPixel(palette, value, OK, 1, true)),
    );
    const even = [0, 64, 128, 192, 255];
    for (const [at, place] of places.entries()) expect(Math.abs(place - (even[at] ?? 0))).toBeLessThan(6);
    expect(cellPixel(palette, 0, OK, 1, true)).toBe(palette.ramp[0]);
  });
});
