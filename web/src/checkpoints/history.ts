/** What rows of the table `checkpoints` tell: which generations were whole, how hosts stand, how a program came back. */

import { numberOf, type RawRow } from "../api/readings.ts";

/** What a host has of a generation. */
export interface Part {
  readonly imageBytes: number;
  readonly changedBytes: number;
  /** What it keeps for others. */
  readonly receivedBytes: number;
  readonly sentBytes: number;
  readonly stopUs: number | null;
}

export interface Generation {
  readonly number: number;
  readonly step: number | null;
  /** When it was agreed on. */
  readonly wholeUs: number;
  /** From its begin until it was whole. */
  readonly tookUs: number | null;
  /** How long the program stood still: on the host where it was longest. */
  readonly stopUs: number | null;
  readonly parts: ReadonlyMap<string, Part>;
}

export interface HostStand {
  readonly host: string;
  readonly state: "whole" | "behind" | "lost";
  readonly sinceUs: number;
  /** What it wrote last. */
  readonly part: Part | null;
  readonly generation: number | null;
  /** What happened to it last that is not a checkpoint. */
  readonly why: string;
}

/** From the loss of a host, or of all, until the program ran again. */
export interface Recovery {
  readonly lostUs: number;
  readonly what: string;
  /** After the loss; null: not told. */
  readonly replacedUs: number | null;
  readonly readyUs: number | null;
  readonly runsUs: number | null;
  readonly step: number | null;
}

export interface History {
  /** The newest last. */
  readonly generations: readonly Generation[];
  readonly hosts: readonly HostStand[];
  readonly recoveries: readonly Recovery[];
  readonly givenUp: number;
}

/** Whoever runs the job, which is no host. */
const RUNNER = "run";

const REPLACED = /^(\S+) takes the place of (\S+)$/;
const DEAD = /^(\S+) is dead$/;

interface Change {
  readonly us: number;
  readonly state: "whole" | "lost";
  readonly why: string;
}

export function historyOf(rows: readonly RawRow[]): History {
  const parts = new Map<number, Map<string, Part>>();
  const generations = new Map<number, Generation>();
  const last = new Map<string, { readonly generation: number; readonly part: Part; readonly us: number }>();
  const changes = new Map<string, Change>();
  let givenUp = 0;
  for (const row of rows) {
    const [us, host, event] = [numberOf(row["time_us"]) ?? 0, String(row["host"]), String(row["event"])];
    const [text, generation] = [String(row["text"] ?? ""), numberOf(row["generation"])];
    if (event === "checkpoint_prepared" && generation !== null) {
      const part = partOf(row);
      const own = parts.get(generation) ?? new Map<string, Part>();
      parts.set(generation, own.set(host, part));
      last.set(host, { generation, part, us });
      if (changes.get(host)?.state === "lost") changes.delete(host);
    } else if (event === "checkpoint_committed" && generation !== null) {
      const [step, tookUs] = [numberOf(row["step"]), microseconds(row["duration_ns"])];
      generations.set(generation, { number: generation, step, wholeUs: us, tookUs, stopUs: null, parts: new Map() });
    } else if (event === "checkpoint_aborted") {
      givenUp += 1;
    } else if (event === "checkpoint_host_lost") {
      const lost = DEAD.exec(text)?.[1];
      if (lost !== undefined) changes.set(lost, { us, state: "lost", why: text });
    } else if (event === "checkpoint_replaced") {
      const [, spare, lost] = REPLACED.exec(text) ?? [];
      if (lost !== undefined) changes.set(lost, { us, state: "lost", why: text });
      if (spare !== undefined) changes.set(spare, { us, state: "whole", why: text });
    } else if (host !== RUNNER && ["checkpoint_rebuilt", "checkpoint_damaged", "checkpoint_stalled"].includes(event)) {
      changes.set(host, { us, state: "whole", why: text });
    }
  }
  const whole = [...generations.values()]
    .map((one) => {
      const own = parts.get(one.number) ?? new Map<string, Part>();
      const stops = [...own.values()].flatMap(({ stopUs }) => (stopUs === null ? [] : [stopUs]));
      return { ...one, parts: own, stopUs: stops.length === 0 ? null : Math.max(...stops) };
    })
    .toSorted((left, right) => left.number - right.number);
  const newest = whole.at(-1)?.number ?? null;
  const names = new Set([...last.keys(), ...changes.keys()]);
  const hosts = [...names].toSorted(byName).map((host): HostStand => {
    const [wrote, change] = [last.get(host), changes.get(host)];
    const has = wrote !== undefined && newest !== null && wrote.generation >= newest ? "whole" : "behind";
    return {
      host,
      state: change?.state === "lost" ? "lost" : has,
      sinceUs: Math.max(wrote?.us ?? 0, change?.us ?? 0),
      part: wrote?.part ?? null,
      generation: wrote?.generation ?? null,
      why: change?.why ?? "",
    };
  });
  return { generations: whole, hosts, recoveries: recoveriesOf(rows), givenUp };
}

