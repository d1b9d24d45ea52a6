//! Files that only the hosts have: their functions are asked for as soon as code of them is mapped anywhere.
//!
//! Blocks of `mappings` are looked through as they pass. A thread finds out which of their files are not here,
//! and has one of the hosts that have it tell its functions, once for all hosts. What is on the disk of this machine
//! is not asked for, nor is what the recording has already.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use meikyo_profile::symbols::is_file_here;
use meikyo_profile::tables::{file_symbols, mappings};
use meikyo_recording::{
    Column, ColumnKind, Meaning, PackedRows, ReadError, Recording, Selection, TableSchema,
};

use super::debuginfod::{self, Debuginfod, Heard, Listener};
use super::{Event, Inbox};
use crate::watching;

/// Files that wait to be looked for; of more the next mapping is waited for.
const WAITING_MAX: usize = 1_024;

/// Files that are remembered; then it begins anew.
const KNOWN_MAX: usize = 200_000;

/// A host that has not told by then is not waited for any longer: the next one that maps the file is asked.
const PATIENCE: Duration = Duration::from_secs(600);

/// What a host is asked, before the build ID.
const QUESTION: &str = "functions";

/// A file whose code a host has mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapped {
    sender: String,
    stream: String,
    build_id: String,
    path: String,
}

/// What is known of files.
#[derive(Debug)]
pub(super) struct Files {
    /// Build IDs of files whose functions were told.
    told: BTreeSet<String>,
    /// When files were handed on to be looked for, by build ID and path: a copy that lies in a container is not
    /// here although the file that it was copied from is.
    since: BTreeMap<(String, String), Instant>,
    to: SyncSender<Mapped>,
    /// Who is asked for files that no host tells of, where the site has one.
    debuginfod: Option<Listener>,
}

impl Files {
    /// Looks for files of the recording in a directory; hosts are asked by way of the inbox.
    pub(super) fn start(
        dir: &Path,
        inbox: Inbox,
        debuginfod: Option<Debuginfod>,
    ) -> std::io::Result<Self> {
        let debuginfod = debuginfod.map(|of| debuginfod::start(of, dir, inbox.clone()));
        let debuginfod = debuginfod.transpose()?;
        let listener = debuginfod.clone();
        let (to, mapped) = sync_channel(WAITING_MAX);
        let dir: PathBuf = dir.into();
        std::thread::Builder::new().name("files".into()).spawn(move || {
            meikyo_recording::lower_priority();
            look_for(&dir, &mapped, |of, words| {
                let Mapped { sender, stream, build_id, .. } = of;
                if let Some(listener) = &listener {
                    listener.hear(Heard::Asked { build_id, stream: stream.clone() });
                }
                inbox.tell_blocking(Event::Ask { sender, stream, words });
            });
        })?;
        Ok(Self { told: BTreeSet::new(), since: BTreeMap::new(), to, debuginfod })
    }

    /// Looks a block through that is stored.
    pub(super) fn pass(&mut self, now: Instant, stream: &str, rows: &PackedRows) {
        if rows.table() == file_symbols::NAME {
            for (build_id, has_functions) in told_in(rows) {
                if let Some(listener) = &self.debuginfod {
                    let build_id = build_id.clone();
                    listener.hear(Heard::Told { build_id, has_functions });
                }
                self.told.insert(build_id);
            }
        } else if rows.table() == mappings::NAME
            && let Some(origin) = rows.origin()
        {
            for (build_id, path) in mapped_in(rows) {
                let sender = origin.source.sender.clone();
                let stream = stream.to_owned();
                self.met(now, Mapped { sender, stream, build_id, path });
            }
        }
    }

    fn met(&mut self, now: Instant, mapped: Mapped) {
        let key = (mapped.build_id.clone(), mapped.path.clone());
        let is_asked = |at: &Instant| now.saturating_duration_since(*at) < PATIENCE;
        if self.told.contains(&mapped.build_id) || self.since.get(&key).is_some_and(is_asked) {
            return;
        }
        if self.told.len() + self.since.len() >= KNOWN_MAX {
            self.told.clear();
            self.since.clear();
        }
        // Without room, or when the thread has ended, nothing is remembered.
        match self.to.try_send(mapped) {
            Ok(()) => drop(self.since.insert(key, now)),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        }
    }
}

/// Build IDs and paths of files in a block of mappings; the kernel's own text is one of them.
fn mapped_in(rows: &PackedRows) -> BTreeSet<(String, String)> {
    let columns = [mappings::PATH.name(), mappings::BUILD_ID.name()]
        .map(|name| Column::new(name, ColumnKind::Text, Meaning::Detail, ""));
    let schema = TableSchema::new(rows.table(), "", columns.to_vec());
    let Ok((batch, _)) = rows.unpack(&schema) else { return BTreeSet::new() };
    let file = |row| Some((batch.text(2, row)?.to_owned(), batch.text(1, row)?.to_owned()));
    (0..batch.rows()).filter_map(file).collect()
}

/// The files that a block tells of, and whether they have functions.
fn told_in(rows: &PackedRows) -> BTreeMap<String, bool> {
    let (build_id, name) = (file_symbols::BUILD_ID.name(), file_symbols::FUNCTION.name());
    let columns =
        [(build_id, ColumnKind::Symbol, Meaning::Label), (name, ColumnKind::Text, Meaning::Detail)]
            .map(|(name, kind, meaning)| Column::new(name, kind, meaning, ""));
    let schema = TableSchema::new(rows.table(), "", columns.to_vec());
    let Ok((batch, words)) = rows.unpack(&schema) else { return BTreeMap::new() };
    let word = |row| words.get(usize::try_from(batch.bits(1, row)?).ok()?).cloned();
    let mut told: BTreeMap<String, bool> = BTreeMap::new();
    for row in 0..batch.rows() {
        if let Some(build_id) = word(row) {
            *told.entry(build_id).or_default() |= batch.text(2, row).is_some();
        }
    }
    told
}

/// The files whose functions a recording has.
fn told_of(dir: &Path) -> Result<BTreeSet<String>, ReadError> {
    let recording = Recording::open(dir)?;
    let build_id = file_symbols::BUILD_ID.name();
    let columns = Some(vec![build_id.to_owned()]);
    let mut told = BTreeSet::new();
    for rows in recording.scan(&Selection { columns, ..Selection::all(file_symbols::NAME) })? {
        let rows = rows?;
        let words = file_symbols::BUILD_ID.values_in(&rows);
        for row in 0..rows.num_rows() {
            told.extend(words.as_ref().and_then(|words| words.get(row)).map(str::to_owned));
        }
    }
    Ok(told)
}

/// Looks for files until nobody hands any on; `ask` has a host tell.
fn look_for(dir: &Path, mapped: &Receiver<Mapped>, ask: impl Fn(Mapped, String)) {
    // A recording that has no such table yet has nothing.
    let told = told_of(dir).unwrap_or_default();
    // When somebody was asked for the file with a build ID, at whatever path.
    let mut asked: BTreeMap<String, Instant> = BTreeMap::new();
    while let Ok(of) = mapped.recv() {
        let now = watching::now();
        let is_recent = |at: &Instant| now.saturating_duration_since(*at) < PATIENCE;
        let is_known =
            told.contains(&of.build_id) || asked.get(&of.build_id).is_some_and(is_recent);
        if !is_known && !is_file_here(&of.build_id, &of.path) {
            if asked.len() >= KNOWN_MAX {
                asked.clear();
            }
            asked.insert(of.build_id.clone(), now);
            let words = format!("{QUESTION} {}", of.build_id);
            ask(of, words);
        }
    }
}
