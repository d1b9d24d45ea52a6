/** The numbers behind the strip, for those who want or need them as text. */

import { useEffect, useState } from "preact/hooks";
import type { Watch } from "../live/watch.ts";
import { knownNowUs } from "../session/now.ts";
import { view } from "../session/view.ts";
import { NO_STATE, STATE_WORDS } from "../strip/ramp.ts";
import type { Bounds } from "../time/window.ts";
import { ageWords } from "../views/told.tsx";
import { plural } from "../words/names.ts";
import { MISSING, quantityText } from "../words/quantity.ts";

/** More rows than this are not read by anybody; find or selection brings the others. */
const ROWS_MAX = 200;
const REFRESH_MS = 1000;

interface Line {
  readonly name: string;
  readonly newest: number;
  /** When the newest value's interval ended, µs since the epoch. */
  readonly newestUs: number;
  readonly least: number;
  readonly mean: number;
  readonly greatest: number;
  readonly state: number;
}

function lineOf(watch: Watch, row: number, { fromUs, toUs }: Bounds): Line {
  const { bins, request } = watch;
  const first = Math.max(bins.binOf(fromUs), bins.newestBin - bins.capacity + 1);
  const last = Math.min(bins.binOf(toUs - 1), bins.newestBin);
  let [newest, newestUs, least, greatest, sum, known, state] = [
    Number.NaN,
    Number.NaN,
    Number.NaN,
    Number.NaN,
    0,
    0,
    NO_STATE,
  ];
  for (let bin = first; bin <= last; bin += 1) {
    const told = bins.state(bin, row);
    if (told !== NO_STATE) state = told;
    const value = bins.value(bin, row);
    if (Number.isNaN(value)) continue;
    [newest, newestUs] = [value, (bin + 1) * bins.binUs];
    if (!(value >= least)) least = value;
    if (!(value <= greatest)) greatest = value;
    sum += value;
    known += 1;
  }
  return {
    name: request.model.rows[row]?.name ?? "",
    newest,
    newestUs,
    least,
    mean: known > 0 ? sum / known : Number.NaN,
    greatest,
    state,
  };
}

export function StripTable({ watch, rows, bounds }: { watch: Watch; rows: readonly number[]; bounds: () => Bounds }) {
  const [lines, setLines] = useState<readonly Line[]>([]);
  useEffect(() => {
    const read = (): void => setLines(rows.slice(0, ROWS_MAX).map((row) => lineOf(watch, row, bounds())));
    read();
    const stop = watch.filled.subscribe(read);
    const timer = window.setInterval(read, REFRESH_MS);
    return () => {
      stop();
      window.clearInterval(timer);
    };
  }, [watch, rows.join(), bounds]);
  const unit = watch.unit.value;
  // Before the past is there, nothing is known to be missing.
  const missing = watch.filled.value ? MISSING : "…";
  const text = (value: number): string => (Number.isNaN(value) ? missing : quantityText(value, unit));
  const age = ({ newest, newestUs }: Line): string =>
    view.value.window.live && !Number.isNaN(newest) ? ageWords((knownNowUs() - newestUs) / 1000) : "";
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Table of the strip">
      <table>
        <caption class="unseen">Newest, least, mean and greatest value of each row in the shown time</caption>
        <thead>
          <tr>
            <th scope="col">row</th>
            {["newest", "least", "mean", "greatest"].map((name) => (
              <th key={name} scope="col" class="number">
                {name}
              </th>
            ))}
            <th scope="col">newest state</th>
          </tr>
        </thead>
        <tbody>
          {lines.map((line) => (
            <tr key={line.name}>
              <td>{line.name}</td>
              <td class="number">
                {text(line.newest)}
                {age(line) !== "" && <small class="age">, {age(line)}</small>}
              </td>
              {[line.least, line.mean, line.greatest].map((value, at) => (
                <td key={at} class="number">
                  {text(value)}
                </td>
              ))}
              <td>{line.state === NO_STATE && !watch.filled.value ? "…" : STATE_WORDS[line.state]}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > ROWS_MAX && (
        <p class="quiet">{plural(rows.length - ROWS_MAX, "further row")}; select or find the ones you want.</p>
      )}
    </div>
  );
}
