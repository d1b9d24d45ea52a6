//! Old samples made smaller, in the background: exact for so long, then rounded to microseconds, then summed up.
//!
//! What is made smaller is a whole segment of the log that nobody writes any more, once all of its samples are old
//! enough. Beside it stands `FIRST.aged`, which says how far it has been made smaller, so that it is not looked
//! through again, and that its rows of heat maps ([`crate::heat`]), which stay as exact as they were, are of
//! blocks that are not there any more. A segment whose heat has not been made yet waits for that. A rewrite that
//! was cut off left the segment as it was, and is done again.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use meikyo_profile::aging::{CpuSecond, rounded, seconds_of, summed_up};
use meikyo_profile::tables::{samples, summaries};
use meikyo_recording::files;
use meikyo_recording::layout::SegmentFile;
use meikyo_recording::segment::{
    ReadSegmentError, RewriteError, Rewritten, SegmentReader, rewrite,
};
use meikyo_recording::unfinished::{Durability, replace_file};
use meikyo_units::{Nanos, WallTime, in_one_line};

use crate::heat::{AGED, Heat};
use crate::onward::Errand;

/// How often it is looked for segments that have become old.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// When samples are made smaller, counted from when they were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgingOptions {
    /// Their times are rounded to microseconds after this span; `None` for never.
    pub round_after: Option<Nanos>,
    /// They are summed up by second, CPU and place of code after this span; `None` for never.
    pub sum_up_after: Option<Nanos>,
}

impl AgingOptions {
    /// Samples stay as they are.
    pub const NEVER: Self = Self { round_after: None, sum_up_after: None };

    /// What samples of an age are to be.
    fn tier(&self, age: Nanos) -> Tier {
        let is_after = |span: Option<Nanos>| span.is_some_and(|span| age >= span);
        match (is_after(self.sum_up_after), is_after(self.round_after)) {
            (true, _) => Tier::SummedUp,
            (false, true) => Tier::Rounded,
            (false, false) => Tier::Exact,
        }
    }
}

/// How small samples of a segment are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tier {
    Exact,
    Rounded,
    SummedUp,
}

impl Tier {
    /// What `FIRST.aged` says.
    const fn word(self) -> &'static str {
        match self {
            Self::Exact => "begun\n",
            Self::Rounded => "rounded\n",
            Self::SummedUp => "summed up\n",
        }
    }

    fn of(segment: &Path) -> Self {
        let said = std::fs::read_to_string(segment.with_extension(AGED)).unwrap_or_default();
        let found = [Self::Rounded, Self::SummedUp].into_iter().find(|tier| tier.word() == said);
        found.unwrap_or(Self::Exact)
    }
}

