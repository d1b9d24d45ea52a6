/** The view Checkpoints over a real program that lost a host: what it shows is what the recording's rows say. */

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Browser, openBrowser } from "./browser.ts";
import { cutOff } from "./cut_off.ts";
import { directory, program, run, served, until } from "./program.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const place = directory();
const recording = join(place.path, "rec");
const job = join(place.path, "job");
const OWN_CRIU = resolve(import.meta.dirname, "../../target/criu/criu");
const criu = process.env["MEIKYO_CRIU"] ?? (existsSync(OWN_CRIU) ? OWN_CRIU : null);
let server: Awaited<ReturnType<typeof served>> | undefined;
let browser: Browser | undefined;

/** Only root captures programs, and only with a CRIU. */
const possible = process.getuid?.() === 0 && criu !== null;
const HOOK_MS = 240_000;

interface Row {
  readonly host: string;
  readonly event: string;
  readonly generation: number | null;
}

/** Rows of the recording, decoded without the server. */
function rows(): readonly Row[] {
  const lines = run(["query", recording, "checkpoints", "--json"]).trim().split("\n");
  return lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line) as Row);
}

/** The first process of a host's container, as this machine numbers it. */
function container(host: string): number {
  const [name, sockets] = [`"name":"${host}"`, `"socket":"${join(job, "sockets")}`];
  const numbers = readdirSync("/proc").filter((entry) => /^\d+$/.test(entry));
  const found = numbers.map(Number).filter((number) => {
    try {
      const line = readFileSync(`/proc/${number}/cmdline`, "utf8");
      return line.includes(name) && line.includes(sockets);
    } catch {
      return false;
    }
  });
  return Math.min(...found);
}

beforeAll(async () => {
  if (!possible) return;
  mkdirSync(place.path, { recursive: true });
  const words = [
    "checkpoint",
    "run",
    "--as-is",
    "--local",
    "3",
    "--spares",
    "1",
    "--every",
    "300ms",
    "--criu",
    criu ?? "",
  ];
  words.push("--directory", job, "--out", recording, "--", "sh", "-c", "while [ ! -e done ]; do sleep 0.05; done");
  const child = spawn(program(), words, { cwd: place.path, stdio: ["ignore", "ignore", "pipe"] });
  let told = "";
  child.stderr.on("data", (piece: Buffer) => {
    told += piece.toString();
  });
  const ended = new Promise((resolved) => child.on("exit", resolved));
  const status = (): { readonly status?: { readonly step: number | null } } => {
    try {
      return JSON.parse(run(["checkpoint", "status", "--directory", job, "--json"]));
    } catch {
      return {};
    }
  };
  const committed = (step: number): Promise<boolean> =>
    until(`checkpoint ${step} is whole; ${told}`, async () => (status().status?.step ?? 0) >= step);
  await committed(2);
  process.kill(container("node2"), "SIGKILL");
  await until(`the program goes on; ${told}`, async () => told.includes("goes on from checkpoint"));
  await committed(5);
  writeFileSync(join(place.path, "done"), "");
  expect(await ended, told).toBe(0);
  // With a second recording the page's head has all that it can have.
  const day = join(place.path, "day");
  run(["farm", "--count", "2", "--virtual", "5s", "--out", day]);
  server = await served([recording, day]);
  browser = await openBrowser();
}, HOOK_MS);
afterAll(async () => {
  await browser?.close();
  await server?.stop();
  place.remove();
});

async function opened(more = ""): Promise<Page> {
  if (browser === undefined || server === undefined) throw new Error("there is no recording");
  const page = await browser.context.newPage();
  await page.goto(`${server.address}#checkpoints?t=-1h${more}`);
  await page.getByRole("heading", { name: /Checkpoints .*whole/ }).waitFor();
  return page;
}

it.skipIf(!possible)("shows what the rows of the recording say", async () => {
  const page = await opened();
  const all = rows();
  const whole = new Set(
    all.filter(({ event }) => event === "checkpoint_committed").map(({ generation }) => generation),
  );
  expect(whole.size).toBeGreaterThanOrEqual(5);
  expect(await page.locator("main h1").textContent()).toContain(`${whole.size} whole ones`);
  const line = (host: string) =>
    page.getByRole("table", { name: "How each host stands" }).locator("tr", { hasText: host });
  expect(await line("node2").first().textContent()).toMatch(/lost.*spare1 takes the place of node2/);
  for (const host of ["node1", "node3", "spare1"])
    expect(all.some((row) => row.host === host && row.event === "checkpoint_prepared")).toBe(true);
  expect(await line("node1").first().textContent()).toContain("has the newest");
  // One column for each host of the newest checkpoint, and the empty one of the host that is lost.
  expect(await page.locator(".block-columns li").count()).toBe(4);
  const recoveries = page.getByRole("table", { name: "Each recovery" }).locator("tbody tr");
  expect(await recoveries.count()).toBe(all.filter(({ event }) => event === "checkpoint_runs_again").length);
  expect(await recoveries.first().textContent()).toMatch(/spare1 takes the place of node2.*s/);
  const stops = await page.locator(".stops i").count();
  expect(stops).toBe(whole.size);
  // Failures that are rarer make checkpoints rarer.
  const daly = page.locator("section[aria-label=Cost] dd").nth(3);
  const before = await daly.textContent();
  await page.getByLabel("A host fails once in").selectOption({ label: "5 years" });
  await until("another interval", async () => (await daly.textContent()) !== before);
  await page.close();
});

it.skipIf(!possible).each(["dark", "light"])("has no finding of axe, %s", async (theme) => {
  const page = await opened(`&theme=${theme}`);
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => {
    const { violations } = await (
      window as unknown as {
        axe: { run(): Promise<{ violations: readonly { id: string; nodes: { html: string }[] }[] }> };
      }
    ).axe.run();
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join("\n")}`);
  });
  expect(found).toEqual([]);
  await page.close();
});

it.skipIf(!possible).each([1000, 1440, 2560])("cuts no text off at %d", async (width) => {
  const page = await opened();
  await page.setViewportSize({ width, height: 900 });
  expect(await page.evaluate(cutOff)).toEqual([]);
  await page.close();
});
