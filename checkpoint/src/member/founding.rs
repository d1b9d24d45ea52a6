//! How a group begins: every host that is told to found it waits until all others were told so, too.
//!
//! A host whose group lives already is not founded again, so that nobody votes who has forgotten what it
//! promised: its directory was emptied, and it has to ask to be admitted instead.

use meikyo_units::SimTime;

use super::{Body, Event, Member, RESEND, Task};
use crate::charter::{Charter, Incarnation};
use crate::register::Vote;

/// Who else was told to found the group.
#[derive(Debug)]
pub(super) struct Founding {
    members: Vec<Option<Incarnation>>,
    resend_at: SimTime,
}

impl Founding {
    pub(super) fn new(now: SimTime, hosts: usize) -> Self {
        Self { members: vec![None; hosts], resend_at: now }
    }
}

impl Member {
    /// The places that have not said that they found the group, too; nobody unless this host waits for them.
    pub fn awaited_founders(&self) -> Vec<usize> {
        let Some(founding) = &self.founding else { return Vec::new() };
        let hosts = 0..self.hosts();
        let me = self.options.place;
        hosts.filter(|&place| place != me && founding.members[place].is_none()).collect()
    }

    pub(super) fn advance_founding(&mut self, now: SimTime) {
        let me = self.options.place;
        let Some(founding) = &mut self.founding else { return };
        founding.members[me] = Some(self.options.incarnation);
        let members: Option<Vec<Incarnation>> = founding.members.iter().copied().collect();
        if let Some(members) = members {
            self.found(Charter::founding(members));
        } else if now >= founding.resend_at {
            founding.resend_at = now + RESEND;
            for place in (0..self.hosts()).filter(|place| *place != me) {
                self.send(place, Body::Found);
            }
        }
    }

    pub(super) fn found_by(&mut self, from: usize, incarnation: Incarnation) {
        if let Some(founding) = &mut self.founding {
            founding.members[from] = Some(incarnation);
        } else if let Some(vote) = &self.vote {
            let body = Body::Founded(vote.charter.clone());
            self.send(from, body);
        }
    }

    pub(super) fn was_founded(&mut self, charter: Charter) {
        if self.founding.is_none() || !self.fits(&charter) {
            return;
        }
        if charter.members[self.options.place] == self.options.incarnation {
            self.found(charter);
        } else {
            self.is_fenced = true;
            self.tell(Event::FoundedBefore);
        }
    }

    fn found(&mut self, charter: Charter) {
        self.founding = None;
        let vote = Vote::first(charter);
        self.tasks.push_back(Task::Keep(vote.clone()));
        self.vote = Some(vote);
    }
}
