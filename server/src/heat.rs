//! Heat maps of profiles: how many samples there were of each CPU in each 20 ms.
//!
//! Where rows from afar are taken, a thread reads the blocks of samples as they are written
//! ([`mod@follow`]) and keeps, beside each segment, a row for each (host, CPU, second) of each block: how many
//! samples it has, in which of the 50 tiles of the second, and the number of the frame that they stand in
//! ([`mod@file`]). So a heat map of an hour opens no block, and who wants the samples behind a part of it knows
//! the frames to read. Rows can be missing at any time: they are made anew of the blocks.
//!
//! Cost, sketched: a row is 78 octets for a thousand samples, 2 % of their block. 64 cores for an hour are
//! 230,400 rows, 18 MB: 5 ms to read from the page cache, as much for their checksums, and 12 million
//! additions, 10 ms. To make a row the thread decodes three columns of a block, some tens of µs.

pub(crate) mod answer;
mod core_seconds;
mod counted;
mod file;
mod follow;
mod sums;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use crate::watching::Watching;
use follow::Follower;
use sums::read;
pub(crate) use sums::{CoreSums, Selection, Sums, SumsError};

/// Tiles of a second.
pub(crate) const TILES: usize = 50;

/// What ends the name of the file beside a segment whose samples were made smaller, in place of `log`.
pub(crate) const AGED: &str = "aged";

/// What a tile spans, ns: the fiftieth part of a second.
const TILE_NS: i64 = 20_000_000;

/// What is known of a recording's heat, shared with who asks for it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heat {
    known: Arc<Mutex<follow::Known>>,
    watching: Watching,
}

impl Heat {
    fn known(&self) -> MutexGuard<'_, follow::Known> {
        self.known.lock().expect("what is known is changed in whole steps that cannot panic")
    }

    /// Who watches it as it comes.
    pub(crate) fn watching(&self) -> &Watching {
        &self.watching
    }

    /// The sums of what is selected. Blocks while files are read.
    ///
    /// # Errors
    /// When a file cannot be read, a chunk of it is damaged, or there is too much of it.
    pub(crate) fn sums(&self, selection: &Selection) -> Result<Sums, SumsError> {
        let (hosts, places) = {
            let known = self.known();
            (known.hosts(), known.places(selection.from_s, selection.until_s))
        };
        read(&hosts, &places, selection)
    }

    /// Whether all heat of a segment has been made: it was read to its end, and another one follows it.
    pub(crate) fn is_over(&self, segment: &(String, u64)) -> bool {
        self.known().is_over(segment)
    }

    /// The first and the last second that there are samples of.
    pub(crate) fn span(&self) -> Option<(i64, i64)> {
        self.known().span()
    }
}

/// The thread that keeps a recording's heat; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct HeatKeeper {
    heat: Heat,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HeatKeeper {
    /// Follows the recording in a directory.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(crate) fn start(dir: &Path, watching: Watching) -> std::io::Result<Self> {
        let heat = Heat { watching, ..Heat::default() };
        let (stop, stopped) = channel();
        let (dir, kept): (PathBuf, Heat) = (dir.into(), heat.clone());
        let thread = std::thread::Builder::new().name("heat".into()).spawn(move || {
            meikyo_recording::lower_priority();
            Follower::new(dir, kept).run(&stopped);
        })?;
        Ok(Self { heat, stop: Some(stop), thread: Some(thread) })
    }

    pub(crate) fn heat(&self) -> Heat {
        self.heat.clone()
    }
}

impl Drop for HeatKeeper {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that keeps heat maps has panicked");
        }
    }
}

#[cfg(test)]
mod tests;
