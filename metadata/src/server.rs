//! One metadata server.

use std::num::NonZeroU16;
use std::ops::Bound;

use meikyo_undo::{Cell, Log, Map, fields};
use meikyo_units::WallTime;

use crate::inode::{Inode, Key, Kind};
use crate::message::{DirectoryEntry, Errno, Page, Reply, Request, Response};
use crate::name::Name;
use crate::number::{InodeNumber, ServerId};
use crate::placement::ServerList;

/// The state of one metadata server: a request in, its answer out, one after another.
///
/// It keeps the inodes of the entries that their names' hash brings here, and the server list of
/// every directory that it has a part of. It refuses entries of other directories, so that nothing
/// comes to stand in a directory that was removed, and entries that another server keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    id: ServerId,
    entries: Map<Key, Inode>,
    parts: Map<InodeNumber, ServerList>,
    numbers_given: Cell<u64>,
}

fields!(Server { entries, parts, numbers_given });

impl Server {
    /// The server `id` of `servers`, with an empty root directory that is spread over all of them.
    pub fn new(id: ServerId, servers: NonZeroU16) -> Self {
        let mut parts = Map::default();
        parts.insert(&mut meikyo_undo::Forget, InodeNumber::ROOT, ServerList::all(servers));
        let numbers_given = if id == InodeNumber::ROOT.home() { 1 } else { 0 };
        Self { id, entries: Map::default(), parts, numbers_given: Cell::new(numbers_given) }
    }

    /// The number by which others know it.
    pub fn id(&self) -> ServerId {
        self.id
    }

    /// How many entries it keeps.
    pub fn entry_count(&self) -> usize {
        self.entries.len()
    }

    /// The entries it keeps, in the order of their keys.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = (&Key, &Inode)> {
        self.entries.iter()
    }

    /// The directories it has a part of, in the order of their numbers.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = (InodeNumber, &ServerList)> {
        self.parts.iter().map(|(directory, servers)| (*directory, servers))
    }

    /// Does what `request` asks, at the instant `now` of the server's clock. A request that is
    /// refused changes nothing.
    ///
    /// # Errors
    /// What POSIX has for it; [`Errno::Stale`] if another server keeps the entry.
    pub fn handle(&mut self, now: WallTime, request: &Request, log: &mut impl Log) -> Response {
        match request {
            Request::ServerList { directory } => {
                Ok(Reply::ServerList(self.part(*directory)?.clone()))
            }
            Request::Create(key) => self.create(now, key, log),
            Request::Lookup(key) => {
                let Inode { number, kind, .. } = *self.entry(key)?;
                Ok(Reply::Found { number, kind })
            }
            Request::Stat(key) => Ok(Reply::Inode(*self.entry(key)?)),
            Request::Unlink(key) => self.unlink(key, log),
            Request::ReadPage { directory, after, limit } => {
                self.read_page(*directory, after.as_ref(), *limit)
            }
            Request::BeginDirectory { servers } => {
                let number = self.next_number()?;
                self.numbers_given.add(log, 1);
                self.parts.insert(log, number, servers.clone());
                Ok(Reply::Number(number))
            }
            Request::AddPart { directory, servers } => {
                self.parts.insert_new(log, *directory, servers.clone());
                Ok(Reply::Done)
            }
            Request::RemovePart { directory } => self.remove_part(*directory, log),
            Request::LinkDirectory { key, number } => {
                let inode = Inode { number: *number, kind: Kind::Directory, changed: now };
                self.enter(key, inode, log)?;
                Ok(Reply::Done)
            }
            Request::UnlinkDirectory { key, number } => self.unlink_directory(key, *number, log),
        }
    }

    fn create(&mut self, now: WallTime, key: &Key, log: &mut impl Log) -> Response {
        let number = self.next_number()?;
        self.enter(key, Inode { number, kind: Kind::File, changed: now }, log)?;
        self.numbers_given.add(log, 1);
        Ok(Reply::Number(number))
    }

    fn unlink(&mut self, key: &Key, log: &mut impl Log) -> Response {
        if self.entry(key)?.kind == Kind::Directory {
            return Err(Errno::IsADirectory);
        }
        self.entries.remove(log, key);
        Ok(Reply::Done)
    }

    fn unlink_directory(&mut self, key: &Key, number: InodeNumber, log: &mut impl Log) -> Response {
        if self.entry(key)?.number != number {
            return Err(Errno::NotFound);
        }
        self.entries.remove(log, key);
        Ok(Reply::Done)
    }

    fn read_page(
        &self,
        directory: InodeNumber,
        after: Option<&Name>,
        limit: NonZeroU16,
    ) -> Response {
        self.part(directory)?;
        let mut following = self.following(directory, after);
        let entries = following
            .by_ref()
            .take(usize::from(limit.get()))
            .map(|(key, inode)| {
                let Inode { number, kind, .. } = *inode;
                DirectoryEntry { name: key.name.clone(), number, kind }
            })
            .collect();
        Ok(Reply::Page(Page { entries, more: following.next().is_some() }))
    }

    fn remove_part(&mut self, directory: InodeNumber, log: &mut impl Log) -> Response {
        self.part(directory)?;
        if self.following(directory, None).next().is_some() {
            return Err(Errno::NotEmpty);
        }
        self.parts.remove(log, &directory);
        Ok(Reply::Done)
    }

    /// The entries of `directory` whose names come after `after`.
    fn following(
        &self,
        directory: InodeNumber,
        after: Option<&Name>,
    ) -> impl Iterator<Item = (&Key, &Inode)> {
        let start = Key::new(directory, after.unwrap_or(&Name::LOWEST).clone());
        self.entries
            .range((Bound::Excluded(start), Bound::Unbounded))
            .take_while(move |(key, _)| key.directory == directory)
    }

    fn part(&self, directory: InodeNumber) -> Result<&ServerList, Errno> {
        self.parts.get(&directory).ok_or(Errno::NotFound)
    }

    /// Whether `key` belongs here.
    fn check_place(&self, key: &Key) -> Result<(), Errno> {
        let here = self.part(key.directory)?.server_of(&key.name) == self.id;
        if here { Ok(()) } else { Err(Errno::Stale) }
    }

    fn entry(&self, key: &Key) -> Result<&Inode, Errno> {
        self.check_place(key)?;
        self.entries.get(key).ok_or(Errno::NotFound)
    }

    fn enter(&mut self, key: &Key, inode: Inode, log: &mut impl Log) -> Result<(), Errno> {
        self.check_place(key)?;
        let is_new = self.entries.insert_new(log, key.clone(), inode);
        if is_new { Ok(()) } else { Err(Errno::Exists) }
    }

    fn next_number(&self) -> Result<InodeNumber, Errno> {
        InodeNumber::new(self.id, self.numbers_given.get() + 1).ok_or(Errno::NoSpace)
    }
}

