import { expect, it } from "vitest";
import { DEFAULT_PROFILE } from "../profile/profile_address.ts";
import { DEFAULT_VIEW, formatAddress, parseAddress, VIEW_NAMES, type View } from "./address.ts";

const NOW = Date.UTC(2026, 10, 21) * 1000;
const any = <T>(...choices: readonly T[]): T => choices[Math.floor(Math.random() * choices.length)] as T;
const moment = (): number => Math.floor(Math.random() * 3e15);

function anyView(): View {
  const from = moment();
  return {
    name: any(...VIEW_NAMES),
    recording: any(null, "demo", "läb & co #2"),
    window: any<View["window"]>(
      { live: true, spanUs: 1000 + Math.floor(Math.random() * 1e9) },
      { live: false, fromUs: from, toUs: from + 5e6 },
    ),
    quantity: any({ table: "load", column: "load_1min" }, DEFAULT_VIEW.quantity),
    also: any<View["also"]>(null, ["in_octets", "in_errors"]),
    rows: any<View["rows"]>("devices", "series"),
    devices: any<readonly string[]>([], ["node001", "node002", "node003"], ["sw-r07"]),
    selected: any(null, { fromUs: from, toUs: from + 1e6 }),
    device: any(null, "node+1"),
    marker: any(null, moment()),
    aligned: any(null, moment()),
    other: any(null, "last week"),
    compare: any<View["compare"]>("difference", "ratio"),
    vlan: any(null, 101, 4094),
    colour: any<View["colour"]>("vlan", "load"),
    scale: any<View["scale"]>("linear", "log"),
    find: any("", "eth0 & node%"),
    tables: any(true, false),
    theme: any<View["theme"]>(null, "dark", "light"),
    profile: any(DEFAULT_PROFILE, {
      ...DEFAULT_PROFILE,
      host: "node001",
      cpu: 3,
      by: "thread",
      focus: ["main", "a;b"],
      than: { fromUs: from, toUs: from + 2e6 },
    }),
    play: any(null, { speed: 1, fromUs: null }, { speed: 0.5, fromUs: moment() }),
    bench: any(true, false),
  };
}

it("reads back every view that it writes", () => {
  for (let round = 0; round < 1000; round += 1) {
    const view = anyView();
    const { view: read, problems } = parseAddress(`#${formatAddress(view)}`, NOW);
    expect(problems).toEqual([]);
    expect(read).toEqual(view);
  }
});

it("is empty of what is usual", () => expect(formatAddress(DEFAULT_VIEW)).toBe("cluster"));

it("stays readable", () => {
  expect(
    formatAddress({ ...DEFAULT_VIEW, devices: ["node003", "node004"], window: { live: true, spanUs: 900e6 } }),
  ).toBe("cluster?t=-15m&dev=node[003-004]");
});

it("opens the usual view and names what it cannot read", () => {
  const { view, problems } = parseAddress("#nowhere?t=yesterday&q=a&play=-1", NOW);
  expect(view).toEqual(DEFAULT_VIEW);
  expect(problems).toEqual(["nowhere", "t=yesterday", "q=a", "play=-1"]);
});

it("survives any text", () => {
  for (let round = 0; round < 500; round += 1) {
    const noise = Array.from({ length: 40 }, () => String.fromCharCode(33 + Math.floor(Math.random() * 94))).join("");
    expect(() => parseAddress(`#cluster?${noise}&t=${noise}&dev=${noise}`, NOW)).not.toThrow();
  }
});
