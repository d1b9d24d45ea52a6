//! Where a block of packed rows comes from, and which blocks a stream has.
//!
//! A block from another host carries its [`Origin`]: who sent it, and which numbers of that sender's
//! stream it accounts for. It stands in the block's own octets, so that a row and the knowledge that
//! it was received are on the disk together or not at all. Compaction, which takes blocks apart, adds
//! the numbers to `received.json` of the stream before it unlinks a segment; opening a stream for
//! writing reads that file and the segments that are left
//! ([`StreamWriter::received`](crate::StreamWriter::received)). A receiver that asks [`Received`]
//! before it stores a block never stores one twice, however often it was killed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::problem::read_regular;

/// The file in a stream's directory.
pub(crate) const FILE_NAME: &str = "received.json";

/// The longest name of a sender or of a sender's stream, in octets.
pub const NAME_MAX: usize = 255;

/// One life of a sender's stream.
///
/// Numbers of two lives have nothing to do with each other, which is why a sender that starts takes
/// another `boot`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Source {
    /// Who sends, for example the name of a host.
    pub sender: String,
    /// Which of the sender's lives it is.
    pub boot: u64,
    /// Which of the sender's streams.
    pub stream: String,
}

/// Where a block comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// Whose numbers they are.
    pub source: Source,
    /// The first number that the block accounts for.
    pub first: u64,
    /// The last one: `first` where it holds rows of a block, more where it tells of blocks that were
    /// lost.
    pub last: u64,
}

/// A block from elsewhere as a stream's log has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrived {
    /// The table that its rows are of.
    pub table: String,
    /// Which block it is, or which numbers it accounts for.
    pub origin: Origin,
    /// The least and the greatest time of its rows, ns since the epoch.
    pub times: (i64, i64),
}

/// Numbers, as the ranges that they form.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds the numbers from `first` to `last`.
    pub fn add(&mut self, first: u64, last: u64) {
        if first > last {
            return;
        }
        let (mut first, mut last) = (first, last);
        // From the range that may touch the first number on.
        while let Some((&begin, &end)) = self.0.range(..=last.saturating_add(1)).next_back() {
            if end.saturating_add(1) < first {
                break;
            }
            first = first.min(begin);
            last = last.max(end);
            self.0.remove(&begin);
        }
        self.0.insert(first, last);
    }

    /// Takes the numbers from `first` to `last` out.
    pub fn remove(&mut self, first: u64, last: u64) {
        while let Some((&begin, &end)) = self.0.range(..=last).next_back() {
            if end < first || first > last {
                break;
            }
            self.0.remove(&begin);
            if end > last {
                self.0.insert(last + 1, end);
            }
            if begin < first {
                self.0.insert(begin, first - 1);
            }
        }
    }

    /// Whether a number is among them.
    pub fn holds(&self, number: u64) -> bool {
        self.0.range(..=number).next_back().is_some_and(|(_, &end)| number <= end)
    }

    /// The range that a number lies in.
    pub fn around(&self, number: u64) -> Option<(u64, u64)> {
        let (&first, &last) = self.0.range(..=number).next_back()?;
        (number <= last).then_some((first, last))
    }

    /// How many of the numbers from `first` to `last` are not among them; 2^64 - 1 when all 2^64 are
    /// not.
    pub fn missing(&self, first: u64, last: u64) -> u64 {
        let span = |(begin, end): (u64, u64)| u128::from(end.saturating_sub(begin)) + 1;
        let known: u128 = self.within(first, last).map(span).sum();
        // Saturates: one number more than 64 bits can count is missing at most.
        u64::try_from(span((first, last)) - known).unwrap_or(u64::MAX)
    }

    /// The parts of the ranges that lie between `first` and `last`, in their order.
    pub fn within(&self, first: u64, last: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let before = self.0.range(..first).next_back().filter(|(_, end)| **end >= first);
        let from = before.map_or(first, |(&begin, _)| begin);
        let parts = self.0.range(from..=last.max(from));
        parts
            .map(move |(&begin, &end)| (begin.max(first), end.min(last)))
            .filter(|(begin, end)| begin <= end)
    }

    /// The parts between `first` and `last` that are not among them, in their order.
    pub fn holes(&self, first: u64, last: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut next = Some(first);
        let within = self.within(first, last).map(Some).chain([None]);
        within.filter_map(move |known| {
            let begin = next?;
            let (hole_ends, after) = match known {
                Some((from, until)) => (from.checked_sub(1), until.checked_add(1)),
                None => (Some(last), None),
            };
            next = after.filter(|after| *after <= last);
            hole_ends.filter(|end| begin <= *end).map(|end| (begin, end))
        })
    }

    /// The ranges, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().map(|(&first, &last)| (first, last))
    }

    /// The greatest number; `None` when there are none.
    pub fn last(&self) -> Option<u64> {
        self.0.values().next_back().copied()
    }
}

