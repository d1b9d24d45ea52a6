/** Alerts of a running measurement: shown with their rule, acknowledged and silenced on the page. */

import type { Locator, Page } from "playwright-core";
import { expect, it } from "vitest";
import { run, until } from "./program.ts";
import { stage } from "./stage.ts";

/** Every device breaks it at its first reading, and never stops to. */
const RULES = '\n[[alerts]]\nname = "always-loaded"\nvalue = "load(load_1min)"\nabove = -1\n';

const on = stage({ hosts: 2, switches: 0, rules: RULES });

/** What the recording holds of what people said, independent of server and page. */
function noted(event: string): readonly Record<string, unknown>[] {
  const lines = run(["query", on.measuring.recording, "events", "--json"]).trim().split("\n");
  return lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line) as Record<string, unknown>).filter((row) => row["event"] === event);
}

const card = (page: Page, device: string): Locator => page.locator("aside[aria-label=Alerts] section", { hasText: device });
const standing = (of: Locator, word: string): Promise<boolean> => until(`it is ${word}`, async () => (await of.locator("h2 span").textContent()) === word);

it("an alert is shown with its rule, acknowledged and silenced, and the recording knows", async () => {
  const page = await on.browser.context.newPage();
  await page.goto(`${on.server.address}#cluster`);
  await page.getByRole("button", { name: /2 alerts/ }).waitFor();
  await page.keyboard.press("a");
  const [first, second] = [card(page, "node001"), card(page, "node002")];
  await first.waitFor();
  expect(await first.locator("p b").textContent()).toBe("always-loaded");
  const text = (await first.locator("p").first().textContent()) ?? "";
  expect(text).toMatch(/^always-loaded . load\.load_1min .*above -1/);
  expect(text.match(/always-loaded/g)?.length).toBe(1);
  await standing(first, "raised");
  expect(noted("alert_acknowledged")).toEqual([]);

  await first.getByRole("button", { name: "acknowledge" }).click();
  await standing(first, "acknowledged");
  expect(await first.getByRole("button", { name: "acknowledge" }).count()).toBe(0);
  await standing(second, "raised");
  const seen = await until("it is recorded", async () => noted("alert_acknowledged")[0]);
  expect(seen["device"]).toBe("node001");

  await second.getByRole("button", { name: "silence 1 h" }).click();
  await standing(second, "silenced");
  const silenced = await until("it is recorded", async () => noted("alert_silenced")[0]);
  expect([silenced["device"], silenced["count"]]).toEqual(["node002", 3_600_000_000]);
  expect(await page.getByRole("button", { name: /\d+ alert/ }).count()).toBe(0);
  await page.close();
});

it("what a finished measurement can no longer note is said", async () => {
  const page = await on.browser.context.newPage();
  await page.goto(`${on.server.address}#cluster`);
  await page.getByRole("button", { name: "alerts" }).waitFor();
  await page.keyboard.press("a");
  const first = card(page, "node001");
  await first.waitFor();
  await on.measuring.stop();
  await first.getByRole("button", { name: "silence 1 day" }).click();
  const told = page.locator("aside[aria-label=Alerts] [role=alert]");
  await until("it is told", async () => (await told.textContent())?.includes("only a running measurement can note that"));
  await page.close();
});
