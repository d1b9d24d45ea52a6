/** The fabric of a cluster file on the page. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { until } from "./program.ts";
import { stage } from "./stage.ts";

const TORUS = `
name = "torus"
measure = ["interfaces"]
snmp = { version = "2c", community = "env:C" }
fabric = { topology = "torus 4x2", management_vlan = 100 }
hosts = [{ name = "node[01-16]", address = "10.0.0.[1-16]" }]
switches = [{ name = "sw[1-8]", address = "10.0.1.[1-8]" }]
`;

const on = stage({
  hosts: 1,
  switches: 1,
  serve: (path) => {
    const file = join(path, "torus.toml");
    writeFileSync(file, TORUS);
    return ["--cluster", file];
  },
});

async function open(hash: string): Promise<Page> {
  const page = await on.browser.context.newPage();
  await page.goto(`${on.server.address}#${hash}`);
  await page.locator("svg.fabric").waitFor();
  return page;
}

/** Coloured lines; the grey beneath is there in any case. */
const lines = (page: Page): Promise<number> => page.locator("svg.fabric line[stroke]").count();

it("all VLANs are drawn on their trunks, and one alone when it is selected by keyboard", async () => {
  const page = await open("fabric");
  expect(await page.locator("svg.fabric [data-trunk]").count()).toBe(12);
  expect(await page.locator("svg.fabric [data-switch]").count()).toBe(8);
  // Each of the five VLANs (four for frames, one for management) spans eight switches: seven trunks.
  expect(await lines(page)).toBe(5 * 7);
  await page.getByRole("radio", { name: "all" }).focus();
  await page.keyboard.press("ArrowDown");
  await until("one VLAN is left", async () => (await lines(page)) === 7);
  await until("the address says which", async () => /vlan=\d+/.test(await page.evaluate(() => window.location.hash)));
  await page.close();
});

it("a link shows another person the same VLAN, with the switches that send in it", async () => {
  const page = await open("fabric?vlan=101");
  expect(await page.getByRole("radio", { name: /^101/ }).isChecked()).toBe(true);
  expect(await lines(page)).toBe(7);
  expect(await page.locator("svg.fabric circle.source").count()).toBe(2);
  await page.close();
});

it("trunks that nobody measures carry nothing that is known, and the page says so", async () => {
  const page = await open("fabric?colour=load&tables=1");
  await page.getByText("No trunk of this recording is measured").waitFor();
  expect(await lines(page)).toBe(0);
  const cells = await page.locator("table[aria-label=Trunks] tbody tr td:last-child").allTextContents();
  expect(cells).toEqual(Array.from({ length: 12 }, () => "–"));
  await page.close();
});
