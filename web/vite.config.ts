import { defineConfig } from "vite";

/** Where `npm run dev` and `npm run preview` find a running `meikyo serve`. */
const server = process.env["MEIKYO_URL"] ?? "http://127.0.0.1:8420";
const proxy = { "/api": { target: server, ws: true } };

export default defineConfig({
  // Relative addresses: the same files work at `/` and under a proxy's path prefix.
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
    // A strict content security policy refuses `data:` addresses, so nothing is inlined.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
  },
  server: { proxy },
  preview: { proxy },
});
