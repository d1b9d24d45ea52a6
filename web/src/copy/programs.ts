/** The shown readings as a program for somebody else: Python, SQL for DuckDB, curl, a download. */

import { absolute, apiPath, recordingPath } from "../api/client.ts";
import { formatMoment } from "../time/moment.ts";
import type { Bounds } from "../time/window.ts";

export interface Shown {
  readonly recording: string;
  /** Directory of the recording, as far as the page knows it. */
  readonly name: string;
  readonly table: string;
  /** Labels and quantities; `time` is there anyway. */
  readonly columns: readonly string[];
  readonly devices: readonly string[];
  readonly bounds: Bounds;
}

/** More names than this make a program unreadable; then it reads all devices. */
const NAMES_MAX = 200;

function named(shown: Shown): readonly string[] {
  return shown.devices.length <= NAMES_MAX ? shown.devices : [];
}

export function exportPath(shown: Shown, format: "parquet" | "csv"): string {
  return apiPath(recordingPath(shown.recording, "export"), {
    table: shown.table,
    columns: shown.columns.length === 0 ? null : shown.columns.join(","),
    device: named(shown),
    from: formatMoment(Math.round(shown.bounds.fromUs)),
    to: formatMoment(Math.round(shown.bounds.toUs)),
    format,
  });
}

/** Quoted for a POSIX shell. */
export function shellWord(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

export function curlProgram(shown: Shown): string {
  return `curl -o ${shown.table}.parquet ${shellWord(absolute(exportPath(shown, "parquet")))}`;
}

function sqlText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Reads the recording's own files: no server is needed, and rows that are still in the log are not in it. */
export function duckdbProgram(shown: Shown): string {
  const devices = named(shown);
  // Newer versions keep nanoseconds and compare them with no other kind of time.
  const where = [
    `time::TIMESTAMPTZ >= TIMESTAMPTZ ${sqlText(formatMoment(Math.round(shown.bounds.fromUs)))}`,
    `time::TIMESTAMPTZ < TIMESTAMPTZ ${sqlText(formatMoment(Math.round(shown.bounds.toUs)))}`,
    ...(devices.length > 0 ? [`device IN (${devices.map(sqlText).join(", ")})`] : []),
  ];
  return [
    `-- Run where the directory ${shown.name.replace(/[\r\n]/g, " ")} lies, or write its whole path.`,
    `SELECT ${["time", ...shown.columns].join(", ")}`,
    `FROM read_parquet(${sqlText(`${shown.name}/${shown.table}/**/*.parquet`)}, hive_partitioning = true)`,
    `WHERE ${where.join("\n  AND ")}`,
    `ORDER BY ${[...shown.columns.filter((column) => column === "device"), "time"].join(", ")};`,
  ].join("\n");
}

export function pythonProgram(shown: Shown): string {
  return [
    "import io, urllib.request",
    "import pandas",
    "",
    `address = ${JSON.stringify(absolute(exportPath(shown, "parquet")))}`,
    "with urllib.request.urlopen(address) as answer:",
    "    readings = pandas.read_parquet(io.BytesIO(answer.read()))",
    "print(readings)",
  ].join("\n");
}
