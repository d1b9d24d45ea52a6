//! What was read of small files, for readers that ask often: a file is read anew once it has changed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::problem::open_regular;

/// The files that were read, by path, each with the version that was read.
#[derive(Debug)]
pub(crate) struct Remembered<T>(Mutex<Known<T>>);

type Known<T> = BTreeMap<PathBuf, (Version, Arc<T>)>;

/// Inode, octets and time of the last change: whether a file has changed is told without reading it.
type Version = (u64, u64, i64, i64);

impl<T> Default for Remembered<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Remembered<T> {
    fn lock(&self) -> MutexGuard<'_, Known<T>> {
        self.0.lock().expect("nothing that holds what was read can panic")
    }

    /// What `read` makes of a file, from memory where the file has not changed; `None` when there is
    /// no such file. A dangling link is not absent: somebody put it there.
    ///
    /// # Errors
    /// When the file cannot be opened, or `read` fails.
    pub(crate) fn read(
        &self,
        path: &Path,
        read: impl FnOnce(&mut File) -> io::Result<T>,
    ) -> io::Result<Option<Arc<T>>> {
        let mut file = match open_regular(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let of = file.metadata()?;
        let version = (of.ino(), of.len(), of.mtime(), of.mtime_nsec());
        if let Some((known, value)) = self.lock().get(path)
            && *known == version
        {
            return Ok(Some(Arc::clone(value)));
        }
        let value = Arc::new(read(&mut file)?);
        self.lock().insert(path.into(), (version, Arc::clone(&value)));
        Ok(Some(value))
    }
}
