//! The rows of an answer, column by column: the hot end of the poll core.

use crate::poll::device::{Device, Pending};
use crate::poll::request::{Answer, Layout, Reading};
use crate::poll::rows::Rows;
use crate::tables::{self, objects};

/// Writes the rows of an answer, apart from those that are not the ones that were planned.
pub(super) fn write(
    device: &Device,
    layout: &Layout,
    pending: &Pending,
    answer: &Answer,
    rows: &mut Rows,
) {
    for (row, target) in layout.rows.iter().enumerate() {
        if answer.renamed.contains(&row) {
            continue;
        }
        let batch = rows.batch(target.table);
        batch.begin_row(pending.due.as_nanos());
        batch.put(tables::DEVICE, device.name);
        if let Some(instance) = target.instance {
            batch.put(tables::INSTANCE, instance);
        }
        for (slot, value) in target.values.clone().enumerate() {
            let column = target.columns[slot];
            match answer.values[value] {
                Reading::Missing => {}
                Reading::Unsigned(number) => batch.put_u64(column, number),
                Reading::Signed(integer) => batch.put_i64(column, integer),
                Reading::Real(real) => batch.put_f64(column, real),
                // Only objects are of types that nobody planned.
                Reading::Counter(number) => batch.put(objects::COUNTER, number),
                Reading::Text { start, end } => {
                    batch.put(objects::TEXT, &answer.texts[start..end]);
                }
            }
        }
        for &(column, constant) in &target.constants {
            batch.put_u64(column, constant);
        }
        if let Some(column) = target.pdu_column {
            batch.put_u64(column, pending.pdu.into());
        }
    }
}
