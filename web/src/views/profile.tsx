/** Profile: where the cluster's CPUs spent any tenth of a second, from the map of all samples to the functions that ran. */

import { computed } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { FlameBody, HeatBody, RecordingBody } from "../api/types.ts";
import { useSize } from "../paint/size.ts";
import { amount, amountWords, wholeWords } from "../profile/amount.ts";
import {
  type Answer,
  FLAME_MS,
  getCores,
  getFlame,
  getHeat,
  getNewest,
  isInTime,
  MAP_MS,
  mapBounds,
  NEWEST_MS,
  SECONDS_MAX,
  useAnswer,
} from "../profile/asking.ts";
import { CoreStrip, Readings } from "../profile/core_strip.tsx";
import { changeWords, FlameGraph } from "../profile/flame_graph.tsx";
import {
  changeOf,
  type FlameTree,
  type FunctionTotals,
  foundSamples,
  functionTotals,
  namesTo,
  nodeAt,
  sandwich,
  treeOf,
} from "../profile/flame_tree.ts";
import { heatPicture, newestSampleUs, renewed } from "../profile/heat.ts";
import { HeatMap } from "../profile/heat_map.tsx";
import {
  COUNTED,
  type Counted,
  DEFAULT_PROFILE,
  GROUPINGS,
  type Grouping,
  type ProfileView,
  SHAPES,
  type Shape,
} from "../profile/profile_address.ts";
import { advanceTo, newestUs } from "../session/now.ts";
import { recording, tableFor } from "../session/recordings.ts";
import { boundsNow, otherScale, pan, show, view, zoom } from "../session/view.ts";
import { clock, dayAndClock } from "../time/moment.ts";
import type { Bounds } from "../time/window.ts";
import { plural } from "../words/names.ts";
import { count, share, span } from "../words/quantity.ts";
import { Empty } from "./empty.tsx";
import { QuantityPicker } from "./quantity_picker.tsx";
import { AsOf, LOADING, Unread, unreadWords } from "./told.tsx";
import "../profile/profile.css";

const MAP_PX = 150;
const FUNCTIONS_MAX = 200;

function change(of: Partial<ProfileView>, visit = false): void {
  show({ profile: { ...view.peek().profile, ...of } }, visit);
}

export function Profile() {
  const current = recording.value;
  if (current === null) return null;
  if (tableFor(current, "samples") === null) {
    return (
      <main class="page">
        <h1>Profile</h1>
        <Empty
          text="This recording holds no profile. Sample this host, or have every host send its samples to this server:"
          command="meikyo profile record --all --for 10s · meikyo profile agent --server URL"
        />
      </main>
    );
  }
  return <Profiled current={current} />;
}

/** The shown time, as it is when something is asked for; of the newest, with the microsecond of the newest sample. */
function shownBounds(): Bounds {
  const { fromUs, toUs } = boundsNow();
  const endUs = Math.round(toUs) + (view.peek().window.live ? 1 : 0);
  return { fromUs: Math.round(fromUs), toUs: Math.max(Math.round(fromUs) + 1, endUs) };
}

/** Whether it is known when the recording ends; what is newest changes often, and nothing else is to be drawn anew then. */
const isPlaced = computed(() => newestUs.value > 0);

