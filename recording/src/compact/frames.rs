//! The frames of one table of a segment, read one at a time.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::{CompactError, system};
use crate::log::{Codec, ColumnView, FrameHeader, columns_of, packed};
use crate::origin::Received;
use crate::schema::TableSchema;

/// The texts of all symbols of a segment, those of packed rows among them.
#[derive(Debug, Default)]
pub(super) struct Texts {
    /// By number; `None` where damage took a text.
    pub(super) texts: Vec<Option<String>>,
    numbers: BTreeMap<String, u64>,
}

impl Texts {
    /// Begins with the texts that frames of symbols define.
    pub(super) fn new(of_log: &[Option<String>]) -> Self {
        let named = (0..).zip(of_log).filter_map(|(at, text)| Some((text.clone()?, at)));
        Self { texts: of_log.to_vec(), numbers: named.collect() }
    }

    /// The number of a text, which it gets if it has none.
    fn intern(&mut self, text: &str) -> Option<u64> {
        if let Some(&number) = self.numbers.get(text) {
            return Some(number);
        }
        let number = u64::from(u32::try_from(self.texts.len()).ok()?);
        self.numbers.insert(text.to_owned(), number);
        self.texts.push(Some(text.to_owned()));
        Some(number)
    }
}

/// A frame of rows, and where its payload lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    begin: u64,
    pub(super) sequence: u64,
    pub(super) least_time: i64,
    pub(super) greatest_time: i64,
    rows: u32,
    payload_len: u32,
    payload_crc: u32,
    pub(super) is_packed: bool,
}

impl Frame {
    /// The frame with that header, whose payload begins at octet `begin` of the segment.
    pub(super) fn new(header: &FrameHeader, begin: u64) -> Self {
        let narrow = |count| u32::try_from(count).expect("a header has 32 bits for it");
        Self {
            begin,
            sequence: header.sequence,
            least_time: header.least_time,
            greatest_time: header.greatest_time,
            rows: narrow(header.rows),
            payload_len: narrow(header.payload_len),
            payload_crc: header.payload_crc,
            is_packed: header.codec == Codec::Packed,
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows as usize
    }

    /// Whether the times in that column are those that the frame's header tells.
    pub(super) fn has_times(&self, times: &ColumnView<'_>) -> bool {
        let told = self.least_time..=self.greatest_time;
        let mut are_told = !times.is_all_null();
        times.each((0..self.rows()).map(|row| (row, row)), |_, bits| {
            are_told &= told.contains(&bits.cast_signed());
        });
        are_told
    }
}

/// The frames of one table. A pass over them holds one payload in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct TableFrames<'a> {
    pub(super) segment: &'a Path,
    pub(super) file: &'a File,
    pub(super) schema: &'a TableSchema,
    pub(super) frames: &'a [Frame],
    pub(super) texts: &'a Texts,
}

impl TableFrames<'_> {
    /// Reads the payload of a frame as one of the codec of rows; whether its checksum is right, and
    /// packed rows could be unpacked.
    pub(super) fn read(&self, frame: &Frame, payload: &mut Payload) -> Result<bool, CompactError> {
        let Payload { octets, packed, sections } = payload;
        let into = if frame.is_packed { &mut *packed } else { &mut *octets };
        if !read_payload(self.file, frame, into).map_err(system("read", self.segment))? {
            return Ok(false);
        }
        if !frame.is_packed {
            return Ok(true);
        }
        let number = |text: &str| self.texts.numbers.get(text).copied();
        let rows = packed::unpack(packed, self.schema, number, sections, octets);
        Ok(rows.is_ok_and(|rows| rows == frame.rows()))
    }

    /// The columns of a frame whose payload was read; `None` when it is not of the schema.
    pub(super) fn columns<'p>(
        &self,
        frame: &Frame,
        payload: &'p [u8],
    ) -> Option<Vec<ColumnView<'p>>> {
        columns_of(payload, frame.rows(), self.schema)
    }
}

/// The payload of one frame after another.
#[derive(Debug, Default)]
pub(super) struct Payload {
    /// As one of the codec of rows.
    pub(super) octets: Vec<u8>,
    packed: Vec<u8>,
    sections: packed::SectionReader,
}

/// Reads the payload of a frame as it is; whether its checksum is right.
fn read_payload(file: &File, frame: &Frame, payload: &mut Vec<u8>) -> std::io::Result<bool> {
    payload.resize(frame.payload_len as usize, 0);
    file.read_exact_at(payload, frame.begin)?;
    Ok(crc32fast::hash(payload) == frame.payload_crc)
}

/// Numbers the texts of the packed rows among some frames, and notes where they come from. Frames that cannot be read are left out
/// here as they are where their rows are read.
pub(super) fn number_texts(
    (file, segment): (&File, &Path),
    schema: &TableSchema,
    frames: &[Frame],
    (texts, received): (&mut Texts, &mut Received),
) -> Result<(), CompactError> {
    let (mut payload, mut plain) = (Vec::new(), Vec::new());
    let mut sections = packed::SectionReader::default();
    for frame in frames.iter().filter(|frame| frame.is_packed) {
        if read_payload(file, frame, &mut payload).map_err(system("read", segment))? {
            // What is wrong with it is told when its rows are read.
            let number = |text: &str| texts.intern(text);
            drop(packed::unpack(&payload, schema, number, &mut sections, &mut plain));
            let origin = packed::Prefix::read(&payload).ok().and_then(|prefix| prefix.origin);
            origin.iter().for_each(|origin| received.add(origin));
        }
    }
    Ok(())
}
