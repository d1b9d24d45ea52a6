/** Data: what is recorded and how well: recordings, tables, rows, bytes, gaps, damage, the collector itself. */

import type { ComponentChildren } from "preact";
import { copyText } from "../copy/clipboard.ts";
import { curlProgram, duckdbProgram, exportPath, pythonProgram, type Shown } from "../copy/programs.ts";
import { recording, recordings, recordingTitle } from "../session/recordings.ts";
import { boundsNow, show, view } from "../session/view.ts";
import { dayAndClock } from "../time/moment.ts";
import { count, MISSING, quantityText, span } from "../words/quantity.ts";
import { useInventory } from "./collector_card.tsx";
import { AsOf, markOf, Unread, unreadWords } from "./told.tsx";

function dayOf(us: number | null): string {
  return us === null ? MISSING : dayAndClock(us);
}

export function Data() {
  const current = recording.value;
  const answer = useInventory();
  const told = answer.value;
  if (current === null) return null;
  const age = <AsOf atMs={current.running ? answer.atMs : 0} />;
  /** What is known of a table's size; what was not read yet is not missing. */
  const size = (text: string): string => markOf(unreadWords(answer), text);
  return (
    <main class="page">
      <Section title="Recordings" label="Recordings" first>
        <table aria-label="All recordings">
          <thead>
            <tr>
              <th scope="col">recording</th>
              <th scope="col">kind</th>
              <th scope="col">begins</th>
              <th scope="col">ends</th>
              <th scope="col" class="number">
                devices
              </th>
              <th scope="col" class="number">
                interval
              </th>
              <th scope="col">being written</th>
            </tr>
          </thead>
          <tbody>
            {(recordings.value ?? []).map((one) => (
              <tr key={one.id} aria-selected={one.id === current.id}>
                <td>
                  <button
                    type="button"
                    class="plain"
                    onClick={() => show({ recording: one.id, devices: [], selected: null }, true)}
                  >
                    {recordingTitle(one, recordings.value ?? [])}
                  </button>
                </td>
                <td>{one.kind}</td>
                <td>{dayOf(one.from_us)}</td>
                <td>{one.running ? "goes on" : dayOf(one.to_us)}</td>
                <td class="number">{count(one.devices.length)}</td>
                <td class="number">{span(one.interval_us)}</td>
                <td>{one.running ? "yes" : "no"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Section>
      <div class="two">
        <Section title={`Tables of ${current.name}`} label="Tables" age={age}>
          <table aria-label="Tables of the recording">
            <thead>
              <tr>
                <th scope="col">table</th>
                <th scope="col">what it holds, and its rows of the shown time as a program or file</th>
                <th scope="col" class="number">
                  rows
                </th>
                <th scope="col" class="number">
                  in files
                </th>
                <th scope="col" class="number">
                  rows in the log
                </th>
              </tr>
            </thead>
            <tbody>
              {current.tables.map((table) => {
                const held = told?.tables.find(({ name }) => name === table.name);
                return (
                  <tr key={table.name}>
                    <td>{table.name}</td>
                    <td>
                      <div class="holds">
                        <span class="quiet">{table.doc}</span>
                        <Copies table={table.name} />
                      </div>
                    </td>
                    <td class="number">{size(count(held?.rows))}</td>
                    <td class="number">{size(quantityText(held?.parquet_bytes, "bytes"))}</td>
                    <td class="number">{size(count(held?.log_rows))}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
          <h2 class="gap">
            Columns <small>as programs name them, and in words</small>
          </h2>
          <dl class="columns-of">
            {current.tables.map(({ name, columns }) => [
              <dt key={`${name} name`}>{name}</dt>,
              <dd key={name}>
                {columns
                  .map(
                    (column) =>
                      `${column.name}${column.words === "" || column.words === column.name.replace(/_/g, " ") ? "" : ` (${column.words})`}`,
                  )
                  .join(", ")}
              </dd>,
            ])}
          </dl>
        </Section>
        <div class="page-side">
          <Section title="Gaps" label="Gaps" age={age}>
            <Unread told={answer} />
            {told !== null && told.gaps.length === 0 && (
              <p class="quiet">None: every interval from begin to end is recorded.</p>
            )}
            {told !== null && told.gaps.length > 0 && (
              <table aria-label="Spans without a row">
                <thead>
                  <tr>
                    <th scope="col">from</th>
                    <th scope="col">to</th>
                    <th scope="col" class="number">
                      missing
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {told.gaps.map((gap) => (
                    <tr key={gap.from_us}>
                      <td>
                        <button
                          type="button"
                          class="plain"
                          onClick={() =>
                            show(
                              {
                                name: "cluster",
                                window: { live: false, fromUs: gap.from_us - 10e6, toUs: gap.to_us + 10e6 },
                              },
                              true,
                            )
                          }
                        >
                          {dayAndClock(gap.from_us)}
                        </button>
                      </td>
                      <td>{dayAndClock(gap.to_us)}</td>
                      <td class="number kin">{span(gap.to_us - gap.from_us)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
          </Section>
          <Section title="Damage" label="Damage" age={age}>
            <Unread told={answer} />
            {told !== null && told.problems.length === 0 && <p class="quiet">None: every file can be read.</p>}
            {told !== null && told.problems.length > 0 && (
              <>
                <ul class="plain-list">
                  {told.problems.map(({ file, what }) => (
                    <li key={file + what}>
                      <span class="shu mono">{file}</span> {what}
                    </li>
                  ))}
                </ul>
                <p>
                  Everything else is shown. What can be done:{" "}
                  <code class="mono">meikyo recording check {current.name}</code>
                </p>
              </>
            )}
          </Section>
          <Collector age={age} />
        </div>
      </div>
    </main>
  );
}

interface SectionProps {
  readonly title: string;
  readonly label: string;
  readonly first?: boolean;
  /** How old what it tells is, where that is worth saying. */
  readonly age?: ComponentChildren;
  readonly children: ComponentChildren;
}

function Section({ title, label, first = false, age, children }: SectionProps) {
  return (
    <section aria-label={label} class="block">
      {first ? (
        <h1>{title}</h1>
      ) : (
        <h2>
          {title} {age}
        </h2>
      )}
      {children}
    </section>
  );
}

function Collector({ age }: { age: ComponentChildren }) {
  const { value: told } = useInventory();
  const collector = told?.collector;
  if (told === null || collector == null) return null;
  return (
    <Section title="Collector" label="Collector health" age={age}>
      <dl>
        <dt>first request after the due instant, median</dt>
        <dd>{span(collector.start_us_p50)}</dd>
        <dt>the same, 99 of 100 within</dt>
        <dd>{span(collector.start_us_p99)}</dd>
        <dt>last answer after it, 99 of 100 within</dt>
        <dd>{span(collector.complete_us_p99)}</dd>
        <dt>rows kept after it, 99 of 100 within</dt>
        <dd>{span(collector.kept_us_p99)}</dd>
        <dt>intervals that our own stall spoiled</dt>
        <dd>{count(collector.stalled)}</dd>
        <dt>datagrams dropped by our socket</dt>
        <dd>{count(collector.socket_drops)}</dd>
        <dt>datagrams that nobody had asked for</dt>
        <dd>{count(collector.strays)}</dd>
        <dt>log</dt>
        <dd>{quantityText(told.log_bytes, "bytes")}</dd>
        <dt>Parquet files</dt>
        <dd>{quantityText(told.parquet_bytes, "bytes")}</dd>
        <dt>summaries</dt>
        <dd>{quantityText(told.summary_bytes, "bytes")}</dd>
        <dt>a day needs</dt>
        <dd>{quantityText(told.bytes_a_day, "bytes")}</dd>
        <dt>room left</dt>
        <dd>{quantityText(told.room_bytes, "bytes")}</dd>
      </dl>
    </Section>
  );
}

/** The table in the shown time as a program, or as a file. */
function Copies({ table }: { table: string }) {
  const current = recording.value;
  if (current === null) return null;
  const shown = (): Shown => {
    const of = current.tables.find(({ name }) => name === table);
    return {
      recording: current.id,
      name: current.name,
      table,
      columns: (of?.columns ?? []).map(({ name }) => name),
      devices: of?.labels.includes("device") === true ? view.peek().devices : [],
      bounds: view.peek().selected ?? boundsNow(),
    };
  };
  return (
    <span class="tags" role="group" aria-label={`${table} as a program or file`}>
      <button type="button" class="tag" onClick={() => copyText(pythonProgram(shown()), "Python")}>
        Python
      </button>
      <button type="button" class="tag" onClick={() => copyText(duckdbProgram(shown()), "DuckDB SQL")}>
        DuckDB
      </button>
      <button type="button" class="tag" onClick={() => copyText(curlProgram(shown()), "curl")}>
        curl
      </button>
      <a class="tag" href={exportPath(shown(), "parquet")} download="">
        Parquet
      </a>
      <a class="tag" href={exportPath(shown(), "csv")} download="">
        CSV
      </a>
    </span>
  );
}