function Profiled({ current }: { current: RecordingBody }) {
  const { window: window_, selected, profile: of, scale } = view.value;
  const [middle, width] = useSize();
  const live = window_.live && current.running;
  // A finished recording is asked for where its end is known.
  const placed = isPlaced.value;
  const time = window_.live
    ? `live ${window_.spanUs} ${live ? "" : newestUs.value}`
    : `${window_.fromUs} ${window_.toUs}`;
  const where = `${current.id} ${of.host} ${of.cpu}`;
  const mapKey = placed ? `${where} ${time}` : null;
  const map = useAnswer(mapKey, live ? MAP_MS : null, async (stop) => {
    const bounds = shownBounds();
    const heat = await getHeat(current.id, of, bounds, stop);
    return { heat, cores: await getCores(current.id, of, bounds, stop), bounds: mapBounds(bounds) };
  });
  const compared = isInTime(of) ? "" : `${of.than?.fromUs} ${of.than?.toUs} ${of.thanHost}`;
  const inTime = isInTime(of) ? "time" : "merged";
  const flameKey = placed
    ? `${where} ${selected === null ? time : `${selected.fromUs} ${selected.toUs}`} ${of.process} ${of.job} ${of.counted} ${of.by} ${inTime} ${compared}`
    : null;
  const flame = useAnswer(flameKey, live && selected === null ? FLAME_MS : null, (stop) =>
    getFlame(current.id, of, selected ?? shownBounds(), stop),
  );
  const tree = useMemo(() => (flame.told.value === null ? null : treeOf(flame.told.value)), [flame.told.value]);
  const [told, setTold] = useState("");
  // The answer says which time it is of; a live picture moves on only with the next one.
  const bounds = useRef<Bounds>(shownBounds());
  bounds.current = map.told.value?.bounds ?? shownBounds();
  const select = (chosen: Bounds, compare: boolean): void => {
    if (compare) change({ than: chosen });
    else show({ selected: chosen });
  };
  const tooLong = shownBounds().toUs - shownBounds().fromUs > SECONDS_MAX * 1e6;
  return (
    <main class="columns profile">
      <section aria-label="What is shown">
        <Places heat={map.told.value?.heat ?? null} of={of} />
        <Filters of={of} />
        <Comparison of={of} heat={map.told.value?.heat ?? null} selected={selected} />
      </section>
      <section ref={middle} aria-label="Profile">
        <h1>
          Samples{" "}
          <small>
            {told === ""
              ? `${placeWords(of)}; each column a second, from its begin at the bottom; drag to choose a time, with Shift to compare with it`
              : told}{" "}
            <AsOf atMs={live ? map.told.atMs : 0} />
          </small>
        </h1>
        {map.told.failed !== null && (
          <p class="kin" role="alert">
            {map.told.failed}
          </p>
        )}
        {tooLong && <p class="quiet">The map shows the last two hours of this time.</p>}
        <Heat
          id={current.id}
          of={of}
          heat={map.told.value?.heat ?? null}
          live={live && placed}
          width={width}
          words={unreadWords(map.told) ?? LOADING}
          stale={map.stale}
          log={scale === "log"}
          selected={selected}
          onSelect={select}
          onTold={setTold}
        >
          <button
            type="button"
            class="tag"
            aria-pressed={scale === "log"}
            title="each power of ten alike (l)"
            onClick={otherScale}
          >
            log
          </button>
          {selected !== null && (
            <span class="quiet">
              chosen: {clock(selected.fromUs, 2)} and {span(selected.toUs - selected.fromUs)}
            </span>
          )}
          {selected !== null && (
            <button type="button" class="tag" onClick={() => show({ selected: null })}>
              all of the shown time
            </button>
          )}
        </Heat>
        <FlamePart current={current} of={of} flame={flame} tree={tree} />
        <h2>
          CPUs <small>samples of each in a second; a click shows that CPU alone</small>
        </h2>
        <CoreStrip
          of={of}
          body={map.told.value?.cores ?? null}
          bounds={() => bounds.current}
          live={live}
          onSelect={(chosen) => select(chosen, false)}
          onPick={(host, cpu) => change({ host, cpu, focus: [] })}
        />
        <Readings
          current={current}
          of={of}
          width={width}
          bounds={() => bounds.current}
          live={live}
          picker={(there, quantity) => <QuantityPicker of={there} quantity={quantity} />}
        />
      </section>
      <section aria-label="Facts">
        <Facts flame={flame.told.value} atMs={live && selected === null ? flame.told.atMs : 0} />
        <Unread told={flame.told} />
        {tree !== null && <Functions tree={tree} search={of.search} />}
      </section>
    </main>
  );
}

interface HeatProps {
  readonly id: string;
  readonly of: ProfileView;
  readonly heat: HeatBody | null;
  readonly live: boolean;
  readonly width: number;
  readonly words: string;
  readonly stale: boolean;
  readonly log: boolean;
  readonly selected: Bounds | null;
  readonly onSelect: (chosen: Bounds, compare: boolean) => void;
  readonly onTold: (words: string) => void;
  readonly children: ComponentChildren;
}

