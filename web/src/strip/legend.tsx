/** What the colours mean: the ramp, and the marks of trouble where there is any. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Watch } from "../live/watch.ts";
import { health } from "../session/health.ts";
import { otherScale, view } from "../session/view.ts";
import { palette } from "../theme/theme.ts";
import { quantityText } from "../words/quantity.ts";
import { LOG_DECADES } from "./ramp.ts";
import type { ScaleEnd } from "./window_of_strip.ts";

type Ends = readonly [end: string, least: string, beyond: string];

export function Legend({ scale, watch }: { scale: ScaleEnd; watch: Watch | null }) {
  const bar = useRef<HTMLCanvasElement>(null);
  const [[end, least, beyond], setEnds] = useState<Ends>(["", "0", ""]);
  const log = view.value.scale === "log";
  useEffect(() => {
    const context = bar.current?.getContext("2d");
    if (context === null || context === undefined) return;
    const { css } = palette.value;
    context.canvas.width = css.length;
    context.canvas.height = 1;
    css.forEach((colour, at) => {
      context.fillStyle = colour;
      context.fillRect(at, 0, 1, 1);
    });
  }, [palette.value]);
  useEffect(() => {
    const tell = (): void => {
      const [to, greatest, unit] = [scale(), scale.greatest(), watch?.unit.peek() ?? ""];
      const next: Ends = [
        quantityText(to, unit),
        log ? quantityText(to / 10 ** LOG_DECADES, unit) : "0",
        greatest > to * (1 + 1e-6) ? quantityText(greatest, unit) : "",
      ];
      setEnds((before) => (before.join() === next.join() ? before : next));
    };
    tell();
    const timer = window.setInterval(tell, 500);
    return () => window.clearInterval(timer);
  }, [scale, watch, log]);
  const totals = health.value?.totals;
  const marks = [
    ["late", (totals?.late ?? 0) > 0],
    ["missed", (totals?.missed ?? 0) + (totals?.error ?? 0) > 0],
    ["skipped", (totals?.skipped ?? 0) > 0],
  ] as const;
  const words = { late: "late", missed: "missed", skipped: "not asked" };
  return (
    <>
      <div class="legend">
        <span>{least}</span>
        <canvas ref={bar} role="img" aria-label={`from ${least} to ${end}${log ? ", each power of ten alike" : ""}`} />
        <span>{end}</span>
        <button type="button" class="tag" aria-pressed={log} title="each power of ten alike (l)" onClick={otherScale}>
          log
        </button>
      </div>
      <div class="legend marks">
        {beyond !== "" && (
          <span>
            <i class="beyond" />
            beyond, up to {beyond}
          </span>
        )}
        {marks
          .filter(([, seen]) => seen)
          .map(([name]) => (
            <span key={name}>
              <i class={name} />
              {words[name]}
            </span>
          ))}
      </div>
    </>
  );
}
