import { expect, it } from "vitest";

// The module draws on canvases, but what it compares is plain arithmetic.
Object.assign(globalThis, {
  window: { matchMedia: () => ({ matches: false, addEventListener: () => undefined }), location: { hash: "" } },
});
const { compared } = await import("./difference.tsx");

it("compares in shares of the scale, and ratios in octaves", () => {
  expect(compared(75, 25, "difference", 100)).toBe(0.5);
  expect(compared(25, 75, "difference", 100)).toBe(-0.5);
  expect(compared(80, 20, "ratio", 100)).toBe(1);
  expect(compared(20, 80, "ratio", 100)).toBe(-1);
  expect(compared(0, 0, "ratio", 100)).toBe(0);
});

it("what is missing on either side is missing", () => {
  expect(compared(Number.NaN, 1, "difference", 1)).toBeNaN();
  expect(compared(1, Number.NaN, "ratio", 1)).toBeNaN();
});
