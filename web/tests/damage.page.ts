/** A recording that is damaged in the middle is shown with its gap, and the damage is named. */

import { readdirSync, statSync, truncateSync } from "node:fs";
import { basename, join } from "node:path";
import { afterAll, beforeAll, it } from "vitest";
import { type Browser, openBrowser } from "./browser.ts";
import { directory, run, served, until } from "./program.ts";

const place = directory();
let server: Awaited<ReturnType<typeof served>>;
let browser: Browser;
const damaged: string[] = [];
/** Begin of the first file that is whole, and of the one behind it, which is not. */
let shown = { fromUs: 0, toUs: 0 };
const FILE_US = 600e6;

/** The files of a table in the order of time: their names begin with the stream and the first frame. */
function files(recording: string, table: string): string[] {
  const found = readdirSync(join(recording, table), { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".parquet"),
  );
  const first = (name: string): number => Number(name.split("-").at(-2));
  return found.sort((left, right) => first(left) - first(right)).map((name) => `${table}/${name}`);
}

beforeAll(async () => {
  const recording = join(place.path, "half-an-hour");
  run(["farm", "--count", "4", "--virtual", "31min", "--out", recording, "--interval", "1s", "--step", "1s"]);
  for (const table of ["interfaces", "interfaces.summary"]) {
    // The first segment ends at a round ten minutes, the next two are ten minutes each. A segment's rows can lie in two
    // hours, and then in two files of one name.
    const all = files(recording, table);
    const third = [...new Set(all.map((file) => basename(file)))][2] ?? "";
    for (const file of all.filter((one) => basename(one) === third)) {
      truncateSync(join(recording, file), Math.floor(statSync(join(recording, file)).size / 2));
      damaged.push(file);
    }
  }
  server = await served([recording]);
  const told = (await (await fetch(`${server.address}api/v1/recordings`)).json()) as { from_us: number }[];
  const begin = Math.ceil((told[0]?.from_us ?? 0) / FILE_US) * FILE_US;
  shown = { fromUs: begin, toUs: begin + 2.1 * FILE_US };
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
  place.remove();
});

it("names the files in the Data view", async () => {
  const page = await browser.context.newPage();
  await page.goto(`${server.address}#data`);
  const list = page.locator("section[aria-label=Damage]");
  for (const file of damaged) await until(`${file} is named`, async () => (await list.textContent())?.includes(file));
  await page.close();
});

it("shows the gap in the strip, and what lies around it", async () => {
  const page = await browser.context.newPage();
  const iso = (us: number): string => new Date(us / 1000).toISOString();
  await page.goto(`${server.address}#cluster?t=${iso(shown.fromUs)}..${iso(shown.toUs)}`);
  await page.getByText("cannot be read").waitFor();
  /** The share of coloured pixels in a part of the strip. */
  const coloured = (from: number, to: number): Promise<number> =>
    page.evaluate(
      ([begin, end]) => {
        const canvas = document.querySelector<HTMLCanvasElement>("canvas.strip");
        const context = canvas?.getContext("2d");
        if (canvas == null || context == null) return 0;
        const width = canvas.width - 66;
        const left = Math.round(66 + width * (begin ?? 0));
        const { data } = context.getImageData(
          left,
          0,
          Math.round(width * ((end ?? 0) - (begin ?? 0))),
          canvas.height - 20,
        );
        let found = 0;
        // The ground is the darkest; everything that was measured is lighter.
        for (let at = 0; at < data.length; at += 4) if ((data[at + 3] ?? 0) > 0 && (data[at + 1] ?? 0) > 24) found += 1;
        return found / (data.length / 4);
      },
      [from, to],
    );
  await until("the begin is there", async () => (await coloured(0.05, 0.4)) > 0.5);
  // What is not read yet has a colour, too.
  await until("the gap is there", async () => (await coloured(0.5, 0.93)) < 0.05);
  await until("the end is there", async () => (await coloured(0.96, 0.99)) > 0.5);
  await page.close();
});