/// Begins the thread that makes samples of the recording in a directory smaller.
///
/// # Errors
/// When the system gives no thread.
pub(crate) fn start(dir: &Path, heat: Heat, options: AgingOptions) -> io::Result<Errand> {
    let mut aging = Aging {
        dir: dir.into(),
        heat,
        options,
        newest: BTreeMap::new(),
        left: BTreeSet::new(),
        refused: BTreeSet::new(),
    };
    Errand::begin("aging", None, move |stopped| {
        loop {
            if let Err(error) = aging.look(WallTime::now(), stopped) {
                tracing::warn!(%error, "old samples cannot be made smaller; it is tried again");
            }
            if stopped.recv_timeout(LOOK_EVERY) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    })
}

/// A segment's place in the recording: its stream, and its first frame.
type Name = (String, u64);

struct Aging {
    dir: PathBuf,
    heat: Heat,
    options: AgingOptions,
    /// The newest sample of segments that are not written any more; `None` where they have none.
    newest: BTreeMap<Name, Option<WallTime>>,
    /// Segments that cannot be made smaller, which was told.
    left: BTreeSet<Name>,
    /// Segments that the system refused to let be made smaller once, which was told.
    refused: BTreeSet<Name>,
}

impl Aging {
    /// Makes those segments smaller whose samples have become old.
    fn look(&mut self, now: WallTime, stopped: &Receiver<()>) -> io::Result<()> {
        let listing = files::list_hours(&self.dir, |_, _| false).map_err(io::Error::other)?;
        let mut of_streams: BTreeMap<String, BTreeMap<u64, SegmentFile>> = BTreeMap::new();
        for segment in listing.segments {
            of_streams.entry(segment.stream.clone()).or_default().insert(segment.first, segment);
        }
        for (stream, segments) in of_streams {
            let mut segments = segments.into_values().peekable();
            while let Some(segment) = segments.next() {
                // The last one is written, or will be looked at once another one follows.
                let Some(next) = segments.peek() else { break };
                let name = (stream.clone(), segment.first);
                if self.left.contains(&name) || !self.heat.is_over(&name) {
                    continue;
                }
                let (path, next) = (segment.path.clone(), next.path.clone());
                let Some(newest) = self.newest(&name, segment)? else { continue };
                let tier = self.options.tier(now.since(newest));
                if tier <= Tier::of(&path) {
                    continue;
                }
                match make_smaller(&path, &next, tier, stopped) {
                    Ok(Rewritten { blocks, bytes_before, bytes }) => tracing::info!(
                        path = %path.display(), blocks, bytes_before, bytes,
                        "samples were {}", tier.word().trim_end(),
                    ),
                    Err(AgingError::Rewrite(RewriteError::Stopped)) => return Ok(()),
                    // A disk may have room later, and who begins to write a stream tidies what is unfinished up.
                    Err(error) if error.is_of_the_system() => {
                        if self.refused.insert(name) {
                            let error = in_one_line(&error);
                            tracing::warn!(error, "samples stay as they are; it is tried again");
                        }
                    }
                    Err(error) => {
                        let error = in_one_line(&error);
                        tracing::warn!(error, "samples stay as they are");
                        self.left.insert(name);
                    }
                }
            }
        }
        Ok(())
    }

    /// When the newest sample of a segment was taken.
    fn newest(&mut self, name: &Name, segment: SegmentFile) -> io::Result<Option<WallTime>> {
        if let Some(known) = self.newest.get(name) {
            return Ok(*known);
        }
        let read = newest_in(segment).map_err(io::Error::other)?;
        self.newest.insert(name.clone(), read);
        Ok(read)
    }
}

fn newest_in(segment: SegmentFile) -> Result<Option<WallTime>, ReadSegmentError> {
    let Some(mut reader) = SegmentReader::from_file(segment.file, &segment.path)? else {
        return Ok(None);
    };
    let is_samples: Vec<bool> =
        reader.head().tables.iter().map(|table| table.name == samples::NAME).collect();
    let mut newest = None;
    reader.next_rows(|header| {
        if is_samples.get(header.table) == Some(&true) {
            newest = newest.max(Some(header.greatest_time));
        }
        false
    })?;
    Ok(newest.map(WallTime::from_nanos))
}

/// Why a segment stays as it is.
#[derive(Debug, thiserror::Error)]
enum AgingError {
    #[error(transparent)]
    Read(#[from] ReadSegmentError),
    #[error(transparent)]
    Rewrite(#[from] RewriteError),
    #[error("cannot note that `{path}` is made smaller")]
    Note { path: PathBuf, source: io::Error },
}

impl AgingError {
    /// Whether it may go well another time.
    const fn is_of_the_system(&self) -> bool {
        matches!(self, Self::Note { .. } | Self::Rewrite(RewriteError::System { .. }))
    }
}

/// Writes a segment anew with smaller samples; what agents have summed up of its last second may lie in the next one.
fn make_smaller(
    path: &Path,
    next: &Path,
    tier: Tier,
    stopped: &Receiver<()>,
) -> Result<Rewritten, AgingError> {
    let note = |tier: Tier| {
        let noted =
            replace_file(&path.with_extension(AGED), tier.word().as_bytes(), Durability::Disk);
        noted.map_err(|source| AgingError::Note { path: path.into(), source })
    };
    let mut known = BTreeSet::new();
    if tier == Tier::SummedUp {
        for segment in [path, next] {
            known.append(&mut summed_up_already(segment)?);
        }
    }
    if Tier::of(path) == Tier::Exact {
        note(Tier::Exact)?;
    }
    let rewritten = rewrite(path, |rows| {
        if stopped.try_recv() == Err(TryRecvError::Disconnected) {
            return ControlFlow::Break(());
        }
        if rows.table() != samples::NAME {
            return ControlFlow::Continue(None);
        }
        // A block that cannot be read stays: whoever reads the samples tells of it.
        ControlFlow::Continue(match tier {
            Tier::Exact => None,
            Tier::Rounded => rounded(rows).ok().flatten(),
            Tier::SummedUp => summed_up(rows, &known).ok(),
        })
    })?;
    note(tier)?;
    Ok(rewritten)
}

/// The seconds of CPUs of which a segment has sums from agents.
fn summed_up_already(path: &Path) -> Result<BTreeSet<CpuSecond>, ReadSegmentError> {
    let mut known = BTreeSet::new();
    let Some(mut reader) = SegmentReader::open(path)? else { return Ok(known) };
    let is_sums: Vec<bool> =
        reader.head().tables.iter().map(|table| table.name == summaries::NAME).collect();
    let wanted =
        |header: &meikyo_recording::log::FrameHeader| is_sums.get(header.table) == Some(&true);
    while let Some(header) = reader.next_rows(wanted)? {
        let rows = reader.packed_rows(&header);
        known.append(&mut rows.and_then(|rows| seconds_of(&rows).ok()).unwrap_or_default());
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_as_small_as_the_longest_span_that_is_over_says() {
        let hours = |hours: u64| Some(Nanos::from_secs(3_600 * hours));
        let both = AgingOptions { round_after: hours(24), sum_up_after: hours(48) };
        for (age, tier) in
            [(1, Tier::Exact), (24, Tier::Rounded), (47, Tier::Rounded), (48, Tier::SummedUp)]
        {
            assert_eq!(both.tier(hours(age).unwrap()), tier, "{age} h");
        }
        let sums = AgingOptions { round_after: None, ..both };
        assert_eq!(sums.tier(hours(47).unwrap()), Tier::Exact);
        assert_eq!(AgingOptions::NEVER.tier(hours(9_999).unwrap()), Tier::Exact);
    }
}
