/**
 * The address holds the whole view: what stands behind `#` is all that another person needs to see the same.
 *
 * `#cluster?rec=demo&q=interfaces.out_octets&t=-1m&dev=node[001-004]`. Only what differs from the default is
 * written, so that addresses stay short enough to be read.
 */

import { DEFAULT_PROFILE, formatProfile, type ProfileView, parseProfile } from "../profile/profile_address.ts";
import { formatMoment, parseIso } from "../time/moment.ts";
import { type Bounds, formatWindow, parseWindow, type TimeWindow } from "../time/window.ts";
import { foldNames, unfoldNames } from "../words/host_range.ts";
import { wordsOf } from "./word.ts";

export const VIEW_NAMES = [
  "cluster",
  "then",
  "device",
  "fabric",
  "data",
  "profile",
  "clusters",
  "checkpoints",
] as const;
export type ViewName = (typeof VIEW_NAMES)[number];

export interface Quantity {
  readonly table: string;
  readonly column: string;
}

export interface Play {
  /** So many times as fast as it happened. */
  readonly speed: number;
  readonly fromUs: number | null;
}

export interface View {
  readonly name: ViewName;
  /** The recording's id; null: the first one. */
  readonly recording: string | null;
  readonly window: TimeWindow;
  /** null: what the recording shows first. */
  readonly quantity: Quantity | null;
  /** Further columns of the same table that arrive live; null: those that belong to the quantity. */
  readonly also: readonly string[] | null;
  /** A row of the strip is a device, or each of its interfaces, disks ... */
  readonly rows: "devices" | "series";
  /** Selected devices; none selected is all. */
  readonly devices: readonly string[];
  /** Selected time inside the window. */
  readonly selected: Bounds | null;
  /** The device that the Device view is about. */
  readonly device: string | null;
  /** The moment of the past that is looked at beside now. */
  readonly marker: number | null;
  /** What the marker is laid under; null: the begin of the window. */
  readonly aligned: number | null;
  /** The recording that the marker is in; null: the same. */
  readonly other: string | null;
  readonly compare: "difference" | "ratio";
  /** The VLAN that the fabric is looked at for; null: all. */
  readonly vlan: number | null;
  /** What colours the trunks of the fabric. */
  readonly colour: "vlan" | "load";
  /** How values become colours. */
  readonly scale: "linear" | "log";
  readonly find: string;
  /** Tables stand open behind the pictures. */
  readonly tables: boolean;
  readonly theme: "dark" | "light" | null;
  /** The recording is played from a moment (null: its begin) instead of what is new. */
  readonly play: Play | null;
  /** What of a profile is shown, and how. */
  readonly profile: ProfileView;
  /** Paints the newest interval's number where a bench can read it. */
  readonly bench: boolean;
}

export const DEFAULT_VIEW: View = {
  name: "cluster",
  recording: null,
  window: { live: true, spanUs: 60_000_000 },
  quantity: null,
  also: null,
  rows: "devices",
  devices: [],
  selected: null,
  device: null,
  marker: null,
  aligned: null,
  other: null,
  compare: "difference",
  vlan: null,
  colour: "vlan",
  scale: "linear",
  find: "",
  tables: false,
  theme: null,
  play: null,
  profile: DEFAULT_PROFILE,
  bench: false,
};

