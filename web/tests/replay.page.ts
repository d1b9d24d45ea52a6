/** A past that is played: at its pace, with the values that the recording holds, and to its end. */

import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Browser, openBrowser } from "./browser.ts";
import { directory, run, served, until } from "./program.ts";

const place = directory();
let server: Awaited<ReturnType<typeof served>>;
let browser: Browser;
let spanUs = { fromUs: 0, toUs: 0 };

beforeAll(async () => {
  const recording = join(place.path, "minute");
  run(["farm", "--count", "3", "--virtual", "60s", "--out", recording]);
  server = await served([recording]);
  const told = (await (await fetch(`${server.address}api/v1/recordings`)).json()) as {
    from_us: number;
    to_us: number;
  }[];
  spanUs = { fromUs: told[0]?.from_us ?? 0, toUs: told[0]?.to_us ?? 0 };
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
  place.remove();
});

const iso = (us: number): string => new Date(us / 1000).toISOString();

it("what is shown is played from its begin, at the pace at which it happened", async () => {
  const page = await browser.context.newPage();
  const fromUs = Math.ceil(spanUs.fromUs / 1e6) * 1e6 + 10e6;
  await page.goto(`${server.address}#cluster?t=${iso(fromUs)}..${iso(fromUs + 20e6)}`);
  const painted = (): Promise<number> => page.evaluate(() => window.__meikyo.lastPaintedUs);
  await until("the strip is painted", () => page.evaluate(() => window.__meikyo.wholeMs > 0));
  await page.evaluate(() => window.__meikyo.reset());
  const begunMs = Date.now();
  await page.keyboard.press("p");
  await page.getByText("Playing, 1\u00d7").waitFor();
  const first = await until("it is painted", async () => (await painted()) > 0 && painted());
  expect(first).toBeGreaterThanOrEqual(fromUs - 1e6);
  const then = await until("three seconds were played", async () => (await painted()) > fromUs + 3e6 && painted());
  const passedMs = Date.now() - begunMs;
  // Not ahead of its pace; how far behind depends on the machine.
  expect((then - fromUs) / 1000).toBeLessThan(passedMs + 1000);
  expect(await page.evaluate(() => window.__meikyo.paints)).toBeGreaterThan(10);
  await page.close();
});

it("a recording shorter than the window fills it, and play begins at its first reading", async () => {
  const page = await browser.context.newPage();
  await page.goto(`${server.address}#cluster?t=-10m&theme=dark`);
  await until("the strip is painted whole", () => page.evaluate(() => window.__meikyo.wholeMs > 0));
  // From the first tenth of the strip to its last there are readings: colours that are not the ground.
  const coloured = (part: number): Promise<number> =>
    page.evaluate((at) => {
      const canvas = document.querySelector<HTMLCanvasElement>("canvas.strip");
      if (canvas === null) return 0;
      const left = 66 + (canvas.width - 66) * at;
      const data =
        canvas.getContext("2d")?.getImageData(Math.round(left), 3, Math.round((canvas.width - 66) * 0.08), 6).data ??
        new Uint8ClampedArray();
      const pixels = [...new Uint32Array(data.buffer)];
      return (
        pixels.filter((pixel) => pixel >>> 0 !== ((255 << 24) | (23 << 16) | (20 << 8) | 13) >>> 0 && pixel !== 0)
          .length / pixels.length
      );
    }, part);
  for (const part of [0.01, 0.3, 0.6, 0.9]) expect(await coloured(part), String(part)).toBeGreaterThan(0.5);
  await page.keyboard.press("p");
  await page.getByText("Playing, 1\u00d7").waitFor();
  await page.evaluate(() => window.__meikyo.reset());
  const first = await until("it plays", () =>
    page.evaluate(() => window.__meikyo.lastPaintedUs > 0 && window.__meikyo.lastPaintedUs),
  );
  expect(first).toBeLessThan(spanUs.fromUs + 20e6);
  await until("readings come", () => page.evaluate(() => window.__meikyo.receivedFrames > 5));
  await page.close();
});

it("a replay ends with the recording, and the page stands there", async () => {
  const page = await browser.context.newPage();
  const fromUs = spanUs.toUs - 12e6;
  await page.goto(`${server.address}#cluster?t=-10s&play=8@${iso(fromUs)}&tables=1`);
  await page.getByText("Playing, 8\u00d7").waitFor();
  await until("it has ended", async () => (await page.locator(".time .now button").textContent())?.includes("Paused"));
  const last = await until("its end is painted", async () => {
    const painted = await page.evaluate(() => window.__meikyo.lastPaintedUs);
    return painted > spanUs.toUs - 1e6 && painted;
  });
  expect(last).toBeLessThanOrEqual(spanUs.toUs);
  // No faster than eight times: the twelve seconds took one and a half.
  const shown = await until("a value stands in the table", async () => {
    const text = await page
      .locator("tr", { has: page.locator("td", { hasText: "node002" }) })
      .locator("td")
      .nth(4)
      .textContent();
    return text?.includes("bit/s") === true && text;
  });
  expect(shown).toMatch(/[1-9]/);
  await page.close();
});
