/** What the view Profile asks the server for. */

import { useEffect, useState } from "preact/hooks";
import { ApiError, apiPath, getJson, recordingPath } from "../api/client.ts";
import { NOT_READ, poll, type Told } from "../api/poll.ts";
import type { CoresBody, FlameBody, HeatBody } from "../api/types.ts";
import { requestPaint } from "../paint/painter.ts";
import type { Bounds } from "../time/window.ts";
import type { ProfileView } from "./profile_address.ts";

/** Seconds of a heat map at most; the server refuses more. */
export const SECONDS_MAX = 7200;

/** How often maps of a recording that grows are asked for. */
export const MAP_MS = 2000;
/** How often its newest seconds are, and how many they are: hosts send what they sample at once while somebody does. */
export const NEWEST_MS = 100;
const NEWEST_S = 5;
/** How often its flame graph is, which costs the server more. */
export const FLAME_MS = 5000;

/** The newest of a time that a map can show. */
export function mapBounds({ fromUs, toUs }: Bounds): Bounds {
  // Whole seconds around it must not be more.
  const most = (SECONDS_MAX - 1) * 1e6;
  return toUs - fromUs <= most ? { fromUs, toUs } : { fromUs: toUs - most, toUs };
}

export interface Answer<T> {
  readonly told: Told<T>;
  /** What is told is the answer to an earlier question: it stands in until this one is answered. */
  readonly stale: boolean;
}

/** An answer that is asked for whenever `key` changes, and again and again where `everyMs` says so; null: it is not asked for. */
export function useAnswer<T>(
  key: string | null,
  everyMs: number | null,
  ask: (stop: AbortSignal) => Promise<T>,
): Answer<T> {
  const [answer, setAnswer] = useState<{ told: Told<T>; of: string | null }>({ told: NOT_READ, of: null });
  useEffect(() => {
    if (key === null) return undefined;
    return poll(
      (stop) => unlessRefused(ask(stop)),
      everyMs,
      ({ value, atMs, failed }) => {
        const told =
          value !== null && "refused" in value
            ? { value: null, atMs, failed: value.refused }
            : { value: value?.answer ?? null, atMs, failed };
        setAnswer({ told, of: key });
        requestPaint();
      },
    );
  }, [key, everyMs]);
  return { told: answer.told, stale: answer.of !== key };
}

/** A question that is refused is not asked again: it would cost the server the same, and be refused again. */
async function unlessRefused<T>(asked: Promise<T>): Promise<{ readonly answer: T } | { readonly refused: string }> {
  try {
    return { answer: await asked };
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) return { refused: error.message };
    throw error;
  }
}

const hostAndCpu = ({ host, cpu }: ProfileView): { host: string | null; cpu: number | null } => ({ host, cpu });

const span = ({ fromUs, toUs }: Bounds): { from: number; to: number } => ({
  from: Math.round(fromUs),
  to: Math.round(toUs),
});

export function getHeat(id: string, of: ProfileView, bounds: Bounds, stop: AbortSignal): Promise<HeatBody> {
  return getJson<HeatBody>(apiPath(recordingPath(id, "heat"), { ...span(mapBounds(bounds)), ...hostAndCpu(of) }), stop);
}

/** The newest seconds, which the hosts' samples of the last tenth of a second are in as long as this is asked for. */
export function getNewest(id: string, of: ProfileView, stop: AbortSignal): Promise<HeatBody> {
  return getJson<HeatBody>(
    apiPath(recordingPath(id, "heat"), { from: `-${NEWEST_S}s`, ...hostAndCpu(of), watch: "true" }),
    stop,
  );
}

export function getCores(id: string, of: ProfileView, bounds: Bounds, stop: AbortSignal): Promise<CoresBody> {
  return getJson<CoresBody>(
    apiPath(recordingPath(id, "cores"), { ...span(mapBounds(bounds)), ...hostAndCpu(of) }),
    stop,
  );
}

/** Whether stacks are wanted as they followed each other, which time off the CPU, summed up by second, cannot be. */
export function isInTime({ shape, counted }: ProfileView): boolean {
  return shape === "time" && counted === "samples";
}

export function getFlame(id: string, of: ProfileView, bounds: Bounds, stop: AbortSignal): Promise<FlameBody> {
  const inTime = isInTime(of);
  const compared = !inTime && (of.than !== null || of.thanHost !== null);
  return getJson<FlameBody>(
    apiPath(recordingPath(id, "profile/flame"), {
      ...span(bounds),
      ...hostAndCpu(of),
      process: of.process || null,
      job: of.job || null,
      of: of.counted,
      by: of.by,
      order: inTime ? "time" : null,
      than_from: compared && of.than !== null ? Math.round(of.than.fromUs) : null,
      than_to: compared && of.than !== null ? Math.round(of.than.toUs) : null,
      than_host: compared ? of.thanHost : null,
    }),
    stop,
  );
}
