/**
 * One quantity of many rows over the window that is shown: the past from the recording, the newest from a live
 * feed, in the same bins. What strip, grid and lines are drawn from.
 */

import { type Signal, signal } from "@preact/signals";
import { errorText, wasAborted } from "../api/client.ts";
import { getRange, type Range, widthFor } from "../api/range.ts";
import { getStates } from "../api/states.ts";
import type { StatesBody } from "../api/types.ts";
import { requestPaint, timed } from "../paint/painter.ts";
import { Bins } from "../strip/bins.ts";
import { NO_STATE } from "../strip/ramp.ts";
import type { RowModel } from "../strip/rows.ts";
import type { Bounds } from "../time/window.ts";
import { alignedRequest, binAhead, chooseBin } from "./bin_choice.ts";
import { Feed, type LiveSeries } from "./feed.ts";
import type { Frame } from "./frame.ts";
import { Spans } from "./spans.ts";

export interface WatchRequest {
  readonly recording: string;
  readonly table: string;
  readonly column: string;
  readonly unit: string;
  /** Further columns that arrive live, for what is shown beside the strip. */
  readonly also: readonly string[];
  readonly model: RowModel;
  readonly fromUs: number;
  readonly toUs: number;
  /** Pixels for the window. */
  readonly width: number;
  readonly intervalUs: number;
  /** Frames are subscribed to; `speed` plays a finished recording. */
  readonly live: { readonly replay: { fromUs: number; speed: number } | null } | null;
  readonly labels?: Readonly<Record<string, readonly string[]>>;
  /** The least values are kept too, for the band of a line. */
  readonly withLeast?: boolean;
  /** Called with every frame, for the newest values of `also`. */
  readonly onFrame?: (frame: Frame) => void;
  readonly onHealth?: (health: Readonly<Record<string, unknown>>) => void;
  readonly onEvent?: (event: Readonly<Record<string, unknown>>) => void;
  readonly onEnded?: () => void;
  /** A series came that the rows do not know. */
  readonly onUnknownSeries?: () => void;
}

/** Most values that are asked for at once; more rows get a coarser past. */
const PAST_VALUES_MAX = 1_500_000;
/** A live window is this much longer in memory than on the screen, so that a pause loses nothing. */
const LIVE_EXTRA_BINS = 8;
/** The end of a running recording is known a little late; so much further is asked for. */
const AHEAD_US = 10e6;
/** So much is read again when the feed begins. */
const JOIN_US = 2e6;
/** What is so old is in the recording, if it ever will be. */
const SETTLED_US = 5e6;
/** What was not there yet, or did not come, is asked for again so much later. */
const SETTLE_MS = 1000;
const RETRY_MS = 2000;
/**
 * Intervals that the server left out for this slow line are read together, so much later: one answer takes less of the
 * line than the live frames did that were left out.
 */
const HOLES_MS = 4000;
/** So much of them at once: a larger answer would hold up the live frames behind it. */
const PIECE_US = 1e6;
/** A question that has no answer for so long is given up and asked again. */
const PATIENCE_MS = 20_000;
/** What was read is painted before more is read ahead. */
const PAINT_FIRST_MS = 30;
/** Longest piece of work between two frames while the past is filled in. */
const SLICE_MS = 8;

export class Watch {
  readonly bins: Bins;
  /** The least values, negated, because bins keep the greatest; null unless asked for. */
  readonly lows: Bins | null;
  readonly request: WatchRequest;
  /** As the server says it with the values; until then as the list of tables has it. */
  readonly unit: Signal<string>;
  readonly error: Signal<string | null> = signal(null);
  /** Files of the shown time that cannot be read. */
  readonly problems = signal(0);
  /** The past has been filled in. */
  readonly filled = signal(false);
  /** The time that was read, or arrived live: elsewhere nothing is known yet. */
  readonly read = new Spans();
  /** Newest value of each column of `also` per series; NaN: none yet. */
  readonly newest: ReadonlyMap<string, Float32Array>;
  readonly agesMs: Float32Array;
  /** The due instant of the newest row of each series, µs since the epoch; NaN: none yet. */
  readonly newestUs: Float64Array;
  private readonly feed: Feed | null;
  private readonly abort = new AbortController();
  private renumbered = false;
  /** Begin of what arrives live without a hole; null: the next frame begins it. */
  private liveFromUs: number | null = null;
  /** End of what is known to be there. */
  private edgeUs: number;
  /** What is still to be read, at most one time behind the one that is under way. */
  private wanted: Bounds | null = null;
  private reading = false;
  private later: ReturnType<typeof setTimeout> | undefined;
  /** When the server left something out last, `performance.now()`. */
  private droppedMs = Number.NEGATIVE_INFINITY;

