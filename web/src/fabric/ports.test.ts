import { expect, it } from "vitest";
import type { FabricBody, SeriesBody } from "../api/types.ts";
import { portsOf } from "./ports.ts";

const fabric = {
  name: "pair",
  vlans: [],
  switches: ["sw1", "sw2"].map((name) => ({ name, x: 0, y: 0, hosts: 0, host_names: "" })),
  trunks: [
    {
      ends: [
        { switch: 0, interfaces: ["port1", "port2"] },
        { switch: 1, interfaces: ["port7", "port8"] },
      ],
      rate_bits_per_s: 2e9,
      vlans: [],
    },
  ],
} as FabricBody;

it("ports of trunks are told apart from the other ports of their switches, and from other devices", () => {
  const series = [
    ["sw1", "port1"],
    ["sw1", "port3"],
    ["sw2", "port8"],
    ["node1", "port1"],
  ].map(
    ([device, name], ordinal) => ({ ordinal, labels: { device: device ?? "", interface: name ?? "" } }) as SeriesBody,
  );
  const { trunks, switches } = portsOf(fabric, series);
  expect(trunks.map(({ ordinal }) => ordinal)).toEqual([0, 2]);
  expect(switches.map(({ ordinal }) => ordinal)).toEqual([0, 1, 2]);
});
