/** Checkpoints: what each host has of them, what they cost the program, and how it came back. */

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { NOT_READ, poll, type Told } from "../api/poll.ts";
import { getRows } from "../api/readings.ts";
import {
  costOf,
  type Generation,
  type History,
  type HostStand,
  historyOf,
  type Recovery,
} from "../checkpoints/history.ts";
import "../checkpoints/checkpoints.css";
import { recording, tableOf } from "../session/recordings.ts";
import { boundsNow, view } from "../session/view.ts";
import { axisClock, clockExact, ticks } from "../time/moment.ts";
import type { Bounds } from "../time/window.ts";
import { plural } from "../words/names.ts";
import { count, MISSING, quantityText, share, span } from "../words/quantity.ts";
import { Empty } from "./empty.tsx";
import { AsOf, Unread } from "./told.tsx";

/** The table that tells of them. */
export const CHECKPOINTS = "checkpoints";
const REFRESH_MS = 1000;
/** Most rows that are looked at: the newest. */
const ROWS_MAX = 20_000;
/** The highest column of blocks. */
const COLUMN_PX = 120;
/** Spans in which a host fails once, to choose from. */
const FAILS = [
  ["a month", 30 * 86_400e6],
  ["a year", 365 * 86_400e6],
  ["5 years", 5 * 365 * 86_400e6],
] as const;

interface Read {
  readonly history: History;
  readonly bounds: Bounds;
}

const read = signal<Told<Read>>(NOT_READ);

export function Checkpoints() {
  const current = recording.value;
  const id = tableOf(current, CHECKPOINTS) === null ? null : (current?.id ?? null);
  const running = current?.running === true;
  const shown = view.value.window;
  const still = shown.live ? "" : `${shown.fromUs} ${shown.toUs}`;
  const spanUs = shown.live ? shown.spanUs : 0;
  // What is shown decides what is asked for.
  useEffect(() => {
    read.value = NOT_READ;
    if (id === null) return undefined;
    return poll(
      async (stop) => {
        const bounds = boundsNow();
        const asked = {
          table: CHECKPOINTS,
          from: Math.floor(bounds.fromUs),
          to: Math.ceil(bounds.toUs) + 1,
          limit: ROWS_MAX,
        };
        return { history: historyOf(await getRows(id, "readings", asked, stop)), bounds };
      },
      running && shown.live ? REFRESH_MS : null,
      (told) => {
        read.value = told;
      },
    );
  }, [id, running, still, spanUs]);
  if (id === null)
    return (
      <main class="page">
        <h1>Checkpoints</h1>
        <Empty
          text="This recording tells of no checkpoints. A program that is protected writes them with --out:"
          command="meikyo checkpoint run --as-is --local 4 --spares 1 --directory /var/tmp/job --out recording -- mpiexec -n 8 ./solver"
        />
      </main>
    );
  const told = read.value;
  const history = told.value?.history ?? null;
  return (
    <main class="page checkpoints">
      <h1>
        Checkpoints{" "}
        {history !== null && (
          <small>
            {plural(history.generations.length, "whole one")} in the shown time
            {history.givenUp > 0 && <span class="kin">, {count(history.givenUp)} given up</span>}
          </small>
        )}{" "}
        <AsOf atMs={running ? told.atMs : 0} />
      </h1>
      <Unread told={told} />
      {told.value !== null && history !== null && (
        <>
          <div class="two">
            <Columns history={history} />
            <CostCard generations={history.generations} hosts={history.hosts} />
          </div>
          <Costs generations={history.generations} bounds={told.value.bounds} />
          <Ledger hosts={history.hosts} />
          <Recoveries recoveries={history.recoveries} bounds={told.value.bounds} />
        </>
      )}
    </main>
  );
}

