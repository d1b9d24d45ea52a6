/** Alerts: what is raised, acknowledged or silenced. The collector decides and records; this panel shows and answers. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { apiPath, errorText, getJson, postJson } from "../api/client.ts";
import { NOT_READ, poll, type Told } from "../api/poll.ts";
import type { AlertBody } from "../api/types.ts";
import { alertsOpen } from "../keys/keys.ts";
import { newestUs } from "../session/now.ts";
import { recording } from "../session/recordings.ts";
import { show } from "../session/view.ts";
import { dayAndClock } from "../time/moment.ts";
import { plural } from "../words/names.ts";
import { count } from "../words/quantity.ts";
import { AsOf, Unread } from "./told.tsx";

const alerts = signal<Told<readonly AlertBody[]>>(NOT_READ);
const problem = signal<string | null>(null);

const REFRESH_MS = 1500;
const SILENCES = [["1 h", 3600e6], ["1 day", 86_400e6]] as const;

function getAlerts(id: string, stop?: AbortSignal): Promise<readonly AlertBody[]> {
  return getJson<readonly AlertBody[]>(apiPath("alerts", { id }), stop);
}

async function answer(alert: AlertBody, path: string, body: unknown): Promise<void> {
  const id = recording.peek()?.id ?? "";
  try {
    await postJson(apiPath(`alerts/${encodeURIComponent(alert.id)}/${path}`, { id }), body);
    problem.value = null;
  } catch (error) {
    problem.value = errorText(error);
  }
  const atMs = performance.now();
  await getAlerts(id).then((value) => { alerts.value = { value, atMs, failed: null }; }, () => undefined);
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
    alerts.value = NOT_READ;
    if (id === undefined) return undefined;
    return poll((stop) => getAlerts(id, stop), REFRESH_MS, (told) => { alerts.value = told; });
  }, [id]);
  const raised = (alerts.value.value ?? []).filter((alert) => standing(alert) === "raised").length;
  return (
    <button type="button" class="plain" aria-expanded={alertsOpen.value} onClick={() => { alertsOpen.value = !alertsOpen.value; }}>
      <span class={raised > 0 ? "shu" : ""}>{raised > 0 ? plural(raised, "alert") : "alerts"}</span><kbd>a</kbd>
    </button>
  );
}

export function AlertsPanel() {
  if (!alertsOpen.value) return null;
  const told = alerts.value;
  const open = (told.value ?? []).filter(({ state }) => state !== "cleared");
  const past = (told.value ?? []).filter(({ state }) => state === "cleared");
  return (
    <aside class="side" aria-label="Alerts">
      <h1><span>Alerts <AsOf atMs={told.atMs} /></span> <button type="button" class="tag" onClick={() => { alertsOpen.value = false; }}>close</button></h1>
      {problem.value !== null && <p class="kin" role="alert">{problem.value}</p>}
      <Unread told={told} />
      {told.value !== null && open.length === 0 && <p class="quiet">No alert is open.</p>}
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