/** The text behind `#`. */
export function formatAddress(view: View): string {
  const parts = new URLSearchParams();
  const base = DEFAULT_VIEW;
  const set = (name: string, text: string, differs: boolean): void => {
    if (differs) parts.set(name, text);
  };
  set("rec", view.recording ?? "", view.recording !== null);
  if (view.quantity !== null) parts.set("q", `${view.quantity.table}.${view.quantity.column}`);
  set("also", view.also?.join(",") ?? "", view.also !== null);
  const time = formatWindow(view.window);
  set("t", time, time !== formatWindow(base.window));
  set("rows", view.rows, view.rows !== base.rows);
  set("dev", foldNames(view.devices), view.devices.length > 0);
  if (view.selected !== null) parts.set("sel", formatWindow({ live: false, ...view.selected }));
  set("device", view.device ?? "", view.device !== null);
  set("mark", formatMoment(view.marker ?? 0), view.marker !== null);
  set("at", formatMoment(view.aligned ?? 0), view.aligned !== null);
  set("other", view.other ?? "", view.other !== null);
  set("compare", view.compare, view.compare !== base.compare);
  set("vlan", String(view.vlan ?? ""), view.vlan !== null);
  set("colour", view.colour, view.colour !== base.colour);
  set("scale", view.scale, view.scale !== base.scale);
  set("find", view.find, view.find !== "");
  set("tables", "1", view.tables);
  set("theme", view.theme ?? "", view.theme !== null);
  if (view.play !== null)
    parts.set(
      "play",
      view.play.fromUs === null ? String(view.play.speed) : `${view.play.speed}@${formatMoment(view.play.fromUs)}`,
    );
  for (const [part, text] of formatProfile(view.profile)) parts.set(part, text);
  set("bench", "1", view.bench);
  // These letters are allowed behind `#` and are easier on the eye as they are.
  const readable = parts
    .toString()
    .replace(/%3A/g, ":")
    .replace(/%40/g, "@")
    .replace(/%2C/g, ",")
    .replace(/%5B/g, "[")
    .replace(/%5D/g, "]");
  return readable === "" ? view.name : `${view.name}?${readable}`;
}

/** Reads an address; what it does not understand is as if it were not there, and is named in `problems`. */
export function parseAddress(hash: string, nowUs: number): { view: View; problems: string[] } {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const parts = new URLSearchParams(query);
  const problems: string[] = [];
  const base = DEFAULT_VIEW;
  const word = wordsOf(parts, problems);
  const oneOf =
    <T extends string>(...allowed: readonly T[]) =>
    (text: string): T | null =>
      allowed.find((one) => one === text) ?? null;
  const name = oneOf(...VIEW_NAMES)(path);
  if (name === null && path !== "") problems.push(path);
  const view: View = {
    name: name ?? base.name,
    recording: word("rec", (text) => text || null, base.recording),
    window: word("t", (text) => parseWindow(text, nowUs), base.window),
    quantity: word("q", parseQuantity, base.quantity),
    also: word<readonly string[] | null>("also", (text) => text.split(",").filter((one) => one !== ""), null),
    rows: word("rows", oneOf("devices", "series"), base.rows),
    devices: word<readonly string[]>("dev", unfoldNames, base.devices),
    selected: word("sel", (text) => parseBounds(text, nowUs), base.selected),
    device: word("device", (text) => text || null, base.device),
    marker: word("mark", parseIso, base.marker),
    aligned: word("at", parseIso, base.aligned),
    other: word("other", (text) => text || null, base.other),
    compare: word("compare", oneOf("difference", "ratio"), base.compare),
    vlan: word("vlan", parseVlan, base.vlan),
    colour: word("colour", oneOf("vlan", "load"), base.colour),
    scale: word("scale", oneOf("linear", "log"), base.scale),
    find: parts.get("find") ?? "",
    tables: parts.get("tables") === "1",
    theme: word("theme", oneOf("dark", "light"), base.theme),
    play: word("play", parsePlay, base.play),
    profile: parseProfile(parts, nowUs, problems),
    bench: parts.get("bench") === "1",
  };
  return { view, problems };
}

function parseVlan(text: string): number | null {
  const vlan = Number(text);
  return Number.isInteger(vlan) && vlan >= 1 && vlan <= 4094 ? vlan : null;
}

function parseQuantity(text: string): Quantity | null {
  const match = /^([\w-]+)\.([\w-]+)$/.exec(text);
  return match === null ? null : { table: match[1] ?? "", column: match[2] ?? "" };
}

/** `2` or `2@2026-11-21T18:42:00Z`; the server plays at most 1000 times as fast. */
function parsePlay(text: string): Play | null {
  const [speedText = "", moment] = text.split("@");
  const speed = Number(speedText);
  const fromUs = moment === undefined ? null : parseIso(moment);
  if (!(speed > 0 && speed <= 1000) || (moment !== undefined && fromUs === null)) return null;
  return { speed, fromUs };
}

function parseBounds(text: string, nowUs: number): Bounds | null {
  const window = parseWindow(text, nowUs);
  return window === null || window.live ? null : { fromUs: window.fromUs, toUs: window.toUs };
}
