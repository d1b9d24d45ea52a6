/** A recording that is damaged in the middle is shown with its gap, and the damage is named. */

import { readdirSync, truncateSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openBrowser, type Browser } from "./browser.ts";
import { directory, run, served, until } from "./program.ts";

const place = directory();
let server: Awaited<ReturnType<typeof served>>;
let browser: Browser;
let damaged: string[] = [];

beforeAll(async () => {
  const recording = join(place.path, "half-an-hour");
  run(["agents", "--count", "4", "--virtual", "31min", "--out", recording, "--interval", "1s", "--step", "1s"]);
  // Files hold ten minutes each; simulated time begins in 1970.
  for (const table of ["interfaces", "interfaces.summary"]) {
    const hour = join(recording, table, "date=1970-01-01", "hour=00");
    const files = readdirSync(hour).sort((left, right) => Number(left.split("-").at(-2)) - Number(right.split("-").at(-2)));
    expect(files.length).toBeGreaterThan(2);
    const file = files[1] ?? "";
    truncateSync(join(hour, file), Math.floor(statSync(join(hour, file)).size / 2));
    damaged.push(`${table}/date=1970-01-01/hour=00/${file}`);
  }
  server = await served([recording]);
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
  place.remove();
});

it("names the files in the Data view", async () => {
  const page = await browser.context.newPage();
  await page.goto(`${server.address}#data`);
  const list = page.locator("section[aria-label=Damage]");
  for (const file of damaged) await until(`${file} is named`, async () => (await list.textContent())?.includes(file));
  await page.close();
});

it("shows the gap in the strip, and what lies around it", async () => {
  const page = await browser.context.newPage();
  await page.goto(`${server.address}#cluster?t=1970-01-01T00:00:00Z..1970-01-01T00:30:00Z`);
  await page.getByText("cannot be read").waitFor();
  /** The share of coloured pixels in a part of the strip. */
  const coloured = (from: number, to: number): Promise<number> => page.evaluate(([begin, end]) => {
    const canvas = document.querySelector<HTMLCanvasElement>("canvas.strip");
    const context = canvas?.getContext("2d");
    if (canvas == null || context == null) return 0;
    const width = canvas.width - 66;
    const left = Math.round(66 + width * (begin ?? 0));
    const { data } = context.getImageData(left, 0, Math.round(width * ((end ?? 0) - (begin ?? 0))), canvas.height - 20);
    let found = 0;
    // The ground is the darkest; everything that was measured is lighter.
    for (let at = 0; at < data.length; at += 4) if ((data[at + 3] ?? 0) > 0 && (data[at + 1] ?? 0) > 24) found += 1;
    return found / (data.length / 4);
  }, [from, to]);
  await until("the begin is there", async () => (await coloured(0.05, 0.3)) > 0.5);
  expect(await coloured(0.38, 0.62)).toBeLessThan(0.05);
  expect(await coloured(0.72, 0.95)).toBeGreaterThan(0.5);
  await page.close();
});