/** The newest whole checkpoint: a column of blocks for each host, its image and what it keeps for others. */
function Columns({ history }: { history: History }) {
  const newest = history.generations.at(-1);
  if (newest === undefined)
    return (
      <section class="block" aria-label="Blocks">
        <h2>Blocks of each host</h2>
        <p class="quiet">No checkpoint was whole in the shown time.</p>
      </section>
    );
  const hosts = history.hosts.filter(({ host, state }) => newest.parts.has(host) || state === "lost");
  const heights = [...newest.parts.values()].map(({ imageBytes, receivedBytes }) => imageBytes + receivedBytes);
  const highest = Math.max(1, ...heights);
  const px = (bytes: number): string => `${bytes === 0 ? 0 : Math.max(2, (COLUMN_PX * bytes) / highest)}px`;
  return (
    <section class="block" aria-label="Blocks">
      <h2>
        Blocks of each host <small>checkpoint {count(newest.number)}</small>
      </h2>
      <ul class="block-columns">
        {hosts.map(({ host, state, part: last }) => {
          const part = newest.parts.get(host) ?? null;
          if (part === null)
            return (
              <li key={host}>
                <div class="stack">
                  <div class="lost" style={{ height: px(Math.min(highest, last?.imageBytes ?? highest)) }} />
                </div>
                <span>{host}</span>
                <small class="shu">lost</small>
              </li>
            );
          return (
            <li key={host}>
              <div class="stack" title={`${host}: ${state}`}>
                <div class="parity" style={{ height: px(part.receivedBytes) }} />
                <div class="changed" style={{ height: px(part.changedBytes) }} />
                <div class="same" style={{ height: px(Math.max(0, part.imageBytes - part.changedBytes)) }} />
              </div>
              <span>{host}</span>
              <small>{quantityText(part.imageBytes, "bytes")}</small>
            </li>
          );
        })}
      </ul>
      <p class="legend-of quiet">
        <i class="same" /> as before <i class="changed" /> changed <i class="parity" /> came from others{" "}
        <i class="lost" /> lost
      </p>
    </section>
  );
}

function CostCard({ generations, hosts }: { generations: readonly Generation[]; hosts: readonly HostStand[] }) {
  const [fails, setFails] = useState<number>(FAILS[1][1]);
  const standing = hosts.filter(({ state }) => state !== "lost").length;
  const cost = costOf(generations, standing, fails);
  return (
    <section class="card" aria-label="Cost">
      <h2>Cost against the optimum</h2>
      <p class="row">
        <label for="fails">A host fails once in</label>
        <select id="fails" value={fails} onChange={(event) => setFails(Number(event.currentTarget.value))}>
          {FAILS.map(([words, us]) => (
            <option key={words} value={us}>
              {words}
            </option>
          ))}
        </select>
      </p>
      {cost === null ? (
        <p class="quiet">Not known: no checkpoint says how long the program stood still.</p>
      ) : (
        <dl>
          <dt>a checkpoint takes of the program's time</dt>
          <dd>{span(cost.costUs)}</dd>
          <dt>one is made every</dt>
          <dd>{span(cost.everyUs)}</dd>
          <dt>of the time is lost</dt>
          <dd>{percent(cost.lost)}</dd>
          <dt>best every, Daly</dt>
          <dd>{span(cost.dalyUs)}</dd>
          <dt>Young</dt>
          <dd>{span(cost.youngUs)}</dd>
          <dt>then is lost</dt>
          <dd>{percent(cost.lostLeast)}</dd>
        </dl>
      )}
    </section>
  );
}

function percent(part: number | null): string {
  return part === null ? MISSING : share(part, 1);
}

/** Where an instant of the shown time is, in per cent of the width. */
function placeOf(us: number, { fromUs, toUs }: Bounds): number {
  return toUs > fromUs ? (100 * (us - fromUs)) / (toUs - fromUs) : 0;
}

function Axis({ bounds }: { bounds: Bounds }) {
  const { stepUs, at } = ticks(bounds.fromUs, bounds.toUs, 6);
  const inside = at.filter((us) => placeOf(us, bounds) < 92);
  return (
    <div class="axis quiet" aria-hidden="true">
      {inside.map((us) => (
        <span key={us} style={{ left: `${placeOf(us, bounds)}%` }}>
          {axisClock(us, stepUs)}
        </span>
      ))}
    </div>
  );
}

