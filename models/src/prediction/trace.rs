//! Programs as they were recorded: traces in the time-independent text form of SMPI.
//!
//! A trace is one line for each call of a rank, `RANK VERB ARGUMENT...`, in one file for each rank or in one
//! for several. Collective operations are calls, so that their algorithms can be chosen anew. What
//! `meikyo trace` adds, and SMPI ignores, is a last word `@ID` for a communicator other than the world, and
//! `comm_split SIZE @ID MEMBER...`, which defines one.
//!
//! Nothing here opens a file.

mod line;
pub mod otf2;
mod replay;

use std::collections::{BTreeMap, BTreeSet};

use super::collective::Collectives;
use super::ranks::{RankProgram, Script, number};
use line::{Call, Group, Line};

/// Distinct tags of a trace at most; collective operations are told apart above them.
const TAGS_MAX: usize = 1 << 20;

/// Text of a trace, and what it is called in what is said about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceFile {
    /// What messages about its lines call it, usually its path.
    pub name: String,
    /// Its lines.
    pub text: String,
}

/// A recorded program.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// For each rank what it called, in order.
    ranks: Vec<Vec<Called>>,
    /// The members of each group by its place; the first one is the world.
    groups: Vec<Vec<u32>>,
}

/// A call, and where it stands.
#[derive(Debug, Clone, PartialEq)]
struct Called {
    call: Call,
    at: Place,
}

/// A line of a file, by the place of the file and from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    file: usize,
    line: usize,
}

/// What is wrong with a trace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// No line says anything.
    #[error("the trace is empty; `meikyo trace -- mpirun ...` records one")]
    Empty,
    /// A line says nothing that is known.
    #[error("{file}, line {line}: {what}")]
    Line {
        /// As [`TraceFile::name`].
        file: String,
        /// From 1.
        line: usize,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// A rank has no lines.
    #[error(
        "rank {rank} of {ranks} is missing: name its file in the list of files, or record the program anew"
    )]
    MissingRank {
        /// The first one that is missing.
        rank: u32,
        /// How many there should be.
        ranks: u32,
    },
    /// As many messages are not received as sent.
    #[error(
        "{file}, line {line}: {sent} messages from rank {from} to rank {to} with this tag are sent and \
         {received} received: a trace of a program that was ended early has to be recorded anew"
    )]
    Unmatched {
        /// As [`TraceFile::name`].
        file: String,
        /// The line of the first message that the other side lacks.
        line: usize,
        /// The rank that sends.
        from: u32,
        /// The rank that receives.
        to: u32,
        /// Messages that are sent.
        sent: u64,
        /// Messages that are received.
        received: u64,
    },
}

impl Trace {
    /// Reads a trace.
    ///
    /// # Errors
    /// If a line says nothing that is known, a rank is missing, or a message is sent and not received.
    pub fn parse(files: &[TraceFile]) -> Result<Self, TraceError> {
        let mut reading = Reading::new(files)?;
        let mut trace = Self { ranks: Vec::new(), groups: Vec::new() };
        trace.ranks.resize_with(reading.ranks, Vec::new);
        for (file, content) in files.iter().enumerate() {
            for (line, text) in lines(&content.text) {
                let at = Place { file, line };
                if let Some((rank, call)) = reading.call(at, text)? {
                    trace.ranks[rank].push(Called { call, at });
                }
            }
        }
        trace.groups = reading.groups;
        trace.check(files)?;
        Ok(trace)
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.ranks.len()
    }

    /// How many calls all ranks made together.
    pub fn calls(&self) -> usize {
        self.ranks.iter().map(Vec::len).sum()
    }

    /// The program, which computes `units_per_s` of what the trace counts computing in; collective
    /// operations go by the algorithms of `collectives`.
    pub fn program(&self, units_per_s: f64, collectives: &Collectives) -> RankProgram {
        let script = |(rank, calls): (usize, &Vec<Called>)| {
            let calls = calls.iter().map(|called| &called.call);
            let ops = replay::ops(number(rank), calls, &self.groups, units_per_s, collectives);
            let mut script = Script::default();
            script.repeat(1, ops);
            script
        };
        RankProgram::new(self.ranks.iter().enumerate().map(script).collect())
    }

    /// Whether all messages are received, and all members of a group call the same operations.
    fn check(&self, files: &[TraceFile]) -> Result<(), TraceError> {
        let mut balance: BTreeMap<(u32, u32, u32), [u64; 2]> = BTreeMap::new();
        let message = |own: u32, call: &Call| match *call {
            Call::Send { to, tag, .. } => Some(((own, to, tag), 0)),
            Call::Receive { from, tag, .. } => Some(((from, own, tag), 1)),
            _ => None,
        };
        for (own, called) in self.all() {
            if let Some((name, side)) = message(own, &called.call) {
                balance.entry(name).or_default()[side] += 1;
            }
        }
        if let Some((name, [sent, received])) =
            balance.into_iter().find(|(_, [sent, received])| sent != received)
        {
            let (more, fewer) = if sent > received { (0, received) } else { (1, sent) };
            let of_name = self
                .all()
                .filter(|(own, called)| message(*own, &called.call) == Some((name, more)));
            let fewer = usize::try_from(fewer).expect("no more than there are lines");
            let first = of_name.map(|(_, called)| called.at).nth(fewer);
            let Place { file, line } = first.expect("there are more of them");
            let (from, to, _) = name;
            let file = files[file].name.clone();
            return Err(TraceError::Unmatched { file, line, from, to, sent, received });
        }
        self.check_collectives(files)
    }

