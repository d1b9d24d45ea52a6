//! What a client remembers.

use std::num::NonZeroU16;

use meikyo_undo::{Deque, Log, fields};

use crate::number::InodeNumber;
use crate::placement::ServerList;

/// The server lists that a client has seen; the one fetched first goes when there is no room.
///
/// A list never changes and its directory's number is never given again, so none gets stale: an
/// operation on a directory that was removed is refused by the server it is sent to.
///
/// Clients keep a few lists, and there may be a million clients: a search through these few costs less
/// than the nodes of a map would take of memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Cache {
    /// In the order in which they were fetched.
    lists: Deque<(InodeNumber, ServerList)>,
    limit: NonZeroU16,
}

fields!(Cache { lists });

impl Cache {
    /// An empty cache of at most `limit` lists.
    pub fn new(limit: NonZeroU16) -> Self {
        Self { lists: Deque::default(), limit }
    }

    /// The server list of `directory`, if it is known.
    pub fn get(&self, directory: InodeNumber) -> Option<&ServerList> {
        self.lists.iter().find(|(of, _)| *of == directory).map(|(_, servers)| servers)
    }

    /// Remembers the server list of `directory`; the one that it has already, if it has one.
    pub fn insert(&mut self, directory: InodeNumber, servers: ServerList, log: &mut impl Log) {
        if self.get(directory).is_some() {
            return;
        }
        if self.lists.len() == usize::from(self.limit.get()) {
            self.lists.pop_front(log);
        }
        self.lists.push_back(log, (directory, servers));
    }
}

#[cfg(test)]
mod tests {
    use meikyo_undo::{Mark, UndoLog};

    use super::*;

    #[test]
    fn the_list_fetched_first_makes_room() {
        let mut cache = Cache::new(NonZeroU16::new(2).unwrap());
        let empty = cache.clone();
        let mut log = UndoLog::new();
        let number = InodeNumber::from_u64;
        let list = ServerList::all(NonZeroU16::MIN);
        for directory in [7, 3, 7, 5] {
            cache.insert(number(directory), list.clone(), &mut log);
        }
        let known = [7, 3, 5].map(|directory| cache.get(number(directory)).is_some());
        assert_eq!(known, [false, true, true]);
        log.revert(Mark::default(), log.mark(), &mut cache).unwrap();
        assert_eq!(cache, empty);
    }
}
