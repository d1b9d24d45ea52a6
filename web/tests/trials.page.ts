/** What the first trials of the page stumbled over, tried again on recordings that were made for it. */

import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Browser, openBrowser } from "./browser.ts";
import { directory, run, served, until } from "./program.ts";

const place = directory();
let server: Awaited<ReturnType<typeof served>>;
let browser: Browser;

/** node002 fails and answers again, over and over. */
const OUTAGES = 8;
const FLAPPING = Array.from({ length: OUTAGES }, (_, at) => [
  `at ${4 + 6 * at}s die node002`,
  `at ${7 + 6 * at}s wake node002`,
]).flat();
const [long, short] = ["one", "other"].map((folder) => join(place.path, folder, "rec")) as [string, string];

beforeAll(async () => {
  run([
    "farm",
    "--count",
    "4",
    "--switches",
    "1",
    "--ports",
    "12",
    "--virtual",
    "60s",
    ...FLAPPING.flatMap((line) => ["--do", line]),
    "--out",
    long,
  ]);
  run(["farm", "--count", "4", "--virtual", "20s", "--out", short]);
  server = await served([long, short]);
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
  place.remove();
});

async function open(hash: string): Promise<Page> {
  const page = await browser.context.newPage();
  await page.goto(`${server.address}#${hash}`);
  await page.locator("main h1").first().waitFor();
  await until(
    "everything was read",
    async () => !/Loading|\u2026/.test((await page.locator("body").textContent()) ?? ""),
  );
  return page;
}

/** What the command line reads of the recording's events. */
function events(): readonly Record<string, unknown>[] {
  const lines = run(["query", long, "events", "--json"])
    .trim()
    .split("\n")
    .filter((line) => line.startsWith("{"));
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

it("a device that flaps is one line with its count, and does not fill the time bar", async () => {
  const own = events().filter((event) => event["device"] === "node002");
  // The collector has told the first changes one by one, and the others in one event with their count.
  expect(own.length).toBeGreaterThanOrEqual(7);
  const page = await open("cluster");
  const lines = await page.locator("ul.events li", { hasText: "node002" }).allTextContents();
  expect(lines.length, lines.join("\n")).toBe(1);
  expect(Number(/(\d+) times/.exec(lines[0] ?? "")?.[1])).toBe(OUTAGES);
  // Events are marks from top to bottom of the overview; a thin line at its top is what a flapping device gets.
  const red = await page.evaluate(() => {
    const canvas = document.querySelector<HTMLCanvasElement>(".overview canvas");
    const {
      data = [],
      width = 1,
      height = 1,
    } = canvas?.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height) ?? {};
    const is = (x: number, y: number): boolean =>
      (data[(y * width + x) * 4] ?? 0) > 200 && (data[(y * width + x) * 4 + 2] ?? 0) < 120;
    let solid = 0;
    for (let x = 0; x < width; x += 1)
      if (Array.from({ length: 10 }, (_, at) => Math.round(height * (0.25 + at * 0.05))).every((y) => is(x, y)))
        solid += 1;
    return solid / width;
  });
  expect(red).toBeLessThan(0.05);
  await page.close();
});

it("ports stand as people count them", async () => {
  const page = await open("device?device=switch01&tables=1");
  const rows = page.locator("[aria-label='Table of the strip'] tbody td:first-child");
  await until("the ports are listed", async () => (await rows.count()) >= 12);
  const ports = (await rows.allTextContents()).filter((name) => name.startsWith("port"));
  expect(ports).toEqual(Array.from({ length: 12 }, (_, at) => `port${at + 1}`));
  await page.close();
});

it("recordings of one name are told apart, and what was made under virtual time says so", async () => {
  const page = await open("data");
  const options = await page.getByRole("combobox", { name: "Recording" }).locator("option").allTextContents();
  expect(options.length).toBe(2);
  expect(new Set(options).size).toBe(2);
  for (const option of options) expect(option).toContain("(simulated)");
  const kinds = page.locator("table[aria-label='All recordings'] tbody td:nth-child(2)");
  expect(await kinds.allTextContents()).toEqual(["simulated", "simulated"]);
  await page.goto(`${server.address}#cluster?rec=rec-2`);
  await page.getByText("recorded under virtual time from simulated agents").waitFor();
  await page.close();
});

it("a recording of 20 s fills overview and strip, and offers no past that it does not have", async () => {
  const page = await open("then?rec=rec-2");
  expect(await page.getByRole("button", { name: /(min|h|day|week) before/ }).count()).toBe(0);
  expect(await page.locator("section[aria-label='What is compared']").textContent()).toContain("begins less than");
  await page.goto(`${server.address}#cluster?rec=rec-2`);
  await until("the strip is painted whole", () => page.evaluate(() => window.__meikyo.wholeMs > 0));
  const drawn = await until("the overview has its curve", async () => {
    const share = await page.evaluate(() => {
      const canvas = document.querySelector<HTMLCanvasElement>(".overview canvas");
      const {
        data = [],
        width = 1,
        height = 1,
      } = canvas?.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height) ?? {};
      let columns = 0;
      for (let x = 0; x < width; x += 1) {
        const inks = new Set<number>();
        for (let y = 2; y < height - 8; y += 1)
          inks.add(
            (data[(y * width + x) * 4] ?? 0) * 65536 +
              (data[(y * width + x) * 4 + 1] ?? 0) * 256 +
              (data[(y * width + x) * 4 + 2] ?? 0),
          );
        if (inks.size > 1) columns += 1;
      }
      return columns / width;
    });
    return share > 0 && share;
  });
  expect(drawn).toBeGreaterThan(0.9);
  await page.close();
});
