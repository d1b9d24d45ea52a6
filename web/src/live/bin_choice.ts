/**
 * How long a bin is. Bins are whole intervals, so that no bin is empty by arithmetic; from 1 s on they are whole
 * spans of the recording's summaries (docs/recording-format.md), so that the past is answered from those and
 * the live end falls into the same bins.
 */

const SUMMARIES_US = [600e6, 60e6, 10e6, 1e6] as const;

/**
 * How many pixels a bin may be wide where that spares the next finer summaries: those are 6 to 10 times as many to
 * read, for bins half as wide. What a bin holds are still the extremes of all its readings.
 */
const PIXELS_A_BIN_MAX = 2;

export function chooseBin(spanUs: number, width: number, intervalUs: number): number {
  const exact = spanUs / Math.max(1, width);
  const whole = Math.max(1, Math.ceil(exact / intervalUs - 1e-9)) * intervalUs;
  const summary = SUMMARIES_US.find((level) => level <= Math.max(whole, PIXELS_A_BIN_MAX * exact));
  return summary === undefined ? whole : Math.ceil(whole / summary - 1e-9) * summary;
}

/** One step of the wheel, closer. */
const CLOSER = 0.8;

/**
 * The bins of the next step closer if they are answered from finer summaries than those of now: worth reading ahead.
 * Null where the server has what is needed in memory already, and where raw readings follow, which it does not keep.
 */
export function binAhead(spanUs: number, width: number, intervalUs: number): number | null {
  const summary = (binUs: number): number | undefined => SUMMARIES_US.find((level) => level <= binUs);
  const next = chooseBin(spanUs * CLOSER, width, intervalUs);
  const finer = summary(next);
  return finer === undefined || finer === summary(chooseBin(spanUs, width, intervalUs)) ? null : next;
}

/** The window to ask for: whole bins around the one that is shown. */
export function alignedRequest(
  fromUs: number,
  toUs: number,
  binUs: number,
): { fromUs: number; toUs: number; width: number } {
  const first = Math.floor(fromUs / binUs);
  const last = Math.max(first + 1, Math.ceil(toUs / binUs));
  return { fromUs: first * binUs, toUs: last * binUs, width: last - first };
}
