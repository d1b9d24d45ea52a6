/** The facts beside the pictures: the reading under the cursor, the selection, the collector, what happened. */

import { useEffect, useRef, useState } from "preact/hooks";
import { NOT_READ, poll, type Told } from "../api/poll.ts";
import { type Answer, getAnswers, getRows, numberOf, type RawRow } from "../api/readings.ts";
import { copyText } from "../copy/clipboard.ts";
import { curlProgram, duckdbProgram, exportPath, pythonProgram, type Shown } from "../copy/programs.ts";
import type { Watch } from "../live/watch.ts";
import { onPaint, requestPaintIn } from "../paint/painter.ts";
import { cursor } from "../session/cursor.ts";
import { events, eventsTold } from "../session/events.ts";
import { connection, knownNowUs, newestUs } from "../session/now.ts";
import { answerTables, columnOf, intervalUs, recording, recordings } from "../session/recordings.ts";
import { show, view } from "../session/view.ts";
import { NO_STATE, OK, STATE_WORDS } from "../strip/ramp.ts";
import { rowSums } from "../strip/row_sums.ts";
import { clock, clockExact, dayAndClock } from "../time/moment.ts";
import type { Bounds } from "../time/window.ts";
import { type EventGroup, groupedEvents, textBehindName } from "../words/event_groups.ts";
import { freshnessWords } from "../words/freshness.ts";
import { columnWords, eventGravity, eventWords, plural } from "../words/names.ts";
import { count, MISSING, quantityText, span } from "../words/quantity.ts";
import { AsOf, ageWords, LOADING, markOf, NOT_KNOWN, Unread, unreadWords } from "./told.tsx";

/** How often the selection is summed up, if it has so many cells. */
const FACTS_MS = 400;
const FACTS_CELLS = 300_000;

/** How often the newest raw reading is asked for where there is no cursor. */
const NEWEST_MS = 1000;

/** How long the cursor rests before its raw reading is asked for. */
const REST_MS = 120;

/** One raw reading with its true times, of the device under the cursor or of the first selected one. */
export function ReadingCard({ watch, fallback }: { watch: Watch | null; fallback: string | null }) {
  const list = useRef<HTMLDListElement>(null);
  const at = cursor.value;
  const device = at?.device ?? fallback;
  const us = at?.us ?? null;
  const told = useReading(watch, device, us);
  const raw = told.value;
  const unread = unreadWords(told);
  // Values of the newest interval go straight into the page, ten times a second.
  useEffect(
    () =>
      onPaint(() => {
        if (list.current === null || watch === null || device === null) return;
        for (const cell of list.current.querySelectorAll<HTMLElement>("[data-column]")) {
          const text = valueText(watch, device, at?.part ?? "", cell.dataset["column"] ?? "", us);
          if (cell.textContent !== text) cell.textContent = text;
        }
        const age = list.current.querySelector<HTMLElement>("[data-age]");
        const newestAge = newestAgeUs(watch, device, at?.part ?? "");
        const unreadAge = newestAge === null && !watch.filled.peek();
        const ageOfNewest = unreadAge ? "\u2026" : span(newestAge);
        const ageText = us === null ? ageOfNewest : span(Math.max(0, Math.round((newestUs.peek() - us) / 1e5) * 1e5));
        if (age !== null && age.textContent !== ageText) age.textContent = ageText;
        const received = list.current.querySelector<HTMLElement>("[data-reading-age]");
        const receivedUs = Number(received?.dataset["readingAge"] || Number.NaN);
        const since = `${span(Math.max(1e5, Math.round((knownNowUs() - receivedUs) / 1e5) * 1e5))} ago`;
        if (received !== null && !Number.isNaN(receivedUs) && received.textContent !== since)
          received.textContent = since;
        const state = list.current.querySelector<HTMLElement>("[data-state]");
        if (state !== null) paintState(state, watch, device, us);
      }),
    [watch, device, at?.part, us],
  );
  if (device === null || watch === null) return null;
  const stored = raw?.row?.[watch?.request.column ?? ""];
  const receivedUs = raw?.answer?.receivedUs ?? null;
  // Not yet read, and not recorded, are different things.
  const missing = markOf(unread);
  const { table, column, also } = watch.request;
  // Further columns come live only: of a moment of the past they are not known here.
  const columns = us === null ? [column, ...also] : [column];
  return (
    <section class="card" aria-label="Reading">
      <h2>
        <span>
          {device} <small>{at?.part ?? ""}</small>
        </span>
        {raw?.fresh != null && <span class="tag">{raw.fresh}</span>}
      </h2>
      <dl ref={list}>
        {columns.map((name) => [
          <dt key={`${name} name`}>{columnWords(table, name)}</dt>,
          <dd key={name} data-column={name}>
            …
          </dd>,
        ])}
        <dt>reading</dt>
        <dd class="mono">{receivedUs === null ? missing : clockExact(receivedUs)}</dd>
        {us === null && (
          <>
            <dt>read</dt>
            <dd data-reading-age={receivedUs ?? ""}>{missing}</dd>
          </>
        )}
        <dt>round trip</dt>
        <dd>{raw?.answer?.roundTripUs == null ? missing : span(raw.answer.roundTripUs)}</dd>
        <dt>{watch.unit.value.endsWith("/s") ? "counter" : "as recorded"}</dt>
        <dd class="mono">{stored == null ? missing : count(numberOf(stored))}</dd>
        <dt>{us === null ? "age of the value" : "before now"}</dt>
        <dd data-age="" />
        <dt>state</dt>
        <dd data-state="" />
      </dl>
      {unread !== null && unread !== LOADING && (
        <p class="kin" role="status">
          {unread}
        </p>
      )}
      <TellCursor watch={watch} />
    </section>
  );
}

