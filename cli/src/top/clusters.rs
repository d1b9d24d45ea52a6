//! The clusters of a receiver beside each other: what a person sees of them and does.
//!
//! Pure: what was found of the clusters ([`gather`]), keys and the clock go in; what is left to the shell comes out.

pub(super) mod gather;
mod local;
pub(super) mod remote;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use meikyo_transport::shell::Target;
use meikyo_units::glob::{is_pattern, matches};
use meikyo_units::{Nanos, WallTime};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use serde::{Serialize, Serializer};

/// What is known of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Cluster {
    pub(super) name: String,
    /// Its recording, if that can be opened.
    #[serde(skip)]
    pub(super) location: Option<Location>,
    /// Whether rows of it are being written.
    pub(super) running: bool,
    pub(super) devices: Vec<String>,
    /// Device intervals of its last 10 s that ended in time.
    pub(super) ok: u64,
    pub(super) late: u64,
    /// Missed, in error or skipped.
    pub(super) missing: u64,
    pub(super) silent: Vec<String>,
    /// Of the devices that answer, the age of the oldest value.
    #[serde(rename = "oldest_value_us", serialize_with = "micros")]
    pub(super) oldest_value: Option<Nanos>,
    /// The active one first.
    pub(super) senders: Vec<Sender>,
    /// What could not be read of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trouble: Option<String>,
}

/// Where a recording is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Location {
    /// In a directory of this machine.
    Here(PathBuf),
    /// At a server, which calls it so.
    There(Target, String),
}

/// Who sends a cluster's rows.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Sender {
    pub(super) name: String,
    /// Whether the newest rows are taken from it.
    pub(super) active: bool,
    /// Whether it has a connection; only the receiver knows.
    pub(super) connected: Option<bool>,
    /// How old its newest row is.
    #[serde(rename = "lag_us", serialize_with = "micros")]
    pub(super) lag: Option<Nanos>,
    #[serde(rename = "round_trip_us", serialize_with = "micros")]
    pub(super) round_trip: Option<Nanos>,
    /// How often rows of it were lost, and how many where that is known.
    pub(super) gaps: u64,
    pub(super) missing_rows: u64,
}

fn micros<S: Serializer>(span: &Option<Nanos>, serializer: S) -> Result<S::Ok, S::Error> {
    span.map(Nanos::as_micros).serialize(serializer)
}

impl Cluster {
    /// All device intervals of its last 10 s.
    pub(super) fn all(&self) -> u64 {
        self.ok.saturating_add(self.late).saturating_add(self.missing)
    }

    /// The sender whose rows are taken.
    pub(super) fn active(&self) -> Option<&Sender> {
        self.senders.iter().find(|sender| sender.active)
    }

    /// Its devices that are called like that.
    pub(super) fn devices_like(&self, find: &str) -> impl Iterator<Item = &str> {
        let is_asked = !find.is_empty();
        self.devices.iter().map(String::as_str).filter(move |name| is_asked && is_like(name, find))
    }
}

/// Whether a name is what is looked for: a part of it, or a pattern with `*` and `?`.
fn is_like(name: &str, find: &str) -> bool {
    let (name, find) = (name.to_lowercase(), find.to_lowercase());
    if is_pattern(&find) { matches(&find, &name) } else { name.contains(&find) }
}

/// What the shell is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OverviewWish {
    Quit,
    /// Stop as a job of the terminal's shell does, and go on when it says so.
    Suspend,
    /// Show the recording of a cluster.
    Open(Location),
}

/// The whole state.
#[derive(Debug, Default)]
pub(super) struct Overview {
    /// Where the clusters are: a directory's name, or an address.
    pub(super) name: String,
    pub(super) clusters: Vec<Cluster>,
    /// When that was asked for; `None` before the first answer.
    pub(super) asked: Option<WallTime>,
    /// What could not be done.
    pub(super) trouble: Option<String>,
    /// What is looked for in the names of clusters and devices.
    pub(super) find: String,
    /// Whether that is being typed.
    pub(super) typing: bool,
    /// The name of the selected cluster.
    pub(super) selected: Option<String>,
    /// Whether everything that is known of it is shown.
    pub(super) detail: bool,
    /// The first row that is drawn.
    pub(super) scroll: usize,
    /// Rows that fit.
    pub(super) fits: usize,
}

