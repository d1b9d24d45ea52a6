/** The frame of the page: head, time bar, notices, the view. */

import { useEffect } from "preact/hooks";
import { VIEW_NAMES, type ViewName } from "./address/address.ts";
import { poll } from "./api/poll.ts";
import { copied } from "./copy/clipboard.ts";
import { Help } from "./keys/help.tsx";
import { helpOpen } from "./keys/keys.ts";
import { requestPaint } from "./paint/painter.ts";
import { connection, rejoined } from "./session/now.ts";
import {
  forgetSeries,
  recording,
  recordings,
  recordingsError,
  recordingTitle,
  refreshRecordings,
  tableOf,
} from "./session/recordings.ts";
import { addressOf, addressProblems, pauseOrGoOn, show, view } from "./session/view.ts";
import { applyTheme, otherTheme, theme } from "./theme/theme.ts";
import { TimeBar } from "./time/time_bar.tsx";
import { AlertsButton, AlertsPanel } from "./views/alerts.tsx";
import { CHECKPOINTS, Checkpoints } from "./views/checkpoints.tsx";
import { Cluster } from "./views/cluster.tsx";
import { Clusters } from "./views/clusters.tsx";
import { Data } from "./views/data.tsx";
import { Device } from "./views/device.tsx";
import { Empty } from "./views/empty.tsx";
import { Fabric } from "./views/fabric.tsx";
import { Profile } from "./views/profile.tsx";
import { ThenAndNow } from "./views/then_and_now.tsx";
import { LOADING } from "./views/told.tsx";

const TITLES: Readonly<Record<ViewName, string>> = {
  cluster: "Cluster",
  then: "Then and now",
  device: "Device",
  fabric: "Fabric",
  data: "Data",
  profile: "Profile",
  clusters: "Clusters",
  checkpoints: "Checkpoints",
};

/** How often the list of recordings is asked for: new devices, growth, a recording that ended. */
const RECORDINGS_MS = 3000;

export function App() {
  const chosen = theme.value;
  useEffect(() => {
    applyTheme();
    requestPaint();
  }, [chosen]);
  useEffect(() => {
    return poll(refreshRecordings, RECORDINGS_MS, () => undefined);
  }, []);
  const times = rejoined.value;
  useEffect(() => {
    // Numbers of series hold only as long as the server runs.
    if (times === 0) return;
    forgetSeries();
    void refreshRecordings();
  }, [times]);
  const name = view.value.name;
  useEffect(() => {
    document.title = `${TITLES[name]} · ${recording.value?.name ?? "Meikyo"}`;
  }, [name, recording.value?.name]);
  return (
    <>
      <Head />
      <TimeBar />
      <Notices />
      <View />
      <AlertsPanel />
      <Help />
      <Copied />
    </>
  );
}

function Mark() {
  return (
    <svg
      width="18"
      height="18"
      viewBox="0 0 18 18"
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      aria-hidden="true"
    >
      <circle cx="9" cy="6.2" r="4.4" />
      <path d="M1 12.2h16M5 14.6h8M7 17h4" stroke-linecap="round" />
    </svg>
  );
}

/** Clusters beside each other are there where there are several, checkpoints where the recording tells of them. */
function isThere(name: ViewName): boolean {
  if (name === "clusters") return (recordings.value ?? []).length > 1;
  return name !== "checkpoints" || tableOf(recording.value, CHECKPOINTS) !== null;
}