/** What the cursor rests on, for those who do not see it. */
function TellCursor({ watch }: { watch: Watch }) {
  const [told, setTold] = useState("");
  const at = cursor.value;
  useEffect(() => {
    if (at === null) return undefined;
    const timer = window.setTimeout(() => {
      const value = valueText(watch, at.device, at.part, watch.request.column, at.us);
      setTold(`${at.device} ${at.part}: ${value}${at.us === null ? "" : ` at ${clock(at.us, 1)}`}`);
    }, REST_MS);
    return () => window.clearTimeout(timer);
  }, [watch, at?.device, at?.part, at?.us]);
  return (
    <p class="unseen told-cursor" role="status">
      {told}
    </p>
  );
}

/** How old the newest value was when it was read, as far as freshness is known; the youngest of the row's. */
function newestAgeUs(watch: Watch, device: string, part: string): number | null {
  const ages = (watch.request.model.seriesOfRow[rowOf(watch, device, part)] ?? [])
    .map((series) => watch.agesMs[series] ?? Number.NaN)
    .filter((age) => !Number.isNaN(age));
  return ages.length === 0 ? null : Math.min(...ages) * 1000;
}

function rowOf(watch: Watch, device: string, part: string): number {
  const rows = watch.request.model.rowsOfDevice.get(device) ?? [];
  return rows.find((row) => watch.request.model.rows[row]?.part === part) ?? rows[0] ?? -1;
}

function valueText(watch: Watch, device: string, part: string, column: string, us: number | null): string {
  const row = rowOf(watch, device, part);
  if (row < 0) return MISSING;
  if (column === watch.request.column) {
    const { bins } = watch;
    const bin = us === null ? bins.newestBin : bins.binOf(us);
    for (let back = 0; back < (us === null ? 40 : 1); back += 1) {
      const value = bins.value(bin - back, row);
      if (!Number.isNaN(value))
        return withAge(
          quantityText(value, watch.unit.peek()),
          knownNowUs() - (bin - back + 1) * bins.binUs,
          us === null,
        );
    }
    return unreadAt(watch, us) ? "…" : MISSING;
  }
  const newest = watch.newest.get(column);
  if (newest === undefined) return MISSING;
  const told = (watch.request.model.seriesOfRow[row] ?? []).filter(
    (series) => !Number.isNaN(newest[series] ?? Number.NaN),
  );
  if (told.length === 0) return watch.filled.peek() ? MISSING : "…";
  const text = quantityText(
    Math.max(...told.map((series) => newest[series] ?? Number.NaN)),
    columnOf(recording.peek(), watch.request.table, column)?.unit ?? "",
  );
  return withAge(
    text,
    knownNowUs() - Math.max(...told.map((series) => watch.newestUs[series] ?? Number.NaN)) - watch.request.intervalUs,
    true,
  );
}

