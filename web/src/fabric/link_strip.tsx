/** What passed over the fabric's links as time went on: a row for each measured port of a trunk, or for each switch where none is. */

import { useMemo } from "preact/hooks";
import type { Quantity } from "../address/address.ts";
import type { DeviceBody, FabricBody, SeriesBody } from "../api/types.ts";
import { unreadOf, useRows, useWatch } from "../live/watching.ts";
import { intervalUs, recording } from "../session/recordings.ts";
import { pan, show, view, zoom } from "../session/view.ts";
import { Legend } from "../strip/legend.tsx";
import { AXIS_PX, Strip } from "../strip/strip.tsx";
import { stripKeys } from "../strip/strip_keys.ts";
import { useBounds, useScale } from "../strip/window_of_strip.ts";
import { quantityTitle } from "../words/names.ts";
import { portsOf } from "./ports.ts";

const ROW_PX = 14;
/** Its title and its legend. */
const AROUND_PX = 84;
/** Lower than this it would tell nothing. */
const LEAST_PX = 90;
const NO_ROWS: ReadonlySet<number> = new Set();

export interface LinkStripProps {
  readonly fabric: FabricBody;
  /** What of each interface is shown. */
  readonly traffic: Quantity;
  /** The series of interfaces that the recording has. */
  readonly series: readonly SeriesBody[];
  readonly width: number;
  /** What is left below the drawing. */
  readonly room: number;
}

export function LinkStrip({ fabric, traffic, series, width, room }: LinkStripProps) {
  const current = recording.value;
  const found = useMemo(() => portsOf(fabric, series), [fabric, series]);
  const own = found.trunks.length > 0 ? found.trunks : found.switches;
  const kind = found.trunks.length > 0 ? "series" : "devices";
  const devices = useMemo((): readonly DeviceBody[] => {
    const names = new Set(own.map(({ labels }) => labels["device"]));
    return (current?.devices ?? []).filter(({ name }) => names.has(name));
  }, [current, own]);
  const names = useMemo(() => devices.map(({ name }) => name), [devices]);
  const model = useRows(devices, own, kind, "");
  const fits = room - AROUND_PX >= LEAST_PX && model.rows.length > 0;
  const watch = useWatch({
    recording: fits ? current : null,
    ...traffic,
    model,
    window: view.value.window,
    play: view.value.play,
    width: fits ? Math.max(100, width - 100) : 0,
    intervalUs: intervalUs.value,
    devices: names,
    leads: true,
  });
  const bounds = useBounds(watch);
  const scale = useScale(`${current?.id} fabric ${kind}`, watch);
  if (!fits) return null;
  const title =
    kind === "series" ? `${quantityTitle(traffic, "series")} of a trunk` : quantityTitle(traffic, "devices");
  return (
    <>
      <h2>
        {title} <small>in the shown time; click to see the switch</small>
      </h2>
      <Strip
        label={title}
        bins={watch?.bins ?? null}
        model={model}
        height={Math.min(room - AROUND_PX, model.rows.length * ROW_PX + AXIS_PX)}
        scale={scale}
        bounds={bounds}
        live={view.value.window.live && current?.running === true}
        unread={unreadOf(watch)}
        selectedRows={NO_ROWS}
        selected={view.value.selected}
        onSelect={({ fromUs, toUs }) => show({ selected: { fromUs: Math.round(fromUs), toUs: Math.round(toUs) } })}
        onPick={(row) => show({ name: "device", device: model.rows[row]?.device ?? null }, true)}
        onZoom={zoom}
        onPan={pan}
        onKey={stripKeys(model, bounds, (row) =>
          show({ name: "device", device: model.rows[row]?.device ?? null }, true),
        )}
      />
      <Legend scale={scale} watch={watch} />
    </>
  );
}
