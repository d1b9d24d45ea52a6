/** Hooks that keep the watches of a view open while it is shown, and close them afterwards. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Play } from "../address/address.ts";
import { errorText } from "../api/client.ts";
import { sinceServerUs } from "../api/clock.ts";
import type { DeviceBody, RecordingBody, SeriesBody } from "../api/types.ts";
import { requestPaint } from "../paint/painter.ts";
import { events } from "../session/events.ts";
import { advanceTo, heartbeat, newestUs, rejoined } from "../session/now.ts";
import { columnOf, forgetSeries, seriesOf } from "../session/recordings.ts";
import { boundsNow, show } from "../session/view.ts";
import { buildRows, type RowModel } from "../strip/rows.ts";
import { type Bounds, boundsOf, paused, type TimeWindow } from "../time/window.ts";
import { chooseBin } from "./bin_choice.ts";
import { Watch, type WatchRequest } from "./watch.ts";

export interface SeriesAnswer {
  /** Whether the server has told; before that no watch is worth opening. */
  readonly known: boolean;
  readonly series: readonly SeriesBody[];
  readonly error: string | null;
  readonly ask: () => void;
}

const UNKNOWN = { known: false, series: [], error: null };

/** The series of a table; `ask` asks anew when one came that is not known. */
export function useSeries(id: string | null, table: string): SeriesAnswer {
  const [answer, setAnswer] = useState<{ known: boolean; series: readonly SeriesBody[]; error: string | null }>(
    UNKNOWN,
  );
  const [asked, setAsked] = useState(0);
  const again = useRef(0);
  // Numbers of series hold only as long as the server runs.
  const times = rejoined.value;
  useEffect(() => {
    if (id === null) return undefined;
    let wanted = true;
    seriesOf(id, table).then(
      // An equal list stays the list that it was, so that nothing is opened anew for it.
      (series) =>
        wanted &&
        setAnswer((before) =>
          before.known && JSON.stringify(before.series) === JSON.stringify(series)
            ? before
            : { known: true, series, error: null },
        ),
      (error: unknown) => wanted && setAnswer((before) => ({ ...before, error: errorText(error) })),
    );
    return () => {
      wanted = false;
    };
  }, [id, table, asked, times]);
  const ask = useMemo(
    () => (): void => {
      // A cluster that is starting up brings a new series with every frame.
      if (again.current !== 0) return;
      again.current = window.setTimeout(() => {
        again.current = 0;
        forgetSeries();
        setAsked((times) => times + 1);
      }, 1000);
    },
    [],
  );
  return { ...answer, ask };
}

export function useRows(
  devices: readonly DeviceBody[],
  series: readonly SeriesBody[],
  rows: "devices" | "series",
  find: string,
): RowModel {
  return useMemo(() => buildRows(devices, series, rows, find), [devices, series, rows, find]);
}

export interface WatchSpec {
  readonly recording: RecordingBody | null;
  readonly table: string;
  readonly column: string;
  readonly also?: readonly string[];
  readonly model: RowModel;
  readonly window: TimeWindow;
  readonly play?: Play | null;
  /** Pixels; 0: not known yet, and nothing is asked for. */
  readonly width: number;
  readonly intervalUs: number;
  readonly devices?: readonly string[];
  readonly withLeast?: boolean;
  /** Health, events and the newest moment come from this one. */
  readonly leads?: boolean;
  readonly onUnknownSeries?: () => void;
}

/**
 * Zooming by wheel changes the window many times a second: the recording is asked at the first change, and again when
 * the window comes to rest.
 */
const REST_MS = 90;

