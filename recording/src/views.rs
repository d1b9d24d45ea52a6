//! `views.sql`: the tables of a recording as DuckDB views, shipped in its directory.
//!
//! `time` in the value tables is the due instant; the receive time stands once, in the table of the
//! answers that brought the rows. The views join them, so that nobody has to know how.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use crate::schema::role::answers;
use crate::schema::{ColumnKind, Hint, Role, TableSchema};
use crate::unfinished::{Durability, replace_file};
use crate::{declared, files, read, summary};

/// The file in a recording's directory.
pub const FILE_NAME: &str = "views.sql";

const HEAD: &str = "\
-- Views of this recording for DuckDB. In the recording's directory:
--
--     duckdb -init views.sql
--
-- From anywhere else, first: SET file_search_path = 'RECORDING';
--
-- `time` is the instant at which a reading was due. TABLE_exact adds `received`, the kernel's
-- receive time of the answer that carried the row, its state and the device's uptime in it, joined
-- from the table of the answers. The newest rows (at most 10 minutes of them) are still in the log and not seen here;
-- `meikyo query` and `meikyo export` see them.
";

/// The text of `views.sql` for tables that have Parquet files, and for some that have none yet.
pub fn sql(with_files: &[TableSchema], empty: &[TableSchema]) -> String {
    let files = with_files.iter().map(|table| (table, true));
    let mut tables: Vec<_> = files.chain(empty.iter().map(|table| (table, false))).collect();
    // DuckDB wants what a view joins to be there when the view is made.
    let has_answers = |table: &TableSchema| {
        table.role() == Role::Answers && !table.name.ends_with(summary::SUFFIX)
    };
    tables.sort_by_key(|(table, _)| (!has_answers(table), &table.name));
    let answers: BTreeSet<_> = tables
        .iter()
        .filter(|(table, _)| has_answers(table))
        .map(|(table, _)| table.name.clone())
        .collect();
    let mut text = HEAD.to_owned();
    for (table, has_files) in tables {
        let view = match table.name.strip_suffix(summary::SUFFIX) {
            Some(of) => format!("{of}_summary"),
            None => table.name.clone(),
        };
        let select = if has_files {
            let files = format!("'{}/*/*/*.parquet'", table.name);
            format!("SELECT * FROM read_parquet({files}, hive_partitioning = true)")
        } else {
            no_rows(table)
        };
        let doc = &table.doc;
        writeln!(text, "\n-- {doc}\nCREATE OR REPLACE VIEW \"{view}\" AS\n  {select};")
            .expect("writing to a string cannot fail");
        let hint = table.hint(Hint::Answer).map(|hint| &table.columns[hint].name);
        if let (Some(joined), Some(hint)) = (table.answers(), hint)
            && answers.contains(joined)
            && !table.name.ends_with(summary::SUFFIX)
        {
            text.push_str(&exact(&view, joined, hint));
        }
    }
    text
}

/// The columns that files of the table have for DuckDB, and no row: a pattern without a file is an
/// error there.
fn no_rows(table: &TableSchema) -> String {
    let of_partition = [("date", "DATE"), ("hour", "BIGINT")];
    let of_table = table.columns.iter().map(|column| {
        let kind = match column.kind {
            ColumnKind::Time => "TIMESTAMP WITH TIME ZONE",
            ColumnKind::Symbol | ColumnKind::Text => "VARCHAR",
            ColumnKind::U64 => "UBIGINT",
            ColumnKind::I64 => "BIGINT",
            ColumnKind::F64 => "DOUBLE",
        };
        (column.name.as_str(), kind)
    });
    let columns: Vec<_> = of_table
        .chain(of_partition)
        .map(|(name, kind)| format!("CAST(NULL AS {kind}) AS \"{name}\""))
        .collect();
    format!("SELECT {}\n  WHERE false", columns.join(", "))
}

/// The view of a table with the receive times of `joined`, whose answer `hint` names.
fn exact(view: &str, joined: &str, hint: &str) -> String {
    let [device, pdu, state, received, uptime] = [
        answers::DEVICE.name(),
        answers::PDU.name(),
        answers::STATE.name(),
        answers::RECEIVED_US.name(),
        answers::UPTIME_CS.name(),
    ];
    format!(
        "CREATE OR REPLACE VIEW \"{view}_exact\" AS\n  \
         SELECT t.*, make_timestamp_ns(epoch_ns(t.time) + 1000 * p.{received})\n         \
         AT TIME ZONE 'UTC' AS received,\n         \
         p.{state}, p.{uptime}\n  \
         FROM \"{view}\" t LEFT JOIN \"{joined}\" p\n    \
         ON p.{device} = t.{device} AND p.time = t.time AND p.{pdu} = coalesce(t.{hint}, 0);\n"
    )
}

/// Writes `views.sql` for the tables that have Parquet files or were declared, if it is not there as
/// it should be.
///
/// # Errors
/// When the directory cannot be read or the file cannot be written.
pub fn refresh(dir: &Path) -> io::Result<()> {
    let listing = files::list(dir).map_err(io::Error::other)?;
    let mut newest = BTreeMap::new();
    for file in listing.parquet.iter().chain(&listing.hidden) {
        newest.insert(&file.table, &file.path);
    }
    // A damaged file has no schema; its table then waits for the next one.
    let tables: Vec<_> = newest.values().filter_map(|path| read::table_schema(path).ok()).collect();
    let mut empty = declared::read(dir, &mut Vec::new()).map_err(io::Error::other)?;
    empty.retain(|name, _| !newest.contains_key(name));
    let empty: Vec<_> = empty.into_values().collect();
    let (path, text) = (dir.join(FILE_NAME), sql(&tables, &empty));
    if fs::read_to_string(&path).is_ok_and(|found| found == text) {
        return Ok(());
    }
    replace_file(&path, text.as_bytes(), Durability::Kernel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Column, Meaning};

    fn table(name: &str, columns: &[&str]) -> TableSchema {
        let column = |name: &&str| Column::new(name, ColumnKind::U64, Meaning::Gauge, "");
        TableSchema::new(name, "a table", columns.iter().map(column).collect())
    }

    #[test]
    fn what_a_view_joins_is_there_before_it() {
        let text = sql(
            &[
                table("polls", &["device", "pdu"]),
                table("clocks", &["host"]),
                table("load.summary", &["device"]),
            ],
            &[table("load", &["device", "pdu"])],
        );
        let views: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix("CREATE OR REPLACE VIEW \"")?.split('"').next())
            .collect();
        assert_eq!(views, ["polls", "clocks", "load", "load_exact", "load_summary"]);
    }
}