/** The map, whose newest seconds are asked for more often than the rest while it is live. */
function Heat({ id, of, heat, live, width, words, stale, log, selected, onSelect, onTold, children }: HeatProps) {
  const newest = useAnswer(live ? `${id} ${of.host} ${of.cpu}` : null, NEWEST_MS, async (stop) => {
    const body = await getNewest(id, of, stop);
    advanceTo(newestSampleUs(body) ?? 0);
    return body;
  });
  const fresh = live && !newest.stale && !stale ? newest.told.value : null;
  const shown = useMemo(() => (heat === null || fresh === null ? heat : renewed(heat, fresh)), [heat, fresh]);
  const picture = useMemo(
    () => (shown === null ? null : heatPicture(shown, Math.max(60, width - 100))),
    [shown, width],
  );
  return (
    <>
      <HeatMap
        label={`Samples by second and part of the second, ${placeWords(of)}`}
        picture={picture}
        words={words}
        stale={stale}
        height={MAP_PX}
        log={log}
        selected={selected}
        than={of.than}
        onSelect={onSelect}
        onTold={onTold}
        onZoom={zoom}
        onPan={pan}
      />
      <div class="row">
        <span class="quiet" data-told="heat">
          {picture === null
            ? ""
            : `${count(picture.samples)} ${picture.samples === 1 ? "sample" : "samples"}, at most ${count(picture.greatest)} in ${picture.secondsPerColumn > 1 ? `20 ms of ${picture.secondsPerColumn} s` : "20 ms"}`}
        </span>
        {children}
      </div>
    </>
  );
}

function placeWords({ host, cpu }: ProfileView): string {
  if (host === null) return "the whole cluster";
  return cpu === null ? host : `${host}, CPU ${cpu}`;
}

/** Hosts and CPUs that there are samples of in the shown time. */
function Places({ heat, of }: { heat: HeatBody | null; of: ProfileView }) {
  const known = useRef<readonly { host: string; cpu: number; samples: number }[]>([]);
  // While a host is shown alone, the others stay in the list.
  if (heat !== null && of.host === null) known.current = heat.cores;
  const cores = known.current.length > 0 ? known.current : (heat?.cores ?? []);
  const hosts = new Map<string, number>();
  for (const { host, samples } of cores) hosts.set(host, (hosts.get(host) ?? 0) + samples);
  const cpus = (heat?.cores ?? []).filter(({ host }) => host === of.host);
  const choose = (host: string | null, cpu: number | null) => () => change({ host, cpu, focus: [] });
  return (
    <>
      <h2>
        Samples of <small>{plural(hosts.size, "host")}</small>
      </h2>
      <ul class="plain-list places" aria-label="Hosts">
        <li>
          <button type="button" class="plain" aria-pressed={of.host === null} onClick={choose(null, null)}>
            the whole cluster
          </button>
        </li>
        {[...hosts].map(([host, samples]) => (
          <li key={host}>
            <button
              type="button"
              class="plain"
              aria-pressed={of.host === host && of.cpu === null}
              onClick={choose(host, null)}
            >
              <span>{host}</span> <small>{count(samples)}</small>
            </button>
          </li>
        ))}
      </ul>
      {of.host !== null && (cpus.length > 1 || of.cpu !== null) && (
        <div class="tags" role="group" aria-label="CPUs">
          <button type="button" class="tag" aria-pressed={of.cpu === null} onClick={choose(of.host, null)}>
            all CPUs
          </button>
          {(of.cpu === null ? cpus.map(({ cpu }) => cpu) : [of.cpu]).map((cpu) => (
            <button key={cpu} type="button" class="tag" aria-pressed={of.cpu === cpu} onClick={choose(of.host, cpu)}>
              CPU {cpu}
            </button>
          ))}
        </div>
      )}
    </>
  );
}

/** A text that counts when it is done: each letter of it would be a question to the server. */
function TextField({
  label,
  value,
  hint,
  onText,
}: {
  label: string;
  value: string;
  hint: string;
  onText: (text: string) => void;
}) {
  return (
    <label class="field">
      <span>{label}</span>
      <input
        type="text"
        key={value}
        defaultValue={value}
        title={hint}
        spellcheck={false}
        onChange={(event) => onText(event.currentTarget.value.trim())}
        onKeyDown={(event) => {
          event.stopPropagation();
          if (event.key === "Escape" || event.key === "Enter") event.currentTarget.blur();
        }}
      />
    </label>
  );
}

function Filters({ of }: { of: ProfileView }) {
  return (
    <>
      <h2 class="gap">
        Only <small>in the flame graph</small>
      </h2>
      <TextField
        label="process"
        value={of.process}
        hint="a name; * and ? stand for any text"
        onText={(process) => change({ process, focus: [] })}
      />
      <TextField
        label="job"
        value={of.job}
        hint="slurm:123, container:0123456789ab, unit:nginx.service; * and ? stand for any text"
        onText={(job) => change({ job, focus: [] })}
      />
    </>
  );
}

