/** Every key of the page. The help panel is made from this list, so that it cannot lie. */

import { signal } from "@preact/signals";
import { VIEW_NAMES, type ViewName } from "../address/address.ts";
import { cursor } from "../session/cursor.ts";
import { newestUs } from "../session/now.ts";
import { intervalUs } from "../session/recordings.ts";
import { boundsNow, otherScale, pan, pauseOrGoOn, playFromHere, reset, show, view, zoom } from "../session/view.ts";
import { otherTheme } from "../theme/theme.ts";

export const helpOpen = signal(false);
export const alertsOpen = signal(false);

export interface Key {
  /** `KeyboardEvent.key` values. */
  readonly keys: readonly string[];
  readonly shown: string;
  readonly does: string;
  readonly act: () => void;
}

function goTo(name: ViewName): void {
  const device =
    name === "device"
      ? (cursor.peek()?.device ?? view.peek().device ?? view.peek().devices[0] ?? null)
      : view.peek().device;
  show({ name, device }, true);
}

/** One interval back or forth: of the cursor if there is one, else of the paused window. */
function step(direction: 1 | -1): void {
  const at = cursor.peek();
  const { fromUs, toUs } = boundsNow();
  if (at?.us != null)
    cursor.value = { ...at, us: Math.min(toUs - 1, Math.max(fromUs, at.us + direction * intervalUs.peek())) };
  else pan((direction * intervalUs.peek()) / (toUs - fromUs));
}

/** The marker goes where the cursor is, else to the end of the window; the same moment again takes it away. */
function mark(): void {
  const us = Math.round(cursor.peek()?.us ?? boundsNow().toUs);
  show({ marker: view.peek().marker === us ? null : us });
}

function clear(): void {
  if (helpOpen.peek() || alertsOpen.peek()) {
    helpOpen.value = false;
    alertsOpen.value = false;
    return;
  }
  cursor.value = null;
  show({ devices: [], selected: null, find: "" });
}

function focus(id: string): void {
  document.getElementById(id)?.focus();
}

const VIEW_WORDS: Readonly<Record<ViewName, string>> = {
  cluster: "Cluster",
  then: "Then and now",
  device: "Device",
  fabric: "Fabric",
  data: "Data",
  profile: "Profile",
  clusters: "Clusters",
  checkpoints: "Checkpoints",
};

export const KEYS: readonly Key[] = [
  {
    keys: [" "],
    shown: "space",
    does: "pause the view, or go on live; the recording goes on in any case",
    act: pauseOrGoOn,
  },
  { keys: ["p"], shown: "p", does: "play what is shown from its begin", act: playFromHere },
  { keys: ["r"], shown: "r", does: "reset: live, all devices, nothing selected", act: reset },
  { keys: ["/"], shown: "/", does: "find a device", act: () => focus("find") },
  { keys: ["t"], shown: "t", does: "type a time, such as -15m or 18:42", act: () => focus("jump") },
  { keys: ["ArrowLeft"], shown: "←", does: "back in time", act: () => pan(-0.1) },
  { keys: ["ArrowRight"], shown: "→", does: "forward in time", act: () => pan(0.1) },
  {
    keys: ["+", "=", "ArrowUp"],
    shown: "↑ +",
    does: "zoom in; the wheel does it, too",
    act: () => zoom(0.5, middle()),
  },
  { keys: ["-", "ArrowDown"], shown: "↓ −", does: "zoom out", act: () => zoom(2, middle()) },
  { keys: ["["], shown: "[", does: "one interval back", act: () => step(-1) },
  { keys: ["]"], shown: "]", does: "one interval forward", act: () => step(1) },
  { keys: ["m"], shown: "m", does: "set the marker at the cursor; Then and now begins there", act: mark },
  { keys: ["b"], shown: "b", does: "tables behind the pictures", act: () => show({ tables: !view.peek().tables }) },
  { keys: ["l"], shown: "l", does: "colours by value, or by power of ten", act: otherScale },
  { keys: ["d"], shown: "d", does: "dark or light", act: otherTheme },
  {
    keys: ["a"],
    shown: "a",
    does: "alerts",
    act: () => {
      alertsOpen.value = !alertsOpen.peek();
    },
  },
  ...VIEW_NAMES.map((name, at) => ({
    keys: [String(at + 1)],
    shown: String(at + 1),
    does: `view: ${VIEW_WORDS[name]}`,
    act: () => goTo(name),
  })),
  {
    keys: ["?"],
    shown: "?",
    does: "all keys",
    act: () => {
      helpOpen.value = !helpOpen.peek();
    },
  },
  { keys: ["Escape"], shown: "Esc", does: "close, or select nothing", act: clear },
];

/** Keys of single pictures, for the help. */
export const PICTURE_KEYS: readonly { readonly shown: string; readonly does: string }[] = [
  { shown: "Tab", does: "from picture to picture" },
  { shown: "← ↑ ↓ →", does: "inside grid and strip: move over devices and time" },
  { shown: "Enter", does: "inside grid and strip: select the device; with Shift, add it" },
  { shown: "double click", does: "on a cell: everything about this device" },
];

function middle(): number {
  const at = cursor.peek()?.us;
  const { fromUs, toUs } = boundsNow();
  return at ?? (view.peek().window.live ? newestUs.peek() : (fromUs + toUs) / 2);
}

/** Keys that belong to a field or a button while it has the focus. */
function belongsToElement(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  if (target === null) return false;
  if (target.closest("input, textarea, select") !== null) return event.key !== "Escape";
  if (target.closest(".scroll, .page") === target && event.key.startsWith("Arrow")) return true;
  return target.closest("button, a") !== null && (event.key === " " || event.key === "Enter");
}

export function listenToKeys(): void {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || belongsToElement(event)) return;
    const found = KEYS.find(({ keys }) => keys.includes(event.key));
    if (found === undefined) return;
    event.preventDefault();
    found.act();
  });
}
