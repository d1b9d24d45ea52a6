/** One cell a device, by group, in the colour of its newest reading or of the one under the cursor. */

import { useRef } from "preact/hooks";
import { Canvas, type Surface } from "../paint/canvas.tsx";
import { cursor } from "../session/cursor.ts";
import { view } from "../session/view.ts";
import type { Bins, Column } from "../strip/bins.ts";
import { cellPixel, NO_STATE, OK } from "../strip/ramp.ts";
import type { RowModel } from "../strip/rows.ts";
import { inks, palette } from "../theme/theme.ts";
import { fit } from "../words/fit.ts";
import { type GridLayout, layoutGrid, neighbour, rowAt } from "./grid_layout.ts";

export interface GridProps {
  readonly label: string;
  readonly bins: Bins | null;
  readonly model: RowModel;
  readonly heightMax: number;
  readonly width: number;
  readonly scale: () => number;
  readonly selectedRows: ReadonlySet<number>;
  readonly silent: ReadonlySet<string>;
  readonly onPick: (row: number, add: boolean) => void;
  readonly onOpen: (row: number) => void;
}

/** A device whose newest reading is older than so many bins is drawn from its last state only. */
const NEWEST_BINS = 3;

function css(pixel: number): string {
  return `rgb(${pixel & 255} ${(pixel >> 8) & 255} ${(pixel >> 16) & 255})`;
}

export function Grid(props: GridProps) {
  const drawn = useRef("");
  const layout = useRef<{ key: string; layout: GridLayout } | null>(null);
  const image = useRef<ImageData | null>(null);
  const imageOf = useRef<GridLayout | null>(null);
  const key = `${props.width} ${props.heightMax} ${props.model.groups.map(({ name, rows }) => name + rows).join()}`;
  if (layout.current?.key !== key)
    layout.current = { key, layout: layoutGrid(props.model.groups, props.width, props.heightMax) };
  const current = layout.current.layout;

  const draw = ({ context, width, height }: Surface, fresh: boolean): void => {
    const colours = inks.value;
    if (colours === null) return;
    const at = cursor.value;
    const { bins, model } = props;
    const state = [
      bins?.revision,
      props.scale(),
      view.peek().scale,
      palette.value.empty,
      at?.device,
      at?.us,
      props.selectedRows.size,
      [...props.selectedRows].slice(0, 64).join(),
      props.silent.size,
      key,
    ].join();
    if (!fresh && state === drawn.current) return;
    drawn.current = state;
    context.clearRect(0, 0, width, height);
    const newest = bins?.newestBin ?? -1;
    const bin = bins === null || at?.us == null ? newest : Math.min(newest, bins.binOf(at.us));
    const colourOf = colouring(props, bin);
    const round = current.cell >= 12 ? 3 : 0;
    if (round === 0) {
      if (
        image.current?.width !== context.canvas.width ||
        image.current.height !== context.canvas.height ||
        imageOf.current !== current
      ) {
        image.current = context.createImageData(context.canvas.width, context.canvas.height);
        imageOf.current = current;
      }
      fillCells(image.current, current, model.rows.length, colourOf);
      context.putImageData(image.current, 0, 0);
    }
    context.font = `600 11px ${colours.font}`;
    context.fillStyle = colours.ink3;
    context.textAlign = "left";
    context.textBaseline = "alphabetic";
    for (const { name, y, rows } of current.titles) context.fillText(fit(`${name}  ${rows}`), 0, y);
    for (let row = 0; round > 0 && row < model.rows.length; row += 1) {
      context.fillStyle = css(colourOf(row));
      context.beginPath();
      context.roundRect(
        current.places[2 * row] ?? 0,
        current.places[2 * row + 1] ?? 0,
        current.cell,
        current.cell,
        round,
      );
      context.fill();
    }
    context.strokeStyle = colours.ink;
    context.lineWidth = 1.5;
    for (let row = 0; row < model.rows.length; row += 1) {
      const hovered =
        at !== null && model.rows[row]?.device === at.device && (model.rows[row]?.part === at.part || at.part === "");
      if (!hovered && !props.selectedRows.has(row)) continue;
      context.globalAlpha = props.selectedRows.has(row) ? 1 : 0.6;
      context.beginPath();
      context.roundRect(
        current.places[2 * row] ?? 0,
        current.places[2 * row + 1] ?? 0,
        current.cell,
        current.cell,
        round,
      );
      context.stroke();
    }
    context.globalAlpha = 1;
  };

  const move = (row: number): void => {
    const there = props.model.rows[row];
    if (there !== undefined) cursor.value = { device: there.device, part: there.part, us: null };
  };
  const onKey = (event: KeyboardEvent): void => {
    const at = cursor.value;
    const row = Math.max(
      0,
      props.model.rows.findIndex(({ device, part }) => device === at?.device && part === at.part),
    );
    const steps: Record<string, [number, number]> = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, -1],
      ArrowDown: [0, 1],
    };
    const step = steps[event.key];
    if (step !== undefined) move(at === null ? 0 : neighbour(current, row, ...step));
    else if (event.key === "Enter") props.onPick(row, event.shiftKey || event.ctrlKey);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <Canvas
      class="grid"
      label={`${props.label}. Arrow keys move, Enter selects.`}
      height={current.height}
      draw={draw}
      onPointer={(kind, event, x, y) => {
        const row = rowAt(current, x, y);
        if (kind === "leave" || row < 0) cursor.value = null;
        else move(row);
        if (kind === "up" && row >= 0) props.onPick(row, event.ctrlKey || event.metaKey || event.shiftKey);
      }}
      onDoubleClick={(x, y) => {
        const row = rowAt(current, x, y);
        if (row >= 0) props.onOpen(row);
      }}
      onKey={onKey}
    />
  );
}

/** Small cells are many: they are written as pixels, which takes a tenth of the time of so many rectangles. */
function fillCells(image: ImageData, layout: GridLayout, rows: number, colourOf: (row: number) => number): void {
  const { width, height } = image;
  const ratio = window.devicePixelRatio || 1;
  const pixels = new Uint32Array(image.data.buffer);
  const side = Math.max(1, Math.round(layout.cell * ratio));
  for (let row = 0; row < rows; row += 1) {
    const colour = colourOf(row);
    const left = Math.round((layout.places[2 * row] ?? 0) * ratio);
    const top = Math.round((layout.places[2 * row + 1] ?? 0) * ratio);
    const right = Math.min(width, left + side);
    const bottom = Math.min(height, top + side);
    for (let y = top; y < bottom; y += 1) for (let x = left; x < right; x += 1) pixels[y * width + x] = colour;
  }
}

/** The colour of each row at a bin, or of the newest of the bins before it; what all rows share is looked up once. */
function colouring({ bins, model, silent, scale }: GridProps, bin: number): (row: number) => number {
  const colours = palette.value;
  const [end, log] = [scale(), view.peek().scale === "log"];
  const newest: Column[] = [];
  for (let back = 0; back < NEWEST_BINS && bins !== null && bin >= 0; back += 1) {
    const column = bins.column(bin - back);
    if (column !== null) newest.push(column);
  }
  return (row) => {
    if (silent.has(model.rows[row]?.device ?? "")) return colours.broken;
    for (const { values, states } of newest) {
      const value = values[row] ?? Number.NaN;
      const state = states[row] ?? NO_STATE;
      if (!Number.isNaN(value) || (state !== NO_STATE && state !== OK))
        return cellPixel(colours, value, state, end, log);
    }
    return colours.ramp[0] ?? colours.empty;
  };
}
