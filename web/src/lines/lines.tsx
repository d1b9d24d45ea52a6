/** Line charts of the few selected devices: uPlot, fed from bins, painted by the page's painter. */

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Watch } from "../live/watch.ts";
import { onPaint, requestPaintIn } from "../paint/painter.ts";
import { textWidth } from "../paint/text_width.ts";
import { cursor } from "../session/cursor.ts";
import { connection, knownNowUs } from "../session/now.ts";
import { view } from "../session/view.ts";
import { type Inks, inks, lineInks } from "../theme/theme.ts";
import { axisClock } from "../time/moment.ts";
import type { Bounds } from "../time/window.ts";
import { ageWords, LOADING, NOT_KNOWN } from "../views/told.tsx";
import { quantityText } from "../words/quantity.ts";
import { lineColumn, timeColumn, yRange } from "./line_data.ts";

export interface LinesProps {
  readonly title: string;
  /** Names of the lines, where they stand above this chart alone. */
  readonly names?: readonly string[];
  readonly watch: Watch | null;
  /** Rows of the watch's model that are drawn, at most as many as there are inks. */
  readonly rows: readonly number[];
  readonly bounds: () => Bounds;
  readonly onSelect: (bounds: Bounds) => void;
}

/** Lines move more slowly than the strip: the eye follows them as well, and the strip keeps its time. */
const REPAINT_MS = 180;
/** So many charts are painted that often; more of them more seldom, so that together they cost no more. */
const CHARTS_USUAL = 4;
let charts = 0;
const HEIGHT_PX = 108;

/** Why lines are not whole yet; null where they are. */
function missingWords(watch: Watch | null): string | null {
  if (watch?.filled.value === true) return null;
  if (connection.value === "away") return NOT_KNOWN;
  const error = watch?.error.value ?? null;
  return error === null ? LOADING : `Not known: ${error}`;
}

export function Lines({ title, names = [], watch, rows, bounds, onSelect }: LinesProps) {
  const place = useRef<HTMLDivElement>(null);
  const newest = useRef<HTMLSpanElement>(null);
  const select = useRef(onSelect);
  select.current = onSelect;
  const colours = inks.value;
  const words = missingWords(watch);
  useEffect(() => {
    const parent = place.current;
    if (parent === null || colours === null || watch === null) return undefined;
    const plot = makePlot(parent, watch, rows, colours, (chosen) => select.current(chosen));
    // Its title says what it is and its newest value; the canvas itself tells nothing.
    plot.root.setAttribute("aria-hidden", "true");
    const sizes = new ResizeObserver(() => plot.setSize({ width: parent.clientWidth, height: HEIGHT_PX }));
    sizes.observe(parent);
    let seen = "";
    let paintedMs = 0;
    charts += 1;
    const stop = onPaint((nowMs) => {
      const { fromUs, toUs } = bounds();
      const key = `${watch.bins.revision} ${fromUs} ${toUs}`;
      if (key === seen) return;
      const restMs = REPAINT_MS * Math.max(1, charts / CHARTS_USUAL);
      if (nowMs - paintedMs < restMs) {
        requestPaintIn(restMs);
        return;
      }
      seen = key;
      paintedMs = nowMs;
      const first = Math.max(watch.bins.binOf(fromUs), watch.bins.newestBin - watch.bins.capacity + 1);
      const last = Math.min(watch.bins.binOf(toUs), watch.bins.newestBin);
      plot.setData(dataOf(watch, rows, first, last), false);
      plot.setScale("x", { min: fromUs / 1e6, max: toUs / 1e6 });
      if (newest.current !== null) newest.current.textContent = newestText(watch, rows, last);
    });
    return () => {
      charts -= 1;
      stop();
      sizes.disconnect();
      plot.destroy();
    };
  }, [watch, rows.join(), colours, bounds]);
  return (
    <figure class="chart" aria-label={names.length === 0 ? title : `${title}: ${names.join(", ")}`}>
      <h2>
        {title}{" "}
        {names.length > 0 && (
          <span class="keys">
            {names.map((name, at) => (
              <span key={name}>
                <i class={`ink${at}`} />
                {name}
              </span>
            ))}
          </span>
        )}{" "}
        <span ref={newest} />
      </h2>
      <div class="plot" ref={place}>
        {words !== null && (
          <p class="quiet unread" role="status">
            {words}
          </p>
        )}
      </div>
    </figure>
  );
}

function banded(watch: Watch, row: number): boolean {
  return watch.lows !== null && watch.request.model.seriesOfRow[row]?.length === 1;
}

function dataOf(watch: Watch, rows: readonly number[], first: number, last: number): uPlot.AlignedData {
  const data: (number[] | (number | null | undefined)[])[] = [timeColumn(watch.bins, first, last)];
  for (const row of rows) {
    data.push(lineColumn(watch.bins, row, first, last));
    if (banded(watch, row) && watch.lows !== null) data.push(lineColumn(watch.lows, row, first, last, -1));
  }
  return data as uPlot.AlignedData;
}

