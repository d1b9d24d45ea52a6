/** What is being looked at: one signal, kept equal to the address. */

import { batch, computed, signal } from "@preact/signals";
import { DEFAULT_VIEW, formatAddress, parseAddress, type View } from "../address/address.ts";
import { type Bounds, boundsOf, panned, paused, type TimeWindow, zoomed } from "../time/window.ts";
import { beginUs, endUs, newestUs } from "./now.ts";

export const view = signal<View>(DEFAULT_VIEW);
/** Parts of the address that could not be read. */
export const addressProblems = signal<readonly string[]>([]);

export const window_ = computed<TimeWindow>(() => view.value.window);

let written = "";
let writtenMs = 0;
let pending = 0;

/** Browsers refuse more than about seven changes of the address a second; dragging makes sixty. */
const WRITE_MS = 200;

function nowUs(): number {
  return Date.now() * 1000;
}

export function readAddress(): void {
  const text = window.location.hash.replace(/^#/, "");
  if (text === written && written !== "") return;
  window.clearTimeout(pending);
  pending = 0;
  const { view: read, problems } = parseAddress(text, nowUs());
  written = text;
  batch(() => {
    view.value = read;
    addressProblems.value = problems;
  });
}

/**
 * Changes the view and with it the address. A change of place (`visit`) is a step that the browser's back button
 * takes back; changes of time and selection replace the address, or the history would fill with zoom steps.
 */
export function show(change: Partial<View>, visit = false): void {
  view.value = { ...view.value, ...change };
  if (visit) {
    window.clearTimeout(pending);
    pending = 0;
    write((text) => window.history.pushState(null, "", `#${text}`));
    return;
  }
  const replace = (): void => {
    pending = 0;
    write((text) => window.history.replaceState(null, "", `#${text}`));
  };
  const restMs = writtenMs + WRITE_MS - performance.now();
  if (restMs <= 0) replace();
  else if (pending === 0) pending = window.setTimeout(replace, restMs);
}

function write(put: (text: string) => void): void {
  const text = formatAddress(view.value);
  if (text === written) return;
  written = text;
  writtenMs = performance.now();
  put(text);
}

/** The address of another view of the same things, for links. */
export function addressOf(change: Partial<View>): string {
  return `#${formatAddress({ ...view.value, ...change })}`;
}

export function followAddress(): void {
  readAddress();
  window.addEventListener("hashchange", readAddress);
  window.addEventListener("popstate", readAddress);
}

/** Where the window is at this moment. */
export function boundsNow(): Bounds {
  return boundsOf(view.value.window, newestUs.peek(), beginUs.peek());
}

/** Back to what is new, also from a replay, whose newest moment lies in the past. */
function goLive(spanUs: number): void {
  newestUs.value = Math.max(newestUs.peek(), endUs.peek());
  show({ window: { live: true, spanUs }, selected: null, play: null });
}

export function pauseOrGoOn(): void {
  const { window: current } = view.value;
  if (current.live) show({ window: paused(boundsNow()), play: null });
  else goLive(Math.min(current.toUs - current.fromUs, 3600e6));
}

/** Plays what is shown from its begin, at the pace at which it happened. */
export function playFromHere(): void {
  const shown = boundsNow();
  // Before the first reading there is nothing to play, and after the last one no moment to begin at.
  const beginsUs = beginUs.peek() ?? shown.fromUs;
  const fromUs = Math.round(shown.fromUs >= endUs.peek() ? beginsUs : Math.max(shown.fromUs, beginsUs));
  newestUs.value = fromUs;
  show({
    window: { live: true, spanUs: Math.max(1000, Math.min(shown.toUs - shown.fromUs, 3600e6)) },
    play: { speed: 1, fromUs },
    selected: null,
  });
}

export function zoom(factor: number, aroundUs: number): void {
  show({ window: zoomed(view.value.window, boundsNow(), factor, aroundUs) });
}

/** Colours by value, or by power of ten. */
export function otherScale(): void {
  show({ scale: view.peek().scale === "log" ? "linear" : "log" });
}

export function pan(fraction: number): void {
  show({ window: panned(boundsNow(), fraction) });
}

/** Live, everything, nothing selected. */
export function reset(): void {
  newestUs.value = Math.max(newestUs.peek(), endUs.peek());
  show({
    window: DEFAULT_VIEW.window,
    devices: [],
    selected: null,
    find: "",
    marker: null,
    aligned: null,
    play: null,
  });
}
