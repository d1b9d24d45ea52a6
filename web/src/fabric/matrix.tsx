/** A fabric too large to be drawn: rows and columns are switches, cells are trunks. */

import { useMemo, useRef, useState } from "preact/hooks";
import type { FabricBody } from "../api/types.ts";
import { Canvas, type Surface } from "../paint/canvas.tsx";
import { fittedEnd, textWidth } from "../paint/text_width.ts";
import { inks, theme } from "../theme/theme.ts";
import { fit } from "../words/fit.ts";
import { plural } from "../words/names.ts";
import { countShare, mostVlans, rampColour, type Shown } from "./drawing.tsx";
import { cellAt, cellKey, layoutMatrix, nextCell, trunksByCell } from "./matrix_layout.ts";
import { trunkWords } from "./shown.ts";
import { vlanInk } from "./vlan_inks.ts";

const NAME_MAX_PX = 96;
const STEPS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

export function Matrix({ fabric, vlan, loads, room }: Shown) {
  const [at, setAt] = useState<readonly [number, number] | null>(null);
  const drawn = useRef("");
  const cells = useMemo(() => trunksByCell(fabric.trunks), [fabric]);
  const font = `11px ${inks.value?.font ?? "sans-serif"}`;
  const widest = useMemo(
    () => Math.min(NAME_MAX_PX, Math.max(...fabric.switches.map(({ name }) => textWidth(name, font)))),
    [fabric, font],
  );
  const switches = fabric.switches.length;
  const layout = layoutMatrix(switches, widest, room.width - 12, room.height);
  const name = (place: number): string => fabric.switches[place]?.name ?? "";
  const words =
    at === null
      ? "Rest the pointer on a cell, or go from trunk to trunk with the arrow keys."
      : toldAt(fabric, cells.get(cellKey(...at)) ?? [], loads, `${name(at[0])} to ${name(at[1])}`);
  const draw = ({ context, width, height }: Surface, fresh: boolean): void => {
    const colours = inks.value;
    if (colours === null) return;
    const key = [
      layout.cell,
      layout.margin,
      vlan,
      theme.value,
      at?.join(),
      loads?.map((load) => load.share).join(),
    ].join(" ");
    if (!fresh && drawn.current === key) return;
    drawn.current = key;
    context.clearRect(0, 0, width, height);
    context.fillStyle = colours.sheet;
    context.fillRect(layout.margin, layout.margin, switches * layout.cell, switches * layout.cell);
    const most = mostVlans(fabric);
    fabric.trunks.forEach((trunk, place) => {
      let share = loads?.[place]?.share ?? null;
      if (loads === null && vlan === null) share = countShare(trunk.vlans.length, most);
      context.fillStyle = share === null ? colours.lineStrong : rampColour(share);
      if (loads === null && vlan !== null && trunk.vlans.includes(vlan)) {
        const at = fabric.vlans.findIndex((of) => of.vlan === vlan);
        context.fillStyle = vlanInk(at, theme.value);
      }
      const [one = 0, other = 0] = trunk.ends.map((end) => end.switch);
      const side = layout.cell > 4 ? layout.cell - 1 : layout.cell;
      for (const [row, column] of [
        [one, other],
        [other, one],
      ] as const)
        context.fillRect(layout.margin + column * layout.cell, layout.margin + row * layout.cell, side, side);
    });
    context.font = font;
    context.textBaseline = "middle";
    for (const place of layout.named) {
      const middle = layout.margin + (place + 0.5) * layout.cell;
      const text = fittedEnd(fit(name(place)), widest, (of) => context.measureText(of).width);
      const ink = at?.includes(place) ? colours.ink : colours.ink3;
      context.fillStyle = ink;
      context.textAlign = "right";
      context.fillText(text, layout.margin - 6, middle);
      context.save();
      context.translate(middle, layout.margin - 6);
      context.rotate(-Math.PI / 2);
      context.textAlign = "left";
      context.fillText(text, 0, 0);
      context.restore();
    }
    if (at === null) return;
    context.strokeStyle = colours.ink;
    context.lineWidth = 1;
    const [y, x] = at.map((place) => layout.margin + place * layout.cell);
    context.strokeRect((x ?? 0) - 1, (y ?? 0) - 1, layout.cell + 2, layout.cell + 2);
  };
  return (
    <>
      <p class="quiet">
        A row and a column for each of {plural(switches, "switch")}, a cell for each trunk.{" "}
        <span role="status" class="told">
          {words}
        </span>
      </p>
      <div class="fabric-room" role="group" aria-label="Matrix of the fabric">
        <div style={{ width: `${layout.size}px` }}>
          <Canvas
            class="matrix"
            height={layout.size}
            draw={draw}
            label={`Trunks of ${fabric.name} between ${plural(switches, "switch")}. Arrow keys move from trunk to trunk.`}
            onPointer={(kind, _, x, y) => setAt(kind === "leave" ? null : cellAt(layout, switches, x, y))}
            onKey={(event) => {
              const step = STEPS[event.key];
              if (step === undefined) return;
              event.preventDefault();
              event.stopPropagation();
              setAt(nextCell(cells, switches, at, step));
            }}
          />
        </div>
      </div>
    </>
  );
}

function toldAt(fabric: FabricBody, trunks: readonly number[], loads: Shown["loads"], names: string): string {
  return trunks.length === 0
    ? `${names}: no trunk`
    : trunks.map((place) => trunkWords(fabric, place, loads?.[place] ?? null)).join("; ");
}
