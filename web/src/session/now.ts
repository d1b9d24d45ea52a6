/** The newest moment, the health of the newest interval, and whether the server is there. */

import { signal } from "@preact/signals";

/** The newest interval that is known, µs since the epoch: the right end of a live view. */
export const newestUs = signal(0);

/** The end of the recording, as far as the server has told. */
export const endUs = signal(0);

/** The begin of the recording; null: it has no rows, or nothing was told of it. */
export const beginUs = signal<number | null>(null);

export interface Heartbeat {
  readonly ok: number;
  readonly late: number;
  readonly missed: number;
  readonly error: number;
  readonly skipped: number;
  /** The interval that it is about. */
  readonly newestUs: number;
  /** Age of the interval when it arrived here, µs. */
  readonly delayUs: number;
  /** `performance.now()` when it arrived. */
  readonly arrivedMs: number;
}

export const heartbeat = signal<Heartbeat | null>(null);

export type Connection =
  /** Frames arrive, or would if there were any. */
  | "joined"
  /** The first attempt is under way. */
  | "joining"
  /** It was there and is gone; it is tried again and again. */
  | "away";

export const connection = signal<Connection>("joining");
/** How often the page has joined again after the server was gone. */
export const rejoined = signal(0);

/** Takes the newest moment; it never goes back, except when another recording is looked at. */
export function advanceTo(us: number): void {
  if (us > newestUs.peek()) newestUs.value = us;
}

/** What time it is at the collector, µs since the epoch, as far as heartbeats tell; goes on when nothing arrives. */
export function knownNowUs(): number {
  const beat = heartbeat.peek();
  return beat === null ? newestUs.peek() : beat.newestUs + beat.delayUs + (performance.now() - beat.arrivedMs) * 1000;
}
