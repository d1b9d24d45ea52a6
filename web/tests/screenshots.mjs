// Makes a picture of every view.
//
//   npm run screenshots -- FOLDER     for the documentation: ../docs/pictures (needs the program, MEIKYO_BIN)
//   MEIKYO_URL=http://127.0.0.1:8420/ npm run screenshots -- FOLDER     of a running `meikyo serve`, in both themes
//       and at three widths, to be looked at; its recordings of samples and of checkpoints are called so
//
// Names of views behind FOLDER take only those.
//
// Without an address the script measures 32 hosts and 8 switches that answer SNMP on the loopback network, has one
// host go silent and another lose requests, samples a program of its own, has an MPI program protected and kills one of
// its hosts, has three smaller clusters sent to a second server, and takes the pictures while the measurements run.
// Sampling and capturing need root, capturing also CRIU (MEIKYO_CRIU, or that of packaging/criu). Nothing is compared.

import { spawn, spawnSync } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { crc32, deflateSync } from "node:zlib";
import { chromium } from "playwright-core";

const folder = process.argv[2] ?? "screenshots";
const given = process.env.MEIKYO_URL;
const program = process.env.MEIKYO_BIN ?? resolve(import.meta.dirname, "../../target/release/meikyo");
/** A page of the documentation loads a picture as fast as its text. */
const BYTES_MAX = 200_000;
/** How long the cluster has been measured when the first picture is taken. */
const MEASURED_MS = 75_000;
/** How long after the first checkpoint a host of the protected program is lost. */
const LOST_MS = 12_000;
/** How long a view may take to fill. */
const PATIENCE_MS = 120_000;
/** Colours of a picture, and how many of them are rare ones. */
const COLOURS = 256;
const COLOURS_MISSED = 64;
const SIZE = { width: 1200, height: 750 };
const SIZES = [
  { width: 1000, height: 800 },
  { width: 1440, height: 900 },
  { width: 2560, height: 1300 },
];
const wanted = process.argv.slice(3);
const VIEWS = {
  cluster: { hash: "cluster?t=-1m" },
  paused: { hash: "cluster?t=-1m", prepare: selectInStrip },
  tables: { hash: "cluster?t=-1m&tables=1&rows=series" },
  then: { hash: "then?t=-20s", prepare: (page) => page.getByRole("button", { name: "1 min before" }).click() },
  device: { hash: "device?t=-1m" },
  clusters: { hash: "clusters", isOfSeveral: true },
  fabric: { hash: "fabric?t=-1m" },
  load: { hash: "fabric?t=-1m&colour=load" },
  profile: { hash: "profile?rec=profile" },
  checkpoints: { hash: "checkpoints?rec=checkpoints&t=-2m" },
  data: { hash: "data" },
  alerts: { hash: "cluster?t=-1m", prepare: (page) => page.keyboard.press("a") },
};
/** Those in the documentation: one for each view. */
const DOCUMENTED = ["cluster", "then", "device", "clusters", "fabric", "profile", "checkpoints", "data", "alerts"];

/** Added to the cluster file of the simulated agents: a fabric to draw, and rules that raise alerts. */
const MORE = `
[fabric]
topology = "torus 4x2"
management_vlan = 100

[[alerts]]
name = "silent"
silent = "2s"

[[alerts]]
name = "busy"
value = "interface:eth0(in_octets)"
above = "80MB/s"
`;
/** Clusters that are sent from afar: hosts, address of the first, faults, and who sends. */
const SENT = {
  kobe: { hosts: 24, first: "127.2.0.1", faults: [], senders: ["mon1", "mon2"] },
  osaka: { hosts: 12, first: "127.3.0.1", faults: ["at 30s die node007"], senders: ["mon1"] },
  tsukuba: { hosts: 16, first: "127.4.0.1", faults: ["at 20s set loss=4% node003"], senders: ["mon1"] },
};
const TROUBLES = ["at 40s die node017", "at 25s set loss=15% node008"];