function Comparison({ of, heat, selected }: { of: ProfileView; heat: HeatBody | null; selected: Bounds | null }) {
  const hosts = [...new Set((heat?.cores ?? []).map(({ host }) => host))];
  const others = of.thanHost === null || hosts.includes(of.thanHost) ? hosts : [of.thanHost, ...hosts];
  const on = of.than !== null || of.thanHost !== null;
  return (
    <>
      <h2 class="gap">Compared with</h2>
      {of.than !== null && (
        <p class="quiet">
          {dayAndClock(of.than.fromUs)} and {span(of.than.toUs - of.than.fromUs)}
        </p>
      )}
      {others.length > 1 || of.thanHost !== null ? (
        <select
          aria-label="Host to compare with"
          value={of.thanHost ?? ""}
          onChange={(event) => change({ thanHost: event.currentTarget.value || null })}
        >
          <option value="">{on ? "the same hosts" : "no other host"}</option>
          {others.map((host) => (
            <option key={host} value={host}>
              {host}
            </option>
          ))}
        </select>
      ) : null}
      <div class="tags">
        {selected !== null && (
          <button
            type="button"
            class="tag"
            onClick={() => show({ selected: null, profile: { ...of, than: selected } })}
          >
            with the chosen time
          </button>
        )}
        {on && (
          <button type="button" class="tag" onClick={() => change({ than: null, thanHost: null })}>
            with nothing
          </button>
        )}
      </div>
      {on && isInTime(of) && <p class="kin">Only merged stacks can be compared.</p>}
      {!on && <p class="quiet">Choose a time in the map with Shift, or a host.</p>}
    </>
  );
}

const SHAPE_WORDS: Readonly<Record<Shape, string>> = { merged: "left heavy", time: "in time", sandwich: "sandwich" };
const COUNTED_WORDS: Readonly<Record<Counted, string>> = { samples: "samples", off_cpu: "off the CPU" };
const GROUPING_WORDS: Readonly<Record<Grouping, string>> = {
  together: "all threads together",
  thread: "by thread",
  process: "by process",
  cpu: "by CPU",
  host: "by host",
  job: "by job",
};

interface FlamePartProps {
  readonly current: RecordingBody;
  readonly of: ProfileView;
  readonly flame: Answer<FlameBody>;
  readonly tree: FlameTree | null;
}

