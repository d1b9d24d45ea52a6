/** Clusters: every recording beside the others: who sends it, how late, what is lost, which devices do not answer. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { apiPath, getJson } from "../api/client.ts";
import { NOT_READ, poll, type Told } from "../api/poll.ts";
import type { HealthBody, HealthOfBody, RecordingBody, SenderBody } from "../api/types.ts";
import { recordings, recordingTitle } from "../session/recordings.ts";
import { addressOf, view } from "../session/view.ts";
import { matches } from "../strip/rows.ts";
import { plural } from "../words/names.ts";
import { count, MISSING, share, span } from "../words/quantity.ts";
import { AsOf, markOf, Unread, unreadWords } from "./told.tsx";

/** How often all clusters are asked about. */
const LOOK_MS = 2000;
/** The time that answers are counted in. */
const LOOK_BACK = "-10s";
/** Devices that are named of each cluster. */
const NAMED_MAX = 6;

interface Found {
  readonly senders: readonly SenderBody[];
  /** How each recording that is written was measured in the last seconds, by its id. */
  readonly health: ReadonlyMap<string, HealthBody>;
}

const found = signal<Told<Found>>(NOT_READ);

async function look(stop: AbortSignal): Promise<Found> {
  const senders = await getJson<readonly SenderBody[]>(apiPath("senders"), stop);
  const all = await getJson<readonly HealthOfBody[]>(apiPath("health", { from: LOOK_BACK, width: 1 }), stop);
  const known = all.flatMap(({ recording, health }) => (health == null ? [] : [[recording, health] as const]));
  return { senders, health: new Map(known) };
}

export function Clusters() {
  useEffect(
    () =>
      poll(look, LOOK_MS, (told) => {
        found.value = told;
      }),
    [],
  );
  const all = recordings.value ?? [];
  const find = view.value.find;
  const told = found.value;
  // The recording of a receiver itself has no devices, and nobody sends it as that of a cluster.
  const clusters = all.filter(
    ({ devices, id }) => devices.length > 0 || sendersOf(told.value?.senders ?? [], id).length > 0,
  );
  const shown = clusters.filter((one) => find === "" || matches(one.name, find) || devicesLike(one, find).length > 0);
  return (
    <main class="page">
      <h1>
        Clusters <small>{plural(shown.length, "recording")}</small> <AsOf atMs={told.atMs} />
      </h1>
      <Unread told={told} />
      <ul class="clusters" aria-label="Clusters">
        {shown.map((one) => (
          <ClusterCard key={one.id} of={one} title={recordingTitle(one, all)} find={find} told={told} />
        ))}
      </ul>
      {shown.length === 0 && (
        <p class="quiet">{find === "" ? "No recording has devices yet." : "Nothing is called like that."}</p>
      )}
    </main>
  );
}

/** Devices that what is looked for is about; none where nothing is looked for. */
export function devicesLike(of: RecordingBody, find: string): readonly string[] {
  return find === "" ? [] : of.devices.map(({ name }) => name).filter((name) => matches(name, find));
}

/** The senders of a recording, the active one first. */
export function sendersOf(all: readonly SenderBody[], id: string): readonly SenderBody[] {
  const own = all.filter((one) => one.cluster !== null && one.recording === id);
  return own.toSorted((left, right) => Number(right.active) - Number(left.active));
}

interface CardProps {
  readonly of: RecordingBody;
  readonly title: string;
  readonly find: string;
  readonly told: Told<Found>;
}

function ClusterCard({ of, title, find, told }: CardProps) {
  const senders = sendersOf(told.value?.senders ?? [], of.id);
  const health = told.value?.health.get(of.id) ?? null;
  const mark = (text: string): string => markOf(of.running ? unreadWords(told) : null, text);
  const totals = health?.totals ?? null;
  const asked = totals === null ? 0 : totals.ok + totals.late + totals.missed + totals.error;
  const silent = health?.silent ?? [];
  const like = devicesLike(of, find);
  return (
    <li class="card">
      <h2>
        <a href={addressOf({ name: "cluster", recording: of.id, devices: [], selected: null })}>{title}</a>
        {!of.running && <small>not being written</small>}
      </h2>
      <dl>
        <dt>devices</dt>
        <dd>{count(of.devices.length)}</dd>
        <dt>answered in the last 10 s</dt>
        <dd>{totals === null ? mark(MISSING) : share(totals.ok, asked)}</dd>
        <dt>not answering</dt>
        <dd class={silent.length > 0 ? "shu" : ""}>{health === null ? mark(MISSING) : count(silent.length)}</dd>
        <dt>oldest value</dt>
        <dd>{health === null ? mark(MISSING) : span(health.stalest?.age_us)}</dd>
      </dl>
      {silent.length > 0 && <Devices title="Not answering" of={of.id} names={silent} />}
      {like.length > 0 && <Devices title="Found" of={of.id} names={like} />}
      {senders.map((one) => (
        <Sender key={one.sender} of={one} />
      ))}
    </li>
  );
}

function Devices({ title, of, names }: { title: string; of: string; names: readonly string[] }) {
  return (
    <p>
      <span class="quiet">{title}:</span>{" "}
      {names.slice(0, NAMED_MAX).map((name, at) => [
        at > 0 && ", ",
        <a key={name} href={addressOf({ name: "device", recording: of, devices: [name], selected: null })}>
          {name}
        </a>,
      ])}
      {names.length > NAMED_MAX && ` and ${count(names.length - NAMED_MAX)} more`}
    </p>
  );
}

function Sender({ of }: { of: SenderBody }) {
  const role = of.active ? "active" : "stands by";
  const state = of.connected ? role : "not connected";
  const trip = of.clock_error_us === null ? null : 2 * of.clock_error_us;
  return (
    <section aria-label={`Sender ${of.sender}`}>
      <h3>
        {of.sender} <small class={of.connected ? "" : "shu"}>{state}</small>
      </h3>
      <dl>
        <dt>newest row is behind by</dt>
        <dd>{span(of.lag_us)}</dd>
        <dt>round trip</dt>
        <dd>{span(trip)}</dd>
        <dt>gaps</dt>
        <dd class={of.missing_rows > 0 ? "shu" : ""}>
          {count(of.gaps)}
          {of.missing_rows > 0 && `, ${plural(of.missing_rows, "row")} lost`}
        </dd>
        {of.clock_is_wrong && (
          <>
            <dt>its clock is wrong by</dt>
            <dd class="shu">{span(Math.abs(of.clock_offset_us ?? 0))}</dd>
          </>
        )}
      </dl>
    </section>
  );
}
