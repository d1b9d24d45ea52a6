/** Fabric: how the switches are joined, which VLAN runs where, and what the trunks carry. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { apiPath, getJson } from "../api/client.ts";
import { NOT_READ, poll, type Told } from "../api/poll.ts";
import type { FabricBody } from "../api/types.ts";
import { Drawing, mostVlans, rampColour } from "../fabric/drawing.tsx";
import { DRAWN_MAX } from "../fabric/layout/layout.ts";
import { LinkStrip } from "../fabric/link_strip.tsx";
import { type TrunkLoad, trunkLoads } from "../fabric/loads.ts";
import { Matrix } from "../fabric/matrix.tsx";
import { MATRIX_MAX } from "../fabric/matrix_layout.ts";
import { useMeasured } from "../fabric/measured.ts";
import { hostsWords, laned, purposeWords, vlansWords } from "../fabric/shown.ts";
import { vlanInk } from "../fabric/vlan_inks.ts";
import { useSeries } from "../live/watching.ts";
import { useSize } from "../paint/size.ts";
import { recording, trafficOf } from "../session/recordings.ts";
import { show, view } from "../session/view.ts";
import { theme } from "../theme/theme.ts";
import { plural } from "../words/names.ts";
import { inNaturalOrder } from "../words/natural.ts";
import { count, quantityText, share } from "../words/quantity.ts";
import { Empty } from "./empty.tsx";
import { AsOf, LOADING, markOf, unreadWords } from "./told.tsx";

/** What the server tells of a fabric; asked for until it has answered. */
function useFabric(): Told<Answer> {
  const [told, setTold] = useState<Told<Answer>>(NOT_READ);
  useEffect(
    () =>
      poll(
        async (stop): Promise<Answer> => ({ fabric: await getJson<FabricBody | null>(apiPath("fabric"), stop) }),
        null,
        setTold,
      ),
    [],
  );
  return told;
}

/** `fabric` is null where none was named. */
interface Answer {
  readonly fabric: FabricBody | null;
}

export function Fabric() {
  const told = useFabric();
  const answer = told.value;
  if (answer === null)
    return (
      <main class="page">
        <Empty text={unreadWords(told) ?? LOADING} />
      </main>
    );
  if (answer.fabric === null)
    return (
      <main class="page">
        <Empty
          text="No fabric was named when this server was started. Name a cluster file that describes one:"
          command={`meikyo serve ${recording.value?.name ?? "RECORDING"} --cluster cluster.toml`}
        />
      </main>
    );
  return <Known fabric={answer.fabric} />;
}

/** From this width of the view on the table of trunks stands beside the drawing. */
const BESIDE_PX = 1200;
/** What stands above and below the drawing. */
const AROUND_PX = 110;

