/** Alerts: what is raised, acknowledged or silenced. The collector decides and records; this panel shows and answers. */

import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { byRule, type RuleGroup, saidOf, sinceWords, standingOf } from "../alerts/groups.ts";
import { ApiError, apiPath, errorText, getJson, postJson, recordingPath } from "../api/client.ts";
import { NOT_READ, poll, type Told } from "../api/poll.ts";
import type { AlertBody } from "../api/types.ts";
import { alertsOpen } from "../keys/keys.ts";
import { knownNowUs, newestUs } from "../session/now.ts";
import { recording } from "../session/recordings.ts";
import { show } from "../session/view.ts";
import { plural } from "../words/names.ts";
import { count } from "../words/quantity.ts";
import { AsOf, Unread } from "./told.tsx";

interface Alerts {
  readonly alerts: readonly AlertBody[];
  /** Whether the recording has rules; null: this server does not say. */
  readonly rules: boolean | null;
}

const alerts = signal<Told<Alerts>>(NOT_READ);
const problem = signal<string | null>(null);
/** Answers of a person that are on their way: `12 of 233`. */
const answering = signal<{ readonly done: number; readonly all: number } | null>(null);

const REFRESH_MS = 1500;
const INKS = { raised: "shu", acknowledged: "kin", silenced: "kin", over: "quiet" } as const;
const SILENCES = [
  ["1 h", 3600e6],
  ["1 day", 86_400e6],
] as const;
/** So many devices of one rule stand in its card; the others are counted. */
const SHOWN_MAX = 40;

async function getAlerts(id: string, stop?: AbortSignal): Promise<Alerts> {
  const found = await getJson<readonly AlertBody[]>(apiPath("alerts", { id }), stop);
  // What was raised was raised by a rule.
  return { alerts: found, rules: found.length > 0 ? true : await haveRules(id, stop) };
}

