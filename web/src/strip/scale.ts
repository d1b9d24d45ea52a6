/** The end of the ramp: it grows at once with what is seen, and shrinks only when it has been far too long for a while. */

import { niceScale } from "../words/quantity.ts";
import type { Bins } from "./bins.ts";

/** How often the whole window is looked through. */
const LOOK_MS = 2000;
/** Below this share of the scale it shrinks. */
const SHRINK = 0.18;

export class Scale {
  private end = 0;
  private of: Bins | null = null;
  private newest = -1;
  private lookedMs = 0;

  /** The end of the scale for what is shown now; equal scales of two strips come from one `Scale`. */
  endFor(all: readonly (Bins | null)[], unit: string, nowMs: number): number {
    const [first] = all;
    if (first == null) return this.end || 1;
    const fresh = this.of !== first;
    if (fresh || nowMs - this.lookedMs > LOOK_MS) {
      this.of = first;
      this.lookedMs = nowMs;
      const seen = Math.max(0, ...all.map((bins) => bins?.greatest(0, Number.MAX_SAFE_INTEGER) ?? 0).filter((value) => !Number.isNaN(value)));
      if (seen > this.end || seen < this.end * SHRINK) this.end = niceScale(seen, unit);
    } else if (first.newestBin !== this.newest) {
      const seen = first.greatest(first.newestBin, first.newestBin);
      if (seen > this.end) this.end = niceScale(seen, unit);
    }
    this.newest = first.newestBin;
    return this.end || 1;
  }
}
