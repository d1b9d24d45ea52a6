//! Packed rows: a block of rows of one table that needs nothing beside it to be read.
//!
//! A host that measures makes a block with a [`Packer`] and sends its octets. Who receives them
//! compares the checksum ([`PackedRows::received`]) and hands the block to
//! [`StreamWriter::packed`](crate::StreamWriter::packed), which writes a header of its own around
//! the octets as they came: storing a block costs no decoding. All readers of a recording and
//! compaction read its rows like others; `docs/recording-format.md` describes every octet.
//!
//! A block names its table and the columns that it was written with, so that a reader whose table
//! has other columns finds those that both know by their names.

mod coded;
mod gather;

use std::collections::{BTreeMap, BTreeSet};

use crate::batch::{Batch, Symbol};
use crate::log::packed;
pub use crate::log::packed::{PackError, UnpackError};
use crate::log::{Codec, FrameHeader, Ordinal, decode_rows};
use crate::origin::Origin;
use crate::schema::{Column, ColumnKind, Meaning, TableSchema};
pub use coded::{CodedReader, CodedRows};
pub use gather::Gather;

/// A block of rows of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedRows {
    table: String,
    rows: usize,
    times: (i64, i64),
    payload: Vec<u8>,
    checksum: u32,
    origin: Option<Box<Origin>>,
}

impl PackedRows {
    /// The block whose octets came from somewhere else with their CRC-32 (IEEE 802.3).
    ///
    /// The checksum and what the block says about itself are looked at, its body is not: a body
    /// that is not what it says is told by whoever reads the rows.
    ///
    /// # Errors
    /// When the checksum is another, or the octets do not begin as a block of this version.
    pub fn received(payload: Vec<u8>, checksum: u32) -> Result<Self, UnpackError> {
        let found = crc32fast::hash(&payload);
        if found != checksum {
            return Err(UnpackError::Checksum { found, expected: checksum });
        }
        let prefix = packed::Prefix::read(&payload)?;
        let (table, rows, times) = (prefix.table.to_owned(), prefix.rows, prefix.times);
        let origin = prefix.origin.map(Box::new);
        Ok(Self { table, rows, times, payload, checksum, origin })
    }

    /// The name of the table that the rows are of.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The least and the greatest `time` of the rows, ns since the epoch.
    pub fn times(&self) -> (i64, i64) {
        self.times
    }

    /// Whether the table has every column that the block says it has, of the same kind. The values
    /// are not looked at.
    ///
    /// # Errors
    /// What the table does not have: readers would pass over it.
    pub fn fits(&self, schema: &TableSchema) -> Result<(), UnpackError> {
        if self.table != schema.name {
            let (found, expected) = (self.table.clone(), schema.name.clone());
            return Err(UnpackError::Table { found, expected });
        }
        let prefix = packed::Prefix::read(&self.payload)?;
        let mut names = BTreeSet::new();
        for (at, &(kind, name)) in prefix.columns().iter().enumerate() {
            let is_known = |column: &Column| column.name == name && column.kind == kind;
            // Most often it stands where the table has it.
            let has_it =
                schema.columns.get(at).is_some_and(is_known) || schema.columns.iter().any(is_known);
            if !names.insert(name) || !has_it {
                let (table, column) = (self.table.clone(), name.to_owned());
                return Err(UnpackError::Column { table, column, kind });
            }
        }
        Ok(())
    }

    /// The different texts of a column, whether it is of symbols or of texts; none when the block does not
    /// have it. Other columns but the times are not taken apart.
    ///
    /// # Errors
    /// When the block's body is not what it says.
    pub fn texts_of(&self, column: &str) -> Result<BTreeSet<String>, UnpackError> {
        let prefix = packed::Prefix::read(&self.payload)?;
        let is_text = |kind: ColumnKind| matches!(kind, ColumnKind::Symbol | ColumnKind::Text);
        let found = prefix.columns().iter().find(|(kind, name)| *name == column && is_text(*kind));
        let Some(&(kind, _)) = found else { return Ok(BTreeSet::new()) };
        let narrow = vec![Column::new(column, kind, Meaning::Label, "")];
        let (batch, words) = self.unpack(&TableSchema::new(&self.table, "", narrow))?;
        let rows = 0..batch.rows();
        if kind == ColumnKind::Text {
            return Ok(rows.filter_map(|row| batch.text(1, row)).map(str::to_owned).collect());
        }
        let places: BTreeSet<u64> = rows.filter_map(|row| batch.bits(1, row)).collect();
        let word = |place: u64| usize::try_from(place).ok().and_then(|at| words.get(at).cloned());
        Ok(places.into_iter().filter_map(word).collect())
    }

    /// The octets to be sent.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Appends a frame around the rows: their payload as it is, with the checksum that came with it.
    pub(crate) fn encode_frame(&self, table: usize, ordinal: Ordinal, out: &mut Vec<u8>) {
        let (least_time, greatest_time) = self.times;
        let header = FrameHeader {
            codec: Codec::Packed,
            table,
            rows: self.rows,
            sequence: ordinal.sequence,
            before: ordinal.before,
            least_time,
            greatest_time,
            payload_len: self.payload.len(),
            payload_crc: self.checksum,
        };
        out.extend_from_slice(&header.encoded());
        out.extend_from_slice(&self.payload);
    }

    /// The CRC-32 (IEEE 802.3) of the octets, to be sent with them.
    pub fn checksum(&self) -> u32 {
        self.checksum
    }

