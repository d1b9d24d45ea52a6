/**
 * Colours of quantities and of states. One calm ramp from deep water to light: its lightness rises evenly
 * (OKLab; B. Ottosson 2020), so that it reads in grey and to the colour-blind. Vermilion is kept for what is
 * missing or broken, gold for what is late or doubtful.
 */

export type Theme = "dark" | "light";

type Rgb = readonly [red: number, green: number, blue: number];

const STOPS: Readonly<Record<Theme, readonly Rgb[]>> = {
  dark: [
    [18, 30, 36],
    [20, 58, 68],
    [26, 98, 108],
    [60, 150, 150],
    [140, 200, 178],
    [236, 238, 206],
  ],
  light: [
    [243, 241, 234],
    [206, 226, 222],
    [142, 194, 194],
    [70, 146, 156],
    [22, 92, 112],
    [10, 44, 66],
  ],
};

/** More than before: water. Less than before: wisteria. Equal: the ground. */
const DIVERGING: Readonly<Record<Theme, readonly Rgb[]>> = {
  dark: [
    [205, 190, 255],
    [120, 100, 190],
    [24, 32, 40],
    [40, 140, 146],
    [170, 232, 214],
  ],
  light: [
    [74, 54, 160],
    [160, 146, 220],
    [240, 239, 234],
    [96, 172, 178],
    [10, 84, 100],
  ],
};

/** `beyond` is wisteria, as light (or dark) as the end of the ramp: a value that the scale does not reach. */
const MARKS: Readonly<Record<Theme, { broken: Rgb; doubtful: Rgb; empty: Rgb; beyond: Rgb }>> = {
  dark: { broken: [240, 102, 74], doubtful: [227, 179, 65], empty: [13, 20, 23], beyond: [214, 178, 255] },
  light: { broken: [207, 61, 34], doubtful: [201, 146, 16], empty: [246, 245, 241], beyond: [104, 32, 172] },
};

export const RAMP_STEPS = 256;

type Lab = readonly [lightness: number, a: number, b: number];

function linear(byte: number): number {
  const unit = byte / 255;
  return unit <= 0.04045 ? unit / 12.92 : ((unit + 0.055) / 1.055) ** 2.4;
}

function encoded(light: number): number {
  const clipped = Math.min(1, Math.max(0, light));
  const unit = clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055;
  return Math.round(unit * 255);
}

