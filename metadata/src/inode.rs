//! What is stored: inodes under their keys.

use meikyo_units::WallTime;

use crate::name::Name;
use crate::number::InodeNumber;

/// Where an inode is stored: its directory's number and its name there. Keys of one directory stand
/// together, in the order of the names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Key {
    /// The directory that holds the entry.
    pub directory: InodeNumber,
    /// The name of the entry.
    pub name: Name,
}

impl Key {
    /// The key of `name` in `directory`.
    pub const fn new(directory: InodeNumber, name: Name) -> Self {
        Self { directory, name }
    }
}

/// What an inode is of.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub enum Kind {
    /// Data, which storage servers keep.
    File,
    /// Names that lead to inodes.
    Directory,
}

/// The metadata of a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Inode {
    /// The number by which all servers know it.
    pub number: InodeNumber,
    /// Whether it is a file or a directory.
    pub kind: Kind,
    /// When its server entered it, by that server's clock; it never changes afterwards, as nothing of
    /// an inode does.
    pub changed: WallTime,
}
