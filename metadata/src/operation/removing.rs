//! `rmdir`.

use std::num::NonZeroU16;

use meikyo_undo::Log;

use crate::cache::Cache;
use crate::inode::{Key, Kind};
use crate::message::{Errno, Reply, Request, Response};
use crate::number::{InodeNumber, ServerId};
use crate::operation::{Operation, State, Step, refusal};
use crate::placement::ServerList;

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct Removing {
    key: Key,
    /// The server that keeps the directory's name.
    name_server: ServerId,
    stage: Stage,
}

/// What an answer is awaited for.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
enum Stage {
    Looking,
    Locating { number: InodeNumber },
    Probing(Part),
    Taking(Part),
    Restoring(Part, Errno),
    Unlinking,
}

/// The part of the directory that is asked about, by its place in the list; part 0 is the home's.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Part {
    number: InodeNumber,
    servers: ServerList,
    at: usize,
}

impl Part {
    fn server(&self) -> Option<ServerId> {
        self.servers.as_slice().get(self.at).copied()
    }

    fn following(self) -> Self {
        Self { at: self.at + 1, ..self }
    }
}

impl Removing {
    pub(super) fn begin(name_server: ServerId, key: Key) -> Step {
        let request = Request::Lookup(key.clone());
        let removing = Self { key, name_server, stage: Stage::Looking };
        Box::new(removing).send(Stage::Looking, name_server, request)
    }

    pub(super) fn next(
        self: Box<Self>,
        response: &Response,
        cache: &mut Cache,
        log: &mut impl Log,
    ) -> Step {
        match (self.stage.clone(), response) {
            (Stage::Looking, Ok(Reply::Found { kind: Kind::File, .. })) => {
                Step::Done(Err(Errno::NotADirectory))
            }
            (Stage::Looking, Ok(Reply::Found { number, .. })) => self.locate(*number, cache),
            (Stage::Looking, other) => Step::Done(Err(refusal(other))),
            (Stage::Locating { number }, Ok(Reply::ServerList(servers))) => {
                cache.insert(number, servers.clone(), log);
                self.probe(Part { number, servers: servers.clone(), at: 0 })
            }
            // The home's part was removed by a client that then did not remove the name.
            (Stage::Locating { number }, Err(Errno::NotFound)) => self.unlink(number),
            (Stage::Locating { .. }, other) => Step::Done(Err(refusal(other))),
            (Stage::Probing(part), Ok(Reply::Page(page))) if page.entries.is_empty() => {
                self.probe(part.following())
            }
            (Stage::Probing(_), Ok(Reply::Page(_))) => Step::Done(Err(Errno::NotEmpty)),
            (Stage::Probing(part), Err(Errno::NotFound)) => self.probe(part.following()),
            (Stage::Probing(_), other) => Step::Done(Err(refusal(other))),
            (Stage::Taking(part), Ok(Reply::Done) | Err(Errno::NotFound)) => {
                self.remove_parts_before(part)
            }
            (Stage::Taking(part), other) => self.restore(part.following(), refusal(other)),
            (Stage::Restoring(part, why), _) => self.restore(part.following(), why),
            (Stage::Unlinking, Ok(Reply::Done)) => Step::Done(Ok(Reply::Done)),
            (Stage::Unlinking, other) => Step::Done(Err(refusal(other))),
        }
    }

    fn locate(self: Box<Self>, number: InodeNumber, cache: &Cache) -> Step {
        match cache.get(number) {
            Some(servers) => self.probe(Part { number, servers: servers.clone(), at: 0 }),
            None => {
                let request = Request::ServerList { directory: number };
                self.send(Stage::Locating { number }, number.home(), request)
            }
        }
    }

    /// Asks `part` and all after it for an entry, then takes all parts.
    fn probe(self: Box<Self>, part: Part) -> Step {
        let Some(server) = part.server() else { return self.remove_parts_before(part) };
        let limit = NonZeroU16::MIN;
        let request = Request::ReadPage { directory: part.number, after: None, limit };
        self.send(Stage::Probing(part), server, request)
    }

    /// Removes all parts before `end`, the home's last, then the name.
    fn remove_parts_before(self: Box<Self>, end: Part) -> Step {
        let Some(at) = end.at.checked_sub(1) else { return self.unlink(end.number) };
        let part = Part { at, ..end };
        let server = part.servers.as_slice()[at];
        let request = Request::RemovePart { directory: part.number };
        self.send(Stage::Taking(part), server, request)
    }

    /// Adds `part` and all after it again.
    fn restore(self: Box<Self>, part: Part, why: Errno) -> Step {
        let Some(server) = part.server() else { return Step::Done(Err(why)) };
        let request = Request::AddPart { directory: part.number, servers: part.servers.clone() };
        self.send(Stage::Restoring(part, why), server, request)
    }

    fn unlink(self: Box<Self>, number: InodeNumber) -> Step {
        let (server, key) = (self.name_server, self.key.clone());
        self.send(Stage::Unlinking, server, Request::UnlinkDirectory { key, number })
    }

    fn send(mut self: Box<Self>, stage: Stage, server: ServerId, request: Request) -> Step {
        self.stage = stage;
        Step::Send { server, request, then: Operation(State::Removing(self)) }
    }
}
