/** A fabric made ready to be drawn: pairs of switches, trunks between them, words of their hosts, lanes of their VLANs. */

import type { FabricBody, FabricTrunkBody, FabricVlanBody } from "../api/types.ts";
import { plural } from "../words/names.ts";
import { quantityText, share } from "../words/quantity.ts";
import type { TrunkLoad } from "./loads.ts";
import { LANE_PX, LANES_MAX, lanesOf } from "./vlan_inks.ts";

export interface Pair {
  readonly ends: readonly [number, number];
  /** Places of the trunks between the two. */
  readonly trunks: readonly number[];
}

/** Pairs of switches that trunks join, each once. */
export function pairsOf(fabric: FabricBody): Pair[] {
  const pairs = new Map<string, { ends: [number, number]; trunks: number[] }>();
  fabric.trunks.forEach((trunk, place) => {
    const [one, other] = trunk.ends.map((end) => end.switch);
    if (one === undefined || other === undefined || one === other) return;
    const ends: [number, number] = [Math.min(one, other), Math.max(one, other)];
    const pair = pairs.get(ends.join());
    if (pair === undefined) pairs.set(ends.join(), { ends, trunks: [place] });
    else pair.trunks.push(place);
  });
  return [...pairs.values()];
}

/** Places of a trunk's VLANs in the fabric's list. */
export function placesOf(fabric: FabricBody, trunk: FabricTrunkBody): number[] {
  const numbers = new Set(trunk.vlans);
  return fabric.vlans.flatMap(({ vlan }, place) => (numbers.has(vlan) ? [place] : []));
}

/** Whether every trunk's VLANs can be drawn side by side. */
export function laned(fabric: FabricBody): boolean {
  return fabric.trunks.every(({ vlans }) => vlans.length <= LANES_MAX);
}

/** Where there are more, lines are thin. */
const MANY_PAIRS = 120;

/** Pixels of a trunk that is one line. */
export function thickness(pairs: readonly Pair[]): number {
  return pairs.length > MANY_PAIRS ? 3 : 5;
}

/** Pixels of the widest line between two switches, all its trunks and VLANs beside one another. */
export function bandOf(fabric: FabricBody, pairs: readonly Pair[]): number {
  const each = (place: number): number => {
    const trunk = fabric.trunks[place];
    return trunk !== undefined && laned(fabric)
      ? Math.max(2, lanesOf(placesOf(fabric, trunk)).length) * LANE_PX
      : thickness(pairs);
  };
  return Math.max(
    thickness(pairs),
    ...pairs.map(({ trunks }) => trunks.reduce((sum, place) => sum + each(place), 0) + (trunks.length - 1) * LANE_PX),
  );
}

/** How many hosts there are on each switch that has some; null where they differ. */
export function hostsOnEach(fabric: FabricBody): number | null {
  const counts = new Set(fabric.switches.map(({ hosts }) => hosts).filter((hosts) => hosts > 0));
  return counts.size === 1 ? ([...counts][0] ?? null) : null;
}

/** Hosts in words: once for all where they are dealt evenly. */
export function hostsWords(fabric: FabricBody): string {
  const each = hostsOnEach(fabric);
  const some = fabric.switches.filter(({ hosts }) => hosts > 0).length;
  if (each === null)
    return some === 0
      ? "no hosts"
      : `${plural(
          fabric.switches.reduce((sum, { hosts }) => sum + hosts, 0),
          "host",
        )}`;
  return `${plural(each, "host")} on each${some === fabric.switches.length ? "" : ` of ${plural(some, "switch")}`}`;
}

/** Numbers of VLANs, those in a row folded: `101-104, 107`. */
export function vlansWords(vlans: readonly number[]): string {
  const runs: [number, number][] = [];
  for (const vlan of [...vlans].sort((one, other) => one - other)) {
    const last = runs.at(-1);
    if (last !== undefined && vlan === last[1] + 1) last[1] = vlan;
    else runs.push([vlan, vlan]);
  }
  return (
    runs
      .map(([from, to]) => {
        if (from === to) return `${from}`;
        return to === from + 1 ? `${from}, ${to}` : `${from}-${to}`;
      })
      .join(", ") || "none"
  );
}

export function trunkWords(fabric: FabricBody, place: number, load: TrunkLoad | null): string {
  const trunk = fabric.trunks[place];
  const names = (trunk?.ends ?? []).map((end) => fabric.switches[end.switch]?.name ?? "").join(" to ");
  if (load?.bitsPerS != null)
    return `${names}: ${quantityText(load.bitsPerS / 8, "bytes/s")}${load.share === null ? "" : `, ${share(load.share, 1)} of its rate`}`;
  return `${names}: ${trunk?.vlans.length === 1 ? "VLAN" : "VLANs"} ${vlansWords(trunk?.vlans ?? [])}`;
}

export function purposeWords(vlan: FabricVlanBody): string {
  switch (vlan.purpose) {
    case "failures":
      return "spare, for failures";
    case "management":
      return "management";
    default:
      return "frames";
  }
}
