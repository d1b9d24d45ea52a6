/** A fabric drawn: switches as their family stands, trunks coloured by VLAN or by what they carry. */

import { useMemo } from "preact/hooks";
import type { FabricBody } from "../api/types.ts";
import { textWidth } from "../paint/text_width.ts";
import { PALETTES, RAMP_STEPS } from "../strip/ramp.ts";
import { inks, theme } from "../theme/theme.ts";
import { plural } from "../words/names.ts";
import { drawingOf, SCALE_MIN } from "./layout/layout.ts";
import { type Drawn, type Label, type Point, pathOf, shifted, TEXT_PX } from "./layout/shape.ts";
import type { TrunkLoad } from "./loads.ts";
import { bandOf, hostsOnEach, laned, type Pair, pairsOf, placesOf, thickness, trunkWords } from "./shown.ts";
import { LANE_PX, lanesOf, vlanInk } from "./vlan_inks.ts";

/** Longer names are shortened; the whole one is said when the pointer rests there. */
const NAME_MAX = 18;

export interface Shown {
  readonly fabric: FabricBody;
  /** The VLAN that is looked at; null: all. */
  readonly vlan: number | null;
  /** What the trunks carry, where that is looked at. */
  readonly loads: readonly TrunkLoad[] | null;
  readonly room: { readonly width: number; readonly height: number };
}

export function rampColour(share: number): string {
  const { css } = PALETTES[theme.value];
  return css[Math.min(RAMP_STEPS - 1, Math.max(0, Math.floor(share * RAMP_STEPS)))] ?? "currentColor";
}

/** A trunk's share of the most VLANs that any trunk has; the least is told from the ground, too. */
export function countShare(vlans: number, most: number): number {
  return vlans === 0 ? 0 : 0.2 + (0.8 * vlans) / Math.max(1, most);
}

export function Drawing({ fabric, vlan, loads, room }: Shown) {
  const font = inks.value?.font ?? "sans-serif";
  const pairs = useMemo(() => pairsOf(fabric), [fabric]);
  const band = useMemo(() => bandOf(fabric, pairs), [fabric, pairs]);
  const { width, height } = room;
  const drawn = useMemo(
    () =>
      drawingOf({
        names: fabric.switches.map(({ name }) => (name.length > NAME_MAX ? `\u2026${name.slice(1 - NAME_MAX)}` : name)),
        notes: fabric.switches.map(({ hosts }) =>
          hostsOnEach(fabric) === null && hosts > 0 ? plural(hosts, "host") : "",
        ),
        withHosts: fabric.switches.map(({ hosts }) => hosts > 0),
        pairs: pairs.map(({ ends }) => ends),
        band,
        room: { width, height },
        measure: (text) => textWidth(text, `${TEXT_PX}px ${font}`),
      }),
    [fabric, pairs, band, width, height, font],
  );
  const chosen = fabric.vlans.find((one) => one.vlan === vlan) ?? null;
  // As large as it is, smaller where it would not fit, but never so small that it cannot be read.
  const scale = Math.max(SCALE_MIN, Math.min(1, width / drawn.width));
  return (
    <div class="fabric-room" tabIndex={0} role="region" aria-label="Drawing of the fabric">
      <svg
        class="fabric"
        width={drawn.width * scale}
        height={drawn.height * scale}
        viewBox={`0 0 ${drawn.width.toFixed(1)} ${drawn.height.toFixed(1)}`}
        role="img"
        aria-label={`${fabric.name}: ${plural(fabric.switches.length, "switch")}, ${plural(fabric.trunks.length, "trunk")}; the table tells the same`}
      >
        {pairs.map((pair, at) => (
          <Line
            key={pair.ends.join()}
            fabric={fabric}
            pair={pair}
            chain={drawn.lines[at] ?? []}
            vlan={vlan}
            loads={loads}
            thick={thickness(pairs)}
          />
        ))}
        <Switches fabric={fabric} drawn={drawn} sources={chosen?.sources ?? []} />
      </svg>
    </div>
  );
}

interface LineProps extends Omit<Shown, "room"> {
  readonly pair: Pair;
  readonly chain: readonly Point[];
  readonly thick: number;
}

