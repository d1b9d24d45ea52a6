import { expect, it } from "vitest";
import { fittedEnd } from "./text_width.ts";

/** Letters of different widths, as fonts have them. */
const WIDTHS: Readonly<Record<string, number>> = { i: 3, "\u2026": 10 };
const measure = (text: string): number => [...text].reduce((sum, letter) => sum + (WIDTHS[letter] ?? 8), 0);

it("keeps a text that fits", () => {
  expect(fittedEnd("this-machine", measure("this-machine"), measure)).toBe("this-machine");
});

it("keeps the longest end that fits, for any width", () => {
  const text = "thiis-iis-a-very-long-name-of-a-machiine";
  for (let width = 11; width < measure(text); width += 1) {
    const fitted = fittedEnd(text, width, measure);
    expect(measure(fitted)).toBeLessThanOrEqual(width);
    expect(text.endsWith(fitted.slice(1))).toBe(true);
    // One letter more would not fit.
    const longer = text.slice(-[...fitted].length);
    expect(measure(`\u2026${longer}`)).toBeGreaterThan(width);
  }
});
