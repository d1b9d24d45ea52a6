/** Whether what is seen can be trusted: states of all intervals, silent devices, the stalest value. */

import { signal } from "@preact/signals";
import { apiPath, getJson, recordingPath, wasAborted } from "../api/client.ts";
import type { HealthBody } from "../api/types.ts";

export const health = signal<HealthBody | null>(null);

/** How many parts the overview has; the answer says how long each is. */
const OVERVIEW_BINS = 600;

/** Health of a span, for the time bar. */
export async function refreshHealth(id: string, fromUs: number, toUs: number, stop: AbortSignal): Promise<void> {
  if (toUs <= fromUs) return;
  try {
    const path = recordingPath(id, "health");
    health.value = await getJson<HealthBody>(apiPath(path, { from: Math.round(fromUs), to: Math.round(toUs), width: OVERVIEW_BINS }), stop);
  } catch (error) {
    // The notice about the lost server says more than this request could.
    if (!wasAborted(error)) health.value = null;
  }
}
