//! What a program that begins anew goes on from: what the group agrees on now, and what its hosts have.
//!
//! With a majority, the register is read once more, and a generation that is still being decided on is
//! waited for, so that all hosts that ask are told the same. Without one, what the hosts that answer
//! remember has to do ([`crate::recovery`]).

use std::collections::BTreeMap;

use meikyo_units::{Nanos, SimTime};

use super::{Body, Held, Member, Prepared, RESEND, Task};
use crate::charter::{Charter, Generation};
use crate::recovery::{self, Survivor};
use crate::register::majority;

/// Hosts that live and do not answer are waited for so long, and a generation that is being decided on.
const PATIENCE: Nanos = Nanos::from_secs(30);

/// What a host remembers, if it remembers anything, and what it has.
type Answered = (Option<Charter>, BTreeMap<Generation, Prepared>);

/// A question and its answers.
#[derive(Debug)]
pub(super) struct Inquiry {
    number: u64,
    /// The register is read by this proposal or a later one.
    read_by: u64,
    is_read: bool,
    /// The newest commit that was known when it was asked: what was answered before is not what holds.
    newest: Option<Generation>,
    answers: Vec<Option<Answered>>,
    resend_at: SimTime,
    deadline: SimTime,
}

impl Inquiry {
    pub(super) const fn has_to_read(&self) -> bool {
        !self.is_read
    }

    pub(super) const fn decided(&mut self, proposal: u64) {
        self.is_read |= proposal >= self.read_by;
    }
}

impl Member {
    /// The program begins anew: [`Task::Restart`] says what from. An earlier question that is not answered is
    /// forgotten.
    pub fn inquire(&mut self, now: SimTime) {
        self.inquiries += 1;
        self.inquiry = Some(Inquiry {
            number: self.inquiries,
            read_by: self.proposals + 1,
            is_read: false,
            newest: self.charter().and_then(Charter::newest_number),
            answers: vec![None; self.hosts()],
            resend_at: now,
            deadline: now + PATIENCE,
        });
    }

    pub(super) fn surveyed(
        &mut self,
        from: usize,
        number: u64,
        charter: Option<Charter>,
        prepared: Vec<(Generation, Prepared)>,
    ) {
        let hosts = self.hosts();
        let group = self.group();
        let Some(inquiry) = self.inquiry.as_mut().filter(|inquiry| inquiry.number == number) else {
            return;
        };
        // What is no part of this group has nothing of it.
        let is_ours = |charter: &Charter| group == 0 || charter.group == group;
        let charter = charter.filter(|charter| charter.fits(hosts) && is_ours(charter));
        inquiry.answers[from] = Some((charter, prepared.into_iter().collect()));
    }

    pub(super) fn survey(&self, number: u64) -> Body {
        let charter = self.vote.as_ref().map(|vote| vote.charter.clone());
        let prepared = self.prepared_generations();
        let prepared = prepared.map(|(generation, whole)| (generation, whole.clone())).collect();
        Body::Surveyed { number, charter, prepared }
    }

    pub(super) fn advance_inquiry(&mut self, now: SimTime) {
        let hosts = self.hosts();
        let alive = (0..hosts).filter(|&place| !self.detection.is_dead(place)).count();
        // It cannot be committed without what this host has not handed over: hosts that go on sooner may have begun
        // one already.
        let can_be_committed = |generation: &Generation| {
            let is_untouched = matches!(self.held.get(generation), None | Some(Held::Snapping));
            *generation <= self.known_before || !is_untouched
        };
        let open = self.charter().and_then(|charter| charter.open);
        let is_open = open.is_some_and(|open| can_be_committed(&open.generation))
            // What this host has yet to begin is newer than anything that it could tell.
            || self.saving.is_some();
        let newest = self.charter().and_then(Charter::newest_number);
        let Some(inquiry) = &mut self.inquiry else { return };
        if inquiry.newest != newest {
            self.inquiries += 1;
            (inquiry.number, inquiry.newest) = (self.inquiries, newest);
            (inquiry.answers, inquiry.resend_at) = (vec![None; hosts], now);
        }
        let silent: Vec<usize> =
            (0..hosts).filter(|&place| inquiry.answers[place].is_none()).collect();
        let is_late = now >= inquiry.deadline;
        let are_dead = silent.iter().all(|&place| self.detection.is_dead(place));
        let is_agreed = alive < majority(hosts) || (inquiry.is_read && !is_open);
        let is_answered = is_late || (are_dead && is_agreed);
        if !is_answered {
            if now >= inquiry.resend_at {
                inquiry.resend_at = now + RESEND;
                let body = Body::Survey(inquiry.number);
                // What was whole when it was asked first can be freed, and what was not can be rebuilt.
                self.send_all(&body);
            }
            return;
        }
        let inquiry = self.inquiry.take().expect("it was there just now");
        let is_confirmed = inquiry.is_read && !is_open;
        // What a majority agrees on holds, whatever a host remembers; one that was just admitted has no vote yet.
        // What is being written is not told: if this host has no part in it yet, it cannot be committed without it.
        let agreed = self.charter().filter(|_| is_confirmed);
        let agreed = agreed.map(|charter| Charter { open: None, ..charter.clone() });
        let survivor = |(place, answer): (usize, Option<Answered>)| {
            let (remembered, prepared) = answer?;
            let charter = agreed.clone().or(remembered)?;
            Some(Survivor { place, charter, prepared })
        };
        let survivors: Vec<Survivor> =
            inquiry.answers.into_iter().enumerate().filter_map(survivor).collect();
        let restart = recovery::choose(&self.options.layout, &survivors);
        let newest = survivors.iter().filter_map(|survivor| survivor.charter.newest());
        let newest = newest.map(|commit| commit.generation).max();
        self.inquired(&restart, newest, &silent, is_confirmed);
        self.tasks.push_back(Task::Restart { restart, newest, silent, is_confirmed });
    }
}
