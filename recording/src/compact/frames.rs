//! The frames of one table of a segment, read one at a time.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::{CompactError, system};
use crate::log::{ColumnView, FrameHeader, columns_of};
use crate::schema::TableSchema;

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
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows as usize
    }
}

/// The frames of one table. A pass over them holds one payload in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct TableFrames<'a> {
    pub(super) segment: &'a Path,
    pub(super) file: &'a File,
    pub(super) schema: &'a TableSchema,
    pub(super) frames: &'a [Frame],
}

impl TableFrames<'_> {
    /// Reads the payload of a frame; whether its checksum is right.
    pub(super) fn read(&self, frame: &Frame, payload: &mut Vec<u8>) -> Result<bool, CompactError> {
        payload.resize(frame.payload_len as usize, 0);
        let read = self.file.read_exact_at(payload, frame.begin);
        read.map_err(system("read", self.segment))?;
        Ok(crc32fast::hash(payload) == frame.payload_crc)
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