#[cfg(test)]
mod tests {
    use meikyo_undo::{Forget, Mark, UndoLog};

    use super::*;

    const NOW: WallTime = WallTime::from_nanos(5);

    /// A key in the root directory of five servers, and its server.
    fn entry(name: &str) -> (Key, ServerId) {
        let servers = NonZeroU16::new(5).unwrap();
        let key = Key::new(InodeNumber::ROOT, Name::new(name).unwrap());
        let server = ServerList::all(servers).server_of(&key.name);
        (key, server)
    }

    fn server(id: u16) -> Server {
        Server::new(ServerId::new(id), NonZeroU16::new(5).unwrap())
    }

    #[test]
    fn an_entry_of_another_server_and_of_an_unknown_directory_is_refused() {
        let (key, place) = entry("file.0");
        assert_eq!(place.get(), 4);
        let (mut right, mut wrong) = (server(4), server(3));
        let before = wrong.clone();
        let create = Request::Create(key.clone());
        assert_eq!(wrong.handle(NOW, &create, &mut Forget), Err(Errno::Stale));
        assert_eq!(wrong.handle(NOW, &Request::Stat(key.clone()), &mut Forget), Err(Errno::Stale));
        assert_eq!(wrong, before);
        assert!(right.handle(NOW, &create, &mut Forget).is_ok());
        let lost = Key::new(InodeNumber::from_u64(99), key.name);
        assert_eq!(right.handle(NOW, &Request::Create(lost), &mut Forget), Err(Errno::NotFound));
    }

    #[test]
    fn an_inode_tells_its_number_kind_and_time() {
        let (key, _) = entry("file.0");
        let mut server = server(4);
        let made = server.handle(NOW, &Request::Create(key.clone()), &mut Forget);
        let number = InodeNumber::new(server.id(), 1).unwrap();
        assert_eq!(made, Ok(Reply::Number(number)));
        let inode = Inode { number, kind: Kind::File, changed: NOW };
        let stat = server.handle(NOW, &Request::Stat(key), &mut Forget);
        assert_eq!(stat, Ok(Reply::Inode(inode)));
        assert_eq!(server.entry_count(), 1);
    }

    #[test]
    fn a_server_that_gave_its_last_number_makes_nothing_more() {
        let (key, _) = entry("file.0");
        let mut server = server(4);
        server.numbers_given.set(&mut Forget, (1 << 48) - 1);
        let begin = Request::BeginDirectory { servers: ServerList::all(NonZeroU16::MIN) };
        for request in [Request::Create(key), begin] {
            assert_eq!(server.handle(NOW, &request, &mut Forget), Err(Errno::NoSpace));
        }
        assert_eq!(server.entry_count(), 0);
    }

    #[test]
    fn a_refused_request_changes_nothing_and_logs_nothing() {
        let (key, _) = entry("file.0");
        let mut server = server(4);
        let directory = InodeNumber::from_u64(77);
        let link = Request::LinkDirectory { key: key.clone(), number: directory };
        assert_eq!(server.handle(NOW, &link, &mut Forget), Ok(Reply::Done));
        let before = server.clone();
        let other = InodeNumber::from_u64(78);
        for (request, why) in [
            (Request::Create(key.clone()), Errno::Exists),
            (link, Errno::Exists),
            (Request::Unlink(key.clone()), Errno::IsADirectory),
            (Request::UnlinkDirectory { key, number: other }, Errno::NotFound),
            (Request::RemovePart { directory: InodeNumber::ROOT }, Errno::NotEmpty),
            (Request::RemovePart { directory }, Errno::NotFound),
            (Request::ServerList { directory }, Errno::NotFound),
        ] {
            let mut log = UndoLog::new();
            assert_eq!(server.handle(NOW, &request, &mut log), Err(why), "{request:?}");
            assert_eq!((&server, log.mark()), (&before, Mark::default()), "{request:?}");
        }
    }
}