  constructor(request: WatchRequest) {
    this.request = request;
    this.unit = signal(request.unit);
    this.edgeUs = request.toUs;
    const spanUs = request.toUs - request.fromUs;
    const binUs = chooseBin(spanUs, request.width, request.intervalUs);
    const extra = request.live === null ? 2 : LIVE_EXTRA_BINS;
    this.bins = new Bins(request.model.rows.length, binUs, Math.ceil(spanUs / binUs) + extra);
    this.lows = request.withLeast === true ? new Bins(this.bins.rows, binUs, this.bins.capacity) : null;
    const series = request.model.rowOf.length;
    this.newest = new Map(
      [request.column, ...request.also].map((name) => [name, new Float32Array(series).fill(Number.NaN)]),
    );
    this.agesMs = new Float32Array(series).fill(Number.NaN);
    this.newestUs = new Float64Array(series).fill(Number.NaN);
    this.feed = request.live === null ? null : this.subscribe(request.live.replay);
    // A replay shows only what it plays, so that the future is not on the screen before it happens.
    // Of a finished recording the last bin is read whole, which its last interval only begins.
    const aheadOfLiveUs = request.live?.replay === null ? AHEAD_US : 0;
    const aheadUs = request.live === null ? binUs : aheadOfLiveUs;
    this.want({ fromUs: request.fromUs, toUs: request.toUs + aheadUs });
  }

  close(): void {
    clearTimeout(this.later);
    this.abort.abort();
    this.feed?.close();
  }

  /** What of a time is not read yet. */
  unread(fromUs: number, toUs: number): Bounds[] {
    // Behind the newest bin nothing is due yet.
    const endUs = this.request.live === null ? toUs : Math.min(toUs, Math.max(this.edgeUs, this.request.toUs));
    return this.read.gaps(fromUs, endUs).filter((gap) => gap.toUs - gap.fromUs >= this.bins.binUs);
  }

  private subscribe(replay: { fromUs: number; speed: number } | null): Feed {
    const { request } = this;
    return new Feed(
      request.recording,
      () => ({
        table: request.table,
        columns: [request.column, ...request.also],
        ...(request.labels === undefined ? {} : { labels: request.labels }),
        ...(replay === null
          ? {}
          : {
              replay: {
                from_us: Math.round(Math.max(replay.fromUs, this.bins.newestBin * this.bins.binUs)),
                speed: replay.speed,
              },
            }),
      }),
      {
        onFrame: (frame) => this.take(frame),
        onJoined: (series, again) => this.joined(series, again),
        // The hole is read from the recording.
        onDropped: () => {
          this.liveFromUs = null;
          this.droppedMs = performance.now();
        },
        onRefused: (why) => {
          this.error.value = why;
        },
        ...(request.onEnded === undefined ? {} : { onEnded: request.onEnded }),
        ...(request.onHealth === undefined ? {} : { onHealth: request.onHealth }),
        ...(request.onEvent === undefined ? {} : { onEvent: request.onEvent }),
      },
    );
  }

