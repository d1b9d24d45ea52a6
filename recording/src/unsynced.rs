//! `unsynced` of a stream: the disk refused to take what its log holds.
//!
//! After `fdatasync` has failed the kernel keeps the octets that it could not write, takes them for
//! written, and answers the next `fdatasync` with success: what can be read is then not what a power
//! cut leaves. The file says so until everything was written anew, to other files. It is needed for
//! exactly as long as the kernel has the octets, so that it need not be on the disk itself.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use crate::unfinished::Unfinished;

/// The file in a stream's directory.
pub(crate) const FILE_NAME: &str = "unsynced";

/// Notes that the log of a stream may not be on the disk, whatever a later sync says.
///
/// # Errors
/// When the system refuses; a stream that is not there needs no note.
pub(crate) fn note(stream_dir: &Path) -> io::Result<()> {
    match File::create(stream_dir.join(FILE_NAME)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        noted => noted.map(drop),
    }
}

/// Whether that was noted.
pub(crate) fn is_noted(stream_dir: &Path) -> bool {
    // What cannot be asked for may be there.
    stream_dir.join(FILE_NAME).try_exists().unwrap_or(true)
}

/// Takes the note back.
///
/// # Errors
/// When the system refuses.
pub(crate) fn take_back(stream_dir: &Path) -> io::Result<()> {
    fs::remove_file(stream_dir.join(FILE_NAME))
}

/// Writes a file anew, so that its octets are on the disk when this returns.
///
/// # Errors
/// When the system refuses; the file is then what it was.
pub(crate) fn write_anew(path: &Path) -> io::Result<()> {
    let mut file = Unfinished::create(path)?;
    io::copy(&mut File::open(path)?, &mut file)?;
    file.finish_on_disk()
}
