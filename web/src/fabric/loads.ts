/** What the trunks of a fabric carry, from the means of their interfaces. */

import type { FabricBody, SeriesBody } from "../api/types.ts";

export interface TrunkLoad {
  /** The fuller direction, as a share of what the trunk can carry; null where nothing is measured. */
  readonly share: number | null;
  /** bit/s in that direction. */
  readonly bitsPerS: number | null;
}

/** Octets a second in one direction, by number of the interface's series, as the server gives means of them. */
export type Means = ReadonlyMap<number, number>;

/**
 * The load of each trunk: what either end sends (or receives) over all its cables, the greater of the two. An end of
 * which not every cable is measured counts as not measured.
 */
export function trunkLoads(fabric: FabricBody, series: readonly SeriesBody[], means: Means): readonly TrunkLoad[] {
  const numbers = new Map(
    series.map(({ labels, ordinal }) => [`${labels["device"] ?? ""}\u0000${labels["interface"] ?? ""}`, ordinal]),
  );
  return fabric.trunks.map((trunk) => {
    const ends = trunk.ends.map(({ switch: at, interfaces }) => {
      const device = fabric.switches[at]?.name ?? "";
      const sent = interfaces.map((name) => means.get(numbers.get(`${device}\u0000${name}`) ?? -1));
      return sent.every((value) => value !== undefined)
        ? sent.reduce<number>((all, value) => all + (value ?? 0), 0) * 8
        : null;
    });
    const known = ends.filter((bits) => bits !== null);
    if (known.length === 0) return { share: null, bitsPerS: null };
    const bitsPerS = Math.max(...known);
    return { share: bitsPerS / trunk.rate_bits_per_s, bitsPerS };
  });
}
