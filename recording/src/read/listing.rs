//! The files of a recording compared with what should be there.
//!
//! The manifest of each stream names the Parquet files, and the sequence numbers of a stream are one
//! chain from 1 to its `progress`: what compaction made, the segments, and between two of them
//! nothing. Files that do not belong are left out; all that is wrong is told, and only where it can
//! concern what is wanted.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use meikyo_units::in_one_line;

use super::{ReadError, Recording};
use crate::declared;
use crate::files::{self, KnownSegment, Listing, Opening, PutAside};
use crate::layout::{self, Claim, ParquetFile, SegmentFile, hour_of};
use crate::log::{FrameHeader, HEADER_LEN};
use crate::manifest::{self, Manifest, Unit};
use crate::problem::Problem;
use crate::progress::{self, Progress};

/// How often files are listed again while what is wrong with them changes: a writer that begins,
/// compacts or deletes at that moment makes a difference that is none.
const TRIES: usize = 6;

/// Which files are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// The table; all when `None`.
    pub table: Option<&'a str>,
    /// The hours, counted from the epoch.
    pub hours: RangeInclusive<i64>,
}

impl<'a> Wanted<'a> {
    /// Everything.
    pub const ALL: Self = Self { table: None, hours: i64::MIN..=i64::MAX };

    /// All hours of one table.
    pub const fn table(table: &'a str) -> Self {
        Self { table: Some(table), hours: i64::MIN..=i64::MAX }
    }

    fn has(&self, table: &str, hour: i64) -> bool {
        self.table.is_none_or(|wanted| wanted == table) && self.hours.contains(&hour)
    }

    /// Whether a row between two instants can be wanted; an end that is not known is open.
    fn may_lie_between(&self, least: Option<i64>, greatest: Option<i64>) -> bool {
        let begin = least.map_or(i64::MIN, hour_of);
        let end = greatest.map_or(i64::MAX, hour_of);
        begin <= *self.hours.end() && end >= *self.hours.start()
    }
}

/// What is known of a stream before its files are looked at.
struct Known {
    stream: String,
    progress: io::Result<Option<Progress>>,
    manifest: io::Result<Option<Arc<Manifest>>>,
}

impl Recording {
    /// The files that are wanted and belong to the recording, and what is wrong with it.
    ///
    /// # Errors
    /// When the recording's directory cannot be read.
    pub fn listing(&self, wanted: &Wanted<'_>) -> Result<Listing, ReadError> {
        self.list_settled(wanted, Opening::All)
    }

    /// All files, without opening segments of which it is known what they hold.
    pub(crate) fn listing_of_all(&self) -> Result<Listing, ReadError> {
        self.list_settled(&Wanted::ALL, Opening::Unknown(&self.remembered.ended))
    }

    fn list_settled(
        &self,
        wanted: &Wanted<'_>,
        opening: Opening<'_>,
    ) -> Result<Listing, ReadError> {
        settled(|| self.list_once(wanted, opening))
    }

    fn list_once(&self, wanted: &Wanted<'_>, opening: Opening<'_>) -> Result<Listing, ReadError> {
        let passed = match wanted.table {
            Some(table) => declared::streams_without(&self.dir, table)?,
            None => BTreeSet::new(),
        };
        let listing = self.list_without(&passed, wanted, opening)?;
        let has_files_of_passed =
            listing.parquet.iter().any(|file| passed.contains(&file.name.stream));
        // A file of a stream that has no such table: all that is known of the stream judges it.
        if has_files_of_passed {
            self.list_without(&BTreeSet::new(), wanted, opening)
        } else {
            Ok(listing)
        }
    }

