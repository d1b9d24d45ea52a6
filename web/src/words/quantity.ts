/**
 * Numbers as people read them: at most four digits, one unit, thin spaces in long numbers.
 *
 * Quantities arrive in base units (octets/s, octets, s, 1/s); network rates are shown in bit/s, which is what
 * links are sold in, and amounts in decimal bytes, as the command line does.
 */

/** Narrow no-break space: between a number and its unit, and between groups of three digits. */
export const THIN = "\u202f";

/** What stands where a reading is missing: never 0. */
export const MISSING = "–";

export interface Shown {
  readonly number: string;
  readonly unit: string;
}

interface Scale {
  readonly factor: number;
  readonly unit: string;
  readonly prefixed: boolean;
}

/** How each unit of the API is shown. */
const SCALES: Readonly<Record<string, Scale>> = {
  "octets/s": { factor: 8, unit: "bit/s", prefixed: true },
  "bytes/s": { factor: 8, unit: "bit/s", prefixed: true },
  "bit/s": { factor: 1, unit: "bit/s", prefixed: true },
  "Mbit/s": { factor: 1e6, unit: "bit/s", prefixed: true },
  mbps: { factor: 1e6, unit: "bit/s", prefixed: true },
  octets: { factor: 1, unit: "B", prefixed: true },
  bytes: { factor: 1, unit: "B", prefixed: true },
  packets: { factor: 1, unit: "packets", prefixed: false },
  "packets/s": { factor: 1, unit: "packets/s", prefixed: true },
  "errors/s": { factor: 1, unit: "errors/s", prefixed: true },
  "discards/s": { factor: 1, unit: "discards/s", prefixed: true },
  // A hundredth of a CPU second each second is one per cent of a CPU.
  "ticks/s": { factor: 1, unit: "% of a CPU", prefixed: false },
  s: { factor: 1, unit: "s", prefixed: false },
  ms: { factor: 1, unit: "ms", prefixed: false },
  us: { factor: 1, unit: "µs", prefixed: false },
  µs: { factor: 1, unit: "µs", prefixed: false },
  cs: { factor: 0.01, unit: "s", prefixed: false },
  tasks: { factor: 1, unit: "", prefixed: false },
  degC: { factor: 1, unit: "°C", prefixed: false },
  rpm: { factor: 1, unit: "rpm", prefixed: false },
  W: { factor: 1, unit: "W", prefixed: true },
  V: { factor: 1, unit: "V", prefixed: false },
  A: { factor: 1, unit: "A", prefixed: false },
  ratio: { factor: 1, unit: "", prefixed: false },
  "1": { factor: 1, unit: "", prefixed: false },
  "": { factor: 1, unit: "", prefixed: false },
};

const PREFIXES = ["", "k", "M", "G", "T", "P", "E"] as const;

function scaleOf(unit: string): Scale {
  return SCALES[unit] ?? { factor: 1, unit, prefixed: unit.endsWith("/s") };
}

/** Digits behind the point such that about four digits stand, none invented for whole numbers. */
function decimals(size: number, whole: boolean): number {
  if (whole || size >= 1000) return 0;
  if (size >= 10) return 1;
  return 2;
}

/** Groups of three, as in `5 912 448 201 337`; the sign and the decimals stay as they are. */
export function grouped(digits: string): string {
  const [whole = "", part] = digits.split(".");
  const sign = whole.startsWith("-") ? "\u2212" : "";
  const bare = whole.replace("-", "");
  const spaced = bare.length > 4 ? bare.replace(/\B(?=(\d{3})+$)/g, THIN) : bare;
  return sign + spaced + (part === undefined ? "" : `.${part}`);
}

/** As many digits as tell two labels of an axis apart that are `step` from each other. */
function axisDecimals(step: number): number {
  return step > 0 ? Math.min(6, Math.max(0, Math.ceil(-Math.log10(step) - 1e-9))) : 0;
}

