//! Columns as typed values: what a declaration gives to those who write and read its table.
//!
//! A [`Handle`] knows position and type of a column of a declared table, so that
//! [`Batch::put`](crate::Batch::put) with a value of another type does not compile, and costs what a
//! position costs: a store of 64 bits. A [`Name`] knows a column by its name, for rows in which only
//! some columns were asked for.

use std::fmt;
use std::marker::PhantomData;

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, Float64Array, Int64Array, RecordBatch, UInt64Array,
};
use arrow::datatypes::{Float64Type, Int64Type, UInt64Type};

use super::ColumnKind;
use crate::batch::{Batch, Symbol};
use crate::series::Texts;

/// A type of value that a column can hold: `u64`, `i64`, `f64`, [`Symbol`], [`Text`].
pub trait Cell: sealed::Sealed {
    /// How values are kept.
    const KIND: ColumnKind;
    /// What is put into a row.
    type Put<'a>;
    /// What is read from a row.
    type Read<'a>;
    /// A column of rows that were read.
    type Array<'a>: Copy;

    /// Puts a value into the row that was begun last.
    #[doc(hidden)]
    fn put(batch: &mut Batch, column: usize, value: Self::Put<'_>);
    /// The column as values of this type; `None` when it is of another one.
    #[doc(hidden)]
    fn array(column: &ArrayRef) -> Option<Self::Array<'_>>;
    /// The value of a row; `None` where it is null.
    #[doc(hidden)]
    fn get<'a>(array: Self::Array<'a>, row: usize) -> Option<Self::Read<'a>>
    where
        'a: 'a;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for i64 {}
    impl Sealed for f64 {}
    impl Sealed for crate::batch::Symbol {}
    impl Sealed for super::Text {}
}

/// Marks columns of free text.
#[derive(Debug)]
pub enum Text {}

macro_rules! numbers {
    ($type:ty, $kind:ident, $put:ident, $array:ty, $arrow:ty) => {
        impl Cell for $type {
            const KIND: ColumnKind = ColumnKind::$kind;
            type Put<'a> = $type;
            type Read<'a> = $type;
            type Array<'a> = &'a $array;

            #[inline]
            fn put(batch: &mut Batch, column: usize, value: $type) {
                batch.$put(column, value);
            }

            fn array(column: &ArrayRef) -> Option<&$array> {
                column.as_primitive_opt::<$arrow>()
            }

            #[inline]
            fn get<'a>(array: &'a $array, row: usize) -> Option<$type>
            where
                'a: 'a,
            {
                array.is_valid(row).then(|| array.value(row))
            }
        }
    };
}

numbers!(u64, U64, put_u64, UInt64Array, UInt64Type);
numbers!(i64, I64, put_i64, Int64Array, Int64Type);
numbers!(f64, F64, put_f64, Float64Array, Float64Type);

impl Cell for Symbol {
    const KIND: ColumnKind = ColumnKind::Symbol;
    type Put<'a> = Self;
    type Read<'a> = &'a str;
    type Array<'a> = Texts<'a>;

    #[inline]
    fn put(batch: &mut Batch, column: usize, value: Self) {
        batch.put_symbol(column, value);
    }

    fn array(column: &ArrayRef) -> Option<Texts<'_>> {
        Texts::new(column)
    }

    #[inline]
    fn get<'a>(array: Texts<'a>, row: usize) -> Option<&'a str>
    where
        'a: 'a,
    {
        array.get(row)
    }
}

impl Cell for Text {
    const KIND: ColumnKind = ColumnKind::Text;
    type Put<'a> = &'a str;
    type Read<'a> = &'a str;
    type Array<'a> = Texts<'a>;

    #[inline]
    fn put(batch: &mut Batch, column: usize, value: &str) {
        batch.put_text(column, value);
    }

    fn array(column: &ArrayRef) -> Option<Texts<'_>> {
        Texts::new(column)
    }

    #[inline]
    fn get<'a>(array: Texts<'a>, row: usize) -> Option<&'a str>
    where
        'a: 'a,
    {
        array.get(row)
    }
}

/// A column by its name and the type of its values.
pub struct Name<C> {
    name: &'static str,
    holds: PhantomData<fn(C)>,
}

impl<C: Cell> Name<C> {
    /// The column of that name.
    pub const fn new(name: &'static str) -> Self {
        Self { name, holds: PhantomData }
    }

    /// The column's name in tables of the role.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The column among some rows; `None` when they do not have it, or hold other values in it.
    pub fn values_in<'a>(&self, rows: &'a RecordBatch) -> Option<Values<'a, C>> {
        rows.column_by_name(self.name).and_then(C::array).map(Values)
    }
}

/// A column of a declared table: its position, its name and the type of its values.
pub struct Handle<C> {
    position: usize,
    name: Name<C>,
}

impl<C: Cell> Handle<C> {
    /// The column of that name among all columns of a table.
    ///
    /// # Panics
    /// If the table has no such column; in a constant that is an error of the compiler.
    pub const fn named(columns: &[&str], name: &'static str) -> Self {
        let mut position = 0;
        while position < columns.len() {
            if is_same(columns[position].as_bytes(), name.as_bytes()) {
                return Self { position, name: Name::new(name) };
            }
            position += 1;
        }
        panic!("the table has no column of that name")
    }

    /// Its position in the table.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// The column's name in its table.
    pub const fn name(&self) -> &'static str {
        self.name.name
    }

    /// The column among some rows, see [`Name::values_in`].
    pub fn values_in<'a>(&self, rows: &'a RecordBatch) -> Option<Values<'a, C>> {
        self.name.values_in(rows)
    }
}

/// Whether two texts are the same; `==` cannot be used in a constant yet.
const fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// The values of one column of some rows.
pub struct Values<'a, C: Cell>(C::Array<'a>);

impl<'a, C: Cell> Values<'a, C> {
    /// The value of a row; `None` where it is null.
    #[inline]
    pub fn get(&self, row: usize) -> Option<C::Read<'a>> {
        C::get(self.0, row)
    }

    /// The column as Arrow holds it.
    pub fn array(&self) -> C::Array<'a> {
        self.0
    }
}

impl<C> Clone for Name<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Name<C> {}

impl<C> Clone for Handle<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Handle<C> {}

impl<C: Cell> Clone for Values<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Cell> Copy for Values<'_, C> {}

impl<C> fmt::Debug for Name<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl<C> fmt::Debug for Handle<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}", self.name, self.position)
    }
}

impl<C: Cell> fmt::Debug for Values<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "values of kind {:?}", C::KIND)
    }
}
