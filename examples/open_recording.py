#!/usr/bin/env python3
"""Open a recording with DuckDB and with pandas, and print the same numbers from both.

    open_recording.py RECORDING [TABLE COLUMN]

For every device: how many readings of COLUMN there are, its greatest value, and how long after the
due instant the answers came (in microseconds), from the kernel's receive times in `polls`. Exit code
1 when DuckDB and pandas disagree. Needs what examples/requirements.txt pins.
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


def main() -> int:
    if len(sys.argv) not in (2, 4):
        print(__doc__, file=sys.stderr)
        return 2
    recording = pathlib.Path(sys.argv[1]).resolve()
    table, column = sys.argv[2:] or ("interfaces", "in_octets")
    from_duckdb = with_duckdb(recording, table, column)
    from_pandas = with_pandas(recording, table, column)
    for source, rows in (("duckdb", from_duckdb), ("pandas", from_pandas)):
        for row in rows:
            print(json.dumps({"source": source} | row, default=float))
    if not agree(from_duckdb, from_pandas):
        print("error: DuckDB and pandas disagree", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