/** A value of before the newest seconds says so itself. */
export function withAge(text: string, ageUs: number, newest: boolean): string {
  const age = newest ? ageWords(ageUs / 1000) : "";
  return age === "" ? text : `${text}, ${age}`;
}

/** Whether nothing is known of a moment because it has not been read. */
function unreadAt(watch: Watch, us: number | null): boolean {
  return us === null
    ? !watch.filled.peek()
    : watch.unread(us, us + 2 * watch.bins.binUs).some((gap) => gap.fromUs <= us);
}

function paintState(cell: HTMLElement, watch: Watch, device: string, us: number | null): void {
  const row = rowOf(watch, device, "");
  const bin = us === null ? watch.bins.newestBin : watch.bins.binOf(us);
  let state = row < 0 ? NO_STATE : watch.bins.state(bin, row);
  // The past tells only what was not ok.
  if (state === NO_STATE && row >= 0 && !Number.isNaN(watch.bins.value(bin, row))) state = OK;
  const text = state === NO_STATE && unreadAt(watch, us) ? "not yet read" : (STATE_WORDS[state] ?? "");
  if (cell.textContent === text) return;
  cell.textContent = text;
  cell.className = inkOf(state);
}

/** Calm where all is well, gold for late, red for what is missing. */
function inkOf(state: number): string {
  if (state === OK) return "water";
  if (state === 1) return "kin";
  return state >= 3 && state !== NO_STATE ? "shu" : "";
}

interface Raw {
  readonly answer: Answer | null;
  readonly row: RawRow | null;
  readonly fresh: string | null;
}

/** The raw reading at a moment: the row itself, the answer that brought it, and how often its value is updated. */
function useReading(watch: Watch | null, device: string | null, us: number | null): Told<Raw> {
  const [found, setFound] = useState<{ device: string; us: number | null; told: Told<Raw> } | null>(null);
  const id = watch?.request.recording;
  const table = watch?.request.table;
  const column = watch?.request.column;
  const answers = answerTables(recordings.value?.find((one) => one.id === id) ?? null);
  useEffect(() => {
    if (id === undefined || table === undefined || device === null) return undefined;
    // One after the other: the card is one panel, and has at most two requests under way.
    const ask = async (stop: AbortSignal): Promise<Raw> => {
      // Without a cursor it is the newest one that is surely recorded.
      const at = us ?? newestUs.peek();
      const [from, to] = [Math.floor(at - (us === null ? 5 : 1) * intervalUs.peek()), Math.ceil(at + 1)];
      const answered = answers === null ? [] : await getAnswers(id, answers, device, from, to, stop);
      const [rows, fresh] = await Promise.all([
        getRows(id, "readings", { table, device, from, to, limit: 50 }, stop),
        getRows(id, "freshness", { device, table, column, limit: 20 }, stop).catch(() => []),
      ]);
      const finding = fresh.at(-1);
      return {
        answer: answered.at(-1) ?? null,
        row: rows.at(-1) ?? null,
        fresh: finding === undefined ? null : freshnessWords(String(finding["class"]), numberOf(finding["period_us"])),
      };
    };
    let stop = (): void => undefined;
    const timer = window.setTimeout(() => {
      stop = poll(ask, us === null ? NEWEST_MS : null, (told) => setFound({ device, us, told }));
    }, REST_MS);
    return () => {
      window.clearTimeout(timer);
      stop();
    };
  }, [id, answers?.answers, answers?.requests, table, column, device, us]);
  return found !== null && found.device === device && found.us === us ? found.told : NOT_READ;
}

