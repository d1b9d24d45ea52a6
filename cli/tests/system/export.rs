//! `meikyo export --format parquet`, read again by pyarrow and DuckDB.

use std::process::Command;

use serde_json::Value;

use crate::query::{python, record};
use crate::running::{meikyo, text};

/// Prints what the two readers see in a Parquet file, one JSON line each.
const SCRIPT: &str = "
import json, sys
import duckdb, pyarrow.parquet
path = sys.argv[1]
table = pyarrow.parquet.read_table(path)
print(json.dumps({'reader': 'pyarrow', 'rows': table.num_rows,
                  'sum': sum(table.column('in_octets').to_pylist()),
                  'type': str(table.schema.field('time').type)}))
rows, total, first, last = duckdb.sql(
    f\"select count(*), sum(in_octets), min(epoch_ns(time)), max(epoch_ns(time)) from '{path}'\"
).fetchall()[0]
print(json.dumps({'reader': 'duckdb', 'rows': rows, 'sum': int(total),
                  'first': first, 'last': last}))
";

#[test]
fn exported_parquet_is_what_was_recorded_for_pyarrow_and_duckdb() {
    let Some(python) = python() else {
        return meikyo_testing::lacking(
            "no Python with duckdb, pandas and pyarrow (MEIKYO_PYTHON, target/venv)",
        );
    };
    let dir = tempfile::tempdir().unwrap();
    let (recording, out) = (dir.path().join("recording"), dir.path().join("out"));
    record(&recording, true);
    let mut export = meikyo();
    export.arg("export").arg(&recording).args(["interfaces", "--format", "parquet", "--out"]);
    let output = export.arg(&out).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    // What takes room on the disk is told, and nothing of it among the data.
    let file = out.join("interfaces.parquet");
    let told = format!("{}: 1800 rows, ", file.display());
    assert!(text(&output).contains(&told) && output.stdout.is_empty(), "{}", text(&output));
    let read = Command::new(python)
        .args(["-c", SCRIPT])
        .arg(out.join("interfaces.parquet"))
        .output()
        .unwrap();
    assert!(read.status.success(), "{}", text(&read));
    let lines = String::from_utf8(read.stdout).unwrap();
    let seen: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // 600 polls of three devices; device n counts n kB a ms and shows it every 3 s.
    let sum: u64 = (0..600_u64).map(|poll| poll / 30 * 3_000 * 1_000 * (1 + 2 + 3)).sum();
    for reader in &seen {
        assert_eq!((&reader["rows"], &reader["sum"]), (&1_800.into(), &sum.into()), "{reader}");
    }
    assert!(seen[0]["type"].as_str().unwrap().starts_with("timestamp[ns"), "{}", seen[0]);
    let begin = 1_795_291_200_000_000_000_i64;
    assert_eq!(seen[1]["first"], begin);
    assert_eq!(seen[1]["last"], begin + 599 * 100_000_000);
}
