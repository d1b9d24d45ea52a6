/**
 * Switches around a circle, names outside, trunks inside and bent inward, so that none comes near a switch at which
 * it does not end. Any fabric can be drawn so.
 */

import { CLEAR, curve, type Drawn, type Label, LINE_PX, type Point, TEXT_PX, type Wanted } from "./shape.ts";

const DOT_MAX = 9;
const DOT_MIN = 5;
const RADIUS_MAX = 420;
/** Between a dot and its name. */
const ASIDE = 7;
const STEPS = 20;

export function drawCircle(wanted: Wanted, order: readonly number[], begins: ReadonlySet<number>): Drawn {
  const switches = order.length;
  // Between groups one place stays free.
  let next = 0;
  const slot = Array<number>(switches).fill(0);
  order.forEach((place, at) => {
    if (at > 0 && begins.size > 1 && begins.has(place)) next += 1;
    slot[place] = next;
    next += 1;
  });
  const slots = next + (begins.size > 1 ? 1 : 0);
  const texts = wanted.names.map((name, place) =>
    [name, wanted.notes[place] ?? ""].filter((text) => text !== "").join("  "),
  );
  const widest = Math.max(...texts.map(wanted.measure));
  // Lines pass between a dot and the inside: the dots are so far apart that one fits there.
  const apart = Math.max(LINE_PX + 3, (wanted.band / 2 + DOT_MIN + CLEAR) * 1.3, switches <= 12 ? 90 : 0);
  const least = Math.max(60, (slots * apart) / (2 * Math.PI));
  const margin = ASIDE + DOT_MAX + widest + 6;
  const roomy = Math.min(
    RADIUS_MAX,
    wanted.room.height / 2 - (switches <= 24 ? 40 : margin),
    wanted.room.width / 2 - margin,
  );
  const radius = Math.max(least, roomy);
  const dot = Math.max(DOT_MIN, Math.min(DOT_MAX, ((2 * Math.PI * radius) / slots) * 0.25));
  const angle = (place: number): number => ((slot[place] ?? 0) / slots) * 2 * Math.PI - Math.PI / 2;
  const at = slot.map(
    (_, place): Point => ({ x: radius * Math.cos(angle(place)), y: radius * Math.sin(angle(place)) }),
  );
  const from = radius + dot + ASIDE;
  const upright = texts.map((text, place) => besideLabel(text, wanted.measure(text), angle(place), from));
  const labels = upright.some((one, place) => upright.slice(0, place).some((other) => overlap(one, other)))
    ? texts.map((text, place) => radialLabel(text, wanted.measure(text), angle(place), from))
    : upright;
  const lines = wanted.pairs.map(([one, other]) => {
    const turn = Math.abs(angle(one) - angle(other)) % (2 * Math.PI);
    const between = Math.min(turn, 2 * Math.PI - turn);
    const [begin, end] = [at[one] ?? { x: 0, y: 0 }, at[other] ?? { x: 0, y: 0 }];
    if (between <= (2 * Math.PI) / slots + 1e-9) return [begin, end];
    const deep = 0.3 + (0.6 * between) / Math.PI;
    return curve(begin, { x: ((begin.x + end.x) / 2) * deep, y: ((begin.y + end.y) / 2) * deep }, end, STEPS);
  });
  return moved({
    width: 0,
    height: 0,
    lines,
    switches: at.map((point, place) => ({
      ...point,
      dot: true,
      width: 2 * dot,
      height: 2 * dot,
      labels: [labels[place]].filter((label) => label !== undefined),
    })),
  });
}

/** Upright, its near end at the circle. */
function besideLabel(text: string, width: number, angle: number, from: number): Label {
  const [x, y] = [Math.cos(angle), Math.sin(angle)];
  // At the top and at the bottom a text is centred, at the sides it begins or ends there.
  const aside = Math.max(-1, Math.min(1, x * 1.6));
  const [wide, high] = [(width / 2) * aside, (TEXT_PX / 2) * y];
  return { text, x: x * from + wide, y: y * from + high, width, height: LINE_PX, turned: 0 };
}

/** Along the ray from the middle, never upside down. */
function radialLabel(text: string, width: number, angle: number, from: number): Label {
  const far = from + width / 2;
  const degrees = (angle * 180) / Math.PI;
  return {
    text,
    x: Math.cos(angle) * far,
    y: Math.sin(angle) * far,
    width,
    height: LINE_PX,
    turned: Math.cos(angle) < -1e-9 ? degrees + 180 : degrees,
  };
}

function overlap(one: Label, other: Label): boolean {
  return (
    Math.abs(one.x - other.x) < (one.width + other.width) / 2 + 4 &&
    Math.abs(one.y - other.y) < (one.height + other.height) / 2
  );
}

/** So that everything lies right of and below the corner, labels included. */
function moved(drawn: Drawn): Drawn {
  const corners = drawn.switches.flatMap((of) => [
    { x: of.x - of.width / 2, y: of.y - of.height / 2 },
    { x: of.x + of.width / 2, y: of.y + of.height / 2 },
    ...of.labels.flatMap(cornersOf),
  ]);
  const [left, top] = [Math.min(...corners.map(({ x }) => x)) - 4, Math.min(...corners.map(({ y }) => y)) - 4];
  const by = <T extends Point>(point: T): T => ({ ...point, x: point.x - left, y: point.y - top });
  return {
    width: Math.max(...corners.map(({ x }) => x)) - left + 4,
    height: Math.max(...corners.map(({ y }) => y)) - top + 4,
    switches: drawn.switches.map((of) => ({ ...by(of), labels: of.labels.map(by) })),
    lines: drawn.lines.map((line) => line.map(by)),
  };
}

function cornersOf({ x, y, width, height, turned }: Label): Point[] {
  const [cos, sin] = [Math.cos((turned * Math.PI) / 180), Math.sin((turned * Math.PI) / 180)];
  return [
    [-1, -1],
    [1, -1],
    [1, 1],
    [-1, 1],
  ].map(([right = 0, down = 0]) => {
    const [dx, dy] = [(right * width) / 2, (down * height) / 2];
    return { x: x + dx * cos - dy * sin, y: y + dx * sin + dy * cos };
  });
}
