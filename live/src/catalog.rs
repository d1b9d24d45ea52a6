//! The recordings that are looked at together, each with a name of its own.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use meikyo_recording::ReadError;

use crate::opened::{Opened, name_of};

/// The recordings, in the order in which they were named.
#[derive(Debug)]
pub struct Catalog {
    recordings: RwLock<Vec<Arc<Opened>>>,
}

impl Catalog {
    /// Opens the recordings in some directories. Their ids are the names of the directories, with
    /// a number behind where two are the same.
    ///
    /// # Errors
    /// When one of them is none, or of a newer format.
    pub fn open(dirs: &[PathBuf]) -> Result<Self, ReadError> {
        let catalog = Self { recordings: RwLock::default() };
        dirs.iter().try_for_each(|dir| catalog.add(dir))?;
        Ok(catalog)
    }

    /// Adds the recording in a directory behind the others; nothing happens if it is there.
    ///
    /// # Errors
    /// When it is none, or of a newer format.
    pub fn add(&self, dir: &Path) -> Result<(), ReadError> {
        // A list to which one is pushed at the end is right also behind a panic.
        let mut recordings = self.recordings.write().unwrap_or_else(PoisonError::into_inner);
        if recordings.iter().all(|opened| opened.recording.dir() != dir) {
            let id = free_id(&name_of(dir), &recordings);
            recordings.push(Arc::new(Opened::open(dir, id)?));
        }
        Ok(())
    }

    /// All recordings, in the order in which they were named and added.
    pub fn all(&self) -> Vec<Arc<Opened>> {
        // A list is replaced or pushed to as a whole, also by a thread that panics after.
        self.recordings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The recording of that id.
    pub fn get(&self, id: &str) -> Option<Arc<Opened>> {
        self.all().into_iter().find(|opened| opened.id == id)
    }

    /// Looks up the series of all tables, so that the first view need not wait for it.
    pub fn warm(&self) {
        for opened in self.all() {
            let unknown = |error: ReadError| {
                tracing::warn!(%error, recording = opened.id, "series are not known yet");
            };
            match opened.tables() {
                Ok(tables) => tables.values().for_each(|table| {
                    opened.with_series(table, |_| ()).unwrap_or_else(unknown);
                }),
                Err(error) => unknown(error),
            }
        }
    }
}

/// The name, with a number behind it if one of the recordings is called so.
fn free_id(name: &str, recordings: &[Arc<Opened>]) -> String {
    let is_free = |id: &String| recordings.iter().all(|other| other.id != *id);
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut ids = std::iter::once(name.to_owned()).chain(numbered);
    ids.find(is_free).expect("the numbers do not end")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_names_of_directories_and_differ() {
        let dir = tempfile::tempdir().unwrap();
        let mut dirs = Vec::new();
        for name in ["a/run 1", "b/run 1", "c/.x"] {
            let recording = dir.path().join(name);
            meikyo_recording::format::create(&recording, meikyo_recording::Kind::Measured).unwrap();
            dirs.push(recording);
        }
        let catalog = Catalog::open(&dirs).unwrap();
        let ids: Vec<_> = catalog.all().iter().map(|opened| opened.id.clone()).collect();
        assert_eq!(ids, ["run-1", "run-1-2", "x"]);
        let found = catalog.get("run-1-2");
        assert_eq!(found.as_ref().map(|opened| opened.recording.dir()), Some(&*dirs[1]));
        catalog.add(&dirs[0]).unwrap();
        let later = dir.path().join("c/run 1");
        meikyo_recording::format::create(&later, meikyo_recording::Kind::Measured).unwrap();
        catalog.add(&later).unwrap();
        assert_eq!(
            catalog.all().last().map(|opened| opened.id.clone()).as_deref(),
            Some("run-1-3")
        );
        assert_eq!(catalog.all().len(), 4, "one that is there is not added again");
        assert!(catalog.get("..").is_none());
    }
}
