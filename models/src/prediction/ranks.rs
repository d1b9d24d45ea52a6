//! Programs rank by rank: what each rank does, as a list that any method can walk through.
//!
//! A step is a function of the rank and of how many steps went before, and of nothing else. So a
//! program is shared by all that run it, and a simulation that takes events back has to remember one
//! number for each rank.

use std::sync::Arc;

use meikyo_units::{Bytes, Nanos};

use super::placement::Placement;
use super::program::{Actor, Heard, Message, Step, Stream};

/// One step of a rank. Ranks are meant by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Works by itself.
    Compute {
        /// For how long.
        span: Nanos,
        /// What it is, for the breakdown.
        what: &'static str,
    },
    /// Begins to send a message; [`Op::Wait`] waits until it may be forgotten.
    Send {
        /// The receiver.
        to: u32,
        /// What both call the message.
        tag: u32,
        /// Size of the message.
        bytes: u64,
    },
    /// Begins to receive the next message of a sender with this tag; [`Op::Wait`] waits for it.
    Receive {
        /// The sender.
        from: u32,
        /// What both call the message.
        tag: u32,
    },
    /// Waits for all that was begun.
    Wait {
        /// What for, for the breakdown.
        what: &'static str,
    },
    /// Waits for one message that was begun.
    WaitFor {
        /// How many messages of the rank were begun before it.
        begun: u64,
        /// What for, for the breakdown.
        what: &'static str,
    },
}

/// The steps of one rank, in the making.
#[derive(Debug, Clone)]
pub struct Steps {
    rank: u32,
    ops: Vec<Op>,
}

impl Steps {
    /// No steps yet of the rank of this number.
    pub fn of(rank: u32) -> Self {
        Self { rank, ops: Vec::new() }
    }

    /// The rank whose steps these are.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Works by itself. Nothing for no time.
    pub fn compute(&mut self, span: Nanos, what: &'static str) {
        if span > Nanos::ZERO {
            self.ops.push(Op::Compute { span, what });
        }
    }

    /// Begins to send. Nothing is sent to the rank itself.
    pub fn send(&mut self, to: u32, tag: u32, bytes: u64) {
        if to != self.rank {
            self.ops.push(Op::Send { to, tag, bytes });
        }
    }

    /// Begins to receive. Nothing comes from the rank itself.
    pub fn receive(&mut self, from: u32, tag: u32) {
        if from != self.rank {
            self.ops.push(Op::Receive { from, tag });
        }
    }

    /// Waits for all that was begun.
    pub fn wait(&mut self, what: &'static str) {
        self.ops.push(Op::Wait { what });
    }

    /// Receives from one rank while it sends to another, and waits for both.
    pub fn exchange(&mut self, from: u32, to: u32, tag: u32, bytes: u64, what: &'static str) {
        self.receive(from, tag);
        self.send(to, tag, bytes);
        self.wait(what);
    }

    /// The steps, in their order.
    pub fn finish(self) -> Vec<Op> {
        self.ops
    }
}

/// Steps that are taken several times in a row.
#[derive(Debug, Clone, PartialEq)]
struct Section {
    ops: Arc<[Op]>,
    /// How many steps there are up to its end.
    end: u64,
}

/// What one rank does.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Script {
    sections: Vec<Section>,
}

impl Script {
    /// Appends `ops`, to be done `times` times.
    pub fn repeat(&mut self, times: u64, ops: impl Into<Arc<[Op]>>) {
        let ops = ops.into();
        if times > 0 && !ops.is_empty() {
            let end = self.len() + times * count(ops.len());
            self.sections.push(Section { ops, end });
        }
    }

    /// How many steps there are.
    pub fn len(&self) -> u64 {
        self.sections.last().map_or(0, |section| section.end)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    /// The step that comes after `before` others.
    ///
    /// # Panics
    /// Never: a step of a section is below its length.
    pub fn op(&self, before: u64) -> Option<Op> {
        let at = self.sections.partition_point(|section| section.end <= before);
        let section = self.sections.get(at)?;
        let begin = if at == 0 { 0 } else { self.sections[at - 1].end };
        let within = (before - begin) % count(section.ops.len());
        Some(section.ops[usize::try_from(within).expect("below a length")])
    }

    /// All steps in their order.
    pub fn ops(&self) -> impl Iterator<Item = Op> + '_ {
        (0..self.len()).filter_map(|before| self.op(before))
    }
}

