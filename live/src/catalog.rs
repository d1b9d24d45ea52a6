//! The recordings that are looked at together, each with a name of its own.

use std::path::PathBuf;
use std::sync::Arc;

use meikyo_recording::ReadError;

use crate::opened::{Opened, name_of};

/// The recordings, in the order in which they were named.
#[derive(Debug)]
pub struct Catalog {
    recordings: Vec<Arc<Opened>>,
}

impl Catalog {
    /// Opens the recordings in some directories. Their ids are the names of the directories, with
    /// a number behind where two are the same.
    ///
    /// # Errors
    /// When one of them is none, or of a newer format.
    pub fn open(dirs: &[PathBuf]) -> Result<Self, ReadError> {
        let mut recordings: Vec<Arc<Opened>> = Vec::new();
        for dir in dirs {
            let id = free_id(&name_of(dir), &recordings);
            recordings.push(Arc::new(Opened::open(dir, id)?));
        }
        Ok(Self { recordings })
    }

    /// All recordings, in the order in which they were named.
    pub fn all(&self) -> &[Arc<Opened>] {
        &self.recordings
    }

    /// The recording of that id.
    pub fn get(&self, id: &str) -> Option<&Arc<Opened>> {
        self.recordings.iter().find(|opened| opened.id == id)
    }

    /// Looks up the series of all tables, so that the first view need not wait for it.
    pub fn warm(&self) {
        for opened in &self.recordings {
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
        let ids: Vec<_> = catalog.all().iter().map(|opened| opened.id.as_str()).collect();
        assert_eq!(ids, ["run-1", "run-1-2", "x"]);
        assert_eq!(catalog.get("run-1-2").map(|opened| opened.recording.dir()), Some(&*dirs[1]));
        assert!(catalog.get("..").is_none());
    }
}
