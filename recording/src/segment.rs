//! Reading a log segment, finished or still being written.
//!
//! ```text
//! let Some(mut segment) = SegmentReader::open(&path)? else { /* not even a head: no rows */ };
//! let mut batch = Batch::new(table, &segment.head().tables[table]);
//! while let Some(frame) = segment.next_rows(|header| header.table == table)? {
//!     segment.decode(&frame, &mut batch)?;     // columns of raw bits, see `Batch`
//!     segment.symbol(number)                   // the text of a symbol in it
//! }
//! segment.ending()                             // torn and damaged octets
//! ```
//!
//! A reader sees the segment as long as it was when opened. What is behind the last whole frame is
//! the **torn tail**: of a writer that was killed, or of one that is in the middle of a write. A
//! frame whose checksum fails and that has whole frames behind it is **damage**: it is skipped and
//! counted, the frames behind it are read. Frames that are not wanted are skipped by their header,
//! and their payload is not looked at.

pub(crate) mod ended;
mod index;
mod rewrite;
mod symbols;

use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::batch::Batch;
use crate::format::FORMAT_VERSION;
use crate::layout::SegmentFile;
use crate::log::{
    self, Codec, FrameHeader, HEADER_LEN, Head, MAGIC, ROWS_MAX, decode_rows, packed,
};
use crate::origin::Origin;
use crate::packed::{PackedRows, UnpackError};
use crate::problem::open_regular;
use crate::schema::TableSchema;

pub use index::GAP_LEAST;
pub(crate) use index::{
    EVERY as INDEX_EVERY, IndexBuilder, SegmentIndex, remove_of as remove_index,
};
pub use rewrite::{RewriteError, Rewritten, rewrite};
pub(crate) use symbols::Ranks;
pub use symbols::Symbols;

/// Octets that are read from the file at once.
const READ_BUFFER: usize = 1 << 18;

/// Octets of a frame that is not wanted from which on the header behind it is read by itself: below
/// that, filling the buffer costs less than a call for each header.
const SKIP_ALONE: u64 = 4 << 10;

/// Why a segment could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadSegmentError {
    /// The system refused.
    #[error("cannot read segment `{path}`")]
    System {
        /// Segment that was to be read.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The segment's first frame is damaged, frames behind it are not.
    #[error("the head of segment `{path}` is damaged: nobody knows what its rows are")]
    Head {
        /// Segment with the damaged head.
        path: PathBuf,
    },
    /// The segment was written by a newer version.
    #[error(
        "segment `{path}` has format version {found}, this program reads versions up to \
         {FORMAT_VERSION}"
    )]
    Newer {
        /// Segment of the newer version.
        path: PathBuf,
        /// Its format version.
        found: u32,
    },
    /// A frame's checksum is right and its contents are not of the segment's schema.
    #[error("frame {sequence} of segment `{path}` does not fit the schema in its head")]
    Schema {
        /// Segment with the frame.
        path: PathBuf,
        /// The frame.
        sequence: u64,
    },
}

/// What was found wrong at the end of a segment, and inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ending {
    /// The length up to the last whole frame, in octets.
    pub whole_bytes: u64,
    /// Octets behind the last whole frame.
    pub torn_bytes: u64,
    /// Octets between whole frames that are not whole frames.
    pub damaged_bytes: u64,
    /// The first octet that is damaged, if any is.
    pub first_damage: Option<u64>,
    /// Frames of a codec that this version does not know.
    pub unknown_frames: u64,
    /// Frames whose checksum is right and whose contents are not of the segment's schema.
    pub unfit_frames: u64,
    /// Frames that were there already; they are not read again.
    pub repeated_frames: u64,
    /// Places where a frame names another one before it than the one that is there.
    pub holes: u64,
    /// The sequence number of the last whole frame; 0 before the first.
    pub last_sequence: u64,
}

