/** The heat strip: rows are devices or series, time runs to the right, the newest at the right end. */

import { useMemo, useRef } from "preact/hooks";
import { Canvas, type Surface } from "../paint/canvas.tsx";
import { painted, paintedWhole } from "../paint/painter.ts";
import { fittedEnd, textWidth } from "../paint/text_width.ts";
import { cursor } from "../session/cursor.ts";
import { connection, newestUs } from "../session/now.ts";
import { intervalUs } from "../session/recordings.ts";
import { view } from "../session/view.ts";
import { type Inks, inks, palette } from "../theme/theme.ts";
import { axisClock, ticks } from "../time/moment.ts";
import type { Bounds } from "../time/window.ts";
import { LOADING, NOT_KNOWN } from "../views/told.tsx";
import { fit } from "../words/fit.ts";
import { span } from "../words/quantity.ts";
import type { Bins } from "./bins.ts";
import { labelPlaces, type Row, type RowModel } from "./rows.ts";
import { type Place, StripPicture } from "./strip_picture.ts";
import { drawUnread } from "./unread.ts";

/** Room for the names of rows, at least and at most; between them as much as they need. */
const LABELS_MIN_PX = 66;
const LABELS_MAX_PX = 170;
const LABELS_GAP_PX = 14;
/** Of more rows some are measured: names of one cluster are alike. */
const LABELS_MEASURED = 400;
export const AXIS_PX = 18;

export interface Rectangle {
  readonly firstRow: number;
  readonly lastRow: number;
  readonly fromUs: number;
  readonly toUs: number;
}

export interface StripProps {
  readonly label: string;
  readonly bins: Bins | null;
  readonly model: RowModel;
  readonly height: number;
  /** The value that has the brightest colour. */
  readonly scale: () => number;
  /** Where the strip begins and ends, at this moment. */
  readonly bounds: () => Bounds;
  readonly live: boolean;
  readonly selectedRows: ReadonlySet<number>;
  readonly selected: Bounds | null;
  /** A moment that is marked, and what it is called. */
  readonly marker?: { readonly us: number; readonly name: string } | null;
  readonly onSelect: (rectangle: Rectangle) => void;
  readonly onPick: (row: number, us: number, add: boolean) => void;
  readonly onZoom: (factor: number, aroundUs: number) => void;
  readonly onPan: (fraction: number) => void;
  readonly onKey?: (event: KeyboardEvent) => void;
  /** This strip is the one whose paints are counted. */
  readonly counted?: boolean;
  /** What of a time is not read yet. */
  readonly unread?: ((bounds: Bounds) => readonly Bounds[]) | undefined;
  /** Whether `bins` hold all that the recording has between `bounds`. */
  readonly whole?: () => boolean;
  readonly onPainted?: () => void;
}

interface Drag {
  readonly x: number;
  readonly y: number;
  toX: number;
  toY: number;
}

/** A drag shorter than this is a click. */
const CLICK_PX = 4;

