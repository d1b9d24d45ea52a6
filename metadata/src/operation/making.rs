//! `mkdir`.

use meikyo_undo::Log;

use crate::cache::Cache;
use crate::inode::Key;
use crate::message::{Errno, Reply, Request, Response};
use crate::number::{InodeNumber, ServerId};
use crate::operation::{Operation, State, Step, refusal};
use crate::placement::ServerList;

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct Making {
    key: Key,
    /// The server that keeps the new directory's name.
    name_server: ServerId,
    /// The servers of the new directory.
    servers: ServerList,
    stage: Stage,
}

/// What an answer is awaited for. Parts are named by their place in the list; part 0 is the home's.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
enum Stage {
    Looking,
    Beginning,
    Adding { number: InodeNumber, part: usize },
    Linking { number: InodeNumber },
    Undoing { number: InodeNumber, part: usize, why: Errno },
}

impl Making {
    pub(super) fn begin(name_server: ServerId, key: Key, servers: ServerList) -> Step {
        let request = Request::Lookup(key.clone());
        let making = Self { key, name_server, servers, stage: Stage::Looking };
        Box::new(making).send(Stage::Looking, name_server, request)
    }

    pub(super) fn next(
        self: Box<Self>,
        response: &Response,
        cache: &mut Cache,
        log: &mut impl Log,
    ) -> Step {
        match (self.stage, response) {
            (Stage::Looking, Ok(Reply::Found { .. })) => Step::Done(Err(Errno::Exists)),
            (Stage::Looking, Err(Errno::NotFound)) => {
                let (home, servers) = (self.servers.home(), self.servers.clone());
                self.send(Stage::Beginning, home, Request::BeginDirectory { servers })
            }
            (Stage::Beginning, Ok(Reply::Number(number))) => self.add(*number, 1),
            (Stage::Looking | Stage::Beginning, other) => Step::Done(Err(refusal(other))),
            (Stage::Adding { number, part }, Ok(Reply::Done)) => self.add(number, part + 1),
            (Stage::Adding { number, part }, other) => self.undo(number, part, refusal(other)),
            (Stage::Linking { number }, Ok(Reply::Done)) => {
                cache.insert(number, self.servers, log);
                Step::Done(Ok(Reply::Number(number)))
            }
            (Stage::Linking { number }, other) => {
                let parts = self.servers.as_slice().len();
                self.undo(number, parts, refusal(other))
            }
            (Stage::Undoing { number, part, why }, _) => self.undo(number, part, why),
        }
    }

    /// Adds `part` and all after it, then the name.
    fn add(self: Box<Self>, number: InodeNumber, part: usize) -> Step {
        let Some(server) = self.servers.as_slice().get(part).copied() else {
            let (server, key) = (self.name_server, self.key.clone());
            let request = Request::LinkDirectory { key, number };
            return self.send(Stage::Linking { number }, server, request);
        };
        let request = Request::AddPart { directory: number, servers: self.servers.clone() };
        self.send(Stage::Adding { number, part }, server, request)
    }

    /// Removes all parts before `end`, the home's last.
    fn undo(self: Box<Self>, number: InodeNumber, end: usize, why: Errno) -> Step {
        let Some(part) = end.checked_sub(1) else { return Step::Done(Err(why)) };
        let server = self.servers.as_slice()[part];
        let request = Request::RemovePart { directory: number };
        self.send(Stage::Undoing { number, part, why }, server, request)
    }

    fn send(mut self: Box<Self>, stage: Stage, server: ServerId, request: Request) -> Step {
        self.stage = stage;
        Step::Send { server, request, then: Operation(State::Making(self)) }
    }
}
