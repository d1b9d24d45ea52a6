//! What of a table can be drawn: its quantities, series by series.

use meikyo_recording::{Column, ColumnKind, Meaning, TableSchema};

/// Why a column cannot be drawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("table `{table}` has no quantity `{column}`; it has {}", listed(.known))]
pub struct NoQuantity {
    /// The table's name.
    pub table: String,
    /// The column that was asked for.
    pub column: String,
    /// The columns of the table that are quantities.
    pub known: Vec<String>,
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The names of a table's labels but `time`.
pub fn label_names(table: &TableSchema) -> Vec<String> {
    let labels = meikyo_recording::series::labels(table);
    labels.map(|label| table.columns[label].name.clone()).collect()
}

/// The column of that name, if its values are quantities.
///
/// # Errors
/// [`NoQuantity`] when there is no such column, or it is a label, a state or a text.
pub fn drawable(table: &TableSchema, name: &str) -> Result<Column, NoQuantity> {
    let quantity = |column: &&Column| {
        matches!(column.kind, ColumnKind::U64 | ColumnKind::I64 | ColumnKind::F64)
            && matches!(column.meaning, Meaning::Gauge | Meaning::Counter32 | Meaning::Counter64)
    };
    let quantities = || table.columns.iter().filter(quantity);
    quantities().find(|column| column.name == name).cloned().ok_or_else(|| NoQuantity {
        table: table.name.clone(),
        column: name.to_owned(),
        known: quantities().map(|column| column.name.clone()).collect(),
    })
}
