//! Values of rows as what they are, whatever the column's type.

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, Float64Array, Int64Array, TimestampNanosecondArray,
    UInt64Array,
};
use arrow::datatypes::{Float64Type, Int64Type, TimestampNanosecondType, UInt64Type};
use meikyo_recording::series::Texts;
use meikyo_units::WallTime;

/// The greatest integer that every reader of JSON keeps exactly; greater ones are texts there.
pub const JSON_INTEGER_MAX: u64 = 1 << 53;

/// One value of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// The row has none in this column.
    Missing,
    /// An instant of the recording's clock.
    Time(WallTime),
    /// A label, a word or a text.
    Text(&'a str),
    /// A counter or an unsigned gauge.
    Unsigned(u64),
    /// A signed gauge.
    Signed(i64),
    /// A real gauge, or a rate.
    Real(f64),
}

/// A column of a batch as its type.
#[derive(Debug)]
pub struct Values<'a>(Option<Typed<'a>>);

#[derive(Debug)]
enum Typed<'a> {
    Times(&'a TimestampNanosecondArray),
    Texts(Texts<'a>),
    Unsigned(&'a UInt64Array),
    Signed(&'a Int64Array),
    Reals(&'a Float64Array),
}

impl<'a> Values<'a> {
    /// The values of a column; of a type that recordings do not have, all are missing.
    pub fn new(column: &'a ArrayRef) -> Self {
        let times = || Some(Typed::Times(column.as_primitive_opt::<TimestampNanosecondType>()?));
        let unsigned = || Some(Typed::Unsigned(column.as_primitive_opt::<UInt64Type>()?));
        let signed = || Some(Typed::Signed(column.as_primitive_opt::<Int64Type>()?));
        let reals = || Some(Typed::Reals(column.as_primitive_opt::<Float64Type>()?));
        let texts = || Texts::new(column).map(Typed::Texts);
        Self(times().or_else(unsigned).or_else(signed).or_else(reals).or_else(texts))
    }

    /// The value of a row.
    pub fn value(&self, row: usize) -> Value<'a> {
        match &self.0 {
            Some(Typed::Times(of)) if of.is_valid(row) => {
                Value::Time(WallTime::from_nanos(of.value(row)))
            }
            Some(Typed::Unsigned(of)) if of.is_valid(row) => Value::Unsigned(of.value(row)),
            Some(Typed::Signed(of)) if of.is_valid(row) => Value::Signed(of.value(row)),
            Some(Typed::Reals(of)) if of.is_valid(row) => Value::Real(of.value(row)),
            Some(Typed::Texts(of)) => of.get(row).map_or(Value::Missing, Value::Text),
            _ => Value::Missing,
        }
    }
}
