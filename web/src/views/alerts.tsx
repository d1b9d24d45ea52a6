/** Alerts: what is raised, acknowledged or silenced. The collector decides and records; this panel shows and answers. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { apiPath, errorText, getJson, postJson, wasAborted } from "../api/client.ts";
import type { AlertBody } from "../api/types.ts";
import { alertsOpen } from "../keys/keys.ts";
import { newestUs } from "../session/now.ts";
import { recording } from "../session/recordings.ts";
import { show } from "../session/view.ts";
import { dayAndClock } from "../time/moment.ts";
import { plural } from "../words/names.ts";
import { count } from "../words/quantity.ts";

const alerts = signal<readonly AlertBody[]>([]);
const problem = signal<string | null>(null);

const REFRESH_MS = 2000;
const SILENCES = [["1 h", 3600e6], ["1 day", 86_400e6]] as const;

async function refresh(id: string, stop?: AbortSignal): Promise<void> {
  try {
    alerts.value = await getJson<readonly AlertBody[]>(apiPath("alerts", { id }), stop);
  } catch (error) {
    if (!wasAborted(error)) alerts.value = [];
  }
}

async function answer(alert: AlertBody, path: string, body: unknown): Promise<void> {
  const id = recording.peek()?.id ?? "";
  try {
    await postJson(apiPath(`alerts/${encodeURIComponent(alert.id)}/${path}`, { id }), body);
    problem.value = null;
  } catch (error) {
    problem.value = errorText(error);
  }
  await refresh(id);
}

/** What an alert is now, in one word: only one that nobody has answered is pressing. */
function standing(alert: AlertBody): "raised" | "acknowledged" | "silenced" | "over" {
  if (alert.state === "cleared") return "over";
  if (alert.silenced_until_us !== null && alert.silenced_until_us > newestUs.peek()) return "silenced";
  return alert.acknowledged_us === null ? "raised" : "acknowledged";
}

export function AlertsButton() {
  const id = recording.value?.id;
  useEffect(() => {
    if (id === undefined) return undefined;
    const stop = new AbortController();
    void refresh(id, stop.signal);
    const timer = window.setInterval(() => void refresh(id, stop.signal), REFRESH_MS);
    return () => {
      stop.abort();
      window.clearInterval(timer);
    };
  }, [id]);
  const raised = alerts.value.filter((alert) => standing(alert) === "raised").length;
  return (
    <button type="button" class="plain" aria-expanded={alertsOpen.value} onClick={() => { alertsOpen.value = !alertsOpen.value; }}>
      <span class={raised > 0 ? "shu" : ""}>{raised > 0 ? plural(raised, "alert") : "alerts"}</span><kbd>a</kbd>
    </button>
  );
}

export function AlertsPanel() {
  if (!alertsOpen.value) return null;
  const open = alerts.value.filter(({ state }) => state !== "cleared");
  const past = alerts.value.filter(({ state }) => state === "cleared");
  return (
    <aside class="side" aria-label="Alerts">
      <h1>Alerts <button type="button" class="tag" onClick={() => { alertsOpen.value = false; }}>close</button></h1>
      {problem.value !== null && <p class="kin" role="alert">{problem.value}</p>}
      {open.length === 0 && <p class="quiet">No alert is open.</p>}
      {open.map((alert) => <Alert key={alert.id} alert={alert} />)}
      {past.length > 0 && <h2 class="gap">Over <small>{count(past.length)}</small></h2>}
      {past.slice(0, 20).map((alert) => <Alert key={alert.id} alert={alert} />)}
    </aside>
  );
}

/** What was found, without the name of the rule, with which the collector begins every text. */
function said(alert: AlertBody): string {
  const text = alert.text ?? alert.object ?? "";
  return text.startsWith(`${alert.rule}: `) ? text.slice(alert.rule.length + 2) : text;
}

function Alert({ alert }: { alert: AlertBody }) {
  const now = standing(alert);
  const ink = now === "raised" ? "shu" : now === "over" ? "quiet" : "kin";
  return (
    <section class="card">
      <h2>
        <button
          type="button" class="plain" title="look at this moment"
          onClick={() => show({ name: "cluster", window: { live: false, fromUs: alert.raised_us - 30e6, toUs: alert.raised_us + 30e6 }, devices: alert.device === null ? [] : [alert.device] }, true)}
        >
          {alert.device ?? "collector"}
        </button>
        <span class={ink}>{now}</span>
      </h2>
      <p><b>{alert.rule}</b>{` \u00b7 ${said(alert)}`}</p>
      <p class="quiet">{dayAndClock(alert.raised_us)}{alert.cleared_us === null ? "" : ` to ${dayAndClock(alert.cleared_us)}`}</p>
      {alert.state !== "cleared" && (
        <div class="tags">
          {now === "raised" && <button type="button" class="tag" onClick={() => void answer(alert, "acknowledge", {})}>acknowledge</button>}
          {SILENCES.map(([words, for_us]) => <button key={words} type="button" class="tag" onClick={() => void answer(alert, "silence", { for_us })}>silence {words}</button>)}
        </div>
      )}
    </section>
  );
}
