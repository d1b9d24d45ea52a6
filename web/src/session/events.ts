/** What happened in the recording: restarts, resets, silent devices, alerts. */

import { signal } from "@preact/signals";
import { NOT_READ, type Told } from "../api/poll.ts";
import type { EventBody } from "../api/types.ts";

/** In the order of time, the newest last. */
export const events = signal<readonly EventBody[]>([]);
/** Whether they were read: before that nobody knows that nothing has happened. */
export const eventsTold = signal<Told<true>>(NOT_READ);
