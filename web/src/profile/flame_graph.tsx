/**
 * A flame graph, hanging: the outermost functions at the top, what they called below them, as wide as their samples.
 * The picture is for the eye and the keyboard alike; the table of functions says the same to those who see neither.
 */

import { useMemo, useRef, useState } from "preact/hooks";
import type { FrameBody } from "../api/types.ts";
import { Canvas, type Surface } from "../paint/canvas.tsx";
import { requestPaint } from "../paint/painter.ts";
import { differencePixel, type Palette, RAMP_STEPS } from "../strip/ramp.ts";
import { type Inks, inks, palette } from "../theme/theme.ts";
import { fit } from "../words/fit.ts";
import { share } from "../words/quantity.ts";
import { amount, amountWords, wholeWords } from "./amount.ts";
import { beginsOf, changeOf, endOf, type FlameTree, frameOf, weightOf } from "./flame_tree.ts";

export const ROW_PX = 18;
/** Narrower boxes are not drawn: they would be a haze. */
const BOX_MIN_PX = 0.4;
const TEXT_MIN_PX = 24;
/** A change of so many parts of all samples has the full colour. */
const CHANGE_FULL = 0.1;

export interface FlameGraphProps {
  readonly label: string;
  readonly tree: FlameTree;
  /** The node that fills the picture; what called it stands above it. */
  readonly focus: number;
  /** Marked functions, by frame; null: nothing is searched for. */
  readonly found: ((frame: number) => boolean) | null;
  readonly onFocus: (node: number) => void;
  /** Wants the callers and callees of a function. */
  readonly onFunction: (name: string) => void;
  /** Grows towards the top: callers of callers above. */
  readonly upwards?: boolean;
}

