import { expect, it } from "vitest";
import { HUES, lanesOf, vlanInk } from "./vlan_inks.ts";

/** Hue in degrees, saturation and lightness from 0 to 1, as CSS defines them. */
function hsl(hex: string): { hue: number; saturation: number; lightness: number } {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255);
  const [most, least] = [Math.max(red, green, blue), Math.min(red, green, blue)];
  const span = most - least;
  const lightness = (most + least) / 2;
  let hue = 0;
  if (span !== 0 && most === red) hue = ((green - blue) / span + 6) % 6;
  else if (span !== 0 && most === green) hue = (blue - red) / span + 2;
  else if (span !== 0) hue = (red - green) / span + 4;
  return { hue: hue * 60, saturation: span === 0 ? 0 : span / (1 - Math.abs(2 * lightness - 1)), lightness };
}

const THEMES = ["dark", "light"] as const;
const green = (hex: string): boolean => hsl(hex).saturation > 0.15 && hsl(hex).hue > 70 && hsl(hex).hue < 175;

it("no VLAN is vermilion or gold", () => {
  for (const theme of THEMES) {
    for (let place = 0; place < 40; place += 1) {
      const { hue, saturation } = hsl(vlanInk(place, theme));
      expect(saturation < 0.15 || (hue > 70 && hue < 335), `${place} ${theme}`).toBe(true);
    }
  }
});

it("two greens are never side by side, neither in the list nor on a trunk, nor any other hue twice", () => {
  for (const theme of THEMES) {
    for (let place = 0; place < 40; place += 1)
      expect(green(vlanInk(place, theme)) && green(vlanInk(place + 1, theme))).toBe(false);
    for (const places of [[2, 8], [2, 8, 14, 3], [0, 1, 2, 3, 4, 5], [5, 11, 17, 23], [1, 7, 2, 8, 3, 9], [4]]) {
      const lanes = lanesOf(places);
      expect(lanes.filter((lane) => lane !== null).sort((one, other) => one - other)).toEqual(
        [...places].sort((one, other) => one - other),
      );
      lanes.forEach((lane, at) => {
        const next = lanes[at + 1];
        if (lane === null || next == null) return;
        expect(lane % HUES === next % HUES, String(lanes)).toBe(false);
        expect(green(vlanInk(lane, theme)) && green(vlanInk(next, theme)), String(lanes)).toBe(false);
      });
    }
  }
  expect(lanesOf([2, 8])).toEqual([2, null, 8]);
  expect(lanesOf([0, 1, 2, 3, 4, 5]).length).toBe(6);
});
