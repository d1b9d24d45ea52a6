/**
 * Then and now: the newest span and a past one, of this recording or another, on one scale and with the same rows,
 * aligned by a marker that the person sets.
 */

import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import type { Watch } from "../live/watch.ts";
import { unreadOf, useRows, useSeries, useWatch } from "../live/watching.ts";
import { requestPaint } from "../paint/painter.ts";
import { useSize } from "../paint/size.ts";
import { cursor } from "../session/cursor.ts";
import { intervalUs, recording, recordings, recordingTitle, shownQuantity, tableOf } from "../session/recordings.ts";
import { pan, show, view, zoom } from "../session/view.ts";
import { Difference } from "../strip/difference.tsx";
import { Legend } from "../strip/legend.tsx";
import { AXIS_PX, type Rectangle, Strip } from "../strip/strip.tsx";
import { stripKeys } from "../strip/strip_keys.ts";
import { useBounds, useScale } from "../strip/window_of_strip.ts";
import { clock, dayAndClock, formatMoment, parseMoment } from "../time/moment.ts";
import type { Bounds } from "../time/window.ts";
import { quantityTitle } from "../words/names.ts";
import { MISSING, quantityText, span } from "../words/quantity.ts";
import { Empty } from "./empty.tsx";
import { Problem } from "./problem.tsx";
import { QuantityPicker } from "./quantity_picker.tsx";

const BEFORE = [
  ["1 min", 60e6],
  ["1 h", 3600e6],
  ["1 day", 86_400e6],
  ["1 week", 604_800e6],
] as const;

/** What stands above and between the three strips, and how high a row is at most. */
const AROUND_PX = 190;
const ROW_MAX_PX = 14;

/** How far back "then" lies: the marker is laid under `aligned`, or under the begin of the window. */
export function shiftOf(marker: number, aligned: number | null, now: Bounds): number {
  return (aligned ?? now.fromUs) - marker;
}

