/** Accessibility, judged by axe-core: no finding of any severity in any view, dialog and theme. */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Browser, openBrowser } from "./browser.ts";
import { directory, run, served, until } from "./program.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const place = directory();
let server: Awaited<ReturnType<typeof served>>;
let browser: Browser;

beforeAll(async () => {
  const recording = join(place.path, "day");
  run(["farm", "--count", "16", "--switches", "1", "--virtual", "40s", "--out", recording]);
  server = await served(
    [recording],
    [
      "--listen",
      "127.0.0.1:0",
      "--prefix",
      "/deep/meikyo",
      "--cluster",
      resolve(import.meta.dirname, "../../examples/fabric.toml"),
    ],
  );
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
  place.remove();
});

interface Finding {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

/** All that axe finds, in words. */
async function findings(page: Page): Promise<string[]> {
  // Through the protocol and not through the page: the page's own policy would refuse the script.
  await page.evaluate(AXE);
  const found = (await page.evaluate(async () => {
    const { violations } = await (
      window as unknown as { axe: { run(): Promise<{ violations: unknown[] }> } }
    ).axe.run();
    return violations;
  })) as Finding[];
  return found.map(
    ({ id, impact, nodes }) =>
      `${id} (${impact}): ${nodes.map(({ html, failureSummary }) => `${html}\n${failureSummary}`).join("\n")}`,
  );
}

async function open(hash: string): Promise<Page> {
  const page = await browser.context.newPage();
  await page.goto(`${server.address}#${hash}`);
  await until("the view is there", async () => (await page.locator("main h1").count()) > 0);
  return page;
}

const THEMES = ["dark", "light"] as const;

it.each(
  THEMES.flatMap((theme) =>
    [
      "cluster?tables=1&",
      "then?t=-10s&",
      "device?",
      "fabric?tables=1&",
      "fabric?colour=load&",
      "data?",
      "clusters?",
      "profile?",
      "checkpoints?",
    ].map((view) => `${view}theme=${theme}`),
  ),
)("%s has no finding", async (hash) => {
  const page = await open(hash);
  if (hash.startsWith("then")) {
    await page.getByRole("textbox", { name: "Moment of the past" }).fill("-25s");
    await page.keyboard.press("Enter");
  }
  await page.waitForLoadState("networkidle");
  expect(await findings(page)).toEqual([]);
  await page.close();
});

it.each(THEMES)("dialogs and panels have no finding, %s", async (theme) => {
  const page = await open(`cluster?theme=${theme}`);
  await page.waitForLoadState("networkidle");
  await page.keyboard.press("?");
  await page.locator("dialog[open]").waitFor();
  expect(await findings(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await page.keyboard.press("a");
  await page.locator("aside[aria-label=Alerts]").waitFor();
  expect(await findings(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await page.keyboard.press("t");
  await page.keyboard.type("last tuesday");
  await page.keyboard.press("Enter");
  await page.getByText("Cannot read that time.").waitFor();
  expect(await findings(page)).toEqual([]);
  await page.close();
});
