/** Alerts as people see them: by the rule that found them, with what each of their devices does. */

import type { AlertBody } from "../api/types.ts";
import { clock, dayAndClock } from "../time/moment.ts";
import { naturally } from "../words/natural.ts";
import { span } from "../words/quantity.ts";

/** What an alert is now, in one word: only one that nobody has answered is pressing. */
export type Standing = "raised" | "acknowledged" | "silenced" | "over";

export function standingOf(alert: AlertBody, nowUs: number): Standing {
  if (alert.state === "cleared") return "over";
  if (alert.silenced_until_us !== null && alert.silenced_until_us > nowUs) return "silenced";
  return alert.acknowledged_us === null ? "raised" : "acknowledged";
}

export interface RuleGroup {
  readonly rule: string;
  /** In the natural order of their devices, those that press first. */
  readonly alerts: readonly AlertBody[];
  readonly raised: number;
}

const ORDER: readonly Standing[] = ["raised", "acknowledged", "silenced", "over"];

/** One group a rule, those with something pressing first, then by name. */
export function byRule(alerts: readonly AlertBody[], nowUs: number): RuleGroup[] {
  const rules = new Map<string, AlertBody[]>();
  for (const alert of alerts) rules.set(alert.rule, [...(rules.get(alert.rule) ?? []), alert]);
  const rank = (alert: AlertBody): number => ORDER.indexOf(standingOf(alert, nowUs));
  const groups = [...rules].map(([rule, own]) => ({
    rule,
    alerts: own.sort(
      (one, other) =>
        rank(one) - rank(other) ||
        naturally(one.device ?? "", other.device ?? "") ||
        naturally(one.object ?? "", other.object ?? ""),
    ),
    raised: own.filter((alert) => standingOf(alert, nowUs) === "raised").length,
  }));
  return groups.sort(
    (one, other) => Number(other.raised > 0) - Number(one.raised > 0) || naturally(one.rule, other.rule),
  );
}

/** What was found, without the name of the rule, with which the collector begins every text. */
export function saidOf(alert: AlertBody): string {
  const text = alert.text ?? alert.object ?? "";
  return text.startsWith(`${alert.rule}: `) ? text.slice(alert.rule.length + 2) : text;
}

const DAY_US = 86_400e6;

/** For how long, and since when: `for 29 min, since 22:37`; what is over has its begin and end. */
export function sinceWords(alert: AlertBody, nowUs: number): string {
  const at = (us: number): string =>
    Math.abs(nowUs - us) < DAY_US / 2 ? clock(us).slice(0, 5) : dayAndClock(us).slice(0, -3);
  if (alert.cleared_us !== null)
    return `for ${lasting(alert.cleared_us - alert.raised_us)}, from ${at(alert.raised_us)} to ${at(alert.cleared_us)}`;
  return `for ${lasting(nowUs - alert.raised_us)}, since ${at(alert.raised_us)}`;
}

/** Whole minutes after the first ten: `29 min`, `3 h 5 min`. */
function lasting(us: number): string {
  const unitUs = us >= 600e6 ? 60e6 : 1e6;
  return us < 1e6 ? `less than ${span(1e6)}` : span(Math.floor(us / unitUs) * unitUs);
}
