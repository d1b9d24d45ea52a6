//! A program begins on all hosts: what it goes on from is decided once, when the last host joins its start.
//!
//! Each host finds out what can be had back ([`Member::inquire`]) and joins with that; nobody is told anything
//! before the register says that all have joined. A host that was told, and finds that another program
//! begins elsewhere, was decided on together with one that is gone: it joins the next start with what it was told,
//! unless more was committed since.

use meikyo_units::{Nanos, SimTime};

use super::{Event, Member, Task};
use crate::charter::{Change, Generation, Join, Joined, Origin, Reached, Rejected};
use crate::recovery::Restart;

/// Where no majority answers it is asked again after so long.
const AGAIN: Nanos = Nanos::from_millis(500);

/// A program of which all ranks on this host wait to begin, or have begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beginning {
    /// What this host says of it.
    pub joined: Joined,
    /// How many ranks there are on all hosts.
    pub ranks: u32,
}

/// What is being done for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Starting {
    beginning: Beginning,
    found: Option<Origin>,
    ask_at: SimTime,
    /// The start that it was told of.
    run: Option<u64>,
    has_joined: bool,
}

impl Member {
    /// All ranks of a program on this host wait to begin, or have begun and their daemon was started anew.
    /// [`Task::Restart`] says what can be had back, and [`Task::Started`] what they go on from, once the program has
    /// begun on all hosts; [`Task::Over`] that they have no part in what others have begun.
    pub fn begin(&mut self, now: SimTime, beginning: Beginning) {
        let (found, has_joined) = (beginning.joined.told, beginning.joined.told.is_some());
        self.starting = Some(Starting { beginning, found, ask_at: now, run: None, has_joined });
    }

    /// The program that waits to begin, or has begun, is gone.
    pub const fn end_program(&mut self) {
        self.starting = None;
    }

    /// The next program that begins goes on from this generation, whatever is newer: say the same on all hosts.
    pub const fn insist(&mut self, generation: Generation) {
        self.insisted = Some(generation);
    }

    /// Places where the program has not begun yet, while it waits here.
    pub fn awaited_starters(&self) -> Vec<usize> {
        let me = self.options.place;
        let start = self.charter().and_then(|charter| charter.start.as_ref());
        let own = self.starting.as_ref().filter(|starting| starting.run.is_none());
        match (own, start) {
            (Some(own), Some(start)) if start.has(me, own.beginning.joined.program) => {
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
        let insisted = match self.insisted {
            None => None,
            // What a minority remembers may be freed by now.
            Some(_) if !is_confirmed => return,
            Some(generation) => {
                let commits =
                    self.charter().map(|charter| &charter.commits[..]).unwrap_or_default();
                let kept: Vec<Generation> =
                    commits.iter().map(|commit| commit.generation).collect();
                let found = commits.iter().find(|commit| commit.generation == generation);
                let Some(reached) = found.map(|commit| commit.reached) else {
                    if self.starting.is_some() {
                        self.tell(Event::NotCommitted(generation, kept));
                    }
                    return;
                };
                Some((Some(generation), reached))
            }
        };
        let Some(starting) = &mut self.starting else { return };
        let (generation, reached) = match (insisted, restart) {
            (Some(insisted), _) => insisted,
            (None, Restart::Nothing) => (None, Reached::default()),
            (None, Restart::From { generation, reached, is_committed: true, .. })
                if Some(*generation) == newest || silent.is_empty() =>
            {
                (Some(*generation), *reached)
            }
            // Whoever carries out the task says why there is nothing to go on from.
            (None, Restart::From { .. } | Restart::Lost { .. }) => return,
        };
        if is_confirmed && starting.found.is_none() {
            starting.found = Some(Origin { generation, reached, newest });
        }
    }

    pub(super) fn advance_starting(&mut self, now: SimTime) {
        let me = self.options.place;
        let Some((_, charter)) = &self.known else { return };
        let Some(starting) = &mut self.starting else { return };
        let Joined { program, told } = starting.beginning.joined;
        if let Some(start) = charter.start.as_ref().filter(|start| start.has(me, program)) {
            starting.has_joined = true;
            let Some(origin) = start.origin else { return };
            if starting.run != Some(start.run) {
                starting.run = Some(start.run);
                starting.beginning.joined.told = Some(origin);
                starting.found = Some(origin);
                self.insisted = None;
                self.tasks.push_back(Task::Started { program, run: start.run, origin });
            }
            return;
        }
        let is_left_out = charter.start.as_ref().is_some_and(|start| {
            // One of another size was begun later, by whoever started the program anew.
            start.origin.is_some() || start.ranks != starting.beginning.ranks
        });
        if starting.has_joined && is_left_out && (told.is_some() || charter.begun().is_none()) {
            self.over();
            return;
        }
        if starting.found.is_some_and(|found| found.newest != charter.newest_number()) {
            if told.is_some() {
                if charter.start.is_some() {
                    self.over();
                }
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
        let Starting { beginning: Beginning { joined, ranks }, found, .. } = self.starting?;
        let charter = self.charter()?;
        let found = found.filter(|found| found.newest == charter.newest_number())?;
        let has_joined = charter.start.as_ref().is_some_and(|start| start.has(me, joined.program));
        (!has_joined).then_some(Change::Join(Join { place: me, joined, ranks, found }))
    }

    /// A change was not possible any more.
    pub(super) fn was_rejected(&mut self, change: &Change, rejected: Rejected) {
        match (change, rejected) {
            (Change::Begin { .. }, Rejected::Over(run)) => {
                self.saving = None;
                self.tell(Event::Over(run));
            }
            (Change::Free(generation), _) if self.to_free == Some(*generation) => {
                self.to_free = None;
            }
            (Change::Join(Join { joined: Joined { told: Some(_), .. }, .. }), _) => self.over(),
            (Change::Join(_), Rejected::Stale) => {
                // It is found out anew.
                if let Some(starting) = &mut self.starting {
                    starting.found = None;
                }
            }
            _ => {}
        }
    }

    fn over(&mut self) {
        if let Some(starting) = self.starting.take() {
            self.tasks.push_back(Task::Over(starting.beginning.joined.program));
            self.tell(Event::StartedAnew);
        }
    }
}
