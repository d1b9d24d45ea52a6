/** Whether what is seen can be trusted: states of all intervals, silent devices, the stalest value. */

import { signal } from "@preact/signals";
import { apiPath, getJson, recordingPath } from "../api/client.ts";
import { NOT_READ, type Told } from "../api/poll.ts";
import type { HealthBody } from "../api/types.ts";

/** The newest answer, also while a newer one is waited for. */
export const health = signal<HealthBody | null>(null);
/** The same with its age, and why there is none. */
export const healthTold = signal<Told<HealthBody>>(NOT_READ);

/** How many parts the overview has; the answer says how long each is. */
const OVERVIEW_BINS = 600;

/** Health of a span, for the time bar. */
export function getHealth(id: string, fromUs: number, toUs: number, stop: AbortSignal): Promise<HealthBody> {
  return getJson<HealthBody>(
    apiPath(recordingPath(id, "health"), { from: Math.round(fromUs), to: Math.round(toUs), width: OVERVIEW_BINS }),
    stop,
  );
}
