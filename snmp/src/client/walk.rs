//! Walking subtrees: which request comes next, and what its answer adds. Sends nothing.

use thiserror::Error;

use crate::Oid;
use crate::message::Version;
use crate::pdu::{ErrorStatus, Pdu, PduType, error_status_name};
use crate::value::Value;

/// Most values that one walk may collect: a switch with 1,000 ports has about 40,000 in all its
/// interface tables, and an agent that invents names without end must not fill the memory.
pub const WALK_VALUES_MAX: usize = 1_000_000;

/// How many values are asked for at a time; about what fits an Ethernet frame.
pub const MAX_REPETITIONS: i32 = 24;

/// Why a walk cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WalkError {
    /// The agent answered with an error.
    #[error("the agent answered {} at `{oid}`", error_status_name(*.status))]
    Status {
        /// The error status.
        status: i32,
        /// The name that was asked for.
        oid: Oid,
    },
    /// The agent's names do not increase: the walk would go round for ever.
    #[error("the agent answered `{found}` as the next name after `{asked}`")]
    NotIncreasing {
        /// The name that was asked for.
        asked: Oid,
        /// The name that came.
        found: Oid,
    },
    /// The answer holds nothing.
    #[error("the agent answered nothing after `{asked}`")]
    Empty {
        /// The name that was asked for.
        asked: Oid,
    },
    /// More values than a walk may have.
    #[error("more than {WALK_VALUES_MAX} values below `{subtree}`")]
    TooLong {
        /// The subtree.
        subtree: Oid,
    },
}

/// A walk over subtrees, one after the other.
#[derive(Debug)]
pub struct Walk {
    version: Version,
    subtrees: std::vec::IntoIter<Oid>,
    subtree: Option<Oid>,
    last: Oid,
    max_repetitions: i32,
    found: Vec<(Oid, Value)>,
}

impl Walk {
    /// A walk over everything below these names; a name itself is not part of its subtree.
    pub fn new(version: Version, subtrees: Vec<Oid>) -> Self {
        let mut walk = Self {
            version,
            subtrees: subtrees.into_iter(),
            subtree: None,
            last: Oid::from_slice(&[]),
            max_repetitions: MAX_REPETITIONS,
            found: Vec::new(),
        };
        walk.next_subtree();
        walk
    }

    fn next_subtree(&mut self) {
        self.subtree = self.subtrees.next();
        if let Some(subtree) = &self.subtree {
            self.last = subtree.clone();
        }
    }

    /// The next request; `None` when all is found.
    pub fn request(&self, request_id: i32) -> Option<Pdu> {
        self.subtree.as_ref()?;
        let names = std::slice::from_ref(&self.last);
        Some(if self.version == Version::V1 {
            Pdu::request(PduType::GetNext, request_id, names)
        } else {
            Pdu::bulk(request_id, 0, self.max_repetitions, names)
        })
    }

    /// Takes the answer to the last request.
    ///
    /// # Errors
    ///
    /// [`WalkError`]; the walk cannot go on then.
    pub fn accept(&mut self, answer: Pdu) -> Result<(), WalkError> {
        let Some(subtree) = self.subtree.clone() else { return Ok(()) };
        match ErrorStatus::from_code(answer.error_status) {
            Some(ErrorStatus::NoError) => {}
            Some(ErrorStatus::NoSuchName) if self.version == Version::V1 => {
                self.next_subtree();
                return Ok(());
            }
            Some(ErrorStatus::TooBig) if self.max_repetitions > 1 => {
                self.max_repetitions /= 2;
                return Ok(());
            }
            _ => {
                let (status, oid) = (answer.error_status, self.last.clone());
                return Err(WalkError::Status { status, oid });
            }
        }
        if answer.varbinds.is_empty() {
            return Err(WalkError::Empty { asked: self.last.clone() });
        }
        for (oid, value) in answer.varbinds {
            if value.is_exception() || !oid.starts_with(&subtree) {
                self.next_subtree();
                return Ok(());
            }
            if oid <= self.last {
                return Err(WalkError::NotIncreasing { asked: self.last.clone(), found: oid });
            }
            if self.found.len() >= WALK_VALUES_MAX {
                return Err(WalkError::TooLong { subtree });
            }
            self.last = oid.clone();
            self.found.push((oid, value));
        }
        Ok(())
    }

    /// Everything that was found so far, by subtree, each in the agent's order.
    pub fn into_found(self) -> Vec<(Oid, Value)> {
        self.found
    }

    /// Everything that was found so far, taken out.
    pub fn take_found(&mut self) -> Vec<(Oid, Value)> {
        std::mem::take(&mut self.found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oid(text: &str) -> Oid {
        text.parse().unwrap()
    }

    /// The answer of an agent that holds these names, with at most `room` values.
    fn answer(held: &[&str], request: &Pdu, room: usize) -> Pdu {
        let (asked, _) = &request.varbinds[0];
        let wanted = request.max_repetitions().max(1);
        let mut pdu = Pdu::request(PduType::Response, request.request_id, &[]);
        if wanted > room {
            pdu.error_status = ErrorStatus::TooBig.code();
            return pdu;
        }
        pdu.varbinds = held
            .iter()
            .map(|name| oid(name))
            .filter(|name| name > asked)
            .map(|name| (name, Value::Integer(1)))
            .take(wanted)
            .collect();
        if pdu.varbinds.is_empty() && request.kind == PduType::GetBulk {
            pdu.varbinds.push((asked.clone(), Value::EndOfMibView));
        } else if pdu.varbinds.is_empty() {
            pdu.error_status = ErrorStatus::NoSuchName.code();
        }
        pdu
    }

    const HELD: [&str; 6] = ["1.3.1.1", "1.3.1.2", "1.3.2.1", "1.3.4.1", "1.3.4.2", "1.3.4.3"];

    #[test]
    fn a_walk_finds_its_subtrees_and_nothing_else() {
        for version in [Version::V1, Version::V2c] {
            for room in [1, 2, 30] {
                let mut walk = Walk::new(version, vec![oid("1.3.4"), oid("1.3.1"), oid("1.3.3")]);
                let mut requests = 0;
                while let Some(request) = walk.request(1) {
                    requests += 1;
                    assert!(requests < 30, "a walk ends");
                    walk.accept(answer(&HELD, &request, room)).unwrap();
                }
                let found: Vec<_> =
                    walk.into_found().iter().map(|(name, _)| name.to_string()).collect();
                assert_eq!(found, ["1.3.4.1", "1.3.4.2", "1.3.4.3", "1.3.1.1", "1.3.1.2"]);
            }
        }
    }

    #[test]
    fn an_agent_that_goes_round_is_noticed() {
        let mut walk = Walk::new(Version::V2c, vec![oid("1.3")]);
        let mut pdu = Pdu::request(PduType::Response, 1, &[oid("1.3.2"), oid("1.3.1")]);
        pdu.varbinds.iter_mut().for_each(|(_, value)| *value = Value::Integer(1));
        let error = walk.accept(pdu).unwrap_err();
        assert_eq!(error.to_string(), "the agent answered `1.3.1` as the next name after `1.3.2`");
    }

    #[test]
    fn errors_say_where() {
        let mut walk = Walk::new(Version::V2c, vec![oid("1.3.6")]);
        let mut pdu = Pdu::request(PduType::Response, 1, &[]);
        assert_eq!(walk.accept(pdu.clone()), Err(WalkError::Empty { asked: oid("1.3.6") }));
        pdu.error_status = 16;
        let error = walk.accept(pdu).unwrap_err();
        assert_eq!(error.to_string(), "the agent answered authorizationError at `1.3.6`");
    }
}
