/** Device: everything about one. Its interfaces as strips and numbers, its machine as lines, how fresh what it says is. */

import { useEffect, useMemo, useState } from "preact/hooks";
import type { Quantity } from "../address/address.ts";
import { NOT_READ, poll, type Told } from "../api/poll.ts";
import { type Answer, getAnswers, getRows, numberOf, type RawRow } from "../api/readings.ts";
import type { DeviceBody, TableBody } from "../api/types.ts";
import { isEmpty, Lines } from "../lines/lines.tsx";
import { unreadOf, useRows, useSeries, useWatch } from "../live/watching.ts";
import { useSize } from "../paint/size.ts";
import {
  allQuantities,
  answerTables,
  columnOf,
  drawable,
  intervalUs,
  recording,
  shownQuantity,
  tableOf,
  usualQuantities,
} from "../session/recordings.ts";
import { pan, show, view, zoom } from "../session/view.ts";
import { Legend } from "../strip/legend.tsx";
import { groupOf } from "../strip/rows.ts";
import { type Rectangle, Strip } from "../strip/strip.tsx";
import { stripKeys } from "../strip/strip_keys.ts";
import { useBounds, useScale } from "../strip/window_of_strip.ts";
import { StripTable } from "../table/strip_table.tsx";
import { clockExact } from "../time/moment.ts";
import { freshnessWords } from "../words/freshness.ts";
import { columnWords, quantityTitle, reasonWords } from "../words/names.ts";
import { inNaturalOrder } from "../words/natural.ts";
import { MISSING, quantityText, span } from "../words/quantity.ts";
import { EventList, EventsAge } from "./cards.tsx";
import { Empty } from "./empty.tsx";
import { Problem } from "./problem.tsx";
import { chartsFitting } from "./room.ts";
import { AsOf, LOADING, markOf, ReadingAge, Unread, unreadWords } from "./told.tsx";

/** A strip's title, and what charts need at least below the strips. */
const TITLE_PX = 38;
const CHARTS_PX = 330;
const NO_ROWS: ReadonlySet<number> = new Set();

/** The rows of a chart come from its series alone. */
const NOBODY: readonly DeviceBody[] = [];

