// Makes pictures of every view in both themes, for a person to look at.
//
//   MEIKYO_URL=http://127.0.0.1:8420/ npm run screenshots -- target/screenshots
//
// The address is of a running `meikyo serve`; the pictures are for eyes and are compared with nothing.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";

const address = process.env.MEIKYO_URL ?? "http://127.0.0.1:8420/";
const folder = process.argv[2] ?? "screenshots";
const VIEWS = {
  cluster: "cluster?t=-1m",
  paused: "cluster?t=-1m",
  tables: "cluster?t=-1m&tables=1&rows=series",
  then: "then?t=-20s",
  device: "device?t=-1m",
  data: "data",
};
/** How long a live view is left to fill. */
const SETTLE_MS = 4000;

mkdirSync(folder, { recursive: true });
const browser = await chromium.launch({
  executablePath: process.env.MEIKYO_CHROMIUM ?? "/usr/bin/chromium",
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
  ],
});
for (const theme of ["dark", "light"]) {
  for (const [name, hash] of Object.entries(VIEWS)) {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, colorScheme: theme });
    page.on("pageerror", (error) => console.error(`${name}: ${error}`));
    await page.goto(`${address}#${hash}`);
    await page.waitForTimeout(SETTLE_MS);
    if (name === "then") await page.getByRole("button", { name: "1 min before" }).click();
    if (name === "paused") await selectInStrip(page);
    await page.waitForTimeout(SETTLE_MS / 2);
    const file = join(folder, `${name}-${theme}.png`);
    await page.screenshot({ path: file });
    console.log(file);
    await page.close();
  }
}
await browser.close();

/** Pauses, selects a rectangle and rests the pointer on it, as a person would. */
async function selectInStrip(page) {
  await page.keyboard.press("Space");
  const box = await page.locator("canvas.strip").boundingBox();
  await page.mouse.move(box.x + box.width * 0.45, box.y + box.height * 0.3);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.75, box.y + box.height * 0.36, { steps: 5 });
  await page.mouse.up();
}