export function ThenAndNow() {
  const current = recording.value;
  const { rows: kind, find, window: window_, play, marker, aligned, compare, devices } = view.value;
  const { table, column } = shownQuantity.value;
  const other = recordings.value?.find(({ id }) => id === view.value.other) ?? current;
  const here = useSeries(current?.id ?? null, table);
  const there = useSeries(other?.id ?? null, table);
  const wanted = useMemo(
    () => (current?.devices ?? []).filter(({ name }) => devices.length === 0 || devices.includes(name)),
    [current, devices],
  );
  const only = <T extends { readonly labels: Readonly<Record<string, string>> }>(all: readonly T[]): readonly T[] =>
    devices.length === 0 ? all : all.filter(({ labels }) => devices.includes(labels["device"] ?? ""));
  const ownSeries = useMemo(() => only(here.series), [here.series, devices]);
  const otherSeries = useMemo(() => only(there.series), [there.series, devices]);
  const model = useRows(wanted, ownSeries, kind, find);
  const thenModel = useRows(wanted, otherSeries, kind, find);
  const [middle, width, height] = useSize();
  const known = tableOf(current, table) !== null;
  const told = here.known && there.known;
  const common = { table, column, width: width === 0 ? 0 : Math.max(100, width - 100), intervalUs: intervalUs.value };
  const now = useWatch({
    ...common,
    recording: known && told ? current : null,
    model,
    window: window_,
    play,
    leads: true,
    onUnknownSeries: here.ask,
  });
  const bounds = useBounds(now);
  // "Then" is read anew when the window is moved, and twice in a window's length while "now" runs on.
  const past = useThenWindow(
    bounds,
    marker,
    aligned,
    window_.live ? window_.spanUs : null,
    `${JSON.stringify(window_)} ${marker} ${aligned}`,
  );
  const then = useWatch({
    ...common,
    recording: marker === null || past === null || !told ? null : other,
    model: thenModel,
    window: past ?? window_,
  });
  const thenBounds = useCallback((): Bounds => {
    const at = bounds();
    const shift = marker === null ? 0 : shiftOf(marker, aligned, at);
    return { fromUs: at.fromUs - shift, toUs: at.toUs - shift };
  }, [bounds, marker, aligned]);
  const scale = useScale(`${table} ${column}`, now, then);
  const each = Math.max(110, Math.min(AXIS_PX + model.rows.length * ROW_MAX_PX, Math.floor((height - AROUND_PX) / 3)));
  const choose = (rectangle: Rectangle, shift: number): void => {
    const names = new Set(model.rows.slice(rectangle.firstRow, rectangle.lastRow + 1).map(({ device }) => device));
    show({
      devices: [...names],
      selected: { fromUs: Math.round(rectangle.fromUs + shift), toUs: Math.round(rectangle.toUs + shift) },
    });
  };
  const live = window_.live && (current?.running === true || play !== null);
  const strip = { model, height: each, scale, selectedRows: new Set<number>(), onZoom: zoom, onPan: pan };
  const title = quantityTitle(shownQuantity.value, kind);
  return (
    <main class="columns">
      <section aria-label="What is compared">
        <h2>Quantity</h2>
        <QuantityPicker />
        <Legend scale={scale} watch={now} />
        <MarkerControls bounds={bounds} />
        {devices.length > 0 && (
          <div class="tags">
            <button type="button" class="tag" onClick={() => show({ devices: [] })}>
              all devices
            </button>
          </div>
        )}
      </section>
      <section ref={middle} aria-label={title}>
        <h1>
          {title}{" "}
          <small>
            one scale; the marker of then lies under {aligned === null ? "the begin of now" : clock(aligned, 1)}
          </small>
        </h1>
        <Problem error={now?.error.value ?? here.error} known={known} table={table} />
        <h2>
          Now <small>{live ? "live" : dayAndClock(bounds().fromUs)}</small>
        </h2>
        <Strip
          {...strip}
          label={`Now: ${title}`}
          bins={now?.bins ?? null}
          unread={unreadOf(now)}
          bounds={bounds}
          live={live}
          selected={view.value.selected}
          counted={true}
          marker={aligned === null ? null : { us: aligned, name: "aligned" }}
          onSelect={(rectangle) => choose(rectangle, 0)}
          onPick={(_, us) => show({ aligned: Math.round(us) })}
          onKey={stripKeys(model, bounds, () => show({ aligned: Math.round(cursor.peek()?.us ?? 0) }))}
        />
        {marker === null ? (
          <Empty text="Choose the past to compare with: a moment on the left, or a marker in any strip with the key m." />
        ) : (
          <>
            <h2>
              Then <small>{marker === null ? "" : `${dayAndClock(marker)}, ${other?.name ?? ""}`}</small>
            </h2>
            {then?.error.value != null && (
              <p class="kin" role="alert">
                {then.error.value}
              </p>
            )}
            <Strip
              {...strip}
              model={thenModel}
              label={`Then: ${title}`}
              bins={then?.bins ?? null}
              unread={unreadOf(then)}
              bounds={thenBounds}
              live={false}
              selected={null}
              marker={{ us: marker, name: "marker" }}
              onSelect={(rectangle) => choose(rectangle, shiftOf(marker, aligned, bounds()))}
              onPick={(_, us) => show({ marker: Math.round(us) })}
              onKey={stripKeys(thenModel, thenBounds, () => show({ marker: Math.round(cursor.peek()?.us ?? marker) }))}
            />
            <h2>
              <span>
                {compare === "difference"
                  ? "Difference: green, more now; violet, less"
                  : "Ratio: green up to 4 times as much now, violet down to a quarter"}
              </span>
              <span class="tags">
                {(["difference", "ratio"] as const).map((one) => (
                  <button
                    key={one}
                    type="button"
                    class="tag"
                    aria-pressed={compare === one}
                    onClick={() => show({ compare: one })}
                  >
                    {one}
                  </button>
                ))}
              </span>
            </h2>
            <Difference
              label={`${compare} of now and then: ${title}`}
              now={now?.bins ?? null}
              then={then?.bins ?? null}
              nowBounds={bounds}
              thenBounds={thenBounds}
              rows={model.rows}
              height={each}
              kind={compare}
              scale={scale}
            />
          </>
        )}
      </section>
      <section aria-label="Facts">
        {now !== null && then !== null && marker !== null && (
          <CompareTable now={now} then={then} nowBounds={bounds} thenBounds={thenBounds} />
        )}
      </section>
    </main>
  );
}