impl Ending {
    /// As [`SegmentReader::problem`].
    pub(crate) fn problem(&self, ends_with: Option<u64>) -> Option<String> {
        let mut parts = Vec::new();
        if let Some(at) = self.first_damage {
            let bytes = self.damaged_bytes;
            parts.push(format!("{bytes} octets from octet {at} on are damaged and left out"));
        }
        if self.holes > 0 {
            parts.push(format!("frames are missing in {} places", self.holes));
        }
        if self.repeated_frames > 0 {
            parts.push(format!("{} repeated frames are left out", self.repeated_frames));
        }
        if self.unfit_frames > 0 {
            let count = self.unfit_frames;
            parts.push(format!("{count} frames do not fit the schema in its head"));
        }
        if self.unknown_frames > 0 {
            let count = self.unknown_frames;
            parts.push(format!("{count} frames are of a kind that this version does not know"));
        }
        let last = self.last_sequence;
        if let Some(end) = ends_with.filter(|end| last < *end) {
            parts.push(format!(
                "it ends with frame {last}, and frames up to {end} were written: it is truncated, or \
                 its end is damaged"
            ));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// A cursor over the frames of one segment.
#[derive(Debug)]
pub struct SegmentReader {
    path: PathBuf,
    file: BufReader<File>,
    /// The file's length when it was opened.
    len: u64,
    /// Where the next frame begins.
    at: u64,
    head: Head,
    /// The header of the head.
    begin: Option<FrameHeader>,
    /// What was passed, where somebody wants an index of it.
    builder: Option<IndexBuilder>,
    symbols: Symbols,
    payload: Vec<u8>,
    /// The rows of packed rows, as those of the codec of rows.
    plain: Vec<u8>,
    sections: packed::SectionReader,
    /// Octets of the frame before, where it was not wanted; 0 where it was.
    skipped: u64,
    /// Octets read from the file, as far as they were looked at.
    bytes_read: u64,
    ending: Ending,
}

impl SegmentReader {
    /// Opens a segment; `None` when it does not even hold a whole head, and so no row.
    ///
    /// # Errors
    /// When the file cannot be read, or is of a newer format.
    pub fn open(path: &Path) -> Result<Option<Self>, ReadSegmentError> {
        let file = open_regular(path)
            .map_err(|source| ReadSegmentError::System { path: path.into(), source })?;
        Self::from_file(file, path)
    }

    /// As [`SegmentReader::open`], of a file that is open already and may be unlinked meanwhile.
    ///
    /// # Errors
    /// When the file cannot be read, or is of a newer format.
    pub fn from_file(mut file: File, path: &Path) -> Result<Option<Self>, ReadSegmentError> {
        let refused = |source| ReadSegmentError::System { path: path.into(), source };
        let len = file.metadata().map_err(refused)?.len();
        file.rewind().map_err(refused)?;
        let head = Head {
            format: FORMAT_VERSION,
            kind: crate::format::Kind::Measured,
            stream: String::new(),
            tables: Vec::new(),
        };
        let mut reader = Self {
            path: path.into(),
            file: BufReader::with_capacity(READ_BUFFER, file),
            len,
            at: 0,
            head,
            begin: None,
            builder: None,
            symbols: Symbols::default(),
            payload: Vec::new(),
            plain: Vec::new(),
            sections: packed::SectionReader::default(),
            skipped: 0,
            bytes_read: 0,
            ending: Ending::default(),
        };
        let first = reader.next_frame(|_, _| true)?;
        let Some(first) = first else { return Ok(None) };
        let damaged = || ReadSegmentError::Head { path: path.into() };
        if first.codec != Codec::Head {
            return Err(damaged());
        }
        let head = log::head_of(&reader.payload).ok_or_else(damaged)?;
        if head.format > FORMAT_VERSION {
            return Err(ReadSegmentError::Newer { path: path.into(), found: head.format });
        }
        reader.head = head;
        reader.begin = Some(first);
        Ok(Some(reader))
    }

    /// What the segment says about itself: stream, kind, tables.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The sequence number of the head, and the one that was written before it.
    pub(crate) fn begin(&self) -> (u64, Option<u64>) {
        self.begin.map_or((0, None), |head| (head.sequence, head.before))
    }

    /// Opens a listed segment where rows of a table can lie that `wanted` accepts with a span of
    /// time: behind those that the segment's index describes, if none of them is wanted.
    ///
    /// # Errors
    /// As [`SegmentReader::from_file`].
    pub fn open_where(
        segment: SegmentFile,
        wanted: impl Fn(&TableSchema, (i64, i64)) -> bool,
    ) -> Result<Option<Self>, ReadSegmentError> {
        let index = SegmentIndex::read_beside(&segment);
        let Some(mut reader) = Self::from_file(segment.file, &segment.path)? else {
            return Ok(None);
        };
        let has_wanted = |index: &SegmentIndex| {
            let mut tables = reader.head().tables.iter();
            tables.any(|table| index.spans_of(&table.name).iter().any(|&span| wanted(table, span)))
        };
        let index = index.filter(|index| !has_wanted(index));
        if let Some(index) = index {
            reader.pass_over(&index)?;
        }
        Ok(Some(reader))
    }

    /// Passes over the frames that an index describes, of a reader that was just opened; the symbols
    /// that they define are read. Whether it did: symbols may be damaged.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn pass_over(&mut self, index: &SegmentIndex) -> Result<bool, ReadSegmentError> {
        for &at in &index.symbols {
            if self.symbols_at(at)?.is_none() {
                self.symbols = Symbols::default();
                return Ok(false);
            }
        }
        self.at = index.bytes;
        self.ending = index.ending();
        self.file.seek(SeekFrom::Start(self.at)).map_err(|source| self.refused(source))?;
        Ok(true)
    }

    /// Reads the frame of symbols at a place; `None` when there is none.
    fn symbols_at(&mut self, at: u64) -> Result<Option<()>, ReadSegmentError> {
        let mut octets = [0; HEADER_LEN];
        let read = self.file.get_ref().read_exact_at(&mut octets, at);
        read.map_err(|source| self.refused(source))?;
        self.bytes_read += HEADER_LEN as u64;
        let header = FrameHeader::decode(&octets).filter(|header| header.codec == Codec::Symbols);
        let Some(header) = header.filter(|header| frame_len(header) <= self.len - at) else {
            return Ok(None);
        };
        self.payload.resize(header.payload_len, 0);
        let read = self.file.get_ref().read_exact_at(&mut self.payload, at + HEADER_LEN as u64);
        read.map_err(|source| self.refused(source))?;
        self.bytes_read += header.payload_len as u64;
        let is_whole = crc32fast::hash(&self.payload) == header.payload_crc;
        Ok(if is_whole { self.take_symbols(&header) } else { None })
    }

    /// Gathers from now on what is passed, of a reader that was just opened.
    pub(crate) fn begin_index(&mut self) {
        let mut builder = IndexBuilder::new(&self.head);
        if let Some(head) = &self.begin {
            builder.add(head);
        }
        self.builder = Some(builder);
    }

    /// The index of what was passed since [`SegmentReader::begin_index`]; `None` where something is
    /// wrong with it, so that every reader finds that by itself.
    pub(crate) fn index(&self) -> Option<&SegmentIndex> {
        let index = self.builder.as_ref()?.index()?;
        let found = Ending { torn_bytes: 0, ..self.ending };
        (found == index.ending()).then_some(index)
    }

    /// The segment's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text of a symbol that a frame read so far uses; `None` only where damage took it.
    pub fn symbol(&self, number: u64) -> Option<&str> {
        self.symbols.text(number)
    }

    /// The symbols read so far.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// Octets of headers and payloads that were read so far.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// What was found wrong so far; complete once [`SegmentReader::next_rows`] returned `None`.
    pub fn ending(&self) -> Ending {
        self.ending
    }

    /// The next frame of rows that `wanted` accepts by its header; symbols are read on the way.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn next_rows(
        &mut self,
        mut wanted: impl FnMut(&FrameHeader) -> bool,
    ) -> Result<Option<FrameHeader>, ReadSegmentError> {
        self.next_rows_at(|header, _| wanted(header))
    }

    /// As [`SegmentReader::next_rows`]; `wanted` is also told where the frame's payload begins.
    pub(crate) fn next_rows_at(
        &mut self,
        mut wanted: impl FnMut(&FrameHeader, u64) -> bool,
    ) -> Result<Option<FrameHeader>, ReadSegmentError> {
        loop {
            let tables = self.head.tables.len();
            let header = self.next_frame(|header, at| match header.codec {
                Codec::Rows | Codec::Packed => header.table < tables && wanted(header, at),
                Codec::Head | Codec::Symbols => true,
                Codec::Unknown(_) => false,
            })?;
            let Some(header) = header else { return Ok(None) };
            match header.codec {
                Codec::Rows | Codec::Packed => return Ok(Some(header)),
                Codec::Symbols => {
                    // Rows that use these symbols are read without them, and told.
                    if self.take_symbols(&header).is_none() {
                        self.ending.unfit_frames += 1;
                        self.symbols.lose(header.rows);
                    }
                }
                Codec::Head | Codec::Unknown(_) => {}
            }
        }
    }

    /// Looks whether the segment has grown: after that [`SegmentReader::next_rows`] goes on behind
    /// the last whole frame. Whether there is anything to read.
    ///
    /// A segment that is unlinked by compaction stays readable, and does not grow any more.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn refresh(&mut self) -> Result<bool, ReadSegmentError> {
        let metadata = self.file.get_ref().metadata().map_err(|source| self.refused(source))?;
        let grown = metadata.len() > self.len;
        self.len = metadata.len();
        if grown && self.at != self.ending.whole_bytes {
            // What was torn may be whole by now.
            self.at = self.ending.whole_bytes;
            self.ending.torn_bytes = 0;
        }
        if grown {
            self.file.seek(SeekFrom::Start(self.at)).map_err(|source| self.refused(source))?;
        }
        Ok(grown)
    }

