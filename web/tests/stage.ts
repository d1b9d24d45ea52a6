/** What most tests of the page play on: a measurement, its server, a browser. Each test file has its own. */

import { afterAll, beforeAll } from "vitest";
import { type Browser, openBrowser } from "./browser.ts";
import { directory, measured, served } from "./program.ts";

export interface Stage {
  measuring: Awaited<ReturnType<typeof measured>>;
  server: Awaited<ReturnType<typeof served>>;
  browser: Browser;
}

export interface Props {
  readonly hosts: number;
  readonly switches: number;
  /** Added to the cluster file. */
  readonly rules?: string;
  /** What happens to the devices: `at 5s die node002`. */
  readonly events?: readonly string[];
  /** More arguments of `meikyo serve`, given the directory of it all. */
  readonly serve?: (path: string) => readonly string[];
}

/** Sets the stage before the tests of the file and clears it after them. */
export function stage({ hosts, switches, rules = "", events = [], serve = () => [] }: Props): Stage {
  const place = directory();
  const on = {} as Stage;
  beforeAll(async () => {
    on.measuring = await measured(place.path, hosts, switches, rules, events);
    on.server = await served([on.measuring.recording], ["--listen", "127.0.0.1:0", ...serve(place.path)]);
    on.browser = await openBrowser();
  });
  afterAll(async () => {
    await on.browser?.close();
    await on.server?.stop();
    await on.measuring?.stop();
    place.remove();
  });
  return on;
}