function toLab([red, green, blue]: Rgb): Lab {
  const [r, g, b] = [linear(red), linear(green), linear(blue)];
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function toRgb([lightness, a, b]: Lab): Rgb {
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    encoded(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    encoded(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    encoded(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ];
}

/** One pixel as `ImageData` holds it, read as a little-endian 32-bit word. */
function packed([red, green, blue]: Rgb): number {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** Hue and chroma follow the stops; lightness goes straight from the first stop to the last. */
function evenRamp(stops: readonly Rgb[]): Rgb[] {
  const labs = stops.map(toLab);
  const begin = labs[0]?.[0] ?? 0;
  const end = labs.at(-1)?.[0] ?? 1;
  return Array.from({ length: RAMP_STEPS }, (_, at) => {
    const lightness = begin + ((end - begin) * at) / (RAMP_STEPS - 1);
    // The hue is taken from where the stops have this lightness.
    let leg = labs.findIndex(([l]) => (end > begin ? l >= lightness : l <= lightness));
    if (leg <= 0) leg = leg === 0 ? 1 : labs.length - 1;
    const left = labs[leg - 1] ?? [0, 0, 0];
    const right = labs[leg] ?? [0, 0, 0];
    const part = (lightness - left[0]) / (right[0] - left[0]);
    return toRgb([lightness, left[1] + part * (right[1] - left[1]), left[2] + part * (right[2] - left[2])]);
  });
}

function straightRamp(stops: readonly Rgb[]): Rgb[] {
  const labs = stops.map(toLab);
  return Array.from({ length: RAMP_STEPS }, (_, at) => {
    const place = (at / (RAMP_STEPS - 1)) * (labs.length - 1);
    const leg = Math.min(labs.length - 2, Math.floor(place));
    const [left, right] = [labs[leg] ?? [0, 0, 0], labs[leg + 1] ?? [0, 0, 0]];
    const part = place - leg;
    return toRgb(
      [0, 1, 2].map((axis) => (left[axis] ?? 0) + part * ((right[axis] ?? 0) - (left[axis] ?? 0))) as unknown as Lab,
    );
  });
}

export interface Palette {
  readonly ramp: Uint32Array;
  readonly diverging: Uint32Array;
  readonly broken: number;
  /** Not asked, for a reason that is recorded: nothing is known, and nothing is broken by it. */
  readonly skipped: number;
  readonly doubtful: number;
  readonly empty: number;
  /** Greater than the scale. */
  readonly beyond: number;
  /** The ramp for style sheets and legends. */
  readonly css: readonly string[];
}

function mixed(left: Rgb, right: Rgb, part: number): Rgb {
  return [0, 1, 2].map((axis) =>
    Math.round((left[axis] ?? 0) * (1 - part) + (right[axis] ?? 0) * part),
  ) as unknown as Rgb;
}

function paletteOf(theme: Theme): Palette {
  const ramp = evenRamp(STOPS[theme]);
  const { broken, doubtful, empty, beyond } = MARKS[theme];
  return {
    ramp: Uint32Array.from(ramp, packed),
    diverging: Uint32Array.from(straightRamp(DIVERGING[theme]), packed),
    broken: packed(broken),
    skipped: packed(mixed(empty, broken, 0.45)),
    doubtful: packed(doubtful),
    empty: packed(empty),
    beyond: packed(beyond),
    css: ramp.map(([red, green, blue]) => `rgb(${red} ${green} ${blue})`),
  };
}

export const PALETTES: Readonly<Record<Theme, Palette>> = { dark: paletteOf("dark"), light: paletteOf("light") };

/** State of a (device, interval), the greater the worse; `NO_STATE`: nothing is recorded. */
export const OK = 0;
export const LATE = 1;
export const SKIPPED = 2;
export const FAILED = 3;
export const MISSED = 4;
export const NO_STATE = 255;

export const STATE_WORDS: Readonly<Record<number, string>> = {
  [OK]: "ok",
  [LATE]: "late",
  [SKIPPED]: "not asked",
  [FAILED]: "error",
  [MISSED]: "missed",
  [NO_STATE]: "nothing recorded",
};

/** A logarithmic scale shows so many powers of ten below its end; what is less has the first colour. */
export const LOG_DECADES = 4;

/** The share of the ramp that a value takes, above 1 beyond the scale. */
export function shareOf(value: number, scale: number, log = false): number {
  if (!log) return value / scale;
  return value <= 0 ? 0 : 1 + Math.log10(value / scale) / LOG_DECADES;
}

/** The pixel of a cell: what went wrong first, else the quantity from 0 to `scale`, else that it is beyond. */
export function cellPixel(palette: Palette, value: number, state: number, scale: number, log = false): number {
  if (state === MISSED || state === FAILED) return palette.broken;
  if (state === LATE) return palette.doubtful;
  if (Number.isNaN(value)) return state === SKIPPED ? palette.skipped : palette.empty;
  const part = shareOf(value, scale, log);
  // Live values are 32-bit floats: one that equals the scale may be a little more.
  if (part > 1 + 1e-6) return palette.beyond;
  const step = Math.min(RAMP_STEPS - 1, Math.max(0, Math.floor(part * RAMP_STEPS)));
  return palette.ramp[step] ?? palette.empty;
}

/** The pixel of a difference from -1 (all less) to 1 (all more). */
export function differencePixel(palette: Palette, difference: number): number {
  if (Number.isNaN(difference)) return palette.empty;
  const step = Math.round(((Math.min(1, Math.max(-1, difference)) + 1) / 2) * (RAMP_STEPS - 1));
  return palette.diverging[step] ?? palette.empty;
}
