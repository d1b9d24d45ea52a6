/** Means of what every interface sent over the shown time, asked for anew as it moves. */

import { useEffect, useState } from "preact/hooks";
import { getRange } from "../api/range.ts";
import { errorText, wasAborted } from "../api/client.ts";
import { boundsNow, view } from "../session/view.ts";
import type { Means } from "./loads.ts";

const REFRESH_MS = 1000;

export interface Measured {
  readonly means: Means;
  readonly error: string | null;
}

const NOTHING: Measured = { means: new Map(), error: null };

/** `wanted` is false while nobody looks. */
export function useMeasured(recording: string | null, switches: readonly string[], wanted: boolean): Measured {
  const [measured, setMeasured] = useState(NOTHING);
  const { window: shown, selected } = view.value;
  useEffect(() => {
    if (recording === null || !wanted) return undefined;
    const stop = new AbortController();
    const ask = (): void => {
      const { fromUs, toUs } = view.peek().selected ?? boundsNow();
      getRange({ recording, table: "interfaces", column: "out_octets", fromUs, toUs, width: 1, labels: { device: switches }, values: ["mean"] }, stop.signal).then(
        (range) => {
          // A bin may begin before the window, so that there are two of them: the mean of what is there.
          const sums = new Map<number, { sum: number; bins: number }>();
          range.series.forEach((ordinal, at) => {
            const mean = range.mean[at];
            if (mean === undefined || Number.isNaN(mean)) return;
            const before = sums.get(ordinal) ?? { sum: 0, bins: 0 };
            sums.set(ordinal, { sum: before.sum + mean, bins: before.bins + 1 });
          });
          setMeasured({ means: new Map([...sums].map(([ordinal, { sum, bins }]) => [ordinal, sum / bins])), error: null });
        },
        (error: unknown) => { if (!wasAborted(error)) setMeasured({ means: new Map(), error: errorText(error) }); },
      );
    };
    ask();
    const timer = shown.live && selected === null ? window.setInterval(ask, REFRESH_MS) : 0;
    return () => {
      stop.abort();
      window.clearInterval(timer);
    };
  }, [recording, switches, wanted, shown, selected]);
  return measured;
}
