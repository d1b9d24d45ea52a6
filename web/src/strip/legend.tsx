/** What the colours mean: the ramp, and the marks of trouble where there is any. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Watch } from "../live/watch.ts";
import { health } from "../session/health.ts";
import { palette } from "../theme/theme.ts";
import { quantityText } from "../words/quantity.ts";

export function Legend({ scale, watch }: { scale: () => number; watch: Watch | null }) {
  const bar = useRef<HTMLCanvasElement>(null);
  const [end, setEnd] = useState("");
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
    const tell = (): void => setEnd(quantityText(scale(), watch?.unit.peek() ?? ""));
    tell();
    const timer = window.setInterval(tell, 500);
    return () => window.clearInterval(timer);
  }, [scale, watch]);
  const totals = health.value?.totals;
  const marks = [
    ["late", (totals?.late ?? 0) > 0], ["missed", (totals?.missed ?? 0) + (totals?.error ?? 0) > 0], ["skipped", (totals?.skipped ?? 0) > 0],
  ] as const;
  const words = { late: "late", missed: "missed", skipped: "not asked" };
  return (
    <>
      <div class="legend"><span>0</span><canvas ref={bar} role="img" aria-label="from 0, dark, to the end of the scale, bright" /><span>{end}</span></div>
      <div class="legend marks">
        {marks.filter(([, seen]) => seen).map(([name]) => <span key={name}><i class={name} />{words[name]}</span>)}
      </div>
    </>
  );
}
