import { describe, expect, it } from "vitest";
import { clockExact, formatMoment, formatSpan, parseIso, parseMoment, parseSpan, ticks } from "./moment.ts";
import { boundsOf, formatWindow, parseWindow, type TimeWindow, zoomed } from "./window.ts";

const NOW = Date.UTC(2026, 10, 21, 18, 42, 11) * 1000 + 300_042;

describe("moments", () => {
  it.each([
    ["15m", 900e6],
    ["1h30m", 5400e6],
    ["100ms", 100_000],
    ["2d", 172_800e6],
    ["0.5s", 500_000],
    ["15min", 900e6],
  ])("%s is %d µs", (text, us) => expect(parseSpan(text)).toBe(us));

  it.each(["", "15", "m", "1h xyz", "-15m", "0s"])("%j is no span", (text) => expect(parseSpan(text)).toBeNull());

  it("agrees with Date to the millisecond and keeps the microseconds", () => {
    for (let round = 0; round < 500; round += 1) {
      const us = Math.floor(Math.random() * 4e15);
      expect(parseIso(formatMoment(us))).toBe(us);
      expect(Date.parse(formatMoment(Math.floor(us / 1e6) * 1e6))).toBe(Math.floor(us / 1e6) * 1000);
    }
    expect(parseIso("2026-11-21T19:42:11.300042+01:00")).toBe(NOW);
  });

  it("reads back every span that it writes", () => {
    for (let round = 0; round < 500; round += 1) {
      const us = 1 + Math.floor(Math.random() * 10 ** (round % 13));
      expect(parseSpan(formatSpan(us))).toBe(us);
    }
  });

  it("reads times of day as the last such time", () => {
    const read = parseMoment("00:01", NOW) ?? 0;
    expect(NOW - read).toBeGreaterThanOrEqual(0);
    expect(NOW - read).toBeLessThan(86_400e6);
    expect(new Date(read / 1000).getMinutes()).toBe(1);
  });

  it("shows raw readings to the microsecond", () => expect(clockExact(NOW)).toMatch(/:11\.300\u202f042$/));

  it("places at most so many round ticks, inside the window", () => {
    for (let round = 0; round < 300; round += 1) {
      const spanUs = 1000 + Math.random() * 10 ** (round % 14);
      const { at, stepUs } = ticks(NOW, NOW + spanUs, 7);
      expect(at.length).toBeLessThanOrEqual(8);
      for (const tick of at)
        expect(tick >= NOW && tick <= NOW + spanUs && tick % Math.min(stepUs, 1e6) === 0).toBe(true);
    }
  });
});

describe("windows", () => {
  it("reads back every window that it writes", () => {
    for (let round = 0; round < 300; round += 1) {
      const fromUs = Math.floor(Math.random() * 3e15);
      const spanUs = 1000 + Math.floor(Math.random() * 10 ** (round % 13));
      const window: TimeWindow = round % 2 ? { live: true, spanUs } : { live: false, fromUs, toUs: fromUs + spanUs };
      expect(parseWindow(formatWindow(window), NOW)).toEqual(window);
    }
  });

  it.each(["", "x", "-", "5..", "now..now", "-1m..-2m", "a..b..c"])("%j is no window", (text) => {
    expect(parseWindow(text, NOW)).toBeNull();
  });

  it("takes relative ends", () => {
    expect(parseWindow("-2h..-1h", NOW)).toEqual({ live: false, fromUs: NOW - 7200e6, toUs: NOW - 3600e6 });
  });

  it("zooms around a moment that stays in its place", () => {
    const window: TimeWindow = { live: false, fromUs: 1000e6, toUs: 1100e6 };
    const next = boundsOf(zoomed(window, boundsOf(window, 0), 0.5, 1025e6), 0);
    expect(next).toEqual({ fromUs: 1012.5e6, toUs: 1062.5e6 });
  });

  it("stays live when a live view is zoomed", () => {
    const window: TimeWindow = { live: true, spanUs: 60e6 };
    expect(zoomed(window, boundsOf(window, NOW), 2, NOW)).toEqual({ live: true, spanUs: 120e6 });
  });
});

describe("a live window", () => {
  const live: TimeWindow = { live: true, spanUs: 60e6 };

  it("fits a recording that is shorter, and none of the others", () => {
    expect(boundsOf(live, NOW, NOW - 20e6)).toEqual({ fromUs: NOW - 20e6, toUs: NOW });
    expect(boundsOf(live, NOW, NOW - 600e6)).toEqual({ fromUs: NOW - 60e6, toUs: NOW });
    expect(boundsOf(live, NOW, null)).toEqual({ fromUs: NOW - 60e6, toUs: NOW });
    // One that has just begun has no picture of its own yet.
    expect(boundsOf(live, NOW, NOW - 1000)).toEqual({ fromUs: NOW - 2e6, toUs: NOW });
    expect(boundsOf({ live: false, fromUs: NOW - 90e6, toUs: NOW }, NOW, NOW - 20e6).fromUs).toBe(NOW - 90e6);
  });
});
