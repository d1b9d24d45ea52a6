/** Accessibility, judged by axe-core: no serious or critical finding in any view and theme. */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openBrowser, type Browser } from "./browser.ts";
import { directory, run, served, until } from "./program.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const place = directory();
let server: Awaited<ReturnType<typeof served>>;
let browser: Browser;

beforeAll(async () => {
  const recording = join(place.path, "day");
  run(["agents", "--count", "16", "--switches", "1", "--virtual", "40s", "--out", recording]);
  server = await served([recording], ["--listen", "127.0.0.1:0", "--prefix", "/deep/meikyo", "--cluster", resolve(import.meta.dirname, "../../examples/fabric.toml")]);
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

it.each(["dark", "light"].flatMap((theme) => ["cluster?tables=1&", "then?t=-10s&", "device?", "fabric?tables=1&", "data?"].map((view) => `${view}theme=${theme}`)))(
  "%s has no serious finding", async (hash) => {
    const page = await browser.context.newPage();
    await page.goto(`${server.address}#${hash}`);
    await until("the view is there", async () => (await page.locator("main h1").count()) > 0);
    if (hash.startsWith("then")) await page.getByRole("textbox", { name: "Moment of the past" }).fill("-25s").then(() => page.keyboard.press("Enter"));
    await page.waitForLoadState("networkidle");
    // Through the protocol and not through the page: the page's own policy would refuse the script.
    await page.evaluate(AXE);
    const findings = await page.evaluate(async () => {
      const { violations } = await (window as unknown as { axe: { run(): Promise<{ violations: unknown[] }> } }).axe.run();
      return violations;
    }) as Finding[];
    const serious = findings.filter(({ impact }) => impact === "serious" || impact === "critical");
    expect(serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html}\n${failureSummary}`).join("\n")}`)).toEqual([]);
    await page.close();
  },
);