  private joined(series: readonly LiveSeries[], again: boolean): void {
    const { model } = this.request;
    const deviceOf = (ordinal: number): string | undefined => model.rows[model.rowOf[ordinal] ?? -1]?.device;
    // After a restart of the server numbers may mean other series; nothing is drawn in the wrong row.
    this.renumbered = series.some(
      ({ ordinal, labels }) => (model.rowOf[ordinal] ?? -1) >= 0 && deviceOf(ordinal) !== labels["device"],
    );
    if (this.renumbered || series.some(({ ordinal }) => ordinal >= model.rowOf.length))
      this.request.onUnknownSeries?.();
    this.liveFromUs = null;
    // While the server was away the recording went on: the hole is read from it, also where no further frame comes.
    if (again && this.request.live?.replay === null)
      this.want({ fromUs: this.edgeUs - this.bins.binUs, toUs: Math.max(this.edgeUs, Date.now() * 1000) });
  }

  /** Notes that a frame has come, and reads what lies between it and what is known. */
  private arrived(frame: Frame): void {
    const { bins } = this;
    const beginUs = bins.binOf(frame.oldestUs) * bins.binUs;
    const endUs = (bins.binOf(frame.newestUs) + 1) * bins.binUs;
    if (this.liveFromUs === null) {
      this.liveFromUs = Math.max(beginUs, this.edgeUs);
      const hole = { fromUs: Math.min(this.edgeUs, beginUs) - JOIN_US, toUs: endUs };
      if (this.isSlow()) this.wantLater([hole], HOLES_MS, false);
      else this.want(hole);
    }
    this.edgeUs = Math.max(this.edgeUs, endUs);
    this.read.add(this.liveFromUs, endUs);
    this.read.forgetBefore(this.edgeUs - 2 * bins.capacity * bins.binUs);
  }

  private take(frame: Frame): void {
    if (this.renumbered) return;
    this.arrived(frame);
    const { bins, request } = this;
    const bin = bins.binOf(frame.newestUs);
    const first = frame.columns[0];
    if (first === undefined) return;
    if (bins.binOf(frame.oldestUs) === bin) {
      bins.putFrame(bin, frame.series, first, frame.states, request.model.rowOf);
    } else {
      this.takeRows(frame, first);
    }
    if (this.lows !== null) this.takeLows(frame, first, this.lows);
    let unknown = false;
    [...this.newest.values()].forEach((values, at) => {
      const column = frame.columns[at];
      if (column === undefined) return;
      for (let row = 0; row < frame.rows; row += 1) {
        const series = frame.series[row] ?? 0;
        if (series >= values.length) unknown = true;
        else values[series] = column[row] ?? Number.NaN;
      }
    });
    for (let row = 0; row < frame.rows; row += 1) {
      const series = frame.series[row] ?? 0;
      this.agesMs[series] = frame.agesMs[row] ?? Number.NaN;
      this.newestUs[series] = frame.timesUs(row);
    }
    if (unknown) request.onUnknownSeries?.();
    request.onFrame?.(frame);
    requestPaint();
  }

  /** A frame with readings of several bins: late answers among them. */
  private takeRows(frame: Frame, values: Float32Array): void {
    for (let at = 0; at < frame.rows; at += 1) {
      const row = this.request.model.rowOf[frame.series[at] ?? 0] ?? -1;
      if (row >= 0)
        this.bins.put(this.bins.binOf(frame.timesUs(at)), row, values[at] ?? Number.NaN, frame.states[at] ?? NO_STATE);
    }
  }

  private takeLows(frame: Frame, values: Float32Array, lows: Bins): void {
    for (let at = 0; at < frame.rows; at += 1) {
      const row = this.request.model.rowOf[frame.series[at] ?? 0] ?? -1;
      if (row >= 0) lows.put(lows.binOf(frame.timesUs(at)), row, -(values[at] ?? Number.NaN), NO_STATE);
    }
  }

  /** Reads a time when what is under way has been read: two requests at once, and nothing piles up behind them. */
  private want(bounds: Bounds): void {
    const { wanted } = this;
    this.wanted =
      wanted === null
        ? bounds
        : { fromUs: Math.min(wanted.fromUs, bounds.fromUs), toUs: Math.max(wanted.toUs, bounds.toUs) };
    void this.readWanted();
  }