/** How long the program stood still for each checkpoint, over the shown time. */
function Costs({ generations, bounds }: { generations: readonly Generation[]; bounds: Bounds }) {
  const told = generations.filter(({ stopUs }) => stopUs !== null);
  if (told.length === 0) return null;
  const most = Math.max(1, ...told.map(({ stopUs }) => stopUs ?? 0));
  const longest = told.reduce((one, other) => ((other.stopUs ?? 0) > (one.stopUs ?? 0) ? other : one));
  const words = `${plural(told.length, "checkpoint")}; the longest stop ${span(longest.stopUs)}, for checkpoint ${longest.number}`;
  return (
    <section class="block" aria-label="Stops">
      <h2>
        The program stood still <small>at most {span(most)}</small>
      </h2>
      <div class="over-time">
        <div class="stops" role="img" aria-label={words}>
          {told.map(({ number, wholeUs, stopUs }) => (
            <i
              key={number}
              title={`checkpoint ${number}: ${span(stopUs)}`}
              style={{ left: `${placeOf(wholeUs, bounds)}%`, height: `${(100 * (stopUs ?? 0)) / most}%` }}
            />
          ))}
        </div>
        <Axis bounds={bounds} />
      </div>
    </section>
  );
}

const STATE_WORDS = { whole: "has the newest", behind: "has an older one", lost: "lost" } as const;
const STATE_INKS = { whole: "", behind: "kin", lost: "shu" } as const;

function Ledger({ hosts }: { hosts: readonly HostStand[] }) {
  return (
    <section class="block" aria-label="Hosts">
      <h2>Hosts</h2>
      <table aria-label="How each host stands">
        <thead>
          <tr>
            <th scope="col">host</th>
            <th scope="col">state</th>
            <th scope="col">since</th>
            <th scope="col" class="number">
              checkpoint
            </th>
            <th scope="col" class="number">
              image
            </th>
            <th scope="col" class="number">
              changed
            </th>
            <th scope="col" class="number">
              sent
            </th>
            <th scope="col" class="number">
              stood still
            </th>
            <th scope="col">why</th>
          </tr>
        </thead>
        <tbody>
          {hosts.map(({ host, state, sinceUs, generation, part, why }) => (
            <tr key={host}>
              <td>{host}</td>
              <td class={STATE_INKS[state]}>{STATE_WORDS[state]}</td>
              <td>{clockExact(sinceUs)}</td>
              <td class="number">{count(generation)}</td>
              <td class="number">{quantityText(part?.imageBytes, "bytes")}</td>
              <td class="number">{quantityText(part?.changedBytes, "bytes")}</td>
              <td class="number">{quantityText(part?.sentBytes, "bytes")}</td>
              <td class="number">{span(part?.stopUs)}</td>
              <td class="quiet">{why}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** Each way back: where it lies in the shown time, and how long each step took. */
function Recoveries({ recoveries, bounds }: { recoveries: readonly Recovery[]; bounds: Bounds }) {
  return (
    <section class="block" aria-label="Recoveries">
      <h2>Recoveries</h2>
      {recoveries.length === 0 ? (
        <p class="quiet">None in the shown time.</p>
      ) : (
        <>
          <div class="over-time">
            <div class="recovery" aria-hidden="true">
              {recoveries.map(({ lostUs, runsUs }) => (
                <i
                  key={lostUs}
                  class={runsUs === null ? "open" : ""}
                  style={{
                    left: `${placeOf(lostUs, bounds)}%`,
                    width: `${placeOf(bounds.fromUs + (runsUs ?? 0), bounds)}%`,
                  }}
                />
              ))}
            </div>
            <Axis bounds={bounds} />
          </div>
          <table aria-label="Each recovery">
            <thead>
              <tr>
                <th scope="col">lost at</th>
                <th scope="col">what</th>
                <th scope="col" class="number">
                  spare chosen after
                </th>
                <th scope="col" class="number">
                  all had their data after
                </th>
                <th scope="col" class="number">
                  ran again after
                </th>
                <th scope="col" class="number">
                  from the program's step
                </th>
              </tr>
            </thead>
            <tbody>
              {recoveries.map(({ lostUs, what, replacedUs, readyUs, runsUs, step }) => (
                <tr key={lostUs}>
                  <td>{clockExact(lostUs)}</td>
                  <td>{what}</td>
                  <td class="number">{span(replacedUs)}</td>
                  <td class="number">{span(readyUs)}</td>
                  <td class={runsUs === null ? "number shu" : "number"}>
                    {runsUs === null ? "not in the shown time" : span(runsUs)}
                  </td>
                  <td class="number">{count(step)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
    </section>
  );
}
