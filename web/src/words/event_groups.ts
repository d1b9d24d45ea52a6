/** Events as a person reads them: what happens again and again is one line with a count. */

import type { EventBody } from "../api/types.ts";

export interface EventGroup {
  /** The newest of them. */
  readonly event: EventBody;
  readonly fromUs: number;
  readonly toUs: number;
  /** How often it happened; 1: the event stands for itself. */
  readonly times: number;
}

/** Kinds that come in turn while a device flaps. */
const TURNS = new Set(["failing", "answering", "flapping"]);
/** What the collector itself may do again and again on a loaded machine. */
const REPEATED = new Set(["overrun", "socket_drops", "queue_full", "in_flight_capped"]);
/** So many outages or repetitions are told one by one. */
const SINGLE_MAX = 2;

/**
 * How often the device failed by this event. A `flapping` one counts the changes that were not written singly, of which every
 * other is a failure: it is written after it has failed and answered in turn.
 */
function failures({ event, count }: EventBody): number {
  if (event === "flapping") return Math.max(1, Math.round((count ?? 1) / 2));
  return event === "failing" ? 1 : 0;
}

/** Events of the collector by kind, where there are more of a kind than are told one by one. */
function repeatedByKind(events: readonly EventBody[]): ReadonlyMap<string, readonly EventBody[]> {
  const kinds = new Map<string, EventBody[]>();
  for (const event of events) {
    if (event.device !== null || !REPEATED.has(event.event)) continue;
    const own = kinds.get(event.event) ?? [];
    own.push(event);
    kinds.set(event.event, own);
  }
  return new Map([...kinds].filter(([, own]) => own.length > SINGLE_MAX));
}

/**
 * The events in the order of time, newest last, with all outages of a device as one where there are more than two of
 * them, and what the collector did repeatedly likewise. What a device did last stands as itself behind them if it does not answer now: a death is not lost among the turns.
 */
export function groupedEvents(events: readonly EventBody[]): EventGroup[] {
  const turns = new Map<string, EventBody[]>();
  for (const event of events) {
    if (!TURNS.has(event.event) || event.device === null) continue;
    const own = turns.get(event.device) ?? [];
    own.push(event);
    turns.set(event.device, own);
  }
  const many = new Set(
    [...turns]
      .filter(([, own]) => own.reduce((sum, one) => sum + failures(one), 0) > SINGLE_MAX)
      .map(([device]) => device),
  );
  const repeated = repeatedByKind(events);
  const groups: EventGroup[] = [];
  for (const own of repeated.values()) {
    const [first, newest] = [own[0], own.at(-1)];
    if (first === undefined || newest === undefined) continue;
    groups.push({ event: newest, fromUs: first.time_us, toUs: newest.time_us, times: own.length });
  }
  for (const event of events) {
    if (event.device === null && repeated.has(event.event)) continue;
    if (!TURNS.has(event.event) || event.device === null || !many.has(event.device))
      groups.push({ event, fromUs: event.time_us, toUs: event.time_us, times: 1 });
  }
  for (const device of many) {
    const own = turns.get(device) ?? [];
    const last = own.at(-1);
    const before = last?.event === "failing" ? own.slice(0, -1) : own;
    const newest = before.at(-1);
    if (last?.event === "failing") groups.push({ event: last, fromUs: last.time_us, toUs: last.time_us, times: 1 });
    if (newest === undefined) continue;
    groups.push({
      event: { ...newest, event: "flapping", text: null, object: null },
      fromUs: before[0]?.time_us ?? newest.time_us,
      toUs: newest.time_us,
      times: before.reduce((sum, one) => sum + failures(one), 0),
    });
  }
  return groups.sort((left, right) => left.toUs - right.toUs);
}

/** The text of an event behind the name of its device: `answers again`, not `it answers again`. */
export function textBehindName(text: string): string {
  return text.replace(/^it (?=[a-z])/, "");
}
