/**
 * Second by sub-second offset (FlameScope; B. Gregg, M. Spier 2018): a column is a second, a row 20 ms of it. Work that
 * comes once a second is a line, a stall a dark patch. Drag over any time to choose it.
 */

import { useRef } from "preact/hooks";
import { Canvas, type Surface } from "../paint/canvas.tsx";
import { requestPaint } from "../paint/painter.ts";
import { RAMP_STEPS, shareOf } from "../strip/ramp.ts";
import { AXIS_PX } from "../strip/strip.tsx";
import { drawUnread } from "../strip/unread.ts";
import { type Inks, inks, palette } from "../theme/theme.ts";
import { axisClock, clock, ticks } from "../time/moment.ts";
import type { Bounds } from "../time/window.ts";
import { count } from "../words/quantity.ts";
import { brushed, type Cell, cellAt, cellBegin, type HeatPicture } from "./heat.ts";

const LEFT_PX = 66;
const SECOND_US = 1_000_000;

export interface HeatMapProps {
  readonly label: string;
  readonly picture: HeatPicture | null;
  /** What stands where nothing was read. */
  readonly words: string;
  /** The picture is of another time or place, until this one is read. */
  readonly stale: boolean;
  readonly height: number;
  readonly log: boolean;
  readonly selected: Bounds | null;
  readonly than: Bounds | null;
  /** A time was chosen; with Shift it is to be compared with. */
  readonly onSelect: (bounds: Bounds, compare: boolean) => void;
  /** What the pointer or the keyboard is at, in words. */
  readonly onTold: (words: string) => void;
  readonly onZoom: (factor: number, aroundUs: number) => void;
  readonly onPan: (fraction: number) => void;
}

export function HeatMap(props: HeatMapProps) {
  const { picture } = props;
  const size = useRef({ width: 1, height: 1 });
  const at = useRef<Cell | null>(null);
  /** Where a choice began, by pointer or keyboard. */
  const begun = useRef<Cell | null>(null);
  const texture = useRef<{ of: HeatPicture | null; key: string; canvas: HTMLCanvasElement }>({
    of: null,
    key: "",
    canvas: document.createElement("canvas"),
  });

  const area = (): { left: number; top: number; width: number; height: number } => ({
    left: LEFT_PX,
    top: 0,
    width: Math.max(1, size.current.width - LEFT_PX),
    height: Math.max(1, size.current.height - AXIS_PX),
  });
  const cellOf = (x: number, y: number): Cell | null => {
    if (picture === null) return null;
    const { left, width, height } = area();
    const within = (part: number, count: number): number => Math.min(count - 1, Math.max(0, Math.floor(part * count)));
    return { column: within((x - left) / width, picture.columns), row: within(1 - y / height, picture.rows) };
  };
  const tell = (cell: Cell | null): void => {
    if (cell === null || picture === null) {
      props.onTold("");
      return;
    }
    const value = picture.values[cell.column * picture.rows + cell.row] ?? 0;
    const begin = cellBegin(picture, cell);
    const several =
      picture.secondsPerColumn > 1 ? `, and as far into the ${picture.secondsPerColumn - 1} s behind it` : "";
    props.onTold(`${clock(begin, 2)}${several}: ${count(value)} ${value === 1 ? "sample" : "samples"}`);
  };

  const draw = ({ context, width, height }: Surface): void => {
    size.current = { width, height };
    const colours = inks.value;
    if (colours === null) return;
    const place = area();
    context.clearRect(0, 0, width, height);
    if (picture === null || picture.columns === 0) {
      drawUnread(context, place, { fromUs: 0, toUs: 1 }, [{ fromUs: 0, toUs: 1 }], props.words, colours);
      return;
    }
    const key = `${palette.value.empty} ${props.log}`;
    if (texture.current.of !== picture || texture.current.key !== key) {
      texture.current = { of: picture, key, canvas: texture.current.canvas };
      paintTexture(texture.current.canvas, picture, props.log);
    }
    context.imageSmoothingEnabled = false;
    context.drawImage(texture.current.canvas, place.left, place.top, place.width, place.height);
    drawAxes(context, place, picture, colours);
    if (props.stale) drawUnread(context, place, { fromUs: 0, toUs: 1 }, [{ fromUs: 0, toUs: 1 }], props.words, colours);
    if (props.than !== null) outline(context, place, picture, props.than, colours.fuji);
    if (props.selected !== null) outline(context, place, picture, props.selected, colours.ink);
    if (at.current !== null && begun.current !== null)
      outline(context, place, picture, brushed(picture, begun.current, at.current), colours.water);
    else if (at.current !== null)
      outline(context, place, picture, brushed(picture, at.current, at.current), colours.water);
  };

  const finish = (cell: Cell, compare: boolean): void => {
    if (picture === null || begun.current === null) return;
    const bounds = brushed(picture, begun.current, cell);
    begun.current = null;
    props.onSelect(bounds, compare);
  };
  const pointer = (kind: string, event: PointerEvent, x: number, y: number): void => {
    const cell = cellOf(x, y);
    if (kind === "leave" || kind === "cancel") {
      if (kind === "cancel") begun.current = null;
      at.current = begun.current === null ? null : at.current;
      tell(at.current);
    } else if (cell !== null) {
      at.current = cell;
      tell(cell);
      if (kind === "down" && event.button === 0) begun.current = cell;
      if (kind === "up") finish(cell, event.shiftKey);
    }
    requestPaint();
  };
  const keys = (event: KeyboardEvent): void => {
    if (picture === null) return;
    const now = at.current ?? { column: picture.columns - 1, row: 0 };
    const go = (column: number, row: number): void => {
      // Over the end of a second the next one begins.
      const over = Math.floor(row / picture.rows);
      const to = column + over;
      if (to < 0 || to >= picture.columns) return;
      at.current = { column: to, row: row - over * picture.rows };
    };
    if (event.key === "ArrowUp") go(now.column, now.row + 1);
    else if (event.key === "ArrowDown") go(now.column, now.row - 1);
    else if (event.key === "ArrowLeft") go(now.column - 1, now.row);
    else if (event.key === "ArrowRight") go(now.column + 1, now.row);
    else if (event.key === "Enter" && begun.current === null) begun.current = now;
    else if (event.key === "Enter") finish(now, event.shiftKey);
    else if (event.key === "Escape" && begun.current !== null) begun.current = null;
    else return;
    at.current ??= now;
    tell(at.current);
    requestPaint();
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <Canvas
      class="strip"
      label={`${props.label}. Arrow keys move over seconds and parts of them; Enter begins a choice, and Enter again ends it, with Shift as the time to compare with.`}
      height={props.height}
      draw={draw}
      onPointer={pointer}
      onKey={keys}
      onWheel={(event, x) => {
        const { left, width } = area();
        if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
          props.onPan(Math.sign(event.deltaX + event.deltaY) * 0.1);
        else if (picture !== null)
          props.onZoom(
            event.deltaY > 0 ? 1.25 : 0.8,
            picture.fromUs + ((x - left) / width) * picture.columns * picture.secondsPerColumn * SECOND_US,
          );
      }}
    />
  );
}

