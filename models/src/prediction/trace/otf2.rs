//! Traces in OTF2 (Open Trace Format 2, as Score-P and `EZTrace` write it), turned into the time-independent text form.
//!
//! An archive holds events with their times; `reader.c` prints those that are of MPI, a line each, and here they
//! become what each rank called. Three things are not in single events: a receive that does not block tells at its
//! end what it received, a combined send and receive are two records within one call, and what a collective operation
//! is about is known only with the octets of all its members. So lines are written when all events are read.
//!
//! An event costs some 0.5 µs and a call 64 octets of memory until then. Nothing here opens a file.

mod amounts;
mod events;
mod text;
mod unfinished;

use std::collections::BTreeMap;

use amounts::{Amounts, Operation};

use crate::prediction::ranks::number;

/// Who writes archives whose octets of a collective operation are sums over all members.
const SUMS_ALL: &str = "Score-P";

/// What is wrong with an archive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Otf2Error {
    /// No ranks are defined.
    #[error("the archive names no ranks of MPI: it has to be recorded with the calls of MPI")]
    NoRanks,
    /// An event or a definition is about something that does not exist.
    #[error("{what} is not defined: the archive is damaged")]
    Undefined {
        /// Its kind and number.
        what: String,
    },
    /// The reader printed what it never prints.
    #[error("`{line}` is no line of the reader: the archive is damaged")]
    Line {
        /// What it printed.
        line: String,
    },
}

/// An archive as a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// The lines of each rank.
    pub ranks: Vec<String>,
    /// Calls of MPI that send something of which the archive holds nothing, by name. Those of
    /// which all partners are nobody (`MPI_PROC_NULL`) are among them.
    pub untold: BTreeMap<String, u64>,
    /// Receives of which the archive holds only that they were begun; they are taken to have received, in order, what
    /// was sent to their rank and received by nobody, and to have ended with the next call that waits.
    pub assumed: u64,
    /// The same, where what was sent is of another number, so that they are left out.
    pub unfinished: u64,
    /// Messages and operations between two groups of ranks, which are left out.
    pub between_groups: u64,
    /// Calls of operations with other amounts between any two members, of which the archive holds only each
    /// member's sums.
    pub apportioned: u64,
}

/// An archive while its events are read.
#[derive(Debug, Default)]
pub struct Otf2Events {
    defined: Defined,
    /// Ranks, after the first event.
    ranks: Vec<Rank>,
    /// Of each location the rank, and whether it is the thread that MPI knows.
    places: BTreeMap<u64, Place>,
    world: Vec<u64>,
    comms: BTreeMap<u64, Comm>,
    messages: u64,
    /// What each member of a communicator told of each of its operations, in order.
    told: BTreeMap<u64, Vec<Vec<Amounts>>>,
    imported: Imported,
}

#[derive(Debug, Default)]
struct Defined {
    sums_all: bool,
    ticks_per_s: u64,
    /// Location and process.
    locations: Vec<(u64, u64)>,
    ranks: Vec<u64>,
    groups: BTreeMap<u64, (bool, Vec<u64>)>,
    /// Communicators and their groups, in the archive's order; that of each rank by itself has no members.
    comms: Vec<(u64, u64)>,
    regions: BTreeMap<u64, String>,
}

/// A communicator's members as ranks of the world, and what lines call it, 0 for the world itself.
#[derive(Debug)]
struct Comm {
    members: Vec<u32>,
    number: usize,
}

#[derive(Debug, Default)]
struct Place {
    rank: usize,
    is_of_mpi: bool,
    /// Calls within each other.
    depth: u32,
    /// When it did not call MPI any more.
    left: Option<u64>,
    /// The outermost call, whether anything was told of it, and its last message that was sent.
    call: u64,
    told: bool,
    sent: Option<usize>,
}

#[derive(Debug, Default)]
struct Rank {
    calls: Vec<Call>,
    computed_ns: u64,
    finalized: bool,
    /// Where requests were begun, and how many were whose end was not told.
    requests: BTreeMap<u64, usize>,
    open: u64,
    /// How many operations of each communicator were told.
    operations: BTreeMap<u64, usize>,
}

#[derive(Debug, Clone)]
enum Call {
    Compute(u64),
    Message {
        sends: bool,
        blocks: bool,
        message: Message,
    },
    Wait {
        sends: bool,
        message: Message,
    },
    Collective {
        comm: u64,
        at: usize,
        operation: u64,
        root: u64,
    },
    /// A wait of which nothing is told.
    UntoldWait,
    /// What was begun and is told at its end: a receive, or an operation of all.
    Open {
        receives: bool,
    },
    /// What was begun and takes no network.
    Nothing,
}

/// A message as one of its ends names it.
#[derive(Debug, Clone, Copy)]
struct Message {
    other: u32,
    comm: u64,
    tag: u64,
    octets: u64,
    /// How many messages of all ranks were told before.
    order: u64,
}

