// @vitest-environment node
import { beforeAll, expect, it } from "vitest";
import { curlProgram, duckdbProgram, exportPath, pythonProgram, type Shown, shellWord } from "./programs.ts";

const SHOWN: Shown = {
  recording: "demo run",
  name: "demo run",
  table: "interfaces",
  columns: ["device", "interface", "out_octets"],
  devices: ["node1", "o'neil"],
  bounds: { fromUs: Date.UTC(2026, 10, 21, 18) * 1000, toUs: Date.UTC(2026, 10, 21, 19) * 1000 + 500_000 },
};

beforeAll(() => {
  Object.assign(globalThis, { document: { baseURI: "http://example.invalid/meikyo/#cluster" } });
});

it("addresses keep the prefix and say table, columns, devices and times", () => {
  const address = new URL(exportPath(SHOWN, "csv"), "http://example.invalid/meikyo/");
  expect(address.pathname).toBe("/meikyo/api/v1/recordings/demo%20run/export");
  expect(address.searchParams.getAll("device")).toEqual(["node1", "o'neil"]);
  expect(address.searchParams.get("columns")).toBe("device,interface,out_octets");
  expect(address.searchParams.get("to")).toBe("2026-11-21T19:00:00.5Z");
});

it("programs are quoted", () => {
  expect(curlProgram(SHOWN)).toContain("http://example.invalid/meikyo/api/v1/");
  expect(shellWord("a'b")).toBe(`'a'\\''b'`);
  expect(duckdbProgram(SHOWN)).toContain("device IN ('node1', 'o''neil')");
  expect(pythonProgram(SHOWN)).toContain("pandas.read_parquet");
});

it("too many devices become all of them", () => {
  const many = { ...SHOWN, devices: Array.from({ length: 500 }, (_, at) => `node${at}`) };
  expect(duckdbProgram(many)).not.toContain("device IN");
});