/** The watch of what is specified; the one before stays until the new one has its past. */
export function useWatch(spec: WatchSpec): Watch | null {
  const [watch, setWatch] = useState<Watch | null>(null);
  const shown = useRef<Watch | null>(null);
  const changedMs = useRef(Number.NEGATIVE_INFINITY);
  const { recording, table, column, model, window: window_, play } = spec;
  const time = window_.live ? `live ${window_.spanUs}` : `${window_.fromUs} ${window_.toUs}`;
  const live = window_.live && (recording?.running === true || play != null);
  // Asked for a width that is not known, the past would come in cells so coarse that they cover gaps.
  const width = spec.width <= 0 ? 0 : Math.max(100, Math.round(spec.width / 50) * 50);
  const key = [
    recording?.id,
    table,
    column,
    spec.also?.join(),
    time,
    live,
    JSON.stringify(play),
    width,
    spec.intervalUs,
    spec.devices?.join(),
  ].join(" ");
  useEffect(() => {
    if (recording === null || model.rows.length === 0 || width === 0) return undefined;
    let next: Watch | null = null;
    let stopFilled = (): void => undefined;
    const rested = performance.now() - changedMs.current >= REST_MS;
    changedMs.current = performance.now();
    const timer = window.setTimeout(
      () => {
        const bounds = boundsFor(spec, recording);
        next = new Watch(requestOf(spec, recording, bounds, live, width));
        const take = (): void => {
          if (shown.current !== next) shown.current?.close();
          shown.current = next;
          setWatch(next);
          requestPaint();
        };
        // Live frames are shown as they come; a picture of the past replaces the one before when it is whole.
        if (
          live ||
          shown.current === null ||
          shown.current.request.model !== model ||
          shown.current.request.column !== column
        )
          take();
        else {
          const made = next;
          const stops = [
            made.filled.subscribe((filled) => filled && take()),
            made.error.subscribe((error) => error !== null && take()),
          ];
          stopFilled = () => {
            for (const stop of stops) stop();
          };
        }
      },
      shown.current === null || live || rested ? 0 : REST_MS,
    );
    return () => {
      window.clearTimeout(timer);
      stopFilled();
      // A watch that was never shown is closed here, the shown one when another takes its place.
      if (next !== shown.current) next?.close();
    };
  }, [key, model]);
  useEffect(
    () => () => {
      shown.current?.close();
      shown.current = null;
    },
    [],
  );
  return watch;
}

/** A cell so many times as long as the window needs may cover a gap that the finer cells would show. */
const COARSE = 1.5;

/**
 * What of a time a watch does not know at the resolution of that time; all of it while a picture of a longer time
 * stands in for one that is being read.
 */
export function unreadOf(watch: Watch | null): ((bounds: Bounds) => readonly Bounds[]) | undefined {
  if (watch === null) return undefined;
  return (bounds) => {
    const { width, intervalUs } = watch.request;
    const coarse = watch.bins.binUs > COARSE * chooseBin(bounds.toUs - bounds.fromUs, width, intervalUs);
    return coarse ? [bounds] : watch.unread(bounds.fromUs, bounds.toUs);
  };
}

/**
 * The time that a watch is made for. A running recording soon fills a live window; a finished one never will, and is
 * read as finely as what there is of it can be shown.
 */
function boundsFor({ window: window_, play }: WatchSpec, recording: RecordingBody): Bounds {
  const grows = recording.running || play != null;
  return boundsOf(window_, newestUs.peek(), grows ? null : recording.from_us);
}

function requestOf(
  spec: WatchSpec,
  recording: RecordingBody,
  bounds: Bounds,
  live: boolean,
  width: number,
): WatchRequest {
  const { play } = spec;
  return {
    recording: recording.id,
    table: spec.table,
    column: spec.column,
    unit: columnOf(recording, spec.table, spec.column)?.unit ?? "",
    also: spec.also ?? [],
    model: spec.model,
    ...bounds,
    width,
    intervalUs: spec.intervalUs,
    live: live ? { replay: play == null ? null : { fromUs: newestUs.peek(), speed: play.speed } } : null,
    ...(spec.devices === undefined ? {} : { labels: { device: spec.devices } }),
    ...(spec.withLeast === undefined ? {} : { withLeast: spec.withLeast }),
    ...(spec.onUnknownSeries === undefined ? {} : { onUnknownSeries: spec.onUnknownSeries }),
    ...(spec.leads === true ? leading() : {}),
  };
}

/** The strip's feed also carries what concerns the whole recording. */
function leading(): Pick<WatchRequest, "onFrame" | "onHealth" | "onEvent" | "onEnded"> {
  return {
    onEnded: () => show({ window: paused(boundsNow()), play: null }),
    onFrame: (frame) => advanceTo(frame.newestUs),
    onHealth: (told) => {
      const number = (name: string): number => (typeof told[name] === "number" ? told[name] : 0);
      const arrivedMs = performance.now();
      // By the collector's clock until it was received there, by the server's until it was here.
      const delayUs =
        Math.max(0, number("received_us") - number("newest_us")) + sinceServerUs(number("sent_us"), arrivedMs);
      heartbeat.value = {
        ok: number("ok"),
        late: number("late"),
        missed: number("missed"),
        error: number("error"),
        skipped: number("skipped"),
        newestUs: number("newest_us"),
        delayUs,
        arrivedMs,
      };
      if (number("newest_us") > 0) advanceTo(number("newest_us"));
      requestPaint();
    },
    onEvent: (told) => {
      events.value = [...events.peek(), told as unknown as (typeof events.value)[number]];
    },
  };
}