/** What is sampled: a job that reads, sorts and compresses by turns, in functions that have names. */
const JOB = `
  const { gzipSync } = require("node:zlib");
  const lines = (count) => Array.from({ length: count }, (_, at) => JSON.stringify({ at, key: (at * 2654435761) % 1000003 }));
  function readRecords(texts) { return texts.map((text) => JSON.parse(text)); }
  function byKey(one, other) { return one.key - other.key; }
  function sortRecords(records) { return records.sort(byKey); }
  function sumOfKeys(records) { let sum = 0; for (let turn = 0; turn < 40; turn += 1) for (const { key } of records) sum += Math.sqrt(key * turn); return sum; }
  function compress(records) { return gzipSync(JSON.stringify(records)).length; }
  function step(texts) { const records = sortRecords(readRecords(texts)); return sumOfKeys(records) + compress(records); }
  const texts = lines(60000);
  const end = Date.now() + 20000;
  let sum = 0;
  while (Date.now() < end) sum += step(texts);
  require("node:fs").writeFileSync("job.pid", String(process.pid));
  process.exit(sum > 0 ? 0 : 1);
`;

mkdirSync(folder, { recursive: true });
const stage = given === undefined ? await measureCluster() : { address: given, several: given, clear: () => {} };
try {
  const browser = await chromium.launch({
    executablePath: process.env.MEIKYO_CHROMIUM ?? "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
  for (const theme of given === undefined ? ["light"] : ["dark", "light"]) {
    for (const [name, view] of Object.entries(VIEWS)) {
      if (given === undefined && !DOCUMENTED.includes(name)) continue;
      if (wanted.length > 0 && !wanted.includes(name)) continue;
      for (const size of given === undefined ? [SIZE] : SIZES) {
        const address = view.isOfSeveral ? stage.several : stage.address;
        await picture(browser, address, { theme, size, name }, view);
      }
    }
  }
  await browser.close();
} finally {
  await stage.clear();
}

/** Takes one picture. */
async function picture(browser, address, { theme, size, name }, { hash, prepare }) {
  const page = await browser.newPage({ viewport: size, colorScheme: theme, timezoneId: "UTC" });
  page.on("pageerror", (error) => console.error(`${name}: ${error}`));
  await page.goto(`${address}#${hash}`);
  await settled(page, name);
  if (prepare !== undefined) {
    await prepare(page);
    await settled(page, name);
  }
  const file = join(folder, given === undefined ? `${name}.png` : `${name}-${theme}-${size.width}.png`);
  const shot = await page.screenshot();
  await page.close();
  const small = given === undefined ? indexedPng(await pixels(browser, shot)) : shot;
  writeFileSync(file, small);
  console.log(`${file}  ${small.length} bytes`);
  if (given === undefined && small.length > BYTES_MAX) throw new Error(`${file} has more than ${BYTES_MAX} bytes`);
}

/** Waits until all was read that the view shows, strips are painted whole, and nothing has moved for a second. */
async function settled(page, name) {
  await page.locator("main h1, main h2").first().waitFor();
  const end = Date.now() + PATIENCE_MS;
  let [seen, since] = ["", Date.now()];
  while (Date.now() - since < 1000) {
    if (Date.now() > end) throw new Error(`${name}: the view did not come to rest`);
    await new Promise((resume) => setTimeout(resume, 100));
    const now = await page.evaluate(() => {
      const boxes = [...document.querySelectorAll("main section, main canvas, main h2, main .chart, main table")];
      return JSON.stringify({
        reading: /Loading|\u2026/.test(document.querySelector("main")?.textContent ?? ""),
        painted: document.querySelector("canvas[aria-busy=true]") === null,
        boxes: boxes.map((box) => box.getBoundingClientRect()).map(({ x, y, width, height }) => [x, y, width, height]),
      });
    });
    const { reading, painted } = JSON.parse(now);
    if (now !== seen || reading || !painted) [seen, since] = [now, Date.now()];
  }
}

/** A picture's pixels as red, green, blue and opacity, decoded by the browser. */
async function pixels(browser, png) {
  const page = await browser.newPage();
  const text = await page.evaluate(async (base64) => {
    const octets = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([octets], { type: "image/png" }));
    const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
    context.drawImage(bitmap, 0, 0);
    const { data } = context.getImageData(0, 0, bitmap.width, bitmap.height);
    let letters = "";
    for (let at = 0; at < data.length; at += 8192) letters += String.fromCharCode(...data.subarray(at, at + 8192));
    return btoa(letters);
  }, png.toString("base64"));
  await page.close();
  return Buffer.from(text, "base64");
}

/**
 * The picture with 256 colours: a third of the octets, and text stays sharp. Most of them are those that cover most of it,
 * the others those that would be missed most: a little gold must not become vermilion.
 */
function indexedPng(rgba) {
  const { width, height } = SIZE;
  const counts = new Map();
  for (let at = 0; at < rgba.length; at += 4) {
    const colour = rgba.readUIntBE(at, 3);
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const channels = (colour) => [colour >> 16, (colour >> 8) & 255, colour & 255];
  const distance = (a, b) => channels(a).reduce((sum, value, at) => sum + (value - channels(b)[at]) ** 2, 0);
  const byCount = [...counts].sort((a, b) => b[1] - a[1]);
  const palette = byCount.slice(0, COLOURS - COLOURS_MISSED).map(([colour]) => colour);
  const others = byCount.slice(palette.length).map(([colour, count]) => ({
    colour,
    count,
    away: Math.min(...palette.map((one) => distance(colour, one))),
  }));
  while (palette.length < COLOURS && others.length > 0) {
    const next = others.reduce((most, one) => (one.away * one.count > most.away * most.count ? one : most));
    palette.push(next.colour);
    for (const one of others) one.away = Math.min(one.away, distance(one.colour, next.colour));
  }
  const indexes = new Map(palette.map((colour, index) => [colour, index]));
  for (const colour of counts.keys()) {
    if (indexes.has(colour)) continue;
    const nearest = palette.reduce(
      (best, one, index) => (distance(one, colour) < distance(palette[best], colour) ? index : best),
      0,
    );
    indexes.set(colour, nearest);
  }
  const rows = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++)
      rows[y * (width + 1) + 1 + x] = indexes.get(rgba.readUIntBE((y * width + x) * 4, 3));
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8); // 8 bits, by palette, and the only methods there are
  const chunk = (kind, data) => {
    const body = Buffer.concat([Buffer.from(kind), data]);
    const edges = Buffer.alloc(8);
    edges.writeUInt32BE(data.length, 0);
    edges.writeUInt32BE(crc32(body), 4);
    return Buffer.concat([edges.subarray(0, 4), body, edges.subarray(4)]);
  };
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", header),
    chunk("PLTE", Buffer.from(palette.flatMap(channels))),
    chunk("IDAT", deflateSync(rows, { level: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

/** Pauses, selects a rectangle and rests the pointer on it, as a person would. */
async function selectInStrip(page) {
  await page.keyboard.press("Space");
  const box = await page.locator("canvas.strip").first().boundingBox();
  await page.mouse.move(box.x + box.width * 0.45, box.y + box.height * 0.3);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.75, box.y + box.height * 0.36, { steps: 5 });
  await page.mouse.up();
}

/** Runs the job and samples it with its callers; the interpreter says what its functions are called. */
function sample(directory) {
  const job = [process.execPath, "--perf-basic-prof", "--interpreted-frames-native-stack", "-e", JOB];
  const record = ["profile", "record", "--out", "profile", "--stacks", "--budget", "none", "--", ...job];
  const { status, stderr } = spawnSync(program, record, { cwd: directory, encoding: "utf8" });
  // Where the interpreter wrote the names.
  rmSync(`/tmp/perf-${readFileSync(join(directory, "job.pid"), "utf8")}.map`, { force: true });
  if (status !== 0) throw new Error(`the job cannot be sampled:\n${stderr}`);
}

/** Protects an MPI program on four hosts, and kills one of them when some checkpoints are whole. */
async function protect(directory, start) {
  const source = resolve(import.meta.dirname, "../../examples/checkpoint/stencil.c");
  const made = spawnSync("mpicc.mpich", ["-O2", "-o", "stencil", source], { cwd: directory, encoding: "utf8" });
  if (made.status !== 0) throw new Error(`the program to protect cannot be made:\n${made.stderr ?? made.error}`);
  const criu = process.env.MEIKYO_CRIU ?? resolve(import.meta.dirname, "../../target/criu/criu");
  const options = ["--local", "4", "--spares", "1", "--every", "2s", "--criu", criu, "--directory", "job"];
  const stencil = ["mpiexec.mpich", "-n", "4", "./stencil", "400000", "100000", "20000", "plate"];
  const run = ["checkpoint", "run", "--as-is", ...options, "--out", "checkpoints", "--", ...stencil];
  await start(run, /^checkpoint 1/);
  setTimeout(() => process.kill(container(join(directory, "job/sockets"), "node2"), "SIGKILL"), LOST_MS);
}

/** The first process of a host's container, as this machine numbers it. */
function container(sockets, host) {
  const isIts = (entry) => {
    try {
      const line = readFileSync(`/proc/${entry}/cmdline`, "utf8");
      return line.includes(`"name":"${host}"`) && line.includes(sockets);
    } catch {
      return false;
    }
  };
  const found = readdirSync("/proc").filter((entry) => /^\d+$/.test(entry) && isIts(entry));
  return Math.min(...found.map(Number));
}

/** Has clusters sent to a server of theirs; its address. */
async function sendClusters(directory, start) {
  const server = await start(["serve", "--ingest", "received", "--listen", "127.0.0.1:0"], /http:\/\//);
  const address = /http:\/\/[^\s/]+/.exec(server)[0];
  for (const [name, { hosts, first, faults, senders }] of Object.entries(SENT)) {
    const farm = ["farm", "--count", `${hosts}`, "--port", "0", "--first", first, "--write-cluster", name];
    await start([...farm, ...faults.flatMap((line) => ["--do", line])], /^ready/);
    const file = join(directory, name, "cluster.toml");
    writeFileSync(file, readFileSync(file, "utf8").replace('name = "simulated"', `name = "${name}"`));
    for (const sender of senders) {
      const who = ["--name", `${name}:measure@${sender}`, ...(senders.length > 1 ? ["--standby"] : [])];
      const send = [
        "measure",
        "--no-recording",
        "--cluster",
        file,
        "--to",
        address,
        "--spool",
        `spool-${name}-${sender}`,
      ];
      await start([...send, ...who], / ok [1-9]/);
    }
  }
  return `${address}/`;
}

/** A farm of agents, a measurement of it and its server, and a server of clusters from afar; both addresses. */
async function measureCluster() {
  const directory = mkdtempSync(join(tmpdir(), "meikyo-pictures-"));
  const cluster = join(directory, "cluster/cluster.toml");
  const running = [];
  const clear = async () => {
    for (const child of running.reverse()) {
      child.kill("SIGINT");
      if (child.exitCode === null) await new Promise((ended) => child.once("exit", ended));
    }
    rmSync(directory, { recursive: true, force: true });
  };
  /** Starts the program; the line in which it said that it was ready. */
  const start = (args, ready) =>
    new Promise((found, failed) => {
      const child = spawn(program, args, { cwd: directory, stdio: ["ignore", "pipe", "pipe"] });
      running.push(child);
      let told = "";
      const take = (piece) => {
        told += piece;
        const line = told.split("\n").find((one) => ready.test(one));
        if (line !== undefined) found(line);
      };
      child.stdout.on("data", take);
      child.stderr.on("data", take);
      child.on("error", failed);
      child.on("exit", (code) => failed(new Error(`${program} ${args.join(" ")} ended with ${code}:\n${told}`)));
    });
  try {
    const farm = ["farm", "--count", "32", "--switches", "8", "--port", "0", "--write-cluster", "cluster"];
    await start([...farm, ...TROUBLES.flatMap((line) => ["--do", line])], /^ready/);
    // Keys of the file itself end where its first section begins.
    appendFileSync(cluster, MORE);
    await start(["measure", "--cluster", cluster, "--out", "recording"], / ok [1-9]/);
    const several = await sendClusters(directory, start);
    console.log(`measuring for ${MEASURED_MS / 1000} s`);
    const measured = new Promise((resume) => setTimeout(resume, MEASURED_MS));
    sample(directory);
    await protect(directory, start);
    const recordings = ["recording", "profile", "checkpoints"];
    const server = await start(["serve", ...recordings, "--listen", "127.0.0.1:0", "--cluster", cluster], /http:\/\//);
    await measured;
    return { address: /http:\/\/\S+/.exec(server)[0], several, clear };
  } catch (error) {
    console.error(readFileSync(cluster, "utf8"));
    await clear();
    throw error;
  }
}