    fn check_collectives(&self, files: &[TraceFile]) -> Result<(), TraceError> {
        let mut called: Vec<Vec<(&'static str, Place)>> = vec![Vec::new(); self.groups.len()];
        let mut counts = BTreeMap::new();
        for (own, one) in self.all() {
            let Call::Collective { group, operation, .. } = &one.call else { continue };
            let count: &mut usize = counts.entry((*group, own)).or_default();
            let verb = operation.verb();
            match called[*group].get(*count) {
                None => called[*group].push((verb, one.at)),
                Some((other, _)) if *other == verb => {}
                Some((other, at)) => {
                    let what = format!(
                        "`{verb}`, where line {} of {} says `{other}`: all members of a communicator call the \
                         same operations in the same order",
                        at.line, files[at.file].name
                    );
                    return Err(wrong(files, one.at, what));
                }
            }
            *count += 1;
        }
        for (group, members) in self.groups.iter().enumerate() {
            for &member in members {
                let count = counts.get(&(group, member)).copied().unwrap_or(0);
                if let Some((verb, at)) = called[group].get(count) {
                    let what = format!(
                        "`{verb}` is never called by rank {member}: a trace of a program that was ended \
                         early has to be recorded anew"
                    );
                    return Err(wrong(files, *at, what));
                }
            }
        }
        Ok(())
    }

    fn all(&self) -> impl Iterator<Item = (u32, &Called)> {
        let numbered = self.ranks.iter().enumerate();
        numbered.flat_map(|(own, calls)| calls.iter().map(move |called| (number(own), called)))
    }
}

/// Lines that say something, from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let said = |(_, line): &(usize, &str)| !line.is_empty() && !line.starts_with('#');
    text.lines().enumerate().map(|(at, line)| (at + 1, line.trim())).filter(said)
}

fn wrong(files: &[TraceFile], at: Place, what: String) -> TraceError {
    TraceError::Line { file: files[at.file].name.clone(), line: at.line, what }
}

/// What is known while a trace is read.
struct Reading<'a> {
    files: &'a [TraceFile],
    ranks: usize,
    /// For each rank the octets of a unit that it sends where a line names no type.
    units: Vec<u64>,
    groups: Vec<Vec<u32>>,
    /// The place of each group by its number; 0 is the world.
    group_places: BTreeMap<u64, usize>,
    /// What tags are called, by group and tag.
    tags: BTreeMap<(usize, i64), u32>,
}

impl<'a> Reading<'a> {
    /// Looks for all ranks.
    fn new(files: &'a [TraceFile]) -> Result<Self, TraceError> {
        let mut seen = BTreeSet::new();
        let mut said = 0;
        for (file, content) in files.iter().enumerate() {
            for (line, text) in lines(&content.text) {
                let at = Place { file, line };
                let line = Line::parse(text).map_err(|what| wrong(files, at, what))?;
                seen.insert(line.rank);
                if let ("comm_size", [count, ..]) = (line.verb, line.arguments.as_slice()) {
                    said = said.max(count.parse().unwrap_or(0));
                }
            }
        }
        let last = seen.last().ok_or(TraceError::Empty)?;
        let ranks = said.max(last.saturating_add(1));
        if let Some(rank) = (0..ranks).find(|rank| !seen.contains(rank)) {
            return Err(TraceError::MissingRank { rank, ranks });
        }
        let ranks = seen.len();
        Ok(Self {
            files,
            ranks,
            units: vec![1; ranks],
            groups: vec![(0..number(ranks)).collect()],
            group_places: BTreeMap::from([(0, 0)]),
            tags: BTreeMap::new(),
        })
    }

    /// What a line calls, if it calls anything that takes time.
    fn call(&mut self, at: Place, text: &str) -> Result<Option<(usize, Call)>, TraceError> {
        let files = self.files;
        let failed = |what| wrong(files, at, what);
        let line = Line::parse(text).map_err(failed)?;
        let rank = usize::try_from(line.rank).expect("it is one of the ranks");
        if line.verb == "init" {
            // SMPI's own convention: a word after it, and sizes count numbers of eight octets.
            self.units[rank] = if line.arguments.is_empty() { 1 } else { 8 };
            return Ok(None);
        }
        if let Some((id, members)) = line.defines().map_err(failed)? {
            self.define(id, members).map_err(failed)?;
            return Ok(None);
        }
        let place = match line.group {
            None => 0,
            Some(id) => *self.group_places.get(&id).ok_or_else(|| {
                failed(format!(
                    "`@{id}` is not defined: a line `comm_split SIZE @{id} MEMBER...` does that"
                ))
            })?,
        };
        let members = &self.groups[place];
        let own = members.iter().position(|member| *member == line.rank);
        let own = own.ok_or_else(|| failed(format!("rank {rank} is no member of this group")))?;
        let group = Group { place, size: number(members.len()), own: number(own) };
        let tags = &mut self.tags;
        let mut tag = |tag: i64| {
            let next = tags.len();
            if next >= TAGS_MAX && !tags.contains_key(&(place, tag)) {
                return Err(format!("there are more than {TAGS_MAX} tags, which is not supported"));
            }
            Ok(*tags.entry((place, tag)).or_insert_with(|| number(next)))
        };
        let call = line.call(self.units[rank], number(self.ranks), group, &mut tag);
        Ok(call.map_err(failed)?.map(|call| (rank, call)))
    }

    fn define(&mut self, id: u64, members: Vec<u32>) -> Result<(), String> {
        if let Some(outside) = members.iter().find(|member| **member >= number(self.ranks)) {
            return Err(format!("rank {outside} does not exist: there are {}", self.ranks));
        }
        let place = self.groups.len();
        match self.group_places.get(&id) {
            Some(known) if self.groups[*known] == members => Ok(()),
            Some(_) => Err(format!("`@{id}` has other members in another line")),
            None => {
                self.groups.push(members);
                self.group_places.insert(id, place);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
