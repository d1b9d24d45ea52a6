/** Events as a person reads them: a device that fails and answers again and again is one line with a count. */

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
/** So many outages are told one by one. */
const SINGLE_MAX = 2;

/**
 * How often the device failed by this event. A `flapping` one counts the changes that were not written singly, of which every
 * other is a failure: it is written after it has failed and answered in turn.
 */
function failures({ event, count }: EventBody): number {
  if (event === "flapping") return Math.max(1, Math.round((count ?? 1) / 2));
  return event === "failing" ? 1 : 0;
}

/**
 * The events in the order of time, newest last, with all outages of a device as one where there are more than two of
 * them. What it did last stands as itself behind them if it does not answer now: a death is not lost among the turns.
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
  const groups: EventGroup[] = [];
  for (const event of events) {
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
