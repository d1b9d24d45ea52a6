/** The one time bar above every view: live or paused, the whole recording with its brush, and the health. */

import { batch, computed } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { apiPath, getJson, recordingPath } from "../api/client.ts";
import { NOT_READ, poll } from "../api/poll.ts";
import { getRange, type Range } from "../api/range.ts";
import type { EventsBody, HealthBody, RecordingBody } from "../api/types.ts";
import { Canvas, type Surface } from "../paint/canvas.tsx";
import { onPaint, requestPaint } from "../paint/painter.ts";
import { events, eventsTold } from "../session/events.ts";
import { getHealth, getHealthOfAll, health, healthTold } from "../session/health.ts";
import { connection, heartbeat, newestUs } from "../session/now.ts";
import { intervalUs, recording, recordings, shownQuantity, tableOf } from "../session/recordings.ts";
import { boundsNow, pauseOrGoOn, show, view, zoom } from "../session/view.ts";
import { inks } from "../theme/theme.ts";
import { AsOf, LOADING, markOf, unreadWords } from "../views/told.tsx";
import { groupedEvents } from "../words/event_groups.ts";
import { plural } from "../words/names.ts";
import { count, MISSING, share, span, THIN } from "../words/quantity.ts";
import { clock, formatSpan } from "./moment.ts";
import { drawOverview, usOf, xOf } from "./overview.ts";
import { type Bounds, formatWindow, parseWindow } from "./window.ts";

/** How often the overview and the health of a running recording are asked for. */
const REFRESH_MS = 2000;
const CURVE_BINS = 600;
const NO_EVENTS: EventsBody = { events: [], problems: [], truncated: false };
/** Without a live picture there is no heartbeat, and the time of the newest reading says more than its age. */
const HEARTBEAT_OLD_MS = 10_000;

export function wholeBounds(): Bounds {
  const current = recording.value;
  const some = across.value ? runningOnes() : [];
  const begins = [current, ...some].flatMap((one) => one?.from_us ?? []);
  const end = Math.max(newestUs.value, current?.to_us ?? 0);
  const begin = begins.length === 0 ? end - 60e6 : Math.min(...begins);
  return { fromUs: Math.min(begin, end - 1e6), toUs: end };
}

/** Whether the bar is about all recordings that are written: that of a view in which they stand beside each other. */
const across = computed(() => view.value.name === "clusters" && runningOnes().length > 0);

function runningOnes(): readonly RecordingBody[] {
  return (recordings.value ?? []).filter((one) => one.running && one.devices.length > 0);
}

/** Whether the view moves, and why not. */
function nowWord(away: boolean, live: boolean, play: { readonly speed: number } | null, running: boolean): string {
  if (away) return "Server is gone";
  if (!live) return "Paused";
  if (play !== null) return `Playing, ${play.speed}×`;
  return running ? "Live" : "Finished";
}

export function TimeBar() {
  const current = recording.value;
  const [curve, setCurve] = useState<Range | null>(null);
  const { table, column } = shownQuantity.value;
  const ofAll = across.value;
  const known = tableOf(current, table) !== null && !ofAll;
  const id = current?.id ?? null;
  const running = ofAll || (current?.running ?? false);
  useEffect(() => {
    healthTold.value = NOT_READ;
    eventsTold.value = NOT_READ;
    health.value = null;
    events.value = [];
    if (id === null) return undefined;
    const everyMs = running ? REFRESH_MS : null;
    // One after the other, so that the bar has at most two requests under way, the curve's among them.
    const ask = async (stop: AbortSignal): Promise<{ health: HealthBody; events: EventsBody }> => {
      const { fromUs, toUs } = wholeBounds();
      // A picture of several recordings has no events of one of them.
      if (ofAll) return { health: await getHealthOfAll(fromUs, toUs + intervalUs.peek(), stop), events: NO_EVENTS };
      const told = await getHealth(id, fromUs, toUs + intervalUs.peek(), stop);
      return {
        health: told,
        events: await getJson<EventsBody>(apiPath(recordingPath(id, "events"), { limit: 500 }), stop),
      };
    };
    return poll(ask, everyMs, ({ value, atMs, failed }) => {
      batch(() => {
        healthTold.value = { value: value?.health ?? null, atMs, failed };
        health.value = value?.health ?? null;
        eventsTold.value = { value: value === null ? null : true, atMs, failed };
        if (value !== null && failed === null) events.value = value.events.events;
      });
    });
  }, [id, running, ofAll]);
  useEffect(() => {
    setCurve(null);
    // A profile alone has no readings: nothing is asked for that the server can only refuse.
    if (id === null || !known) return undefined;
    return poll(
      (stop) => {
        const { fromUs, toUs } = wholeBounds();
        return getRange(
          { recording: id, table, column, fromUs, toUs: toUs + 1, width: curveBins(fromUs, toUs), fold: 1 },
          stop,
        );
      },
      running ? REFRESH_MS : null,
      (told) => {
        // The strip below asks for the same column and says what is wrong with it.
        setCurve(told.value);
        requestPaint();
      },
    );
  }, [id, running, table, column, known]);
  return (
    <div class="time" role="region" aria-label="Time">
      <Now />
      <OverviewPicture curve={curve} />
      <Health />
    </div>
  );
}