/** The trunks between two switches, beside one another; each grey, and over it what is known of it. */
function Line({ fabric, pair, chain, vlan, loads, thick }: LineProps) {
  const lanes = pair.trunks.map((place) => {
    const trunk = fabric.trunks[place];
    return trunk !== undefined && laned(fabric) ? lanesOf(placesOf(fabric, trunk)) : [];
  });
  const widths = lanes.map((own) => Math.max(own.length * LANE_PX, thick));
  const whole = widths.reduce((sum, width) => sum + width, 0) + (widths.length - 1) * LANE_PX;
  let begin = -whole / 2;
  return (
    <>
      {pair.trunks.map((place, at) => {
        const width = widths[at] ?? 0;
        const middle = begin + width / 2;
        begin += width + LANE_PX;
        const line = shifted(chain, middle);
        return (
          <g key={place} data-trunk={place}>
            <title>{trunkWords(fabric, place, loads?.[place] ?? null)}</title>
            <path class="trunk" d={pathOf(line)} stroke-width={Math.min(width, thick)} />
            <Colours
              fabric={fabric}
              place={place}
              line={line}
              lanes={lanes[at] ?? []}
              vlan={vlan}
              load={loads === null ? undefined : (loads[place] ?? null)}
              thick={thick}
            />
          </g>
        );
      })}
    </>
  );
}

interface ColoursProps {
  readonly fabric: FabricBody;
  readonly place: number;
  readonly line: readonly Point[];
  readonly lanes: readonly (number | null)[];
  readonly vlan: number | null;
  /** Undefined: VLANs are looked at. */
  readonly load: TrunkLoad | null | undefined;
  readonly thick: number;
}

function Colours({ fabric, place, line, lanes, vlan, load, thick }: ColoursProps) {
  const own = fabric.trunks[place]?.vlans ?? [];
  if (load !== undefined)
    return load?.share == null ? null : <path d={pathOf(line)} stroke={rampColour(load.share)} stroke-width={thick} />;
  if (vlan !== null)
    return own.includes(vlan) ? (
      <path
        d={pathOf(line)}
        stroke={vlanInk(
          fabric.vlans.findIndex((of) => of.vlan === vlan),
          theme.value,
        )}
        stroke-width={thick}
      />
    ) : null;
  if (!laned(fabric))
    return own.length === 0 ? null : (
      <path d={pathOf(line)} stroke={rampColour(countShare(own.length, mostVlans(fabric)))} stroke-width={thick} />
    );
  return (
    <>
      {lanes.map(
        (lane, at) =>
          lane !== null && (
            <path
              key={lane}
              d={pathOf(shifted(line, (at - (lanes.length - 1) / 2) * LANE_PX))}
              stroke={vlanInk(lane, theme.value)}
              stroke-width={LANE_PX - 0.5}
            />
          ),
      )}
    </>
  );
}

/** The most VLANs of any trunk. */
export function mostVlans(fabric: FabricBody): number {
  return Math.max(0, ...fabric.trunks.map(({ vlans }) => vlans.length));
}

function Switches({ fabric, drawn, sources }: { fabric: FabricBody; drawn: Drawn; sources: readonly number[] }) {
  return (
    <>
      {drawn.switches.map((at, place) => {
        const of = fabric.switches[place];
        if (of === undefined) return null;
        const kind = `${of.hosts > 0 ? "switch" : "switch bare"}${sources.includes(place) ? " source" : ""}`;
        return (
          <g key={of.name} data-switch={of.name}>
            <title>{of.hosts === 0 ? `${of.name}: no hosts` : `${of.name}: ${of.host_names}`}</title>
            {at.dot ? (
              <circle class={kind} cx={at.x} cy={at.y} r={at.width / 2} />
            ) : (
              <rect
                class={kind}
                x={at.x - at.width / 2}
                y={at.y - at.height / 2}
                width={at.width}
                height={at.height}
                rx="6"
              />
            )}
            {at.labels.map((label, line) => (
              <Text key={line} label={label} quiet={line > 0} />
            ))}
          </g>
        );
      })}
    </>
  );
}

function Text({ label: { text, x, y, turned }, quiet }: { label: Label; quiet: boolean }) {
  return (
    <text
      class={quiet ? "quiet" : ""}
      x={x}
      y={y}
      dy="0.35em"
      text-anchor="middle"
      {...(turned === 0 ? {} : { transform: `rotate(${turned.toFixed(2)} ${x.toFixed(2)} ${y.toFixed(2)})` })}
    >
      {text}
    </text>
  );
}
