//! What tests do with whole directories.

use std::fs;
use std::io;
use std::path::Path;

/// Copies a directory with all that is in it; `to` and what is missing above it are made.
///
/// # Errors
/// If a file cannot be read or written.
pub fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
