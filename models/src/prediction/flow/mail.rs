//! Messages between being sent and being received, matched in order by sender, receiver and tag.

use std::collections::{BTreeMap, VecDeque};

use super::Waiting;

/// Sender, receiver, tag.
type Name = (usize, usize, u64);

/// A message or a move that an actor has begun, and how many it had begun before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Begun {
    pub(super) actor: usize,
    pub(super) number: u64,
}

/// What announces itself, and waits until it is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Announced {
    pub(super) set: usize,
    pub(super) from: Begun,
    /// Whether any of it goes over the network.
    pub(super) by_network: bool,
}

/// Messages of one name that have no receiver yet, by their numbers, or receivers that have no message.
#[derive(Debug, Default)]
struct Unmatched {
    sent: VecDeque<usize>,
    asked: VecDeque<Begun>,
}

/// A message, or its announcement if it announces itself.
#[derive(Debug)]
struct Letter {
    announces: Option<Announced>,
    arrived: bool,
    /// Who receives it.
    asked: Option<Begun>,
}

/// A message that has arrived, or its announcement, and who receives it.
#[derive(Debug)]
pub(super) struct Met {
    pub(super) to: Begun,
    /// What is to be asked for; nothing if the message itself is there.
    pub(super) announces: Option<Announced>,
}

#[derive(Debug, Default)]
pub(super) struct Mail {
    unmatched: BTreeMap<Name, Unmatched>,
    letters: BTreeMap<usize, Letter>,
    numbered: usize,
}

impl Mail {
    /// Whether a message that nobody receives yet has arrived, or its announcement.
    pub(super) fn announced(&self, from: usize, to: usize, tag: u64) -> bool {
        let first = self.unmatched.get(&(from, to, tag)).and_then(|own| own.sent.front());
        first.and_then(|number| self.letters.get(number)).is_some_and(|letter| letter.arrived)
    }

    /// A message sets out, or its announcement; gives its number.
    pub(super) fn sent(
        &mut self,
        from: usize,
        to: usize,
        tag: u64,
        announces: Option<Announced>,
    ) -> usize {
        let number = self.numbered;
        self.numbered += 1;
        let own = self.unmatched.entry((from, to, tag)).or_default();
        let asked = own.asked.pop_front();
        if asked.is_none() {
            own.sent.push_back(number);
        } else {
            self.forget(from, to, tag);
        }
        self.letters.insert(number, Letter { announces, arrived: false, asked });
        number
    }

    /// What set out has arrived; somebody may wait for it.
    pub(super) fn arrived(&mut self, number: usize) -> Option<Met> {
        let letter = self.letters.get_mut(&number).expect("it set out");
        letter.arrived = true;
        self.met(number)
    }

    /// A receiver asks; it may be there. `None`: the receiver has to wait.
    pub(super) fn asked(&mut self, from: usize, begun: Begun, tag: u64) -> Option<Met> {
        let own = self.unmatched.entry((from, begun.actor, tag)).or_default();
        let Some(number) = own.sent.pop_front() else {
            own.asked.push_back(begun);
            return None;
        };
        self.forget(from, begun.actor, tag);
        let letter = self.letters.get_mut(&number).expect("it set out");
        letter.asked = Some(begun);
        self.met(number)
    }

    fn met(&mut self, number: usize) -> Option<Met> {
        let letter = self.letters.get(&number)?;
        let to = letter.asked.filter(|_| letter.arrived)?;
        let announces = letter.announces;
        self.letters.remove(&number);
        Some(Met { to, announces })
    }

    /// Forgets a name of which nothing is open.
    fn forget(&mut self, from: usize, to: usize, tag: u64) {
        let name = (from, to, tag);
        let empty = |own: &Unmatched| own.sent.is_empty() && own.asked.is_empty();
        if self.unmatched.get(&name).is_some_and(empty) {
            self.unmatched.remove(&name);
        }
    }

    /// Who waits for whom, by actor.
    pub(super) fn waiting(&self) -> Vec<Waiting> {
        let mut waiting = Vec::new();
        let announces = |number: &&usize| {
            self.letters.get(*number).is_some_and(|letter| letter.announces.is_some())
        };
        for (&(from, to, tag), own) in &self.unmatched {
            let sends = own.sent.iter().filter(announces).count();
            let send = Waiting { actor: from, sends: true, other: to, tag };
            let receive = Waiting { actor: to, sends: false, other: from, tag };
            waiting.extend(std::iter::repeat_n(send, sends));
            waiting.extend(std::iter::repeat_n(receive, own.asked.len()));
        }
        waiting.sort_by_key(|waiting| (waiting.actor, waiting.other, waiting.tag, waiting.sends));
        waiting
    }
}
