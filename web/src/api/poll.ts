/**
 * What a panel asks the server again and again. One question is under way at a time: the next is asked a while after
 * the answer to the one before, so that a slow server is never asked faster than it answers. Closing cancels.
 */

import { ApiError, errorText, wasAborted } from "./client.ts";

/** What a panel knows, and from when: not yet read, not answered and an old answer never look alike. */
export interface Told<T> {
  /** The newest answer; null: there was none yet. */
  readonly value: T | null;
  /** When it was asked for, `performance.now()`: nothing in it is newer. */
  readonly atMs: number;
  /** Why the newest question has no answer; null: it has one, or it is still under way. */
  readonly failed: string | null;
}

export const NOT_READ: Told<never> = { value: null, atMs: 0, failed: null };

/** A question that has no answer for so long is given up and asked again. */
const PATIENCE_MS = 20_000;

/** `everyMs` null: asked once, and again only after a failure. */
export function poll<T>(
  ask: (stop: AbortSignal) => Promise<T>,
  everyMs: number | null,
  take: (told: Told<T>) => void,
): () => void {
  const closed = new AbortController();
  let told: Told<T> = NOT_READ;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const again = async (): Promise<void> => {
    const atMs = performance.now();
    const late = new AbortController();
    const patience = setTimeout(() => late.abort(), PATIENCE_MS);
    try {
      told = { value: await ask(AbortSignal.any([closed.signal, late.signal])), atMs, failed: null };
    } catch (error) {
      if (closed.signal.aborted) return;
      const why = wasAborted(error)
        ? new ApiError(0, `the server has not answered for ${PATIENCE_MS / 1000} s`, "")
        : error;
      told = { ...told, failed: errorText(why) };
    } finally {
      clearTimeout(patience);
    }
    if (closed.signal.aborted) return;
    take(told);
    if (everyMs !== null || told.failed !== null) timer = setTimeout(() => void again(), everyMs ?? RETRY_MS);
  };
  void again();
  return () => {
    closed.abort();
    clearTimeout(timer);
  };
}

/** A question that is asked once is asked again so long after it failed. */
const RETRY_MS = 2000;