/** The window that is read for "then", somewhat larger than what is shown so that it can move along with a live now. */
function useThenWindow(
  bounds: () => Bounds,
  marker: number | null,
  aligned: number | null,
  liveSpanUs: number | null,
  key: string,
) {
  const [past, setPast] = useState<{ live: false; fromUs: number; toUs: number } | null>(null);
  useEffect(() => {
    if (marker === null) {
      setPast(null);
      return undefined;
    }
    const read = (): void => {
      const at = bounds();
      const shift = shiftOf(marker, aligned, at);
      const ahead = liveSpanUs !== null && aligned !== null ? liveSpanUs : 0;
      setPast({ live: false, fromUs: Math.round(at.fromUs - shift), toUs: Math.round(at.toUs - shift + ahead) });
    };
    read();
    if (liveSpanUs === null || aligned === null) return undefined;
    const timer = window.setInterval(read, Math.max(1000, liveSpanUs / 2000));
    return () => window.clearInterval(timer);
  }, [key, bounds]);
  return past;
}

function MarkerControls({ bounds }: { bounds: () => Bounds }) {
  const { marker, aligned, other } = view.value;
  const all = recordings.value ?? [];
  const [wrong, setWrong] = useState(false);
  const past = all.find(({ id }) => id === (other ?? recording.value?.id)) ?? null;
  // A past before the recording begins has nothing to be compared with.
  const reached = (us: number): boolean => past?.from_us != null && bounds().fromUs - us >= past.from_us;
  const nowhere = BEFORE.every(([, us]) => !reached(us));
  const set = (change: Parameters<typeof show>[0]): void => {
    show(change);
    requestPaint();
  };
  return (
    <>
      <h2 class="gap">Then begins</h2>
      <div class="tags">
        {BEFORE.filter(([, us]) => reached(us)).map(([words, us]) => (
          <button
            key={words}
            type="button"
            class="tag"
            onClick={() => set({ marker: Math.round(bounds().fromUs - us), aligned: null })}
          >
            {words} before
          </button>
        ))}
      </div>
      {nowhere && (
        <p class="quiet">
          The recording begins less than {BEFORE[0][0]} before the shown time. Show a shorter time, or type a moment.
        </p>
      )}
      <input
        type="text"
        aria-label="Moment of the past"
        aria-invalid={wrong}
        spellcheck={false}
        onKeyDown={(event) => {
          event.stopPropagation();
          if (event.key === "Escape") event.currentTarget.blur();
          if (event.key !== "Enter") return;
          const us = parseMoment(event.currentTarget.value, bounds().toUs);
          setWrong(us === null);
          if (us !== null) set({ marker: us });
        }}
        onInput={() => setWrong(false)}
      />
      {wrong && (
        <p class="kin" role="alert">
          Cannot read that time. Type 18:42, -1h or 2026-11-21T18:42.
        </p>
      )}
      {marker !== null && (
        <dl>
          <dt>marker</dt>
          <dd title={formatMoment(marker)}>{dayAndClock(marker)}</dd>
          <dt>laid under</dt>
          <dd>{aligned === null ? "begin of now" : clock(aligned, 1)}</dd>
          <dt>distance</dt>
          <dd>{span(shiftOf(marker, aligned, bounds()))}</dd>
        </dl>
      )}
      {marker !== null && (
        <div class="tags">
          {aligned !== null && (
            <button type="button" class="tag" onClick={() => set({ aligned: null })}>
              align with the begin
            </button>
          )}
          <button type="button" class="tag" onClick={() => set({ marker: null, aligned: null, other: null })}>
            take away
          </button>
        </div>
      )}
      {all.length > 1 && (
        <>
          <h2 class="gap">Recording of then</h2>
          <select
            aria-label="Recording of then"
            value={other ?? recording.value?.id ?? ""}
            onChange={(event) => {
              const id = event.currentTarget.value;
              const chosen = all.find((one) => one.id === id);
              set({ other: id === recording.value?.id ? null : id, marker: chosen?.from_us ?? marker });
            }}
          >
            {all.map((one) => (
              <option key={one.id} value={one.id}>
                {recordingTitle(one, all)}
              </option>
            ))}
          </select>
        </>
      )}
      <p class="quiet">
        Or type 18:42, -1h or 2026-11-21T18:42. A click in Then moves the marker, a click in Now what it is laid under.
      </p>
    </>
  );
}

