//! What the receiver knows of one stream's numbers.

use std::collections::{BTreeMap, BTreeSet};

use meikyo_recording::origin::Ranges;
use meikyo_recording::{Origin, Received, Source, TableSchema};

use super::Ticket;
use super::standby::KnownTimes;
use crate::gaps::{self, Turn};
use crate::limits::{HOLDS_MAX, RANGES_MAX};
use crate::wire::Numbers;

/// A stream of the recording.
#[derive(Debug, Default)]
pub(super) struct Store {
    pub(super) tables: Vec<TableSchema>,
    pub(super) is_open: bool,
    /// What is on the disk.
    pub(super) durable: Received,
    /// That, and what was handed over to be stored.
    pub(super) held: Received,
    /// What was handed over and is not on the disk yet, with its octets.
    pub(super) pending: BTreeMap<Ticket, (Origin, u64)>,
    /// Which of these are gaps that the receiver found by itself: nobody waits for an acknowledgement,
    /// and nobody is told that such numbers need not be kept.
    pub(super) found: BTreeSet<Ticket>,
    /// Which collector's rows were taken when, and the greatest time of a row, when it was opened.
    pub(super) turns: Vec<Turn>,
    /// What was known then of the times of each collector's blocks.
    pub(super) known: KnownTimes,
    pub(super) newest_ns: Option<i64>,
    /// The greatest time of rows of each life that blocks came of since then.
    newest: BTreeMap<Source, i64>,
}

/// Lives whose newest rows are remembered; of more the oldest is forgotten.
const LIVES_MAX: usize = 4_096;

impl Store {
    /// Takes back that a block is stored; numbers of it that another one accounts for stay.
    pub(super) fn forget(&mut self, lost: &Origin) {
        let Origin { source, first, last } = lost;
        let held = self.held.of_mut(source);
        held.remove(*first, *last);
        if let Some(durable) = self.durable.ranges_of(source) {
            durable.within(*first, *last).for_each(|(first, last)| held.add(first, last));
        }
        let others = self.pending.values().map(|(origin, _)| origin);
        for other in others.filter(|origin| origin.source == *source) {
            held.add(other.first, other.last);
        }
    }

    /// A sender tells of numbers that the receiver found to be missing: it waits for an acknowledgement.
    pub(super) fn is_told_too(&mut self, told: &Origin) {
        let pending = &self.pending;
        self.found.retain(|ticket| {
            pending.get(ticket).is_some_and(|(origin, _)| origin.source != told.source)
        });
    }

    /// Whether a block with a number was received, or told to be missing by who knows.
    pub(super) fn has(&self, source: &Source, number: u64) -> bool {
        self.held.ranges_of(source).is_some_and(|ranges| ranges.holds(number))
    }

    /// Whether it was told that nobody knows of a block with a number.
    pub(super) fn gave_up(&self, source: &Source, number: u64) -> bool {
        self.has(&gaps::given_up(source), number)
    }

    /// Notes the greatest time of a block that came.
    pub(super) fn note_times(&mut self, source: &Source, until_ns: i64) {
        match self.newest.get_mut(source) {
            Some(newest) => *newest = until_ns.max(*newest),
            None => drop(self.newest.insert(source.clone(), until_ns)),
        }
        if self.newest.len() > LIVES_MAX {
            self.newest.pop_first();
        }
    }

    /// The greatest time of a life's rows that came since the stream was opened.
    pub(super) fn newest_of(&self, source: &Source) -> Option<i64> {
        self.newest.get(source).copied()
    }

    /// The greatest time of the rows of a life that is over, as far as it is known: that of the recording's rows
    /// when the life is of before the stream was opened.
    pub(super) fn newest_of_life(&mut self, source: &Source) -> Option<i64> {
        self.newest.remove(source).or(self.newest_ns)
    }

    /// The lives of a sender that are known, with the stream that their numbers are of.
    pub(super) fn lives_of(&self, sender: &str) -> BTreeSet<Source> {
        self.held.of_sender(sender).map(gaps::plain).collect()
    }
}

/// All numbers of a source that are accounted for, those among them of which nobody knows.
pub(super) fn accounted(received: &Received, source: &Source) -> Ranges {
    let mut all = received.ranges_of(source).cloned().unwrap_or_default();
    let given_up = received.ranges_of(&gaps::given_up(source)).into_iter().flat_map(Ranges::iter);
    given_up.for_each(|(first, last)| all.add(first, last));
    all
}

/// Numbers as messages that keep their limits.
pub(super) fn in_parts(received: &Received) -> Vec<Vec<Numbers>> {
    let (mut parts, mut part, mut room) = (Vec::new(), Vec::new(), RANGES_MAX);
    for (source, ranges) in received.iter() {
        let ranges: Vec<_> = ranges.iter().collect();
        let mut rest = &ranges[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(room));
            let (boot, stream) = (source.boot, source.stream.clone());
            part.push(Numbers { boot, stream, ranges: now.to_vec() });
            (rest, room) = (later, room - now.len());
            if room == 0 || part.len() == HOLDS_MAX {
                parts.push(std::mem::take(&mut part));
                room = RANGES_MAX;
            }
        }
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}
