//! A program begins on all hosts: what it goes on from is decided once, when the last host has joined its start.
//!
//! Each host finds out what can be had back ([`Member::inquire`]) and joins with that; nobody is told anything before
//! the register says that all have. A host whose program was told once and is gathered anew, because one of its
//! ranks was of an earlier try, joins again with what it was told, and is refused if more was committed since.

use meikyo_units::{Nanos, SimTime};

use super::{Event, Member, Task};
use crate::charter::{Change, Generation, Join};
use crate::recovery::Restart;

/// Where no majority answers it is asked again after so long.
const AGAIN: Nanos = Nanos::from_millis(500);

/// What all ranks of a start are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// The newest generation that was committed then.
    pub newest: Option<Generation>,
    /// The generation that they go on from.
    pub from: Option<Generation>,
}

/// A program of which all ranks on this host wait to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beginning {
    /// A number that no other program on any host has.
    pub program: u64,
    /// How many ranks there are on all hosts.
    pub ranks: u32,
    /// What the launcher calls this start, as a number; zero where it says nothing.
    pub launch: u64,
    /// What some of its ranks were told already.
    pub told: Option<Told>,
}

/// What is being done for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Starting {
    beginning: Beginning,
    found: Option<Told>,
    ask_at: SimTime,
    has_joined: bool,
    is_told: bool,
}

impl Member {
    /// All ranks of a program on this host wait to begin. [`Task::Restart`] says what can be had back, and
    /// [`Task::Started`] what they go on from, once the program has begun on all hosts.
    pub fn begin(&mut self, now: SimTime, beginning: Beginning) {
        let (found, has_joined) = (beginning.told, beginning.told.is_some());
        let ask_at = now;
        self.starting = Some(Starting { beginning, found, ask_at, has_joined, is_told: false });
    }

    /// The program that waits to begin, or has begun, is gone.
    pub const fn end_program(&mut self) {
        self.starting = None;
    }

    /// Places where the program has not begun yet, while it waits here.
    pub fn awaited_starters(&self) -> Vec<usize> {
        let me = self.options.place;
        let start = self.charter().and_then(|charter| charter.start.as_ref());
        let own = self.starting.filter(|starting| !starting.is_told);
        match (own, start) {
            (Some(own), Some(start)) if start.joined[me] == Some(own.beginning.program) => {
                (0..self.hosts()).filter(|&place| start.joined[place].is_none()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// What was found out for whoever asked.
    pub(super) fn inquired(
        &mut self,
        restart: &Restart,
        newest: Option<Generation>,
        silent: &[usize],
        is_confirmed: bool,
    ) {
        let Some(starting) = self.starting.as_mut().filter(|starting| starting.found.is_none())
        else {
            return;
        };
        let from = match restart {
            Restart::Nothing => None,
            Restart::From { generation, is_committed: true, .. }
                if Some(*generation) == newest || silent.is_empty() =>
            {
                Some(*generation)
            }
            // Whoever carries out the task says why there is nothing to go on from.
            _ => return,
        };
        if is_confirmed {
            starting.found = Some(Told { newest, from });
        }
    }

    pub(super) fn advance_starting(&mut self, now: SimTime) {
        let me = self.options.place;
        let Some((_, charter)) = &self.known else { return };
        let Some(starting) = &mut self.starting else { return };
        let program = starting.beginning.program;
        let newest = charter.newest().map(|commit| commit.generation);
        let start = charter.start.as_ref().filter(|start| start.joined[me] == Some(program));
        if let Some(start) = start {
            starting.has_joined = true;
            if start.is_complete() && !starting.is_told {
                starting.is_told = true;
                let told = Told { newest: start.newest, from: start.from };
                (starting.found, starting.beginning.told) = (Some(told), Some(told));
                self.tasks.push_back(Task::Started { program, run: start.run, told });
                return;
            }
            if start.is_complete() {
                return;
            }
        }
        if starting.found.is_some_and(|found| found.newest != newest) {
            if starting.beginning.told.is_some() {
                // It goes on from what is not the newest any more.
                self.starting = None;
                self.tell(Event::StartedAnew);
                return;
            }
            starting.found = None;
            starting.ask_at = now;
        }
        if starting.found.is_none() && self.inquiry.is_none() && now >= starting.ask_at {
            starting.ask_at = now + AGAIN;
            self.inquire(now);
        }
    }

    /// The change by which the program joins the newest start, unless it has.
    pub(super) fn wanted_start(&self) -> Option<Change> {
        let me = self.options.place;
        let starting = self.starting?;
        let Told { newest, from } = starting.found?;
        let Beginning { program, ranks, launch, .. } = starting.beginning;
        let join = Join { place: me, program, ranks, launch, newest, from };
        let charter = self.charter()?;
        let is_its_turn = match &charter.start {
            None => true,
            Some(start) if start.joined[me] == Some(program) => false,
            // One that does not suit was begun after this one, whose other ranks are gone.
            Some(start) => start.suits(&join) || !starting.has_joined,
        };
        let is_current = charter.newest().map(|commit| commit.generation) == newest;
        (is_its_turn && is_current).then_some(Change::Join(join))
    }
}
