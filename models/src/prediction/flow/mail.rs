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

/// What is known of the messages of one name that are not matched yet.
#[derive(Debug, Default)]
struct Letters {
    sent: VecDeque<Sent>,
    /// Receivers that asked before anything was sent.
    asked: VecDeque<Begun>,
}

#[derive(Debug)]
enum Sent {
    /// Waits for its receiver; announces itself at an instant.
    Announced { set: usize, begun: Begun, at: u64 },
    /// Under way or there, by its number.
    Eager { message: usize },
}

/// An eager message.
#[derive(Debug)]
enum Eager {
    /// Under way; nobody asked.
    UnderWay,
    /// Under way, and its receiver waits.
    Awaited { to: Begun },
    /// There; nobody asked.
    There,
}

/// What a match makes possible.
#[derive(Debug)]
pub(super) enum Ready {
    /// A message is there, to be taken.
    There,
    /// Sender and receiver are both there, and the streams can begin.
    Both { set: usize, from: Begun, to: Begun, announced_at: u64 },
}

#[derive(Debug, Default)]
pub(super) struct Mail {
    boxes: BTreeMap<Name, Letters>,
    eager: BTreeMap<usize, Eager>,
    numbered: usize,
}

impl Mail {
    /// Whether a message has announced itself by `now`, or is there.
    pub(super) fn announced(&self, from: usize, to: usize, tag: u64, now: u64) -> bool {
        let first = self.boxes.get(&(from, to, tag)).and_then(|letters| letters.sent.front());
        first.is_some_and(|sent| match sent {
            Sent::Announced { at, .. } => *at <= now,
            Sent::Eager { message } => matches!(self.eager.get(message), Some(Eager::There)),
        })
    }

    /// A message announces itself; both may be there at once.
    pub(super) fn announced_by(
        &mut self,
        begun: Begun,
        to: usize,
        tag: u64,
        set: usize,
        at: u64,
    ) -> Option<Ready> {
        let letters = self.boxes.entry((begun.actor, to, tag)).or_default();
        let Some(asked) = letters.asked.pop_front() else {
            letters.sent.push_back(Sent::Announced { set, begun, at });
            return None;
        };
        self.forget(begun.actor, to, tag);
        Some(Ready::Both { set, from: begun, to: asked, announced_at: at })
    }

    /// An eager message sets out; gives its number.
    pub(super) fn sent_eagerly(&mut self, from: usize, to: usize, tag: u64) -> usize {
        let message = self.numbered;
        self.numbered += 1;
        let letters = self.boxes.entry((from, to, tag)).or_default();
        if let Some(to_begun) = letters.asked.pop_front() {
            self.eager.insert(message, Eager::Awaited { to: to_begun });
            self.forget(from, to, tag);
        } else {
            letters.sent.push_back(Sent::Eager { message });
            self.eager.insert(message, Eager::UnderWay);
        }
        message
    }

    /// An eager message is there; gives its receiver if that waits for it.
    pub(super) fn arrived(&mut self, message: usize) -> Option<Begun> {
        match self.eager.remove(&message) {
            Some(Eager::Awaited { to }) => Some(to),
            _ => {
                self.eager.insert(message, Eager::There);
                None
            }
        }
    }

    /// A receiver asks; `None`: it has to wait.
    pub(super) fn asked(&mut self, from: usize, begun: Begun, tag: u64) -> Option<Ready> {
        let letters = self.boxes.entry((from, begun.actor, tag)).or_default();
        let Some(sent) = letters.sent.pop_front() else {
            letters.asked.push_back(begun);
            return None;
        };
        self.forget(from, begun.actor, tag);
        match sent {
            Sent::Announced { set, begun: from, at } => {
                Some(Ready::Both { set, from, to: begun, announced_at: at })
            }
            Sent::Eager { message } => match self.eager.remove(&message) {
                Some(Eager::There) => Some(Ready::There),
                _ => {
                    self.eager.insert(message, Eager::Awaited { to: begun });
                    None
                }
            },
        }
    }

    /// Forgets a name of which nothing is open.
    fn forget(&mut self, from: usize, to: usize, tag: u64) {
        let name = (from, to, tag);
        let empty = |letters: &Letters| letters.sent.is_empty() && letters.asked.is_empty();
        if self.boxes.get(&name).is_some_and(empty) {
            self.boxes.remove(&name);
        }
    }

    /// Who waits for whom, by actor.
    pub(super) fn waiting(&self) -> Vec<Waiting> {
        let mut waiting = Vec::new();
        for (&(from, to, tag), letters) in &self.boxes {
            let announced = letters.sent.iter();
            let sends = announced.filter(|sent| matches!(sent, Sent::Announced { .. })).count();
            let send = Waiting { actor: from, sends: true, other: to, tag };
            let receive = Waiting { actor: to, sends: false, other: from, tag };
            waiting.extend(std::iter::repeat_n(send, sends));
            waiting.extend(std::iter::repeat_n(receive, letters.asked.len()));
        }
        waiting.sort_by_key(|waiting| (waiting.actor, waiting.other, waiting.tag, waiting.sends));
        waiting
    }
}