    /// Where the block comes from, if it says so.
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_deref()
    }

    /// The same rows in a block that says where it comes from, in place of what it said before.
    ///
    /// # Errors
    /// When a name is too long, or the numbers go back.
    pub fn with_origin(&self, origin: &Origin) -> Result<Self, PackError> {
        let payload = packed::with_origin(&self.payload, origin)?;
        let checksum = crc32fast::hash(&payload);
        let (table, origin) = (self.table.clone(), Some(Box::new(origin.clone())));
        Ok(Self { table, rows: self.rows, times: self.times, payload, checksum, origin })
    }

    /// A block of some of the rows of a table: those for which `keeps` says so, which is given all rows, the
    /// texts that their symbols are the places of, and a position. `None` when it keeps none. The origin stays.
    ///
    /// # Errors
    /// When the block is of another table, or its body is not what it says.
    pub fn retain(
        &self,
        schema: &TableSchema,
        keeps: impl Fn(&Batch, &[String], usize) -> bool,
    ) -> Result<Option<Self>, RetainError> {
        let (batch, texts) = self.unpack(schema)?;
        let kept: Vec<usize> =
            (0..batch.rows()).filter(|&row| keeps(&batch, &texts, row)).collect();
        if kept.is_empty() {
            return Ok(None);
        }
        if kept.len() == batch.rows() {
            return Ok(Some(self.clone()));
        }
        let some = Gather::new(schema.clone()).some_of(batch, &kept, &texts)?;
        let origin = self.origin().map(|origin| some.with_origin(origin)).transpose()?;
        Ok(Some(origin.unwrap_or(some)))
    }

    /// The rows as those of a table, and the texts that their symbols are the places of.
    ///
    /// # Errors
    /// When the block is of another table, or its body is not what it says.
    pub fn unpack(&self, schema: &TableSchema) -> Result<(Batch, Vec<String>), UnpackError> {
        let (mut texts, mut plain) = (Vec::new(), Vec::new());
        let number = |text: &str| {
            texts.push(text.to_owned());
            u64::try_from(texts.len() - 1).ok()
        };
        let mut sections = packed::SectionReader::default();
        let rows = packed::unpack(&self.payload, schema, number, &mut sections, &mut plain)?;
        let mut batch = Batch::new(0, schema);
        let read = decode_rows(&plain, rows, schema, &mut batch);
        read.ok_or(UnpackError::Malformed { what: "a text is damaged" })?;
        Ok((batch, texts))
    }
}

/// Why no block can be made of some rows of another.
#[derive(Debug, thiserror::Error)]
pub enum RetainError {
    /// The block cannot be read.
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    /// Its rows cannot be packed again.
    #[error(transparent)]
    Pack(#[from] PackError),
}

/// Makes blocks of the rows of one table.
///
/// ```
/// use meikyo_recording::{Column, ColumnKind, Meaning, Packer, TableSchema};
///
/// let cpu = Column::new("host", ColumnKind::Symbol, Meaning::Label, "name");
/// let table = TableSchema::new("samples", "samples of the processors", vec![cpu]);
/// let mut packer = Packer::new(table);
/// let host = packer.symbol("node001");
/// packer.batch().begin_row(1_700_000_000_000_000_000);
/// packer.batch().put_symbol(1, host);
/// let block = packer.pack()?;
/// assert_eq!((block.table(), block.rows()), ("samples", 1));
/// # Ok::<(), meikyo_recording::PackError>(())
/// ```
#[derive(Debug)]
pub struct Packer {
    schema: TableSchema,
    batch: Batch,
    texts: Vec<String>,
    symbols: BTreeMap<String, Symbol>,
    sections: packed::SectionWriter,
}

impl Packer {
    /// A packer of the rows of a table.
    pub fn new(schema: TableSchema) -> Self {
        let batch = Batch::new(0, &schema);
        let (texts, symbols) = (Vec::new(), BTreeMap::new());
        Self { schema, batch, texts, symbols, sections: packed::SectionWriter::default() }
    }

    /// The symbol of `text` in the block that is being filled.
    ///
    /// # Panics
    /// After 2^32 different texts in one block, which are more than a block can hold.
    pub fn symbol(&mut self, text: &str) -> Symbol {
        if let Some(&symbol) = self.symbols.get(text) {
            return symbol;
        }
        let number = u32::try_from(self.texts.len()).expect("a block holds fewer texts");
        self.symbols.insert(text.into(), Symbol(number));
        self.texts.push(text.into());
        Symbol(number)
    }

    /// Whether blocks are made in less time from now on, and take more octets: short columns are not compressed.
    pub fn set_haste(&mut self, is_in_haste: bool) {
        self.sections.is_in_haste = is_in_haste;
    }

    /// The rows of the block that is being filled.
    pub fn batch(&mut self) -> &mut Batch {
        &mut self.batch
    }

    /// The block of the rows so far; the next one begins empty and with no symbols, also after an
    /// error.
    ///
    /// # Errors
    /// When there are no rows, or too many of them.
    pub fn pack(&mut self) -> Result<PackedRows, PackError> {
        let payload = packed::pack(&self.schema, &mut self.batch, &self.texts, &mut self.sections);
        let rows = self.batch.rows();
        let times = self.batch.times();
        self.batch.clear();
        self.texts.clear();
        self.symbols.clear();
        let payload = payload?;
        let checksum = crc32fast::hash(&payload);
        let (table, origin) = (self.schema.name.clone(), None);
        Ok(PackedRows { table, rows, times, payload, checksum, origin })
    }
}