/** What is selected, in numbers, and as a program for others. */
export function SelectionCard({
  watch,
  rows,
  bounds,
}: {
  watch: Watch | null;
  rows: readonly number[];
  bounds: () => Bounds;
}) {
  const list = useRef<HTMLDListElement>(null);
  const selected = view.value.selected;
  useEffect(() => {
    let paintedMs = 0;
    let seen = "";
    return onPaint((nowMs) => {
      if (watch === null || list.current === null) return;
      const { fromUs, toUs } = selected ?? bounds();
      const key = `${watch.bins.revision} ${fromUs} ${toUs}`;
      if (key === seen) return;
      // Summing up ten thousand rows takes a frame's time, so it is done more seldom.
      const cells = rows.length * watch.bins.capacity;
      const restMs = FACTS_MS * Math.max(1, cells / FACTS_CELLS);
      if (nowMs - paintedMs < restMs) {
        requestPaintIn(restMs);
        return;
      }
      paintedMs = nowMs;
      seen = key;
      const facts = selectionFacts(watch, rows, selected ?? bounds());
      const places = list.current.querySelectorAll("dd");
      facts.forEach((text, at) => {
        const cell = places[at];
        if (cell !== undefined && cell.textContent !== text) cell.textContent = text;
      });
    });
  }, [watch, rows, selected, bounds]);
  if (watch === null) return null;
  const devices = view.value.devices;
  const spanUs = selected === null ? bounds().toUs - bounds().fromUs : selected.toUs - selected.fromUs;
  const what =
    devices.length === 0 ? plural(watch.request.model.rowsOfDevice.size, "device") : plural(devices.length, "device");
  return (
    <section class="card" aria-label="Selection">
      <h2>
        Selection{" "}
        <span class="tag">
          {what} × {span(Math.round(spanUs / 1e4) * 1e4)}
        </span>
      </h2>
      <dl ref={list}>
        <dt>peak, one row</dt>
        <dd />
        <dt>mean of peaks</dt>
        <dd />
        <dt>imbalance</dt>
        <dd />
        <dt>late or missed</dt>
        <dd />
      </dl>
      <CopyTags watch={watch} bounds={() => view.peek().selected ?? bounds()} />
      {(devices.length > 0 || selected !== null) && (
        <div class="tags">
          {selected !== null && (
            <button
              type="button"
              class="tag"
              onClick={() => show({ window: { live: false, ...selected }, selected: null }, true)}
            >
              zoom to it
            </button>
          )}
          <button type="button" class="tag" onClick={() => show({ devices: [], selected: null })}>
            clear
          </button>
        </div>
      )}
    </section>
  );
}

/** Peak, mean of the rows' peaks, greatest against mean of the rows' means, intervals late or missed. */
export function selectionFacts(watch: Watch, rows: readonly number[], { fromUs, toUs }: Bounds): string[] {
  const { bins } = watch;
  const { peaks, means, faults } = rowSums(bins, rows, bins.binOf(fromUs), bins.binOf(toUs - 1));
  const mean = (of: Float64Array): number => of.reduce((sum, value) => sum + value, 0) / of.length;
  const greatest = (of: Float64Array): number =>
    of.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY);
  // Before the past is there, sums over it are not known, and no fault is not a fact.
  if (!watch.filled.peek()) return ["…", "…", "…", "…"];
  if (peaks.length === 0) return [MISSING, MISSING, MISSING, count(faults)];
  const unit = watch.unit.peek();
  const balance = mean(means) > 0 ? (greatest(means) / mean(means)).toFixed(2) : MISSING;
  return [quantityText(greatest(peaks), unit), quantityText(mean(peaks), unit), balance, count(faults)];
}

