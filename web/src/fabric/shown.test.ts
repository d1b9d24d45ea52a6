import { expect, it } from "vitest";
import type { FabricBody } from "../api/types.ts";
import { bandOf, hostsWords, laned, pairsOf, vlansWords } from "./shown.ts";

const end = (at: number) => ({ switch: at, interfaces: ["p"] });
const fabric = (vlans: readonly number[][], hosts: readonly number[]): FabricBody => ({
  name: "f",
  switches: hosts.map((amount, at) => ({ name: `sw${at}`, x: 0, y: 0, hosts: amount, host_names: "" })),
  trunks: [
    { ends: [end(0), end(1)], rate_bits_per_s: 1, vlans: vlans[0] ?? [] },
    { ends: [end(1), end(0)], rate_bits_per_s: 1, vlans: vlans[1] ?? [] },
    { ends: [end(1), end(2)], rate_bits_per_s: 1, vlans: [1] },
  ],
  vlans: Array.from({ length: 9 }, (_, at) => ({ vlan: at + 1, purpose: "frames", sources: [] })),
});

it("trunks between the same two switches lie beside one another, as wide as all their VLANs", () => {
  const of = fabric(
    [
      [1, 2, 3],
      [4, 5],
    ],
    [2, 2, 2],
  );
  expect(pairsOf(of)).toEqual([
    { ends: [0, 1], trunks: [0, 1] },
    { ends: [1, 2], trunks: [2] },
  ]);
  // Three lanes, a gap, and two lanes of 3 pixels each.
  expect(bandOf(of, pairsOf(of))).toBe(18);
  expect(laned(of)).toBe(true);
  expect(laned(fabric([[1, 2, 3, 4, 5, 6, 7], []], [2, 2, 2]))).toBe(false);
});

it("hosts are told once where they are dealt evenly, and VLANs in a row are folded", () => {
  expect(
    [
      [4, 4, 4],
      [4, 4, 0],
      [4, 3, 0],
      [0, 0, 0],
      [1, 1, 1],
    ].map((hosts) => hostsWords(fabric([], hosts)).replaceAll("\u202f", " ")),
  ).toEqual(["4 hosts on each", "4 hosts on each of 2 switches", "7 hosts", "no hosts", "1 host on each"]);
  expect(vlansWords([])).toBe("none");
  expect(vlansWords([104, 101, 102, 103, 107, 109, 110])).toBe("101-104, 107, 109, 110");
});