    /// Decodes the rows of the frame that [`SegmentReader::next_rows`] returned last.
    ///
    /// # Errors
    /// When the payload does not fit the schema.
    pub fn decode(
        &mut self,
        header: &FrameHeader,
        batch: &mut Batch,
    ) -> Result<(), ReadSegmentError> {
        let is_plain = self.unpack(header)?;
        let payload = if is_plain { &self.payload } else { &self.plain };
        let schema = &self.head.tables[header.table];
        let decoded = decode_rows(payload, header.rows, schema, batch);
        if decoded.is_none_or(|()| !header.has_times(batch)) {
            self.ending.unfit_frames += 1;
            return Err(self.misfit(header.sequence));
        }
        batch.table = header.table;
        Ok(())
    }

    /// Unpacks the frame that was returned last, if it is packed rows; whether its payload is of the
    /// codec of rows as it is.
    fn unpack(&mut self, header: &FrameHeader) -> Result<bool, ReadSegmentError> {
        if header.codec != Codec::Packed {
            return Ok(true);
        }
        let schema = &self.head.tables[header.table];
        let Self { payload, plain, symbols, sections, .. } = self;
        match packed::unpack(payload, schema, |text| symbols.intern(text), sections, plain) {
            Ok(rows) if rows == header.rows => Ok(false),
            Err(UnpackError::Version { .. }) => {
                self.ending.unknown_frames += 1;
                Err(self.misfit(header.sequence))
            }
            Ok(_) | Err(_) => {
                self.ending.unfit_frames += 1;
                Err(self.misfit(header.sequence))
            }
        }
    }

