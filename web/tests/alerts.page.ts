/** Alerts of a running measurement: one card a rule, acknowledged and silenced on the page. */

import type { Locator, Page } from "playwright-core";
import { expect, it } from "vitest";
import { run, until } from "./program.ts";
import { stage } from "./stage.ts";

/** Every device breaks it at its first reading, and never stops to. */
const RULES = '\n[[alerts]]\nname = "always-loaded"\nvalue = "load(load_1min)"\nabove = -1\n';

const on = stage({ hosts: 3, switches: 0, rules: RULES });

/** What the recording holds of what people said, independent of server and page. */
function noted(event: string): readonly Record<string, unknown>[] {
  const lines = run(["query", on.measuring.recording, "events", "--json"]).trim().split("\n");
  return lines
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((row) => row["event"] === event);
}

const panel = (page: Page): Locator => page.locator("aside[aria-label=Alerts]");
const rule = (page: Page): Locator => panel(page).getByRole("region", { name: "Rule always-loaded" });
const row = (page: Page, device: string): Locator => rule(page).getByRole("listitem").filter({ hasText: device });
const standing = (of: Locator, word: string): Promise<boolean> =>
  until(`it is ${word}`, async () => (await of.locator(".standing").textContent()) === word);

async function opened(): Promise<Page> {
  const page = await on.browser.context.newPage();
  await page.goto(`${on.server.address}#cluster`);
  await page.getByRole("button", { name: /alert/ }).waitFor();
  await page.keyboard.press("a");
  await panel(page).waitFor();
  return page;
}

it("a rule has one card with its devices, which say for how long and since when", async () => {
  const page = await opened();
  await until("all three devices are there", async () => (await rule(page).getByRole("listitem").count()) === 3);
  // All that the rule is about stands once, in its card.
  expect(await panel(page).getByRole("region").filter({ hasText: "always-loaded" }).count()).toBe(1);
  expect((await rule(page).textContent())?.match(/always-loaded/g)?.length).toBe(1);
  expect(await rule(page).textContent()).toMatch(/load\.load_1min .*above -1/);
  // The recording says since when, in the browser's time zone, which is UTC.
  const raised = await until("it is recorded", async () =>
    noted("alert_raised").find((event) => event["device"] === "node002"),
  );
  const at = String(raised["time"]).slice(11, 16);
  expect(await row(page, "node002").textContent()).toMatch(new RegExp(`for .*(s|min).*, since ${at}`));
  expect(await page.getByRole("button", { name: "3 alerts" }).count()).toBe(1);
  await page.close();
});

it("an alert is acknowledged alone, the rest of its rule at once, and silenced, and the recording knows", async () => {
  const page = await opened();
  await standing(row(page, "node001"), "raised");
  expect(noted("alert_acknowledged")).toEqual([]);

  await page.getByRole("button", { name: "acknowledge node001" }).click();
  await standing(row(page, "node001"), "acknowledged");
  expect(await page.getByRole("button", { name: "acknowledge node001" }).count()).toBe(0);
  await standing(row(page, "node002"), "raised");
  const seen = await until("it is recorded", async () => noted("alert_acknowledged")[0]);
  expect(seen["device"]).toBe("node001");

  await rule(page).getByRole("button", { name: "acknowledge all 2" }).click();
  for (const device of ["node002", "node003"]) await standing(row(page, device), "acknowledged");
  await until(
    "all are recorded",
    async () =>
      noted("alert_acknowledged")
        .map((event) => event["device"])
        .sort()
        .join() === "node001,node002,node003",
  );
  expect(await page.getByRole("button", { name: /\d+ alert/ }).count()).toBe(0);

  await rule(page).getByRole("button", { name: "silence 1 h" }).click();
  for (const device of ["node001", "node002", "node003"]) await standing(row(page, device), "silenced");
  const silenced = await until("it is recorded", async () =>
    noted("alert_silenced").length === 3 ? noted("alert_silenced") : null,
  );
  expect(silenced.map((event) => [event["device"], event["count"]])).toEqual(
    ["node001", "node002", "node003"].map((device) => [device, 3_600_000_000]),
  );
  await page.close();
});

it.each([
  ["no rule is set", '{"set":false}', 200, "No alert rules are set"],
  ["rules are set", '{"set":true}', 200, "nothing breaks a rule"],
  [
    "the server does not tell of rules",
    '{"error":"no","place":""}',
    404,
    "That says nothing where no alert rules are set",
  ],
] as const)("without an alert, it is health only where something is watched: %s", async (_, body, status, words) => {
  const page = await on.browser.context.newPage();
  await page.route(/api\/v1\/alerts/, (route) => route.fulfill({ contentType: "application/json", body: "[]" }));
  await page.route(/alert-rules/, (route) => route.fulfill({ status, contentType: "application/json", body }));
  await page.goto(`${on.server.address}#cluster`);
  await page.getByRole("button", { name: "alerts" }).waitFor();
  await page.keyboard.press("a");
  await until("it says so", async () => (await panel(page).textContent())?.includes(words));
  if (!body.includes("true")) expect(await panel(page).textContent()).not.toContain("No alert is open");
  await page.close();
});

it("what a finished measurement can no longer note is said", async () => {
  const page = await opened();
  await rule(page).waitFor();
  // The list stays as it was read: at the end of a measurement its alerts are over, and have no buttons any more.
  await page.route(/api\/v1\/alerts\?/, (route) => route.abort());
  await on.measuring.stop();
  await rule(page).getByRole("button", { name: "silence 1 day" }).click();
  const told = panel(page).locator("[role=alert]");
  await until("it is told", async () =>
    (await told.textContent())?.includes("only a running measurement can note that"),
  );
  await page.close();
});