function newestText(watch: Watch, rows: readonly number[], last: number): string {
  const row = rows[0];
  if (row === undefined) return "";
  for (let bin = last; bin > last - 200; bin -= 1) {
    const value = watch.bins.value(bin, row);
    if (Number.isNaN(value)) continue;
    const age = view.peek().window.live ? ageWords((knownNowUs() - (bin + 1) * watch.bins.binUs) / 1000) : "";
    return quantityText(value, watch.unit.peek()) + (age === "" ? "" : `, ${age}`);
  }
  return "";
}

function makePlot(
  parent: HTMLElement,
  watch: Watch,
  rows: readonly number[],
  colours: Inks,
  onSelect: (bounds: Bounds) => void,
): uPlot {
  const strokes = lineInks(colours);
  const series: uPlot.Series[] = [{}];
  const bands: uPlot.Band[] = [];
  rows.forEach((row, at) => {
    const stroke = strokes[at % strokes.length] ?? colours.water;
    series.push({ stroke, width: 1, points: { show: false }, spanGaps: false });
    if (!banded(watch, row)) return;
    bands.push({ series: [series.length - 1, series.length], fill: `${stroke}33` });
    series.push({ stroke: `${stroke}66`, width: 1, points: { show: false }, spanGaps: false });
  });
  const font = `10px ${colours.font}`;
  return new uPlot(
    {
      width: Math.max(50, parent.clientWidth),
      height: HEIGHT_PX,
      legend: { show: false },
      padding: [6, 0, 0, 0],
      cursor: {
        sync: { key: "time" },
        drag: { x: true, y: false, setScale: false },
        points: { show: false },
        y: false,
      },
      scales: { x: { time: false, auto: false }, y: { range: (_, least, greatest) => yRange(least, greatest) } },
      axes: [
        {
          stroke: colours.ink3,
          font,
          size: 20,
          gap: 3,
          grid: { show: false },
          ticks: { show: false },
          space: 90,
          values: (plot, splits) =>
            splits.map((second) => (atEdge(plot, second) ? "" : axisClock(Math.round(second * 1e6), stepUs(splits)))),
        },
        {
          stroke: colours.ink3,
          font,
          size: (_, values) => axisWidth(font, values ?? []),
          gap: 6,
          grid: { stroke: colours.line, width: 1 },
          ticks: { show: false },
          space: 34,
          values: (_, splits) =>
            splits.map((value) =>
              !watch.filled.peek() && watch.bins.newestBin < 0
                ? ""
                : quantityText(value, watch.unit.peek(), (splits[1] ?? 1) - (splits[0] ?? 0)),
            ),
        },
      ],
      series,
      bands,
      hooks: {
        setSelect: [
          (plot) => {
            const { left, width } = plot.select;
            if (width < 3) return;
            onSelect({
              fromUs: Math.round(plot.posToVal(left, "x") * 1e6),
              toUs: Math.round(plot.posToVal(left + width, "x") * 1e6),
            });
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          },
        ],
        setCursor: [
          (plot) => {
            // Only the plot under the pointer speaks; the others follow it.
            if (plot.over.matches(":hover") !== true || plot.cursor.left == null || plot.cursor.left < 0) return;
            const row = watch.request.model.rows[rows[0] ?? 0];
            if (row !== undefined)
              cursor.value = { device: row.device, part: row.part, us: plot.posToVal(plot.cursor.left, "x") * 1e6 };
          },
        ],
      },
    },
    [[]] as unknown as uPlot.AlignedData,
    parent,
  );
}

/** A label there would be cut off, or run into those of the other axis. */
function atEdge(plot: uPlot, second: number): boolean {
  const x = plot.valToPos(second, "x");
  return x < 24 || x > plot.bbox.width / (window.devicePixelRatio || 1) - 24;
}

/** Whether the whole past has been read and holds no value. */
export function isEmpty(watch: Watch | null): boolean {
  return watch?.filled.value === true && Number.isNaN(watch.bins.greatest(0, Number.MAX_SAFE_INTEGER));
}

/** Where names of the strip end, so that charts stand below it in line; wider where labels need it. */
const AXIS_MIN_PX = 66;
const AXIS_GAP_PX = 12;

function axisWidth(font: string, values: readonly string[]): number {
  return Math.max(AXIS_MIN_PX, Math.ceil(Math.max(0, ...values.map((text) => textWidth(text, font)))) + AXIS_GAP_PX);
}

function stepUs(splits: readonly number[]): number {
  // A single label is told to the second.
  if (splits.length < 2) return 1e6;
  return ((splits[1] ?? 1) - (splits[0] ?? 0)) * 1e6;
}
