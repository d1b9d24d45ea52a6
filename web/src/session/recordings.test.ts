import { expect, it } from "vitest";
import type { RecordingBody } from "../api/types.ts";
import { quantityIn, recordingTitle, trafficOf, usualRecording } from "./recordings.ts";

const recording = (id: string, name: string, from_us: number | null): RecordingBody => ({
  id,
  name,
  from_us,
  to_us: from_us,
  interval_us: null,
  kind: "measured",
  running: false,
  devices: [],
  tables: [],
});

it("recordings that are called the same are told apart by when they begin, or by their ids", () => {
  const [first, second, same, lone] = [
    recording("rec", "rec", 1e15),
    recording("rec-2", "rec", 1.1e15),
    recording("rec-3", "rec", 1.1e15),
    recording("demo", "demo", 1e15),
  ];
  const all = [first, second, same, lone];
  const titles = all.map((one) => recordingTitle(one, all));
  expect(new Set(titles).size).toBe(4);
  expect(titles[0]).toMatch(/^rec, from \d/);
  expect(titles[3]).toBe("demo");
  expect(recordingTitle(first, [first, lone])).toBe("rec");
});

it("without a name the first recording with rows is looked at, as long as it is there", () => {
  const empty = recording("received", "received", null);
  const [west, east] = [recording("west", "west", 1e15), recording("east", "east", 1e15)];
  expect(usualRecording([])).toBe(null);
  expect(usualRecording([empty])).toBe(empty);
  expect(usualRecording([empty, west, east])).toBe(west);
  // Rows that come into an earlier one later move nobody who looks.
  const filled = { ...empty, from_us: 2e15 };
  expect(usualRecording([filled, west, east])).toBe(west);
  expect(usualRecording([filled, east])).toBe(filled);
});

it("a simulated recording is never shown as a measured one", () => {
  const day = { ...recording("day", "day", 1e15), kind: "simulated" };
  expect(recordingTitle(day, [day])).toBe("day (simulated)");
  expect(recordingTitle(day, [day, recording("day-2", "day", 1.1e15)])).toMatch(/^day, from .*\(simulated\)$/);
});

const column = (name: string, shown: number | null, unit: string, meaning = "counter") => ({
  name,
  doc: "",
  words: null,
  beside: null,
  meaning,
  unit,
  shown,
});
const table = (name: string, labels: readonly string[], columns: readonly ReturnType<typeof column>[]) => ({
  name,
  doc: "",
  role: "readings",
  labels: ["device", ...labels],
  part: null,
  columns,
});

it("what is shown first, and what passes over links, follow from what tables declare and not from their names", () => {
  const power = table("amperes", ["outlet"], [column("current", 4, "A", "gauge"), column("peak", null, "A", "gauge")]);
  const ports = table(
    "lanes",
    ["interface"],
    [column("frames", 2, "packets/s"), column("down", 3, "octets/s"), column("up", 5, "octets/s")],
  );
  const of = (...tables: unknown[]): RecordingBody => ({ ...recording("rec", "rec", 1e15), tables }) as RecordingBody;
  expect(quantityIn([of(power)])).toEqual({ table: "amperes", column: "current" });
  expect(quantityIn([of(), of(power, ports)])).toEqual({ table: "lanes", column: "frames" });
  expect(trafficOf(of(power, ports))).toEqual({ table: "lanes", column: "down" });
  expect(trafficOf(of(power))).toBeNull();
});