    /// Lists all but some streams, which can hold nothing that is wanted.
    fn list_without(
        &self,
        passed: &BTreeSet<String>,
        wanted: &Wanted<'_>,
        opening: Opening<'_>,
    ) -> Result<Listing, ReadError> {
        // The progress first: what is written meanwhile must not be missed. The manifest last: what
        // is compacted meanwhile is in it.
        let mut progress = self.progress_without(passed)?;
        let with_stream = |stream: &str| !passed.contains(stream);
        let has = |table: &str, hour| wanted.has(table, hour);
        let mut listing = files::list_streams(&self.dir, with_stream, has, opening)?;
        let mut streams: BTreeSet<_> = progress.keys().cloned().collect();
        streams.extend(listing.parquet.iter().map(|file| file.name.stream.clone()));
        for stream in streams {
            let manifest = manifest::remembered(&self.remembered.manifests, &self.dir, &stream);
            let progress = progress.remove(&stream).unwrap_or(Ok(None));
            judge(&self.dir, Known { stream, progress, manifest }, wanted, &mut listing);
        }
        listing.problems.sort();
        listing.problems.dedup();
        Ok(listing)
    }

    fn progress_without(
        &self,
        passed: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, io::Result<Option<Progress>>>, layout::ListError> {
        let streams = layout::entries(&self.dir.join(layout::LOG))?.into_iter();
        let wanted = streams.filter(|(stream, _)| !passed.contains(stream));
        Ok(wanted.map(|(stream, path)| (stream, progress::read(&path))).collect())
    }

    /// Whether a file that has vanished should be there: retention and a compaction that is done
    /// again take files away.
    pub(super) fn misses(&self, file: &ParquetFile) -> bool {
        let Some(claim) = file.claim else { return false };
        let known = &self.remembered.manifests;
        let manifest = manifest::remembered(known, &self.dir, &file.name.stream);
        let Ok(Some(manifest)) = manifest else { return true };
        let unit = manifest.unit_of(file.name.first);
        let segment = layout::segment_path(&self.dir, &file.name.stream, file.name.first);
        !segment.exists()
            && unit.is_some_and(|unit| claim_in(unit, &file.table, file.hour) == Some(claim))
    }
}

/// Lists until what is wrong is nothing, or the same twice in a row.
fn settled<E>(mut list: impl FnMut() -> Result<Listing, E>) -> Result<Listing, E> {
    let mut before = None;
    for _ in 0..TRIES {
        let listing = list()?;
        if listing.problems.is_empty() || before.as_ref() == Some(&listing.problems) {
            return Ok(listing);
        }
        before = Some(listing.problems);
    }
    list()
}

fn claim_in(unit: &Unit, table: &str, hour: i64) -> Option<Claim> {
    let of_file = |file: &&manifest::FileEntry| file.table == table && file.hour == hour;
    let file = unit.files.iter().find(of_file).filter(|file| !file.deleted)?;
    let manifest::FileEntry { bytes, rows, tail, tail_crc, .. } = *file;
    Some(Claim { bytes, rows, tail, tail_crc })
}

/// Compares the files of one stream with what is known of it.
fn judge(dir: &Path, known: Known, wanted: &Wanted<'_>, listing: &mut Listing) {
    let stream_dir = layout::stream_dir(dir, &known.stream);
    let manifest_path = stream_dir.join(manifest::FILE_NAME);
    let problems = &mut listing.problems;
    let manifest = match known.manifest {
        Ok(Some(manifest)) => {
            if manifest.damaged_lines > 0 {
                let what = format!(
                    "{} lines are damaged: files that they named are read unverified, and missing \
                     ones are not told",
                    manifest.damaged_lines
                );
                problems.push(Problem::new(&manifest_path, what));
            }
            Some(manifest)
        }
        Ok(None) => None,
        Err(error) => {
            problems.push(Problem::new(&manifest_path, in_one_line(&error)));
            None
        }
    };
    let progress = match known.progress {
        Ok(progress) => progress,
        Err(error) => {
            problems.push(Problem::new(&stream_dir.join(progress::FILE_NAME), in_one_line(&error)));
            None
        }
    };
    let put_aside = listing.put_aside.extract_if(.., |segment| segment.stream == known.stream);
    tell_put_aside(put_aside, manifest.as_deref(), wanted, problems);
    let hidden = std::mem::take(&mut listing.hidden);
    let chain = Chain { manifest: manifest.as_deref(), progress, stream_dir: &stream_dir };
    let own = take_of(&known.stream, &mut listing.segments, &mut listing.known);
    let own = chain.segments(own, wanted, problems);
    let firsts: Vec<_> = own.iter().map(Segment::first).collect();
    // A segment that does not belong hides nothing.
    let (hidden, shown) = hidden.into_iter().partition(|file| {
        file.name.stream != known.stream || firsts.iter().any(|&first| file.name.holds(first))
    });
    listing.hidden = hidden;
    listing.parquet.extend::<Vec<_>>(shown);
    judge_files(dir, &known.stream, (manifest.as_deref(), &firsts), wanted, listing);
    for segment in own {
        match segment {
            Segment::Opened(segment) => listing.segments.push(segment),
            Segment::Known(segment) => listing.known.push(segment),
        }
    }
    listing.segments.sort_by(|a, b| (&a.stream, a.first).cmp(&(&b.stream, b.first)));
}

/// A segment, opened or not.
enum Segment {
    Opened(SegmentFile),
    Known(KnownSegment),
}

impl Segment {
    fn first(&self) -> u64 {
        match self {
            Self::Opened(segment) => segment.first,
            Self::Known(segment) => segment.ended.first(),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Opened(segment) => &segment.path,
            Self::Known(segment) => &segment.path,
        }
    }