export function Strip(props: StripProps) {
  const picture = useRef(new StripPicture());
  const drag = useRef<Drag | null>(null);
  const drawn = useRef("");
  const font = `10px ${inks.value?.font ?? "sans-serif"}`;
  const labelsPx = useMemo(() => labelsWidth(props.model.rows, font), [props.model, font]);
  const place = (width: number, height: number): Place => ({
    left: labelsPx,
    top: 0,
    width: Math.max(1, width - labelsPx),
    height: Math.max(1, height - AXIS_PX),
  });
  const size = useRef({ width: 1, height: 1 });
  const timeAt = (x: number): number => {
    const { left, width } = place(size.current.width, size.current.height);
    const { fromUs, toUs } = props.bounds();
    return fromUs + Math.min(1, Math.max(0, (x - left) / width)) * (toUs - fromUs);
  };
  const rowAt = (y: number): number => {
    const { height } = place(size.current.width, size.current.height);
    return Math.min(props.model.rows.length - 1, Math.max(0, Math.floor((y / height) * props.model.rows.length)));
  };

  const draw = ({ context, width, height }: Surface, fresh: boolean): void => {
    size.current = { width, height };
    const colours = inks.value;
    if (colours === null) return;
    const bounds = props.bounds();
    const at = cursor.value;
    const gaps = props.bins === null ? [bounds] : (props.unread?.(bounds) ?? []);
    const words = connection.value === "away" ? NOT_KNOWN : LOADING;
    const key = [
      gaps.map((gap) => `${gap.fromUs} ${gap.toUs}`).join(),
      words,
      props.bins?.revision,
      props.whole?.(),
      bounds.fromUs,
      bounds.toUs,
      props.scale(),
      view.peek().scale,
      palette.value.empty,
      at?.device,
      at?.part,
      at?.us,
      drag.current?.toX,
      drag.current?.toY,
      props.selected?.fromUs,
      props.selected?.toUs,
      props.marker?.us,
      props.selectedRows.size,
      [...props.selectedRows].slice(0, 64).join(),
      props.model.rows.length,
    ].join();
    if (!fresh && key === drawn.current && props.bins === lastBins.current) return;
    drawn.current = key;
    context.canvas.ariaBusy = String(gaps.length > 0);
    lastBins.current = props.bins;
    const area = place(width, height);
    context.clearRect(0, 0, width, height);
    if (props.bins !== null) {
      const lines = Math.round(area.height * (window.devicePixelRatio || 1));
      picture.current.refresh(props.bins, palette.value, props.scale(), view.peek().scale === "log", lines);
      picture.current.draw(context, area, bounds.fromUs, bounds.toUs);
    }
    drawUnread(context, area, bounds, gaps, words, colours);
    drawRows(context, area, props, colours);
    drawAxis(context, area, bounds, props.live, colours);
    drawMarks(context, area, bounds, props, colours, drag.current);
    if (props.counted === true && props.bins !== null && props.bins.newestBin >= 0) {
      painted(Math.min(bounds.toUs, newestUs.peek(), (props.bins.newestBin + 1) * props.bins.binUs), intervalUs.peek());
    }
    if (props.counted === true && props.whole?.() === true) paintedWhole(bounds.fromUs, bounds.toUs);
    props.onPainted?.();
  };
  const lastBins = useRef<Bins | null>(null);

  const pointer = (kind: string, event: PointerEvent, x: number, y: number): void => {
    if (kind === "leave") {
      cursor.value = null;
      return;
    }
    const row = props.model.rows[rowAt(y)];
    if (kind === "down" && event.button === 0) drag.current = { x, y, toX: x, toY: y };
    if (kind === "cancel") drag.current = null;
    if (row !== undefined && x >= labelsPx) cursor.value = { device: row.device, part: row.part, us: timeAt(x) };
    if (drag.current === null) return;
    drag.current.toX = x;
    drag.current.toY = y;
    if (kind !== "up") return;
    const { x: fromX, y: fromY } = drag.current;
    drag.current = null;
    if (Math.abs(x - fromX) < CLICK_PX && Math.abs(y - fromY) < CLICK_PX) {
      props.onPick(rowAt(y), timeAt(x), event.ctrlKey || event.metaKey || event.shiftKey);
      return;
    }
    props.onSelect({
      firstRow: rowAt(Math.min(y, fromY)),
      lastRow: rowAt(Math.max(y, fromY)),
      fromUs: timeAt(Math.min(x, fromX)),
      toUs: timeAt(Math.max(x, fromX)),
    });
  };

  return (
    <Canvas
      class="strip"
      label={`${props.label}. Arrow keys move over rows and time, Enter selects.`}
      height={props.height}
      draw={draw}
      onPointer={pointer}
      onWheel={(event, x) => {
        if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
          props.onPan(Math.sign(event.deltaX + event.deltaY) * 0.1);
        else props.onZoom(event.deltaY > 0 ? 1.25 : 0.8, timeAt(x));
      }}
      {...(props.onKey === undefined ? {} : { onKey: props.onKey })}
    />
  );
}

function drawRows(context: CanvasRenderingContext2D, area: Place, props: StripProps, colours: Inks): void {
  const { rows, groups } = props.model;
  if (rows.length === 0) return;
  const rowHeight = area.height / rows.length;
  context.fillStyle = colours.ground;
  if (rowHeight >= 4) {
    for (let row = 1; row < rows.length; row += 1)
      context.fillRect(area.left, Math.round(row * rowHeight * 2) / 2 - 0.25, area.width, 0.5);
  }
  for (const { first } of groups.slice(1))
    context.fillRect(area.left, Math.round(first * rowHeight) - 1, area.width, 2);
  context.fillStyle = colours.ink3;
  context.font = `10px ${colours.font}`;
  context.textAlign = "right";
  context.textBaseline = "middle";
  drawLabels(context, rows, area.left, area.height);
}

/** Names of rows beside a strip, as many as there is room for. */
export function drawLabels(
  context: CanvasRenderingContext2D,
  rows: readonly Row[],
  left: number,
  height: number,
): void {
  for (const { row, y } of labelPlaces(rows.length, height)) {
    context.fillText(
      fittedEnd(fit(rowLabel(rows[row])), left - LABELS_GAP_PX / 2, (text) => context.measureText(text).width),
      left - LABELS_GAP_PX / 2,
      y,
    );
  }
}

/** How much room the names of rows need. */
export function labelsWidth(rows: readonly Row[], font: string): number {
  const step = Math.ceil(rows.length / LABELS_MEASURED);
  let widest = 0;
  for (let row = 0; row < rows.length; row += Math.max(1, step))
    widest = Math.max(widest, textWidth(fit(rowLabel(rows[row])), font));
  return Math.min(LABELS_MAX_PX, Math.max(LABELS_MIN_PX, Math.ceil(widest) + LABELS_GAP_PX));
}