/// What all ranks of a program do.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RankProgram {
    scripts: Vec<Script>,
}

impl RankProgram {
    /// A program of these ranks.
    pub fn new(scripts: Vec<Script>) -> Self {
        Self { scripts }
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.scripts.len()
    }

    /// What a rank does.
    pub fn script(&self, rank: usize) -> &Script {
        &self.scripts[rank]
    }

    /// What steps are called in the breakdown, each once.
    pub fn names(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        let sections = self.scripts.iter().flat_map(|script| &script.sections);
        for op in sections.flat_map(|section| section.ops.iter()) {
            if let Op::Compute { what, .. } | Op::Wait { what } | Op::WaitFor { what, .. } = op
                && !names.contains(what)
            {
                names.push(*what);
            }
        }
        names
    }

    /// All pairs of ranks that send each other anything, in their order, the lower rank first.
    ///
    /// # Panics
    /// With 2^32 ranks and more.
    pub fn pairs(&self) -> Vec<[u32; 2]> {
        let mut pairs = Vec::new();
        for (own, script) in self.scripts.iter().enumerate() {
            let own = number(own);
            let mut others: Vec<u32> = Vec::new();
            for op in script.sections.iter().flat_map(|section| section.ops.iter()) {
                if let Op::Send { to: other, .. } | Op::Receive { from: other, .. } = *op {
                    others.push(other);
                }
            }
            others.sort_unstable();
            others.dedup();
            pairs.extend(others.into_iter().map(|other| [own.min(other), own.max(other)]));
        }
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }

    /// The ranks as actors of [`super::flow`] and [`super::bounds()`], on hosts by `placement`.
    pub fn actors<'a>(&'a self, placement: &'a Placement) -> Vec<RankActor<'a>> {
        let actor = |rank| RankActor { program: self, placement, rank, taken: 0 };
        (0..self.ranks()).map(actor).collect()
    }
}

/// A rank as an actor.
#[derive(Debug, Clone)]
pub struct RankActor<'a> {
    program: &'a RankProgram,
    placement: &'a Placement,
    rank: usize,
    taken: u64,
}

impl Actor for RankActor<'_> {
    fn next(&mut self, _: &Heard<'_>) -> Step {
        let Some(op) = self.program.scripts[self.rank].op(self.taken) else { return Step::Done };
        self.taken += 1;
        match op {
            Op::Compute { span, what } => Step::Compute { span, what },
            Op::Send { to, tag, bytes } => {
                let to = rank(to);
                let stream = Stream {
                    from: self.placement.host(self.rank),
                    to: self.placement.host(to),
                    bytes: Bytes::new(bytes),
                    label: connection(self.rank, to),
                    label_back: connection(to, self.rank),
                };
                Step::Send(Message { to, tag: u64::from(tag), streams: vec![stream] })
            }
            Op::Receive { from, tag } => Step::Receive { from: rank(from), tag: u64::from(tag) },
            Op::Wait { what } => Step::Wait { what },
            Op::WaitFor { begun, what } => Step::WaitFor { begun, what },
        }
    }
}

/// What tells the connection of two ranks from others between their hosts ([`super::Network::hash`]): the label of every
/// stream from the one to the other.
pub fn connection(from: usize, to: usize) -> u64 {
    count(from) << 32 | count(to)
}

/// A rank's number as a place.
pub(crate) fn rank(number: u32) -> usize {
    usize::try_from(number).expect("32 bits are a place")
}

/// A rank's place as a number.
///
/// # Panics
/// With 2^32 ranks and more.
pub(crate) fn number(rank: usize) -> u32 {
    u32::try_from(rank).expect("fewer than 2^32 ranks")
}

fn count(length: usize) -> u64 {
    u64::try_from(length).expect("a length fits in 64 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_those_of_the_list_written_out() {
        let op = |tag| Op::Receive { from: 0, tag };
        let mut script = Script::default();
        script.repeat(0, vec![op(9)]);
        script.repeat(3, vec![op(1), op(2)]);
        script.repeat(1, vec![op(3)]);
        script.repeat(2, Vec::new());
        script.repeat(2, vec![op(4), op(5), op(6)]);
        let tags = [1, 2, 1, 2, 1, 2, 3, 4, 5, 6, 4, 5, 6];
        assert_eq!(script.ops().collect::<Vec<_>>(), tags.map(op));
        assert_eq!(script.len(), 13);
        assert_eq!(script.op(13), None);
    }
}
