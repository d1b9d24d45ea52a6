//! The files of a spool in a directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::Files;

/// A directory that one sender has for itself.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// Keeps every other sender out.
    _lock: File,
    /// The file that is being filled.
    open: Option<(String, File)>,
    /// Whether names were added or removed that may not be on the disk.
    has_changed: bool,
}

impl Directory {
    /// Takes a directory, which is made where there is none.
    ///
    /// # Errors
    /// What the system said, and when another sender has it.
    pub fn open(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        let mut options = OpenOptions::new();
        let lock = options.create(true).truncate(false).write(true).open(path.join("lock"))?;
        lock.try_lock().map_err(|error| match error {
            fs::TryLockError::WouldBlock => {
                let text = "another sender has it; give each a spool of its own";
                io::Error::new(io::ErrorKind::ResourceBusy, text)
            }
            fs::TryLockError::Error(error) => error,
        })?;
        Ok(Self { path: path.into(), _lock: lock, open: None, has_changed: true })
    }
}

impl Files for Directory {
    fn names(&mut self) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(&self.path)?.map(|entry| Ok(entry?.file_name()));
        let names: io::Result<Vec<_>> = entries.collect();
        Ok(names?.into_iter().filter_map(|name| name.into_string().ok()).collect())
    }

    fn append(&mut self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        if self.open.as_ref().is_none_or(|(open, _)| open != name) {
            let path = self.path.join(name);
            let file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
            self.open = Some((name.to_owned(), file));
            self.has_changed = true;
        }
        let (_, file) = self.open.as_mut().expect("it was opened above");
        let mut parts: Vec<_> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let mut left = &mut parts[..];
        while !left.is_empty() {
            match file.write_vectored(left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => IoSlice::advance_slices(&mut left, written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn read(&mut self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.path.join(name))
    }

    fn read_at(&mut self, name: &str, at: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut octets = vec![0; len];
        match &self.open {
            Some((open, file)) if open == name => file.read_exact_at(&mut octets, at)?,
            _ => File::open(self.path.join(name))?.read_exact_at(&mut octets, at)?,
        }
        Ok(octets)
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        match &self.open {
            Some((open, file)) if open == name => file.sync_data()?,
            _ => File::open(self.path.join(name))?.sync_data()?,
        }
        if self.has_changed {
            File::open(&self.path)?.sync_all()?;
            self.has_changed = false;
        }
        Ok(())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        if self.open.as_ref().is_some_and(|(open, _)| open == name) {
            self.open = None;
        }
        self.has_changed = true;
        fs::remove_file(self.path.join(name))
    }
}