/** A series is told by its device and its part: `node001 eth0`, whose number alone a switch may have, too. */
function rowLabel(row: Row | undefined): string {
  if (row === undefined) return "";
  return row.part === "" || row.name === row.part ? row.name : `${row.device} ${row.part}`;
}

function drawAxis(context: CanvasRenderingContext2D, area: Place, bounds: Bounds, live: boolean, colours: Inks): void {
  context.fillStyle = colours.ink3;
  context.font = `10px ${colours.font}`;
  context.textBaseline = "alphabetic";
  const y = area.top + area.height + AXIS_PX - 5;
  const spanUs = bounds.toUs - bounds.fromUs;
  if (live) {
    for (let part = 0; part <= 4; part += 1) {
      const inside = part === 4 ? "right" : "center";
      context.textAlign = part === 0 ? "left" : inside;
      const text = part === 4 ? "now" : `\u2212${span(spanUs * (1 - part / 4))}`;
      context.fillText(text, area.left + (area.width * part) / 4, y);
    }
    return;
  }
  const { stepUs, at } = ticks(bounds.fromUs, bounds.toUs, Math.max(2, Math.floor(area.width / 110)));
  context.textAlign = "center";
  for (const tick of at) {
    const x = area.left + ((tick - bounds.fromUs) / spanUs) * area.width;
    if (x > area.left + 24 && x < area.left + area.width - 24) context.fillText(axisClock(tick, stepUs), x, y);
  }
}

function drawMarks(
  context: CanvasRenderingContext2D,
  area: Place,
  bounds: Bounds,
  props: StripProps,
  colours: Inks,
  drag: Drag | null,
): void {
  const rowHeight = area.height / Math.max(1, props.model.rows.length);
  const xOf = (us: number): number => area.left + ((us - bounds.fromUs) / (bounds.toUs - bounds.fromUs)) * area.width;
  context.lineWidth = 1;
  const { selectedRows, selected } = props;
  if (selected !== null || selectedRows.size > 0) {
    const rows =
      selectedRows.size > 0 ? [...selectedRows].sort((left, right) => left - right) : [0, props.model.rows.length - 1];
    const [left, right] =
      selected === null
        ? [area.left, area.left + area.width]
        : [Math.max(area.left, xOf(selected.fromUs)), Math.min(area.left + area.width, xOf(selected.toUs))];
    context.strokeStyle = colours.ink;
    for (const [first, last] of selectedRows.size > 0 ? runs(rows) : [[0, props.model.rows.length - 1] as const]) {
      if (right > left)
        context.strokeRect(
          left + 0.5,
          first * rowHeight + 0.5,
          right - left - 1,
          Math.max(2, (last - first + 1) * rowHeight - 1),
        );
    }
  }
  const { marker } = props;
  if (marker != null && marker.us >= bounds.fromUs && marker.us <= bounds.toUs) {
    context.fillStyle = colours.ink;
    context.fillRect(Math.round(xOf(marker.us)), area.top, 1, area.height);
    context.font = `10px ${colours.font}`;
    context.textAlign = "left";
    context.textBaseline = "top";
    context.fillText(fit(marker.name), xOf(marker.us) + 4, area.top + 3);
  }
  const at = cursor.value;
  const row =
    at === null
      ? -1
      : props.model.rows.findIndex(
          ({ device, part }) => device === at.device && (part === at.part || part === "" || at.part === ""),
        );
  if (at !== null && drag === null) {
    context.fillStyle = colours.ink;
    context.globalAlpha = 0.4;
    if (at.us !== null && at.us >= bounds.fromUs && at.us <= bounds.toUs)
      context.fillRect(Math.round(xOf(at.us)), area.top, 1, area.height);
    context.globalAlpha = 1;
    context.strokeStyle = colours.ink2;
    if (row >= 0)
      context.strokeRect(area.left + 0.5, row * rowHeight - 0.5, area.width - 1, Math.max(3, rowHeight + 1));
  }
  if (drag !== null) {
    context.strokeStyle = colours.ink;
    context.strokeRect(
      Math.min(drag.x, drag.toX) + 0.5,
      Math.min(drag.y, drag.toY) + 0.5,
      Math.abs(drag.toX - drag.x),
      Math.abs(drag.toY - drag.y),
    );
  }
}

/** Runs of neighbouring rows. */
function runs(sorted: readonly number[]): (readonly [number, number])[] {
  const found: [number, number][] = [];
  for (const row of sorted) {
    const last = found.at(-1);
    if (last !== undefined && last[1] === row - 1) last[1] = row;
    else found.push([row, row]);
  }
  return found;
}
