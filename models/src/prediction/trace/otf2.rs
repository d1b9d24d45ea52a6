//! Traces in OTF2 (Open Trace Format 2, as Score-P and `EZTrace` write it), turned into the time-independent text form.
//!
//! An archive holds events with their times; `reader.c` prints those that are of MPI, a line each, and here they
//! become what each rank called. Three things are not in single events: a receive that does not block tells at its
//! end what it received, a combined send and receive are two records within one call, and what a collective operation
//! is about is known only with the octets of all its members. So lines are written when all events are read.
//!
//! An event costs some 0.5 µs and a call 64 octets of memory until then, an operation of n ranks 24 n more; lines are made for one rank
//! after the other. Nothing here opens a file.

mod amounts;
mod events;
mod text;
mod unfinished;

use std::collections::BTreeMap;

use amounts::{All, Amounts, Operation};

use crate::prediction::ranks::{number, rank as rank_of};

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
#[derive(Debug)]
pub struct Imported {
    events: Otf2Events,
    all: BTreeMap<u64, Vec<All>>,
    /// What is not as in the program.
    pub notes: Notes,
}

/// What a trace of an archive lacks, or has by assumption.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notes {
    /// Calls of MPI that send something of which the archive holds nothing, or nothing that a trace has words for, by
    /// name. Those of which all partners are nobody (`MPI_PROC_NULL`) are among them.
    pub untold: BTreeMap<String, u64>,
    /// Receives of which the archive holds only that they were begun; they are taken to have received, in order, what
    /// was sent to their rank and received by nobody, and to have ended with the next call that waits.
    pub assumed: u64,
    /// The same, where what was sent is of another number, so that they are left out, and operations whose end is not told.
    pub unfinished: u64,
    /// Messages of which only one side tells, so that they are left out.
    pub one_sided: u64,
    /// How often recording was switched off: what a rank did then is left out.
    pub switched_off: u64,
    /// Messages and operations between two groups of ranks, which are left out.
    pub between_groups: u64,
    /// Calls of operations with other amounts for each member, of which the archive holds only sums.
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
    notes: Notes,
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
        operation: Operation,
        told: Amounts,
        root: u64,
    },
    /// A wait of which nothing is told.
    UntoldWait,
    /// What was begun and is told at its end: a receive, or an operation of all.
    Open {
        receives: bool,
        blocks: bool,
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

    /// Makes a trace of it, once all events are read.
    ///
    /// # Errors
    /// If no ranks are defined.
    pub fn finish(mut self) -> Result<Imported, Otf2Error> {
        self.resolve()?;
        let mut notes = std::mem::take(&mut self.notes);
        notes.assumed = unfinished::assume(&mut self.ranks);
        notes.one_sided = unfinished::drop_one_sided(&mut self.ranks);
        let all = self.all_told();
        for call in self.ranks.iter().flat_map(|rank| &rank.calls) {
            match call {
                Call::Open { .. } => notes.unfinished += 1,
                Call::Collective { operation, .. }
                    if operation.is_apportioned(self.defined.sums_all) =>
                {
                    notes.apportioned += 1;
                }
                _ => {}
            }
        }
        Ok(Imported { events: self, all, notes })
    }

    /// What all members told of each operation of each communicator. They call the same ones in the same order, but
    /// those that do not block may end in another.
    fn all_told(&self) -> BTreeMap<u64, Vec<All>> {
        let mut told: BTreeMap<u64, Vec<(Operation, u64, Vec<Amounts>)>> = BTreeMap::new();
        for (own, rank) in self.ranks.iter().enumerate() {
            let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
            for call in &rank.calls {
                let Call::Collective { comm, operation, root, told: amounts } = call else {
                    continue;
                };
                let members = &self.comms[comm].members;
                let (count, of_comm) =
                    (counts.entry(*comm).or_default(), told.entry(*comm).or_default());
                if of_comm.len() <= *count {
                    of_comm.push((*operation, *root, vec![Amounts::default(); members.len()]));
                }
                of_comm[*count].2[place_of(own, members)] = *amounts;
                *count += 1;
            }
        }
        let sums_all = self.defined.sums_all;
        let all = |(operation, root, told)| All::new(operation, root, told, sums_all);
        told.into_iter().map(|(comm, of)| (comm, of.into_iter().map(all).collect())).collect()
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

/// The place of a rank among the members of a communicator that it has called something of.
fn place_of(own: usize, members: &[u32]) -> usize {
    let place = members.iter().position(|member| rank_of(*member) == own);
    place.expect("only members call operations")
}

fn undefined(kind: &str, number: u64) -> Otf2Error {
    Otf2Error::Undefined { what: format!("{kind} {number}") }
}

#[cfg(test)]
mod tests;
