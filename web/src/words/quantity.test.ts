import { describe, expect, it } from "vitest";
import { count, grouped, MISSING, niceCeiling, niceScale, quantityText, share, span, THIN } from "./quantity.ts";

const plain = (text: string): string => text.replaceAll(THIN, " ");

describe("quantities", () => {
  it.each([
    // The numbers of the sketch, from octets.
    [101_550_000, "octets/s", "812.4 Mbit/s"],
    [8.91e9, "octets", "8.91 GB"],
    [15.8, "1", "15.8"],
    [0, "octets/s", "0 bit/s"],
    [124.99e6, "octets/s", "999.9 Mbit/s"],
    [124.9999e6, "octets/s", "1.00 Gbit/s"],
    [1000, "Mbit/s", "1.00 Gbit/s"],
    [250, "ticks/s", "250 % of a CPU"],
    [41.5, "degC", "41.5 °C"],
    [1200, "rpm", "1200 rpm"],
    [1250, "W", "1.25 kW"],
    [123456, "cs", "1 235 s".replace("1 235", "1235")],
  ])("%d %s reads %s", (value, unit, text) => {
    expect(plain(quantityText(value, unit))).toBe(text);
  });

  it("tells the labels of an axis apart", () => {
    expect(plain(quantityText(274_876e6, "bytes", 1e6))).toBe("274.876 GB");
    expect(plain(quantityText(20e6, "octets/s", 20e6))).toBe("160 Mbit/s");
    expect(plain(quantityText(0.5, "tasks", 0.5))).toBe("0.5");
  });

  it("shows a missing reading as missing, never as 0", () => {
    expect(quantityText(Number.NaN, "octets/s")).toBe(MISSING);
    expect(quantityText(null, "octets/s")).toBe(MISSING);
    expect(count(undefined)).toBe(MISSING);
    expect(share(0, 0)).toBe(MISSING);
  });

  it("groups digits as Intl does with a thin space", () => {
    const oracle = new Intl.NumberFormat("en-US");
    for (let at = 0; at < 500; at += 1) {
      const value = Math.floor(Math.random() * 10 ** (at % 15));
      if (value < 10_000) continue;
      expect(grouped(String(value))).toBe(oracle.format(value).replaceAll(",", THIN));
    }
  });

  it("never rounds a fault away", () => {
    expect(plain(share(1, 10_000_000))).toBe("< 0.01 %");
    expect(plain(share(9_999_999, 10_000_000))).toBe("99.99 %");
    expect(plain(share(7, 7))).toBe("100 %");
    expect(plain(share(2, 10_000))).toBe("0.02 %");
  });

  it.each([
    [41, "41 µs"],
    [310, "0.31 ms"],
    [3_000_000, "3 s"],
    [80_000, "80 ms"],
    [110_000, "0.11 s"],
    [65e6, "1 min 5 s"],
    [900e6, "15 min"],
    [3900e6, "1 h 5 min"],
    [86_400e6 * 2 + 3 * 3600e6, "2 d 3 h"],
    [-42e6, "−42 s"],
  ])("a span of %d µs reads %s", (us, text) => {
    expect(plain(span(us))).toBe(text);
  });

  it("ends scales at 1, 2 or 5 times a power of ten that holds the value", () => {
    for (let at = 0; at < 2000; at += 1) {
      const value = Math.random() * 10 ** ((at % 13) - 3);
      const end = niceCeiling(value);
      expect(end).toBeGreaterThanOrEqual(value * (1 - 1e-9));
      expect(end).toBeLessThanOrEqual(value * 2.5 * (1 + 1e-9));
      expect(["1", "2", "5"]).toContain(end.toExponential(0)[0]);
    }
    expect(niceScale(117_000_000, "octets/s") * 8).toBe(1e9);
  });
});