/// Which numbers of which senders a stream accounts for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Received(BTreeMap<Source, Ranges>);

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(flatten)]
    source: Source,
    ranges: Vec<(u64, u64)>,
}

impl Received {
    /// Notes that a block was received.
    pub fn add(&mut self, origin: &Origin) {
        match self.0.get_mut(&origin.source) {
            Some(ranges) => ranges.add(origin.first, origin.last),
            None => {
                let mut ranges = Ranges::default();
                ranges.add(origin.first, origin.last);
                self.0.insert(origin.source.clone(), ranges);
            }
        }
    }

    /// Adds all that another one knows.
    pub fn merge(&mut self, other: &Self) {
        for (source, ranges) in &other.0 {
            let own = self.0.entry(source.clone()).or_default();
            ranges.iter().for_each(|(first, last)| own.add(first, last));
        }
    }

    /// The numbers of a source.
    pub fn ranges_of(&self, source: &Source) -> Option<&Ranges> {
        self.0.get(source)
    }

    /// The numbers of a source, to be changed.
    pub fn of_mut(&mut self, source: &Source) -> &mut Ranges {
        self.0.entry(source.clone()).or_default()
    }

    /// The sources of one sender, found without a look at those of others.
    pub fn of_sender(&self, sender: &str) -> impl Iterator<Item = &Source> {
        let first = Source { sender: sender.to_owned(), boot: 0, stream: String::new() };
        let from = self.0.range(first..).map(|(source, _)| source);
        let sender = sender.to_owned();
        from.take_while(move |source| source.sender == sender)
    }

    /// All sources and their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (&Source, &Ranges)> {
        self.0.iter()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn line(&self) -> String {
        let entries = self.0.iter().map(|(source, ranges)| Entry {
            source: source.clone(),
            ranges: ranges.iter().collect(),
        });
        let json = serde_json::to_string(&entries.collect::<Vec<_>>());
        let json = json.expect("texts and numbers can be written as JSON");
        format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes()))
    }

    fn parse(line: &str) -> Option<Self> {
        let (crc, json) = line.strip_suffix('\n')?.split_once(' ')?;
        if crc != format!("{:08x}", crc32fast::hash(json.as_bytes())) {
            return None;
        }
        let entries: Vec<Entry> = serde_json::from_str(json).ok()?;
        let mut received = Self::default();
        for Entry { source, ranges } in entries {
            let own = received.0.entry(source).or_default();
            ranges.into_iter().for_each(|(first, last)| own.add(first, last));
        }
        Some(received)
    }
}

/// What compaction noted of a stream; nothing when it has noted nothing.
///
/// # Errors
/// When the file cannot be read or does not have its checksum.
pub(crate) fn read(stream_dir: &Path) -> io::Result<Received> {
    let path = stream_dir.join(FILE_NAME);
    match read_regular(&path) {
        Ok(text) => Received::parse(&text).ok_or_else(|| {
            let text = "it does not have the checksum that it names";
            io::Error::new(io::ErrorKind::InvalidData, text)
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
            Ok(Received::default())
        }
        Err(error) => Err(error),
    }
}

/// Adds what a segment holds to what compaction noted of its stream, durably.
///
/// # Errors
/// When the file cannot be read or written; the segment must stay then.
pub(crate) fn note(stream_dir: &Path, of_segment: &Received) -> io::Result<()> {
    if of_segment.is_empty() {
        return Ok(());
    }
    let mut all = read(stream_dir)?;
    all.merge(of_segment);
    let temporary = stream_dir.join(format!(".{FILE_NAME}.{}.tmp", std::process::id()));
    let mut file = File::create(&temporary)?;
    file.write_all(all.line().as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, stream_dir.join(FILE_NAME))?;
    File::open(stream_dir)?.sync_all()
}