    /// The sequence numbers of its first frame and of the one before that; `None` where it is not whole.
    fn begin(&self) -> Option<(u64, Option<u64>)> {
        match self {
            Self::Opened(segment) => {
                first_header(segment).map(|header| (header.sequence, header.before))
            }
            Self::Known(segment) => Some((segment.ended.first(), segment.ended.before)),
        }
    }

    fn set_end(&mut self, ends_with: Option<u64>) {
        match self {
            Self::Opened(segment) => segment.ends_with = ends_with,
            Self::Known(segment) => segment.ends_with = ends_with,
        }
    }
}

/// Takes the segments of one stream out of those of all, in their order.
fn take_of(
    stream: &str,
    opened: &mut Vec<SegmentFile>,
    known: &mut Vec<KnownSegment>,
) -> Vec<Segment> {
    let opened = opened.extract_if(.., |segment| segment.stream == stream).map(Segment::Opened);
    let known = known.extract_if(.., |segment| segment.stream == stream).map(Segment::Known);
    let mut own: Vec<_> = opened.chain(known).collect();
    own.sort_by_key(Segment::first);
    own
}

/// Tells of segments that were put aside: rows of them are missing.
fn tell_put_aside(
    put_aside: impl Iterator<Item = PutAside>,
    manifest: Option<&Manifest>,
    wanted: &Wanted<'_>,
    problems: &mut Vec<Problem>,
) {
    for segment in put_aside {
        let unit = segment.first.and_then(|first| manifest?.unit_of(first));
        let times = unit.and_then(|unit| unit.times).unzip();
        if wanted.may_lie_between(times.0, times.1) {
            problems.push(Problem::new(&segment.path, segment.why));
        }
    }
}

/// The chain of a stream's sequence numbers.
struct Chain<'a> {
    manifest: Option<&'a Manifest>,
    progress: Option<Progress>,
    stream_dir: &'a Path,
}

/// One part of the chain.
struct Link {
    first: u64,
    last: Option<u64>,
    before: Option<u64>,
    times: (Option<i64>, Option<i64>),
    /// The position of the segment; `None` where the part was compacted.
    segment: Option<usize>,
}