function FlamePart({ current, of, flame, tree }: FlamePartProps) {
  const found = useMemo(() => matching(tree, of.search), [tree, of.search]);
  const focus = useMemo(() => (tree === null ? 0 : nodeAt(tree, of.focus)), [tree, of.focus]);
  const chosen = of.fn ?? (tree === null ? null : hottest(tree));
  const both = useMemo(
    () => (tree === null || of.shape !== "sandwich" || chosen === null ? null : sandwich(tree, chosen)),
    [tree, of.shape, chosen],
  );
  const toFunction = (fn: string): void => change({ fn, shape: "sandwich" }, true);
  const samples = tree?.total[0] ?? 0;
  const body = flame.told.value;
  const hasOffCpu = current.tables.some(({ name }) => name === "off_cpu");
  return (
    <>
      <h2 class="gap">
        <span>Functions {flame.stale && tree !== null && <small role="status">{LOADING}</small>}</span>
        <span class="row">
          {(hasOffCpu || of.counted !== "samples") && (
            <span class="row" role="group" aria-label="Counted">
              {COUNTED.map((counted) => (
                <button
                  key={counted}
                  type="button"
                  class="tag"
                  aria-pressed={of.counted === counted}
                  onClick={() => change({ counted, focus: [] })}
                >
                  {COUNTED_WORDS[counted]}
                </button>
              ))}
            </span>
          )}
          {SHAPES.filter((shape) => shape !== "time" || of.counted === "samples").map((shape) => (
            <button
              key={shape}
              type="button"
              class="tag"
              aria-pressed={shapeOf(of) === shape}
              onClick={() => change({ shape, focus: [] })}
            >
              {SHAPE_WORDS[shape]}
            </button>
          ))}
          <select
            aria-label="Grouped"
            value={of.by}
            onChange={(event) =>
              change({
                by: GROUPINGS.find((one) => one === event.currentTarget.value) ?? DEFAULT_PROFILE.by,
                focus: [],
              })
            }
          >
            {GROUPINGS.map((by) => (
              <option key={by} value={by}>
                {GROUPING_WORDS[by]}
              </option>
            ))}
          </select>
          <Search of={of} />
        </span>
      </h2>
      {flame.told.failed !== null && (
        <p class="kin" role="alert">
          {flame.told.failed}
        </p>
      )}
      {found !== null && tree !== null && (
        <p class="quiet" role="status" data-told="found">
          {share(foundSamples(tree, found), Math.max(1, samples))} of {wholeWords(tree.counted)}{" "}
          {tree.counted === "samples" ? "are" : "is"} in functions that are called so, or below them
        </p>
      )}
      {body !== null && body.left_out > 0 && (
        <p class="quiet">
          {plural(body.left_out, "function call")} with the least of {wholeWords(body.counted)} are not drawn
          {isInTime(of) ? "; choose less time to see every one" : ""}.
        </p>
      )}
      {tree === null && <Empty text={unreadWords(flame.told) ?? LOADING} />}
      {tree !== null && samples + (tree.thanTotal?.[0] ?? 0) === 0 && <Nothing of={of} />}
      {tree !== null && samples + (tree.thanTotal?.[0] ?? 0) > 0 && of.shape !== "sandwich" && (
        <div class={flame.stale ? "stale" : ""} aria-busy={flame.stale}>
          <FlameGraph
            label={isInTime(of) ? "Stacks as they followed each other" : "Flame graph"}
            tree={tree}
            focus={focus}
            found={found}
            onFocus={(node) => change({ focus: namesTo(tree, node) })}
            onFunction={toFunction}
          />
        </div>
      )}
      {both !== null && chosen !== null && (
        <div class={`sandwiched${flame.stale ? " stale" : ""}`} aria-busy={flame.stale}>
          <p class="row">
            <strong>{chosen}</strong>{" "}
            <span class="quiet">
              {amountWords(both.callees.counted, both.callees.total[0] ?? 0)}; above, who called it, below, what it
              called
            </span>
          </p>
          <div class="sandwich">
            <FlameGraph
              label={`Callers of ${chosen}`}
              tree={both.callers}
              focus={0}
              found={found}
              upwards={true}
              onFocus={() => undefined}
              onFunction={toFunction}
            />
          </div>
          <div class="sandwich">
            <FlameGraph
              label={`Callees of ${chosen}`}
              tree={both.callees}
              focus={0}
              found={found}
              onFocus={() => undefined}
              onFunction={toFunction}
            />
          </div>
        </div>
      )}
    </>
  );
}

/** Why there is no flame graph. */
function Nothing({ of }: { of: ProfileView }) {
  if (of.counted === "samples") return <Empty text="There are no samples of this in that time." />;
  return (
    <Empty
      text="No thread of this was off the CPU in that time, or it was not recorded:"
      command="meikyo profile record --off-cpu · meikyo profile agent --off-cpu"
    />
  );
}

/** The shape that is drawn: stacks in time can only be samples. */
function shapeOf(of: ProfileView): Shape {
  return of.shape === "time" && !isInTime(of) ? "merged" : of.shape;
}

/** The function with most samples of its own, of those that have a name. */
function hottest(tree: FlameTree): string | null {
  const named = functionTotals(tree)
    .map(({ frame }) => tree.frames[frame])
    .find((frame) => frame !== undefined && frame.kind !== "unnamed" && frame.kind !== "group");
  return named?.name ?? null;
}

/** Which functions are called like what is searched for; null: nothing is. */
function matching(tree: FlameTree | null, search: string): ((frame: number) => boolean) | null {
  if (tree === null || search === "") return null;
  const wanted = search.toLowerCase();
  const found = tree.frames.map(
    ({ name, file }) => name.toLowerCase().includes(wanted) || file.toLowerCase().includes(wanted),
  );
  return (frame) => found[frame] === true;
}

function Search({ of }: { of: ProfileView }) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (field.current !== null && field.current !== document.activeElement) field.current.value = of.search;
  }, [of.search]);
  return (
    <label class="quiet">
      search{" "}
      <input
        ref={field}
        type="search"
        aria-label="Search functions"
        defaultValue={of.search}
        onInput={(event) => change({ search: event.currentTarget.value })}
        onKeyDown={(event) => {
          if (event.key !== "Escape" && event.key !== "Enter") return;
          if (event.key === "Escape") {
            event.currentTarget.value = "";
            change({ search: "" });
          }
          event.currentTarget.blur();
          event.stopPropagation();
        }}
      />
    </label>
  );
}

