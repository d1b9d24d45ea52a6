/** What a drawn fabric consists of: switches with their labels, and the lines of trunks as chains of points. */

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** A text around its centre, turned by degrees; it takes this much room. */
export interface Label {
  readonly text: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly turned: number;
}

/** A switch around its centre: a box with its labels inside, or a dot with its label outside. */
export interface Placed extends Point {
  readonly dot: boolean;
  readonly width: number;
  readonly height: number;
  readonly labels: readonly Label[];
}

export interface Drawn {
  readonly width: number;
  readonly height: number;
  readonly switches: readonly Placed[];
  /** One for each pair of `Wanted`, from its first switch to its second. */
  readonly lines: readonly (readonly Point[])[];
}

/** What is to be drawn, and into how much room. */
export interface Wanted {
  /** Name of each switch, and a word more, such as how many hosts it has; empty: none. */
  readonly names: readonly string[];
  readonly notes: readonly string[];
  readonly withHosts: readonly boolean[];
  /** Switches that are joined, each pair once. */
  readonly pairs: readonly (readonly [number, number])[];
  /** How wide the widest line is, all its VLANs beside one another. */
  readonly band: number;
  readonly room: { readonly width: number; readonly height: number };
  /** How wide a text of the drawing is. */
  readonly measure: (text: string) => number;
}

export const TEXT_PX = 12;
export const LINE_PX = 15;
/** Between a line and whatever it does not belong to. */
export const CLEAR = 4;

/** The least distance between two lines beside each other. */
export function pitchOf({ band }: Wanted): number {
  return band + 3;
}

/** A chain of straight lines with its corners rounded. */
export function rounded(corners: readonly Point[], radius: number): Point[] {
  const chain: Point[] = [];
  corners.forEach((corner, at) => {
    const [before, after] = [corners[at - 1], corners[at + 1]];
    if (before === undefined || after === undefined) {
      chain.push(corner);
      return;
    }
    const [into, out] = [distance(before, corner), distance(corner, after)];
    const cut = Math.min(radius, into / 2, out / 2);
    if (cut < 0.5) {
      chain.push(corner);
      return;
    }
    chain.push(...curve(toward(corner, before, cut / into), corner, toward(corner, after, cut / out), 6));
  });
  return chain;
}

/** A quadratic curve as a chain of so many steps. */
export function curve(from: Point, control: Point, to: Point, steps: number): Point[] {
  return Array.from({ length: steps + 1 }, (_, at) => {
    const part = at / steps;
    return toward(toward(from, control, part), toward(control, to, part), part);
  });
}

export function distance(one: Point, other: Point): number {
  return Math.hypot(other.x - one.x, other.y - one.y);
}

export function toward(from: Point, to: Point, part: number): Point {
  return { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part };
}

/** The chain moved to its left by `beside`, as a line beside others of the same trunk. */
export function shifted(chain: readonly Point[], beside: number): readonly Point[] {
  if (beside === 0) return chain;
  return chain.map((point, at) => {
    const before = chain[Math.max(0, at - 1)] ?? point;
    const after = chain[Math.min(chain.length - 1, at + 1)] ?? point;
    const length = Math.max(1e-9, distance(before, after));
    return {
      x: point.x + ((after.y - before.y) / length) * beside,
      y: point.y - ((after.x - before.x) / length) * beside,
    };
  });
}

export function pathOf(chain: readonly Point[]): string {
  return chain.map(({ x, y }, at) => `${at === 0 ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
}

/** Widths of boxes that hold their labels. */
export function boxSize(wanted: Wanted, place: number): { width: number; height: number } {
  const [name, note] = [wanted.names[place] ?? "", wanted.notes[place] ?? ""];
  const width = Math.max(wanted.measure(name), wanted.measure(note)) + 14;
  return { width: Math.max(36, width), height: note === "" ? LINE_PX + 8 : 2 * LINE_PX + 6 };
}

/** The labels of a box: the name, and the note below it; upright, or turned with the box. */
export function boxLabels(wanted: Wanted, place: number, at: Point, turned = 0): readonly Label[] {
  const [name, note] = [wanted.names[place] ?? "", wanted.notes[place] ?? ""];
  const label = (text: string, beside: number): Label => {
    const [dx, dy] = turned === 0 ? [0, beside] : [beside, 0];
    return { text, x: at.x + dx, y: at.y + dy, width: wanted.measure(text), height: LINE_PX, turned };
  };
  if (note === "") return [label(name, 0)];
  const half = turned === 0 ? LINE_PX / 2 : -LINE_PX / 2;
  return [label(name, -half), label(note, half)];
}