function Known({ fabric }: { fabric: FabricBody }) {
  const { vlan, colour } = view.value;
  const current = recording.value?.id ?? null;
  const switches = useMemo(() => fabric.switches.map(({ name }) => name), [fabric]);
  const traffic = trafficOf(recording.value);
  const { known, series } = useSeries(traffic === null ? null : current, traffic?.table ?? "");
  const measured = useMeasured(current, traffic, switches, colour === "load");
  const means = measured.value;
  const loads = useMemo(
    () => (colour === "load" ? trunkLoads(fabric, series, means ?? new Map()) : null),
    [fabric, colour, series, means],
  );
  const wanted = colour === "load" && traffic !== null;
  const unreadLoads = known ? unreadWords(measured) : LOADING;
  const unread = wanted ? unreadLoads : null;
  const unmeasured = unread === null && loads !== null && loads.every((load) => load.share === null);
  const missing = markOf(unread);
  const live = view.value.window.live && recording.value?.running === true;
  const [main, wide, high] = useSize<HTMLElement>();
  const [block, width] = useSize<HTMLElement>();
  const [picture, , drawn] = useSize<HTMLDivElement>();
  const room = { width, height: Math.max(320, high - AROUND_PX) };
  const beside = wide >= BESIDE_PX;
  const amount = fabric.switches.length;
  return (
    <main class="page" ref={main}>
      <div class={`columns-fabric${beside ? " beside" : ""}`}>
        <Choices fabric={fabric} />
        <section class="block" aria-label="Drawing" ref={block}>
          <h1>
            <span>
              {fabric.name}{" "}
              <small>
                {plural(amount, "switch")}, {plural(fabric.trunks.length, "trunk")},{" "}
                {plural(fabric.vlans.length, "VLAN")}, {hostsWords(fabric)}
              </small>
            </span>
            <Legend fabric={fabric} unread={unread} />
          </h1>
          {colour === "load" && unread === null && <AsOf atMs={live ? measured.atMs : 0} />}
          {unread !== null && unread !== LOADING && (
            <p class="kin" role="status">
              {unread}
            </p>
          )}
          {unmeasured && (
            <p class="kin">
              This recording has no trunk with readings of all its ports. Switches are measured with:{" "}
              <code>measure = ["interfaces"]</code>
            </p>
          )}
          <div ref={picture}>
            {width > 0 && amount <= DRAWN_MAX && <Drawing fabric={fabric} vlan={vlan} loads={loads} room={room} />}
            {width > 0 && amount > DRAWN_MAX && amount <= MATRIX_MAX && (
              <Matrix fabric={fabric} vlan={vlan} loads={loads} room={room} />
            )}
            {amount > MATRIX_MAX && (
              <p class="quiet">More than {plural(MATRIX_MAX, "switch")} are told as a table only.</p>
            )}
          </div>
          {known && traffic !== null && drawn > 0 && (
            <LinkStrip
              fabric={fabric}
              traffic={traffic}
              series={series}
              width={width}
              room={high - drawn - AROUND_PX}
            />
          )}
        </section>
        {beside && (
          <section class="block" aria-label="Trunks">
            <h2>
              Trunks <small>{loads === null ? "" : "the fullest first"}</small>
            </h2>
            <div
              class="scroll tall"
              tabIndex={0}
              role="region"
              aria-label="Table of trunks"
              style={{ maxHeight: `${high - 60}px` }}
            >
              <TrunkTable fabric={fabric} loads={loads} missing={missing} />
            </div>
          </section>
        )}
      </div>
      {!beside && (
        <details open={view.value.tables} onToggle={(event) => show({ tables: event.currentTarget.open })}>
          <summary>The same as a table</summary>
          {view.value.tables && <TrunkTable fabric={fabric} loads={loads} missing={missing} />}
        </details>
      )}
    </main>
  );
}

/** What a trunk without a colour is. */
function unknownWords(unread: string | null): string {
  if (unread === null) return "not measured";
  return unread === LOADING ? LOADING : "not known";
}

/** What colours the trunks, and which VLAN is looked at. */
function Choices({ fabric }: { fabric: FabricBody }) {
  const { vlan, colour } = view.value;
  const swatches = colour === "vlan" && laned(fabric) && fabric.switches.length <= DRAWN_MAX;
  return (
    <section class="card" aria-label="VLANs">
      <h2>Trunks by</h2>
      <fieldset>
        <legend class="unseen">What colours the trunks</legend>
        <label>
          <input type="radio" name="colour" checked={colour === "vlan"} onChange={() => show({ colour: "vlan" })} />{" "}
          VLAN
        </label>
        <label>
          <input type="radio" name="colour" checked={colour === "load"} onChange={() => show({ colour: "load" })} />{" "}
          what they carried in the shown time
        </label>
      </fieldset>
      <h2>VLANs</h2>
      <fieldset>
        <legend class="unseen">The VLAN that is shown</legend>
        <label>
          <input type="radio" name="vlan" checked={vlan === null} onChange={() => show({ vlan: null })} /> all
        </label>
        {fabric.vlans.map((one, place) => (
          <label key={one.vlan}>
            <input
              type="radio"
              name="vlan"
              checked={vlan === one.vlan}
              onChange={() => show({ vlan: one.vlan, colour: "vlan" })}
            />
            {(swatches || vlan === one.vlan) && (
              <i style={{ background: vlanInk(place, theme.value) }} aria-hidden="true" />
            )}{" "}
            {one.vlan} <span class="quiet">{purposeWords(one)}</span>
          </label>
        ))}
      </fieldset>
    </section>
  );
}

