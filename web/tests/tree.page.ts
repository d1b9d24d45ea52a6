/** What a screen reader is told of every view and dialog, and that the keyboard reaches all of it. */

import { join, resolve } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Browser, openBrowser } from "./browser.ts";
import { directory, run, served, until } from "./program.ts";
import { type Node, tabbed, tree } from "./tree.ts";

const place = directory();
let server: Awaited<ReturnType<typeof served>>;
let browser: Browser;

beforeAll(async () => {
  const recording = join(place.path, "day");
  run(["farm", "--count", "6", "--switches", "1", "--virtual", "40s", "--out", recording]);
  server = await served(
    [recording],
    ["--listen", "127.0.0.1:0", "--cluster", resolve(import.meta.dirname, "../../examples/fabric.toml")],
  );
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
  place.remove();
});

async function open(hash: string): Promise<Page> {
  const page = await browser.context.newPage();
  await page.goto(`${server.address}#${hash}`);
  await until("the view is there", async () => (await page.locator("main h1").count()) > 0);
  await page.waitForLoadState("networkidle");
  await until(
    "everything was read",
    async () => !/Loading|\u2026/.test((await page.locator("main").textContent()) ?? ""),
  );
  return page;
}

const line = ({ role, name }: Node): string => `${role} ${name}`.trim();
const ACTS = new Set([
  "button",
  "link",
  "textbox",
  "searchbox",
  "combobox",
  "radio",
  "checkbox",
  "application",
  "slider",
  "DisclosureTriangle",
]);

/** What holds in every view: everything that acts or shows has a name in words, and no two of a kind have the same. */
function sound(nodes: readonly Node[]): string[] {
  const found: string[] = [];
  const seen = new Map<string, number>();
  for (const node of nodes) {
    if (/undefined|NaN|\[object|\bnull\b/.test(`${node.name} ${node.value}`))
      found.push(`nonsense: ${line(node)} ${node.value}`);
    const named =
      ACTS.has(node.role) ||
      ["image", "img", "table", "region", "navigation", "complementary", "dialog", "radiogroup"].includes(node.role);
    if (!named) continue;
    if (node.name === "") found.push(`${node.role} without a name in ${node.around.at(-1) ?? ""}`);
    // Things of the same name are told apart by what they stand in.
    const key = [line(node), ...node.around.filter((one) => !/^(row|cell|LayoutTable|list|listitem)$/.test(one))].join(
      " < ",
    );
    seen.set(key, (seen.get(key) ?? 0) + 1);
  }
  for (const [key, times] of seen) if (times > 1) found.push(`${times} times: ${key}`);
  if (nodes.filter(({ role }) => role === "main").length !== 1) found.push("not one main part");
  if (nodes.filter((node) => node.role === "heading" && node.properties["level"] === 1).length !== 1)
    found.push("not one heading of the view");
  for (const combobox of nodes.filter(({ role }) => role === "combobox"))
    if (combobox.value === "") found.push(`${line(combobox)} has no value`);
  for (const table of nodes.filter(({ role }) => role === "table")) {
    const own = nodes.filter(({ role, around }) => role === "columnheader" && around.includes(line(table)));
    if (own.length === 0 || own.some(({ name }) => name === ""))
      found.push(`${line(table)} has a column without a name`);
  }
  return found;
}

/** Around every view. */
const FRAME = [
  "banner",
  "link meikyo",
  "navigation Views",
  "link Cluster",
  "link Then and now",
  "link Device",
  "link Fabric",
  "link Data",
  "searchbox Find a device",
  "region Time",
  "group Health of the recording",
  "textbox Time to show, such as -15m, 18:42 or 2026-11-21T18:00..2026-11-21T19:00",
];

const VIEWS: readonly (readonly [hash: string, told: readonly string[]])[] = [
  [
    "cluster?tables=1",
    [
      "region Devices",
      "combobox Quantity",
      "button split",
      "region Sent, busiest interface of each device",
      "heading Received, busiest interface of each device",
      "region Facts",
      "region Selection",
      "region Reading",
      "region Collector",
      "application Sent, busiest interface of each device, newest reading of each row. Arrow keys move, Enter selects.",
      "region Table of the strip",
      "table Newest, least, mean and greatest value of each row in the shown time",
      "button copy as Python",
      "link Parquet",
    ],
  ],
  [
    "then?t=-10s",
    [
      "region What is compared",
      "textbox Moment of the past",
      "combobox Quantity",
      "application Now: Sent, busiest interface of each device. Arrow keys move over rows and time, Enter selects.",
    ],
  ],
  [
    "device?device=node003",
    [
      "region Device",
      "combobox Device",
      "region How it was reached",
      "region Machine",
      "region Newest answers",
      "table Answers, the newest first",
      "table How fresh each value is",
      "figure load, 1 min",
    ],
  ],
  [
    "fabric?tables=1",
    [
      "region VLANs",
      "group What colours the trunks",
      "radio VLAN",
      "group The VLAN that is shown",
      "radio all",
      "region Drawing of the fabric",
      "table Trunks",
    ],
  ],
  [
    "data",
    [
      "region Recordings",
      "table All recordings",
      "table Tables of the recording",
      "group interfaces as a program or file",
      "region Gaps",
      "region Damage",
      "region Collector health",
    ],
  ],
];

it.each(VIEWS)("%s is told with names, roles and values", async (hash, told) => {
  const page = await open(hash);
  const nodes = await tree(page);
  expect(sound(nodes)).toEqual([]);
  const lines = nodes.map(line);
  for (const wanted of [...FRAME, ...told]) expect(lines, lines.join("\n")).toContain(wanted);
  const current = nodes.filter(({ role, properties }) => role === "link" && properties["ariaCurrent"] !== undefined);
  const title = { cluster: "Cluster", then: "Then and now", device: "Device", fabric: "Fabric", data: "Data" }[
    hash.split("?")[0] ?? ""
  ];
  expect(await page.locator("nav [aria-current]").allTextContents(), String(current.length)).toEqual([title]);
  await page.close();
});

it.each(VIEWS)("%s: everything that acts is reached by Tab, and is seen to have the focus", async (hash) => {
  const page = await open(hash);
  const nodes = await tree(page);
  // Of a group of radio buttons Tab reaches the one that is chosen; options belong to their list.
  const wanted = nodes.filter(
    (node) =>
      node.focusable &&
      !["RootWebArea", "option", "MenuListPopup"].includes(node.role) &&
      !(node.role === "radio" && node.properties["checked"] !== "true"),
  );
  expect(wanted.length).toBeGreaterThan(12);
  const reached = await tabbed(page, wanted.length + 40);
  expect(wanted.filter(({ element }) => !reached.includes(element)).map(line)).toEqual([]);
  await page.locator("nav a").first().focus();
  await page.keyboard.press("Tab");
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement ?? document.body).outlineWidth);
  expect(Number.parseFloat(outline)).toBeGreaterThanOrEqual(2);
  await page.close();
});