impl Chain<'_> {
    /// The segments that belong to the stream with what their last frames must be; tells of those
    /// that do not, and of the holes in the chain.
    fn segments(
        &self,
        segments: Vec<Segment>,
        wanted: &Wanted<'_>,
        problems: &mut Vec<Problem>,
    ) -> Vec<Segment> {
        let mut own = Vec::new();
        let mut links = Vec::new();
        for segment in segments {
            let begin = segment.begin();
            if let Some(what) = self.misplaced(segment.first(), begin.map(|(first, _)| first)) {
                problems.push(Problem::new(segment.path(), what));
                continue;
            }
            links.push(Link {
                first: segment.first(),
                last: None,
                before: begin.and_then(|(_, before)| before),
                times: (None, None),
                segment: Some(own.len()),
            });
            own.push(segment);
        }
        for unit in self.manifest.into_iter().flat_map(Manifest::units) {
            // The compaction of a segment that is there was killed before it could be removed. How far
            // it reaches is told by what is behind it.
            if links.iter().any(|link| unit.holds(link.first)) {
                continue;
            }
            links.push(Link {
                first: unit.first,
                last: Some(unit.last),
                before: unit.before,
                times: unit.times.unzip(),
                segment: None,
            });
        }
        links.sort_by_key(|link| link.first);
        self.tell_holes(&mut links, wanted, problems);
        for link in links {
            if let Some(segment) = link.segment {
                own[segment].set_end(link.last);
            }
        }
        own
    }

    /// Why a segment does not belong where it is: by the first frame that its name says, and its own.
    fn misplaced(&self, named: u64, found: Option<u64>) -> Option<String> {
        if let Some(found) = found.filter(|found| *found != named) {
            return Some(format!(
                "it is left out: its name says that it begins with frame {named}, and it begins with {found}"
            ));
        }
        let unit = self.manifest?.unit_of(named)?;
        (unit.first != named).then(|| {
            format!(
                "it is left out: frames {} to {} were compacted to Parquet files",
                unit.first, unit.last
            )
        })
    }

    fn tell_holes(&self, links: &mut [Link], wanted: &Wanted<'_>, problems: &mut Vec<Problem>) {
        let log = self.stream_dir;
        let mut last = 0;
        let mut since = None;
        for at in 0..links.len() {
            let Link { first, before, times, .. } = links[at];
            let previous = at.checked_sub(1).map(|at| &mut links[at]);
            match (before, previous) {
                (Some(before), Some(previous)) if previous.segment.is_some() => {
                    // The segment's own end is compared when it is read.
                    previous.last = previous.last.max(Some(before));
                }
                (Some(before), _) if before > last && wanted.may_lie_between(since, times.0) => {
                    let what = format!("frames {} to {before} of the log are missing", last + 1);
                    problems.push(Problem::new(log, what));
                }
                _ => {}
            }
            last = links[at].last.unwrap_or(first).max(last);
            since = times.1;
        }
        let newest = links.last_mut();
        match (self.progress, newest) {
            (Some(progress), Some(Link { last, segment: Some(_), first, .. })) => {
                if progress.last >= *first {
                    *last = (*last).max(Some(progress.last));
                }
            }
            (Some(progress), newest) => {
                let last = newest.and_then(|link| link.last).unwrap_or(0);
                if progress.last > last && wanted.may_lie_between(since, None) {
                    let name = format!("{:010}.log", progress.first);
                    let what =
                        format!("it is missing: frames up to {} were written", progress.last);
                    problems.push(Problem::new(&log.join(name), what));
                }
            }
            (None, Some(newest)) => {
                let was_noted = newest.before.is_some()
                    && !problems
                        .iter()
                        .any(|problem| problem.path == log.join(progress::FILE_NAME));
                if was_noted {
                    let what = "it is missing: nobody knows how far the log was written";
                    problems.push(Problem::new(&log.join(progress::FILE_NAME), what));
                }
            }
            (None, None) => {}
        }
    }
}

/// The header of a segment's first frame, if it is whole.
pub(super) fn first_header(segment: &SegmentFile) -> Option<FrameHeader> {
    let mut octets = [0; HEADER_LEN];
    segment.file.read_exact_at(&mut octets, 0).ok()?;
    FrameHeader::decode(&octets)
}