function Head() {
  const all = recordings.value ?? [];
  const current = recording.value;
  return (
    <header class="head">
      <a class="mark" href={addressOf({ name: "cluster" })}>
        <Mark /> <span>meikyo</span>
      </a>
      {all.length > 1 ? (
        <select
          class="picker"
          aria-label="Recording"
          value={current?.id ?? ""}
          onChange={(event) => show({ recording: event.currentTarget.value, devices: [], selected: null }, true)}
        >
          {all.map((one) => (
            <option key={one.id} value={one.id}>
              {recordingTitle(one, all)}
              {one.running ? " (live)" : ""}
            </option>
          ))}
        </select>
      ) : (
        <span class="quiet">{current === null ? "" : recordingTitle(current, all)}</span>
      )}
      <nav aria-label="Views">
        {VIEW_NAMES.filter((name) => view.value.name === name || isThere(name)).map((name) => (
          <a
            key={name}
            href={addressOf({ name })}
            {...(view.value.name === name ? { "aria-current": "page" as const } : {})}
          >
            {TITLES[name]}
          </a>
        ))}
      </nav>
      <div class="right">
        <AlertsButton />
        <label for="find">find</label>
        <input
          id="find"
          type="search"
          aria-label="Find a device"
          value={view.value.find}
          onInput={(event) => show({ find: event.currentTarget.value })}
          onKeyDown={(event) => {
            if (event.key !== "Escape" && event.key !== "Enter") return;
            if (event.key === "Escape") show({ find: "" });
            event.currentTarget.blur();
            event.stopPropagation();
          }}
        />
        <kbd>/</kbd>
        <button type="button" class="plain" onClick={pauseOrGoOn}>
          <span class="keyword">{view.value.window.live ? "pause" : "go on"}</span>
          <kbd>space</kbd>
        </button>
        <button type="button" class="plain" onClick={otherTheme}>
          <span class="keyword">{theme.value === "dark" ? "light" : "dark"}</span>
          <kbd>d</kbd>
        </button>
        <button
          type="button"
          class="plain"
          onClick={() => {
            helpOpen.value = true;
          }}
        >
          <span class="keyword">all keys</span>
          <kbd>?</kbd>
        </button>
      </div>
    </header>
  );
}

function Notices() {
  const problems = addressProblems.value;
  const all = recordings.value;
  const wanted = view.value.recording;
  return (
    <div class="notices" aria-live="polite">
      <div>
        {connection.value === "away" && (
          <p class="notice">
            <span class="shu">The server does not answer.</span> The recording goes on; this page joins again by itself.
            If the server was stopped: <code>meikyo serve RECORDING</code>
          </p>
        )}
        {recordingsError.value !== null && connection.value !== "away" && (
          <p class="notice">
            <span class="shu">The list of recordings did not come:</span> {recordingsError.value}
          </p>
        )}
        {problems.length > 0 && (
          <p class="notice">
            <span class="kin">Part of the address could not be read:</span> {problems.join(", ")}. What it would have
            changed is as usual.
          </p>
        )}
        {all !== null && wanted !== null && recording.value === null && (
          <p class="notice">
            <span class="kin">This server has no recording {wanted}.</span> It has{" "}
            {all.map(({ id }) => id).join(", ") || "none"}.
          </p>
        )}
      </div>
    </div>
  );
}

function View() {
  const all = recordings.value;
  if (all === null)
    return (
      <main class="page">
        {recordingsError.value === null ? (
          <Empty text={LOADING} />
        ) : (
          <Empty text="The server does not answer." command="meikyo serve RECORDING" />
        )}
      </main>
    );
  if (all.length === 0)
    return (
      <main class="page">
        <Empty
          text="This server has no recording yet. Make one, and serve it:"
          command="meikyo measure --out recording --serve"
        />
      </main>
    );
  const current = recording.value;
  if (current === null)
    return (
      <main class="page">
        <Empty text="Choose a recording that this server has." />
      </main>
    );
  switch (view.value.name) {
    case "cluster":
      return <Cluster key={current.id} />;
    case "then":
      return <ThenAndNow key={current.id} />;
    case "device":
      return <Device key={current.id} />;
    case "fabric":
      return <Fabric />;
    case "data":
      return <Data />;
    case "profile":
      return <Profile key={current.id} />;
    case "clusters":
      return <Clusters />;
    case "checkpoints":
      return <Checkpoints key={current.id} />;
  }
}

function Copied() {
  const told = copied.value;
  if (told === null) return null;
  return (
    <div class="toast" role="status">
      {told.done ? (
        `Copied as ${told.what}.`
      ) : (
        <>
          <p>
            This browser keeps the clipboard closed; copy it from here.{" "}
            <button
              type="button"
              class="tag"
              onClick={() => {
                copied.value = null;
              }}
            >
              close
            </button>
          </p>
          <pre tabIndex={0}>{told.text}</pre>
        </>
      )}
    </div>
  );
}