it("the cursor that arrow keys move in the grid is told, with its value", async () => {
  const page = await open("cluster");
  await page.locator("canvas.grid").focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  const status = page.locator(".told-cursor");
  await until("it is told", async () => /^node002.*: .*bit\/s/.test((await status.textContent()) ?? ""));
  expect((await tree(page)).some((node) => node.role === "status" && node.around.length > 0)).toBe(true);
  await page.close();
});

it("help and alerts take the focus, are told as what they are, and give it back", async () => {
  const page = await open("cluster");
  await page.getByRole("combobox", { name: "Quantity" }).focus();
  await page.locator("canvas.grid").focus();
  await page.keyboard.press("?");
  await page.locator("dialog[open]").waitFor();
  const help = await tree(page);
  expect(help.map(line)).toContain("dialog All keys");
  expect(await page.evaluate(() => document.activeElement?.closest("dialog") !== null)).toBe(true);
  expect(
    help.filter(({ around, role }) => role === "button" && around.includes("dialog All keys")).map(({ name }) => name),
  ).toEqual(["close"]);
  await page.keyboard.press("Escape");
  await until("the help is closed", async () => (await page.locator("dialog[open]").count()) === 0);
  expect(await page.evaluate(() => document.activeElement?.className)).toBe("grid");
  await page.keyboard.press("a");
  await page.locator("aside").waitFor();
  const alerts = await tree(page);
  expect(sound(alerts)).toEqual([]);
  expect(alerts.map(line)).toContain("complementary Alerts");
  await until("it has the focus", () => page.evaluate(() => document.activeElement?.closest("aside") !== null));
  await page.keyboard.press("Escape");
  await until("it gave it back", () => page.evaluate(() => document.activeElement?.className === "grid"));
  await page.close();
});