/** A quantity of the API in words; `null` and NaN are missing. */
export function quantity(value: number | null | undefined, unit: string, step?: number): Shown {
  if (value === null || value === undefined || !Number.isFinite(value)) {
    return { number: MISSING, unit: "" };
  }
  const scale = scaleOf(unit);
  let size = value * scale.factor;
  let thousands = 0;
  if (scale.prefixed) {
    while (Math.abs(size) >= 999.95 && thousands < PREFIXES.length - 1) {
      size /= 1000;
      thousands += 1;
    }
  }
  const prefix = PREFIXES[thousands] ?? "";
  const whole = thousands === 0 && Number.isInteger(size);
  const places =
    step === undefined ? decimals(Math.abs(size), whole) : axisDecimals((step * scale.factor) / 1000 ** thousands);
  return { number: grouped(size.toFixed(places)), unit: prefix + scale.unit };
}

/** The same as one text: `812.4 Mbit/s`. */
export function quantityText(value: number | null | undefined, unit: string, step?: number): string {
  const shown = quantity(value, unit, step);
  return shown.unit === "" ? shown.number : `${shown.number}${THIN}${shown.unit}`;
}

/** A whole number: `125 008`. */
export function count(value: number | null | undefined): string {
  return value === null || value === undefined || !Number.isFinite(value)
    ? MISSING
    : grouped(Math.round(value).toString());
}

/** A share of 0 to 1 as per cent; what is not quite all never reads `100 %`, what is not nothing never `0 %`. */
export function share(part: number, all: number): string {
  if (!(all > 0)) return MISSING;
  const percent = (100 * part) / all;
  if (part === 0) return `0${THIN}%`;
  if (part === all) return `100${THIN}%`;
  if (percent > 99.99) return `99.99${THIN}%`;
  if (percent < 0.01) return `<${THIN}0.01${THIN}%`;
  return `${percent.toFixed(2)}${THIN}%`;
}

/** A span as people say it: `41 µs`, `0.31 ms`, `3.0 s`, `15 min`, `1 h 5 min`, `2 d 3 h`. */
export function span(us: number | null | undefined): string {
  if (us === null || us === undefined || !Number.isFinite(us)) return MISSING;
  const size = Math.abs(us);
  const sign = us < 0 ? "\u2212" : "";
  if (size < 100) return `${sign}${trimmed(size, 1)}${THIN}µs`;
  if (size < 1e5) return `${sign}${trimmed(size / 1e3, 2)}${THIN}ms`;
  if (size < 60e6) return `${sign}${trimmed(size / 1e6, size < 10e6 ? 2 : 1)}${THIN}s`;
  const seconds = Math.round(size / 1e6);
  const parts: [number, string][] = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor((seconds % 86_400) / 3600), "h"],
    [Math.floor((seconds % 3600) / 60), "min"],
    [seconds % 60, "s"],
  ];
  const first = parts.findIndex(([amount]) => amount > 0);
  return (
    sign +
    parts
      .slice(first, first + 2)
      .filter(([amount]) => amount > 0)
      .map(([amount, unit]) => `${amount}${THIN}${unit}`)
      .join(" ")
  );
}

function trimmed(value: number, places: number): string {
  return value
    .toFixed(places)
    .replace(/(\.\d*?)0+$/, "$1")
    .replace(/\.$/, "");
}

/** The least of 1, 2, 5 times a power of ten that is at least `value`: the end of a scale. */
export function niceCeiling(value: number): number {
  if (!(value > 0) || !Number.isFinite(value)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  for (const factor of [1, 2, 5, 10]) {
    if (factor * power >= value * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

/** The end of a scale of `unit`: nice in the unit that is shown, so that a scale of octets/s ends at whole Mbit/s. */
export function niceScale(value: number, unit: string): number {
  const { factor } = scaleOf(unit);
  return niceCeiling(value * factor) / factor;
}
