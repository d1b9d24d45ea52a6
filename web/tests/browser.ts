/** Debian's Chromium, driven by playwright-core; nothing is downloaded. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BrowserContext, chromium } from "playwright-core";
import { PATIENCE_MS } from "./program.ts";

export interface Browser {
  readonly context: BrowserContext;
  close(): Promise<void>;
}

/** A browser with a fresh profile; `MEIKYO_CHROMIUM` names another one than Debian's. */
export async function openBrowser(
  options: { width?: number; height?: number; colorScheme?: "dark" | "light" } = {},
): Promise<Browser> {
  const profile = mkdtempSync(join(tmpdir(), "meikyo-page-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env["MEIKYO_CHROMIUM"] ?? "/usr/bin/chromium",
    headless: true,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
    viewport: { width: options.width ?? 1440, height: options.height ?? 900 },
    colorScheme: options.colorScheme ?? "dark",
    reducedMotion: "reduce",
    timezoneId: "UTC",
  });
  context.setDefaultTimeout(PATIENCE_MS);
  return {
    context,
    close: async () => {
      await context.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}