/** Whether any rule is set: without one, no alert says nothing about health. */
async function haveRules(id: string, stop?: AbortSignal): Promise<boolean | null> {
  try {
    return (await getJson<{ readonly set: boolean }>(apiPath(recordingPath(id, "alert-rules")), stop)).set;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}

/** Answers alerts one after the other, so that a thousand of them are not a thousand requests at once. */
async function answer(own: readonly AlertBody[], path: string, body: unknown): Promise<void> {
  const id = recording.peek()?.id ?? "";
  problem.value = null;
  for (const [done, alert] of own.entries()) {
    answering.value = own.length > 1 ? { done, all: own.length } : null;
    try {
      await postJson(apiPath(`alerts/${encodeURIComponent(alert.id)}/${path}`, { id }), body);
    } catch (error) {
      problem.value = `${errorText(error)}${own.length > 1 ? ` (${count(done)} of ${count(own.length)} done)` : ""}`;
      break;
    }
  }
  answering.value = null;
  const atMs = performance.now();
  await getAlerts(id).then(
    (value) => {
      alerts.value = { value, atMs, failed: null };
    },
    () => undefined,
  );
}

const raisedOf = (all: readonly AlertBody[]): AlertBody[] =>
  all.filter((alert) => standingOf(alert, newestUs.peek()) === "raised");

export function AlertsButton() {
  const id = recording.value?.id;
  useEffect(() => {
    alerts.value = NOT_READ;
    problem.value = null;
    if (id === undefined) return undefined;
    return poll(
      (stop) => getAlerts(id, stop),
      REFRESH_MS,
      (told) => {
        // What was asked before somebody answered an alert must not take that answer back.
        if (told.atMs >= alerts.peek().atMs) alerts.value = told;
      },
    );
  }, [id]);
  const told = alerts.value;
  const raised = raisedOf(told.value?.alerts ?? []).length;
  return (
    <button
      type="button"
      class="plain"
      aria-expanded={alertsOpen.value}
      aria-controls="alerts"
      onClick={() => {
        alertsOpen.value = !alertsOpen.value;
      }}
    >
      <span class={raised > 0 ? "shu" : ""}>{raised > 0 ? plural(raised, "alert") : "alerts"}</span>
      <AsOf atMs={recording.value?.running === true ? told.atMs : 0} />
      <kbd>a</kbd>
    </button>
  );
}

export function AlertsPanel() {
  return alertsOpen.value ? <Panel /> : null;
}

function Panel() {
  const close = useRef<HTMLButtonElement>(null);
  // Whoever opens it by key is in it, and is back where he was when it is closed.
  useEffect(() => {
    const before = document.activeElement;
    close.current?.focus();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  const told = alerts.value;
  const all = told.value?.alerts ?? [];
  const now = newestUs.peek();
  const open = byRule(
    all.filter(({ state }) => state !== "cleared"),
    now,
  );
  const past = byRule(
    all.filter(({ state }) => state === "cleared"),
    now,
  );
  const raised = raisedOf(all);
  return (
    <aside class="side" id="alerts" aria-label="Alerts">
      <h2>
        <span>
          Alerts <AsOf atMs={recording.value?.running === true ? told.atMs : 0} />
        </span>{" "}
        <button
          ref={close}
          type="button"
          class="tag"
          onClick={() => {
            alertsOpen.value = false;
          }}
        >
          close
        </button>
      </h2>
      {problem.value !== null && (
        <p class="kin" role="alert">
          {problem.value}
        </p>
      )}
      <Unread told={told} />
      {told.value !== null && open.length === 0 && <Nothing rules={told.value.rules} />}
      {raised.length > 0 && open.length > 1 && (
        <div class="tags">
          <button
            type="button"
            class="tag"
            disabled={answering.value !== null}
            onClick={() => void answer(raised, "acknowledge", {})}
          >
            acknowledge all {count(raised.length)}
          </button>
        </div>
      )}
      {answering.value !== null && (
        <p class="quiet" role="status">
          {count(answering.value.done)} of {count(answering.value.all)}
        </p>
      )}
      {open.map((group) => (
        <Rule key={group.rule} group={group} open />
      ))}
      {past.length > 0 && (
        <h3 class="gap">
          Over <small>{count(past.reduce((sum, group) => sum + group.alerts.length, 0))}</small>
        </h3>
      )}
      {past.map((group) => (
        <Rule key={group.rule} group={group} open={false} />
      ))}
    </aside>
  );
}

/** No alert is health only where something is watched. */
function Nothing({ rules }: { rules: boolean | null }) {
  if (rules === true) return <p class="quiet">No alert is open: nothing breaks a rule.</p>;
  return (
    <div class="empty">
      <p class="kin">
        {rules === false
          ? "No alert rules are set: nothing is watched."
          : "No alert was raised. That says nothing where no alert rules are set, and this server does not tell whether any are."}
      </p>
      <p>Rules stand in the cluster file:</p>
      <pre tabIndex={0} role="region" aria-label="A rule of the cluster file">
        {'[[alerts]]\nname = "silent"\nsilent = "5s"'}
      </pre>
    </div>
  );
}

/** A rule with what it found, and the answers that hold for all of it. */
function Rule({ group: { rule, alerts: own, raised }, open }: { group: RuleGroup; open: boolean }) {
  const [whole, setWhole] = useState(false);
  const shown = own.slice(0, whole ? own.length : SHOWN_MAX);
  const texts = new Set(own.map(saidOf));
  const pressing = raisedOf(own);
  const busy = answering.value !== null;
  return (
    <section class="card" aria-label={`Rule ${rule}`}>
      <h3>
        {rule}{" "}
        <span class={raised > 0 ? "shu" : "quiet"}>
          {raised > 0 ? `${count(raised)} raised` : `${count(own.length)}${open ? " answered" : ""}`}
        </span>
      </h3>
      {texts.size === 1 && <p>{[...texts][0]}</p>}
      <ul class="devices">
        {shown.map((alert) => (
          <Row key={alert.id} alert={alert} said={texts.size > 1} alone={own.length === 1} />
        ))}
      </ul>
      {own.length > shown.length && (
        <p>
          <button type="button" class="plain" onClick={() => setWhole(true)}>
            and {count(own.length - shown.length)} more
          </button>
        </p>
      )}
      {open && (
        <div class="tags">
          {pressing.length > 0 && (
            <button type="button" class="tag" disabled={busy} onClick={() => void answer(pressing, "acknowledge", {})}>
              {pressing.length > 1 ? `acknowledge all ${count(pressing.length)}` : "acknowledge"}
            </button>
          )}
          {SILENCES.map(([words, for_us]) => (
            <button
              key={words}
              type="button"
              class="tag"
              disabled={busy}
              onClick={() => void answer(own, "silence", { for_us })}
            >
              silence {words}
            </button>
          ))}
        </div>
      )}
    </section>
  );
}

function Row({ alert, said, alone }: { alert: AlertBody; said: boolean; alone: boolean }) {
  const now = standingOf(alert, newestUs.peek());
  const ink = INKS[now];
  const device = alert.device ?? "collector";
  return (
    <li>
      <span>
        <button
          type="button"
          class="plain"
          title="look at this moment"
          onClick={() =>
            show(
              {
                name: "cluster",
                window: { live: false, fromUs: alert.raised_us - 30e6, toUs: alert.raised_us + 30e6 },
                devices: alert.device === null ? [] : [alert.device],
              },
              true,
            )
          }
        >
          {device}
        </button>
        <small>
          {said ? `${saidOf(alert)} ` : ""}
          {sinceWords(alert, knownNowUs())}
        </small>
      </span>
      <span class={`standing ${ink}`}>{now}</span>
      {now === "raised" && !alone && (
        <button
          type="button"
          class="tag"
          aria-label={`acknowledge ${device}`}
          onClick={() => void answer([alert], "acknowledge", {})}
        >
          seen
        </button>
      )}
    </li>
  );
}
