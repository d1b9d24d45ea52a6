/** The page against a running measurement. */

import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { run, served, until } from "./program.ts";
import { stage } from "./stage.ts";

/** Answers of this host are under way for up to 18 ms: its rates do not fill the bins of the page exactly. */
const LATE = "node003";
const on = stage({ hosts: 12, switches: 1, events: [`at 1s set jitter=18ms ${LATE}`] });
/** An answer as the recording holds it: what was counted, and when it was due and received. */
interface Answer {
  readonly dueUs: number;
  readonly receivedUs: number;
  readonly octets: number;
}

/** Octets a second since the answer before, as far as is known when the agent read its counters. */
interface Rates {
  readonly dueUs: number;
  readonly least: number;
  readonly most: number;
}

/**
 * An answer that took longer may count from when its agent's uptime says that it was read, which is no earlier than it
 * was asked for (docs/recording-format.md).
 */
const LONG_UNDER_WAY_US = 20e3;

function answersOf(recording: string, from: string): Answer[] {
  const columns = "time,out_octets";
  const of = ["interfaces", "--device", LATE, "--label", "interface=eth0", "--columns", columns, "--received"];
  return run(["query", recording, ...of, "--from", from, "--json"])
    .trim()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as { time: string; received: string | null; out_octets: number | null })
    .flatMap(({ time, received, out_octets: octets }) =>
      received === null || octets === null
        ? []
        : [{ dueUs: Date.parse(time) * 1000, receivedUs: microseconds(received), octets }],
    )
    .sort((left, right) => left.dueUs - right.dueUs);
}

/** `Date` has milliseconds, which are 1 % of an interval. */
function microseconds(time: string): number {
  const [, seconds = "", fraction = ""] = /^(.*:\d\d)(?:\.(\d+))?Z$/.exec(time) ?? [];
  return Date.parse(`${seconds}Z`) * 1000 + Number(`0.${fraction}`) * 1e6;
}

function rates(answers: readonly Answer[]): (answer: Answer, before: number) => Rates {
  const readUs = ({ dueUs, receivedUs }: Answer): number =>
    receivedUs - dueUs > LONG_UNDER_WAY_US ? dueUs : receivedUs;
  return (answer, index) => {
    const before = answers[index] ?? answer;
    const counted = answer.octets - before.octets;
    const longestUs = answer.receivedUs - readUs(before);
    const shortestUs = Math.max(1, readUs(answer) - before.receivedUs);
    return { dueUs: answer.dueUs, least: (counted * 1e6) / longestUs, most: (counted * 1e6) / shortestUs };
  };
}

/** What the browser complained about, policy violations among it. */
const complaints: string[] = [];

async function open(hash: string, size?: { width: number; height: number }): Promise<Page> {
  const page = await on.browser.context.newPage();
  if (size) await page.setViewportSize(size);
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(`${on.server.address}#${hash}`);
  await until("the strip is painted", () => page.evaluate(() => window.__meikyo.paints > 0));
  return page;
}

const hash = (page: Page): Promise<string> => page.evaluate(() => decodeURIComponent(window.location.hash));
/** The address follows the view within a fifth of a second. */
const addressed = (page: Page, what: RegExp, not = false): Promise<boolean> =>
  until(`the address ${not ? "lacks" : "has"} ${what}`, async () => what.test(await hash(page)) !== not);
const painted = (page: Page): Promise<number> => page.evaluate(() => window.__meikyo.lastPaintedUs);

/** The shown window, read from the address. */
async function shownWindow(page: Page): Promise<{ fromUs: number; toUs: number }> {
  const [from = "", to = ""] = (/[?&]t=([^&]+)/.exec(await hash(page))?.[1] ?? "").split("..");
  return { fromUs: Date.parse(from) * 1000, toUs: Date.parse(to) * 1000 };
}

