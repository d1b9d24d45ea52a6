/** At the widths of a small window, a laptop and a wide screen no text is cut off, in any view. */

import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Browser, openBrowser } from "./browser.ts";
import { cutOff } from "./cut_off.ts";
import { directory, run, served, until } from "./program.ts";

const place = directory();
let server: Awaited<ReturnType<typeof served>>;
let browser: Browser;

beforeAll(async () => {
  const recording = join(place.path, "day");
  run(["farm", "--count", "12", "--switches", "1", "--virtual", "30s", "--out", recording]);
  server = await served([recording]);
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
  place.remove();
});

const VIEWS = [
  "cluster?tables=1&rows=series",
  "device?device=switch01",
  "device?device=node003",
  "then?t=-10s",
  "data",
  "clusters",
  "profile",
  "checkpoints",
];

it.each([
  [1000, 800],
  [1440, 900],
  [2560, 1300],
])("%d x %d", async (width, height) => {
  const page = await browser.context.newPage();
  await page.setViewportSize({ width, height });
  for (const view of VIEWS) {
    await page.goto("about:blank");
    await page.goto(`${server.address}#${view}`);
    await until("the view is there", async () => (await page.locator("main h1, main h2").count()) > 0);
    await page.waitForLoadState("networkidle");
    await until(
      "everything was read",
      async () => !/Loading|\u2026/.test((await page.locator("body").textContent()) ?? ""),
    );
    expect(await page.evaluate(cutOff), view).toEqual([]);
  }
  await page.keyboard.press("?");
  await page.locator("dialog[open]").waitFor();
  expect(await page.evaluate(cutOff)).toEqual([]);
  const hidden = await page.evaluate(() => {
    const dialog = document.querySelector("dialog");
    return dialog === null ? -1 : dialog.scrollHeight - dialog.clientHeight;
  });
  expect(hidden).toBe(0);
  await page.close();
});

/** How far down its column what is shown reaches, as a share of the column, for the picture and for the facts. */
function reached(): number[] {
  return [...document.querySelectorAll<HTMLElement>(".columns > section")].slice(1).map((column) => {
    const box = column.getBoundingClientRect();
    const shown = [...column.querySelectorAll<HTMLElement>("canvas, .chart, .card, .keys")].map(
      (one) => one.getBoundingClientRect().bottom,
    );
    return (Math.max(box.top, ...shown) - box.top) / box.height;
  });
}

// On the widest screen all there is of thirteen devices takes two thirds.
it.each([
  [1000, 800, 0.75],
  [1440, 900, 0.75],
  [2560, 1300, 0.6],
])(
  "at %d x %d a dozen devices fill the Cluster view: both directions, more lines, those with most",
  async (width, height, least) => {
    const page = await browser.context.newPage();
    await page.setViewportSize({ width, height });
    await page.goto(`${server.address}#cluster`);
    const charts = page.locator(".chart");
    await until(
      "charts are drawn",
      async () => (await charts.count()) >= 4 && (await page.locator(".u-wrap").count()) >= 4,
    );
    await until(
      "everything was read",
      async () => !/Loading|\u2026/.test((await page.locator("body").textContent()) ?? ""),
    );
    const [picture = 0, facts = 0] = await until("it has come to rest", async () => {
      const now = await page.evaluate(reached);
      return (now[0] ?? 0) > least && (now[1] ?? 0) > 0.75 && now;
    });
    // And nothing of it lies below the edge.
    expect(picture).toBeLessThanOrEqual(1.001);
    expect(facts).toBeGreaterThan(0.75);
    expect(await page.locator("canvas.strip").count()).toBe(2);
    expect(await page.getByRole("heading", { name: "Received, busiest interface of each device" }).count()).toBe(1);
    if (width === 2560) {
      // Lines of every device: four in each chart, the usual quantities of the first four.
      await until("all lines are there", async () => (await charts.locator(".keys > span").count()) === 9);
      expect(await page.locator("table[aria-label='Devices with most'] tbody tr").count()).toBeGreaterThanOrEqual(8);
    }
    return page.close();
  },
);