interface Compared {
  readonly name: string;
  readonly now: number;
  readonly then: number;
}

function meanOf(watch: Watch, row: number, { fromUs, toUs }: Bounds): number {
  const { bins } = watch;
  let [sum, known] = [0, 0];
  for (let bin = bins.binOf(fromUs); bin <= Math.min(bins.binOf(toUs - 1), bins.newestBin); bin += 1) {
    const value = bins.value(bin, row);
    if (Number.isNaN(value)) continue;
    sum += value;
    known += 1;
  }
  return known === 0 ? Number.NaN : sum / known;
}

const TABLE_ROWS_MAX = 300;

function CompareTable({
  now,
  then,
  nowBounds,
  thenBounds,
}: {
  now: Watch;
  then: Watch;
  nowBounds: () => Bounds;
  thenBounds: () => Bounds;
}) {
  const [lines, setLines] = useState<readonly Compared[]>([]);
  useEffect(() => {
    const read = (): void => {
      const [a, b] = [nowBounds(), thenBounds()];
      setLines(
        now.request.model.rows.slice(0, TABLE_ROWS_MAX).map(({ name, device, part }, row) => {
          const old =
            (then.request.model.rowsOfDevice.get(device) ?? []).find(
              (at) => then.request.model.rows[at]?.part === part,
            ) ?? -1;
          return { name, now: meanOf(now, row, a), then: old < 0 ? Number.NaN : meanOf(then, old, b) };
        }),
      );
    };
    read();
    const stops = [now.filled.subscribe(read), then.filled.subscribe(read)];
    const timer = window.setInterval(read, 1000);
    return () => {
      for (const stop of stops) stop();
      window.clearInterval(timer);
    };
  }, [now, then, nowBounds, thenBounds]);
  const unit = now.unit.value;
  // Before a past is there, nothing is known to be missing of it.
  const missing = now.filled.value && then.filled.value ? MISSING : "…";
  const text = (value: number, of: Watch): string =>
    Number.isNaN(value) && !of.filled.value ? "…" : quantityText(value, unit);
  const sorted = [...lines].sort(
    (left, right) => Math.abs(right.now - right.then || 0) - Math.abs(left.now - left.then || 0),
  );
  return (
    <>
      <h2>
        Means <small>greatest change first</small>
      </h2>
      <div class="scroll tall" tabIndex={0} role="region" aria-label="Means of now and then">
        <table aria-label="Means of each row, now and then">
          <thead>
            <tr>
              <th scope="col">row</th>
              <th scope="col" class="number">
                now
              </th>
              <th scope="col" class="number">
                difference
              </th>
              <th scope="col" class="number">
                ratio
              </th>
            </tr>
          </thead>
          <tbody>
            {sorted.map((line) => (
              <tr key={line.name} title={`then ${text(line.then, then)}`}>
                <td>{line.name}</td>
                <td class="number">{text(line.now, now)}</td>
                <td class="number">
                  {Number.isNaN(line.now - line.then) ? missing : signed(line.now - line.then, unit)}
                </td>
                <td class="number">
                  {line.then > 0 && !Number.isNaN(line.now) ? (line.now / line.then).toFixed(2) : missing}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function signed(value: number, unit: string): string {
  return value > 0 ? `+${quantityText(value, unit)}` : quantityText(value, unit);
}
