//! The rows of an answer, column by column: the hot end of the poll core.

use crate::poll::device::{Device, Pending};
use crate::poll::request::{Answer, Layout, Reading};
use crate::poll::rows::Rows;

/// Columns of `objects` that are chosen by the agent's type.
const OBJECT_COUNTER: usize = 3;
const OBJECT_TEXT: usize = 6;

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
        batch.put_symbol(1, device.name);
        if let Some(instance) = target.instance {
            batch.put_symbol(2, instance);
        }
        for (slot, value) in target.values.clone().enumerate() {
            let column = target.columns[slot];
            match answer.values[value] {
                Reading::Missing => {}
                Reading::Unsigned(number) => batch.put_u64(column, number),
                Reading::Signed(integer) => batch.put_i64(column, integer),
                Reading::Real(real) => batch.put_f64(column, real),
                Reading::Counter(number) => batch.put_u64(OBJECT_COUNTER, number),
                Reading::Text { start, end } => {
                    batch.put_text(OBJECT_TEXT, &answer.texts[start..end]);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{Table, schema};

    #[test]
    fn objects_are_written_into_the_columns_of_their_types() {
        let columns = &schema(Table::Objects).columns;
        let named = [OBJECT_COUNTER, OBJECT_TEXT].map(|column| columns[column].name.as_str());
        assert_eq!(named, ["counter", "text"]);
    }
}