describe("live", () => {
  it("paints new intervals all the time, and counts them", async () => {
    const page = await open("cluster?bench=1");
    const before = await page.evaluate(() => ({ ...window.__meikyo }));
    await until("twenty new paints", () =>
      page.evaluate((paints) => window.__meikyo.paints >= paints + 20, before.paints),
    );
    const after = await page.evaluate(() => ({ ...window.__meikyo }));
    expect(after.lastPaintedInterval).toBeGreaterThan(before.lastPaintedInterval + 15);
    expect(after.lastPaintedUs / 1e6).toBeGreaterThan(Date.now() / 1000 - 5);
    await page.close();
  });

  it("keeps the lines of the busiest as long as the window stays, while others become the busiest", async () => {
    // There is room for the list of those that are the busiest at this moment. A window of another size has
    // room for another number of lines, and they are chosen for it: it has its size before the page is opened.
    const page = await open("cluster?t=-5s", { width: 1440, height: 1300 });
    const names = async (): Promise<string[]> => (await page.locator("div.keys > span").allTextContents()).slice(1);
    const busiest = async (): Promise<string[]> =>
      (await page.locator("table[aria-label='Devices with most'] tbody td:first-child").allTextContents()).slice(0, 4);
    await until("the busiest are listed", async () => (await busiest()).length === 4);
    // The list takes room from the lines, for which others may be chosen then, once: those are meant that stay.
    const before = await until("lines stay as they were chosen", async () => {
      const chosen = await names();
      const paints = await page.evaluate(() => window.__meikyo.paints);
      await until("it is painted on", () => page.evaluate((paints) => window.__meikyo.paints >= paints + 10, paints));
      return chosen.length === 4 && (await names()).join() === chosen.join() && chosen;
    });
    const now = await until("others are the busiest", async () => {
      const ranked = await busiest();
      return ranked.length === 4 && ranked.some((name) => !before.includes(name)) && ranked;
    });
    expect(await names()).toEqual(before);
    // On request they are chosen anew, and others stand there.
    expect(now).not.toEqual(before);
    await until("others are chosen", async () => {
      await page.getByRole("button", { name: "choose again" }).click();
      return (await names()).join() !== before.join();
    });
    await page.close();
  });

  it("shows in pixels the number of the interval that is painted", async () => {
    const page = await open("cluster?bench=1");
    await until("an interval is painted", () => page.evaluate(() => window.__meikyo.paints > 0));
    // Both are written in the same animation frame, so they agree in any later task.
    const { read, counted } = await page.evaluate(() => {
      const canvas = document.querySelector<HTMLCanvasElement>("#interval-cells");
      const data = canvas?.getContext("2d")?.getImageData(0, 0, 140, 4).data ?? new Uint8ClampedArray();
      const white = (cell: number): number => ((data[(cell * 4 + 1 + 140) * 4] ?? 0) > 127 ? 1 : 0);
      let number = 0;
      for (let cell = 2; cell < 34; cell += 1) number = number * 2 + white(cell);
      return { read: number, counted: window.__meikyo.lastPaintedInterval % 2 ** 32 };
    });
    expect(read).toBe(counted);
    await page.close();
  });

  it("shows the values that the recording holds", async () => {
    const page = await open(`cluster?t=-10s&tables=1&rows=series&find=eth0&dev=${LATE}`);
    await until("it has been recorded for longer than the window", async () => {
      const told = await page.evaluate(
        async () => (await fetch("api/v1/recordings")).json() as Promise<{ from_us: number; to_us: number }[]>,
      );
      return (told[0]?.to_us ?? 0) - (told[0]?.from_us ?? 0) > 13e6;
    });
    await page.keyboard.press("Space");
    await addressed(page, /\.\./);
    const { fromUs, toUs } = await shownWindow(page);
    const cells = page.locator("tr", { has: page.locator("td", { hasText: `${LATE} eth0` }) }).locator("td");
    // A reading this near to an edge of the window may be in a pixel on either side of it.
    const edgeUs = 250e3;
    const iso = (us: number): string => new Date(us / 1000).toISOString();
    // Independent of server and page: the rates between two answers from what the command line reads, when all of the
    // window are written.
    const pairs = await until("the recording holds readings of the window and after it", async () => {
      const answers = answersOf(on.measuring.recording, iso(fromUs - 4 * edgeUs));
      return answers.some(({ dueUs }) => dueUs > toUs + edgeUs) && answers.slice(1).map(rates(answers));
    });
    const within = (beyondUs: number): readonly Rates[] =>
      pairs.filter(({ dueUs }) => dueUs > fromUs - beyondUs && dueUs < toUs + beyondUs);
    expect(within(-edgeUs).length).toBeGreaterThan(80);
    const least = Math.max(...within(-edgeUs).map((pair) => pair.least)) * 8;
    const most = Math.max(...within(edgeUs).map((pair) => pair.most)) * 8;
    // As it came live, and read from the recording.
    for (const way of ["live", "reloaded"]) {
      if (way === "reloaded") await page.reload();
      // While the window is still being read the greatest of what came so far stands there.
      let text = "";
      const wanted = (): string => `the table shows ${least} to ${most} bit/s, not ${text}, ${way}`;
      await until(wanted, async () => {
        text = (await cells.nth(4).textContent()) ?? "";
        const words = text.split("\u202f");
        const factor = { "bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9 }[words.at(-1) ?? ""] ?? Number.NaN;
        const shown = Number(words.slice(0, -1).join("")) * factor;
        return shown > least * 0.98 && shown < most * 1.02;
      });
    }
    await page.close();
  });
});

describe("time", () => {
  it("pauses the view, and not the recording", async () => {
    const page = await open("cluster");
    await page.keyboard.press("Space");
    await addressed(page, /\.\./);
    const { toUs } = await shownWindow(page);
    await until("the recording has gone on", async () => {
      const told = await page.evaluate(
        async () => (await fetch("api/v1/recordings")).json() as Promise<{ to_us: number }[]>,
      );
      return (told[0]?.to_us ?? 0) > toUs + 4e6;
    });
    expect((await shownWindow(page)).toUs).toBe(toUs);
    // The address has whole seconds.
    expect(await painted(page)).toBeLessThan(toUs + 1e6);
    await page.keyboard.press("Space");
    await until("it is live again", async () => (await painted(page)) > toUs + 3e6);
    await page.close();
  });

  it("is chosen by dragging in the overview", async () => {
    const page = await open("cluster?t=-5s");
    const box = await page.locator(".overview canvas").boundingBox();
    if (box === null) throw new Error("there is no overview");
    await page.mouse.move(box.x + box.width * 0.1, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.3, box.y + 20, { steps: 4 });
    await page.mouse.up();
    const { fromUs, toUs } = await until("the time is chosen", async () => {
      const shown = await shownWindow(page);
      return Number.isFinite(shown.toUs) && shown;
    });
    expect(toUs).toBeGreaterThan(fromUs);
    expect(await page.locator(".time .now button").textContent()).toContain("Paused");
    await page.close();
  });

  it("is zoomed by the wheel around the pointer, and typed", async () => {
    const page = await open("cluster?t=-20s");
    await page.keyboard.press("Space");
    await addressed(page, /\.\./);
    const before = await shownWindow(page);
    const box = await page.locator("canvas.strip").first().boundingBox();
    if (box === null) throw new Error("there is no strip");
    await page.mouse.move(box.x + 66 + (box.width - 66) / 2, box.y + 40);
    await page.mouse.wheel(0, -100);
    const after = await until("it is zoomed", async () => {
      const now = await shownWindow(page);
      return now.toUs - now.fromUs < before.toUs - before.fromUs && now;
    });
    const middle = (of: { fromUs: number; toUs: number }): number => (of.fromUs + of.toUs) / 2;
    expect(Math.abs(middle(after) - middle(before))).toBeLessThan((before.toUs - before.fromUs) * 0.02);
    await page.keyboard.press("t");
    await page.keyboard.type("-15m");
    await page.keyboard.press("Enter");
    await addressed(page, /t=-15m/);
    await page.close();
  });
});

describe("what is typed", () => {
  it("stays where it cannot be read as a time, and the page says so", async () => {
    const page = await open("cluster?t=-10s");
    await page.keyboard.press("t");
    await page.keyboard.type("last tuesday");
    await page.keyboard.press("Enter");
    await page.getByText("Cannot read that time.").waitFor();
    expect(await page.locator("#jump").inputValue()).toBe("last tuesday");
    await page.keyboard.press("Escape");
    await until("it is as before", async () => (await page.getByText("Cannot read that time.").count()) === 0);
    expect(await hash(page)).toContain("t=-10s");
    await page.close();
  });
});

describe("selection and links", () => {
  it("a rectangle in the strip selects devices and time, and the link shows another person the same", async () => {
    const page = await open("cluster?t=-10s");
    await page.keyboard.press("Space");
    const box = await page.locator("canvas.strip").first().boundingBox();
    if (box === null) throw new Error("there is no strip");
    await page.mouse.move(box.x + box.width * 0.4, box.y + 6);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.7, box.y + 30, { steps: 4 });
    await page.mouse.up();
    await addressed(page, /dev=node.*sel=/);
    const address = await hash(page);
    const card = page.locator("section[aria-label=Selection]");
    await until("the selection has numbers", async () =>
      (await card.locator("dd").first().textContent())?.includes("bit/s"),
    );
    const other = await on.browser.context.newPage();
    await other.goto(page.url());
    const same = other.locator("section[aria-label=Selection]");
    await until("the other page shows the same", async () => (await same.textContent()) === (await card.textContent()));
    expect(await hash(other)).toBe(address);
    await other.close();
    await page.close();
  });

  it("then and now stand on one scale, aligned by the marker", async () => {
    const page = await open("then?t=-2s");
    await until("something has been recorded before", async () => {
      const told = await page.evaluate(
        async () => (await fetch("api/v1/recordings")).json() as Promise<{ from_us: number; to_us: number }[]>,
      );
      return (told[0]?.to_us ?? 0) - (told[0]?.from_us ?? 0) > 8e6;
    });
    await page.locator("input[aria-label='Moment of the past']").fill("-6s");
    await page.keyboard.press("Enter");
    await addressed(page, /mark=/);
    await until(
      "the means are there",
      async () => (await page.locator("section[aria-label=Facts] tbody tr").count()) > 5,
    );
    const numbers = page.locator("section[aria-label=Facts] tbody tr").first().locator("td");
    await until("ratios are there", async () => /^\d/.test((await numbers.nth(3).textContent()) ?? ""));
    expect(await page.locator("canvas.strip").count()).toBe(3);
    await page.getByRole("button", { name: "ratio", exact: true }).click();
    await addressed(page, /compare=ratio/);
    await page.close();
  });
});

