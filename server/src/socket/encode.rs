//! Rows as Arrow IPC messages: the schema once, then record batches.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float32Array, RecordBatch, UInt8Array, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::ipc::writer::StreamWriter;
use meikyo_live::{Frame, Wish};
use meikyo_units::WallTime;

/// Makes the messages of one view.
#[derive(Debug)]
pub(crate) struct Encoder {
    schema: SchemaRef,
    /// The columns by name, in the viewer's order.
    columns: Vec<String>,
    epoch: WallTime,
}

/// What the writer cannot refuse: it writes to memory, and the columns are those of the schema.
const WRITES: &str = "a batch of the schema can be written to memory";

impl Encoder {
    pub(crate) fn new(wish: &Wish, epoch: WallTime) -> Self {
        let field = |name: &str, kind: DataType| Field::new(name, kind, false);
        let names = wish.columns.iter().map(|&column| wish.table.columns[column].name.clone());
        let columns: Vec<_> = names.collect();
        let mut fields =
            vec![field("offset_ms", DataType::UInt32), field("series", DataType::UInt32)];
        fields.extend(columns.iter().map(|name| field(name, DataType::Float32)));
        fields.extend([field("state", DataType::UInt8), field("age_ms", DataType::Float32)]);
        Self { schema: Arc::new(Schema::new(fields)), columns, epoch }
    }

    /// The message that describes the columns.
    pub(crate) fn schema_message(&self) -> Vec<u8> {
        let writer = StreamWriter::try_new(Vec::new(), &self.schema).expect(WRITES);
        writer.get_ref().clone()
    }

    /// One record batch of rows, each named by its frame and its place in it.
    pub(crate) fn batch_message(&self, frames: &[&Frame], rows: &[(usize, usize)]) -> Vec<u8> {
        let offset = |&(frame, row): &(usize, usize)| {
            let since = WallTime::from_nanos(frames[frame].times[row]).since(self.epoch);
            // Saturates 49 days after a view began; the page begins a new one whenever it is looked at.
            u32::try_from(since.as_micros() / 1_000).unwrap_or(u32::MAX)
        };
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(rows.iter().map(offset).map(Some).collect::<UInt32Array>()),
            Arc::new(UInt32Array::from_iter_values(
                rows.iter().map(|&(frame, row)| frames[frame].series[row]),
            )),
        ];
        for name in &self.columns {
            let places: Vec<_> = frames
                .iter()
                .map(|frame| frame.columns.iter().position(|column| column == name))
                .collect();
            let value = |&(frame, row): &(usize, usize)| {
                places[frame].map_or(f32::NAN, |column| frames[frame].values[column][row])
            };
            columns.push(Arc::new(Float32Array::from_iter_values(rows.iter().map(value))));
        }
        let states = rows.iter().map(|&(frame, row)| frames[frame].states[row]);
        columns.push(Arc::new(UInt8Array::from_iter_values(states)));
        let ages = rows.iter().map(|&(frame, row)| frames[frame].ages_ms[row]);
        columns.push(Arc::new(Float32Array::from_iter_values(ages)));
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns).expect(WRITES);
        let mut writer = StreamWriter::try_new(Vec::new(), &self.schema).expect(WRITES);
        writer.get_mut().clear();
        writer.write(&batch).expect(WRITES);
        std::mem::take(writer.get_mut())
    }
}