/** What the colours say, where they are a scale. */
function Legend({ fabric, unread }: { fabric: FabricBody; unread: string | null }) {
  const { vlan, colour } = view.value;
  const ramp = `linear-gradient(to right, ${[0, 0.25, 0.5, 0.75, 1].map(rampColour).join(", ")})`;
  if (colour === "load")
    return (
      <small class="legend">
        <span>idle</span>
        <i class="ramp" style={{ background: ramp }} aria-hidden="true" />
        <span>full</span>
        <i class="ramp unknown" aria-hidden="true" />
        <span role="status">{unknownWords(unread)}</span>
      </small>
    );
  if (vlan !== null || (laned(fabric) && fabric.switches.length <= DRAWN_MAX)) return null;
  return (
    <small class="legend">
      <span>VLANs on a trunk: 0</span>
      <i class="ramp" style={{ background: ramp }} aria-hidden="true" />
      <span>{mostVlans(fabric)}; select one to see where it runs</span>
    </small>
  );
}

/** What a trunk joins: `sw1 port1, port3`. */
function endsOf(fabric: FabricBody, trunk: FabricBody["trunks"][number]): readonly string[] {
  return trunk.ends.map(
    ({ switch: at, interfaces }) =>
      `${fabric.switches[at]?.name ?? ""} ${inNaturalOrder(interfaces, (name) => name).join(", ")}`,
  );
}

/** So many trunks stand in the table; more are told by the command line. */
const TABLE_MAX = 1000;

function TrunkTable({
  fabric,
  loads,
  missing,
}: {
  fabric: FabricBody;
  loads: readonly TrunkLoad[] | null;
  missing: string;
}) {
  const { vlan } = view.value;
  const rows = useMemo(() => {
    const named = inNaturalOrder(
      fabric.trunks.map((trunk, place) => ({ trunk, place, ends: endsOf(fabric, trunk) })),
      ({ ends }) => ends.join(" "),
    );
    const own = vlan === null ? named : named.filter(({ trunk }) => trunk.vlans.includes(vlan));
    return loads === null
      ? own
      : [...own].sort((one, other) => (loads[other.place]?.share ?? -1) - (loads[one.place]?.share ?? -1));
  }, [fabric, loads, vlan]);
  return (
    <>
      <table aria-label="Trunks">
        <thead>
          <tr>
            <th scope="col">from</th>
            <th scope="col">to</th>
            <th scope="col" class="number">
              cables
            </th>
            {loads !== null && (
              <>
                <th scope="col" class="number">
                  carried
                </th>
                <th scope="col" class="number">
                  of its rate
                </th>
              </>
            )}
            {loads === null && <th scope="col">VLANs</th>}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, TABLE_MAX).map(({ trunk, place, ends: [one, other] }) => {
            const load = loads?.[place] ?? null;
            return (
              <tr key={place}>
                <td>{one}</td>
                <td>{other}</td>
                <td class="number">{trunk.ends[0]?.interfaces.length ?? 0}</td>
                {loads !== null && (
                  <>
                    <td class="number">
                      {load?.bitsPerS == null ? missing : quantityText(load.bitsPerS / 8, "bytes/s")}
                    </td>
                    <td class="number">
                      {load?.share == null ? (
                        missing
                      ) : (
                        <>
                          <i class="swatch" style={{ background: rampColour(load.share) }} aria-hidden="true" />{" "}
                          {share(load.share, 1)}
                        </>
                      )}
                    </td>
                  </>
                )}
                {loads === null && <td>{vlansWords(trunk.vlans)}</td>}
              </tr>
            );
          })}
        </tbody>
      </table>
      {rows.length > TABLE_MAX && (
        <p class="quiet">
          The first {count(TABLE_MAX)} of {count(rows.length)}. All of them: <code>meikyo fabric cables</code>
        </p>
      )}
    </>
  );
}
