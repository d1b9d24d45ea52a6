//! What a cluster's recording says of those who sent its rows, before more of them come.

use std::path::Path;

use arrow::array::{AsArray as _, RecordBatch};
use arrow::datatypes::TimestampNanosecondType;
use meikyo_recording::{ReadError, Recording, Selection, TableSchema};
use meikyo_transport::Turn;
use meikyo_transport::gaps::{self, transport_turns};

/// Whose rows were taken when, in the order in which that was decided, and the greatest time of a row of
/// senders, ns since the epoch.
pub(super) fn read(
    dir: &Path,
    tables: &[TableSchema],
) -> Result<(Vec<Turn>, Option<i64>), ReadError> {
    let recording = Recording::open(dir)?;
    let mut turns = Vec::new();
    for rows in recording.scan(&Selection::all(transport_turns::NAME))? {
        let rows = rows?;
        turns.extend((0..rows.num_rows()).filter_map(|row| turn_at(&rows, row)));
    }
    turns.sort_by_key(|(decided, _)| *decided);
    let own = gaps::tables();
    let mut newest = None;
    for table in tables.iter().filter(|table| own.iter().all(|own| own.name != table.name)) {
        let span = recording.span(&table.name)?;
        newest = newest.max(span.map(|(_, newest)| newest.as_nanos()));
    }
    Ok((turns.into_iter().map(|(_, turn)| turn).collect(), newest))
}

/// The turn in a row, and when it was decided.
fn turn_at(rows: &RecordBatch, row: usize) -> Option<(i64, Turn)> {
    let times = rows.column_by_name("time")?.as_primitive_opt::<TimestampNanosecondType>()?;
    let turn = Turn {
        identity: transport_turns::IDENTITY.values_in(rows)?.get(row)?.to_owned(),
        sender: transport_turns::ACTIVE.values_in(rows)?.get(row)?.to_owned(),
        from_ns: transport_turns::FROM_NS.values_in(rows)?.get(row)?,
        until_ns: transport_turns::UNTIL_NS.values_in(rows)?.get(row)?,
    };
    Some((times.value(row), turn))
}
