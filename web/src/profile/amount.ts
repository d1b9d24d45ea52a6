/** Samples, or time off the CPU, in words. */

import { count, span } from "../words/quantity.ts";

/** An amount of what is `counted`, as short as it can be: `1 204`, `31 ms`. */
export function amount(counted: string, of: number): string {
  return counted === "samples" ? count(of) : span(of / 1000);
}

/** The same as a part of a sentence: `1 204 samples`, `31 ms off the CPU`. */
export function amountWords(counted: string, of: number): string {
  if (counted !== "samples") return `${amount(counted, of)} off the CPU`;
  return `${count(of)} ${of === 1 ? "sample" : "samples"}`;
}

/** What there is of all of it: `the samples`, `the time off the CPU`. */
export function wholeWords(counted: string): string {
  return counted === "samples" ? "the samples" : "the time off the CPU";
}
