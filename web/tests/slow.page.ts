/** A server that is slow or gone: requests do not pile up, and what is not known is never drawn as a fact. */

import type { Page, Route } from "playwright-core";
import { expect, it } from "vitest";
import { until } from "./program.ts";
import { stage } from "./stage.ts";

const on = stage({ hosts: 6, switches: 1 });

interface Held {
  readonly page: Page;
  /** Requests under way, by the panel that asks. */
  readonly underWay: Map<string, number>;
  /** The most of them at any time. */
  readonly most: Map<string, number>;
  /** How often each panel has asked. */
  readonly asked: ReadonlyMap<string, number>;
  release(): Promise<void>;
}

function panelOf(url: URL): string {
  const what = url.pathname.split("/").at(-1) ?? "";
  if (what === "readings" || what === "freshness") return "reading";
  if (what === "health" || what === "events" || url.searchParams.has("fold")) return "time bar";
  if (what !== "range" && what !== "states") return what;
  return url.searchParams.has("device")
    ? `chart ${url.searchParams.get("table") ?? ""}`
    : `strip ${url.searchParams.get("column") ?? ""}`.trim();
}

/** A page whose answers are held back, all but the list of recordings and series. */
async function heldPage(hash: string): Promise<Held> {
  const page = await on.browser.context.newPage();
  const [underWay, most, asked] = [new Map<string, number>(), new Map<string, number>(), new Map<string, number>()];
  const waiting = new Set<Route>();
  let holding = true;
  await page.route(
    /api\/v1\/.*\/(range|states|health|events|inventory|readings|freshness)|api\/v1\/alerts/,
    async (route) => {
      if (!holding) return route.continue();
      const panel = panelOf(new URL(route.request().url()));
      asked.set(panel, (asked.get(panel) ?? 0) + 1);
      underWay.set(panel, (underWay.get(panel) ?? 0) + 1);
      most.set(panel, Math.max(most.get(panel) ?? 0, underWay.get(panel) ?? 0));
      waiting.add(route);
      return undefined;
    },
  );
  page.on("requestfailed", (request) => {
    const panel = panelOf(new URL(request.url()));
    if (underWay.has(panel)) underWay.set(panel, (underWay.get(panel) ?? 1) - 1);
  });
  await page.goto(`${on.server.address}#${hash}`);
  await until("something arrives live", () => page.evaluate(() => window.__meikyo.receivedFrames > 0));
  return {
    page,
    underWay,
    most,
    asked,
    release: async () => {
      holding = false;
      await Promise.all([...waiting].map((route) => route.continue().catch(() => undefined)));
    },
  };
}

const frames = (page: Page): Promise<number> => page.evaluate(() => window.__meikyo.receivedFrames);

it("a slow server is asked no faster than it answers, and facts come when it does", async () => {
  const { page, most, asked, release } = await heldPage("cluster?t=-20s");
  await until("the panels have asked", async () =>
    ["reading", "time bar", "strip out_octets", "alerts", "inventory"].every((panel) => (most.get(panel) ?? 0) > 0),
  );
  const first = await frames(page);
  // Eight seconds of a live page, in which panels would have asked thirty times.
  await until("it has gone on", async () => (await frames(page)) > first + 80);
  for (const [panel, requests] of asked) expect(requests, panel).toBeLessThanOrEqual(2);
  for (const [panel, requests] of most) expect(requests, panel).toBeLessThanOrEqual(2);
  await release();
  await until("the collector's facts are there", async () =>
    /\d/.test((await page.locator("section[aria-label=Collector] dd").first().textContent()) ?? ""),
  );
  await page.close();
});

it("what is not read yet is called so, and looks neither like nothing nor like nothing recorded", async () => {
  const { page, release } = await heldPage("cluster?t=-20s&theme=dark");
  const devices = page.locator("section[aria-label=Devices]");
  expect(await devices.textContent()).toContain("Loading");
  expect(await devices.textContent()).not.toContain("Nothing has happened");
  expect(await page.locator(".health").textContent()).not.toMatch(/\d/);
  await page.keyboard.press("a");
  const alerts = page.locator("aside[aria-label=Alerts]");
  expect(await alerts.textContent()).toContain("Loading");
  expect(await alerts.textContent()).not.toContain("No alert");
  // The past of the strip: not one colour, as what was never recorded has, but lines.
  const inks = (): Promise<number> =>
    page.evaluate(() => {
      const canvas = document.querySelector<HTMLCanvasElement>("canvas.strip");
      const data = canvas?.getContext("2d")?.getImageData(80, 4, 60, 10).data ?? new Uint8ClampedArray();
      return new Set(new Uint32Array(data.buffer)).size;
    });
  const lines = await inks();
  expect(lines).toBeGreaterThan(2);
  const card = page.locator("section[aria-label=Selection] dd");
  await until(
    "the card says that it reads",
    async () => (await card.allTextContents()).join() === "\u2026,\u2026,\u2026,\u2026",
  );
  await release();
  await until("events were read", async () => (await devices.textContent())?.includes("Loading") === false);
  await until("sums are there", async () => /\d/.test((await card.first().textContent()) ?? ""));
  await page.close();
});

it("with the server gone, nothing that was not read is told as a fact", async () => {
  const { page } = await heldPage("cluster?t=-20s");
  await on.server.stop("SIGKILL");
  await page.getByText("The server does not answer.").waitFor();
  const devices = page.locator("section[aria-label=Devices]");
  await until("it says what it does not know", async () =>
    (await devices.textContent())?.includes("Not known: the server does not answer"),
  );
  expect(await page.locator("main").textContent()).not.toContain("Nothing has happened");
  expect(await page.locator("section[aria-label=Collector]").textContent()).toContain("Not known");
  await page.close();
});
