//! How far each stream was sent, beside the recording.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use meikyo_recording::unfinished::{Durability, replace_file};
use serde::{Deserialize, Serialize};

use super::Form;

/// The file in the recording's directory, which one thread writes.
fn file_name(form: Form) -> &'static str {
    match form {
        Form::Lines(_) => "influx-sent.json",
        Form::RemoteWrite => "remote-write-sent.json",
    }
}

/// How far a stream was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// The number of the last frame whose rows were taken.
    pub(super) frame: u64,
    /// The checksum of its payload, where it was read from the log: a machine that lost power may have lost
    /// the frame, and another one has its number then.
    pub(super) payload_crc: Option<u32>,
}

/// By target, by stream.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Document {
    targets: BTreeMap<String, BTreeMap<String, Place>>,
}

/// The places of one target.
#[derive(Debug)]
pub(super) struct Sent {
    path: PathBuf,
    target: String,
    document: Document,
}

impl Sent {
    /// What was noted for a target; nothing where there is no file, or none that can be read: rows are
    /// sent again then, and the database has them once.
    pub(super) fn read(dir: &Path, form: Form, target: &str) -> Self {
        let path = dir.join(file_name(form));
        let document = match std::fs::read(&path) {
            Ok(octets) => serde_json::from_slice(&octets).unwrap_or_else(|error| {
                tracing::warn!(path = %path.display(), %error, "all rows are sent again");
                Document::default()
            }),
            Err(_) => Document::default(),
        };
        Self { path, target: target.to_owned(), document }
    }

    /// How far a stream was sent; `None` when nothing of it was.
    pub(super) fn place_of(&self, stream: &str) -> Option<Place> {
        self.document.targets.get(&self.target)?.get(stream).copied()
    }

    /// Notes how far a stream was sent.
    pub(super) fn note(&mut self, stream: &str, place: Place) {
        let streams = self.document.targets.entry(self.target.clone()).or_default();
        streams.insert(stream.to_owned(), place);
    }

    /// Writes it down.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn write(&self) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(&self.document)?;
        replace_file(&self.path, &text, Durability::Kernel)
    }
}