/** `node2` before `node10`. */
function byName(left: string, right: string): number {
  return left.localeCompare(right, "en", { numeric: true });
}

function microseconds(value: RawRow[string] | undefined): number | null {
  const nanoseconds = numberOf(value);
  return nanoseconds === null ? null : nanoseconds / 1000;
}

function partOf(row: RawRow): Part {
  const bytes = (name: string): number => numberOf(row[name]) ?? 0;
  return {
    imageBytes: bytes("bytes"),
    changedBytes: bytes("changed_bytes"),
    receivedBytes: bytes("received_bytes"),
    sentBytes: bytes("sent_bytes"),
    stopUs: microseconds(row["stop_ns"]),
  };
}

/** A program that is lost once more on its way back makes two of them, of which the first has no end. */
function recoveriesOf(rows: readonly RawRow[]): Recovery[] {
  const found: Recovery[] = [];
  let open: Recovery | null = null;
  for (const row of rows) {
    if (row["host"] !== RUNNER) continue;
    const [us, after] = [numberOf(row["time_us"]) ?? 0, microseconds(row["duration_ns"])];
    const [text, step] = [String(row["text"] ?? ""), numberOf(row["step"])];
    const begun: Recovery = open ?? {
      lostUs: us - (after ?? 0),
      what: "all hosts were brought back",
      replacedUs: null,
      readyUs: null,
      runsUs: null,
      step,
    };
    if (row["event"] === "checkpoint_replaced") {
      if (open !== null) found.push(open);
      open = { ...begun, lostUs: us - (after ?? 0), what: text, replacedUs: after ?? 0 };
    } else if (row["event"] === "checkpoint_ready") {
      open = { ...begun, readyUs: us - begun.lostUs, step };
    } else if (row["event"] === "checkpoint_runs_again") {
      found.push({ ...begun, runsUs: us - begun.lostUs, step });
      open = null;
    }
  }
  if (open !== null) found.push(open);
  return found;
}

/** What a checkpoint costs a program, and how often one pays. */
export interface Cost {
  /** What one takes from the program: it stands still, and a part of its speed goes while parity is made. */
  readonly costUs: number;
  /** The middle one of the spans between two of them; null: there are no two. */
  readonly everyUs: number | null;
  readonly dalyUs: number;
  readonly youngUs: number;
  /** The share of the time that is lost at each; null: it is not known how often. */
  readonly lost: number | null;
  readonly lostLeast: number;
}

/** The part of its speed that a program loses while parity is made behind it, as `meikyo checkpoint status` takes it. */
const INTERFERENCE = 0.05;

/** From a failure until it is known, as `meikyo checkpoint status` takes it. */
const DETECTION_US = 2e6;

/** J. W. Young 1974; J. T. Daly 2006, equations 37 and 13; of hosts that fail once in `failsUs` each. */
export function costOf(generations: readonly Generation[], hosts: number, failsUs: number): Cost | null {
  const told = generations.filter(({ stopUs }) => stopUs !== null);
  if (told.length === 0 || hosts === 0) return null;
  const costs = told.map(({ stopUs, tookUs }) => (stopUs ?? 0) + INTERFERENCE * (tookUs ?? 0));
  const cost = middle(costs);
  const spans = generations.slice(1).map(({ wholeUs }, at) => wholeUs - (generations[at]?.wholeUs ?? wholeUs));
  const mean = failsUs / hosts;
  const restart = DETECTION_US + 2 * middle(generations.map(({ tookUs }) => tookUs ?? 0));
  const young = Math.sqrt(2 * cost * mean);
  const ratio = cost / (2 * mean);
  const daly = ratio >= 1 ? mean : young * (1 + Math.sqrt(ratio) / 3 + ratio / 9) - cost;
  const lostAt = (work: number): number => {
    const wall = mean * Math.exp(restart / mean) * Math.expm1((work + cost) / mean);
    return wall > 0 && Number.isFinite(wall) ? Math.min(1, Math.max(0, 1 - work / wall)) : 1;
  };
  const every = spans.length === 0 ? null : middle(spans);
  return {
    costUs: cost,
    everyUs: every,
    dalyUs: daly,
    youngUs: young,
    lost: every === null ? null : lostAt(Math.max(0, every - cost)),
    lostLeast: lostAt(daly),
  };
}

function middle(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