/** One pixel a cell; the end of a second is at the top. */
function paintTexture(canvas: HTMLCanvasElement, picture: HeatPicture, log: boolean): void {
  canvas.width = picture.columns;
  canvas.height = picture.rows;
  const context = canvas.getContext("2d");
  if (context === null) return;
  const image = new ImageData(picture.columns, picture.rows);
  const pixels = new Uint32Array(image.data.buffer);
  const { ramp, empty } = palette.value;
  for (let column = 0; column < picture.columns; column += 1) {
    for (let row = 0; row < picture.rows; row += 1) {
      const value = picture.values[column * picture.rows + row] ?? 0;
      const step = Math.min(
        RAMP_STEPS - 1,
        Math.max(0, Math.floor(shareOf(value, Math.max(1, picture.greatest), log) * RAMP_STEPS)),
      );
      pixels[(picture.rows - 1 - row) * picture.columns + column] = value === 0 ? empty : (ramp[step] ?? empty);
    }
  }
  context.putImageData(image, 0, 0);
}

type Area = { readonly left: number; readonly top: number; readonly width: number; readonly height: number };

function drawAxes(context: CanvasRenderingContext2D, place: Area, picture: HeatPicture, colours: Inks): void {
  context.fillStyle = colours.ink3;
  context.font = `10px ${colours.font}`;
  context.textAlign = "right";
  context.textBaseline = "middle";
  const offsets = [0, 250, 500, 750, 1000];
  for (const ms of offsets)
    context.fillText(
      ms === 0 ? "0 ms" : String(ms),
      place.left - 7,
      Math.min(place.height - 5, Math.max(5, place.height * (1 - ms / 1000))),
    );
  const spanUs = picture.columns * picture.secondsPerColumn * SECOND_US;
  const { stepUs, at } = ticks(picture.fromUs, picture.fromUs + spanUs, Math.max(2, Math.floor(place.width / 110)));
  context.textAlign = "center";
  context.textBaseline = "alphabetic";
  for (const tick of at) {
    const x = place.left + ((tick - picture.fromUs) / spanUs) * place.width;
    if (x > place.left + 24 && x < place.left + place.width - 24)
      context.fillText(axisClock(tick, stepUs), x, place.height + AXIS_PX - 5);
  }
}

/** The cells of a time: it goes up the first column, through whole ones, and up to its end in the last. */
function outline(
  context: CanvasRenderingContext2D,
  place: Area,
  picture: HeatPicture,
  bounds: Bounds,
  colour: string,
): void {
  const [first, last] = [cellAt(picture, bounds.fromUs), cellAt(picture, bounds.toUs - 1)];
  if (last.column < 0 || first.column >= picture.columns) return;
  const column = (at: number): number =>
    place.left + (Math.min(picture.columns, Math.max(0, at)) / picture.columns) * place.width;
  const row = (at: number): number => place.height * (1 - at / picture.rows);
  const [x0, x1, x2, x3] = [
    column(first.column),
    column(first.column + 1),
    column(last.column),
    column(last.column + 1),
  ];
  const [bottom, top] = [
    row(first.column < 0 ? 0 : first.row),
    row(last.column >= picture.columns ? picture.rows : last.row + 1),
  ];
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.beginPath();
  if (first.column === last.column) context.rect(x0, top, Math.max(2, x1 - x0), bottom - top);
  else {
    context.moveTo(x0, bottom);
    context.lineTo(x1, bottom);
    context.lineTo(x1, place.height);
    context.lineTo(x3, place.height);
    context.lineTo(x3, top);
    context.lineTo(x2, top);
    context.lineTo(x2, 0);
    context.lineTo(x0, 0);
    context.closePath();
  }
  context.stroke();
}
