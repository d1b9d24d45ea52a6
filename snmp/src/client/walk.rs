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
pub const VALUES_AT_A_TIME: usize = 24;

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
        /// The subtree that holds too many values.
        subtree: Oid,
    },
}

/// A walk over subtrees: as many at a time as fit a request (one with version 1, in which the end of
/// one subtree fails the whole request), each from where it stands.
///
/// An agent that answers such a request with an error, or with names that do not go on from those
/// that were asked, is asked for one subtree at a time from then on.
#[derive(Debug)]
pub struct Walk {
    version: Version,
    /// Those that are not at their end; the first ones are asked.
    open: Vec<Branch>,
    /// How many values are asked for at a time.
    values: usize,
    /// Most subtrees in a request.
    width_max: usize,
    /// By subtree.
    found: Vec<Vec<(Oid, Value)>>,
    count: usize,
}

/// One subtree of a walk.
#[derive(Debug)]
struct Branch {
    place: usize,
    subtree: Oid,
    last: Oid,
    at_end: bool,
}

impl Walk {
    /// A walk over everything below these names; a name itself is not part of its subtree.
    pub fn new(version: Version, subtrees: Vec<Oid>) -> Self {
        let found = subtrees.iter().map(|_| Vec::new()).collect();
        let branches = subtrees.into_iter().enumerate().map(|(place, subtree)| Branch {
            place,
            last: subtree.clone(),
            subtree,
            at_end: false,
        });
        let (values, width_max) =
            if version == Version::V1 { (1, 1) } else { (VALUES_AT_A_TIME, VALUES_AT_A_TIME) };
        Self { version, open: branches.collect(), values, width_max, found, count: 0 }
    }

    /// How many subtrees are asked at once.
    fn width(&self) -> usize {
        self.open.len().min(self.width_max).min(self.values)
    }

    /// The next request; `None` when all is found.
    pub fn request(&self, request_id: i32) -> Option<Pdu> {
        let names: Vec<_> =
            self.open[..self.width()].iter().map(|branch| branch.last.clone()).collect();
        if names.is_empty() {
            return None;
        }
        Some(if self.version == Version::V1 {
            Pdu::request(PduType::GetNext, request_id, &names)
        } else {
            // The agent answers with as many as fit, and never with more.
            // Saturates.
            let repetitions = i32::try_from(self.values / names.len()).unwrap_or(i32::MAX);
            Pdu::bulk(request_id, 0, repetitions, &names)
        })
    }

    /// Takes the answer to the last request.
    ///
    /// # Errors
    ///
    /// [`WalkError`]; the walk cannot continue then.
    pub fn accept(&mut self, answer: Pdu) -> Result<(), WalkError> {
        let width = self.width();
        if width == 0 {
            return Ok(());
        }
        let taken = self.accept_values(answer, width);
        self.open.retain(|branch| !branch.at_end);
        if taken.is_err() && width > 1 {
            self.width_max = 1;
            return Ok(());
        }
        taken
    }

    fn accept_values(&mut self, answer: Pdu, width: usize) -> Result<(), WalkError> {
        let asked = || self.open[0].last.clone();
        match ErrorStatus::from_code(answer.error_status) {
            Some(ErrorStatus::NoError) => {}
            Some(ErrorStatus::NoSuchName) if self.version == Version::V1 => {
                self.open[0].at_end = true;
                return Ok(());
            }
            Some(ErrorStatus::TooBig) if self.values > 1 => {
                self.values /= 2;
                return Ok(());
            }
            _ => return Err(WalkError::Status { status: answer.error_status, oid: asked() }),
        }
        if answer.varbinds.is_empty() {
            return Err(WalkError::Empty { asked: asked() });
        }
        // One repetition of all names after the other (RFC 3416, 4.2.3).
        for (position, (oid, value)) in answer.varbinds.into_iter().enumerate() {
            let branch = &mut self.open[position % width];
            if branch.at_end || value.is_exception() || !oid.starts_with(&branch.subtree) {
                branch.at_end = true;
                continue;
            }
            if oid <= branch.last {
                return Err(WalkError::NotIncreasing { asked: branch.last.clone(), found: oid });
            }
            if self.count >= WALK_VALUES_MAX {
                return Err(WalkError::TooLong { subtree: branch.subtree.clone() });
            }
            self.count += 1;
            branch.last = oid.clone();
            self.found[branch.place].push((oid, value));
        }
        Ok(())
    }

