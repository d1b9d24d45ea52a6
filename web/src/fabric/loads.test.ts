import { expect, it } from "vitest";
import type { FabricBody } from "../api/types.ts";
import { trunkLoads } from "./loads.ts";

const FABRIC: FabricBody = {
  name: "two",
  switches: [
    { name: "sw1", x: 0, y: 0, hosts: 1, host_names: "h1" },
    { name: "sw2", x: 1, y: 0, hosts: 1, host_names: "h2" },
  ],
  trunks: [
    {
      ends: [
        { switch: 0, interfaces: ["swp47", "swp48"] },
        { switch: 1, interfaces: ["swp1", "swp2"] },
      ],
      rate_bits_per_s: 2e9,
      vlans: [101],
    },
  ],
  vlans: [{ vlan: 101, purpose: "frames", sources: [0, 1] }],
};
const series = (...names: readonly (readonly [string, string])[]) =>
  names.map(([device, name], ordinal) => ({ labels: { device, interface: name }, ordinal }));

it("is the fuller direction over all cables, as a share of their rate", () => {
  const known = series(["sw1", "swp47"], ["sw1", "swp48"], ["sw2", "swp1"], ["sw2", "swp2"]);
  const loads = trunkLoads(
    FABRIC,
    known,
    new Map([
      [0, 10e6],
      [1, 15e6],
      [2, 50e6],
      [3, 0],
    ]),
  );
  expect(loads).toEqual([{ share: 0.2, bitsPerS: 400e6 }]);
});

it("takes an end with an unmeasured cable for unmeasured, and says nothing without either", () => {
  const known = series(["sw1", "swp47"], ["sw1", "swp48"], ["sw2", "swp1"]);
  expect(
    trunkLoads(
      FABRIC,
      known,
      new Map([
        [0, 1e6],
        [1, 1e6],
        [2, 90e6],
      ]),
    ),
  ).toEqual([{ share: 0.008, bitsPerS: 16e6 }]);
  expect(trunkLoads(FABRIC, known, new Map([[2, 90e6]]))).toEqual([{ share: null, bitsPerS: null }]);
  expect(trunkLoads(FABRIC, [], new Map())).toEqual([{ share: null, bitsPerS: null }]);
});