    /// What is wrong with the segment, if anything is; complete once
    /// [`SegmentReader::next_rows`] returned `None`. `ends_with` is the least sequence number that
    /// its last frame must have, where that is known (see [`crate::layout::SegmentFile`]).
    ///
    /// A torn tail behind that is no problem: a writer is in the middle of it, or a crash left it.
    pub fn problem(&self, ends_with: Option<u64>) -> Option<String> {
        self.ending.problem(ends_with)
    }

    /// The rows of the frame that was returned last as a payload of the codec of rows; `None` when
    /// they cannot be unpacked.
    pub(crate) fn rows_payload(&mut self, header: &FrameHeader) -> Option<&[u8]> {
        let is_plain = self.unpack(header).ok()?;
        Some(if is_plain { &self.payload } else { &self.plain })
    }

    /// Where the packed rows come from that were returned last, if they say so.
    pub(crate) fn origin(&self, header: &FrameHeader) -> Option<Origin> {
        if header.codec != Codec::Packed {
            return None;
        }
        packed::Prefix::read(&self.payload).ok()?.origin
    }

    /// The packed rows that were returned last, as they were sent; `None` when they are no packed rows, or
    /// do not begin as such.
    pub fn packed_rows(&self, header: &FrameHeader) -> Option<PackedRows> {
        let is_packed = header.codec == Codec::Packed;
        let payload = is_packed.then(|| self.payload.clone())?;
        PackedRows::received(payload, header.payload_crc).ok()
    }

