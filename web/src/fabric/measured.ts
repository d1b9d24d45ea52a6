/** Means of what passed through every interface in the shown time, asked for anew as it moves. */

import { useEffect, useState } from "preact/hooks";
import type { Quantity } from "../address/address.ts";
import { poll } from "../api/poll.ts";
import { getRange, type Range } from "../api/range.ts";
import { boundsNow, view } from "../session/view.ts";
import type { Means } from "./loads.ts";

const REFRESH_MS = 1000;

export interface Measured {
  readonly means: Means;
  readonly error: string | null;
}

const NOTHING: Measured = { means: new Map(), error: null };

/** `wanted` is false while nobody looks. */
export function useMeasured(recording: string | null, traffic: Quantity | null, switches: readonly string[], wanted: boolean): Measured {
  const [measured, setMeasured] = useState(NOTHING);
  const { window: shown, selected } = view.value;
  const [table, column] = [traffic?.table, traffic?.column];
  useEffect(() => {
    if (recording === null || table === undefined || column === undefined || !wanted) return undefined;
    const ask = (stop: AbortSignal): Promise<Range> => {
      const { fromUs, toUs } = view.peek().selected ?? boundsNow();
      return getRange({ recording, table, column, fromUs, toUs, width: 1, labels: { device: switches }, values: ["mean"] }, stop);
    };
    const live = shown.live && selected === null;
    return poll(ask, live ? REFRESH_MS : null, ({ value, failed }) => {
      setMeasured({ means: value === null || failed !== null ? new Map() : meansOf(value), error: failed });
    });
  }, [recording, table, column, switches, wanted, shown, selected]);
  return measured;
}

/** A bin may begin before the window, so that there are two of them: the mean of what is there. */
function meansOf(range: Range): Means {
  const sums = new Map<number, { sum: number; bins: number }>();
  range.series.forEach((ordinal, at) => {
    const mean = range.mean[at];
    if (mean === undefined || Number.isNaN(mean)) return;
    const before = sums.get(ordinal) ?? { sum: 0, bins: 0 };
    sums.set(ordinal, { sum: before.sum + mean, bins: before.bins + 1 });
  });
  return new Map([...sums].map(([ordinal, { sum, bins }]) => [ordinal, sum / bins]));
}