describe("keyboard and themes", () => {
  it("everything is reached by keys", async () => {
    const page = await open("cluster");
    await page.keyboard.press("/");
    await page.keyboard.type("node00");
    await page.keyboard.press("Enter");
    await addressed(page, /find=node00/);
    await page.keyboard.press("Escape");
    await addressed(page, /find/, true);
    await page.keyboard.press("?");
    expect(await page.locator("dialog[open]").textContent()).toContain("pause the view");
    await page.keyboard.press("Escape");
    await until("the help is closed", async () => (await page.locator("dialog[open]").count()) === 0);
    await page.keyboard.press("b");
    await page.locator("[aria-label='Table of the strip']").waitFor();
    await page.locator("canvas.grid").focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    await addressed(page, /dev=node002/);
    for (const [key, view] of [
      ["3", "device"],
      ["4", "fabric"],
      ["5", "data"],
      ["2", "then"],
      ["1", "cluster"],
    ] as const) {
      await page.keyboard.press(key);
      await addressed(page, new RegExp(`^#${view}`));
    }
    await page.keyboard.press("r");
    await addressed(page, /dev=/, true);
    await page.close();
  });

  it("is dark or light as the system is, or as the person says", async () => {
    const page = await open("cluster");
    const theme = (): Promise<string | undefined> => page.evaluate(() => document.documentElement.dataset["theme"]);
    expect(await theme()).toBe("dark");
    await page.emulateMedia({ colorScheme: "light" });
    await until("it follows the system", async () => (await theme()) === "light");
    await page.keyboard.press("d");
    await until("it follows the person", async () => (await theme()) === "dark");
    await page.close();
  });
});

