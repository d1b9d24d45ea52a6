/** Fabric: how the switches are joined, which VLAN runs where, and what the trunks carry. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { apiPath, errorText, getJson, wasAborted } from "../api/client.ts";
import type { FabricBody } from "../api/types.ts";
import { Drawing, loadColour, purposeWords, vlanColour } from "../fabric/drawing.tsx";
import { trunkLoads, type TrunkLoad } from "../fabric/loads.ts";
import { useMeasured } from "../fabric/measured.ts";
import { useSeries } from "../live/watching.ts";
import { recording } from "../session/recordings.ts";
import { show, view } from "../session/view.ts";
import { plural } from "../words/names.ts";
import { inNaturalOrder } from "../words/natural.ts";
import { MISSING, quantityText, share } from "../words/quantity.ts";
import { Empty } from "./empty.tsx";
import { LOADING } from "./told.tsx";

/** `fabric` is null where none was named. */
type Answer = { readonly fabric: FabricBody | null } | { readonly error: string };

function useFabric(): Answer | null {
  const [answer, setAnswer] = useState<Answer | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    getJson<FabricBody | null>(apiPath("fabric"), stop.signal).then(
      (fabric) => setAnswer({ fabric }),
      (error: unknown) => { if (!wasAborted(error)) setAnswer({ error: errorText(error) }); },
    );
    return () => stop.abort();
  }, []);
  return answer;
}

export function Fabric() {
  const answer = useFabric();
  if (answer === null) return <main class="page"><Empty text={LOADING} /></main>;
  if ("error" in answer) return <main class="page"><Empty text={`The fabric did not come: ${answer.error}`} /></main>;
  if (answer.fabric === null) return <main class="page"><Empty text="No fabric was named when this server was started. Name a cluster file that describes one:" command={`meikyo serve ${recording.value?.name ?? "RECORDING"} --cluster cluster.toml`} /></main>;
  return <Known fabric={answer.fabric} />;
}

function Known({ fabric }: { fabric: FabricBody }) {
  const { vlan, colour } = view.value;
  const current = recording.value?.id ?? null;
  const switches = useMemo(() => fabric.switches.map(({ name }) => name), [fabric]);
  const { series } = useSeries(current, "interfaces");
  const { means, error } = useMeasured(current, switches, colour === "load");
  const loads = colour === "load" ? trunkLoads(fabric, series, means) : null;
  const unmeasured = loads !== null && loads.every((load) => load.share === null);
  return (
    <main class="page">
      <div class="columns-fabric">
        <section class="card" aria-label="VLANs">
          <h2>Trunks by</h2>
          <fieldset>
            <legend class="unseen">What colours the trunks</legend>
            <label><input type="radio" name="colour" checked={colour === "vlan"} onChange={() => show({ colour: "vlan" })} /> VLAN</label>
            <label><input type="radio" name="colour" checked={colour === "load"} onChange={() => show({ colour: "load" })} /> what they carried in the shown time</label>
          </fieldset>
          <h2>VLANs</h2>
          <fieldset>
            <legend class="unseen">The VLAN that is shown</legend>
            <label><input type="radio" name="vlan" checked={vlan === null} onChange={() => show({ vlan: null })} /> all</label>
            {fabric.vlans.map((one, place) => (
              <label key={one.vlan}>
                <input type="radio" name="vlan" checked={vlan === one.vlan} onChange={() => show({ vlan: one.vlan, colour: "vlan" })} />
                <i style={{ background: vlanColour(place) }} aria-hidden="true" /> {one.vlan} <span class="quiet">{purposeWords(one)}</span>
              </label>
            ))}
          </fieldset>
        </section>
        <section class="block" aria-label="Drawing">
          <h1>{fabric.name} <small class="quiet">{plural(fabric.switches.length, "switch")}, {plural(fabric.trunks.length, "trunk")}, {plural(fabric.vlans.length, "VLAN")}</small></h1>
          {error !== null && <p><span class="shu">What the trunks carried did not come:</span> {error}</p>}
          {error === null && unmeasured && <p class="kin">No trunk of this recording is measured at all of its ports. Switches are measured with: <code>measure = ["interfaces"]</code></p>}
          <Drawing fabric={fabric} vlan={vlan} loads={loads} />
        </section>
      </div>
      <Trunks fabric={fabric} loads={loads} />
    </main>
  );
}

/** What a trunk joins: `sw1 port1, port3`. */
function endsOf(fabric: FabricBody, trunk: FabricBody["trunks"][number]): readonly string[] {
  return trunk.ends.map(({ switch: at, interfaces }) => `${fabric.switches[at]?.name ?? ""} ${inNaturalOrder(interfaces, (name) => name).join(", ")}`);
}

function Trunks({ fabric, loads }: { fabric: FabricBody; loads: readonly TrunkLoad[] | null }) {
  return (
    <details open={view.value.tables} onToggle={(event) => show({ tables: event.currentTarget.open })}>
      <summary>The same as a table</summary>
      <table aria-label="Trunks">
        <thead><tr><th scope="col">from</th><th scope="col">to</th><th scope="col" class="number">cables</th><th scope="col">VLANs</th>{loads !== null && <><th scope="col" class="number">carried</th><th scope="col" class="number">of its rate</th></>}</tr></thead>
        <tbody>
          {inNaturalOrder(fabric.trunks.map((trunk, place) => ({ trunk, place, ends: endsOf(fabric, trunk) })), ({ ends }) => ends.join(" ")).map(({ trunk, place, ends: [one, other] }) => {
            const load = loads?.[place] ?? null;
            return (
              <tr key={place}>
                <td>{one}</td><td>{other}</td>
                <td class="number">{trunk.ends[0]?.interfaces.length ?? 0}</td>
                <td>{trunk.vlans.join(", ") || "none"}</td>
                {loads !== null && (
                  <>
                    <td class="number">{load?.bitsPerS == null ? MISSING : quantityText(load.bitsPerS / 8, "bytes/s")}</td>
                    <td class="number">{load?.share == null ? MISSING : <><i class="swatch" style={{ background: loadColour(load.share) }} aria-hidden="true" /> {share(load.share, 1)}</>}</td>
                  </>
                )}
              </tr>
            );
          })}
        </tbody>
      </table>
    </details>
  );
}
