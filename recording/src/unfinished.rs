//! Files that appear whole or not at all: written beside their place and renamed into it.
//!
//! A reader sees what was there before or all that is there now, never a half. What a process leaves
//! that was killed while it wrote has a name that begins with a dot and ends with `.tmp`; no reader
//! looks at it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The ending of names of files that are not whole.
const ENDING: &str = ".tmp";

/// Whether a file of that name is one that somebody writes, or was killed while he wrote.
pub(crate) fn is_unfinished(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(ENDING)
}

/// When a file that was replaced is the new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// At once for every reader; a power cut can bring the old one back, or an empty one.
    Kernel,
    /// Also after a power cut, from the return of the call on.
    Disk,
}

/// Writes a file whole: it holds `octets` then, whatever it held before.
///
/// # Errors
/// When the system refuses; the file is then what it was.
pub fn replace_file(path: &Path, octets: &[u8], durability: Durability) -> io::Result<()> {
    let mut file = Unfinished::create(path)?;
    file.write_all(octets)?;
    match durability {
        Durability::Kernel => file.finish(),
        Durability::Disk => file.finish_on_disk(),
    }
}

/// A file that is written beside its place. It is removed when this is dropped before
/// [`Unfinished::finish`].
#[derive(Debug)]
pub struct Unfinished {
    file: File,
    /// Where it is; `None` when it is in its place.
    temporary: Option<PathBuf>,
    path: PathBuf,
}

impl Unfinished {
    /// Begins a file that is to stand at `path`.
    ///
    /// # Errors
    /// When the path names no file, or the system refuses.
    pub fn create(path: &Path) -> io::Result<Self> {
        static BEGUN: AtomicU64 = AtomicU64::new(0);
        let nameless = || io::Error::new(io::ErrorKind::InvalidInput, "the path names no file");
        let name = path.file_name().ok_or_else(nameless)?.to_string_lossy();
        let (process, number) = (std::process::id(), BEGUN.fetch_add(1, Ordering::Relaxed));
        let temporary = path.with_file_name(format!(".{name}.{process}.{number}{ENDING}"));
        let file = File::create(&temporary)?;
        Ok(Self { file, temporary: Some(temporary), path: path.to_path_buf() })
    }

    /// Puts the file in its place, over what is there.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn finish(mut self) -> io::Result<()> {
        if let Some(temporary) = &self.temporary {
            fs::rename(temporary, &self.path)?;
            self.temporary = None;
        }
        Ok(())
    }
}

impl Unfinished {
    /// Puts the file in its place, over what is there; both are on the disk then.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn finish_on_disk(self) -> io::Result<()> {
        self.file.sync_all()?;
        let path = self.path.clone();
        self.finish()?;
        File::open(directory_of(&path))?.sync_all()
    }

    /// Puts the file in its place on the disk if nothing is there; what is there stays.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn finish_if_absent(self) -> io::Result<()> {
        self.file.sync_all()?;
        // A link, unlike a rename, never replaces what somebody else put there meanwhile.
        let linked = self.temporary.iter().try_for_each(|file| fs::hard_link(file, &self.path));
        match linked {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    }
}

impl Write for Unfinished {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.file.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // One that stays is looked at by nobody.
        self.temporary.iter().for_each(|temporary| drop(fs::remove_file(temporary)));
    }
}

fn directory_of(path: &Path) -> &Path {
    path.parent()
        .filter(|directory| !directory.as_os_str().is_empty())
        .unwrap_or_else(|| Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_is_what_it_was_until_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("devices.json");
        replace_file(&path, b"before", Durability::Kernel).unwrap();
        // Two at once, in one process: neither is the other's.
        let [mut first, mut second] = [(); 2].map(|()| Unfinished::create(&path).unwrap());
        first.write_all(b"half").unwrap();
        second.write_all(b"whole").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"before");
        assert_eq!(names(dir.path()).iter().filter(|name| is_unfinished(name)).count(), 2);
        drop(first);
        second.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        let mut late = Unfinished::create(&path).unwrap();
        late.write_all(b"late").unwrap();
        late.finish_if_absent().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        replace_file(&path, b"after", Durability::Disk).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"after");
        assert_eq!(names(dir.path()), ["devices.json"]);
    }

    #[test]
    fn what_cannot_be_put_in_its_place_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("taken");
        fs::create_dir(&path).unwrap();
        replace_file(&path, b"octets", Durability::Kernel).unwrap_err();
        assert_eq!(names(dir.path()), ["taken"]);
        replace_file(&dir.path().join("none/x"), b"octets", Durability::Kernel).unwrap_err();
        replace_file(Path::new("/"), b"octets", Durability::Kernel).unwrap_err();
    }
}
