//! All servers in one memory, and a client that talks to them.

use std::num::NonZeroU16;

use meikyo_metadata::{
    Cache, Command, InodeNumber, Key, Name, Operation, Response, Server, ServerId, ServerList, Step,
};
use meikyo_undo::{Log, fields};
use meikyo_units::WallTime;

pub(crate) fn key(directory: InodeNumber, name: &str) -> Key {
    Key::new(directory, Name::new(name).expect("the tests' names are names"))
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct World {
    pub(crate) count: NonZeroU16,
    pub(crate) servers: Vec<Server>,
    pub(crate) cache: Cache,
}

fields!(World { servers, cache });

impl World {
    pub(crate) fn new(count: NonZeroU16, cached: NonZeroU16) -> Self {
        let servers = ServerId::all(count).map(|id| Server::new(id, count)).collect();
        Self { count, servers, cache: Cache::new(cached) }
    }

    pub(crate) fn run(&mut self, now: WallTime, command: Command, log: &mut impl Log) -> Response {
        let mut step = Operation::begin(command, &self.cache);
        loop {
            match step {
                Step::Send { server, request, then } => {
                    let response = self.servers[server.index()].handle(now, &request, log);
                    step = then.next(&response, &mut self.cache, log);
                }
                Step::Done(response) => return response,
            }
        }
    }

    /// Every entry with its server.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (ServerId, &Key)> {
        self.servers.iter().flat_map(|server| server.entries().map(|(key, _)| (server.id(), key)))
    }

    /// Every part of a directory with its server.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (ServerId, InodeNumber, &ServerList)> {
        self.servers.iter().flat_map(|server| {
            server.parts().map(|(directory, list)| (server.id(), directory, list))
        })
    }

    /// Each entry is on the server that its directory's list and its name's hash say; a directory's
    /// list is the same wherever it is kept, and is kept by all servers in it and by no other.
    pub(crate) fn check(&self) {
        for (server, directory, list) in self.parts() {
            assert!(list.as_slice().contains(&server), "{server} keeps a part of {directory}");
            for other in list.as_slice() {
                let kept = self.servers[other.index()].parts().find(|part| part.0 == directory);
                assert_eq!(kept, Some((directory, list)), "{other} about {directory}");
            }
        }
        for (server, key) in self.entries() {
            let mut parts = self.servers[server.index()].parts();
            let (_, list) =
                parts.find(|part| part.0 == key.directory).expect("an entry is in a part");
            assert_eq!(list.server_of(&key.name), server, "{key:?}");
        }
    }
}
