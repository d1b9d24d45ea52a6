/** The part of the address that the view Profile has for itself: `host=node001&by=thread&fn=multiply`. */

import { wordsOf } from "../address/word.ts";
import { type Bounds, formatWindow, parseWindow } from "../time/window.ts";

export const GROUPINGS = ["together", "thread", "process", "cpu", "host", "job"] as const;
/** What stands below everything in a flame graph. */
export type Grouping = (typeof GROUPINGS)[number];

export const SHAPES = ["merged", "time", "sandwich"] as const;
/** Equal stacks as one with the widest first; stacks as they followed each other; callers and callees of one function. */
export type Shape = (typeof SHAPES)[number];

export const COUNTED = ["samples", "off_cpu"] as const;
/** What functions have: samples, or the time that threads were off the CPU. */
export type Counted = (typeof COUNTED)[number];

export interface ProfileView {
  /** The host whose samples are shown; null: the whole cluster. */
  readonly host: string | null;
  readonly cpu: number | null;
  /** Patterns for names of processes and jobs; empty: all. */
  readonly process: string;
  readonly job: string;
  readonly counted: Counted;
  readonly by: Grouping;
  readonly shape: Shape;
  /** Text that functions are marked by. */
  readonly search: string;
  /** Names from the outermost function to the one that fills the picture. */
  readonly focus: readonly string[];
  /** The function that a sandwich is about. */
  readonly fn: string | null;
  /** Another time and another host that are compared with. */
  readonly than: Bounds | null;
  readonly thanHost: string | null;
}

export const DEFAULT_PROFILE: ProfileView = {
  host: null,
  cpu: null,
  process: "",
  job: "",
  counted: "samples",
  by: "together",
  shape: "merged",
  search: "",
  focus: [],
  fn: null,
  than: null,
  thanHost: null,
};

/** Names with `;` between, which is written `\;` inside of one. */
export function joinNames(names: readonly string[]): string {
  return names.map((name) => name.replace(/[\\;]/g, "\\$&")).join(";");
}

export function splitNames(text: string): string[] {
  const names: string[] = [];
  let [name, begun] = ["", false];
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at] ?? "";
    begun = true;
    if (letter === ";") {
      names.push(name);
      name = "";
    } else if (letter === "\\" && at + 1 < text.length) {
      at += 1;
      name += text[at] ?? "";
    } else name += letter;
  }
  return begun ? [...names, name] : names;
}

/** What differs from the default, by the names that it has in the address. */
export function formatProfile(of: ProfileView): readonly (readonly [string, string])[] {
  const all: (readonly [string, string, boolean])[] = [
    ["host", of.host ?? "", of.host !== null],
    ["cpu", String(of.cpu ?? ""), of.cpu !== null],
    ["process", of.process, of.process !== ""],
    ["job", of.job, of.job !== ""],
    ["of", of.counted, of.counted !== DEFAULT_PROFILE.counted],
    ["by", of.by, of.by !== DEFAULT_PROFILE.by],
    ["shape", of.shape, of.shape !== DEFAULT_PROFILE.shape],
    ["search", of.search, of.search !== ""],
    ["focus", joinNames(of.focus), of.focus.length > 0],
    ["fn", of.fn ?? "", of.fn !== null],
    ["than", of.than === null ? "" : formatWindow({ live: false, ...of.than }), of.than !== null],
    ["thanhost", of.thanHost ?? "", of.thanHost !== null],
  ];
  return all.filter(([, , differs]) => differs).map(([name, text]) => [name, text] as const);
}

/** Reads it back; what cannot be read is as if it were not there, and named in `problems`. */
export function parseProfile(parts: URLSearchParams, nowUs: number, problems: string[]): ProfileView {
  const word = wordsOf(parts, problems);
  const oneOf =
    <T extends string>(allowed: readonly T[]) =>
    (text: string): T | null =>
      allowed.find((one) => one === text) ?? null;
  const named = (text: string): string | null => text || null;
  return {
    host: word("host", named, null),
    cpu: word("cpu", (text) => (/^\d{1,5}$/.test(text) ? Number(text) : null), null),
    process: parts.get("process") ?? "",
    job: parts.get("job") ?? "",
    counted: word("of", oneOf(COUNTED), DEFAULT_PROFILE.counted),
    by: word("by", oneOf(GROUPINGS), DEFAULT_PROFILE.by),
    shape: word("shape", oneOf(SHAPES), DEFAULT_PROFILE.shape),
    search: parts.get("search") ?? "",
    focus: word<readonly string[]>("focus", splitNames, []),
    fn: word("fn", named, null),
    than: word("than", (text) => parseBounds(text, nowUs), null),
    thanHost: word("thanhost", named, null),
  };
}

function parseBounds(text: string, nowUs: number): Bounds | null {
  const window = parseWindow(text, nowUs);
  return window === null || window.live ? null : { fromUs: window.fromUs, toUs: window.toUs };
}
