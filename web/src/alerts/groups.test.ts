import { expect, it } from "vitest";
import type { AlertBody } from "../api/types.ts";
import { byRule, saidOf, sinceWords, standingOf } from "./groups.ts";

const NOW = Date.parse("2026-11-21T23:06:00") * 1000;

function alert(rule: string, device: string, more: Partial<AlertBody> = {}): AlertBody {
  return {
    acknowledged_us: null,
    cleared_us: null,
    device,
    id: `${rule} ${device}`,
    object: null,
    raised_us: NOW - 29 * 60e6,
    recording: "r",
    rule,
    silenced_until_us: null,
    state: "raised",
    text: `${rule}: no answer for more than 5 s`,
    ...more,
  };
}

const plain = (text: string): string => text.replaceAll("\u202f", " ");

it("there is one group a rule, with its devices in natural order and the pressing ones first", () => {
  const groups = byRule(
    [
      alert("frozen", "sw1", { acknowledged_us: NOW }),
      alert("silent", "node10"),
      alert("silent", "node9"),
      alert("silent", "node1", { silenced_until_us: NOW + 1 }),
      alert("disk", "node2"),
    ],
    NOW,
  );
  expect(groups.map(({ rule, raised, alerts }) => [rule, raised, alerts.map(({ device }) => device)])).toEqual([
    ["disk", 1, ["node2"]],
    ["silent", 2, ["node9", "node10", "node1"]],
    ["frozen", 0, ["sw1"]],
  ]);
});

it("says for how long, and since when", () => {
  expect(plain(sinceWords(alert("silent", "a"), NOW))).toBe("for 29 min, since 22:37");
  expect(plain(sinceWords(alert("silent", "a", { raised_us: NOW - 42.7e6 }), NOW))).toBe("for 42 s, since 23:05");
  expect(plain(sinceWords(alert("silent", "a", { raised_us: NOW - 0.2e6 }), NOW))).toBe(
    "for less than 1 s, since 23:05",
  );
  expect(plain(sinceWords(alert("silent", "a", { raised_us: NOW - 2 * 86_400e6 - 3 * 3600e6 }), NOW))).toBe(
    "for 2 d 3 h, since 19 Nov 20:06",
  );
  expect(plain(sinceWords(alert("silent", "a", { cleared_us: NOW - 9 * 60e6, state: "cleared" }), NOW))).toBe(
    "for 20 min, from 22:37 to 22:57",
  );
  expect(plain(sinceWords(alert("silent", "a", { raised_us: NOW - 69.9 * 60e6 }), NOW))).toBe(
    "for 1 h 9 min, since 21:56",
  );
});

it("is pressing until somebody answers or it is over, and again when the silence ends", () => {
  expect(standingOf(alert("x", "a"), NOW)).toBe("raised");
  expect(standingOf(alert("x", "a", { acknowledged_us: 1 }), NOW)).toBe("acknowledged");
  expect(standingOf(alert("x", "a", { silenced_until_us: NOW + 1 }), NOW)).toBe("silenced");
  expect(standingOf(alert("x", "a", { silenced_until_us: NOW - 1 }), NOW)).toBe("raised");
  expect(standingOf(alert("x", "a", { state: "cleared" }), NOW)).toBe("over");
  expect(saidOf(alert("silent", "a"))).toBe("no answer for more than 5 s");
});
