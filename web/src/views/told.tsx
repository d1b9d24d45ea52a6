/** Words for what is not there: not yet read, not answered, or answered a while ago. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Told } from "../api/poll.ts";
import { connection, endUs, knownNowUs } from "../session/now.ts";
import { intervalUs, recording } from "../session/recordings.ts";
import { MISSING, span } from "../words/quantity.ts";

export const LOADING = "Loading";
export const NOT_KNOWN = "Not known: the server does not answer";

/** A fact older than this has its age beside it. */
export const OLD_MS = 2000;

/** Why there is no answer, in words; null where there is one. */
export function unreadWords(told: Told<unknown>): string | null {
  if (told.value !== null) return null;
  if (told.failed === null && connection.value !== "away") return LOADING;
  return told.failed === null || connection.value === "away" ? NOT_KNOWN : `Not known: ${told.failed}`;
}

/** What stands in the place of a value: `read` where an answer came, else a sign of why none did. */
export function markOf(unread: string | null, read: string = MISSING): string {
  if (unread === null) return read;
  return unread === LOADING ? "…" : "?";
}

export function Unread({ told }: { told: Told<unknown> }) {
  const words = unreadWords(told);
  return words === null ? null : (
    <p class={words === LOADING ? "quiet unread" : "kin unread"} role="status">
      {words}
    </p>
  );
}

const passing = signal(0);
let watchers = 0;
let timer = 0;

/** Draws its caller anew twice a second, so that ages go on when nothing arrives any more. */
function usePassing(): void {
  useEffect(() => {
    watchers += 1;
    if (watchers === 1)
      timer = window.setInterval(() => {
        passing.value = performance.now();
      }, 500);
    return () => {
      watchers -= 1;
      if (watchers === 0) window.clearInterval(timer);
    };
  }, []);
  void passing.value;
}

/** How old what `atMs` tells is, where that is worth saying. */
export function AsOf({ atMs }: { atMs: number }) {
  usePassing();
  const text = atMs === 0 ? "" : ageWords(performance.now() - atMs);
  return text === "" ? null : <small class="age">{text}</small>;
}

/** How old a reading of the instant `us` is: of a recording that goes on before now, of a finished one before its end. */
export function ReadingAge({ us }: { us: number | null }) {
  usePassing();
  const running = recording.value?.running === true;
  const ageUs = us === null ? 0 : (running ? knownNowUs() : endUs.value) - us - intervalUs.value;
  const beforeEnd = ageUs > OLD_MS * 1000 ? `${span(Math.floor(ageUs / 1e6) * 1e6)} before the end` : "";
  const text = running ? ageWords(ageUs / 1000) : beforeEnd;
  return text === "" ? null : <small class="age">, {text}</small>;
}

/** `3 s ago`; empty for what is of the last two seconds. */
export function ageWords(ageMs: number): string {
  return ageMs <= OLD_MS ? "" : `${span(Math.floor(ageMs / 1000) * 1e6)} ago`;
}
