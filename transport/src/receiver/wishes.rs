//! What a receiver wants of senders beyond their blocks.

use super::{Output, Party, Receiver, Session, State};
use crate::wire::{Ask, Message, Pace};

impl Receiver {
    /// Tells senders how often blocks of what is newest are wanted, where that has changed: `pace_of` says it by
    /// a sender's name and cluster, ms, 0 for what the sender finds best.
    pub fn set_pace(&mut self, pace_of: impl Fn(&str, Option<&str>) -> u32) {
        for (&id, session) in &mut self.sessions {
            let State::Open(Party { sender, cluster, pace_ms: Some(told), .. }) =
                &mut session.state
            else {
                continue;
            };
            let every_ms = pace_of(sender, cluster.as_deref());
            if std::mem::replace(told, every_ms) != every_ms {
                let octets = Message::Pace(Pace { every_ms }).encoded();
                self.outputs.push_back(Output::Send { session: id, octets });
            }
        }
    }

    /// Asks a sender for something that belongs to a stream. Whether it was asked: it must have a session, have
    /// declared the stream, and understand questions.
    pub fn ask(&mut self, sender: &str, stream: &str, words: &str) -> bool {
        let Some(&id) = self.senders.get(sender) else { return false };
        let Some(Session { state: State::Open(party), .. }) = self.sessions.get(&id) else {
            return false;
        };
        let can = party.pace_ms.is_some() && party.tables.contains_key(stream);
        if can {
            let ask = Ask { stream: stream.to_owned(), words: words.to_owned() };
            let octets = Message::Ask(ask).encoded();
            self.outputs.push_back(Output::Send { session: id, octets });
        }
        can
    }
}
