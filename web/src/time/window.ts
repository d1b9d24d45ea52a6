/**
 * The span of time that every view shows: either the newest `spanUs` (live), or from one moment to another
 * (paused). Pausing stops the view, never the recording.
 */

import { formatMoment, formatSpan, parseMoment, parseSpan } from "./moment.ts";

export type TimeWindow =
  | { readonly live: true; readonly spanUs: number }
  | { readonly live: false; readonly fromUs: number; readonly toUs: number };

export interface Bounds {
  readonly fromUs: number;
  readonly toUs: number;
}

export const SPAN_MIN_US = 1000;
export const SPAN_MAX_US = 400 * 86_400 * 1_000_000;

/** `-15m` is live; `A..B` is paused, with A and B as `parseMoment` reads them. */
export function parseWindow(text: string, nowUs: number): TimeWindow | null {
  const bare = text.trim();
  const [begin, end, more] = bare.split("..");
  if (more !== undefined || begin === undefined) return null;
  if (end === undefined || end.trim() === "now") {
    const relative = begin.trim();
    if (relative.startsWith("-") || relative.startsWith("\u2212")) {
      const spanUs = parseSpan(relative.slice(1));
      return spanUs === null ? null : { live: true, spanUs: clampSpan(spanUs) };
    }
    const fromUs = parseMoment(begin, nowUs);
    if (fromUs === null) return null;
    // A single moment is looked at with half a minute around it.
    if (end === undefined) return { live: false, fromUs: fromUs - 15e6, toUs: fromUs + 15e6 };
    return fromUs < nowUs ? { live: false, fromUs, toUs: nowUs } : null;
  }
  const fromUs = parseMoment(begin, nowUs);
  const toUs = parseMoment(end, nowUs);
  if (fromUs === null || toUs === null || toUs <= fromUs) return null;
  return { live: false, fromUs, toUs };
}

/** The text that `parseWindow` reads back, independent of when it is read unless it is live. */
export function formatWindow(window: TimeWindow): string {
  return window.live ? `-${formatSpan(window.spanUs)}` : `${formatMoment(window.fromUs)}..${formatMoment(window.toUs)}`;
}

function clampSpan(spanUs: number): number {
  return Math.min(SPAN_MAX_US, Math.max(SPAN_MIN_US, Math.round(spanUs)));
}

/** The least that is shown of a recording that has just begun: a picture of two intervals would jump. */
const FIT_MIN_US = 2_000_000;

/**
 * Where the window is when the newest reading is of `newestUs`. A live one begins with the recording if that is shorter,
 * so that a short recording fills the picture instead of standing at the edge of nothing.
 */
export function boundsOf(window: TimeWindow, newestUs: number, beginUs: number | null = null): Bounds {
  if (!window.live) return { fromUs: window.fromUs, toUs: window.toUs };
  const whole = beginUs === null || beginUs > newestUs ? window.spanUs : Math.max(FIT_MIN_US, newestUs - beginUs);
  return { fromUs: newestUs - Math.min(window.spanUs, whole), toUs: newestUs };
}

export function paused(bounds: Bounds): TimeWindow {
  return { live: false, fromUs: Math.round(bounds.fromUs), toUs: Math.round(bounds.toUs) };
}

/** Zooms by `factor` (below 1: closer) around `aroundUs`, which stays where it is on the screen. */
export function zoomed(window: TimeWindow, bounds: Bounds, factor: number, aroundUs: number): TimeWindow {
  const spanUs = bounds.toUs - bounds.fromUs;
  const next = clampSpan(spanUs * factor);
  // A live view stays at its right end.
  if (window.live) return { live: true, spanUs: next };
  const fraction = (aroundUs - bounds.fromUs) / spanUs;
  const fromUs = Math.round(aroundUs - fraction * next);
  return { live: false, fromUs, toUs: fromUs + next };
}

/** Moves by a share of the window; moving a live view pauses it. */
export function panned(bounds: Bounds, fraction: number): TimeWindow {
  const shift = Math.round((bounds.toUs - bounds.fromUs) * fraction);
  return paused({ fromUs: bounds.fromUs + shift, toUs: bounds.toUs + shift });
}
