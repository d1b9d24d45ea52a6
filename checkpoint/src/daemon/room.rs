//! Room on file systems: what is left, and what generations take.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::statvfs;

/// Octets that still fit.
pub(super) fn room(directory: &Path) -> io::Result<u64> {
    let state = statvfs(directory)?;
    Ok(state.f_bavail.saturating_mul(state.f_frsize))
}

/// Octets of the files in the directories of a directory.
pub(super) fn used_in(directory: &Path) -> io::Result<u64> {
    let mut used = 0;
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if !path.is_dir() {
            continue;
        }
        for entry in fs::read_dir(path)? {
            // Others may be deleting theirs.
            used += entry?.metadata().map_or(0, |state| state.len());
        }
    }
    Ok(used)
}