  private async readWanted(): Promise<void> {
    const {
      abort: { signal: stop },
    } = this;
    if (this.reading || this.wanted === null || stop.aborted) return;
    this.reading = true;
    const wanted = this.takeWanted(this.wanted);
    const done = await this.fill(wanted.fromUs, wanted.toUs);
    this.reading = false;
    if (stop.aborted) return;
    const oldestUs = Math.max(this.request.fromUs, this.edgeUs - this.bins.capacity * this.bins.binUs);
    const missing = done ? this.unread(oldestUs, this.edgeUs) : [wanted];
    if (this.wanted !== null && done) void this.readWanted();
    else if (missing.length > 0 && this.request.live?.replay === null) {
      const soonMs = done ? SETTLE_MS : RETRY_MS;
      this.wantLater(missing, this.isSlow() ? HOLES_MS : soonMs, true);
    } else if (!done) this.wantLater([wanted], RETRY_MS, true);
  }

  /** What is read next of what is wanted: all of it, for a slow viewer the newest piece. */
  private takeWanted({ fromUs, toUs }: Bounds): Bounds {
    const cutUs = this.isSlow() ? Math.max(fromUs, toUs - PIECE_US) : fromUs;
    this.wanted = cutUs > fromUs ? { fromUs, toUs: cutUs } : null;
    return { fromUs: cutUs, toUs };
  }

  /** Whether the server leaves intervals out for this viewer. */
  private isSlow(): boolean {
    return performance.now() - this.droppedMs < HOLES_MS;
  }

  /** Reads times in a while: in place of those that wait already, or not at all where some do. */
  private wantLater(times: readonly Bounds[], ms: number, instead: boolean): void {
    if (this.later !== undefined && !instead) return;
    clearTimeout(this.later);
    this.later = setTimeout(() => {
      this.later = undefined;
      for (const one of times) this.want(one);
    }, ms);
  }

  /** Whether it was read. */
  private async fill(fromUs: number, toUs: number): Promise<boolean> {
    const { request, bins } = this;
    const stop = AbortSignal.any([this.abort.signal, AbortSignal.timeout(PATIENCE_MS)]);
    const { edgeUs } = this;
    const window = alignedRequest(fromUs, toUs, bins.binUs);
    const series = Math.max(1, request.model.rowOf.length);
    const width = Math.min(
      window.width,
      widthFor(series, window.width),
      Math.max(1, Math.floor(PAST_VALUES_MAX / series)),
    );
    const values = [...(this.lows === null ? [] : ["min" as const]), "max" as const];
    // A bin of one interval holds what its reading brought, as from live frames: the same after a reload.
    const single = bins.binUs === request.intervalUs && width === window.width;
    const ask = { recording: request.recording, table: request.table, fromUs: window.fromUs, toUs: window.toUs, width };
    try {
      const asked = request.labels?.["device"];
      const states = getStates({ ...ask, ...(asked === undefined ? {} : { devices: asked }) }, stop);
      // Awaited below; until then a failure of it is not left unhandled.
      states.catch(() => undefined);
      const range = await getRange(
        {
          ...ask,
          values,
          column: request.column,
          ...(single ? { rates: "read" as const } : {}),
          ...(request.labels === undefined ? {} : { labels: request.labels }),
        },
        stop,
      );
      this.unit.value = range.unit;
      this.problems.value = range.problems;
      // What went wrong is there before the values are: no fault is shown as a quantity in between.
      await this.putStates(await states, stop);
      await this.putRange(range, stop);
      if (this.abort.signal.aborted) return false;
      this.read.add(fromUs, Math.min(toUs, request.live?.replay === null ? surelyReadUs(range, edgeUs) : toUs));
      this.error.value = null;
      this.filled.value = true;
      if (request.live === null) void this.readAhead(this.abort.signal);
      return true;
    } catch (error) {
      if (!this.abort.signal.aborted)
        this.error.value =
          wasAborted(error) || isTimeout(error)
            ? `the server has not answered for ${PATIENCE_MS / 1000} s`
            : errorText(error);
      return false;
    } finally {
      requestPaint();
    }
  }

