/** Quantities in the words of their declaration, and events in the user's words. */

import type { Quantity } from "../address/address.ts";
import type { RecordingBody } from "../api/types.ts";
import { columnOf, recording, tableOf } from "../session/recordings.ts";

/** A quantity in one or two words, as its table declares it: `sent`, `disk used`. */
export function columnWords(table: string, column: string, of: RecordingBody | null = recording.value): string {
  return columnOf(of, table, column)?.words ?? column.replaceAll("_", " ");
}

/** The title of a picture: `Sent, busiest interface of each device`. */
export function quantityTitle(
  { table, column }: Quantity,
  rows: "devices" | "series",
  of: RecordingBody | null = recording.value,
): string {
  const words = columnWords(table, column, of);
  const part = tableOf(of, table)?.part ?? null;
  const title = words.charAt(0).toUpperCase() + words.slice(1);
  if (part === null) return title;
  return rows === "devices" ? `${title}, ${part.greatest} ${part.noun} of each device` : `${title}, every ${part.noun}`;
}

const EVENTS: Readonly<Record<string, string>> = {
  reset: "counters started again",
  flapping: "failed and answered again and again",
  renumbered: "interfaces were renumbered",
  missing_object: "does not have what was asked for",
  refused_object: "refuses an object, which is left out",
  refused_request: "refuses a whole request",
  unreadable_object: "sends a value that cannot be read",
  object_returned: "has an object again",
  gone: "an interface or disk is gone",
  back: "an interface or disk is back",
  appeared: "a new interface or disk",
  shared_name: "several ports share a name",
  removed: "the recording was removed",
  renewed: "a new recording was begun",
  deleted: "old hours were deleted",
  failing: "does not answer as it should",
  answering: "answers again",
  disk_refused: "the disk takes no rows",
  queue_full: "rows came faster than they were kept",
  resumed: "rows are kept again",
  mark: "mark",
  restart: "restarted",
  overrun: "intervals were left out",
  clock_step: "the clock was set",
  socket_drops: "datagrams were dropped here",
  in_flight_capped: "fewer requests at once than wished",
  checkpoint_opened: "a checkpoint is being written",
  checkpoint_prepared: "a host has its part of a checkpoint",
  checkpoint_committed: "a checkpoint is whole",
  checkpoint_aborted: "a checkpoint was given up",
  checkpoint_host_lost: "a host of a checkpointed program is lost",
  checkpoint_rebuilt: "a host's part of a checkpoint was rebuilt",
  checkpoint_damaged: "a stored checkpoint is damaged",
  checkpoint_lost: "a checkpoint cannot be rebuilt",
  checkpoint_stalled: "a program no longer saves",
  checkpoint_replaced: "a spare takes the place of a lost host",
  checkpoint_ready: "all hosts have what the program goes on from",
  checkpoint_runs_again: "a program runs again",
  alert_raised: "alert raised",
  alert_cleared: "alert over",
  alert_acknowledged: "alert acknowledged",
  alert_silenced: "alert silenced",
};

/** The kind of an event in words, for events without a text of their own. */
export function eventWords(kind: string): string {
  return EVENTS[kind] ?? kind.replaceAll("_", " ");
}

const REASONS: Readonly<Record<string, string>> = {
  in_flight: "still waiting",
  backed_off: "asked less often",
  rate_cap: "limit of its requests",
  in_flight_cap: "limit of open requests",
  overrun: "collector late",
  stall: "collector stood still",
  socket_drops: "dropped here",
};

/** Why a device was not asked, or what was wrong with its answer. */
export function reasonWords(reason: string): string {
  return REASONS[reason] ?? reason.replaceAll("_", " ");
}

const BROKEN = new Set([
  "alert_raised",
  "checkpoint_host_lost",
  "checkpoint_lost",
  "checkpoint_stalled",
  "disk_refused",
  "failing",
  "queue_full",
  "removed",
  "socket_drops",
]);
const DOUBTFUL = new Set([
  "checkpoint_aborted",
  "checkpoint_damaged",
  "reset",
  "flapping",
  "restart",
  "renumbered",
  "missing_object",
  "refused_object",
  "refused_request",
  "unreadable_object",
  "gone",
  "overrun",
  "clock_step",
  "in_flight_capped",
]);

/** How grave an event is: only what is missing or broken is red, only what is doubtful is gold. */
export function eventGravity(kind: string): "broken" | "doubtful" | "calm" {
  if (BROKEN.has(kind)) return "broken";
  return DOUBTFUL.has(kind) ? "doubtful" : "calm";
}

/** A plural as people write it: `1 device`, `4 devices`. */
export function plural(amount: number, noun: string, many = `${noun}${/(s|ch|x)$/.test(noun) ? "es" : "s"}`): string {
  return `${amount.toLocaleString("en-US").replaceAll(",", "\u202f")} ${amount === 1 ? noun : many}`;
}
