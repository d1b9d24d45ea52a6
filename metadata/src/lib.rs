//! A distributed metadata service as a core without IO: the servers, and the operations of clients
//! over them.
//!
//! It follows PPMDS: an inode is a value in an ordered map, under the number of its directory and its
//! name there, so that a directory is listed by a scan. A directory's entries are spread over a list of
//! servers; a client fetches that list once, and a hash of the name picks the server, so that many
//! servers make files in one directory at once.
//!
//! - [`Server`] is the state of one server: [`Server::handle`] takes a [`Request`] and gives its
//!   [`Response`].
//! - [`Operation`] is a client's side of one [`Command`]: it says what to send to whom, and what comes
//!   out of the answers. [`Cache`] keeps the server lists.
//!
//! Neither sends, waits, or reads a clock. A simulated server is a thin shell around the one, a real
//! one another; under Time Warp a log remembers every change ([`meikyo_undo`]), else
//! [`Forget`](meikyo_undo::Forget) costs nothing. Times are instants of the wall clock, since they are
//! data that users read: a simulation adds its own time to the instant that its run stands for.
//!
//! ```
//! use std::num::NonZeroU16;
//!
//! use meikyo_metadata::{
//!     Cache, Command, InodeNumber, Key, Name, Operation, Reply, Response, Server, ServerId, Step,
//! };
//! use meikyo_undo::Forget;
//! use meikyo_units::WallTime;
//!
//! const SERVERS: NonZeroU16 = NonZeroU16::new(3).unwrap();
//!
//! /// Carries messages between a client and servers in the same memory.
//! fn run(command: Command, cache: &mut Cache, servers: &mut [Server]) -> Response {
//!     let now = WallTime::from_nanos(1_700_000_000_000_000_000);
//!     let mut step = Operation::begin(command, cache);
//!     loop {
//!         match step {
//!             Step::Send { server, request, then } => {
//!                 let response = servers[server.index()].handle(now, &request, &mut Forget);
//!                 step = then.next(&response, cache, &mut Forget);
//!             }
//!             Step::Done(response) => return response,
//!         }
//!     }
//! }
//!
//! let mut servers: Vec<_> = ServerId::all(SERVERS).map(|id| Server::new(id, SERVERS)).collect();
//! let mut cache = Cache::new(NonZeroU16::MAX);
//! let key = Key::new(InodeNumber::ROOT, Name::new("results.csv")?);
//!
//! let made = run(Command::Create(key.clone()), &mut cache, &mut servers)?;
//! let Reply::Number(number) = made else { unreachable!("a create gives a number") };
//! let found = run(Command::Stat(key), &mut cache, &mut servers)?;
//! assert!(matches!(found, Reply::Inode(inode) if inode.number == number));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Cost
//!
//! An entry is a key of 32 bytes (with the name's first 22) and an inode of 24, in the nodes of a
//! B-tree of 6 to 11 entries each: 56 bytes in full nodes, 100 as 64 clients that count up fill them
//! (`cargo run --release -p meikyo-metadata --example entry_memory`), one allocation more for a name
//! beyond 22 bytes. Ten million entries are 1 GB over all servers. A [`Request`] has 48 bytes, a
//! [`Response`] 32, a waiting [`Operation`] 16 and at most one allocation.
//!
//! A create is one search: about log2 of the server's entries in comparisons of keys (20 for a
//! million; the number decides between directories, else the bytes of the names), one hash of the
//! name, and one search for the directory among those that the server has a part of. An unlink is two
//! searches. A page is one search and a scan. An undo log adds one allocation and a copy of key and
//! inode for every change. `mkdir` over `n` servers takes `n` + 2 requests one after the other,
//! `rmdir` 2`n` + 2, one more each where a server list is not known yet.

mod cache;
mod inode;
mod message;
mod name;
mod number;
mod operation;
mod placement;
mod server;

pub use cache::Cache;
pub use inode::{Inode, Key, Kind};
pub use message::{DirectoryEntry, Errno, Page, Reply, Request, Response};
pub use name::{InvalidName, Name};
pub use number::{InodeNumber, ServerId};
pub use operation::{Command, Operation, Step};
pub use placement::{InvalidServerList, ServerList, hash};
pub use server::Server;
