/** The devices with most in the shown time, as many as there is room for below the other facts. */

import { useEffect, useState } from "preact/hooks";
import { type Ranked, rankedDevices } from "../lines/busiest.ts";
import type { Watch } from "../live/watch.ts";
import { onPaint } from "../paint/painter.ts";
import { useSize } from "../paint/size.ts";
import { show, view } from "../session/view.ts";
import type { Bounds } from "../time/window.ts";
import { columnWords } from "../words/names.ts";
import { quantityText } from "../words/quantity.ts";

const ROW_PX = 27;
/** The card's title and the heads of its columns. */
const HEAD_PX = 84;
const ROWS_MIN = 4;
const ROWS_MAX = 40;
/** Ranking ten thousand devices takes a frame's time. */
const EVERY_MS = 1000;

export function BusiestCard({ watch, bounds }: { watch: Watch | null; bounds: () => Bounds }) {
  const [room, , height] = useSize<HTMLDivElement>();
  const [ranked, setRanked] = useState<readonly Ranked[]>([]);
  const rows = Math.min(ROWS_MAX, Math.floor((height - HEAD_PX) / ROW_PX));
  const selected = view.value.selected;
  useEffect(() => {
    let [seen, paintedMs] = ["", Number.NEGATIVE_INFINITY];
    return onPaint((nowMs) => {
      if (watch === null || rows < ROWS_MIN || !watch.filled.peek()) return;
      const { fromUs, toUs } = selected ?? bounds();
      const key = `${watch.bins.revision} ${fromUs} ${toUs}`;
      if (key === seen || nowMs - paintedMs < EVERY_MS) return;
      [seen, paintedMs] = [key, nowMs];
      const next = rankedDevices(watch.bins, watch.request.model, fromUs, toUs).slice(0, rows);
      setRanked((before) => (JSON.stringify(before) === JSON.stringify(next) ? before : next));
    });
  }, [watch, bounds, rows, selected]);
  const fits = watch !== null && rows >= ROWS_MIN && ranked.length > 0;
  return (
    <div class="rest" ref={room}>
      {fits && (
        <section class="card" aria-label="Busiest">
          <h2>
            Most {columnWords(watch.request.table, watch.request.column)}{" "}
            <small>{selected === null ? "in the shown time" : "in the selection"}</small>
          </h2>
          <table aria-label="Devices with most">
            <thead>
              <tr>
                <th scope="col">device</th>
                <th scope="col" class="number">
                  mean
                </th>
                <th scope="col" class="number">
                  peak
                </th>
              </tr>
            </thead>
            <tbody>
              {ranked.slice(0, rows).map(({ device, mean, peak }) => (
                <tr key={device}>
                  <td>
                    <button type="button" class="plain" onClick={() => show({ devices: [device] })}>
                      {device}
                    </button>
                  </td>
                  <td class="number">{quantityText(mean, watch.unit.value)}</td>
                  <td class="number">{quantityText(peak, watch.unit.value)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </div>
  );
}
