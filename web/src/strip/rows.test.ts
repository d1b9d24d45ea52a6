import { describe, expect, it } from "vitest";
import { buildRows, LABEL_STEP_PX, labelPlaces, matches } from "./rows.ts";

const devices = [
  { ordinal: 0, name: "node1", role: "host", group: "rack1", agent: null },
  { ordinal: 1, name: "node2", role: "host", group: "rack2", agent: null },
  { ordinal: 2, name: "node3", role: "host", group: "rack1", agent: null },
  { ordinal: 3, name: "sw1", role: "switch", group: null, agent: null },
] as const;
const series = [
  { ordinal: 0, labels: { device: "node3", interface: "eth0" } },
  { ordinal: 1, labels: { device: "node1", interface: "eth0" } },
  { ordinal: 2, labels: { device: "node1", interface: "eth1" } },
  { ordinal: 5, labels: { device: "stranger", interface: "eth0" } },
];

describe("rows", () => {
  it("are devices by group, silent ones included", () => {
    const { rows, rowOf, groups } = buildRows(devices, series, "devices", "");
    expect(rows.map(({ name }) => name)).toEqual(["node1", "node3", "node2", "sw1", "stranger"]);
    expect([...rowOf]).toEqual([1, 0, 0, -1, -1, 4]);
    expect(groups).toEqual([
      { name: "rack1", first: 0, rows: 2 },
      { name: "rack2", first: 2, rows: 1 },
      { name: "Switches", first: 3, rows: 1 },
      { name: "Devices", first: 4, rows: 1 },
    ]);
  });

  it("are single series when asked for, and only what is searched for", () => {
    const { rows, rowOf, rowsOfDevice } = buildRows(devices, series, "series", "node1 eth");
    expect(rows.map(({ name }) => name)).toEqual(["node1 eth0", "node1 eth1"]);
    expect([...rowOf]).toEqual([-1, 0, 1, -1, -1, -1]);
    expect(rowsOfDevice.get("node1")).toEqual([0, 1]);
  });

  it("stand in natural order inside a device, as do devices that nobody listed", () => {
    const ports = ["port11", "port1", "port3", "port2"].map((name, ordinal) => ({
      ordinal,
      labels: { device: "sw1", interface: name },
    }));
    expect(buildRows(devices, ports, "series", "").rows.map(({ part }) => part)).toEqual([
      "port1",
      "port2",
      "port3",
      "port11",
    ]);
    const strangers = ["x10", "x9"].map((device, ordinal) => ({ ordinal, labels: { device, interface: "eth0" } }));
    expect(buildRows([], strangers, "devices", "").rows.map(({ name }) => name)).toEqual(["x9", "x10"]);
  });

  it("match every word", () => {
    expect(matches("node1 eth0", "ETH NODE")).toBe(true);
    expect(matches("node1 eth0", "node2")).toBe(false);
    expect(matches("anything", "")).toBe(true);
  });
});

it("names of rows never touch each other and lie inside the picture, however many rows and however low", () => {
  const faults: string[] = [];
  for (let rows = 1; rows <= 400; rows += 7) {
    for (let height = 12; height <= 700; height += 17) {
      const places = labelPlaces(rows, height);
      places.forEach(({ row, y }, at) => {
        const apart = y - (places[at - 1]?.y ?? Number.NEGATIVE_INFINITY);
        const isInside = row < rows && y >= 5 && y <= height - 5;
        if (!isInside || apart < LABEL_STEP_PX - 1e-9) faults.push(`${rows} rows, ${height} px: row ${row} at ${y}`);
      });
    }
  }
  expect(faults).toEqual([]);
  expect(labelPlaces(4, 80).map(({ row }) => row)).toEqual([0, 1, 2, 3]);
});