    /// Counts the packed rows that were returned last as ones whose payload does not fit: for who reads them by
    /// themselves, see [`SegmentReader::packed_rows`].
    pub fn count_unfit(&mut self) {
        self.ending.unfit_frames += 1;
    }

    fn misfit(&self, sequence: u64) -> ReadSegmentError {
        ReadSegmentError::Schema { path: self.path.clone(), sequence }
    }

    fn take_symbols(&mut self, header: &FrameHeader) -> Option<()> {
        let (first, texts) = log::symbols_of(&self.payload, header.rows)?;
        let Ending { holes, damaged_bytes, .. } = self.ending;
        // An earlier version did not note which frame was before.
        let may_lack = holes > 0 || damaged_bytes > 0 || header.before.is_none();
        self.symbols.define(first, texts, may_lack)
    }

    /// The next whole frame that is wanted, its payload read; frames that are not are passed over.
    fn next_frame(
        &mut self,
        mut wanted: impl FnMut(&FrameHeader, u64) -> bool,
    ) -> Result<Option<FrameHeader>, ReadSegmentError> {
        loop {
            let Some(header) = self.header_here()? else {
                if self.resynchronise()? {
                    continue;
                }
                return Ok(None);
            };
            let is_repeated = self.is_repeated(&header);
            if is_repeated || !self.fits(&header) {
                let skip = HEADER_LEN + header.payload_len;
                if is_repeated {
                    self.ending.repeated_frames += 1;
                    self.at += frame_len(&header);
                    self.ending.whole_bytes = self.at;
                } else {
                    self.ending.unfit_frames += 1;
                    self.pass(&header);
                }
                self.skip(skip)?;
                continue;
            }
            if let Codec::Unknown(_) = header.codec {
                self.ending.unknown_frames += 1;
            }
            if !wanted(&header, self.at + HEADER_LEN as u64) {
                let skip = HEADER_LEN + header.payload_len;
                self.skipped = frame_len(&header);
                self.pass(&header);
                self.skip(skip)?;
                continue;
            }
            self.skipped = 0;
            self.bytes_read += header.payload_len as u64;
            self.skip(HEADER_LEN)?;
            self.payload.resize(header.payload_len, 0);
            self.file.read_exact(&mut self.payload).map_err(|source| self.refused(source))?;
            if crc32fast::hash(&self.payload) == header.payload_crc {
                self.pass(&header);
                return Ok(Some(header));
            }
            self.file.seek(SeekFrom::Start(self.at)).map_err(|source| self.refused(source))?;
            if !self.resynchronise()? {
                return Ok(None);
            }
        }
    }

