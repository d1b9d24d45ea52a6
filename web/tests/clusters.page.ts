/** Clusters that are sent from afar stand beside each other, with who sends them, and what is looked for is found in all. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Browser, openBrowser } from "./browser.ts";
import { directory, PATIENCE_MS, type Running, served, start, until } from "./program.ts";

const place = directory();
const running: Running[] = [];
let address = "";
let browser: Browser;

async function begin(args: readonly string[], ready: RegExp): Promise<Running> {
  const one = await start(args, ready);
  running.push(one);
  return one;
}

/** A farm that is called so; its cluster file. */
async function farm(name: string, hosts: number, first: string): Promise<string> {
  const path = join(place.path, name);
  const args = ["farm", "--port", "0", "--count", `${hosts}`, "--first", first, "--write-cluster", path];
  await begin(args, /^ready: /);
  const file = join(path, "cluster.toml");
  writeFileSync(file, readFileSync(file, "utf8").replace('name = "simulated"', `name = "${name}"`));
  return file;
}

beforeAll(async () => {
  const serving = await served([], ["--listen", "127.0.0.1:0", "--ingest", join(place.path, "rec")]);
  running.push(serving);
  address = serving.address;
  const to = /http:\/\/[^\s/]+/.exec(serving.line)?.[0] ?? "";
  for (const [cluster, hosts, first, more] of [
    ["west", 3, "127.8.0.1", ["--standby", "--name", "west:measure@mon1"]],
    ["west", 3, "", ["--standby", "--name", "west:measure@mon2"]],
    ["east", 2, "127.9.0.1", ["--name", "east:measure@mon"]],
  ] as const) {
    const file = first === "" ? join(place.path, "west", "cluster.toml") : await farm(cluster, hosts, first);
    const spool = join(place.path, `spool-${running.length}`);
    const args = ["measure", "--no-recording", "--cluster", file, "--to", to, "--spool", spool];
    await begin([...args, ...more], / ok [1-9]/);
  }
  browser = await openBrowser();
}, PATIENCE_MS);
afterAll(async () => {
  await browser?.close();
  for (const one of running.toReversed()) await one.stop();
  place.remove();
});

it("shows every cluster with its active sender, and finds devices in all of them", async () => {
  const page = await browser.context.newPage();
  await page.goto(`${address}#clusters`);
  const cards = page.locator("ul.clusters > li");
  await until("both clusters have senders", async () => {
    const texts = await cards.allTextContents();
    const west = texts.find((text) => text.includes("west:measure@mon1")) ?? "";
    const east = texts.find((text) => text.includes("east:measure@mon")) ?? "";
    return west.includes("stands by") && west.includes("active") && east.includes("active");
  });
  // That of the receiver itself, into which nobody sends, is no cluster.
  expect(await cards.count()).toBe(2);
  // The time bar is about all of them: five devices at 10 Hz are counted, not those of one.
  const all = page.getByRole("group", { name: "Health of all clusters" });
  await until("the time bar sums clusters", async () => /\d.*on time/.test((await all.textContent()) ?? ""));
  const asked: string[] = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  const answer = await page.waitForResponse((response) => response.url().includes("api/v1/health?from=-10s"));
  const health = (await answer.json()) as { recording: string }[];
  expect(health.map(({ recording }) => recording).sort()).toEqual(["east", "west"]);
  await until("it was looked again", async () => asked.filter((path) => path.endsWith("/senders")).length > 1);
  // However many clusters there are, they are asked about together.
  expect(asked.filter((path) => /recordings\/.*\/health/.test(path))).toEqual([]);
  const west = cards.filter({ hasText: "west:measure@mon1" });
  expect(await west.locator("dd").first().textContent()).toBe("3");
  await page.keyboard.press("/");
  await page.keyboard.type("node003");
  await until("one cluster has that device", async () => {
    const texts = await cards.allTextContents();
    return texts.length === 1 && texts[0]?.includes("node003");
  });
  await cards.getByRole("link", { name: "node003" }).click();
  await until("the device is shown", async () => (await page.url()).includes("#device"));
  expect(page.url()).toContain("west");
  // With the picker of recordings and all views in it, the head has room for its last key at the least width.
  await page.setViewportSize({ width: 1000, height: 800 });
  const keys = await page.locator(".head kbd").last().boundingBox();
  expect(keys !== null && keys.x + keys.width <= 1000).toBe(true);
  await page.close();
});
