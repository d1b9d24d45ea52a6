//! `progress` of a stream: how far its log has been written, so that a log which ends earlier is
//! seen to be truncated.
//!
//! One line of fixed length, overwritten after every write to the log: the first sequence number of
//! the newest segment, the last one that the kernel has, and the CRC-32 of both.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::problem::read_regular;
use crate::unfinished::{Durability, replace_file};

/// The file in a stream's directory.
pub(crate) const FILE_NAME: &str = "progress";

/// How often a line that is just being overwritten is read again.
const TRIES: usize = 100;

/// How far a stream's log has been written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Sequence number of the first frame of the newest segment.
    pub(crate) first: u64,
    /// Sequence number of the last frame that was handed to the kernel.
    pub(crate) last: u64,
}

impl Progress {
    fn line(self) -> String {
        let facts = format!("{:020} {:020}", self.first, self.last);
        format!("{facts} {:08x}\n", crc32fast::hash(facts.as_bytes()))
    }

    fn parse(line: &str) -> Option<Self> {
        let (facts, crc) = line.strip_suffix('\n')?.rsplit_once(' ')?;
        if crc != format!("{:08x}", crc32fast::hash(facts.as_bytes())) {
            return None;
        }
        let (first, last) = facts.split_once(' ')?;
        Some(Self { first: first.parse().ok()?, last: last.parse().ok()? })
    }
}

/// Reads the progress of a stream; `None` when there is no such file.
///
/// # Errors
/// When the file cannot be read or does not have its checksum.
pub(crate) fn read(stream_dir: &Path) -> io::Result<Option<Progress>> {
    let path = stream_dir.join(FILE_NAME);
    for _ in 0..TRIES {
        match read_regular(&path) {
            Ok(line) => {
                if let Some(progress) = Progress::parse(&line) {
                    return Ok(Some(progress));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
                return Ok(None);
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
            Err(error) => return Err(error),
        }
        std::thread::yield_now();
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "it does not have the checksum that it names"))
}

/// Writes a stream's progress as a file of its own, by rename: it is never seen half.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn replace(stream_dir: &Path, progress: Progress) -> io::Result<()> {
    let path = stream_dir.join(FILE_NAME);
    replace_file(&path, progress.line().as_bytes(), Durability::Kernel)
}

/// Notes the progress of one stream's writer.
#[derive(Debug)]
pub(crate) struct ProgressWriter {
    stream_dir: PathBuf,
    /// The open file, and the segment for which it was opened.
    open: Option<(File, u64)>,
}

impl ProgressWriter {
    pub(crate) fn new(stream_dir: PathBuf) -> Self {
        Self { stream_dir, open: None }
    }

    /// Notes how far the log has been written.
    ///
    /// # Errors
    /// When the file cannot be written. It then says less than is there, which no reader takes for
    /// damage.
    pub(crate) fn note(&mut self, progress: Progress) -> io::Result<()> {
        match &self.open {
            Some((file, first)) if *first == progress.first => {
                file.write_all_at(progress.line().as_bytes(), 0)
            }
            // With each segment anew: the directory may have been removed and made again.
            _ => {
                self.open = None;
                replace(&self.stream_dir, progress)?;
                let path = self.stream_dir.join(FILE_NAME);
                self.open = Some((OpenOptions::new().write(true).open(path)?, progress.first));
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn progress_comes_back_and_a_changed_octet_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()).unwrap(), None);
        let mut writer = ProgressWriter::new(dir.path().into());
        for last in [1, 99, u64::MAX] {
            let progress = Progress { first: 1, last };
            writer.note(progress).unwrap();
            assert_eq!(read(dir.path()).unwrap(), Some(progress));
        }
        let path = dir.path().join(FILE_NAME);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            fs::write(&path, changed).unwrap();
            assert!(read(dir.path()).is_err(), "octet {at}");
        }
    }
}
