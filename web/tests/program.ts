/** The real program: simulated agents, a measurement of them, a server. Each test file has its own. */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { appendFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { preview } from "vite";

const PROGRAM = process.env["MEIKYO_BIN"] ?? resolve(import.meta.dirname, "../../target/debug/meikyo");

/** Where the program is. */
export const program = (): string => PROGRAM;

/** How long anything may take before a test gives up on it. */
export const PATIENCE_MS = 120_000;

export interface Running {
  readonly process: ChildProcess;
  /** The line that said it was ready. */
  readonly line: string;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

export function directory(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), "meikyo-web-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Starts the program and waits for a line that `ready` recognises. */
export async function start(args: readonly string[], ready: RegExp): Promise<Running> {
  if (!existsSync(PROGRAM))
    throw new Error(`${PROGRAM} is missing; build it with: cargo build -p meikyo-cli, or name it with MEIKYO_BIN`);
  const child = spawn(PROGRAM, args, { stdio: ["ignore", "pipe", "pipe"] });
  let told = "";
  const line = await new Promise<string>((found, failed) => {
    const timer = setTimeout(
      () => failed(new Error(`meikyo ${args.join(" ")} was not ready; it said:\n${told}`)),
      PATIENCE_MS,
    );
    const take = (piece: Buffer): void => {
      told += piece.toString();
      const match = told.split("\n").find((one) => ready.test(one));
      if (match === undefined) return;
      clearTimeout(timer);
      found(match);
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    child.on("exit", (code) => {
      clearTimeout(timer);
      failed(new Error(`meikyo ${args.join(" ")} ended with ${code}:\n${told}`));
    });
  });
  return {
    process: child,
    line,
    stop: (signal = "SIGINT") =>
      new Promise<void>((ended) => {
        if (child.exitCode !== null || child.signalCode !== null) return ended();
        child.on("exit", () => ended());
        child.kill(signal);
      }),
  };
}

/** Runs the program to its end and returns what it printed. */
export function run(args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(PROGRAM, args, { encoding: "utf8", maxBuffer: 64 << 20 });
  if (status !== 0) throw new Error(`meikyo ${args.join(" ")} ended with ${status}:\n${stderr}`);
  return stdout;
}

/**
 * A farm and a measurement of it that goes on until it is stopped; `rules` is added to the cluster file, and what `events`
 * tell happens to the farm's devices.
 */
export async function measured(
  path: string,
  hosts: number,
  switches: number,
  rules = "",
  events: readonly string[] = [],
): Promise<{ recording: string; stop(): Promise<void> }> {
  const happens = events.flatMap((event) => ["--do", event]);
  const farm = await start(
    [
      "farm",
      "--count",
      String(hosts),
      "--switches",
      String(switches),
      "--port",
      "0",
      "--write-cluster",
      join(path, "cluster"),
      ...happens,
    ],
    /^ready/,
  );
  appendFileSync(join(path, "cluster/cluster.toml"), rules);
  const recording = join(path, "recording");
  const measure = await start(
    ["measure", "--cluster", join(path, "cluster/cluster.toml"), "--out", recording],
    / ok [1-9]/,
  );
  return {
    recording,
    stop: async () => {
      await measure.stop();
      await farm.stop();
    },
  };
}

/** With `MEIKYO_PAGE=1` the page that `npm run build` made stands before a program that may embed an older one. */
async function fronted(
  server: Running & { readonly address: string },
): Promise<Running & { readonly address: string }> {
  if (process.env["MEIKYO_PAGE"] === undefined) return server;
  const target = server.address.replace(/\/$/, "");
  const front = await preview({
    root: resolve(import.meta.dirname, ".."),
    logLevel: "silent",
    preview: { host: "127.0.0.1", port: 0, proxy: { "/api": { target, ws: true } } },
  });
  return {
    ...server,
    address: front.resolvedUrls?.local[0] ?? "",
    stop: async (signal) => {
      await server.stop(signal);
      if ("closeAllConnections" in front.httpServer) front.httpServer.closeAllConnections();
      await front.close();
    },
  };
}

/** Serves recordings; the address is what the program printed. */
export async function served(
  recordings: readonly string[],
  more: readonly string[] = ["--listen", "127.0.0.1:0"],
): Promise<Running & { readonly address: string }> {
  const server = await start(["serve", ...recordings, ...more], /http:\/\//);
  const address = /http:\/\/\S+/.exec(server.line)?.[0] ?? "";
  return fronted({ ...server, address });
}

/** Waits until a condition holds; the time is only the limit. */
export async function until<T>(
  what: string | (() => string),
  look: () => Promise<T | null | undefined | false>,
): Promise<T> {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found !== null && found !== undefined && found !== false) return found;
    if (Date.now() > end) throw new Error(`waited in vain until ${typeof what === "string" ? what : what()}`);
    await new Promise((resume) => setTimeout(resume, 50));
  }
}