    /// The header of the frame at the cursor, if the frame lies wholly in the file.
    fn header_here(&mut self) -> Result<Option<FrameHeader>, ReadSegmentError> {
        if self.len - self.at < HEADER_LEN as u64 {
            return Ok(None);
        }
        self.bytes_read += HEADER_LEN as u64;
        let mut octets = [0; HEADER_LEN];
        if self.file.buffer().len() < HEADER_LEN && self.skipped >= SKIP_ALONE {
            let read = self.file.get_ref().read_exact_at(&mut octets, self.at);
            read.map_err(|source| self.refused(source))?;
        } else {
            self.file.read_exact(&mut octets).map_err(|source| self.refused(source))?;
            self.file.seek_relative(-56).map_err(|source| self.refused(source))?;
        }
        let header = FrameHeader::decode(&octets);
        Ok(header.filter(|header| self.len - self.at >= frame_len(header)))
    }

    /// Sequence numbers rise: a frame with one that was passed is a copy.
    fn is_repeated(&self, header: &FrameHeader) -> bool {
        self.ending.whole_bytes > 0 && header.sequence <= self.ending.last_sequence
    }

    /// Whether the header of a frame of rows can be one that a writer made.
    fn fits(&self, header: &FrameHeader) -> bool {
        !header.codec.has_rows()
            || self.ending.whole_bytes == 0
            || (header.table < self.head.tables.len() && header.rows <= ROWS_MAX)
    }

    fn pass(&mut self, header: &FrameHeader) {
        let is_head = self.ending.whole_bytes == 0;
        if !is_head && header.before.is_some_and(|before| before > self.ending.last_sequence) {
            self.ending.holes += 1;
        }
        self.at += frame_len(header);
        self.ending.whole_bytes = self.at;
        self.ending.last_sequence = header.sequence;
        if let Some(builder) = &mut self.builder {
            builder.add(header);
        }
    }

    fn skip(&mut self, octets: usize) -> Result<(), ReadSegmentError> {
        let octets = i64::try_from(octets).expect("frames are bounded by PAYLOAD_MAX");
        self.file.seek_relative(octets).map_err(|source| self.refused(source))
    }

    /// Looks for the next whole frame behind one that is not; false when there is none.
    fn resynchronise(&mut self) -> Result<bool, ReadSegmentError> {
        let mut rest = Vec::new();
        self.file.seek(SeekFrom::Start(self.at)).map_err(|source| self.refused(source))?;
        let len = self.len - self.at;
        self.file
            .by_ref()
            .take(len)
            .read_to_end(&mut rest)
            .map_err(|source| self.refused(source))?;
        let found =
            (1..rest.len()).find(|&at| rest[at..].starts_with(&MAGIC) && whole_frame(&rest[at..]));
        match found {
            None => {
                self.ending.torn_bytes = rest.len() as u64;
                self.at = self.len;
                Ok(false)
            }
            Some(skipped) => {
                self.ending.first_damage.get_or_insert(self.at);
                self.ending.damaged_bytes += skipped as u64;
                self.at += skipped as u64;
                self.file.seek(SeekFrom::Start(self.at)).map_err(|source| self.refused(source))?;
                Ok(true)
            }
        }
    }

    fn refused(&self, source: io::Error) -> ReadSegmentError {
        ReadSegmentError::System { path: self.path.clone(), source }
    }
}

fn frame_len(header: &FrameHeader) -> u64 {
    (HEADER_LEN + header.payload_len) as u64
}

fn whole_frame(octets: &[u8]) -> bool {
    FrameHeader::decode(octets).is_some_and(|header| {
        octets
            .get(HEADER_LEN..HEADER_LEN + header.payload_len)
            .is_some_and(|payload| crc32fast::hash(payload) == header.payload_crc)
    })
}
