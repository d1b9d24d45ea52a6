/**
 * The whole recording in one line: the greatest value of the shown quantity at each moment, events as marks, late
 * and missed intervals at the foot, and the brush.
 */

import type { Range } from "../api/range.ts";
import type { HealthBody } from "../api/types.ts";
import type { Inks } from "../theme/theme.ts";
import { eventGravity } from "../words/names.ts";
import { axisClock, dayAndClock, ticks } from "./moment.ts";
import type { Bounds } from "./window.ts";

export interface OverviewEvent {
  readonly us: number;
  /** Where it began, if it happened more than once. */
  readonly fromUs: number;
  readonly times: number;
  readonly kind: string;
}

export interface Overview {
  readonly whole: Bounds;
  readonly shown: Bounds;
  readonly curve: Range | null;
  readonly health: HealthBody | null;
  readonly events: readonly OverviewEvent[];
  /** The moment under the pointer. */
  readonly hoverUs: number | null;
}

const AXIS_PX = 15;
const TOP_PX = 6;
/** A hole so many times as long as the usual step between readings is a gap. */
const GAP_STEPS = 2.5;

export function xOf(us: number, whole: Bounds, width: number): number {
  return ((us - whole.fromUs) / Math.max(1, whole.toUs - whole.fromUs)) * width;
}

export function usOf(x: number, whole: Bounds, width: number): number {
  return whole.fromUs + Math.min(1, Math.max(0, x / width)) * (whole.toUs - whole.fromUs);
}

export function drawOverview(
  context: CanvasRenderingContext2D,
  width: number,
  height: number,
  overview: Overview,
  inks: Inks,
): void {
  context.clearRect(0, 0, width, height);
  const foot = height - AXIS_PX;
  drawCurve(context, width, foot, overview, inks);
  drawFaults(context, width, foot, overview, inks);
  for (const { us, fromUs, times, kind } of overview.events) {
    const gravity = eventGravity(kind);
    if (times > 1) {
      // Again and again is a line at the top, or the marks of one device would cover those of all others.
      context.fillStyle = inks.kinMark;
      const x = xOf(fromUs, overview.whole, width);
      context.fillRect(x, 1, Math.max(2, xOf(us, overview.whole, width) - x), 2);
      continue;
    }
    context.fillStyle = { broken: inks.shuMark, doubtful: inks.kinMark, calm: inks.ink3 }[gravity];
    context.fillRect(Math.round(xOf(us, overview.whole, width)), TOP_PX, gravity === "calm" ? 1 : 2, foot - TOP_PX);
  }
  drawAxis(context, width, height, overview, inks);
  const left = xOf(overview.shown.fromUs, overview.whole, width);
  const right = Math.min(width - 0.5, Math.max(left + 3, xOf(overview.shown.toUs, overview.whole, width)));
  context.fillStyle = inks.waterSoft;
  context.fillRect(left, 0, right - left, foot);
  context.strokeStyle = inks.ink2;
  context.lineWidth = 1;
  context.strokeRect(Math.round(left) + 0.5, 0.5, Math.max(2, Math.round(right - left) - 1), foot);
  if (overview.hoverUs !== null) drawHover(context, width, foot, overview, overview.hoverUs, inks);
}

function drawCurve(
  context: CanvasRenderingContext2D,
  width: number,
  foot: number,
  { curve, whole }: Overview,
  inks: Inks,
): void {
  if (curve === null || curve.bins.length === 0) return;
  let greatest = 0;
  for (const value of curve.max) if (value > greatest) greatest = value;
  const y = (value: number): number => foot - (value / (greatest || 1)) * (foot - TOP_PX - 4);
  const x = (at: number): number => xOf(curve.fromUs + ((curve.bins[at] ?? 0) + 0.5) * curve.binUs, whole, width);
  // A gap in the recording is a gap in the line; how often it is read is none.
  const steps = [...curve.bins.subarray(1)]
    .map((bin, at) => bin - (curve.bins[at] ?? 0))
    .sort((left, right) => left - right);
  const usual = Math.max(1, steps[Math.floor(steps.length / 2)] ?? 1);
  let begin = 0;
  for (let at = 1; at <= curve.bins.length; at += 1) {
    if (at < curve.bins.length && (curve.bins[at] ?? 0) - (curve.bins[at - 1] ?? 0) <= usual * GAP_STEPS) continue;
    context.beginPath();
    context.moveTo(x(begin), foot);
    for (let point = begin; point < at; point += 1) context.lineTo(x(point), y(curve.max[point] ?? 0));
    context.lineTo(x(at - 1), foot);
    context.closePath();
    context.fillStyle = inks.waterSoft;
    context.fill();
    context.beginPath();
    for (let point = begin; point < at; point += 1) context.lineTo(x(point), y(curve.max[point] ?? 0));
    context.strokeStyle = inks.water;
    context.lineWidth = 1;
    context.stroke();
    begin = at;
  }
}

function drawFaults(
  context: CanvasRenderingContext2D,
  width: number,
  foot: number,
  { health, whole }: Overview,
  inks: Inks,
): void {
  if (health === null) return;
  const { ok, late, missed, error, skipped } = health.bins;
  for (let bin = 0; bin < late.length; bin += 1) {
    const broken = (missed[bin] ?? 0) + (error[bin] ?? 0);
    if (broken === 0 && (late[bin] ?? 0) === 0) continue;
    const left = xOf(health.from_us + bin * health.bin_us, whole, width);
    const right = xOf(health.from_us + (bin + 1) * health.bin_us, whole, width);
    // One late answer among thousands is seen, but does not shout.
    const all = broken + (ok[bin] ?? 0) + (late[bin] ?? 0) + (skipped[bin] ?? 0);
    const part = (broken > 0 ? broken : (late[bin] ?? 0)) / all;
    context.globalAlpha = Math.min(1, 0.25 + part * 20);
    context.fillStyle = broken > 0 ? inks.shuMark : inks.kinMark;
    context.fillRect(left, foot - 3, Math.max(1, right - left), 3);
  }
  context.globalAlpha = 1;
}

function drawAxis(
  context: CanvasRenderingContext2D,
  width: number,
  height: number,
  { whole }: Overview,
  inks: Inks,
): void {
  context.font = `10px ${inks.font}`;
  context.textBaseline = "alphabetic";
  context.textAlign = "center";
  context.fillStyle = inks.ink3;
  const { stepUs, at } = ticks(whole.fromUs, whole.toUs, Math.max(2, Math.floor(width / 90)));
  for (const tick of at) {
    const x = xOf(tick, whole, width);
    if (x > 20 && x < width - 20) context.fillText(axisClock(tick, stepUs), x, height - 4);
  }
}

function drawHover(
  context: CanvasRenderingContext2D,
  width: number,
  foot: number,
  { whole }: Overview,
  us: number,
  inks: Inks,
): void {
  const x = Math.round(xOf(us, whole, width));
  context.fillStyle = inks.ink2;
  context.fillRect(x, 0, 1, foot);
  context.textAlign = x > width / 2 ? "right" : "left";
  context.textBaseline = "top";
  context.fillStyle = inks.ink;
  context.fillText(dayAndClock(us), x > width / 2 ? x - 5 : x + 5, 2);
}
