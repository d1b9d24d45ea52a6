/** The fabric of a cluster file on the page. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import type { FabricBody } from "../src/api/types.ts";
import { until } from "./program.ts";
import { stage } from "./stage.ts";
import { complete, dragonfly, fatTree, leafSpine, mesh, random, ring, type Topology, torus } from "./topologies.ts";

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
const lines = (page: Page): Promise<number> => page.locator("svg.fabric path[stroke]").count();

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
  expect(await page.locator("svg.fabric .source").count()).toBe(2);
  await page.close();
});

it("trunks that nobody measures carry nothing that is known, and the page says so", async () => {
  const page = await open("fabric?colour=load&tables=1");
  await page.getByText("This recording has no trunk with readings").waitFor();
  expect(await lines(page)).toBe(0);
  const rows = page.locator("table[aria-label=Trunks] tbody tr");
  expect(await rows.locator("td:nth-child(4)").allTextContents()).toEqual(Array.from({ length: 12 }, () => "–"));
  expect(await rows.locator("td:nth-child(5)").allTextContents()).toEqual(Array.from({ length: 12 }, () => "–"));
  await page.close();
});

/** A fabric with a VLAN for each of some switches: the tree of shortest ways from it. */
function planned(of: Topology, vlans: number): FabricBody {
  const beside = Array.from({ length: of.switches }, (): { far: number; trunk: number }[] => []);
  of.pairs.forEach(([one, other], trunk) => {
    beside[one]?.push({ far: other, trunk });
    beside[other]?.push({ far: one, trunk });
  });
  const trees = Array.from({ length: vlans }, (_, at) => {
    const root = Math.floor((at * of.switches) / vlans);
    const [reached, own, open_] = [new Set([root]), new Set<number>(), [root]];
    for (let place = open_.shift(); place !== undefined; place = open_.shift()) {
      for (const { far, trunk } of beside[place] ?? []) {
        if (reached.has(far)) continue;
        reached.add(far);
        own.add(trunk);
        open_.push(far);
      }
    }
    return { root, own };
  });
  return {
    name: of.name,
    switches: of.withHosts.map((hosts, place) => ({
      name: `sw${place + 1}`,
      x: 0,
      y: 0,
      hosts: hosts ? 4 : 0,
      host_names: hosts ? `node[${4 * place + 1}-${4 * place + 4}]` : "",
    })),
    trunks: of.pairs.map((ends, trunk) => ({
      ends: ends.map((at) => ({ switch: at, interfaces: [`port${trunk + 1}`] })),
      rate_bits_per_s: 1e9,
      vlans: trees.flatMap(({ own }, at) => (own.has(trunk) ? [101 + at] : [])),
    })),
    vlans: trees.map(({ root }, at) => ({ vlan: 101 + at, purpose: "frames", sources: [root] })),
  };
}

const SHOWN: readonly (readonly [Topology, number])[] = [
  [ring(12), 4],
  [torus(4, 2), 6],
  [torus(4, 4), 16],
  [mesh(8, 8), 6],
  [complete(16), 16],
  [fatTree(4), 4],
  [dragonfly(9, 4, 2), 36],
  [random(24, 4, 3), 24],
  [random(64, 6, 7), 64],
  [leafSpine(48, 16), 16],
  [torus(4, 4, 4), 64],
];

/** Texts of the drawing that lie over one another, over a switch that is not theirs, or stick out. */
function covered(): string[] {
  const found: string[] = [];
  const drawing = document.querySelector("svg.fabric")?.getBoundingClientRect();
  // Turned texts are told apart by the unit tests: the browser gives upright boxes only.
  const texts = [...document.querySelectorAll<SVGTextElement>("svg.fabric text")].filter(
    (text) => !text.hasAttribute("transform"),
  );
  const boxes = texts.map((text) => ({
    text: text.textContent ?? "",
    at: text.getBoundingClientRect(),
    own: text.closest("g"),
  }));
  const meet = (one: DOMRect, other: DOMRect): boolean =>
    one.left < other.right - 0.5 &&
    other.left < one.right - 0.5 &&
    one.top + 1 < other.bottom - 1 &&
    other.top + 1 < one.bottom - 1;
  boxes.forEach((box, at) => {
    for (const other of boxes.slice(0, at)) if (meet(box.at, other.at)) found.push(`${box.text} over ${other.text}`);
    const inside = box.own?.querySelector("rect")?.getBoundingClientRect();
    if (inside !== undefined && (box.at.left < inside.left || box.at.right > inside.right))
      found.push(`${box.text} is wider than its switch`);
    for (const shape of document.querySelectorAll("svg.fabric rect, svg.fabric circle"))
      if (shape.closest("g") !== box.own && meet(box.at, shape.getBoundingClientRect()))
        found.push(`${box.text} over a switch`);
    if (
      drawing !== undefined &&
      (box.at.left < drawing.left - 1 ||
        box.at.right > drawing.right + 1 ||
        box.at.top < drawing.top - 1 ||
        box.at.bottom > drawing.bottom + 1)
    )
      found.push(`${box.text} is cut off`);
  });
  return found;
}