impl Overview {
    /// Nothing is known yet.
    pub(super) fn new(name: String) -> Self {
        Self { name, ..Self::default() }
    }

    /// Takes what was found.
    pub(super) fn take(&mut self, found: gather::Found) {
        match found.clusters {
            Ok(clusters) => (self.clusters, self.asked) = (clusters, Some(found.asked)),
            Err(error) => self.trouble = Some(error),
        }
        self.arrange();
    }

    /// The clusters that are shown, from top to bottom.
    pub(super) fn shown(&self) -> Vec<&Cluster> {
        let is_found = |of: &&Cluster| {
            is_like(&of.name, &self.find) || of.devices_like(&self.find).next().is_some()
        };
        self.clusters.iter().filter(is_found).collect()
    }

    /// The row of the selected cluster among those that are shown.
    pub(super) fn selected_row(&self) -> Option<usize> {
        let selected = self.selected.as_ref()?;
        self.shown().iter().position(|cluster| cluster.name == *selected)
    }

    /// Selects the first cluster if none of those that are shown is.
    fn arrange(&mut self) {
        if self.selected_row().is_none() {
            self.selected = self.shown().first().map(|cluster| cluster.name.clone());
            self.detail &= self.selected.is_some();
        }
    }

    fn select(&mut self, row: usize) {
        let shown = self.shown();
        let row = row.min(shown.len().saturating_sub(1));
        self.selected = shown.get(row).map(|cluster| cluster.name.clone());
    }

    /// Scrolls as little as shows the selected row, where so many fit.
    pub(super) fn keep_in_sight(&mut self, fits: usize) {
        self.fits = fits;
        let (row, fits) = (self.selected_row().unwrap_or(0), fits.max(1));
        let most = self.shown().len().saturating_sub(fits);
        self.scroll = self.scroll.clamp(row.saturating_sub(fits - 1), row).min(most);
    }

    /// Does what a key says.
    pub(super) fn key(&mut self, key: KeyEvent) -> Option<OverviewWish> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        self.trouble = None;
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Some(OverviewWish::Quit),
                KeyCode::Char('z') => Some(OverviewWish::Suspend),
                _ => None,
            };
        }
        if self.typing {
            self.find_key(key.code);
            return None;
        }
        let (row, page) = (self.selected_row().unwrap_or(0), self.fits.max(1));
        match key.code {
            KeyCode::Up | KeyCode::Char('k') => self.select(row.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.select(row + 1),
            KeyCode::PageUp => self.select(row.saturating_sub(page)),
            KeyCode::PageDown => self.select(row + page),
            KeyCode::Home | KeyCode::Char('g') => self.select(0),
            KeyCode::End | KeyCode::Char('G') => self.select(usize::MAX),
            KeyCode::Char('f' | '/') => self.typing = true,
            KeyCode::Enter => return self.open(),
            KeyCode::Char('d') => self.detail = !self.detail && self.selected.is_some(),
            KeyCode::Esc if self.detail => self.detail = false,
            KeyCode::Esc if !self.find.is_empty() => {
                self.find.clear();
                self.arrange();
            }
            KeyCode::Esc | KeyCode::Char('q') => return Some(OverviewWish::Quit),
            _ => {}
        }
        None
    }

    /// Opens the selected cluster's recording; where that cannot be done, it is told why.
    fn open(&mut self) -> Option<OverviewWish> {
        let row = self.selected_row()?;
        let cluster = *self.shown().get(row)?;
        let (location, name) = (cluster.location.clone(), cluster.name.clone());
        if location.is_none() {
            self.trouble =
                Some(format!("nobody writes the recording of `{name}` now; the page has its past"));
        }
        location.map(OverviewWish::Open)
    }

    fn find_key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter | KeyCode::Up | KeyCode::Down => self.typing = false,
            KeyCode::Esc => {
                self.find.clear();
                self.typing = false;
            }
            KeyCode::Backspace => drop(self.find.pop()),
            KeyCode::Char(c) => self.find.push(c),
            _ => {}
        }
        self.arrange();
    }
}

/// Whether a directory is one of `meikyo serve --ingest` with clusters in it.
pub(super) fn are_below(dir: &Path) -> bool {
    meikyo_server::clusters_below(dir).is_ok_and(|found| !found.is_empty())
}
