/** The view Profile over real samples: what it shows is what a direct decode of the recording counts. */

import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Browser, openBrowser } from "./browser.ts";
import { directory, measured, program, run, served, until } from "./program.ts";

const place = directory();
const recording = join(place.path, "prof");
let server: Awaited<ReturnType<typeof served>> | undefined;
let browser: Browser | undefined;
let sampled = false;
/** Goes on while the samples were taken and after that. */
let measuring: Awaited<ReturnType<typeof measured>> | undefined;

/** A busy machine takes long to look at everything that runs on it. */
const HOOK_MS = 400_000;

/** What keeps a CPU busy in functions of its own while it is sampled. */
const BUSY =
  "const until = Date.now() + 60_000; let sum = 0; while (Date.now() < until) for (let at = 0; at < 1e6; at += 1) sum += Math.sqrt(at); process.exit(sum > 0 ? 0 : 1)";

beforeAll(async () => {
  measuring = await measured(place.path, 2, 0);
  const busy = spawn(process.execPath, ["-e", BUSY], { stdio: "ignore" });
  const { status, stderr } = spawnSync(
    program(),
    ["profile", "record", "--out", recording, "--all", "--stacks", "--off-cpu", "--budget", "none", "--for", "5s"],
    { encoding: "utf8" },
  );
  busy.kill();
  // Whoever may not sample CPUs has no samples to look at.
  if (status !== 0 && /permission|CAP_PERFMON|perf_event_paranoid/i.test(stderr)) return;
  expect(status, stderr).toBe(0);
  sampled = true;
  server = await served([recording]);
  browser = await openBrowser();
}, HOOK_MS);
afterAll(async () => {
  await browser?.close();
  await server?.stop();
  await measuring?.stop();
  place.remove();
});

interface Report {
  readonly samples: number;
  readonly lines: readonly {
    readonly name: string;
    readonly file: string;
    readonly samples: number;
    readonly samples_with_callees: number;
  }[];
}

/** Samples by function, decoded from the recording without the server. */
function report(...more: readonly string[]): Report {
  return JSON.parse(run(["profile", "report", recording, "--json", "--lines", "1000000", ...more])) as Report;
}

async function open(hash: string): Promise<Page> {
  if (browser === undefined || server === undefined) throw new Error("nothing is served");
  const page = await browser.context.newPage();
  await page.goto(`${server.address}#${hash}`);
  await counted(page);
  await until("the map is drawn", async () =>
    /sample/.test((await page.locator("[data-told=heat]").first().textContent()) ?? ""),
  );
  return page;
}

/** The samples that the facts name, once there are any. */
async function counted(page: Page): Promise<number> {
  const text = await until("the samples are counted", async () => {
    const card = page.locator(".card h2").first();
    const told = (await card.count()) > 0 ? await card.textContent() : null;
    return told !== null && /samples/.test(told) ? told : null;
  });
  return number(text);
}

/** The number that a text begins with. */
function number(text: string | null): number {
  return Number((/^[\d\u202f]+/.exec(text ?? "")?.[0] ?? "").replace(/\u202f/g, ""));
}

const hash = (page: Page): Promise<string> => page.evaluate(() => decodeURIComponent(window.location.hash));

/** Own samples by function and file, as the table has them. */
async function table(page: Page): Promise<ReadonlyMap<string, readonly [own: number, total: number]>> {
  const rows = await page
    .locator("table[aria-label=Functions] tbody tr")
    .evaluateAll((all) =>
      all.map(
        (row) =>
          [
            `${row.querySelector("button")?.textContent ?? ""} ${row.getAttribute("title") ?? ""}`,
            Number(row.querySelector("[data-own]")?.getAttribute("data-own")),
            Number(row.querySelector("[data-total]")?.getAttribute("data-total")),
          ] as const,
      ),
    );
  return new Map(rows.map(([name, own, total]) => [name, [own, total]]));
}

function skips(): boolean {
  if (!sampled) console.log("SKIPPED: sampling every CPU needs root or CAP_PERFMON");
  return !sampled;
}

it("map, flame graph and table have the samples that the recording has, by function", async () => {
  if (skips()) return;
  const direct = report();
  const page = await open("profile");
  expect(await counted(page)).toBe(direct.samples);
  const told = await until("the map is there", async () => {
    const text = await page.locator("[data-told=heat]").textContent();
    return text === "" ? null : text;
  });
  expect(number(told)).toBe(direct.samples);
  const shown = await table(page);
  const most = [...direct.lines].sort((one, other) => other.samples - one.samples).slice(0, 100);
  expect(most.length).toBeGreaterThan(20);
  for (const line of most)
    expect(shown.get(`${line.name} ${line.file}`), line.name).toEqual([line.samples, line.samples_with_callees]);
  await page.close();
});

