/** The reading under the cursor and the view of one device, held against what the command line reads from the recording. */

import type { Locator, Page } from "playwright-core";
import { expect, it } from "vitest";
import { run, until } from "./program.ts";
import { stage } from "./stage.ts";

const on = stage({ hosts: 4, switches: 1 });

type Row = Record<string, unknown>;

async function open(hash: string): Promise<Page> {
  const page = await on.browser.context.newPage();
  await page.goto(`${on.server.address}#${hash}`);
  await until("the strip is painted", () => page.evaluate(() => window.__meikyo.paints > 0));
  return page;
}

function query(table: string, device: string, ...more: string[]): Row[] {
  const lines = run(["query", on.measuring.recording, table, "--device", device, ...more, "--json"])
    .trim()
    .split("\n");
  return lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line) as Row);
}

/** What a card says beside this word. */
const told = async (card: Locator, name: string): Promise<string> =>
  (await card
    .locator("dt", { hasText: new RegExp(`^${name}$`) })
    .locator("xpath=following-sibling::dd[1]")
    .textContent()) ?? "";

const digits = (text: string): string => text.replace(/\D/g, "");

it("the cursor shows the raw reading, when it came and how fresh it is", async () => {
  const page = await open("cluster?t=-8s&rows=series&find=eth0&dev=node003");
  await until("it has been recorded for longer than the window", async () => query("polls", "node003").length > 100);
  await page.keyboard.press("Space");
  await until("the window stands still", () => page.evaluate(() => window.location.hash.includes("..")));
  const box = await page.locator("canvas.strip").first().boundingBox();
  if (box === null) throw new Error("there is no strip");
  await page.mouse.move(box.x + 66 + (box.width - 66) / 2, box.y + 8);
  const card = page.locator("section[aria-label=Reading]");
  const counter = await until("the raw reading is there", async () => digits(await told(card, "counter")) || null);
  const [device = "", part = ""] = await Promise.all([
    card
      .locator("h2 > span")
      .first()
      .evaluate((element) => element.firstChild?.textContent?.trim()),
    card.locator("h2 small").textContent(),
  ]);
  const rows = query("interfaces", device, "--label", `interface=${part}`, "--columns", "time,out_octets");
  const reading = rows.find((row) => String(row["out_octets"]) === counter);
  expect(reading, `${counter} of ${device} ${part}`).toBeDefined();
  const poll = query("polls", device).find((row) => row["time"] === reading?.["time"]);
  const received = Date.parse(String(reading?.["time"])) * 1000 + Number(poll?.["received_us"]);
  const local = new Date(received / 1000 - new Date(received / 1000).getTimezoneOffset() * 60_000);
  const exact = digits(local.toISOString().slice(11)) + String(received % 1000).padStart(3, "0");
  expect(digits(await told(card, "reading"))).toBe(exact);
  expect(await told(card, "round trip")).toMatch(/^\d.*s$/);
  expect(await told(card, "state")).toBe("ok");
  expect(await card.locator(".tag").textContent()).toBe("fresh every poll");
  await page.close();
});

it("everything about one device is that of the recording", async () => {
  const page = await open("device?device=node002&t=-10s");
  const reached = page.locator("section[aria-label='How it was reached']");
  await until("answers are there", async () => (await reached.locator("tbody tr").count()) >= 10);
  expect(await told(reached, "agent")).toMatch(/^127\.1\.0\.2:\d+$/);
  expect(await told(reached, "asked over")).toBe("SNMP 2c");
  const states = await reached.locator("tbody td:last-child").allTextContents();
  expect(states.filter((state) => state === "ok").length).toBeGreaterThan(states.length / 2);

  const machine = page.locator("section[aria-label=Machine]");
  const load = await until("the load is there", async () => told(machine, "load, 1 min").catch(() => null));
  expect(query("load", "node002").map((row) => Number(row["load_1min"]).toFixed(2))).toContain(load);

  const fresh = page.locator("div[aria-label=Freshness]");
  await until("freshness is found out", async () => (await fresh.locator("tbody tr").count()) > 0);
  const found = new Map(
    query("freshness", "node002").map((row) => [
      `${String(row["table"])} ${String(row["instance"])} ${String(row["column"])}`,
      String(row["class"]),
    ]),
  );
  expect(found.get("interfaces eth0 in_octets")).toBe("every_poll");
  const eth0 = fresh.locator("tr", { hasText: /^eth0 .*received|^eth0 .*in/i }).first();
  expect(await eth0.locator("td").nth(1).textContent()).toBe("fresh every poll");
  await page.close();
});
