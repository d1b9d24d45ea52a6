//! What a host lacks of committed generations: who else lacks it is asked first, since nobody can give what he
//! has lost, too.

use std::collections::BTreeSet;

use meikyo_units::{Nanos, SimTime};

use super::{Body, Event, Held, Member, Prepared, RESEND, Task};
use crate::charter::{Commit, Generation};

/// A rebuild that failed is tried again after so long.
const AGAIN: Nanos = Nanos::from_secs(1);

/// Hosts that live and do not say what they have are waited for so long.
const PATIENCE: Nanos = Nanos::from_secs(2);

/// A generation that this host will rebuild.
#[derive(Debug)]
pub(super) struct Rebuilding {
    commit: Commit,
    /// Who has it, of those that have answered.
    have: Vec<Option<bool>>,
    resend_at: SimTime,
    deadline: SimTime,
}

impl Member {
    /// Image, parity and manifest of this host are on its disk again.
    pub fn rebuilt(&mut self, generation: Generation, prepared: Prepared) {
        let Some(held) = self.held.get_mut(&generation) else {
            self.tasks.push_back(Task::Free(generation));
            return;
        };
        if *held == Held::Rebuilding {
            *held = Held::Prepared(prepared);
            self.compare_with_commits();
        }
    }

    /// They could not be rebuilt; it is tried again later.
    pub fn rebuild_failed(&mut self, now: SimTime, generation: Generation) {
        if self.held.get(&generation) == Some(&Held::Rebuilding) {
            self.held.remove(&generation);
            self.rebuild_at = now + AGAIN;
        }
    }

    /// A block of this host is not what was stored: all of it is rebuilt, and what is there stays until then.
    pub fn damaged(&mut self, generation: Generation) {
        if let Some(Held::Prepared(_)) = self.held.get(&generation) {
            self.held.remove(&generation);
            self.tell(Event::Damaged(generation));
        }
    }

    pub(super) fn rebuild_learned(&mut self, from: usize, generation: Generation, has: bool) {
        if let Some(rebuilding) = &mut self.rebuilding
            && rebuilding.commit.generation == generation
        {
            rebuilding.have[from] = Some(has);
        }
    }

    /// The newest committed generation that this host lacks. What could not be rebuilt comes last, and of several of
    /// these the one that was tried least: who had it may be back.
    fn lacking(&self) -> Option<Commit> {
        let lacks = |commit: &&Commit| match self.held.get(&commit.generation) {
            None | Some(Held::Failed(_) | Held::Snapped(_) | Held::Snapping) => true,
            // What is still being written may yet be whole, or fail.
            Some(Held::Writing { .. } | Held::Rebuilding | Held::Prepared(_)) => false,
        };
        let commits = self.charter()?.commits.iter().filter(lacks);
        commits.min_by_key(|commit| self.lost.get(&commit.generation).unwrap_or(&0)).cloned()
    }

    /// Begins to rebuild what this host lacks, one generation after the other.
    pub(super) fn advance_rebuild(&mut self, now: SimTime) {
        let hosts = self.hosts();
        let me = self.options.place;
        let is_busy = self.held.values().any(|held| *held == Held::Rebuilding);
        let lacking = self.lacking().filter(|_| !is_busy && self.is_member());
        let (Some(commit), true) = (lacking, now >= self.rebuild_at) else {
            self.rebuilding = None;
            return;
        };
        let generation = commit.generation;
        if self.rebuilding.as_ref().is_none_or(|begun| begun.commit != commit) {
            let mut have = vec![None; hosts];
            have[me] = Some(false);
            let deadline = now + PATIENCE;
            self.rebuilding = Some(Rebuilding { commit, have, resend_at: now, deadline });
        }
        let rebuilding = self.rebuilding.as_mut().expect("it was begun just now");
        let silent: Vec<usize> =
            (0..hosts).filter(|&place| rebuilding.have[place].is_none()).collect();
        let are_dead = silent.iter().all(|&place| self.detection.is_dead(place));
        if !are_dead && now < rebuilding.deadline {
            if now >= rebuilding.resend_at {
                rebuilding.resend_at = now + RESEND;
                silent.into_iter().for_each(|place| self.send(place, Body::Ask(generation)));
            }
            return;
        }
        let Rebuilding { commit, have, .. } = self.rebuilding.take().expect("it is there");
        let lost: BTreeSet<usize> = (0..hosts).filter(|&at| have[at] != Some(true)).collect();
        if self.options.layout.survives(&lost) {
            self.lost.remove(&generation);
            self.held.insert(generation, Held::Rebuilding);
            self.tasks.push_back(Task::Rebuild { commit, lost });
        } else {
            self.rebuild_at = now + AGAIN;
            let tried = self.lost.entry(generation).or_default();
            *tried += 1;
            if *tried == 1 {
                self.tell(Event::Lost(generation, lost.into_iter().collect()));
            }
        }
    }
}
