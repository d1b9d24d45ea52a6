import { defineConfig } from "vitest/config";

/** Tests count and compare, they do not measure: a loaded machine may take its time. */
export default defineConfig({ test: { include: ["src/**/*.test.ts"], testTimeout: 60_000 } });