/** At most a bin an interval: a short recording is a line, not single ticks. */
export function curveBins(fromUs: number, toUs: number): number {
  return Math.max(1, Math.min(CURVE_BINS, Math.floor((toUs - fromUs) / intervalUs.peek())));
}

function Now() {
  const newest = useRef<HTMLSpanElement>(null);
  const { window: shown, play } = view.value;
  const current = recording.value;
  useEffect(
    () =>
      onPaint(() => {
        const text = newestText();
        if (newest.current !== null && newest.current.textContent !== text) newest.current.textContent = text;
      }),
    [],
  );
  useEffect(() => {
    // The age goes on when nothing arrives any more.
    const timer = window.setInterval(requestPaint, 500);
    return () => window.clearInterval(timer);
  }, []);
  const away = connection.value === "away";
  const running = current?.running === true || play !== null;
  const rate = health.value?.intervals_per_s ?? 1e6 / intervalUs.value;
  const word = nowWord(away, shown.live, play, running);
  const still = shown.live && running ? "" : "still";
  const rateText = away || !shown.live || !running ? "" : pace(rate);
  return (
    <div class="now">
      <button type="button" onClick={pauseOrGoOn} aria-pressed={!shown.live} title="space">
        <span class={`dot ${away ? "away" : still}`} aria-hidden="true" />
        {word}
        {rateText}
      </button>
      <span class="sub" ref={newest}>
        {newestText()}
      </span>
      <JumpTo />
    </div>
  );
}

/** How often readings come; nothing where none are taken, as beside checkpoints alone. */
function pace(perSecond: number): string {
  if (perSecond <= 0) return "";
  return perSecond < 1 ? `, every ${span(1e6 / perSecond)}` : `, ${Number(perSecond.toFixed(1))}${THIN}Hz`;
}

function newestText(): string {
  if (newestUs.peek() === 0) return "nothing recorded yet";
  const beat = heartbeat.peek();
  const { window: shown, play } = view.peek();
  if (connection.peek() === "away") return "joining again…";
  if (!shown.live || (recording.peek()?.running !== true && play === null))
    return `newest ${clock(newestUs.peek(), 1)}`;
  if (beat === null || performance.now() - beat.arrivedMs > HEARTBEAT_OLD_MS)
    return `newest ${clock(newestUs.peek(), 1)}`;
  const ageUs = beat.delayUs + (performance.now() - beat.arrivedMs) * 1000;
  return `newest ${span(Math.round(ageUs / 10_000) * 10_000 || 10_000)} ago`;
}

function JumpTo() {
  const { window: shown } = view.value;
  const [text, setText] = useState<string | null>(null);
  const [wrong, setWrong] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const editing = text !== null;
  // What stands there is replaced by what is typed.
  useLayoutEffect(() => {
    if (editing) field.current?.select();
  }, [editing]);
  const short = shown.live
    ? formatWindow(shown)
    : `${clock(shown.fromUs)} + ${formatSpan(Math.round((shown.toUs - shown.fromUs) / 1000) * 1000)}`;
  const go = (typed: string): boolean => {
    const window_ = parseWindow(typed, newestUs.peek());
    setWrong(window_ === null);
    if (window_ === null) return false;
    show({ window: window_ }, true);
    setText(null);
    return true;
  };
  return (
    <>
      <input
        ref={field}
        class="jump"
        aria-describedby={wrong ? "jump-wrong" : undefined}
        id="jump"
        type="text"
        aria-label="Time to show, such as -15m, 18:42 or 2026-11-21T18:00..2026-11-21T19:00"
        title="-15m · 18:42 · -2h..-1h · 2026-11-21T18:00..2026-11-21T19:00"
        spellcheck={false}
        aria-invalid={wrong}
        value={text ?? short}
        onFocus={() => setText(formatWindow(view.peek().window))}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setWrong(false);
        }}
        onBlur={() => {
          setText(null);
          setWrong(false);
        }}
        onKeyDown={(event) => {
          // What cannot be read stays to be mended, and is said; only what can be is left for.
          const left = event.key === "Escape" || (event.key === "Enter" && go(event.currentTarget.value));
          if (left) event.currentTarget.blur();
          event.stopPropagation();
        }}
      />
      {wrong && (
        <p class="wrong kin" id="jump-wrong" role="alert">
          Cannot read that time. Type -15m, 18:42, -2h..-1h or 2026-11-21T18:00..2026-11-21T19:00
        </p>
      )}
    </>
  );
}

