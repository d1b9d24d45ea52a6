//! Files that others have put somewhere, opened so that nobody can hold this process up.
//!
//! A profiler that runs as root opens what other users have mapped and what their compilers have
//! written. A FIFO, a device or a link to one may lie there, so a path is opened without touching
//! what it names (`O_PATH`), looked at, and only then opened for reading.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A regular file that has been looked at and not yet been opened for reading.
#[derive(Debug)]
pub(crate) struct Regular {
    named: File,
    facts: Metadata,
}

/// What a path leads through at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// To what a link names.
    Followed,
    /// A link at the end is an error.
    Refused,
}

impl Regular {
    /// The regular file at a path.
    ///
    /// # Errors
    /// When there is none, or something else lies there.
    pub(crate) fn at(path: &Path, links: Links) -> io::Result<Self> {
        let links = match links {
            Links::Followed => 0,
            Links::Refused => libc::O_NOFOLLOW,
        };
        let named = OpenOptions::new().read(true).custom_flags(libc::O_PATH | links).open(path)?;
        let facts = named.metadata()?;
        if !facts.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is no regular file"));
        }
        Ok(Self { named, facts })
    }

    /// What is known about it.
    pub(crate) fn facts(&self) -> &Metadata {
        &self.facts
    }

    /// A path of this very file, whatever lies at the first one by now.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.named.as_raw_fd()))
    }

    /// Opens it for reading.
    ///
    /// # Errors
    /// When this user may not.
    pub(crate) fn open(&self) -> io::Result<File> {
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(self.path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_opened_and_links_only_where_they_are_followed() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("file"), "octets").unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("zeros")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        for (name, [followed, refused]) in [
            ("file", [true, true]),
            ("link", [true, false]),
            ("zeros", [false, false]),
            ("fifo", [false, false]),
            ("nothing", [false, false]),
        ] {
            assert_eq!(Regular::at(&at(name), Links::Followed).is_ok(), followed, "{name}");
            assert_eq!(Regular::at(&at(name), Links::Refused).is_ok(), refused, "{name}");
        }
        let found = Regular::at(&at("link"), Links::Followed).unwrap();
        std::fs::remove_file(at("link")).unwrap();
        assert_eq!(io::read_to_string(found.open().unwrap()).unwrap(), "octets");
        assert_eq!(found.facts().len(), 6);
    }
}
