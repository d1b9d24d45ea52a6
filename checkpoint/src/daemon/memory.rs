//! Generations in memory: a directory of this daemon's own on a file system that lies in memory.
//!
//! It outlives the daemon, so that one that is killed loses nothing, and goes with the host. So a generation in it is
//! what one on the disk is, file by file, and everything that reads or rebuilds one does the other as well.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use meikyo_units::Bytes;
use ring::digest::{SHA256, digest};
use rustix::fs::statfs;
use rustix::process::geteuid;

use super::DaemonError;
use super::room::{room, used_in};

/// As the kernel numbers `tmpfs` (`linux/magic.h`).
const TMPFS: i128 = 0x0102_1994;

/// Before the number of the daemon's directory, in the name of this one.
const NAME: &str = "meikyo-checkpoint";

/// Octets of that number.
const NUMBER_BYTES: usize = 8;

/// Where memory is, and how much of it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryOptions {
    /// A directory on a `tmpfs`, in which the daemon makes one of its own.
    pub directory: PathBuf,
    /// The most that generations take there, the one that is being written included.
    pub room: Bytes,
}

pub(super) struct Memory {
    directory: PathBuf,
    room: Bytes,
}

impl Memory {
    /// The directory in memory that belongs to the daemon of a directory.
    pub(super) fn open(options: &MemoryOptions, of: &Path) -> Result<Self, DaemonError> {
        let MemoryOptions { directory: above, room } = options;
        let unusable = |source| DaemonError::Directory { path: above.clone(), source };
        let state = statfs(above).map_err(|errno| unusable(errno.into()))?;
        if i128::from(state.f_type) != TMPFS {
            return Err(DaemonError::NoMemory { path: above.clone() });
        }
        let of = fs::canonicalize(of)
            .map_err(|source| DaemonError::Directory { path: of.to_owned(), source })?;
        let hash = digest(&SHA256, of.as_os_str().as_bytes());
        let number: String =
            hash.as_ref().iter().take(NUMBER_BYTES).map(|octet| format!("{octet:02x}")).collect();
        let directory = above.join(format!("{NAME}-{number}"));
        let is_own = own(&directory).map_err(|source| {
            let path = directory.clone();
            DaemonError::Directory { path, source }
        });
        is_own?;
        Ok(Self { directory, room: *room })
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The most that generations take.
    pub(super) const fn room(&self) -> Bytes {
        self.room
    }

    /// Octets that generations take.
    pub(super) fn used(&self) -> io::Result<u64> {
        used_in(&self.directory)
    }

    /// Octets that the system has left for them, those that they take already included.
    pub(super) fn there(&self) -> io::Result<u64> {
        let left = room(&self.directory)?.min(memory_available()?.get());
        Ok(left.saturating_add(self.used()?))
    }

    /// Octets that another generation may take.
    pub(super) fn left(&self) -> io::Result<u64> {
        Ok(self.there()?.min(self.room.get()).saturating_sub(self.used()?))
    }

    /// Nothing is kept in memory any more.
    pub(super) fn forget(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.directory)
    }
}

/// Makes a directory, or sees that the one that is there is nobody else's: everybody can make one there.
fn own(directory: &Path) -> io::Result<()> {
    crate::shelf::create_directory(directory)?;
    let state = fs::symlink_metadata(directory)?;
    if state.is_dir() && state.uid() == geteuid().as_raw() && state.mode() & 0o077 == 0 {
        return Ok(());
    }
    let text = "it is another user's, or others may read it: delete it";
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// Memory that programs can still take without others being moved out of it.
///
/// # Errors
/// When the system does not say.
pub fn memory_available() -> io::Result<Bytes> {
    let text = fs::read_to_string("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let kibibytes = kibibytes.ok_or(io::ErrorKind::InvalidData)?;
    Ok(Bytes::new(kibibytes.saturating_mul(1_024)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn memory_is_the_daemons_own_and_no_disk() {
        let above = tempfile::tempdir_in("/dev/shm").unwrap();
        let home = tempfile::tempdir_in("/dev/shm").unwrap();
        let options = |directory: &Path| MemoryOptions {
            directory: directory.to_owned(),
            room: Bytes::new(1_000),
        };
        let memory = Memory::open(&options(above.path()), home.path()).unwrap();
        assert_eq!((memory.used().unwrap(), memory.left().unwrap()), (0, 1_000));
        let generation = memory.directory().join("1");
        fs::create_dir(&generation).unwrap();
        fs::write(generation.join("image"), [0; 400]).unwrap();
        let again = Memory::open(&options(above.path()), home.path()).unwrap();
        assert_eq!(again.directory(), memory.directory());
        assert_eq!((again.used().unwrap(), again.left().unwrap()), (400, 600));
        fs::set_permissions(memory.directory(), fs::Permissions::from_mode(0o755)).unwrap();
        let refused = Memory::open(&options(above.path()), home.path()).err().unwrap();
        let source = std::error::Error::source(&refused).unwrap().to_string();
        assert!(source.ends_with("delete it"), "{refused} {source}");
        // What the system shows of itself is no memory that can be written.
        let refused = Memory::open(&options(Path::new("/proc")), home.path()).err().unwrap();
        assert!(matches!(refused, DaemonError::NoMemory { .. }), "{refused}");
    }
}