interface Box {
  readonly node: number;
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

export function FlameGraph(props: FlameGraphProps) {
  const { tree, focus, found, upwards = false } = props;
  const begins = useMemo(() => beginsOf(tree), [tree]);
  const rows = useMemo(() => tree.depth.reduce((most, depth) => Math.max(most, depth), 0) + 1, [tree]);
  const [at, setAt] = useState<number | null>(null);
  const boxes = useRef<readonly Box[]>([]);
  const drawn = useRef("");
  const shownAt = at !== null && at < tree.parent.length ? at : null;

  const layout = (width: number): Box[] => {
    const weight = weightOf(tree, focus);
    const made: Box[] = [];
    if (weight === 0) return made;
    const place = (node: number, x: number, of: number): void => {
      const depth = tree.depth[node] ?? 0;
      made.push({ node, x, y: (upwards ? rows - 1 - depth : depth) * ROW_PX, width: of });
    };
    for (let node = tree.parent[focus] ?? 0; node !== focus; node = tree.parent[node] ?? 0) {
      place(node, 0, width);
      if (node === 0) break;
    }
    const scale = width / weight;
    const end = endOf(tree, focus);
    for (let node = focus; node < end; node += 1) {
      const of = weightOf(tree, node) * scale;
      if (of < BOX_MIN_PX) {
        node = endOf(tree, node) - 1;
        continue;
      }
      place(node, ((begins[node] ?? 0) - (begins[focus] ?? 0)) * scale, of);
    }
    return made;
  };

  const draw = ({ context, width, height }: Surface, fresh: boolean): void => {
    const colours = inks.value;
    if (colours === null) return;
    const key = [width, height, focus, shownAt, palette.value.empty, found === null].join();
    if (!fresh && key === drawn.current && last.current === tree && lastFound.current === found) return;
    drawn.current = key;
    last.current = tree;
    lastFound.current = found;
    boxes.current = layout(width);
    context.clearRect(0, 0, width, height);
    context.font = `11px ${colours.font}`;
    context.textBaseline = "middle";
    context.textAlign = "left";
    for (const box of boxes.current)
      drawBox(context, tree, box, { colours, palette: palette.value, found, isAt: box.node === shownAt });
  };
  const last = useRef<FlameTree | null>(null);
  const lastFound = useRef<FlameGraphProps["found"]>(null);

  const boxAt = (x: number, y: number): Box | null =>
    boxes.current.find((box) => x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + ROW_PX) ?? null;
  const go = (node: number | null): void => {
    if (node !== null) setAt(node);
    requestPaint();
  };
  const keys = (event: KeyboardEvent): void => {
    const now = shownAt ?? focus;
    const name = frameOf(tree, now)?.name;
    const step = (direction: 1 | -1): number | null => beside(tree, now, direction);
    const inwards = now + 1 < endOf(tree, now) ? now + 1 : null;
    const outwards = now === 0 ? null : (tree.parent[now] ?? 0);
    if (event.key === "ArrowDown") go(upwards ? outwards : inwards);
    else if (event.key === "ArrowUp") go(upwards ? inwards : outwards);
    else if (event.key === "ArrowLeft") go(step(-1));
    else if (event.key === "ArrowRight") go(step(1));
    else if (event.key === "Enter" && event.shiftKey && name !== undefined) props.onFunction(name);
    else if (event.key === "Enter") props.onFocus(now);
    else if (event.key === "Escape" && focus !== 0) props.onFocus(0);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="flame">
      <p class="flame-told" role="status">
        {toldOf(tree, shownAt ?? focus)}
      </p>
      <Canvas
        class="flame-picture"
        label={`${props.label}. Arrow keys move over callers and callees, Enter fills the picture with a function, Shift and Enter shows its callers and callees, Escape goes back.`}
        height={rows * ROW_PX}
        draw={draw}
        onPointer={(kind, event, x, y) => {
          if (kind === "leave") setAt(null);
          if (kind === "move") setAt(boxAt(x, y)?.node ?? null);
          const box = kind === "up" && event.button === 0 ? boxAt(x, y) : null;
          const name = box === null ? undefined : frameOf(tree, box.node)?.name;
          if (box !== null && event.shiftKey && name !== undefined) props.onFunction(name);
          else if (box !== null) props.onFocus(box.node);
        }}
        onKey={keys}
      />
    </div>
  );
}

/** The next function that was called by the same one. */
function beside(tree: FlameTree, node: number, direction: 1 | -1): number | null {
  if (node === 0) return null;
  const parent = tree.parent[node] ?? 0;
  if (direction === 1) {
    const next = endOf(tree, node);
    return next < tree.parent.length && tree.parent[next] === parent ? next : null;
  }
  let before = node - 1;
  while (before > parent && tree.parent[before] !== parent) before -= 1;
  return before > parent ? before : null;
}

/** A function in words: its samples and their share, and how they changed. */
export function toldOf(tree: FlameTree, node: number): string {
  const frame = frameOf(tree, node);
  const [own, total, all] = [tree.own[node] ?? 0, tree.total[node] ?? 0, tree.total[0] ?? 0];
  const name = frame === null ? "All" : frame.name;
  const file = frame === null || frame.file === "" ? "" : `, ${frame.file}`;
  const { counted } = tree;
  const samples = `${amountWords(counted, total)}${all === 0 ? "" : `, ${share(total, all)}`}${node === 0 ? "" : `; ${amount(counted, own)} in itself`}`;
  if (tree.thanTotal === null) return `${name}${file}: ${samples}`;
  const than = tree.thanTotal[node] ?? 0;
  return `${name}${file}: ${samples}; compared with ${amount(counted, than)}${changeText(tree, changeOf(tree, node))}`;
}

function changeText({ counted }: FlameTree, change: number): string {
  return Number.isNaN(change) ? "" : `, ${changeWords(change)} of all ${wholeWords(counted)}`;
}

/** `+1.25 %`, for a share of all samples that changed. */
export function changeWords(change: number): string {
  const percent = change * 100;
  const least = percent < 0 ? "−" : "±";
  return `${percent > 0 ? "+" : least}${Math.abs(percent).toFixed(2)} %`;
}

interface Look {
  readonly colours: Inks;
  readonly palette: Palette;
  readonly found: FlameGraphProps["found"];
  readonly isAt: boolean;
}

function drawBox(context: CanvasRenderingContext2D, tree: FlameTree, { node, x, y, width }: Box, look: Look): void {
  const { colours } = look;
  const frame = frameOf(tree, node);
  const of = tree.frame[node] ?? 0;
  const dimmed = look.found !== null && !(frame !== null && look.found(of));
  const right = Math.max(0.5, width - (width > 3 ? 1 : 0));
  context.fillStyle = colours.sheet;
  context.fillRect(x, y, right, ROW_PX - 1);
  const [fill, alpha] =
    tree.thanTotal === null
      ? colourOf(frame, look)
      : [cssOf(differencePixel(look.palette, changeOf(tree, node) / CHANGE_FULL)), 1];
  context.globalAlpha = dimmed ? alpha * 0.3 : alpha;
  context.fillStyle = fill;
  context.fillRect(x, y, right, ROW_PX - 1);
  context.globalAlpha = 1;
  if (look.isAt) {
    context.strokeStyle = colours.ink;
    context.lineWidth = 1;
    context.strokeRect(x + 0.5, y + 0.5, Math.max(1, right - 1), ROW_PX - 2);
  }
  if (width < TEXT_MIN_PX) return;
  const ink = tree.thanTotal === null ? colours.ink : contrasting(fill, colours);
  context.fillStyle = dimmed ? colours.ink3 : ink;
  // Of what has no name, the file says the most.
  const isFile = frame?.kind === "unnamed" && frame.file.includes("/");
  const name = isFile ? `[${frame.file.split("/").at(-1)}]` : (frame?.name ?? "all");
  context.fillText(
    fittedBegin(fit(name), width - 8, (text) => context.measureText(text).width),
    x + 4,
    y + ROW_PX / 2,
  );
}

/** The part of the ramp that files have their colours from: near enough to the ground for text of either theme. */
const FILES_FROM = 36;
const FILES_STEPS = 56;

/** A fill and how strongly it covers. Files differ a little in lightness; the kernel, made and unnamed code by hue. */
function colourOf(frame: FrameBody | null, { colours, palette: { css } }: Look): readonly [string, number] {
  switch (frame?.kind) {
    case undefined:
    case "group":
      return [colours.lineStrong, 0.6];
    case "kernel":
      return [colours.fuji, 0.4];
    case "made":
      return [colours.wakaba, 0.35];
    case "unnamed":
      return [colours.ink3, 0.3];
    default:
      return [css[Math.min(RAMP_STEPS - 1, FILES_FROM + (hash(frame?.file ?? "") % FILES_STEPS))] ?? colours.water, 1];
  }
}

/** FNV-1a, 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193) >>> 0;
  return value;
}

/** A pixel of `ramp.ts` as style sheets write it. */
function cssOf(pixel: number): string {
  return `rgb(${pixel & 255} ${(pixel >> 8) & 255} ${(pixel >> 16) & 255})`;
}

/** Ink or ground, whichever is further from a fill in lightness. */
function contrasting(fill: string, colours: Inks): string {
  const lightness = (text: string): number => {
    const numbers = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i
      .exec(text)
      ?.slice(1)
      .map((two) => Number.parseInt(two, 16)) ??
      text.match(/\d+/g)?.map(Number) ?? [0, 0, 0];
    return 0.3 * (numbers[0] ?? 0) + 0.59 * (numbers[1] ?? 0) + 0.11 * (numbers[2] ?? 0);
  };
  const own = lightness(fill);
  return Math.abs(lightness(colours.ink) - own) >= Math.abs(lightness(colours.ground) - own)
    ? colours.ink
    : colours.ground;
}

/** The text, or its begin with an ellipsis: functions are known by how they begin. */
function fittedBegin(text: string, width: number, measure: (text: string) => number): string {
  if (measure(text) <= width) return text;
  let [kept, dropped] = [0, text.length];
  while (dropped - kept > 1) {
    const middle = Math.floor((kept + dropped) / 2);
    if (measure(`${text.slice(0, middle)}\u2026`) <= width) kept = middle;
    else dropped = middle;
  }
  return kept === 0 ? "" : `${text.slice(0, kept)}\u2026`;
}
