//! What is wrong with a part of a recording, and opening files so that nothing wrong can hang.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// A file of a recording that cannot be read wholly, is missing, or does not belong there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Path of the file, also if it is missing.
    pub path: PathBuf,
    /// What is wrong with it.
    pub what: String,
}

impl Problem {
    pub(crate) fn new(path: &Path, what: impl Into<String>) -> Self {
        Self { path: path.into(), what: what.into() }
    }
}

/// Opens a regular file, or a link to one.
///
/// Opening a FIFO for reading waits for a writer, and a device may do anything: neither is opened
/// in a way that waits, and both are refused.
///
/// # Errors
/// When the system refuses, or the path names something else than a file.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"))
}

/// The text of a regular file.
///
/// # Errors
/// As [`open_regular`], and when it is not UTF-8.
pub(crate) fn read_regular(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open_regular(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Decodes octets of a Parquet file. The library's decoders panic at some damaged octets where a
/// file has no checksums; a reader tells that as it tells any other damage.
///
/// # Errors
/// When the decoder panicked; what it was decoding is not to be used any more.
pub(crate) fn decoded<T>(decode: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(decode))
        .map_err(|_| "its Parquet data cannot be decoded: the decoder gave up".to_owned())
}
