/**
 * Moments and spans as people type and read them. Moments are whole microseconds since the Unix epoch, which a
 * JavaScript number holds exactly until the year 2255.
 */

export const SECOND_US = 1_000_000;

const UNITS_US: Readonly<Record<string, number>> = {
  us: 1,
  ms: 1000,
  s: SECOND_US,
  m: 60 * SECOND_US,
  min: 60 * SECOND_US,
  h: 3600 * SECOND_US,
  d: 86_400 * SECOND_US,
  w: 604_800 * SECOND_US,
};

/** `90s`, `15m`, `1h30m`, `100ms`, `2d`: microseconds, or null if it is not a span. */
export function parseSpan(text: string): number | null {
  const parts = [...text.trim().matchAll(/(\d+(?:\.\d+)?)\s*(us|ms|min|s|m|h|d|w)/gy)];
  const read = parts.map(([whole]) => whole).join("");
  if (parts.length === 0 || read.length !== text.trim().length) return null;
  const us = parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * (UNITS_US[unit ?? ""] ?? 0), 0);
  return us > 0 ? Math.round(us) : null;
}

/** The shortest exact text of a span that `parseSpan` reads: `15m`, `1h30m`, `100ms`. */
export function formatSpan(us: number): string {
  let rest = Math.round(us);
  let text = "";
  for (const unit of ["d", "h", "m", "s", "ms", "us"] as const) {
    const size = UNITS_US[unit] ?? 1;
    const amount = Math.floor(rest / size);
    if (amount > 0) text += `${amount}${unit}`;
    rest -= amount * size;
  }
  return text === "" ? "0s" : text;
}

/** RFC 3339 in UTC with as many decimals as are true: `2026-11-21T18:42:11.3Z`. */
export function formatMoment(us: number): string {
  const seconds = Math.floor(us / SECOND_US);
  const fraction = us - seconds * SECOND_US;
  const whole = new Date(seconds * 1000).toISOString().slice(0, 19);
  const part = fraction === 0 ? "" : `.${String(fraction).padStart(6, "0").replace(/0+$/, "")}`;
  return `${whole}${part}Z`;
}

/** An RFC 3339 moment, exact to the microsecond. Without an offset it is local time, as a person would type it. */
export function parseIso(text: string): number | null {
  const match = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?(Z|[+-]\d\d:\d\d)?$/.exec(text);
  if (match === null) return null;
  const [, day = "", minute = "00:00", second = "00", fraction = "", offset = ""] = match;
  const ms = Date.parse(`${day}T${minute}:${second}${offset}`);
  return Number.isNaN(ms) ? null : ms * 1000 + Number(fraction.padEnd(6, "0").slice(0, 6));
}

/** `18:42` or `18:42:11.3`: the last such local time that is not after `nowUs`. */
function parseClock(text: string, nowUs: number): number | null {
  const match = /^(\d{1,2}):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?$/.exec(text);
  if (match === null) return null;
  const date = new Date(nowUs / 1000);
  date.setHours(Number(match[1]), Number(match[2]), Number(match[3] ?? 0), 0);
  const us = date.getTime() * 1000 + Number((match[4] ?? "").padEnd(6, "0"));
  if (us <= nowUs) return us;
  date.setDate(date.getDate() - 1);
  return date.getTime() * 1000 + Number((match[4] ?? "").padEnd(6, "0"));
}

/** `now`, `-15m`, RFC 3339 or a time of day. */
export function parseMoment(text: string, nowUs: number): number | null {
  const bare = text.trim();
  if (bare === "now") return nowUs;
  if (bare.startsWith("-") || bare.startsWith("\u2212")) {
    const back = parseSpan(bare.slice(1));
    return back === null ? null : nowUs - back;
  }
  return parseIso(bare) ?? parseClock(bare, nowUs);
}

/** A time of day with `places` decimals of the second, in local time: `18:42:11.3`. */
export function clock(us: number, places = 0): string {
  const date = new Date(Math.floor(us / 1000));
  const two = (value: number): string => String(value).padStart(2, "0");
  const whole = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  if (places === 0) return whole;
  const fraction = String(us - Math.floor(us / SECOND_US) * SECOND_US).padStart(6, "0");
  return `${whole}.${fraction.slice(0, places)}`;
}

/** The time of a raw reading, to the microsecond: `18:42:11.300 042`. */
export function clockExact(us: number): string {
  return `${clock(us, 3)}\u202f${String(us % 1000).padStart(3, "0")}`;
}

/** Date and time, local: `21 Nov 18:42:11`. */
export function dayAndClock(us: number): string {
  const date = new Date(us / 1000);
  const month = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][date.getMonth()];
  return `${date.getDate()}\u202f${month} ${clock(us)}`;
}

/** The time of day as an axis needs it: seconds only where steps are shorter than a minute. */
export function axisClock(us: number, stepUs: number): string {
  if (stepUs < SECOND_US) return clock(us, stepUs < 10_000 ? 3 : 1);
  if (stepUs < 60 * SECOND_US) return clock(us);
  if (stepUs < 86_400 * SECOND_US) return clock(us).slice(0, 5);
  return dayAndClock(us).split(" ")[0] ?? "";
}

const STEPS_US = [
  100,
  1000,
  10_000,
  50_000,
  100_000,
  200_000,
  500_000,
  ...[
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800,
  ].map((seconds) => seconds * SECOND_US),
];

/** Round local times in a window, at most `most` of them, for the labels of an axis. */
export function ticks(fromUs: number, toUs: number, most: number): { stepUs: number; at: number[] } {
  const stepUs = STEPS_US.find((step) => (toUs - fromUs) / step <= most) ?? 604_800 * SECOND_US * 4;
  // Days and hours are round in local time.
  const shift = new Date(fromUs / 1000).getTimezoneOffset() * 60 * SECOND_US;
  const at: number[] = [];
  for (let tick = Math.ceil((fromUs - shift) / stepUs) * stepUs + shift; tick <= toUs; tick += stepUs) at.push(tick);
  return { stepUs, at };
}
