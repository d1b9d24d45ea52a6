//! What a client does: one operation, step by step over the servers.
//!
//! An operation on a file's entry is decided by one server at one instant. Those on directories are
//! several such decisions. Their order is right for a client that is alone; others may see of it:
//!
//! - `mkdir` asks whether the name is free, begins the directory at its home, adds the other parts,
//!   and gives the name last. Until then nobody can find the directory; if the name was taken in the
//!   meantime, the parts are removed again. Two clients that make the same name: one gets it, the
//!   other [`Errno::Exists`]. A client that dies on the way leaves parts without a name, which cost
//!   their memory and change no answer.
//! - `rmdir` first asks every server for an entry, and a directory that has one stays untouched. Then
//!   it removes the parts, the home's last, and the name at the end. If an entry came in between, the
//!   parts are added again; while that lasts, other clients may be able to make a file under one name
//!   and not under another ([`Errno::NotFound`]). No file is made in a directory that then goes, and
//!   of two clients that remove the same directory, one does. Only three together can do harm: two
//!   clients remove a directory while others make and remove files in it, the first finds a file and
//!   adds the parts again, the second has passed them before and finds none; a file made in a part
//!   that was added again then goes with the directory. A client that dies on the way leaves a
//!   directory that refuses some or all names; the next `rmdir` finishes it.
//! - a page of `readdir` asks one server after the other, so it may show a file that was made later
//!   than another one that it misses; an entry that is there all the time is shown exactly once.
//!
//! Transactions over several servers would make these three atomic. They would begin and end around
//! the same requests, here and in [`Server::handle`](crate::Server::handle), and spare `rmdir` its
//! first round; what calls this machine would not change.

mod making;
mod reading;
mod removing;

use std::num::NonZeroU16;

use meikyo_undo::Log;

use crate::cache::Cache;
use crate::inode::Key;
use crate::message::{Errno, Reply, Request, Response};
use crate::name::Name;
use crate::number::{InodeNumber, ServerId};
use crate::operation::making::Making;
use crate::operation::reading::Reading;
use crate::operation::removing::Removing;
use crate::placement::ServerList;

/// What a client wants.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Command {
    /// Make a file. Ends with [`Reply::Number`].
    Create(Key),
    /// Find which inode has a name. Ends with [`Reply::Found`].
    Lookup(Key),
    /// Read the metadata of an entry. Ends with [`Reply::Inode`].
    Stat(Key),
    /// Remove a file. Ends with [`Reply::Done`].
    Unlink(Key),
    /// List a directory in the order of the names, a page at a time. Ends with [`Reply::Page`], which
    /// has at least one entry if there is any; it has fewer than `limit` also where there are more.
    ReadDirectory {
        /// The directory whose entries are listed.
        directory: InodeNumber,
        /// Only names after this one.
        after: Option<Name>,
        /// At most so many entries.
        limit: NonZeroU16,
    },
    /// Make a directory that is spread over `servers`. Ends with [`Reply::Number`].
    MakeDirectory {
        /// Its name, and where.
        key: Key,
        /// Which servers shall keep its entries; see [`ServerList::spread`].
        servers: ServerList,
    },
    /// Remove an empty directory. Ends with [`Reply::Done`].
    RemoveDirectory(Key),
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Send `request` to `server`, and hand its answer to `then`.
    Send {
        /// To whom.
        server: ServerId,
        /// The request that it is sent.
        request: Request,
        /// Who takes the answer.
        then: Operation,
    },
    /// The operation has ended as it would have on a single server that keeps everything.
    Done(Response),
}