/// Compares the Parquet files of a stream with its manifest.
fn judge_files(
    dir: &Path,
    stream: &str,
    (manifest, segments): (Option<&Manifest>, &[u64]),
    wanted: &Wanted<'_>,
    listing: &mut Listing,
) {
    let mut found = BTreeSet::new();
    let mut unverified: BTreeMap<(String, i64), u64> = BTreeMap::new();
    let problems = &mut listing.problems;
    let judged = |mut file: ParquetFile| {
        if file.name.stream != stream {
            return Some(file);
        }
        found.insert((file.table.clone(), file.hour, file.name.first));
        match place_of(&file, manifest) {
            Place::Listed(claim) => file.claim = Some(claim),
            Place::Deleted => return None,
            Place::Foreign(what) => {
                problems.push(Problem::new(&file.path, what));
                return None;
            }
            Place::Unlisted => {
                let last = unverified.entry((file.table.clone(), file.hour)).or_insert(0);
                if file.name.first <= *last || file.name.last < file.name.first {
                    let what = "it is left out: its range overlaps that of another file";
                    problems.push(Problem::new(&file.path, what));
                    return None;
                }
                *last = file.name.last;
            }
        }
        Some(file)
    };
    let mut files = std::mem::take(&mut listing.parquet);
    files.sort_by(|a, b| {
        let key = |file: &ParquetFile| (file.hour, file.name.first, file.name.last);
        (&a.table, key(a)).cmp(&(&b.table, key(b)))
    });
    listing.parquet = files.into_iter().filter_map(judged).collect();
    for unit in manifest.into_iter().flat_map(Manifest::units) {
        if segments.iter().any(|&first| unit.holds(first)) {
            continue;
        }
        for file in unit.files.iter().filter(|file| !file.deleted) {
            let key = (file.table.clone(), file.hour, unit.first);
            if wanted.has(&file.table, file.hour) && !found.contains(&key) {
                let name = layout::ParquetName {
                    stream: stream.to_owned(),
                    first: unit.first,
                    last: unit.last,
                };
                let path = layout::hour_dir(dir, &file.table, file.hour).join(name.file_name());
                let what = format!("it is missing, with {} rows", file.rows);
                listing.problems.push(Problem::new(&path, what));
            }
        }
    }
}

/// Whether a file belongs where it is.
enum Place {
    Listed(Claim),
    /// An earlier version wrote it, or nobody knows.
    Unlisted,
    Deleted,
    Foreign(String),
}

fn place_of(file: &ParquetFile, manifest: Option<&Manifest>) -> Place {
    let Some(manifest) = manifest else { return Place::Unlisted };
    let Some(unit) = manifest.unit_of(file.name.first) else {
        if manifest.damaged_lines > 0 {
            return Place::Unlisted;
        }
        let what = "it is left out: the manifest of its stream does not name it";
        return Place::Foreign(what.into());
    };
    if unit.unlisted {
        return Place::Unlisted;
    }
    let is_of_unit = (unit.first, unit.last) == (file.name.first, file.name.last);
    let of_file =
        |entry: &&manifest::FileEntry| entry.table == file.table && entry.hour == file.hour;
    match unit.files.iter().find(of_file).filter(|_| is_of_unit) {
        Some(entry) if entry.deleted => Place::Deleted,
        Some(_) => claim_in(unit, &file.table, file.hour)
            .map_or_else(|| Place::Foreign("it is left out".into()), Place::Listed),
        None => {
            let what = "it is left out: the manifest of its stream does not name it";
            Place::Foreign(what.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// What is told, and after how many listings, where these problems are met one after another.
    fn told(met: &[&str]) -> (Vec<String>, usize) {
        let mut listings = 0;
        let found = settled(|| {
            let what = met[listings.min(met.len() - 1)];
            listings += 1;
            let problems = [what].into_iter().filter(|what| !what.is_empty());
            let problems = problems.map(|what| Problem::new(Path::new("file"), what)).collect();
            Ok::<_, Infallible>(Listing { problems, ..Listing::default() })
        });
        let Ok(found) = found;
        (found.problems.into_iter().map(|problem| problem.what).collect(), listings)
    }

    #[test]
    fn what_changes_from_one_listing_to_the_next_is_a_writer_at_work_and_no_damage() {
        let one = |what: &str| vec![what.to_owned()];
        assert_eq!(told(&[""]), (Vec::new(), 1));
        assert_eq!(told(&["missing", ""]), (Vec::new(), 2));
        assert_eq!(told(&["missing", "missing"]), (one("missing"), 2));
        assert_eq!(told(&["a", "b", "c", "c"]), (one("c"), 4));
        // A recording that never comes to rest is told as it is in the end.
        assert_eq!(told(&["1", "2", "3", "4", "5", "6", "7"]), (one("7"), TRIES + 1));
    }
}