export function CopyTags({ watch, bounds }: { watch: Watch; bounds: () => Bounds }) {
  const shown = (): Shown => {
    const { table, column, model } = watch.request;
    const labels = recording.value?.tables.find(({ name }) => name === table)?.labels ?? [];
    return {
      recording: watch.request.recording,
      name: recording.value?.name ?? watch.request.recording,
      table,
      columns: [...labels, column],
      devices: view.peek().devices.filter((name) => model.rowsOfDevice.has(name)),
      bounds: bounds(),
    };
  };
  return (
    <div class="tags">
      <button type="button" class="tag" onClick={() => copyText(pythonProgram(shown()), "Python")}>
        copy as Python
      </button>
      <button type="button" class="tag" onClick={() => copyText(duckdbProgram(shown()), "DuckDB SQL")}>
        DuckDB
      </button>
      <button type="button" class="tag" onClick={() => copyText(curlProgram(shown()), "curl")}>
        curl
      </button>
      <Download name="Parquet" path={() => exportPath(shown(), "parquet")} />
      <Download name="CSV" path={() => exportPath(shown(), "csv")} />
    </div>
  );
}

/** A link whose address is made when it is used: the window moves ten times a second. */
function Download({ name, path }: { name: string; path: () => string }) {
  return (
    <a
      class="tag"
      href={path()}
      download=""
      onPointerDown={(event) => {
        event.currentTarget.href = path();
      }}
      onFocus={(event) => {
        event.currentTarget.href = path();
      }}
    >
      {name}
    </a>
  );
}

/** The list takes the room that is left in its column, and is scrolled through beyond it. */
const EVENTS_SHOWN = 100;

/** How old the list of events is, where that is worth saying. */
export function EventsAge() {
  return <AsOf atMs={recording.value?.running === true ? eventsTold.value.atMs : 0} />;
}

export function EventList({ device }: { device?: string }) {
  const all = groupedEvents(events.value.filter((event) => device === undefined || event.device === device));
  const told = eventsTold.value;
  if (told.value === null) return <Unread told={told} />;
  const away = connection.value === "away" || told.failed !== null;
  if (all.length === 0 && away)
    return (
      <p class="kin" role="status">
        {NOT_KNOWN}
      </p>
    );
  if (all.length === 0) return <p class="quiet">Nothing has happened: no restart, no reset, no device went silent.</p>;
  return (
    <div class="scroll left-room" tabIndex={0} role="region" aria-label="List of events">
      <ul class="events">
        {away && (
          <li>
            <span />
            <span class="kin" role="status">
              As of {dayAndClock(newestUs.peek())}: the server does not answer
            </span>
          </li>
        )}
        {all
          .slice(-EVENTS_SHOWN)
          .reverse()
          .map((group) => (
            <EventLine
              key={`${group.fromUs} ${group.event.device} ${group.event.event} ${group.event.object}`}
              group={group}
            />
          ))}
        {all.length > EVENTS_SHOWN && (
          <li>
            <span />
            <span class="quiet">and {count(all.length - EVENTS_SHOWN)} before</span>
          </li>
        )}
      </ul>
    </div>
  );
}

function EventLine({ group: { event, fromUs, toUs, times } }: { group: EventGroup }) {
  const gravity = eventGravity(event.event);
  const ink = { broken: "shu", doubtful: "kin", calm: "" }[gravity];
  const once = event.text === null ? eventWords(event.event) : textBehindName(event.text);
  const words = times > 1 ? `${once}, ${count(times)} times since ${clock(fromUs)}` : once;
  return (
    <li>
      <time>{clock(event.time_us, 1)}</time>
      <button
        type="button"
        class="plain"
        title="look at this moment"
        onClick={() =>
          show(
            {
              window: { live: false, fromUs: fromUs - 30e6, toUs: toUs + 30e6 },
              ...(event.device === null ? {} : { devices: [event.device] }),
            },
            true,
          )
        }
      >
        {event.device === null && event.text !== null ? (
          <span class={ink}>{words}</span>
        ) : (
          <>
            <span class={ink}>{event.device ?? "collector"}</span> {words}
          </>
        )}
        {event.object !== null && event.text === null ? ` (${event.object})` : ""}
      </button>
    </li>
  );
}
