/** Means of what passed through every interface in the shown time, asked for anew as it moves. */

import { useEffect, useState } from "preact/hooks";
import type { Quantity } from "../address/address.ts";
import { NOT_READ, poll, type Told } from "../api/poll.ts";
import { getRange, type Range } from "../api/range.ts";
import { boundsNow, view } from "../session/view.ts";
import type { Means } from "./loads.ts";

const REFRESH_MS = 1000;

/** What was told of the shown time; of another one it is `NOT_READ`. `wanted` is false while nobody looks. */
export function useMeasured(
  recording: string | null,
  traffic: Quantity | null,
  switches: readonly string[],
  wanted: boolean,
): Told<Means> {
  const { window: shown, selected } = view.value;
  const key = JSON.stringify([recording, traffic, switches, shown, selected]);
  const [measured, setMeasured] = useState<{ key: string; told: Told<Means> }>({ key, told: NOT_READ });
  useEffect(() => {
    if (recording === null || traffic === null || !wanted) return undefined;
    const ask = async (stop: AbortSignal): Promise<Means> => {
      const { fromUs, toUs } = view.peek().selected ?? boundsNow();
      return meansOf(
        await getRange(
          { recording, ...traffic, fromUs, toUs, width: 1, labels: { device: switches }, values: ["mean"] },
          stop,
        ),
      );
    };
    const live = shown.live && selected === null;
    return poll(ask, live ? REFRESH_MS : null, (told) => setMeasured({ key, told }));
  }, [key, wanted]);
  return measured.key === key && wanted ? measured.told : NOT_READ;
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