function OverviewPicture({ curve }: { curve: Range | null }) {
  const drawn = useRef("");
  const grip = useRef<{ kind: "move" | "new"; x: number; from: Bounds } | null>(null);
  const hover = useRef<number | null>(null);
  const width = useRef(1);
  const draw = ({ context, width: wide, height }: Surface, fresh: boolean): void => {
    const colours = inks.value;
    if (colours === null) return;
    width.current = wide;
    const whole = wholeBounds();
    const shown = boundsNow();
    // Finer steps than a pixel would redraw what looks the same.
    const pixel = (us: number): number => Math.round(xOf(us, whole, wide) * 2);
    const key = [
      wide,
      pixel(shown.fromUs),
      pixel(shown.toUs),
      Math.round(whole.toUs / Math.max(1, (whole.toUs - whole.fromUs) / wide)),
      colours.ground,
      hover.current,
      curve?.bins.length,
      curve?.fromUs,
      health.value?.from_us,
      health.value?.totals.ok,
      events.value.length,
    ].join();
    if (!fresh && key === drawn.current) return;
    drawn.current = key;
    drawOverview(
      context,
      wide,
      height,
      {
        whole,
        shown,
        curve,
        health: health.value,
        hoverUs: hover.current,
        events: groupedEvents(events.value).map(({ event, fromUs, toUs, times }) => ({
          us: toUs,
          fromUs,
          times,
          kind: event.event,
        })),
      },
      colours,
    );
  };
  const pointer = (kind: string, _: PointerEvent, x: number): void => {
    const whole = wholeBounds();
    const at = usOf(x, whole, width.current);
    hover.current = kind === "leave" ? null : at;
    requestPaint();
    if (kind === "down") {
      const from = boundsNow();
      const inside =
        at >= from.fromUs &&
        at <= from.toUs &&
        xOf(from.toUs, whole, width.current) - xOf(from.fromUs, whole, width.current) > 8;
      grip.current = { kind: inside ? "move" : "new", x, from };
    }
    const held = grip.current;
    if (held === null || (kind !== "move" && kind !== "up")) return;
    const moved = Math.abs(x - held.x) > 3;
    if (moved) {
      const begin = usOf(held.x, whole, width.current);
      const shift = at - begin;
      const next =
        held.kind === "move"
          ? { fromUs: held.from.fromUs + shift, toUs: held.from.toUs + shift }
          : { fromUs: Math.min(begin, at), toUs: Math.max(begin, at) };
      show({
        window: {
          live: false,
          fromUs: Math.round(next.fromUs),
          toUs: Math.round(Math.max(next.toUs, next.fromUs + 1000)),
        },
      });
    } else if (kind === "up" && held.kind === "new") {
      const half = (held.from.toUs - held.from.fromUs) / 2;
      show({ window: { live: false, fromUs: Math.round(at - half), toUs: Math.round(at + half) } });
    }
    if (kind === "up") grip.current = null;
  };
  return (
    <div class="overview">
      <Canvas
        label="The whole recording with its events. Drag to choose a time; arrow keys move it."
        draw={draw}
        onPointer={pointer}
        onWheel={(event, x) => zoom(event.deltaY > 0 ? 1.25 : 0.8, usOf(x, wholeBounds(), width.current))}
      />
    </div>
  );
}

function Health() {
  const { value: told, atMs } = healthTold.value;
  const unread = unreadWords(healthTold.value);
  const beat = heartbeat.peek();
  const running = across.value || recording.value?.running === true;
  const totals = told?.totals;
  const all = totals === undefined ? 0 : totals.ok + totals.late + totals.missed + totals.error + totals.skipped;
  const silent = told?.silent ?? [];
  const missed = (totals?.missed ?? 0) + (totals?.error ?? 0);
  const facts: readonly (readonly [string, string, string, string])[] = [
    [
      share(totals?.ok ?? 0, all),
      "on time",
      "",
      beat === null || across.value ? "" : `newest interval: ${count(beat.ok)} ok`,
    ],
    [
      share(totals?.late ?? 0, all),
      "late",
      (totals?.late ?? 0) > 0 ? "kin" : "",
      "answered after the interval had ended",
    ],
    [share(missed, all), "missed", missed > 0 ? "shu" : "", "not answered, or answered with an error"],
    [share(totals?.skipped ?? 0, all), "not asked", "", "skipped for a recorded reason"],
    [
      !across.value && recording.value?.devices.length === 0 ? MISSING : count(silent.length),
      "silent",
      silent.length > 0 ? "shu" : "",
      silent.length > 0
        ? `${plural(silent.length, "device")}: ${silent.slice(0, 8).join(", ")}`
        : "every device answers",
    ],
    [
      span(told?.stalest?.age_us),
      "stalest",
      "",
      told?.stalest == null ? "" : `${told.stalest.device} ${told.stalest.object}`,
    ],
  ];
  return (
    <div class="health" role="group" aria-label={across.value ? "Health of all clusters" : "Health of the recording"}>
      {facts.map(([number, name, ink, more]) => (
        <div key={name} title={unread ?? more}>
          <b class={unread === null ? ink : "quiet"}>{markOf(unread, number)}</b>
          <span>{name}</span>
        </div>
      ))}
      {unread === null ? (
        <AsOf atMs={running ? atMs : 0} />
      ) : (
        <small class={unread === LOADING ? "age quiet" : "age"} role="status">
          {unread}
        </small>
      )}
    </div>
  );
}
