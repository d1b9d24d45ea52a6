//! Whom a lab runs as on the host, and by which owner it writes files.
//!
//! Whoever is root inside is nobody special outside: the user who started the lab, or, where that is
//! root, the owner of the writable directory, or, where that is root as well, an id that nobody has.
//! Then the directory is mounted so that the id stands for root (an id-mapped mount, Linux 5.12): what
//! is written inside belongs to root outside.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::CWD;
use rustix::mount::{OpenTreeFlags, open_tree};

use crate::directory::{Directory, Record};
use crate::keep_error::{KeepError, failed};
use crate::system;

/// The first of the ids that nobody has; a process id is added.
const NOBODY: u32 = 0x6000_0000;

/// Whom a lab runs as.
#[derive(Debug)]
pub(super) enum Owner {
    /// Whoever starts it, in a user namespace of his own.
    Starter {
        /// Who is root inside, by number.
        user: u32,
        /// The group that is root's inside, by number.
        group: u32,
    },
    /// Somebody without privileges, for root.
    Other {
        /// The user namespace in which that one is root.
        namespace: OwnedFd,
        /// The writable directory as a mount, if it is mounted with other owners.
        files: Option<OwnedFd>,
    },
}

impl Owner {
    /// Chooses, and prepares the writable directory.
    pub(super) fn choose(directory: &Directory, record: &Record) -> Result<Self, KeepError> {
        let (user, group) = system::user();
        let maps = ["uid_map", "gid_map"].map(|map| {
            std::fs::read_to_string(Path::new("/proc/self").join(map)).unwrap_or_default()
        });
        let nobody = maps.each_ref().map(|map| free_id(map, NOBODY + std::process::id()));
        let (0, [Some(nobody), Some(no_group)]) = (user, nobody) else {
            return Ok(Self::Starter { user, group });
        };
        let owner = record.files.metadata().map_err(failed("look at the writable directory"))?;
        if owner.uid() != 0 {
            let group = if owner.gid() == 0 { no_group } else { owner.gid() };
            let namespace = system::user_namespace(owner.uid(), group)
                .map_err(failed("make a user namespace"))?;
            return Ok(Self::Other { namespace, files: None });
        }
        let namespace =
            system::user_namespace(nobody, no_group).map_err(failed("make a user namespace"))?;
        match mapped(&record.files, &namespace) {
            Ok(files) => Ok(Self::Other { namespace, files: Some(files) }),
            // It goes with the lab, so that it may have any owner.
            Err(_) if record.files == directory.own_files() => {
                give_to(&record.files, nobody, no_group)
                    .map_err(failed("give the writable directory to the lab"))?;
                Ok(Self::Other { namespace, files: None })
            }
            Err(source) => Err(KeepError::Owners { files: record.files.clone(), source }),
        }
    }
}

/// The wanted id if this map has it (`user_namespaces(7)`), else the last that it has; `None` if that is
/// root only.
fn free_id(map: &str, wanted: u32) -> Option<u32> {
    let extent = |line: &str| {
        let mut columns = line.split_whitespace().map(str::parse::<u32>);
        let (first, count) = (columns.next()?.ok()?, columns.nth(1)?.ok()?);
        Some((first, first.checked_add(count.checked_sub(1)?)?))
    };
    let extents: Vec<(u32, u32)> = map.lines().filter_map(extent).collect();
    let has = |&(first, last): &(u32, u32)| (first..=last).contains(&wanted);
    if extents.iter().any(has) {
        return Some(wanted);
    }
    extents.iter().map(|&(_, last)| last).max().filter(|&last| last != 0)
}

/// A directory as a mount in which the files of root belong to who is root in a user namespace.
fn mapped(files: &Path, namespace: &OwnedFd) -> io::Result<OwnedFd> {
    let tree =
        open_tree(CWD, files, OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC)?;
    system::map_owners(&tree, namespace)?;
    Ok(tree)
}

/// Gives a directory and the files in it to somebody.
fn give_to(files: &Path, user: u32, group: u32) -> io::Result<()> {
    for entry in std::fs::read_dir(files)? {
        std::os::unix::fs::lchown(entry?.path(), Some(user), Some(group))?;
    }
    std::os::unix::fs::fchown(File::open(files)?.as_fd(), Some(user), Some(group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_nobody_has_is_one_that_the_kernel_knows_here() {
        assert_eq!(free_id("0 0 4294967295\n", NOBODY + 7), Some(NOBODY + 7));
        assert_eq!(free_id("0 1000 1\n1 100000 65536\n", NOBODY), Some(65_536));
        assert_eq!(free_id("0 1000 1\n", NOBODY), None);
        assert_eq!(free_id("", NOBODY), None);
    }
}
