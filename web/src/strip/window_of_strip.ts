/** Where a strip begins and ends, and how bright its values are: what its pictures agree on. */

import { useCallback, useMemo, useRef } from "preact/hooks";
import type { Watch } from "../live/watch.ts";
import { requestPaintIn } from "../paint/painter.ts";
import { beginUs, newestUs } from "../session/now.ts";
import { view } from "../session/view.ts";
import { type Bounds, boundsOf } from "../time/window.ts";
import { LOOK_MS, Scale } from "./scale.ts";

/** The bounds of a strip: a live one ends with its newest bin, so that columns never straddle its edges. */
export function useBounds(watch: Watch | null): () => Bounds {
  return useCallback(() => {
    const { window: shown } = view.peek();
    if (!shown.live) return { fromUs: shown.fromUs, toUs: shown.toUs };
    const bins = watch?.bins;
    const endUs = bins === undefined || bins.newestBin < 0 ? newestUs.peek() : (bins.newestBin + 1) * bins.binUs;
    return boundsOf(shown, endUs, beginUs.peek());
  }, [watch]);
}

/** The end of a scale at this moment, and the greatest value that was seen. */
export interface ScaleEnd {
  (): number;
  readonly greatest: () => number;
}

/** One scale for all watches of a quantity; `key` names what it is of. */
export function useScale(key: string, ...watches: readonly (Watch | null)[]): ScaleEnd {
  const made = useRef({ key: "", scale: new Scale() });
  if (made.current.key !== key) made.current = { key, scale: new Scale() };
  const { scale } = made.current;
  return useMemo(() => {
    const end = (): number => {
      const found = scale.endFor(
        watches.map((watch) => watch?.bins ?? null),
        watches[0]?.unit.peek() ?? "",
        performance.now(),
        view.peek().scale,
      );
      // Of a finished recording no further readings come that would have it looked at again.
      if (scale.isBehind) requestPaintIn(LOOK_MS);
      return found;
    };
    return Object.assign(end, { greatest: () => scale.greatest });
  }, [scale, ...watches]);
}
