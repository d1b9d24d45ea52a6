//! A recording that is nothing but rows in memory: what the poll core wrote, without a disk.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampNanosecondArray, UInt64Array,
};
use arrow::datatypes::Int32Type;
use meikyo_recording::{Batch, ColumnKind, Kept, Symbol};
use meikyo_snmp::poll::RowSink;
use meikyo_snmp::tables::{self, Table};
use meikyo_units::WallTime;

/// The rows of one measurement; all clones have the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory(Rc<RefCell<Stored>>);

#[derive(Debug, Default)]
struct Stored {
    texts: Vec<String>,
    batches: Vec<Batch>,
    marks: Vec<Kept>,
}

impl RowSink for Memory {
    fn define(&mut self, _: Symbol, text: &str) {
        self.0.borrow_mut().texts.push(text.into());
    }

    fn batch(&mut self, table: Table) -> Batch {
        Batch::new(table.index(), tables::schema(table))
    }

    fn submit(&mut self, batch: Batch) {
        self.0.borrow_mut().batches.push(batch);
    }

    /// Memory keeps at once. When that was is not asked for under virtual time.
    fn mark(&mut self, token: u64) {
        let kept = Kept { token, at: WallTime::default(), sequence: 0, lost_rows: 0 };
        self.0.borrow_mut().marks.push(kept);
    }

    fn take_kept(&mut self) -> impl Iterator<Item = Kept> {
        std::mem::take(&mut self.0.borrow_mut().marks).into_iter()
    }
}

impl Memory {
    /// All rows of a table by time, rows of one instant in the order in which they were written; with
    /// the types that a scan of a recording on disk has.
    pub(crate) fn rows(&self, table: &str) -> RecordBatch {
        let stored = self.0.borrow();
        let schemas = tables::schemas();
        let position = schemas.iter().position(|schema| schema.name == table);
        let position = position.expect("the table is declared");
        let batches = stored.batches.iter().filter(|batch| batch.table() == position);
        let mut cells: Vec<(&Batch, usize)> =
            batches.flat_map(|batch| (0..batch.rows()).map(move |row| (batch, row))).collect();
        // A clock that is set back makes rows that are older than the last.
        cells.sort_by_key(|(batch, row)| batch.bits(0, *row).map(u64::cast_signed));
        let columns = schemas[position].columns.iter().enumerate();
        let columns = columns.map(|(index, column)| {
            (&column.name, column_of(&cells, index, column.kind, &stored.texts))
        });
        RecordBatch::try_from_iter(columns).expect("columns are of one length")
    }
}

/// A column of these rows, each with the batch that holds it.
fn column_of(
    cells: &[(&Batch, usize)],
    column: usize,
    kind: ColumnKind,
    texts: &[String],
) -> ArrayRef {
    let bits = || cells.iter().map(|(batch, row)| batch.bits(column, *row));
    let signed = || bits().map(|bits| bits.map(u64::cast_signed));
    let text = |bits: u64| texts[usize::try_from(bits).expect("a symbol has 32 bits")].as_str();
    match kind {
        ColumnKind::Time => Arc::new(signed().collect::<TimestampNanosecondArray>()),
        ColumnKind::Symbol => {
            let values = bits().map(|bits| bits.map(text));
            Arc::new(values.collect::<DictionaryArray<Int32Type>>())
        }
        ColumnKind::Text => {
            let values = cells.iter().map(|(batch, row)| batch.text(column, *row));
            Arc::new(values.collect::<StringArray>())
        }
        ColumnKind::U64 => Arc::new(bits().collect::<UInt64Array>()),
        ColumnKind::I64 => Arc::new(signed().collect::<Int64Array>()),
        ColumnKind::F64 => {
            Arc::new(bits().map(|bits| bits.map(f64::from_bits)).collect::<Float64Array>())
        }
    }
}
