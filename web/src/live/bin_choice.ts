/**
 * How long a bin is. Bins are whole intervals, so that no bin is empty by arithmetic; from 1 s on they are whole
 * spans of the recording's summaries (docs/recording-format.md), so that the past is answered from those and
 * the live end falls into the same bins.
 */

const SUMMARIES_US = [600e6, 60e6, 10e6, 1e6] as const;

export function chooseBin(spanUs: number, width: number, intervalUs: number): number {
  const exact = spanUs / Math.max(1, width);
  const whole = Math.max(1, Math.ceil(exact / intervalUs - 1e-9)) * intervalUs;
  const summary = SUMMARIES_US.find((level) => level <= whole);
  return summary === undefined ? whole : Math.ceil(whole / summary - 1e-9) * summary;
}

/** The window to ask for: whole bins around the one that is shown. */
export function alignedRequest(fromUs: number, toUs: number, binUs: number): { fromUs: number; toUs: number; width: number } {
  const first = Math.floor(fromUs / binUs);
  const last = Math.max(first + 1, Math.ceil(toUs / binUs));
  return { fromUs: first * binUs, toUs: last * binUs, width: last - first };
}
