/** Tables, columns and events in the user's words. */

import type { Quantity } from "../address/address.ts";

const COLUMNS: Readonly<Record<string, string>> = {
  "interfaces.out_octets": "sent",
  "interfaces.in_octets": "received",
  "interfaces.out_packets": "packets sent",
  "interfaces.in_packets": "packets received",
  "interfaces.in_errors": "receive errors",
  "interfaces.out_errors": "send errors",
  "interfaces.in_discards": "receive discards",
  "interfaces.out_discards": "send discards",
  "interfaces.speed_mbps": "link speed",
  "interfaces.oper_status": "link state",
  "storage.used_bytes": "disk used",
  "storage.total_bytes": "disk size",
  "storage.available_bytes": "disk available",
  "load.load_1min": "load, 1 min",
  "load.load_5min": "load, 5 min",
  "load.load_15min": "load, 15 min",
  "memory.total_bytes": "memory",
  "memory.available_bytes": "memory free",
  "memory.buffer_bytes": "memory in buffers",
  "memory.cached_bytes": "memory in cache",
  "memory.swap_total_bytes": "swap",
  "memory.swap_available_bytes": "swap free",
  "polls.uptime_cs": "uptime",
};

const PARTS: Readonly<Record<string, string>> = {
  interfaces: "busiest interface",
  storage: "fullest disk",
  objects: "greatest object",
};

/** A quantity in one or two words: `sent`, `disk used`. */
export function columnWords(table: string, column: string): string {
  const known = COLUMNS[`${table}.${column}`];
  if (known !== undefined) return known;
  const bare = column.replace(/_(bytes|octets|ticks|us|cs|mbps)$/, "").replaceAll("_", " ");
  return table === "cpu" ? `CPU ${bare}` : bare;
}

/** The title of a picture: `Sent, busiest interface`. */
export function quantityTitle({ table, column }: Quantity, rows: "devices" | "series"): string {
  const words = columnWords(table, column);
  const part = PARTS[table];
  const tail = part === undefined ? "" : rows === "devices" ? `, ${part} of each device` : `, every ${PART_NOUN[table] ?? "series"}`;
  return words.charAt(0).toUpperCase() + words.slice(1) + tail;
}

const PART_NOUN: Readonly<Record<string, string>> = { interfaces: "interface", storage: "disk", objects: "object" };

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
  alert_raised: "alert raised",
  alert_cleared: "alert over",
  alert_acknowledged: "alert acknowledged",
  alert_silenced: "alert silenced",
};

/** The kind of an event in words, for events without a text of their own. */
export function eventWords(kind: string): string {
  return EVENTS[kind] ?? kind.replaceAll("_", " ");
}

const BROKEN = new Set(["alert_raised", "disk_refused", "failing", "queue_full", "removed", "socket_drops"]);
const DOUBTFUL = new Set(["reset", "flapping", "restart", "renumbered", "missing_object", "refused_object", "refused_request", "unreadable_object", "gone", "overrun", "clock_step", "in_flight_capped"]);

/** How grave an event is: only what is missing or broken is red, only what is doubtful is gold. */
export function eventGravity(kind: string): "broken" | "doubtful" | "calm" {
  if (BROKEN.has(kind)) return "broken";
  return DOUBTFUL.has(kind) ? "doubtful" : "calm";
}

/** A plural as people write it: `1 device`, `4 devices`. */
export function plural(amount: number, noun: string, many = `${noun}${/(s|ch|x)$/.test(noun) ? "es" : "s"}`): string {
  return `${amount.toLocaleString("en-US").replaceAll(",", "\u202f")} ${amount === 1 ? noun : many}`;
}