    /// Everything that was found so far, by subtree, each in the agent's order.
    pub fn into_found(mut self) -> Vec<(Oid, Value)> {
        self.take_found()
    }

    /// Everything that was found so far, taken out.
    pub fn take_found(&mut self) -> Vec<(Oid, Value)> {
        self.found.iter_mut().flat_map(std::mem::take).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oid(text: &str) -> Oid {
        text.parse().unwrap()
    }

    /// The answer of an agent that holds these names, with room for so many values: it cuts an answer
    /// short (RFC 3416, 4.2.3), or says that it is too big if not even one repetition fits.
    fn answer(held: &[&str], request: &Pdu, room: usize) -> Pdu {
        let mut pdu = Pdu::request(PduType::Response, request.request_id, &[]);
        if request.varbinds.len() > room {
            pdu.error_status = ErrorStatus::TooBig.code();
            return pdu;
        }
        let next = |asked: &Oid| held.iter().map(|name| oid(name)).find(|name| name > asked);
        let mut asked: Vec<_> = request.varbinds.iter().map(|(name, _)| name.clone()).collect();
        if request.kind == PduType::GetNext {
            match next(&asked[0]) {
                Some(name) => pdu.varbinds.push((name, Value::Integer(1))),
                None => pdu.error_status = ErrorStatus::NoSuchName.code(),
            }
            return pdu;
        }
        for _ in 0..request.max_repetitions() {
            for asked in &mut asked {
                let value = if let Some(name) = next(asked) {
                    *asked = name;
                    Value::Integer(1)
                } else {
                    Value::EndOfMibView
                };
                pdu.varbinds.push((asked.clone(), value));
            }
        }
        pdu.varbinds.truncate(room);
        pdu
    }

    const HELD: [&str; 6] = ["1.3.1.1", "1.3.1.2", "1.3.2.1", "1.3.4.1", "1.3.4.2", "1.3.4.3"];

    /// What a walk over three subtrees finds, and how often it asks.
    fn found(version: Version, agent: impl Fn(&Pdu) -> Pdu) -> (Vec<String>, usize) {
        let mut walk = Walk::new(version, vec![oid("1.3.4"), oid("1.3.1"), oid("1.3.3")]);
        let mut requests = 0;
        while let Some(request) = walk.request(1) {
            requests += 1;
            assert!(requests < 30, "a walk ends");
            walk.accept(agent(&request)).unwrap();
        }
        (walk.into_found().iter().map(|(name, _)| name.to_string()).collect(), requests)
    }

    const BELOW: [&str; 5] = ["1.3.4.1", "1.3.4.2", "1.3.4.3", "1.3.1.1", "1.3.1.2"];

    #[test]
    fn a_walk_finds_its_subtrees_and_nothing_else() {
        for version in [Version::V1, Version::V2c] {
            for room in 1..30 {
                let (names, _) = found(version, |request| answer(&HELD, request, room));
                assert_eq!(names, BELOW, "{version:?}, room for {room}");
            }
        }
        assert_eq!(found(Version::V2c, |request| answer(&HELD, request, 30)).1, 1);
    }

    #[test]
    fn an_agent_that_refuses_several_names_is_asked_for_one_at_a_time() {
        let refusing = |request: &Pdu| {
            let mut answer = answer(&HELD, request, 30);
            if request.varbinds.len() > 1 {
                answer.error_status = ErrorStatus::GenErr.code();
            }
            answer
        };
        assert_eq!(found(Version::V2c, refusing).0, BELOW);
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
