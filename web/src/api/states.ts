/** The worst state per device and bin, so that faults of the past stand in the strip as live ones do. */

import { tableFromIPC } from "@uwdata/flechette";
import { apiPath, getBytes, recordingPath } from "./client.ts";

export interface States {
  readonly fromUs: number;
  readonly binUs: number;
  readonly bins: Uint32Array;
  /** Position in `devices`. */
  readonly series: Uint32Array;
  readonly states: Uint8Array;
  readonly devices: readonly string[];
}

export interface StatesRequest {
  readonly recording: string;
  readonly fromUs: number;
  readonly toUs: number;
  readonly width: number;
}
