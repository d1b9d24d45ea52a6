/** A fabric drawn: switches where its topology puts them, trunks coloured by VLAN or by what they carry. */

import type { FabricBody, FabricVlanBody } from "../api/types.ts";
import { PALETTES, RAMP_STEPS } from "../strip/ramp.ts";
import { theme } from "../theme/theme.ts";
import { plural } from "../words/names.ts";
import { quantityText } from "../words/quantity.ts";
import type { TrunkLoad } from "./loads.ts";

/** Units of the drawing between neighbours, and around everything. */
const STEP = 120;
const MARGIN = 60;
/** Between the lines of two VLANs on one trunk. */
const APART = 4;

export interface Shown {
  readonly fabric: FabricBody;
  /** The VLAN that is looked at; null: all. */
  readonly vlan: number | null;
  /** What the trunks carry, where that is looked at. */
  readonly loads: readonly TrunkLoad[] | null;
}

/** Hues far from those of neighbours in the list. */
export function vlanColour(place: number): string {
  return `hsl(${(place * 137) % 360} 65% ${theme.value === "dark" ? 66 : 38}%)`;
}

export function loadColour(share: number): string {
  const { css } = PALETTES[theme.value];
  return css[Math.min(RAMP_STEPS - 1, Math.max(0, Math.floor(share * RAMP_STEPS)))] ?? "currentColor";
}

export function Drawing({ fabric, vlan, loads }: Shown) {
  const left = Math.min(...fabric.switches.map(({ x }) => x));
  const top = Math.min(...fabric.switches.map(({ y }) => y));
  const at = fabric.switches.map(({ x, y }) => ({ x: (x - left) * STEP + MARGIN, y: (y - top) * STEP + MARGIN }));
  const width = Math.max(...at.map(({ x }) => x)) + MARGIN;
  const height = Math.max(...at.map(({ y }) => y)) + MARGIN;
  const chosen = fabric.vlans.find((one) => one.vlan === vlan) ?? null;
  return (
    <svg class="fabric" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`${fabric.name}: ${plural(fabric.switches.length, "switch", "switches")}, ${plural(fabric.trunks.length, "trunk")}`}>
      {fabric.trunks.map((trunk, place) => {
        const [one, other] = trunk.ends.map(({ switch: of }) => at[of] ?? { x: 0, y: 0 });
        if (one === undefined || other === undefined) return null;
        const names = trunk.ends.map(({ switch: of }) => fabric.switches[of]?.name ?? "").join(" to ");
        const load = loads?.[place] ?? null;
        const title = load?.bitsPerS != null ? `${names}: ${quantityText(load.bitsPerS / 8, "bytes/s")}` : `${names}: VLANs ${trunk.vlans.join(", ") || "none"}`;
        return (
          <g key={place} data-trunk={place}>
            <title>{title}</title>
            <line class="trunk" x1={one.x} y1={one.y} x2={other.x} y2={other.y} />
            {loads === null
              ? trunk.vlans.filter((id) => vlan === null || id === vlan).map((id, line, shown) => <Line key={id} one={one} other={other} beside={(line - (shown.length - 1) / 2) * APART} stroke={vlanColour(fabric.vlans.findIndex((of) => of.vlan === id))} wide={vlan !== null} />)
              : load?.share != null && <Line one={one} other={other} beside={0} stroke={loadColour(load.share)} wide />}
          </g>
        );
      })}
      {fabric.switches.map((of, place) => (
        <g key={of.name} data-switch={of.name}>
          <title>{of.hosts === 0 ? `${of.name}: no hosts` : `${of.name}: ${of.host_names}`}</title>
          <circle class={chosen?.sources.includes(place) === true ? "source" : "switch"} cx={at[place]?.x} cy={at[place]?.y} r="18" />
          <text x={at[place]?.x} y={(at[place]?.y ?? 0) + 4} text-anchor="middle">{of.name}</text>
          {of.hosts > 0 && <text class="quiet" x={at[place]?.x} y={(at[place]?.y ?? 0) + 32} text-anchor="middle">{plural(of.hosts, "host")}</text>}
        </g>
      ))}
    </svg>
  );
}

interface Point { readonly x: number; readonly y: number }

function Line({ one, other, beside, stroke, wide }: { one: Point; other: Point; beside: number; stroke: string; wide: boolean }) {
  const length = Math.max(1, Math.hypot(other.x - one.x, other.y - one.y));
  const [dx, dy] = [((one.y - other.y) / length) * beside, ((other.x - one.x) / length) * beside];
  return <line x1={one.x + dx} y1={one.y + dy} x2={other.x + dx} y2={other.y + dy} stroke={stroke} stroke-width={wide ? 6 : 2.5} stroke-linecap="round" />;
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
