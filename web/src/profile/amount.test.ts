import { expect, it } from "vitest";
import { amount, amountWords, wholeWords } from "./amount.ts";

it("samples are counted, and time off the CPU is told as a span", () => {
  expect([1, 2].map((of) => amountWords("samples", of))).toEqual(["1 sample", "2 samples"]);
  expect(amount("off_cpu_ns", 31_000_000)).toBe("31\u202fms");
  expect(amountWords("off_cpu_ns", 2_500_000_000)).toBe("2.5\u202fs off the CPU");
  expect(["samples", "off_cpu_ns"].map(wholeWords)).toEqual(["the samples", "the time off the CPU"]);
});
