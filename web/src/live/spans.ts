/** Which time has been read: what lies outside is not yet known, which is something else than not recorded. */

import type { Bounds } from "../time/window.ts";

export class Spans {
  /** In order, none touches another. */
  private held: Bounds[] = [];

  add(fromUs: number, toUs: number): void {
    if (!(toUs > fromUs)) return;
    const apart = this.held.filter((one) => one.toUs < fromUs || one.fromUs > toUs);
    const met = this.held.filter((one) => one.toUs >= fromUs && one.fromUs <= toUs);
    const whole = {
      fromUs: Math.min(fromUs, ...met.map((one) => one.fromUs)),
      toUs: Math.max(toUs, ...met.map((one) => one.toUs)),
    };
    this.held = [...apart, whole].sort((left, right) => left.fromUs - right.fromUs);
  }

  /** What of a time is missing, in order. */
  gaps(fromUs: number, toUs: number): Bounds[] {
    const missing: Bounds[] = [];
    let at = fromUs;
    for (const one of this.held) {
      if (one.toUs <= at) continue;
      if (one.fromUs >= toUs) break;
      if (one.fromUs > at) missing.push({ fromUs: at, toUs: one.fromUs });
      at = one.toUs;
    }
    if (at < toUs) missing.push({ fromUs: at, toUs });
    return missing;
  }

  has(us: number): boolean {
    return this.held.some((one) => us >= one.fromUs && us < one.toUs);
  }

  /** Forgets what lies before; a live page is open for days. */
  forgetBefore(us: number): void {
    if ((this.held[0]?.toUs ?? us) < us) this.held = this.held.filter((one) => one.toUs >= us);
  }
}
