/** The worst state per device and bin, so that faults of the past stand in the strip as live ones do. */

import { apiPath, getJson, recordingPath } from "./client.ts";
import type { StatesBody } from "./types.ts";

export interface StatesRequest {
  readonly recording: string;
  readonly fromUs: number;
  readonly toUs: number;
  readonly width: number;
  readonly devices?: readonly string[];
}

/** Devices and bins in which everything was ok are left out of the answer. */
export function getStates(request: StatesRequest, signal: AbortSignal): Promise<StatesBody> {
  const path = apiPath(recordingPath(request.recording, "states"), {
    from: Math.round(request.fromUs),
    to: Math.round(request.toUs),
    width: request.width,
    device: request.devices ?? [],
  });
  return getJson<StatesBody>(path, signal);
}
