/**
 * Colours of VLANs. Vermilion means broken and gold means doubtful, so neither stands for a VLAN; of the hues that are
 * left one is green. They come again darker (lighter in the light theme), and then as they were.
 */

import type { Theme } from "../strip/ramp.ts";

/** How many hues there are; colours that lie so far apart in the list have the same one. */
export const HUES = 6;

/** Cyan, violet, green, pink, blue, grey; the same once more. */
const INKS: Readonly<Record<Theme, readonly string[]>> = {
  dark: [
    "#58c0e6",
    "#b3a4f5",
    "#86cf6c",
    "#ec8fc9",
    "#5b8df0",
    "#d3dcdc",
    "#2f86a8",
    "#7a68cf",
    "#4f9440",
    "#b0598f",
    "#3a63b8",
    "#8a9ca0",
  ],
  light: [
    "#0a7ea4",
    "#6a4fd0",
    "#3d7f24",
    "#b0308a",
    "#1f4fc0",
    "#4a5a5e",
    "#56abc9",
    "#a08fe0",
    "#7db164",
    "#d681ba",
    "#7396dd",
    "#93a0a3",
  ],
};

/** The colour of the VLAN at this place of the list. */
export function vlanInk(place: number, theme: Theme): string {
  const inks = INKS[theme];
  return inks[place % inks.length] ?? "currentColor";
}

/** More VLANs than this on one trunk are counted, not drawn one by one. */
export const LANES_MAX = 6;

/** Pixels from the line of one VLAN to the next on the same trunk. */
export const LANE_PX = 3;

/** The VLANs of a trunk side by side, by their places in the list: no two of one hue touch, null is a free lane. */
export function lanesOf(places: readonly number[]): (number | null)[] {
  const left = [...places].sort((one, other) => one - other);
  const lanes: (number | null)[] = [];
  while (left.length > 0) {
    const before = lanes.at(-1);
    const often = (place: number): number => left.filter((other) => other % HUES === place % HUES).length;
    const fitting = left.filter((place) => before == null || place % HUES !== before % HUES);
    // The hue of which most are left first, so that few free lanes are needed.
    const next = fitting.sort((one, other) => often(other) - often(one) || one - other)[0];
    lanes.push(next ?? null);
    if (next !== undefined) left.splice(left.indexOf(next), 1);
  }
  return lanes;
}
