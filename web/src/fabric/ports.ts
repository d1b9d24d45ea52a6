/** Which of the measured interfaces are ports of the fabric. */

import type { FabricBody, SeriesBody } from "../api/types.ts";

/** The series of ports that trunks are plugged into, and of those the switches. */
export function portsOf(
  fabric: FabricBody,
  series: readonly SeriesBody[],
): { readonly trunks: readonly SeriesBody[]; readonly switches: readonly SeriesBody[] } {
  const ports = new Set(
    fabric.trunks.flatMap(({ ends }) =>
      ends.flatMap(({ switch: at, interfaces }) =>
        interfaces.map((name) => `${fabric.switches[at]?.name ?? ""}\u0000${name}`),
      ),
    ),
  );
  const names = new Set(fabric.switches.map(({ name }) => name));
  return {
    trunks: series.filter(({ labels }) => ports.has(`${labels["device"] ?? ""}\u0000${labels["interface"] ?? ""}`)),
    switches: series.filter(({ labels }) => names.has(labels["device"] ?? "")),
  };
}
