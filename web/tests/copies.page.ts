/** What the Data view hands out is run: the programs copied there give the readings that the recording holds. */

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Browser, openBrowser } from "./browser.ts";
import { directory, run, served, until } from "./program.ts";

/** The Python of the examples, with DuckDB and pandas. */
const PYTHON = resolve(import.meta.dirname, "../../target/venv/bin/python3");
const CURL = spawnSync("curl", ["--version"]).status === 0;

const place = directory();
let server: Awaited<ReturnType<typeof served>>;
let browser: Browser;
let page: Page;
/** The shown time, and what the command line reads of it. */
let shown = { from: "", to: "" };
let expected: { rows: number; greatest: number };

beforeAll(async () => {
  const recording = join(place.path, "minute");
  run(["farm", "--count", "3", "--virtual", "70s", "--out", recording]);
  server = await served([recording]);
  const told = (await (await fetch(`${server.address}api/v1/recordings`)).json()) as { from_us: number }[];
  const begin = Math.ceil((told[0]?.from_us ?? 0) / 1e6) * 1e6 + 10e6;
  const iso = (us: number): string => new Date(us / 1000).toISOString();
  shown = { from: iso(begin), to: iso(begin + 20e6) };
  const lines = run([
    "query",
    recording,
    "interfaces",
    "--device",
    "node002",
    "--columns",
    "out_octets",
    "--from",
    shown.from,
    "--to",
    shown.to,
    "--json",
  ]);
  const readings = lines
    .trim()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => Number((JSON.parse(line) as Record<string, unknown>)["out_octets"]));
  expected = { rows: readings.length, greatest: Math.max(...readings) };
  browser = await openBrowser();
  page = await browser.context.newPage();
  await page.addInitScript(() => {
    Object.defineProperty(navigator, "clipboard", {
      value: {
        writeText: (text: string) => {
          document.body.dataset["copied"] = text;
          return Promise.resolve();
        },
      },
    });
  });
  await page.goto(`${server.address}#data?t=${shown.from}..${shown.to}&dev=node002`);
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
  place.remove();
});

/** What a click on one of the buttons of `interfaces` copies. */
async function copied(button: string): Promise<string> {
  await page.evaluate(() => {
    delete document.body.dataset["copied"];
  });
  await page.locator("[aria-label='interfaces as a program or file']").getByText(button, { exact: true }).click();
  return until(`${button} is copied`, () => page.evaluate(() => document.body.dataset["copied"]));
}

/** Runs a program of Python that prints two numbers, in the directory of the recording. */
function numbers(program: string): { rows: number; greatest: number } {
  const { status, stdout, stderr } = spawnSync(PYTHON, ["-c", program], { encoding: "utf8", cwd: place.path });
  expect(status, stderr).toBe(0);
  const [rows, greatest] = stdout.trim().split("\n").at(-1)?.split(" ").map(Number) ?? [];
  return { rows: rows ?? Number.NaN, greatest: greatest ?? Number.NaN };
}

it("the recording holds readings in the shown time", () => {
  expect(expected.rows).toBeGreaterThanOrEqual(199);
  expect(expected.greatest).toBeGreaterThan(0);
});

it.skipIf(!existsSync(PYTHON))("Python reads the same readings", async () => {
  const program = await copied("Python");
  expect(numbers(`${program}\nprint(len(readings), readings.out_octets.max())`)).toEqual(expected);
});

it.skipIf(!existsSync(PYTHON))("DuckDB reads the same readings from the files", async () => {
  const sql = await copied("DuckDB");
  expect(
    numbers(
      `import duckdb\nreadings = duckdb.sql(${JSON.stringify(sql)}).fetchdf()\nprint(len(readings), readings.out_octets.max())`,
    ),
  ).toEqual(expected);
});

it.skipIf(!existsSync(PYTHON) || !CURL)("curl fetches the same readings", async () => {
  const command = await copied("curl");
  const { status, stderr } = spawnSync("sh", ["-c", command], { encoding: "utf8", cwd: place.path });
  expect(status, stderr).toBe(0);
  expect(
    numbers(
      "import pandas\nreadings = pandas.read_parquet('interfaces.parquet')\nprint(len(readings), readings.out_octets.max())",
    ),
  ).toEqual(expected);
});

it("the collector's health is that of the recording", async () => {
  const health = page.locator("section[aria-label='Collector health']");
  const told = async (name: RegExp): Promise<string> =>
    (await health.locator("dt", { hasText: name }).locator("xpath=following-sibling::dd[1]").textContent()) ?? "";
  const lines = run(["query", join(place.path, "minute"), "intervals", "--columns", "socket_drops,strays", "--json"]);
  const rows = lines
    .trim()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Record<string, number>);
  const sum = (column: string): string => String(rows.reduce((total, row) => total + (row[column] ?? 0), 0));
  expect(await told(/dropped by our socket/)).toBe(sum("socket_drops"));
  expect(await told(/nobody had asked for/)).toBe(sum("strays"));
  expect(await told(/last answer after it, 99 of 100 within/)).toMatch(/^\d/);
});
