/**
 * The server's clock, which its answers tell: with it the page knows how long what arrives was under way, whatever the
 * clock of this machine shows.
 *
 * The server noted its time somewhere between the question and the answer. Taken for the middle it is wrong by at most
 * half the round trip, so the fastest answer of the last minutes counts.
 */

/** An answer is forgotten after so long: clocks drift apart. */
const KEPT_MS = 300_000;

interface Heard {
  /** The server's time less `performance.now()`, µs. */
  readonly offsetUs: number;
  readonly roundTripMs: number;
  readonly atMs: number;
}

let best: Heard | null = null;

/** Takes what an answer tells, a text of µs since 1970; null: it does not. */
export function heardClock(text: string | null, sentMs: number, receivedMs: number): void {
  const serverUs = Number(text ?? Number.NaN);
  if (Number.isNaN(serverUs)) return;
  const roundTripMs = receivedMs - sentMs;
  if (best !== null && roundTripMs > best.roundTripMs && receivedMs - best.atMs < KEPT_MS) return;
  best = { offsetUs: serverUs - ((sentMs + receivedMs) / 2) * 1000, roundTripMs, atMs: receivedMs };
}

/** How long ago, µs, the server's clock showed `us`; 0 as long as nobody knows. */
export function sinceServerUs(us: number, nowMs: number): number {
  return best === null ? 0 : Math.max(0, best.offsetUs + nowMs * 1000 - us);
}

/** Forgets everything. */
export function forgetClock(): void {
  best = null;
}