impl Otf2Events {
    /// Takes the next line of the reader.
    ///
    /// # Errors
    /// If it says nothing that is known, or is about what was never defined.
    pub fn line(&mut self, line: &str) -> Result<(), Otf2Error> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let unread = || Otf2Error::Line { line: line.to_owned() };
        match word {
            "creator" => self.defined.sums_all = rest.starts_with(SUMS_ALL),
            "region" => {
                let (region, name) = rest.split_once(' ').ok_or_else(unread)?;
                let region = region.parse().map_err(|_| unread())?;
                self.defined.regions.insert(region, name.to_owned());
            }
            _ => {
                let numbers: Result<Vec<u64>, _> =
                    rest.split_ascii_whitespace().map(str::parse).collect();
                let numbers = numbers.map_err(|_| unread())?;
                if !self.defined.takes(word, &numbers) {
                    let [time, location, more @ ..] = numbers.as_slice() else {
                        return Err(unread());
                    };
                    self.resolve()?;
                    if !self.event(word, *time, *location, more)? {
                        return Err(unread());
                    }
                }
            }
        }
        Ok(())
    }

    /// All ranks' lines, once all events are read.
    ///
    /// # Errors
    /// If no ranks are defined.
    pub fn finish(mut self) -> Result<Imported, Otf2Error> {
        self.resolve()?;
        self.imported.assumed = unfinished::assume(&mut self.ranks);
        let texts = self.ranks.iter().enumerate().map(|(own, rank)| self.text(own, rank));
        self.imported.ranks = texts.collect();
        for rank in &self.ranks {
            for call in &rank.calls {
                match call {
                    Call::Open { .. } => self.imported.unfinished += 1,
                    Call::Collective { operation, .. }
                        if Operation::of(*operation).is_some_and(Operation::is_apportioned) =>
                    {
                        self.imported.apportioned += 1;
                    }
                    _ => {}
                }
            }
        }
        Ok(self.imported)
    }

    /// Looks up who is who, before the first event.
    fn resolve(&mut self) -> Result<(), Otf2Error> {
        if !self.ranks.is_empty() {
            return Ok(());
        }
        let defined = &self.defined;
        self.world.clone_from(&defined.ranks);
        if self.world.is_empty() {
            return Err(Otf2Error::NoRanks);
        }
        self.ranks.resize_with(self.world.len(), Rank::default);
        let of_world: BTreeMap<u64, usize> =
            self.world.iter().enumerate().map(|(rank, location)| (*location, rank)).collect();
        let processes: BTreeMap<u64, usize> = defined
            .locations
            .iter()
            .filter_map(|(location, process)| Some((*process, *of_world.get(location)?)))
            .collect();
        for (location, process) in &defined.locations {
            if let Some(&rank) = processes.get(process) {
                let is_of_mpi = of_world.contains_key(location);
                self.places.insert(*location, Place { rank, is_of_mpi, ..Place::default() });
            }
        }
        let (mut world_is_known, mut others) = (false, 0);
        for (comm, group) in &defined.comms {
            let Some((are_locations, members)) = defined.groups.get(group) else { continue };
            let rank = |member: &u64| {
                let rank = if *are_locations {
                    of_world.get(member).copied()
                } else {
                    usize::try_from(*member).ok().filter(|member| *member < self.world.len())
                };
                let rank = rank.and_then(|rank| u32::try_from(rank).ok());
                rank.ok_or_else(|| undefined("rank", *member))
            };
            let members: Vec<u32> = members.iter().map(rank).collect::<Result<_, _>>()?;
            let is_all = members.iter().copied().eq(0..number(self.world.len()));
            let named = if is_all && !world_is_known {
                world_is_known = true;
                0
            } else {
                others += 1;
                others
            };
            self.comms.insert(*comm, Comm { members, number: named });
        }
        Ok(())
    }
}

impl Defined {
    /// Keeps a definition; whether the word was one.
    fn takes(&mut self, word: &str, numbers: &[u64]) -> bool {
        match (word, numbers) {
            ("ticks", [ticks]) => self.ticks_per_s = *ticks,
            ("location", [location, process]) => self.locations.push((*location, *process)),
            ("ranks", locations) => self.ranks = locations.to_vec(),
            ("self", [group]) => {
                self.groups.insert(*group, (false, Vec::new()));
            }
            ("group", [group, are_locations, members @ ..]) => {
                self.groups.insert(*group, (*are_locations != 0, members.to_vec()));
            }
            ("comm", [comm, group]) => self.comms.push((*comm, *group)),
            _ => return false,
        }
        true
    }
}

impl Call {
    fn comm(&self) -> Option<u64> {
        match self {
            Self::Message { message, .. } | Self::Wait { message, .. } => Some(message.comm),
            Self::Collective { comm, .. } => Some(*comm),
            Self::Compute(_) | Self::UntoldWait | Self::Open { .. } | Self::Nothing => None,
        }
    }
}

fn undefined(kind: &str, number: u64) -> Otf2Error {
    Otf2Error::Undefined { what: format!("{kind} {number}") }
}

#[cfg(test)]
mod tests;
