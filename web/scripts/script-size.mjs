// The scripts of the first load must stay small: at most 150 KB (153,600 octets) gzip. Exits 1 beyond that.

import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const LIMIT_BYTES = 150 * 1024;
const folder = new URL("../dist/assets/", import.meta.url);
const scripts = readdirSync(folder).filter((name) => name.endsWith(".js"));
const bytes = scripts.reduce(
  (sum, name) => sum + gzipSync(readFileSync(new URL(name, folder)), { level: 9 }).length,
  0,
);
console.log(JSON.stringify({ script_gzip_bytes: bytes, limit_bytes: LIMIT_BYTES, scripts: scripts.length }));
if (scripts.length === 0 || bytes > LIMIT_BYTES) process.exit(1);