it("any time can be brushed, its samples are counted anew, and a link restores it", async () => {
  if (skips()) return;
  const page = await open("profile");
  const all = await counted(page);
  const map = page.getByRole("application", { name: /^Samples by second/ });
  const box = await map.boundingBox();
  if (box === null) throw new Error("there is no map");
  const [left, width] = [box.x + 66, box.width - 66];
  await page.mouse.move(left + width * 0.35, box.y + 100);
  await page.mouse.down();
  await page.mouse.move(left + width * 0.65, box.y + 40);
  await page.mouse.up();
  const chosen = await until("the address says what was chosen", async () =>
    /sel=([^&]+)\.\.([^&]+)/.exec(await hash(page)),
  );
  const [, from = "", to = ""] = chosen;
  const direct = report("--from", from, "--to", to);
  expect(direct.samples).toBeGreaterThan(0);
  expect(direct.samples).toBeLessThan(all);
  await until("the chosen samples are counted", async () => (await counted(page)) === direct.samples);
  const link = await hash(page);
  await page.close();
  const again = await open(link.replace(/^#/, ""));
  expect(await counted(again)).toBe(direct.samples);
  await again.close();
});

interface OffCpu {
  readonly off_cpu_ns: number;
  readonly off_cpu_spans: number;
  readonly lines: readonly {
    readonly name: string;
    readonly file: string;
    readonly off_cpu_ns: number;
    readonly off_cpu_ns_with_callees: number;
  }[];
}

it("functions have the time that threads were off the CPU in them, and a link restores that", async () => {
  if (skips()) return;
  const direct = JSON.parse(
    run(["profile", "report", recording, "--json", "--lines", "1000000", "--off-cpu"]),
  ) as OffCpu;
  expect(direct.off_cpu_spans).toBeGreaterThan(100);
  const page = await open("profile?shape=time");
  await page.getByRole("button", { name: "off the CPU" }).click();
  await page.locator(".card h2", { hasText: "off the CPU" }).waitFor();
  expect(await hash(page)).toContain("of=off_cpu");
  const spans = page.locator(".card dt", { hasText: "threads left their CPU" }).locator("+ dd");
  expect(number(await spans.textContent())).toBe(direct.off_cpu_spans);
  // It is summed up by second: there is no order in time, and the stacks are merged.
  await page.getByRole("application", { name: /^Flame graph/ }).waitFor();
  expect(await page.getByRole("button", { name: "in time" }).count()).toBe(0);
  const shown = await table(page);
  const most = direct.lines.slice(0, 100);
  expect(most.length).toBeGreaterThan(10);
  for (const line of most)
    expect(shown.get(`${line.name} ${line.file}`), line.name).toEqual([line.off_cpu_ns, line.off_cpu_ns_with_callees]);
  const link = await hash(page);
  await page.goto("about:blank");
  await page.goto(`${server?.address}${link}`);
  await page.locator(".card h2", { hasText: "off the CPU" }).waitFor();
  await page.getByRole("button", { name: "samples", exact: true }).click();
  expect(await counted(page)).toBe(report().samples);
  expect(await hash(page)).not.toContain("of=");
  await page.close();
});

it("the keyboard chooses a time and moves over functions", async () => {
  if (skips()) return;
  const page = await open("profile");
  await page.getByRole("application", { name: /^Samples by second/ }).focus();
  for (const key of ["ArrowLeft", "ArrowLeft", "Enter", "ArrowLeft", "ArrowUp", "Enter"])
    await page.keyboard.press(key);
  const chosen = await until("the address says what was chosen", async () =>
    /sel=([^&]+)\.\.([^&]+)/.exec(await hash(page)),
  );
  // From the second tile of one second to the first of the next.
  const [begin, end] = [chosen[1] ?? "", chosen[2] ?? ""].map((text) => Date.parse(text));
  expect((end ?? 0) - (begin ?? 0)).toBe(1000);
  const direct = report("--from", chosen[1] ?? "", "--to", chosen[2] ?? "");
  await until("the chosen samples are counted", async () => (await counted(page)) === direct.samples);
  await page.getByRole("application", { name: /^Flame graph/ }).focus();
  await page.keyboard.press("ArrowDown");
  const at = await page.locator(".flame-told").first().textContent();
  expect(at).toMatch(/sample/);
  await page.keyboard.press("Enter");
  await until("the address says what fills the picture", async () => /focus=/.test(await hash(page)));
  await page.keyboard.press("Escape");
  await until("everything is shown again", async () => !/focus=/.test(await hash(page)));
  await page.close();
});

it("by thread, in time, as a sandwich, searched and compared", async () => {
  if (skips()) return;
  const direct = report();
  const page = await open("profile?by=thread");
  expect(await counted(page)).toBe(direct.samples);
  await page.getByRole("button", { name: "sandwich" }).click();
  const alone = ({ name, file }: Report["lines"][number]): boolean =>
    !name.startsWith("[") && direct.lines.every((other) => other.name !== name || other.file === file);
  const first = [...direct.lines]
    .sort((one, other) => other.samples_with_callees - one.samples_with_callees)
    .find(alone);
  const name = first?.name ?? "";
  await page.goto(`${server?.address}#profile?shape=sandwich&fn=${encodeURIComponent(name)}`);
  const told = page.locator("p", { hasText: "above, who called it" }).locator(".quiet");
  // Until the answer comes, that of another question stands there.
  await until(
    "the function has its samples",
    async () => number(await told.textContent()) === first?.samples_with_callees,
  );
  await page.goto(`${server?.address}#profile?search=${encodeURIComponent(name)}`);
  await page.locator("[data-told=found]").waitFor();
  await page.goto(`${server?.address}#profile?shape=time&by=cpu`);
  await page.getByRole("application", { name: /^Stacks as they followed each other/ }).waitFor();
  expect(await counted(page)).toBe(direct.samples);
  await page.close();
});

it("two times are compared, each with its own samples", async () => {
  if (skips()) return;
  const moments = /"from": ?"([^"]+)".*"to": ?"([^"]+)"/s.exec(run(["profile", "report", recording, "--json"]));
  const [begin, end] = [Date.parse(moments?.[1] ?? ""), Date.parse(moments?.[2] ?? "")];
  const middle = new Date((begin + end) / 2).toISOString();
  const [one, other] = [
    [new Date(begin - 1000).toISOString(), middle],
    [middle, new Date(end + 1000).toISOString()],
  ] as const;
  const page = await open(`profile?sel=${one.join("..")}&than=${other.join("..")}`);
  const direct = [one, other].map(([from, until_]) => report("--from", from ?? "", "--to", until_ ?? "").samples);
  expect(await counted(page)).toBe(direct[0]);
  expect(number(await page.locator(".card dd", { hasText: "samples" }).textContent())).toBe(direct[1]);
  expect(await page.locator("th", { hasText: "change" }).count()).toBe(1);
  await page.close();
});

it.each(["dark", "light"])("has no serious finding of axe in the %s theme, and nothing is cut off", async (theme) => {
  if (skips()) return;
  const page = await open(`profile?theme=${theme}&by=thread`);
  await page.setViewportSize({ width: 1000, height: 800 });
  await page.evaluate(readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8"));
  const findings = await page.evaluate(
    async () =>
      (
        await (
          window as unknown as {
            axe: { run(): Promise<{ violations: { id: string; impact: string; nodes: { html: string }[] }[] }> };
          }
        ).axe.run()
      ).violations,
  );
  const serious = findings.filter(({ impact }) => impact === "serious" || impact === "critical");
  expect(serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join("\n")}`)).toEqual([]);
  const beyond = await page.evaluate(() =>
    [...document.querySelectorAll("main button, main td, main p, main h1, main h2")]
      .filter((one) => one.getBoundingClientRect().right > window.innerWidth + 1)
      .map((one) => one.textContent),
  );
  expect(beyond).toEqual([]);
  await page.close();
});

it("shows what a measurement that still goes on had read at the time of the samples", async () => {
  if (skips() || measuring === undefined || browser === undefined) return;
  const both = await served([recording, measuring.recording]);
  const page = await browser.context.newPage();
  await page.goto(`${both.address}#profile?rec=prof`);
  const strip = page.getByRole("application", { name: /^Sent, busiest interface of each device at the same time/ });
  await strip.waitFor();
  await until("all of that time was read", async () => (await strip.getAttribute("aria-busy")) !== "true");
  const picker = page.getByRole("combobox", { name: "Quantity" });
  expect(await picker.inputValue()).toBe("interfaces.out_octets");
  await picker.selectOption({ label: "load, 1 min" });
  await page.getByRole("application", { name: /^Load, 1 min.* at the same time/ }).waitFor();
  await page.close();
  await both.stop();
});

it("says so where there is no profile, and while the server does not answer", async () => {
  if (skips()) return;
  const page = await open("profile");
  await page.route("**/profile/flame**", (route) => route.abort());
  await page.goto(`${server?.address}#profile?by=process`);
  await page.reload();
  await page.getByRole("alert").first().waitFor();
  await page.close();
});
