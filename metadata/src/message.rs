//! What clients and servers say to each other.

use std::num::NonZeroU16;

use crate::inode::{Inode, Key, Kind};
use crate::name::Name;
use crate::number::InodeNumber;
use crate::placement::ServerList;

/// What one server is asked, and does or refuses as a whole.
///
/// The last five are the parts of an operation on directories; what several of them make together is
/// decided by the [`Operation`](crate::Operation) that sends them.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Request {
    /// The server list of a directory, asked of its home. Answered by [`Reply::ServerList`].
    ServerList {
        /// The directory whose servers are asked for.
        directory: InodeNumber,
    },
    /// Makes a file. Answered by [`Reply::Number`].
    Create(Key),
    /// Which inode has a name. Answered by [`Reply::Found`].
    Lookup(Key),
    /// The metadata of an entry. Answered by [`Reply::Inode`].
    Stat(Key),
    /// Removes a file. Answered by [`Reply::Done`].
    Unlink(Key),
    /// The entries of a directory that this server keeps, in the order of their names. Answered by
    /// [`Reply::Page`].
    ReadPage {
        /// The directory whose entries are listed.
        directory: InodeNumber,
        /// Only names after this one.
        after: Option<Name>,
        /// At most so many entries.
        limit: NonZeroU16,
    },
    /// Begins a directory that has no name yet, with this server as its home. Answered by
    /// [`Reply::Number`].
    BeginDirectory {
        /// Its servers, of which this is the home.
        servers: ServerList,
    },
    /// Lets this server accept entries of a directory; nothing changes if it does already. Answered
    /// by [`Reply::Done`].
    AddPart {
        /// The directory of which the server is to keep entries.
        directory: InodeNumber,
        /// Its servers, of which this is one.
        servers: ServerList,
    },
    /// Lets this server accept no entries of a directory any more, if it keeps none. Answered by
    /// [`Reply::Done`].
    RemovePart {
        /// The directory of which the server kept entries.
        directory: InodeNumber,
    },
    /// Gives a directory its name. Answered by [`Reply::Done`].
    LinkDirectory {
        /// The name, and where.
        key: Key,
        /// Inode of the directory that gets the name.
        number: InodeNumber,
    },
    /// Takes a directory's name away, if it still is the name of that directory. Answered by
    /// [`Reply::Done`].
    UnlinkDirectory {
        /// The name, and where.
        key: Key,
        /// Inode of the directory.
        number: InodeNumber,
    },
}

/// What a server answers when it does what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Reply {
    /// The request was carried out; there is nothing to tell.
    Done,
    /// The number of what was made.
    Number(InodeNumber),
    /// What has the name.
    Found {
        /// The inode that the name leads to.
        number: InodeNumber,
        /// Whether it is a file or a directory.
        kind: Kind,
    },
    /// The metadata.
    Inode(Inode),
    /// The server list of the directory.
    ServerList(ServerList),
    /// Entries of a directory.
    Page(Page),
}

/// Entries of a directory in the order of their names.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Page {
    /// Entries in the order of their names.
    pub entries: Box<[DirectoryEntry]>,
    /// Whether there are more after the last one, whose name then asks for the next page.
    pub more: bool,
}

/// An entry of a directory, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DirectoryEntry {
    /// The name under which its directory has it.
    pub name: Name,
    /// The number of its inode.
    pub number: InodeNumber,
    /// Whether it is a file or a directory.
    pub kind: Kind,
}

/// What a server answers.
pub type Response = Result<Reply, Errno>;

/// Why something was refused: POSIX's error numbers by name.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize,
)]
pub enum Errno {
    /// `ENOENT`: there is no such entry, or the directory itself is gone.
    #[error("no such file or directory (`ENOENT`)")]
    NotFound,
    /// `EEXIST`: the name is taken.
    #[error("the file exists (`EEXIST`)")]
    Exists,
    /// `ENOTDIR`: a file where a directory is needed.
    #[error("not a directory (`ENOTDIR`)")]
    NotADirectory,
    /// `EISDIR`: a directory where a file is needed.
    #[error("is a directory (`EISDIR`)")]
    IsADirectory,
    /// `ENOTEMPTY`: a directory with entries cannot be removed.
    #[error("the directory is not empty (`ENOTEMPTY`)")]
    NotEmpty,
    /// `ENOSPC`: the server's 2^48 inode numbers are used up.
    #[error("no inode number is left (`ENOSPC`)")]
    NoSpace,
    /// `ESTALE`: the server is not the one that the directory's server list names for the entry.
    #[error("another server keeps the entry (`ESTALE`)")]
    Stale,
    /// `EPROTO`: a server answered something else than it was asked.
    #[error("the answer does not fit the question (`EPROTO`)")]
    Protocol,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_fit_into_an_event_of_a_simulation() {
        assert_eq!((size_of::<Request>(), size_of::<Response>()), (48, 32));
        assert_eq!(size_of::<DirectoryEntry>(), 40);
    }
}
