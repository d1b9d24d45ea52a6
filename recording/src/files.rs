//! The files of a recording that count, by the rule of [`layout`].

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::layout::{
    self, DAMAGED, LOG, ListError, ParquetFile, ParquetName, SegmentFile, UNKNOWN,
};
use crate::problem::{Problem, open_regular};
use crate::remembered::Remembered;
use crate::segment::ended::{self, EndedSegment, EndedSegments};

/// The files of a recording that count at one instant.
#[derive(Debug, Default)]
pub struct Listing {
    /// The open segments of all streams, by stream and then sequence number.
    pub segments: Vec<SegmentFile>,
    /// Segments that are known without being opened; none unless they were asked for so.
    pub(crate) known: Vec<KnownSegment>,
    /// Segments that compaction put aside.
    pub(crate) put_aside: Vec<PutAside>,
    /// The Parquet files that no segment hides, by table, hour and name.
    pub parquet: Vec<ParquetFile>,
    /// The Parquet files that a segment hides.
    pub hidden: Vec<ParquetFile>,
    /// What is missing, does not belong here or cannot be opened. [`list`] tells only of what it
    /// cannot open; [`crate::Recording::listing`] compares with the manifest.
    pub problems: Vec<Problem>,
}

/// A segment that exists, and is known without being opened.
#[derive(Debug)]
pub(crate) struct KnownSegment {
    /// The stream's name.
    pub(crate) stream: String,
    /// Path of the segment.
    pub(crate) path: PathBuf,
    /// What was noted when it ended.
    pub(crate) ended: Arc<EndedSegment>,
    /// As [`SegmentFile::ends_with`].
    pub(crate) ends_with: Option<u64>,
}

/// A segment that compaction put aside: rows of it are missing.
#[derive(Debug)]
pub(crate) struct PutAside {
    /// The stream's name.
    pub(crate) stream: String,
    /// Path of the segment, with the name that it was given.
    pub(crate) path: PathBuf,
    /// Sequence number of its first frame, where its name tells it.
    pub(crate) first: Option<u64>,
    /// Why it was put aside.
    pub(crate) why: &'static str,
}

/// Lists the files of the recording in `dir` that count, in the order that the rule asks for.
///
/// # Errors
/// When a directory or segment cannot be read; what vanishes meanwhile is no error.
pub fn list(dir: &Path) -> Result<Listing, ListError> {
    list_hours(dir, |_, _| true)
}

/// As [`list`], without looking into hours of tables that `wanted` does not want.
///
/// # Errors
/// As [`list`].
pub fn list_hours(dir: &Path, wanted: impl Fn(&str, i64) -> bool) -> Result<Listing, ListError> {
    list_streams(dir, |_| true, wanted, Opening::All)
}

/// Which segments a listing opens.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Opening<'a> {
    /// Every segment, whatever is known of it.
    All,
    /// Those that are not as they were when they ended: of the others it is known what they hold.
    Unknown(&'a Remembered<EndedSegments>),
}

/// As [`list_hours`], without opening the segments of streams that `with_stream` does not want.
///
/// # Errors
/// As [`list`].
pub(crate) fn list_streams(
    dir: &Path,
    with_stream: impl Fn(&str) -> bool,
    wanted: impl Fn(&str, i64) -> bool,
    opening: Opening<'_>,
) -> Result<Listing, ListError> {
    let mut listing = Listing {
        segments: Vec::new(),
        known: Vec::new(),
        put_aside: Vec::new(),
        parquet: Vec::new(),
        hidden: Vec::new(),
        problems: Vec::new(),
    };
    for (stream, path) in layout::entries(&dir.join(LOG))? {
        if with_stream(&stream) && path.is_dir() {
            list_log(&stream, &path, opening, &mut listing)?;
        }
    }
    let Listing { segments, known, problems, .. } = &mut listing;
    segments.sort_by(|a, b| (&a.stream, a.first).cmp(&(&b.stream, b.first)));
    let mut parquet = layout::parquet_files_with(dir, wanted, ParquetName::parse, problems)?;
    parquet.sort();
    let opened = segments.iter().map(|segment| (&segment.stream, segment.first));
    let begins = opened.chain(known.iter().map(|segment| (&segment.stream, segment.ended.first())));
    let begins: Vec<_> = begins.collect();
    (listing.hidden, listing.parquet) = parquet.into_iter().partition(|file| {
        begins.iter().any(|&(stream, first)| *stream == file.name.stream && file.name.holds(first))
    });
    Ok(listing)
}