  /**
   * Lets the server read the finer summaries that one step closer needs, while the person looks. They are kept there
   * for all rows, whichever are asked for, so that one device is enough.
   */
  private async readAhead(stop: AbortSignal): Promise<void> {
    const { recording, table, column, model, fromUs, toUs, width, intervalUs } = this.request;
    const binUs = binAhead(toUs - fromUs, width, intervalUs);
    const device = model.rows[0]?.device;
    if (binUs === null || device === undefined) return;
    await new Promise((resume) => setTimeout(resume, PAINT_FIRST_MS));
    if (stop.aborted) return;
    const window = alignedRequest(fromUs, toUs, binUs);
    // What cannot be read is told when it is asked for to be shown.
    await getRange({ recording, table, column, ...window, values: ["max"], labels: { device: [device] } }, stop).catch(
      () => undefined,
    );
  }

  private async putStates(states: StatesBody, stop: AbortSignal): Promise<void> {
    const of = { fromUs: states.from_us, binUs: states.bin_us };
    await inSlices(states.rows.length, stop, (at) => {
      const told = states.rows[at];
      const rows = this.request.model.rowsOfDevice.get(told?.device ?? "") ?? [];
      told?.bins.forEach((place, index) => {
        this.span(of, place, (bin) => {
          for (const row of rows) this.bins.put(bin, row, Number.NaN, told.worst[index] ?? NO_STATE);
        });
      });
    });
  }

  private async putRange(range: Range, stop: AbortSignal): Promise<void> {
    const { rowOf } = this.request.model;
    const put = (bin: number, row: number, at: number): void => {
      this.bins.put(bin, row, range.max[at] ?? Number.NaN, NO_STATE);
      this.lows?.put(bin, row, -(range.min[at] ?? Number.NaN), NO_STATE);
    };
    // The usual answer has our very bins, some 250,000 values in a picture: nothing is made for each of them.
    const same = range.binUs === this.bins.binUs;
    const begin = this.bins.binOf(range.fromUs);
    await inSlices(range.bins.length, stop, (at) => {
      const row = rowOf[range.series[at] ?? 0] ?? -1;
      if (row < 0) return;
      if (same) put(begin + (range.bins[at] ?? 0), row, at);
      else this.span(range, range.bins[at] ?? 0, (bin) => put(bin, row, at));
    });
  }

  /** Calls with each of our bins that a bin of the answer covers: one, if the answer is not coarser. */
  private span(of: { fromUs: number; binUs: number }, bin: number, put: (bin: number) => void): void {
    const first = this.bins.binOf(of.fromUs + bin * of.binUs);
    const end = this.bins.binOf(of.fromUs + (bin + 1) * of.binUs - 1);
    for (let at = first; at <= end; at += 1) put(at);
  }
}

/**
 * To where an answer about a recording that grows is surely complete: its newest rows come a little after they are
 * measured, in the order of time.
 */
function surelyReadUs(range: Range, edgeUs: number): number {
  let newest = -1;
  for (const bin of range.bins) if (bin > newest) newest = bin;
  return Math.max(range.fromUs + newest * range.binUs, edgeUs - SETTLED_US);
}

function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === "TimeoutError";
}

/** Runs `each` for 0 to `length` in slices that let frames through between them. */
async function inSlices(length: number, stop: AbortSignal, each: (at: number) => void): Promise<void> {
  let at = 0;
  while (at < length && !stop.aborted) {
    const end = performance.now() + SLICE_MS;
    timed(() => {
      while (at < length && (at % 2048 !== 0 || performance.now() < end)) {
        each(at);
        at += 1;
      }
      // The check above stops at a multiple of 2048; one more step lets the next slice begin.
      if (at < length) {
        each(at);
        at += 1;
      }
    });
    requestPaint();
    if (at < length) await new Promise((resume) => setTimeout(resume));
  }
}