function Facts({ flame, atMs }: { flame: FlameBody | null; atMs: number }) {
  const [side, than] = [flame?.sides[0], flame?.sides[1]];
  if (flame === null || side === undefined) return null;
  const lost = Object.entries(side.losses);
  const unnamed = Object.entries(flame.unnamed);
  return (
    <div class="card">
      <h2>
        {amountWords(flame.counted, side.samples)} <AsOf atMs={atMs} />
      </h2>
      <dl>
        <dt>from</dt>
        <dd>{side.first_us == null ? "–" : dayAndClock(side.first_us)}</dd>
        <dt>over</dt>
        <dd>{side.first_us == null || side.last_us == null ? "–" : span(side.last_us - side.first_us)}</dd>
        {than !== undefined && (
          <>
            <dt>compared with</dt>
            <dd>{amountWords(flame.counted, than.samples)}</dd>
          </>
        )}
        {side.off_cpu_spans != null && (
          <>
            <dt>threads left their CPU</dt>
            <dd>{count(side.off_cpu_spans)} ×</dd>
            <dt>others ran in their place</dt>
            <dd>{amount(flame.counted, side.preempted_ns ?? 0)}</dd>
          </>
        )}
        {side.summed_up > 0 && (
          <>
            <dt>summed up, without callers</dt>
            <dd>{count(side.summed_up)}</dd>
          </>
        )}
        {unnamed.map(([why, samples]) => (
          <>
            <dt key={why}>without a name: {why.replace(/_/g, " ")}</dt>
            <dd>{amount(flame.counted, samples)}</dd>
          </>
        ))}
        {lost.map(([what, samples]) => (
          <>
            <dt key={what} class="shu">
              lost: {what.replace(/_/g, " ")}
            </dt>
            <dd class="shu">{count(samples)}</dd>
          </>
        ))}
      </dl>
      {flame.problems > 0 && (
        <p class="shu">{plural(flame.problems, "file")} of this time cannot be read; samples in them are missing.</p>
      )}
    </div>
  );
}

/** Every function with its samples: the flame graph as numbers. */
function Functions({ tree, search }: { tree: FlameTree; search: string }) {
  const all = tree.total[0] ?? 0;
  const than = tree.thanTotal?.[0] ?? 0;
  const found = matching(tree, search);
  const totals = useMemo(() => {
    const of = functionTotals(tree).filter(({ frame }) => tree.frames[frame]?.kind !== "group");
    return tree.thanTotal === null
      ? of
      : [...of].sort((one, other) => Math.abs(changed(other, all, than)) - Math.abs(changed(one, all, than)));
  }, [tree]);
  const shown = totals.filter(({ frame }) => found === null || found(frame)).slice(0, FUNCTIONS_MAX);
  const compared = tree.thanTotal !== null;
  return (
    <>
      <h2>
        Functions <small>{compared ? "greatest change first" : "most of their own first"}</small>
      </h2>
      <div class="scroll tall" tabIndex={0} role="region" aria-label="Samples of functions">
        <table aria-label="Functions">
          <thead>
            <tr>
              <th scope="col" class="number">
                own
              </th>
              <th scope="col" class="number">
                {compared ? "change" : "with callees"}
              </th>
              <th scope="col">function</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((of) => {
              const frame = tree.frames[of.frame];
              return (
                <tr key={of.frame} title={frame?.file ?? ""}>
                  <td class="number" title={amountWords(tree.counted, of.own)} data-own={of.own}>
                    {share(of.own, Math.max(1, all))}
                  </td>
                  <td class="number" title={amountWords(tree.counted, of.total)} data-total={of.total}>
                    {compared ? changeWords(changed(of, all, than)) : share(of.total, Math.max(1, all))}
                  </td>
                  <td>
                    <button
                      type="button"
                      class="plain"
                      title={frame?.name ?? ""}
                      onClick={() => change({ fn: frame?.name ?? null, shape: "sandwich" }, true)}
                    >
                      {frame?.name ?? ""}
                    </button>
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {tree.thanTotal !== null && <p class="quiet">all together {changeWords(changeOf(tree, 0))}</p>}
    </>
  );
}

/** The share of samples in the function itself that is more, or less where it is negative. */
function changed({ own, thanOwn }: FunctionTotals, all: number, than: number): number {
  return own / Math.max(1, all) - thanOwn / Math.max(1, than);
}