/// Lists the segments of one stream.
fn list_log(
    stream: &str,
    stream_dir: &Path,
    opening: Opening<'_>,
    listing: &mut Listing,
) -> Result<(), ListError> {
    let ended = match opening {
        Opening::All => Arc::default(),
        Opening::Unknown(known) => ended::read(known, stream_dir, stream),
    };
    for (in_log, entry) in layout::found_in(stream_dir, InLog::parse)? {
        let (stream, path) = (stream.to_owned(), entry.path());
        let first = match in_log {
            InLog::Segment(first) => first,
            InLog::PutAside { first, why } => {
                listing.put_aside.push(PutAside { stream, path, first, why });
                continue;
            }
        };
        let is_still =
            |of: &&Arc<EndedSegment>| entry.metadata().is_ok_and(|found| of.is_still(&found));
        if let Some(ended) = ended.get(&first).filter(is_still).cloned() {
            listing.known.push(KnownSegment { stream, path, ended, ends_with: None });
            continue;
        }
        match open_regular(&path) {
            Ok(file) => {
                let ends_with = None;
                listing.segments.push(SegmentFile { stream, first, path, file, ends_with });
            }
            // Compacted meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {}
            Err(error) => listing.problems.push(Problem::new(&path, error.to_string())),
        }
    }
    Ok(())
}

/// A segment in a stream's directory, by its name.
enum InLog {
    /// It counts, and begins with a frame of this sequence number.
    Segment(u64),
    PutAside {
        first: Option<u64>,
        why: &'static str,
    },
}

impl InLog {
    fn parse(name: &str) -> Option<Self> {
        const PUT_ASIDE: [(&str, &str); 2] = [
            (DAMAGED, "parts of this segment could not be read when it was compacted"),
            (
                UNKNOWN,
                "this segment has frames of a kind that the version which compacted it did not know: \
                 their rows are not read",
            ),
        ];
        if let Some(first) = layout::segment_number(name) {
            return Some(Self::Segment(first));
        }
        let (first, rest) = name.split_once('.')?;
        let (_, why) = PUT_ASIDE.iter().find(|(ending, _)| *ending == rest)?;
        Some(Self::PutAside { first: first.parse().ok(), why })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::layout::{hour_dir, segment_path, stream_dir};

    #[test]
    fn a_segment_hides_the_parquet_files_that_were_made_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let hour = hour_dir(dir.path(), "polls", 5);
        fs::create_dir_all(&hour).unwrap();
        fs::create_dir_all(stream_dir(dir.path(), "a")).unwrap();
        for name in ["a-1-9.parquet", "a-10-19.parquet", "b-10-19.parquet", ".a-1-2.parquet.tmp"] {
            fs::write(hour.join(name), "").unwrap();
        }
        fs::write(segment_path(dir.path(), "a", 10), "").unwrap();
        let listing = list(dir.path()).unwrap();
        let names = |files: &[ParquetFile]| -> Vec<_> {
            files.iter().map(|file| file.name.file_name()).collect()
        };
        assert_eq!(names(&listing.parquet), ["a-1-9.parquet", "b-10-19.parquet"]);
        assert_eq!(names(&listing.hidden), ["a-10-19.parquet"]);
        assert_eq!(listing.segments[0].first, 10);
        assert_eq!(listing.parquet[0].hour, 5);
    }
}
