/**
 * The one painter of the page: everything that moves is drawn in one animation frame, only when something changed.
 *
 * It also keeps the counters that `meikyo bench live` and a doubting person read from `window.__meikyo`:
 *
 * | counter | meaning |
 * | --- | --- |
 * | `paints` | frames in which the strip got new readings |
 * | `lastPaintedInterval` | number of the newest interval on the screen: time / interval since the epoch |
 * | `lastPaintedUs` | its due instant, µs since the epoch |
 * | `busyMs` | main thread time spent on frames, messages and painting since the page was opened |
 * | `longestFrameMs` | the longest single piece of that, and the longest task that the browser reported |
 * | `receivedFrames` | live frames received |
 * | `droppedFrames` | live frames that the server left out because this viewer was slow |
 * | `firstPaintMs` | from opening the page to the first painted strip |
 * | `wholeMs` | from opening the page to the newest paint of a strip with all of its past |
 * | `wholeFromUs`, `wholeToUs` | the window of that paint |
 */

export interface Counters {
  paints: number;
  lastPaintedInterval: number;
  lastPaintedUs: number;
  busyMs: number;
  longestFrameMs: number;
  receivedFrames: number;
  droppedFrames: number;
  firstPaintMs: number | null;
  wholeMs: number;
  wholeFromUs: number;
  wholeToUs: number;
  /** Begins the measurement anew. */
  reset: () => void;
}

declare global {
  interface Window {
    __meikyo: Counters;
  }
}

const ZERO = {
  paints: 0,
  lastPaintedInterval: -1,
  lastPaintedUs: 0,
  busyMs: 0,
  longestFrameMs: 0,
  receivedFrames: 0,
  droppedFrames: 0,
};

export const counters: Counters = {
  ...ZERO,
  firstPaintMs: null,
  wholeMs: 0,
  wholeFromUs: 0,
  wholeToUs: 0,
  reset() {
    Object.assign(counters, ZERO);
  },
};

type Brush = (nowMs: number) => void;

const brushes = new Set<Brush>();
let scheduled = false;

/** Asks for a frame; any number of requests before it become one. */
export function requestPaint(): void {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(paintAll);
}

let later = 0;

/** Asks for a frame in a while, for what is drawn less often than frames come. */
export function requestPaintIn(ms: number): void {
  if (later !== 0) return;
  later = window.setTimeout(() => {
    later = 0;
    requestPaint();
  }, ms);
}

function paintAll(nowMs: number): void {
  scheduled = false;
  timed(() => {
    for (const brush of brushes) brush(nowMs);
  });
}

/** Adds what is called in every frame; it must look itself whether it has anything to do. Returns the removal. */
export function onPaint(brush: Brush): () => void {
  brushes.add(brush);
  requestPaint();
  return () => brushes.delete(brush);
}

/** Runs a piece of work and counts its time. */
export function timed(work: () => void): void {
  const begin = performance.now();
  try {
    work();
  } finally {
    const ms = performance.now() - begin;
    counters.busyMs += ms;
    if (ms > counters.longestFrameMs) counters.longestFrameMs = ms;
  }
}

/** Counts a strip that shows new readings. */
export function painted(newestUs: number, intervalUs: number): void {
  if (newestUs <= counters.lastPaintedUs) return;
  counters.paints += 1;
  counters.lastPaintedUs = newestUs;
  counters.lastPaintedInterval = Math.round(newestUs / intervalUs);
  if (counters.firstPaintMs === null) counters.firstPaintMs = performance.now();
}

/** Notes a strip that shows its window with all that the recording has of it. */
export function paintedWhole(fromUs: number, toUs: number): void {
  if (fromUs === counters.wholeFromUs && toUs === counters.wholeToUs) return;
  counters.wholeFromUs = fromUs;
  counters.wholeToUs = toUs;
  counters.wholeMs = performance.now();
}

/** Puts the counters where they are documented to be. */
export function exposeCounters(): void {
  window.__meikyo = counters;
  if (PerformanceObserver.supportedEntryTypes?.includes("longtask") === true) {
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) {
        if (entry.duration > counters.longestFrameMs) counters.longestFrameMs = entry.duration;
      }
    }).observe({ entryTypes: ["longtask"] });
  }
}
