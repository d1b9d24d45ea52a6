//! A member's part in the register: its own vote, its proposals, and what it learns.

use meikyo_units::SimTime;

use super::{BACKOFF, Body, Event, Held, Member, Task};
use crate::charter::{Charter, Generation, Incarnation};
use crate::register::{Ballot, Outcome, Vote};

impl Member {
    pub(super) fn asked_to_promise(&mut self, from: usize, ballot: Ballot) {
        self.round = self.round.max(ballot.round);
        let Some(vote) = &mut self.vote else { return };
        let before = vote.promised;
        let body = match vote.promise(ballot) {
            Ok(()) => {
                let Vote { accepted, charter, .. } = vote.clone();
                // Asked again, it has kept that already.
                if vote.promised != before {
                    self.tasks.push_back(Task::Keep(vote.clone()));
                }
                Body::Promised { ballot, accepted, charter }
            }
            Err(promised) => Body::Refused { ballot, promised },
        };
        self.send(from, body);
    }

    pub(super) fn asked_to_accept(
        &mut self,
        from: usize,
        incarnation: Incarnation,
        ballot: Ballot,
        charter: &Charter,
    ) {
        // Whoever is no member by what it proposes itself has nothing to propose.
        if !self.fits(charter) || charter.members[from] != incarnation {
            return;
        }
        let Some(vote) = &mut self.vote else { return };
        let before = (vote.promised, vote.accepted);
        let body = match vote.accept(ballot, charter) {
            Ok(()) => {
                if (vote.promised, vote.accepted) != before {
                    self.tasks.push_back(Task::Keep(vote.clone()));
                }
                Body::Accepted(ballot)
            }
            Err(promised) => Body::Refused { ballot, promised },
        };
        self.send(from, body);
    }

    pub(super) fn was_promised(
        &mut self,
        now: SimTime,
        from: usize,
        incarnation: Incarnation,
        ballot: Ballot,
        accepted: Ballot,
        charter: Charter,
    ) {
        if self.fits(&charter)
            && let Some(proposal) = &mut self.proposal
            && proposal.promised(from, incarnation, ballot, accepted, charter)
        {
            self.resend_at = now;
        }
    }

    pub(super) fn was_accepted(
        &mut self,
        now: SimTime,
        from: usize,
        incarnation: Incarnation,
        ballot: Ballot,
    ) {
        let outcome =
            self.proposal.as_mut().and_then(|tried| tried.accepted(from, incarnation, ballot));
        if let Some(outcome) = outcome {
            self.ended(now, outcome);
        }
    }

    pub(super) fn was_refused(&mut self, now: SimTime, ballot: Ballot, promised: Ballot) {
        self.round = self.round.max(promised.round);
        if let Some(outcome) =
            self.proposal.as_ref().and_then(|tried| tried.refused(ballot, promised))
        {
            self.ended(now, outcome);
        }
    }

    fn ended(&mut self, now: SimTime, outcome: Outcome) {
        let Some(tried) = self.proposal.take() else { return };
        match outcome {
            Outcome::Overtaken(_) => {
                let hosts = self.hosts() as u64;
                self.retry_at = now + self.random.span(BACKOFF * hosts);
            }
            Outcome::Decided(ballot, charter, answer) => {
                self.is_to_read = false;
                if let Some(inquiry) = &mut self.inquiry {
                    inquiry.decided(self.proposals);
                }
                if self.vote.is_none() {
                    // Admitted: from here on it votes, and remembers by what.
                    let vote =
                        Vote { promised: ballot, accepted: ballot, charter: charter.clone() };
                    self.tasks.push_back(Task::Keep(vote.clone()));
                    // The host that stood here before may have had a part in anything.
                    self.known_before = charter.last;
                    self.vote = Some(vote);
                }
                for place in 0..self.hosts() {
                    if place != self.options.place {
                        self.send(place, Body::Decided(ballot, charter.clone()));
                    }
                }
                self.learn(ballot, charter);
                if let Err(rejected) = answer {
                    self.was_rejected(tried.change(), rejected);
                }
            }
        }
    }

    /// This charter holds, unless a newer is known.
    pub(super) fn learn(&mut self, ballot: Ballot, charter: Charter) {
        if self.known.as_ref().is_some_and(|(known, _)| *known >= ballot) {
            return;
        }
        self.round = self.round.max(ballot.round);
        if self.vote.as_ref().is_some_and(|vote| ballot < vote.accepted) {
            // It was on its way while this daemon was restarted, and is not what holds any more.
            return;
        }
        if let Some(vote) = &mut self.vote {
            if charter.members[self.options.place] != self.options.incarnation {
                self.is_fenced = true;
                self.tell(Event::Fenced);
                return;
            }
            // What holds may be accepted by all, so that every host keeps the record.
            if vote.accepted < ballot && vote.accept(ballot, &charter).is_ok() {
                self.tasks.push_back(Task::Keep(vote.clone()));
            }
        }
        let before = self.known.replace((ballot, charter));
        self.tell_what_is_new(before.as_ref().map(|(_, charter)| charter));
        self.free_what_is_old();
        self.saving_learned();
        self.takeover_learned();
    }

    fn tell_what_is_new(&mut self, before: Option<&Charter>) {
        let newest = |charter: &Charter| charter.newest().map(|commit| commit.generation);
        let was = before.and_then(newest);
        let is = self.charter().and_then(newest);
        if let Some(generation) = is
            && is > was
            && before.is_some()
        {
            self.tell(Event::Committed(generation));
        }
    }

    fn free_what_is_old(&mut self) {
        let Some((_, charter)) = &self.known else { return };
        self.to_free = self.to_free.filter(|freed| charter.commit_of(*freed).is_some());
        let is_old = |generation: &Generation| !charter.keeps(*generation);
        let old: Vec<Generation> = self.held.keys().copied().filter(is_old).collect();
        for generation in old {
            self.held.remove(&generation);
            self.lost.remove(&generation);
            self.tasks.push_back(Task::Free(generation));
        }
        self.compare_with_commits();
    }

    /// What is whole here and is not what was agreed on counts as lost.
    pub(super) fn compare_with_commits(&mut self) {
        let Some((_, charter)) = &self.known else { return };
        let commits = charter.commits.clone();
        for commit in commits {
            let agreed = commit.manifests[self.options.place];
            if let Some(Held::Prepared(prepared)) = self.held.get(&commit.generation)
                && agreed.is_some_and(|agreed| agreed != prepared.manifest)
            {
                self.held.remove(&commit.generation);
                self.tell(Event::Damaged(commit.generation));
            }
        }
    }
}