/** Where pictures are put for a person to look at. */
const PICTURES = process.env["MEIKYO_PICTURES"];

it.each(SHOWN)(
  "$name is drawn with its real font: nothing covered, nothing cut off, at every width",
  async (of, vlans) => {
    const page = await on.browser.context.newPage();
    await page.route(/api\/v1\/fabric/, (route) =>
      route.fulfill({ contentType: "application/json", body: JSON.stringify(planned(of, vlans)) }),
    );
    await page.goto(`${on.server.address}#fabric?theme=dark`);
    for (const [width, height] of [
      [1000, 800],
      [1440, 900],
      [2560, 1300],
    ] as const) {
      await page.setViewportSize({ width, height });
      await until("it is drawn for this width", () =>
        page.evaluate((wide) => window.innerWidth === wide && document.querySelector("svg.fabric") !== null, width),
      );
      for (const theme of PICTURES === undefined ? [] : ["dark", "light"]) {
        await page.evaluate((hash) => {
          window.location.hash = hash;
        }, `fabric?theme=${theme}`);
        await page.locator(`html[data-theme=${theme}]`).waitFor();
        await page.screenshot({ path: join(PICTURES ?? "", `${of.name.replaceAll(" ", "-")}-${width}-${theme}.png`) });
      }
      expect(await page.evaluate(covered), `${width}`).toEqual([]);
      const room = await page.evaluate(() => {
        const around = document.querySelector(".fabric-room");
        return around === null ? -1 : around.scrollWidth - around.clientWidth;
      });
      expect(room, `${width}`).toBeLessThanOrEqual(0);
    }
    await page.close();
  },
);

it("a large fabric is a matrix, whose trunks are told one by one", async () => {
  const page = await on.browser.context.newPage();
  await page.route(/api\/v1\/fabric/, (route) =>
    route.fulfill({ contentType: "application/json", body: JSON.stringify(planned(torus(10, 10, 10), 8)) }),
  );
  await page.goto(`${on.server.address}#fabric`);
  const matrix = page.locator("canvas.matrix");
  await matrix.focus();
  const told = page.locator("span.told");
  await page.keyboard.press("ArrowRight");
  await until("the first trunk is told", async () => (await told.textContent())?.startsWith("sw1 to sw2: VLAN"));
  await page.keyboard.press("ArrowDown");
  await until("the next row's is told", async () =>
    /sw1 to sw2|sw2 to sw3|sw2 to sw/.test((await told.textContent()) ?? ""),
  );
  // A cell for each of the 3000 trunks in either direction, none elsewhere.
  const inks = await page.evaluate(() => {
    const canvas = document.querySelector<HTMLCanvasElement>("canvas.matrix");
    const context = canvas?.getContext("2d");
    if (canvas == null || context == null) return 0;
    const side = canvas.width;
    const data = new Uint32Array(context.getImageData(0, 0, side, side).data.buffer);
    const ground = data[(side - 1) * side + Math.round(side * 0.3)];
    return [...data].filter((pixel, at) => pixel !== ground && at % side >= side - 1000 && at >= (side - 1000) * side)
      .length;
  });
  expect(inks).toBeGreaterThanOrEqual(6000);
  expect(inks).toBeLessThan(6100);
  if (PICTURES !== undefined) await page.screenshot({ path: join(PICTURES, "matrix-1440-dark.png") });
  await page.close();
});