export function Device() {
  const current = recording.value;
  const devices = current?.devices ?? [];
  const wanted = view.value.device ?? view.value.devices[0] ?? devices[0]?.name ?? null;
  const device = devices.find(({ name }) => name === wanted) ?? null;
  if (wanted === null)
    return (
      <main class="page">
        <Empty text="This recording has no device yet." command="meikyo measure --out RECORDING" />
      </main>
    );
  return (
    <main class="columns">
      <section aria-label="Device">
        <h2>Device</h2>
        <select
          aria-label="Device"
          value={wanted}
          onChange={(event) => show({ device: event.currentTarget.value }, true)}
        >
          {device === null && <option value={wanted}>{wanted}</option>}
          {devices.map(({ name }) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
        {device === null ? (
          <Empty text={`This recording has no device called ${wanted}.`} />
        ) : (
          <dl>
            <dt>what it is</dt>
            <dd>{device.role}</dd>
            <dt>group</dt>
            <dd>{groupOf(device)}</dd>
          </dl>
        )}
        <Freshness device={wanted} />
        <h2 class="gap">
          Events <EventsAge />
        </h2>
        <EventList device={wanted} />
      </section>
      <Parts device={wanted} />
      <section aria-label="Facts">
        <Answers device={wanted} />
        <Machine device={wanted} />
      </section>
    </main>
  );
}

/** The strip of the device's series of the shown quantity, and lines of everything else it tells. */
function Parts({ device }: { device: string }) {
  const current = recording.value;
  const shown = shownQuantity.value;
  const { table, column } = tableOf(current, shown.table) === null ? (usualQuantities(current)[0] ?? shown) : shown;
  const { known, series, error, ask } = useSeries(current?.id ?? null, table);
  const own = useMemo(() => series.filter(({ labels }) => labels["device"] === device), [series, device]);
  const one = useMemo(
    (): readonly DeviceBody[] => [{ ordinal: 0, name: device, role: "unknown", group: null, agent: null }],
    [device],
  );
  const built = useRows(one, own, "series", "");
  // Inside one device the name of the interface is enough.
  const model = useMemo(
    () => ({ ...built, rows: built.rows.map((row) => ({ ...row, name: row.part === "" ? row.name : row.part })) }),
    [built],
  );
  const [middle, width, height] = useSize();
  const names = useMemo(() => [device], [device]);
  const live = view.value.window.live && (current?.running === true || view.value.play !== null);
  const watch = useWatch({
    recording: known ? current : null,
    table,
    column,
    model,
    window: view.value.window,
    play: view.value.play,
    width: width === 0 ? 0 : Math.max(100, width - 100),
    intervalUs: intervalUs.value,
    devices: names,
    leads: true,
    onUnknownSeries: ask,
    also: (tableOf(current, table)?.columns ?? [])
      .filter((of) => of.name !== column && drawable(of) && (of.shown !== null || of.beside !== null))
      .map(({ name }) => name),
  });
  const bounds = useBounds(watch);
  // The quantity that is looked at together with it, where both leave room for charts.
  const other = columnOf(current, table, column)?.beside ?? null;
  const stripHeight = Math.min(420, Math.max(18, Math.min(22, 360 / model.rows.length)) * model.rows.length + 18);
  const besideHeight = stripHeight + TITLE_PX;
  const usual = usualQuantities(current).length;
  const second =
    other !== null &&
    height - stripHeight - besideHeight >= CHARTS_PX &&
    tableOf(current, table)?.columns.some((of) => of.name === other && drawable(of)) === true;
  const besideWatch = useWatch({
    recording: second && known ? current : null,
    table,
    column: other ?? column,
    model,
    window: view.value.window,
    play: view.value.play,
    width: width === 0 ? 0 : Math.max(100, width - 100),
    intervalUs: intervalUs.value,
    devices: names,
  });
  const scale = useScale(`${current?.id} ${device} ${table} ${column}`, watch, second ? besideWatch : null);
  const select = (rectangle: Rectangle): void =>
    show({ selected: { fromUs: Math.round(rectangle.fromUs), toUs: Math.round(rectangle.toUs) } });
  const rows = useMemo(() => [...model.rows.keys()], [model]);
  // Everything that it tells, the usual first, as far as there is room.
  const charts = allQuantities(current).slice(
    0,
    Math.max(usual, chartsFitting(width, height - stripHeight - (second ? besideHeight : 0))),
  );
  const strip = {
    model,
    height: stripHeight,
    scale,
    bounds,
    live,
    selectedRows: NO_ROWS,
    selected: view.value.selected,
    marker: view.value.marker === null ? null : { us: view.value.marker, name: "marker" },
    onSelect: select,
    onPick: () => undefined,
    onZoom: zoom,
    onPan: pan,
    onKey: stripKeys(model, bounds, () => undefined),
  };
  return (
    <section ref={middle} aria-label={`Readings of ${device}`}>
      <h1>
        {device}: {quantityTitle({ table, column }, "series").toLowerCase()}{" "}
        <small>{live ? "newest at the right" : ""}</small>
      </h1>
      <Problem error={watch?.error.value ?? error} known={true} table={table} />
      {model.rows.length === 0 && !known && error === null && (
        <p class="quiet unread" role="status">
          {LOADING}
        </p>
      )}
      {model.rows.length === 0 && known && <p class="quiet">{device} has told nothing of this in the recording.</p>}
      {model.rows.length > 0 && (
        <Strip
          {...strip}
          label={`${device}: ${quantityTitle({ table, column }, "series")}`}
          bins={watch?.bins ?? null}
          unread={unreadOf(watch)}
          counted={true}
        />
      )}
      {second && other !== null && model.rows.length > 0 && (
        <>
          <h2>{quantityTitle({ table, column: other }, "series")}</h2>
          <Strip
            {...strip}
            label={`${device}: ${quantityTitle({ table, column: other }, "series")}`}
            bins={besideWatch?.bins ?? null}
            unread={unreadOf(besideWatch)}
          />
        </>
      )}
      <Legend scale={scale} watch={watch} />
      {view.value.tables && watch !== null && <StripTable watch={watch} rows={rows} bounds={bounds} />}
      <div class="charts">
        {charts.map((one) => (
          <Chart
            key={`${one.table}.${one.column}`}
            quantity={one}
            device={device}
            bounds={bounds}
            width={Math.floor((width - 50) / 2)}
          />
        ))}
      </div>
    </section>
  );
}

function Chart({
  quantity: { table, column },
  device,
  bounds,
  width,
}: {
  quantity: Quantity;
  device: string;
  bounds: () => { fromUs: number; toUs: number };
  width: number;
}) {
  const current = recording.value;
  const { series } = useSeries(current?.id ?? null, table);
  const own = useMemo(() => series.filter(({ labels }) => labels["device"] === device), [series, device]);
  const model = useRows(NOBODY, own, "devices", "");
  const names = useMemo(() => [device], [device]);
  const watch = useWatch({
    recording: own.length === 0 ? null : current,
    table,
    column,
    model,
    window: view.value.window,
    play: view.value.play,
    width: width <= 0 ? 0 : Math.max(100, width - 66),
    intervalUs: intervalUs.value,
    devices: names,
    withLeast: true,
  });
  const rows = useMemo(() => [...model.rows.keys()], [model]);
  if (own.length === 0 || isEmpty(watch)) return null;
  return (
    <Lines
      title={columnWords(table, column)}
      watch={watch}
      rows={rows}
      bounds={bounds}
      onSelect={(chosen) => show({ selected: chosen })}
    />
  );
}

/** An answer of the server about one device, asked for again and again. */
function useAnswer<T>(ask: ((signal: AbortSignal) => Promise<T>) | null, key: string, everyMs: number): Told<T> {
  const [answer, setAnswer] = useState<{ key: string; told: Told<T> }>({ key, told: NOT_READ });
  useEffect(() => (ask === null ? undefined : poll(ask, everyMs, (told) => setAnswer({ key, told }))), [key, everyMs]);
  // What was told of another device is not of this one.
  return answer.key === key ? answer.told : NOT_READ;
}

function Freshness({ device }: { device: string }) {
  const id = recording.value?.id;
  const answer = useAnswer<RawRow[]>(
    id === undefined ? null : (signal) => getRows(id, "freshness", { device, limit: 5000 }, signal),
    `${id} ${device}`,
    5000,
  );
  const { value: told } = answer;
  // The newest finding about each value counts.
  const newest = new Map(
    (told ?? []).map((row) => [
      [row["instance"], columnWords(String(row["table"]), String(row["column"]))]
        .filter((text) => text !== null)
        .join(" "),
      row,
    ]),
  );
  return (
    <>
      <h2 class="gap">
        How fresh its values are <AsOf atMs={recording.value?.running === true ? answer.atMs : 0} />
      </h2>
      <Unread told={answer} />
      {told !== null && newest.size === 0 && (
        <p class="quiet">Not found out yet; that takes a few updates of each value.</p>
      )}
      {newest.size > 0 && (
        <div class="scroll tall" tabIndex={0} role="region" aria-label="Freshness">
          <table aria-label="How fresh each value is">
            <thead>
              <tr>
                <th scope="col">value</th>
                <th scope="col">updated</th>
              </tr>
            </thead>
            <tbody>
              {inNaturalOrder([...newest], ([name]) => name).map(([name, row]) => (
                <tr key={name}>
                  <td>{name}</td>
                  <td class={row["class"] === "frozen" ? "kin" : ""}>
                    {freshnessWords(String(row["class"]), numberOf(row["period_us"]))}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

/** The list takes the room that is left in its column, and is scrolled through beyond it. */
const ANSWERS_SHOWN = 40;

/** The newest raw answers: when they came, how long they took, how they ended. */
function Answers({ device }: { device: string }) {
  const id = recording.value?.id;
  const tables = answerTables(recording.value);
  const answer = useAnswer<Answer[]>(
    id === undefined || tables === null ? null : (signal) => getAnswers(id, tables, device, "-3s", "now", signal),
    `${id} ${device} ${tables?.answers}`,
    1000,
  );
  const rows = answer.value?.slice(-ANSWERS_SHOWN).reverse() ?? [];
  const missing = markOf(unreadWords(answer));
  const newest = rows[0];
  const agent = recording.value?.devices.find(({ name }) => name === device)?.agent;
  return (
    <section class="card grows" aria-label="How it was reached">
      <h2>
        How it was reached <AsOf atMs={recording.value?.running === true ? answer.atMs : 0} />
      </h2>
      <Unread told={answer} />
      <dl>
        {agent != null && (
          <>
            <dt>agent</dt>
            <dd class="mono">{agent.address}</dd>
            <dt>asked over</dt>
            <dd>SNMP {agent.version}</dd>
          </>
        )}
        <dt>newest answer</dt>
        <dd class="mono">{newest?.receivedUs == null ? missing : clockExact(newest.receivedUs)}</dd>
        <dt>round trip</dt>
        <dd>{newest?.roundTripUs == null ? missing : span(newest.roundTripUs)}</dd>
        <dt>has been up for</dt>
        <dd>{newest?.uptimeUs == null ? missing : span(newest.uptimeUs)}</dd>
      </dl>
      <div class="scroll" tabIndex={0} role="region" aria-label="Newest answers">
        <table aria-label="Answers, the newest first">
          <thead>
            <tr>
              <th scope="col">answer</th>
              <th scope="col" class="number">
                round trip
              </th>
              <th scope="col">state</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={`${row.dueUs} ${row.pdu}`}>
                <td class="mono">{row.receivedUs === null ? MISSING : clockExact(row.receivedUs)}</td>
                <td class="number">{span(row.roundTripUs)}</td>
                <td class={stateInk(row.state)}>
                  {row.state}
                  {row.reason === null ? "" : `, ${reasonWords(row.reason)}`}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function stateInk(state: string): string {
  return { ok: "water", late: "kin", skipped: "" }[state] ?? "shu";
}

/** The newest readings that are read as numbers: load, memory, disks, whatever the tables declare. */
function Machine({ device }: { device: string }) {
  const current = recording.value;
  const tables = (current?.tables ?? []).filter(({ columns }) => columns.some(({ listed }) => listed));
  return (
    <section class="card machine" aria-label="Machine">
      <h2>
        Machine <small>newest readings</small>
      </h2>
      {tables.length === 0 && <p class="quiet">This recording has no table of machines.</p>}
      {tables.map((table) => (
        <Newest key={table.name} device={device} of={table} />
      ))}
      {tables.length > 0 && <p class="quiet nothing">It has told nothing of this in the last minute.</p>}
    </section>
  );
}

function Newest({ device, of }: { device: string; of: TableBody }) {
  const id = recording.value?.id;
  const table = of.name;
  const labels = of.labels.filter((label) => label !== "device");
  const shown = of.columns.filter(({ listed }) => listed);
  const answer = useAnswer<RawRow[]>(
    id === undefined ? null : (signal) => getRows(id, "readings", { table, device, from: "-60s", limit: 200 }, signal),
    `${id} ${device} ${table}`,
    2000,
  );
  const told = answer.value;
  const byPart = new Map((told ?? []).map((row) => [labels.map((label) => row[label] ?? "").join(" "), row]));
  if (byPart.size === 0) return answer.failed === null && told !== null ? null : <Unread told={answer} />;
  return (
    <dl>
      {inNaturalOrder([...byPart], ([part]) => part).map(([part, row]) =>
        shown
          .filter(({ name }) => numberOf(row[name]) !== null)
          .map(({ name, words, unit }) => [
            <dt key={`${part} ${name} name`}>
              {words}
              {part === "" ? "" : `, ${part}`}
            </dt>,
            <dd key={`${part} ${name}`}>
              {unit === "tasks" ? numberOf(row[name])?.toFixed(2) : quantityText(numberOf(row[name]), unit)}
              <ReadingAge us={numberOf(row["time_us"])} />
            </dd>,
          ]),
      )}
    </dl>
  );
}
