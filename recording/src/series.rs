//! The rows of a table as Arrow columns, and the series in them.
//!
//! A series is what agrees in all labels but `time`: the readings of one interface of one device.
//! Rows that are sorted by their labels and then by time hold each series as one run.

mod polls;

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray as _, DictionaryArray, Int32Array, RecordBatch, StringArray,
};
use arrow::datatypes::{DataType, Field, Int32Type, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;

pub use polls::{PollCursor, PollTimes, Received};

use crate::schema::{ColumnKind, Meaning, TableSchema};

/// The Arrow type of a column: symbols are dictionaries, `time` is `TIMESTAMP(ns, UTC)`.
pub fn arrow_type(kind: ColumnKind) -> DataType {
    match kind {
        ColumnKind::Time => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        ColumnKind::Symbol => {
            DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
        }
        ColumnKind::Text => DataType::Utf8,
        ColumnKind::U64 => DataType::UInt64,
        ColumnKind::I64 => DataType::Int64,
        ColumnKind::F64 => DataType::Float64,
    }
}

/// The Arrow schema of a table; only `time` is never null.
pub fn arrow_schema(table: &TableSchema) -> SchemaRef {
    let field = |column: &crate::schema::Column| {
        let nullable = column.kind != ColumnKind::Time;
        Field::new(&column.name, arrow_type(column.kind), nullable)
    };
    Arc::new(Schema::new(table.columns.iter().map(field).collect::<Vec<_>>()))
}

/// A column as the type of another of its kind: texts plain or as a dictionary, others as they are.
///
/// # Errors
/// When the column is of another kind.
pub(crate) fn as_type(column: &ArrayRef, kind: &DataType) -> Result<ArrayRef, ArrowError> {
    if column.data_type() == kind {
        return Ok(column.clone());
    }
    let texts = || Texts::new(column);
    let of_texts: Option<ArrayRef> = match kind {
        DataType::Utf8 => texts().map(|texts| Arc::new(texts.iter().collect::<StringArray>()) as _),
        _ if *kind == arrow_type(ColumnKind::Symbol) => {
            texts().map(|texts| Arc::new(texts.iter().collect::<DictionaryArray<Int32Type>>()) as _)
        }
        _ => None,
    };
    of_texts.ok_or_else(|| {
        let found = column.data_type();
        ArrowError::SchemaError(format!("a column is of type {found}, not of type {kind}"))
    })
}

/// The runs of rows that agree in all of these columns: the series of sorted rows.
///
/// # Errors
/// When a column is of a type that Arrow cannot compare.
pub fn runs(columns: &[ArrayRef], rows: usize) -> Result<Vec<Range<usize>>, ArrowError> {
    if rows == 0 {
        return Ok(Vec::new());
    }
    if columns.is_empty() {
        return Ok(std::iter::once(0..rows).collect());
    }
    let texts: Option<Vec<_>> = columns.iter().map(Texts::new).collect();
    let Some(texts) = texts else { return Ok(arrow::compute::partition(columns)?.ranges()) };
    let mut runs: Vec<_> = std::iter::once(0..rows).collect();
    for texts in &texts {
        let mut parts = Vec::new();
        runs.into_iter().for_each(|run| texts.split(run, &mut parts));
        runs = parts;
    }
    Ok(runs)
}

/// Positions of the labels of a table but `time`.
pub fn labels(table: &TableSchema) -> impl Iterator<Item = usize> + '_ {
    let columns = table.columns.iter().enumerate();
    columns
        .filter(|(_, column)| column.meaning == Meaning::Label && column.kind != ColumnKind::Time)
        .map(|(position, _)| position)
}

/// A column of texts, plain or as a dictionary.
#[derive(Debug, Clone, Copy)]
pub enum Texts<'a> {
    /// `Utf8`.
    Plain(&'a StringArray),
    /// `Dictionary(Int32, Utf8)`.
    Coded(&'a Int32Array, &'a StringArray),
}

impl<'a> Texts<'a> {
    /// The column as texts; `None` when it is of another type.
    pub fn new(column: &'a ArrayRef) -> Option<Self> {
        if let Some(plain) = column.as_string_opt::<i32>() {
            return Some(Self::Plain(plain));
        }
        let coded: &DictionaryArray<Int32Type> = column.as_dictionary_opt()?;
        Some(Self::Coded(coded.keys(), coded.values().as_string_opt::<i32>()?))
    }

    /// Splits some rows where their texts differ.
    pub(crate) fn split(&self, rows: Range<usize>, parts: &mut Vec<Range<usize>>) {
        let mut begin = rows.start;
        let mut candidate = |row: usize| {
            if row > rows.start && self.get(row - 1) != self.get(row) {
                parts.push(begin..row);
                begin = row;
            }
        };
        if let Self::Coded(keys, _) = self
            && keys.null_count() == 0
        {
            let mut row = rows.start;
            for same in keys.values()[rows.clone()].chunk_by(|a, b| a == b) {
                candidate(row);
                row += same.len();
            }
        } else {
            rows.clone().for_each(candidate);
        }
        parts.push(begin..rows.end);
    }

    /// The texts of all rows, `None` where one is null.
    fn iter(self) -> impl Iterator<Item = Option<&'a str>> {
        let rows = match self {
            Self::Plain(texts) => texts.len(),
            Self::Coded(keys, _) => keys.len(),
        };
        (0..rows).map(move |row| self.get(row))
    }

    /// The text of a row; `None` where it is null.
    #[inline]
    pub fn get(&self, row: usize) -> Option<&'a str> {
        match self {
            Self::Plain(texts) => texts.is_valid(row).then(|| texts.value(row)),
            Self::Coded(keys, texts) => {
                let key = keys.is_valid(row).then(|| keys.value(row))?;
                Some(texts.value(usize::try_from(key).ok()?))
            }
        }
    }
}

/// The texts of the column of that name; `None` when there is none or it holds no texts.
pub fn texts<'a>(rows: &'a RecordBatch, name: &str) -> Option<Texts<'a>> {
    Texts::new(rows.column_by_name(name)?)
}

#[cfg(test)]
mod tests {
    use arrow::array::UInt64Array;
    use arrow::compute::cast;

    use super::*;

    #[test]
    fn texts_become_a_dictionary_and_plain_again_as_arrow_has_it() {
        let texts = [Some("eth1"), None, Some("eth0"), Some("eth1"), Some("")];
        let plain: ArrayRef = Arc::new(texts.iter().collect::<StringArray>());
        let symbol = arrow_type(ColumnKind::Symbol);
        let coded = as_type(&plain, &symbol).unwrap();
        assert_eq!(&coded, &cast(&plain, &symbol).unwrap());
        let again = as_type(&coded.slice(1, 3), &DataType::Utf8).unwrap();
        assert_eq!(&again, &plain.slice(1, 3));
    }

    #[test]
    fn numbers_are_not_taken_for_texts_nor_for_other_numbers() {
        let numbers: ArrayRef = Arc::new(UInt64Array::from(vec![1]));
        assert_eq!(&as_type(&numbers, &DataType::UInt64).unwrap(), &numbers);
        for kind in [DataType::Utf8, arrow_type(ColumnKind::Symbol), DataType::Int64] {
            let error = as_type(&numbers, &kind).unwrap_err().to_string();
            assert!(error.contains("of type UInt64"), "{error}");
        }
    }
}
