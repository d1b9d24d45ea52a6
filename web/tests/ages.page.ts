/** What is not of the newest interval has its age beside it, in every view; and what is not read is told as nothing else. */

import { resolve } from "node:path";
import type { Page, Route } from "playwright-core";
import { expect, it } from "vitest";
import { until } from "./program.ts";
import { stage } from "./stage.ts";

const on = stage({
  hosts: 3,
  switches: 0,
  events: ["at 6s die node002"],
  serve: () => ["--cluster", resolve(import.meta.dirname, "../../examples/fabric.toml")],
});

const AGE = /\d+(\.\d+)?\u202f(s|min).* ago/;

async function open(hash: string): Promise<Page> {
  const page = await on.browser.context.newPage();
  await page.goto(`${on.server.address}#${hash}`);
  await page.locator("main h1, main h2").first().waitFor();
  return page;
}

/** Waits until the dead host has been silent for longer than any fact may stand without its age. */
async function silent(page: Page): Promise<void> {
  const health = page.getByRole("group", { name: "Health of the recording" });
  await until("node002 is silent", async () => (await health.locator("div", { hasText: /^1silent$/ }).count()) === 1);
}

it("values of a device that stopped answering have their age, and those of its neighbour have none", async () => {
  const page = await open("device?device=node002&t=-30s");
  await silent(page);
  const machine = page.getByRole("region", { name: "Machine" });
  await until("each of its values has its age", async () => {
    const told = await machine.locator("dd").allTextContents();
    return told.length >= 2 && told.every((text) => AGE.test(text));
  });
  await page.goto(`${on.server.address}#device?device=node001&t=-30s`);
  await until(
    "the neighbour is shown",
    async () =>
      (await machine.locator("dd").count()) >= 2 && (await page.locator("main h1").textContent())?.includes("node001"),
  );
  expect((await machine.locator("dd").allTextContents()).filter((text) => AGE.test(text))).toEqual([]);

  await page.goto(`${on.server.address}#cluster?t=-30s&tables=1&dev=node002,node001`);
  const newest = (device: string): Promise<string> =>
    page
      .locator("tr", { has: page.locator("td", { hasText: new RegExp(`^${device}`) }) })
      .first()
      .locator("td")
      .nth(1)
      .innerText();
  await until("the table says how old its value is", async () => AGE.test(await newest("node002").catch(() => "")));
  expect(await newest("node001")).not.toMatch(AGE);
  await page.close();
});

/** What is asked for again and again, by view, with the place of its age. */
const ASKED: readonly (readonly [hash: string, panels: Readonly<Record<string, string>>])[] = [
  [
    "cluster",
    {
      health: ".health",
      events: "section[aria-label=Devices]",
      collector: "section[aria-label=Collector]",
      "value of the reading": "section[aria-label=Reading] [data-column=out_octets]",
      "value beside it": "section[aria-label=Reading] [data-column=in_octets]",
      alerts: ".head .right",
    },
  ],
  [
    "device?device=node001",
    {
      health: ".health",
      freshness: "section[aria-label=Device] h2:has-text('fresh')",
      answers: "section[aria-label='How it was reached'] h2",
      machine: "section[aria-label=Machine] dd",
    },
  ],
  [
    "data",
    {
      tables: "section[aria-label=Tables] h2",
      gaps: "section[aria-label=Gaps] h2",
      damage: "section[aria-label=Damage] h2",
      collector: "section[aria-label='Collector health'] h2",
    },
  ],
  ["fabric?colour=load", { health: ".health", loads: "section[aria-label=Drawing]" }],
];

it.each(ASKED)("%s: when no answer comes any more, each panel says how old what it shows is", async (hash, panels) => {
  const page = await open(hash);
  await until(
    "everything was read",
    async () => !/Loading|\u2026/.test((await page.locator("body").textContent()) ?? ""),
  );
  // From now on neither questions have an answer nor readings come, as beside a starved server.
  on.server.process.kill("SIGSTOP");
  try {
    for (const [name, place] of Object.entries(panels)) {
      await until(`${name} has its age`, async () => AGE.test((await page.locator(place).first().textContent()) ?? ""));
    }
  } finally {
    on.server.process.kill("SIGCONT");
  }
  await page.close();
});

/** Words that tell of a fact, and the dash of what is not recorded. */
const FACTS = /Nothing has happened|None: |Not found out yet|with readings of all|No alert|\u2013|told nothing/;

it.each([
  "cluster?tables=1",
  "device?device=node001",
  "then?t=-2s&mark=2026-01-01T00:00:00Z",
  "data",
  "fabric?colour=load&tables=1",
])("%s: what is not read yet is told neither as a fact nor as missing", async (hash) => {
  const page = await on.browser.context.newPage();
  const waiting = new Set<Route>();
  let asked = 0;
  await page.route(
    /api\/v1\/.*\/(range|states|health|events|inventory|readings|freshness)|api\/v1\/alerts/,
    (route) => {
      asked += 1;
      waiting.add(route);
    },
  );
  await page.goto(`${on.server.address}#${hash}`);
  await until("the panels have asked", async () => asked > 1 && (await page.locator("main h1, main h2").count()) > 0);
  const told = await until("it says that it reads", async () => {
    const text = (await page.locator("main").innerText()).replace(/\d+\u2013\d+/g, "");
    return /Loading|\u2026/.test(text) && text;
  });
  expect(told).not.toMatch(FACTS);
  await Promise.all([...waiting].map((route) => route.abort().catch(() => undefined)));
  await page.close();
});
