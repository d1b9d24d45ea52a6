/** What happened in the recording: restarts, resets, silent devices, alerts. */

import { signal } from "@preact/signals";
import type { EventBody } from "../api/types.ts";

/** In the order of time, the newest last. */
export const events = signal<readonly EventBody[]>([]);