describe("trouble", () => {
  it("a server that was killed is joined again without a reload", async () => {
    const page = await open("cluster?t=-20s");
    await page.evaluate(() => {
      document.body.dataset["kept"] = "yes";
    });
    const port = new URL(on.server.address).port;
    await on.server.stop("SIGKILL");
    await page.getByText("The server does not answer.").waitFor();
    const gone = await painted(page);
    on.server = await served([on.measuring.recording], ["--listen", `127.0.0.1:${port}`]);
    await until("it paints again", async () => (await painted(page)) > gone + 2e6);
    expect(await page.getByText("The server does not answer.").count()).toBe(0);
    expect(await page.evaluate(() => document.body.dataset["kept"])).toBe("yes");
    await page.close();
  });

  it("an address that makes no sense opens the usual view and says so", async () => {
    const page = await open("cluster?t=yesterday");
    expect(await page.getByText("t=yesterday").count()).toBe(1);
    await page.close();
  });

  it("the browser had nothing to complain about but the server that was killed", () => {
    // With `MEIKYO_PAGE` the server that stands before it says 502 while it is gone.
    const gone = /ERR_CONNECTION|WebSocket connection|Failed to load resource: (net::|.* 502 )/;
    expect(complaints.filter((text) => !gone.test(text))).toEqual([]);
  });
});
