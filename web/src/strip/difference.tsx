/** Now against then, row by row and moment by moment: water where it is more now, wisteria where it is less. */

import { useRef } from "preact/hooks";
import { Canvas, type Surface } from "../paint/canvas.tsx";
import { requestPaintIn } from "../paint/painter.ts";
import { inks, palette } from "../theme/theme.ts";
import type { Bounds } from "../time/window.ts";
import type { Bins } from "./bins.ts";
import { differencePixel } from "./ramp.ts";
import type { Row } from "./rows.ts";
import { AXIS_PX, drawLabels, labelsWidth } from "./strip.tsx";

export interface DifferenceProps {
  readonly label: string;
  readonly now: Bins | null;
  readonly then: Bins | null;
  readonly nowBounds: () => Bounds;
  readonly thenBounds: () => Bounds;
  readonly rows: readonly Row[];
  readonly height: number;
  readonly kind: "difference" | "ratio";
  readonly scale: () => number;
}

/** A ratio of this much either way has the strongest colour: four times, or a quarter. */
const RATIO_OCTAVES = 2;

/** From -1 to 1; NaN where one of the two is missing. */
export function compared(now: number, then: number, kind: "difference" | "ratio", scale: number): number {
  if (Number.isNaN(now) || Number.isNaN(then)) return Number.NaN;
  if (kind === "difference") return (now - then) / scale;
  // Below a thousandth of the scale both are next to nothing, and their ratio says nothing.
  const floor = scale / 1000;
  return Math.log2(Math.max(now, floor) / Math.max(then, floor)) / RATIO_OCTAVES;
}

/** Columns are drawn at most so often: a difference moves as slowly as the eye compares. */
const REPAINT_MS = 250;

export function Difference(props: DifferenceProps) {
  const state = useRef({ key: "", paintedMs: 0, picture: null as HTMLCanvasElement | null });
  const draw = ({ context, width, height }: Surface, fresh: boolean): void => {
    const colours = inks.value;
    const { now, then } = props;
    if (colours === null) return;
    const [a, b] = [props.nowBounds(), props.thenBounds()];
    const key = [
      now?.revision,
      then?.revision,
      a.fromUs,
      a.toUs,
      b.fromUs,
      b.toUs,
      props.kind,
      props.scale(),
      palette.value.empty,
    ].join();
    if (!fresh && key === state.current.key) return;
    if (!fresh && performance.now() - state.current.paintedMs < REPAINT_MS) {
      requestPaintIn(REPAINT_MS);
      return;
    }
    state.current.key = key;
    state.current.paintedMs = performance.now();
    context.clearRect(0, 0, width, height);
    const labelsPx = labelsWidth(props.rows, `10px ${colours.font}`);
    const [wide, tall] = [width - labelsPx, height - AXIS_PX];
    if (now === null || then === null || now.rows !== then.rows || now.rows === 0) return;
    const columns = Math.max(1, Math.min(Math.round(wide), Math.ceil((a.toUs - a.fromUs) / now.binUs)));
    const lines = Math.min(now.rows, Math.max(1, Math.round(tall)));
    const image = new ImageData(columns, lines);
    const pixels = new Uint32Array(image.data.buffer);
    for (let column = 0; column < columns; column += 1) {
      const part = (column + 0.5) / columns;
      const [binNow, binThen] = [
        now.binOf(a.fromUs + part * (a.toUs - a.fromUs)),
        then.binOf(b.fromUs + part * (b.toUs - b.fromUs)),
      ];
      for (let line = 0; line < lines; line += 1) {
        pixels[line * columns + column] = differencePixel(
          palette.value,
          strongest(props, binNow, binThen, line, lines),
        );
      }
    }
    state.current.picture ??= document.createElement("canvas");
    const { picture } = state.current;
    picture.width = columns;
    picture.height = lines;
    picture.getContext("2d")?.putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(picture, labelsPx, 0, wide, tall);
    context.fillStyle = colours.ink3;
    context.font = `10px ${colours.font}`;
    context.textAlign = "right";
    context.textBaseline = "middle";
    drawLabels(context, props.rows, labelsPx, tall);
  };
  return <Canvas label={props.label} height={props.height} draw={draw} class="strip" />;
}

/** Of the rows that share a line, the one that differs most. */
function strongest(props: DifferenceProps, binNow: number, binThen: number, line: number, lines: number): number {
  const { now, then } = props;
  if (now === null || then === null) return Number.NaN;
  const end = Math.max(Math.floor(((line + 1) * now.rows) / lines), Math.floor((line * now.rows) / lines) + 1);
  let most = Number.NaN;
  for (let row = Math.floor((line * now.rows) / lines); row < end; row += 1) {
    const one = compared(now.value(binNow, row), then.value(binThen, row), props.kind, props.scale());
    if (!Number.isNaN(one) && !(Math.abs(one) <= Math.abs(most))) most = one;
  }
  return most;
}
