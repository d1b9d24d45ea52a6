//! What the segments hold that nobody writes any more, in one file of a stream: `ended.json`.
//!
//! Who asks what a recording holds would open every segment and its index for that, and of a stream that is not
//! compacted there are a hundred in an hour of profiles. With this file it looks at each segment's length and time
//! of change, one call of the system, and opens those alone that are not as they were when they ended: a
//! segment that was damaged, swapped or copied without its times is read as if the file were not there.
//!
//! Like an index it proves nothing: `check` and readers of rows never look at it.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::index::{SegmentIndex, sealed, unsealed};
use crate::layout;
use crate::log::{FrameHeader, HEADER_LEN};
use crate::problem::open_regular;
use crate::remembered::Remembered;
use crate::unfinished::{Durability, replace_file};

const FILE_NAME: &str = "ended.json";

/// Octets of the file that are read: more than the indexes of ten thousand ordinary segments take.
const OCTETS_MAX: u64 = 16 << 20;

/// A segment as it was when it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndedSegment {
    /// What it holds, to its end.
    pub(crate) index: SegmentIndex,
    /// Sequence number of the frame that was written to the stream before it.
    pub(crate) before: Option<u64>,
    /// Octets of its head's payload.
    head_len: usize,
    /// When the file was changed last, in ns since the epoch.
    changed: i64,
}

impl EndedSegment {
    /// The segment in an open file with what it holds; `None` where the index does not describe all of it.
    fn of(index: &SegmentIndex, file: &File) -> io::Result<Option<Self>> {
        let metadata = file.metadata()?;
        let mut octets = [0; HEADER_LEN];
        file.read_exact_at(&mut octets, 0)?;
        let head = FrameHeader::decode(&octets);
        let head = head.filter(|head| (head.sequence, head.payload_crc) == index.identity());
        Ok(head.filter(|_| metadata.len() == index.bytes).map(|head| Self {
            index: index.clone(),
            before: head.before,
            head_len: head.payload_len,
            changed: changed(&metadata),
        }))
    }

    /// Sequence number of its head.
    pub(crate) fn first(&self) -> u64 {
        self.index.identity().0
    }

    /// What segments of one writer have in common: length and checksum of the head.
    pub(crate) fn head(&self) -> (usize, u32) {
        (self.head_len, self.index.identity().1)
    }

    /// Whether a file is still as long and as old as this segment was; `found` follows no link.
    pub(crate) fn is_still(&self, found: &Metadata) -> bool {
        found.is_file() && found.len() == self.index.bytes && changed(found) == self.changed
    }
}

/// The ended segments of one stream, by their first sequence numbers.
pub(crate) type EndedSegments = BTreeMap<u64, Arc<EndedSegment>>;

/// Time of the last change of a file, in ns since the epoch; of no file after the year 2262.
fn changed(metadata: &Metadata) -> i64 {
    metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec())
}

/// The ended segments of a stream; none where nobody noted them.
pub(crate) fn read(
    known: &Remembered<EndedSegments>,
    stream_dir: &Path,
    stream: &str,
) -> Arc<EndedSegments> {
    let read = known.read(&stream_dir.join(FILE_NAME), |file| {
        let mut text = String::new();
        file.take(OCTETS_MAX).read_to_string(&mut text)?;
        let ended = unsealed::<Vec<EndedSegment>>(&text).unwrap_or_default().into_iter();
        let ended = ended.filter(|one| one.index.stream() == stream);
        Ok(ended.map(|one| (one.first(), Arc::new(one))).collect())
    });
    read.ok().flatten().unwrap_or_default()
}

/// Notes a segment that has ended, and forgets those that are gone.
///
/// # Errors
/// When the system refuses. Readers do without.
pub(crate) fn note(segment: &Path, index: &SegmentIndex) -> io::Result<()> {
    let Some(stream_dir) = segment.parent() else { return Ok(()) };
    let Some(own) = EndedSegment::of(index, &open_regular(segment)?)? else { return Ok(()) };
    let mut ended = read(&Remembered::default(), stream_dir, index.stream());
    let all = Arc::make_mut(&mut ended);
    all.insert(own.first(), Arc::new(own));
    all.retain(|&first, _| stream_dir.join(layout::segment_name(first)).exists());
    let ended: Vec<_> = ended.values().map(Arc::as_ref).collect();
    replace_file(&stream_dir.join(FILE_NAME), sealed(&ended)?.as_bytes(), Durability::Kernel)
}
