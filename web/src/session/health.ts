/** Whether what is seen can be trusted: states of all intervals, silent devices, the stalest value. */

import { signal } from "@preact/signals";
import { apiPath, getJson, recordingPath } from "../api/client.ts";
import { NOT_READ, type Told } from "../api/poll.ts";
import type { HealthBinsBody, HealthBody, HealthOfBody, HealthTotalsBody } from "../api/types.ts";

/** The newest answer, also while a newer one is waited for. */
export const health = signal<HealthBody | null>(null);
/** The same with its age, and why there is none. */
export const healthTold = signal<Told<HealthBody>>(NOT_READ);

/** How many parts the overview has; the answer says how long each is. */
const OVERVIEW_BINS = 600;

/** Health of a span, for the time bar. */
export function getHealth(id: string, fromUs: number, toUs: number, stop: AbortSignal): Promise<HealthBody> {
  return getJson<HealthBody>(apiPath(recordingPath(id, "health"), spanOf(fromUs, toUs)), stop);
}

/** Health of a span of all recordings that are written, as if they were one. */
export async function getHealthOfAll(fromUs: number, toUs: number, stop: AbortSignal): Promise<HealthBody> {
  return healthOfAll(await getJson<readonly HealthOfBody[]>(apiPath("health", spanOf(fromUs, toUs)), stop));
}

/** A span as it is asked about; nothing was recorded before 1970, at which a recording without rows ends. */
function spanOf(fromUs: number, toUs: number): Record<string, number> {
  return { from: Math.max(0, Math.round(fromUs)), to: Math.round(toUs), width: OVERVIEW_BINS };
}

/** Sums over recordings whose bins are the same; devices are named behind their recording. */
export function healthOfAll(all: readonly HealthOfBody[]): HealthBody {
  const known = all.flatMap(({ recording, health: of }) => (of == null ? [] : [{ recording, of }]));
  const first = known[0]?.of;
  const same = known.filter(({ of }) => of.from_us === first?.from_us && of.bin_us === first.bin_us);
  const bins = (state: keyof HealthBinsBody): readonly number[] =>
    (first?.bins[state] ?? []).map((_, at) => same.reduce((sum, { of }) => sum + (of.bins[state][at] ?? 0), 0));
  const total = (state: keyof HealthTotalsBody): number => same.reduce((sum, { of }) => sum + of.totals[state], 0);
  const stalest = known.flatMap(({ recording, of }) =>
    of.stalest == null ? [] : [{ ...of.stalest, device: `${recording}: ${of.stalest.device}` }],
  );
  return {
    from_us: first?.from_us ?? 0,
    bin_us: first?.bin_us ?? 1,
    bins: {
      ok: bins("ok"),
      late: bins("late"),
      missed: bins("missed"),
      error: bins("error"),
      skipped: bins("skipped"),
    },
    totals: {
      ok: total("ok"),
      late: total("late"),
      missed: total("missed"),
      error: total("error"),
      skipped: total("skipped"),
      intervals: total("intervals"),
    },
    silent: known.flatMap(({ recording, of }) => of.silent.map((name) => `${recording}: ${name}`)),
    stalest: stalest.toSorted((left, right) => right.age_us - left.age_us)[0] ?? null,
    intervals_per_s: known.reduce((most, { of }) => Math.max(most, of.intervals_per_s), 0),
    problems: known.flatMap(({ of }) => of.problems),
  };
}