/// An operation that waits for an answer.
///
/// It neither sends nor waits: whoever holds it does, in a simulation or on a network. A request that
/// got lost may not simply be sent again, since the server may have done it.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Operation(State);

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
enum State {
    /// For the server list of the directory that the command is about.
    Locating(Box<Command>),
    /// For the answer of the one server that decides, and of which kind it will be.
    Asking(Expected),
    Reading(Box<Reading>),
    Making(Box<Making>),
    Removing(Box<Removing>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Expected {
    Number,
    Found,
    Inode,
    Done,
}

impl Operation {
    /// The first step of `command`: to the entry's server if `cache` knows the directory's server
    /// list, else to the directory's home.
    pub fn begin(command: Command, cache: &Cache) -> Step {
        let directory = command.directory();
        match cache.get(directory) {
            Some(servers) => located(command, servers),
            None => Step::Send {
                server: directory.home(),
                request: Request::ServerList { directory },
                then: Self(State::Locating(Box::new(command))),
            },
        }
    }

    /// The step after the answer to the last one. `log` remembers what changes in `cache`.
    pub fn next(self, response: &Response, cache: &mut Cache, log: &mut impl Log) -> Step {
        match self.0 {
            State::Locating(command) => match response {
                Ok(Reply::ServerList(servers)) => {
                    cache.insert(command.directory(), servers.clone(), log);
                    located(*command, servers)
                }
                other => Step::Done(Err(refusal(other))),
            },
            State::Asking(expected) => Step::Done(match response {
                Ok(reply) if !expected.fits(reply) => Err(Errno::Protocol),
                answer => answer.clone(),
            }),
            State::Reading(reading) => reading.next(response),
            State::Making(making) => making.next(response, cache, log),
            State::Removing(removing) => removing.next(response, cache, log),
        }
    }
}

impl Command {
    /// The directory that it is about.
    pub fn directory(&self) -> InodeNumber {
        match self {
            Self::Create(key)
            | Self::Lookup(key)
            | Self::Stat(key)
            | Self::Unlink(key)
            | Self::MakeDirectory { key, .. }
            | Self::RemoveDirectory(key) => key.directory,
            Self::ReadDirectory { directory, .. } => *directory,
        }
    }
}

impl Expected {
    fn fits(self, reply: &Reply) -> bool {
        matches!(
            (self, reply),
            (Self::Number, Reply::Number(_))
                | (Self::Found, Reply::Found { .. })
                | (Self::Inode, Reply::Inode(_))
                | (Self::Done, Reply::Done)
        )
    }
}

/// The step of `command` when the server list of its directory is known.
fn located(command: Command, servers: &ServerList) -> Step {
    let ask = |server, request, expected| {
        let then = Operation(State::Asking(expected));
        Step::Send { server, request, then }
    };
    match command {
        Command::Create(key) => {
            ask(servers.server_of(&key.name), Request::Create(key), Expected::Number)
        }
        Command::Lookup(key) => {
            ask(servers.server_of(&key.name), Request::Lookup(key), Expected::Found)
        }
        Command::Stat(key) => {
            ask(servers.server_of(&key.name), Request::Stat(key), Expected::Inode)
        }
        Command::Unlink(key) => {
            ask(servers.server_of(&key.name), Request::Unlink(key), Expected::Done)
        }
        Command::ReadDirectory { directory, after, limit } => {
            Reading::begin(directory, after, limit, servers)
        }
        Command::MakeDirectory { key, servers: own } => {
            Making::begin(servers.server_of(&key.name), key, own)
        }
        Command::RemoveDirectory(key) => Removing::begin(servers.server_of(&key.name), key),
    }
}

/// Why `response` is not what was hoped for.
fn refusal(response: &Response) -> Errno {
    response.as_ref().err().copied().unwrap_or(Errno::Protocol)
}

#[cfg(test)]
mod tests {
    use meikyo_undo::Forget;

    use super::*;

    fn key(name: &str) -> Key {
        Key::new(InodeNumber::ROOT, Name::new(name).unwrap())
    }

    fn sent(step: Step) -> (ServerId, Request, Operation) {
        match step {
            Step::Send { server, request, then } => (server, request, then),
            Step::Done(response) => panic!("ended with {response:?}"),
        }
    }

    #[test]
    fn the_server_list_is_fetched_once_and_picks_the_server() {
        let servers = ServerList::all(NonZeroU16::new(5).unwrap());
        let mut cache = Cache::new(NonZeroU16::MIN);
        let (server, request, waits) =
            sent(Operation::begin(Command::Create(key("file.0")), &cache));
        assert_eq!(server, InodeNumber::ROOT.home());
        assert_eq!(request, Request::ServerList { directory: InodeNumber::ROOT });
        let list = Ok(Reply::ServerList(servers));
        let (server, request, _) = sent(waits.next(&list, &mut cache, &mut Forget));
        assert_eq!((server.get(), request), (4, Request::Create(key("file.0"))));

        let (server, request, waits) = sent(Operation::begin(Command::Stat(key("file.1")), &cache));
        assert_eq!((server.get(), request), (3, Request::Stat(key("file.1"))));
        let done = waits.clone().next(&Err(Errno::NotFound), &mut cache, &mut Forget);
        assert_eq!(done, Step::Done(Err(Errno::NotFound)));
        let confused = waits.next(&Ok(Reply::Done), &mut cache, &mut Forget);
        assert_eq!(confused, Step::Done(Err(Errno::Protocol)));
    }

    #[test]
    fn a_waiting_operation_is_small() {
        assert_eq!((size_of::<Operation>(), size_of::<Step>()), (16, 72));
    }
}
