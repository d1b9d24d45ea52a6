import { defineConfig } from "vitest/config";

/** Tests of the whole page in a real browser against the real program; `MEIKYO_BIN` names it. */
export default defineConfig({
  test: {
    include: ["tests/**/*.page.ts"],
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
