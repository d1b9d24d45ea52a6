#!/usr/bin/env python3
"""Open a recording with DuckDB and with pandas, and print the same numbers from both.

    open_recording.py [--json] RECORDING [TABLE COLUMN]

For each device: how many readings of COLUMN there are, the greatest value, and how long after the
due instant the answers came (mean, in microseconds), from the kernel's receive times in `polls`.
Prints the first devices as a table, or with --json every device as one line per source. Exits with 1
if DuckDB and pandas disagree. Needs the packages in examples/requirements.txt.
"""

import json
import pathlib
import sys

import duckdb
import pandas
import pyarrow.dataset


def with_duckdb(recording: pathlib.Path, table: str, column: str) -> list[dict]:
    """The numbers from the views that the recording ships."""
    database = duckdb.connect()
    database.execute(f"SET file_search_path = '{recording}'")
    database.execute((recording / "views.sql").read_text())
    rows = database.execute(
        f"""
        SELECT device, count({column}), max({column}),
               avg(epoch_ns(received) - epoch_ns(time)) / 1000
        FROM {table}_exact GROUP BY device ORDER BY device
        """
    ).fetchall()
    keys = ("device", "readings", "greatest", "delay_us_mean")
    return [dict(zip(keys, row)) for row in rows]


def with_pandas(recording: pathlib.Path, table: str, column: str) -> list[dict]:
    """The numbers from the Parquet files, joined by hand."""

    def read(name: str, columns: list[str]) -> pandas.DataFrame:
        files = pyarrow.dataset.dataset(recording / name, partitioning="hive")
        return files.to_table(columns=columns).to_pandas()

    values = read(table, ["time", "device", "pdu", column])
    polls = read("polls", ["time", "device", "pdu", "received_us"])
    values["pdu"] = values["pdu"].fillna(0).astype("uint64")
    exact = values.merge(polls, on=["time", "device", "pdu"], how="left")
    grouped = exact.groupby("device", observed=True)
    numbers = pandas.DataFrame(
        {
            "readings": grouped[column].count(),
            "greatest": grouped[column].max(),
            "delay_us_mean": grouped["received_us"].mean(),
        }
    )
    return [
        {"device": str(device), "readings": int(row.readings), "greatest": row.greatest,
         "delay_us_mean": row.delay_us_mean}
        for device, row in sorted(numbers.iterrows())
    ]


def agree(a: list[dict], b: list[dict]) -> bool:
    """Whether two lists hold the same numbers; means within the rounding of doubles."""
    def same(x, y) -> bool:
        if pandas.isna(x) or pandas.isna(y):
            return bool(pandas.isna(x) and pandas.isna(y))
        if isinstance(x, str):
            return x == y
        return abs(float(x) - float(y)) <= 1e-9 * max(1.0, abs(float(x)))

    return len(a) == len(b) and all(
        x.keys() == y.keys() and all(same(x[key], y[key]) for key in x) for x, y in zip(a, b)
    )


# Devices that the table shows; with its head and its last line it has ten lines.
DEVICES_SHOWN = 8


def table_of(column: str, from_duckdb: list[dict], from_pandas: list[dict]) -> str:
    """Both sources beside each other, for people."""
    def number(value, format_: str) -> str:
        return "-" if pandas.isna(value) else format(value, format_)

    lines = [("device", "source", "readings", f"greatest {column}", "mean delay (us)")]
    # A device takes two lines, one from each source.
    for pair in list(zip(from_duckdb, from_pandas))[: DEVICES_SHOWN // 2]:
        for source, row in zip(("DuckDB", "pandas"), pair):
            lines.append((row["device"], source, str(row["readings"]), number(row["greatest"], ",.0f"),
                          number(row["delay_us_mean"], ",.1f")))
    widths = [max(map(len, cells)) for cells in zip(*lines)]
    text = ["  ".join(cell.ljust(width) if at < 2 else cell.rjust(width)
                      for at, (cell, width) in enumerate(zip(line, widths))) for line in lines]
    left = max(len(from_duckdb), len(from_pandas)) - DEVICES_SHOWN // 2
    text.append(f"and {left} more with --json" if left > 0 else "the same for programs: --json")
    return "\n".join(text)


def main() -> int:
    arguments = [argument for argument in sys.argv[1:] if argument != "--json"]
    if len(arguments) not in (1, 3):
        print(__doc__, file=sys.stderr)
        return 2
    recording = pathlib.Path(arguments[0]).resolve()
    table, column = arguments[1:] or ("interfaces", "in_octets")
    from_duckdb = with_duckdb(recording, table, column)
    from_pandas = with_pandas(recording, table, column)
    if len(arguments) < len(sys.argv) - 1:
        for source, rows in (("duckdb", from_duckdb), ("pandas", from_pandas)):
            for row in rows:
                print(json.dumps({"source": source} | row, default=float))
    else:
        print(table_of(column, from_duckdb, from_pandas))
    if not agree(from_duckdb, from_pandas):
        print("error: DuckDB and pandas disagree", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
