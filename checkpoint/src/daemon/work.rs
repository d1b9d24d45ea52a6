//! Jobs as their threads carry them out: a generation is written or rebuilt together with other hosts.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use meikyo_units::{BitsPerSecond, Bytes, in_one_line};

use super::network::{MEETING, Meet, Network};
use super::storage::Storage;
use super::{Cost, Input, now, told};
use crate::charter::Generation;
use crate::exchange::{ExchangeError, ExchangeOptions};
use crate::geometry::Geometry;
use crate::increment::Hash;
use crate::link::{Purpose, Wanted};
use crate::pace::{Pace, cpu_seconds};
use crate::recovery::Prepared;
use crate::schedule::{Job, Schedule};
use crate::shelf::{self, Changes, OpenStoredError, ShelfError, Shelved, Stored};

/// An image is compared with an earlier one at this rate at least, also on a busy host.
const COMPARING: BitsPerSecond = BitsPerSecond::new(800_000_000);

/// What came of a job.
pub(super) struct Carried {
    pub(super) prepared: Prepared,
    /// The hashes of the image's blocks, where they were computed.
    pub(super) hashes: Option<Vec<Hash>>,
    pub(super) cost: Cost,
}

/// The generation that an update is made of, on this host.
pub(super) struct Base {
    pub(super) generation: Generation,
    pub(super) directory: PathBuf,
    pub(super) hashes: Option<Arc<Vec<Hash>>>,
}

/// A job that is begun.
pub(super) struct Started {
    pub(super) generation: Generation,
    /// The membership version that the generation is of.
    pub(super) version: u64,
    /// The membership version that meets, and in which attempt.
    pub(super) met: (u64, u64),
    pub(super) geometry: Result<Geometry, String>,
    pub(super) job: Job,
    pub(super) image: Option<Arc<Vec<u8>>>,
    /// What an update is made of.
    pub(super) base: Option<Base>,
    pub(super) wanted: Option<Wanted>,
}

/// What a thread needs to carry out a job.
pub(super) struct Working {
    pub(super) me: usize,
    pub(super) network: Arc<Network>,
    pub(super) disk: Arc<Pace>,
    pub(super) inputs: SyncSender<Input>,
    /// Where the generation lies.
    pub(super) stored: PathBuf,
    /// Where it is rebuilt.
    pub(super) rebuilt: PathBuf,
    /// Octets that fit where it lies.
    pub(super) room: io::Result<u64>,
    /// Whether it is this host that gets something by it.
    pub(super) is_own: bool,
}

impl Working {
    pub(super) fn carry_out(&self, started: Started) -> Result<Carried, String> {
        let Started { generation, version, met, geometry, job, image, base, wanted } = started;
        let (begun, cpu) = (now(), cpu_seconds());
        let purpose = if image.is_some() { Purpose::Save } else { Purpose::Rebuild };
        let schedule = Schedule::new(geometry?, job).map_err(|error| error.to_string())?;
        if self.is_own {
            self.check_room(schedule.geometry())?;
        }
        let made_of = base.as_ref().map(|base| base.generation);
        let compared = match (base, &image) {
            (Some(base), Some(image)) => Some(self.compare(&base, &schedule, image)?),
            _ => None,
        };
        let meet = Meet {
            purpose,
            generation,
            version: met.0,
            attempt: met.1,
            schedule: &schedule,
            patience: MEETING + self.comparing(&schedule),
            wanted,
        };
        let links = self.network.meet(&meet).map_err(told)?;
        if self.is_own {
            let breaker = links.breaker().map_err(told)?;
            self.inputs.send(Input::Met(generation, breaker)).map_err(told)?;
        }
        let is_rebuilt = self.is_own && image.is_none();
        self.clear(is_rebuilt)?;
        let shelved = Shelved {
            directory: if is_rebuilt { &self.rebuilt } else { &self.stored },
            generation,
            version,
            place: self.me,
            pace: &self.disk,
            options: ExchangeOptions::DEFAULT,
        };
        let done = match (&image, &compared) {
            (Some(image), Some((base, changes))) => {
                shelf::update(&shelved, &schedule, image, (base, changes), links)
            }
            (Some(image), None) => shelf::save(&shelved, &schedule, image, links),
            (None, _) => shelf::rebuild(&shelved, &schedule, links),
        };
        let done = done.map_err(|error| self.failed(&error, generation, made_of))?;
        if is_rebuilt {
            Storage::adopt(&self.stored, &self.rebuilt).map_err(told)?;
        }
        let (changes, geometry) = (compared.map(|(_, changes)| changes), schedule.geometry());
        let bytes = geometry.lens()[self.me];
        let changed = changes
            .as_ref()
            .map_or(bytes, |changes| (changes.blocks() * u64::from(geometry.block())).min(bytes));
        Ok(Carried {
            prepared: Prepared { lens: geometry.lens().to_vec(), manifest: done.manifest },
            hashes: changes.map(Changes::into_hashes),
            cost: Cost {
                generation: generation.0,
                made_of: made_of.map(|base| base.0),
                bytes,
                changed_bytes: changed,
                sent_bytes: done.moved.sent.get(),
                received_bytes: done.moved.received.get(),
                seconds: now().duration_since(begun).as_secs_f64(),
                stop_seconds: None,
                cpu_seconds: cpu_seconds() - cpu,
            },
        })
    }

    /// Deletes what an earlier try at a rebuild left.
    fn clear(&self, is_rebuilt: bool) -> Result<(), String> {
        if !is_rebuilt {
            return Ok(());
        }
        match std::fs::remove_dir_all(&self.rebuilt) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(told(error)),
            _ => Ok(()),
        }
    }

    /// Tells the daemon's thread what turned out to be damaged; what went wrong, for a person.
    fn failed(&self, error: &ShelfError, of: Generation, made_of: Option<Generation>) -> String {
        let damaged = match error {
            ShelfError::Base(_) => made_of,
            ShelfError::Exchange(ExchangeError::Read(_))
            | ShelfError::Stored(OpenStoredError::Manifest { .. })
                if !self.is_own =>
            {
                Some(of)
            }
            _ => None,
        };
        if let Some(damaged) = damaged {
            // The daemon may be at its end.
            drop(self.inputs.send(Input::Damaged(damaged)));
        }
        in_one_line(error)
    }

    /// Opens the generation that an update is made of, and compares the image with its image.
    fn compare(
        &self,
        base: &Base,
        schedule: &Schedule,
        image: &[u8],
    ) -> Result<(Stored, Changes), String> {
        let damaged = || {
            // The daemon may be at its end.
            drop(self.inputs.send(Input::Damaged(base.generation)));
        };
        let stored = Stored::open(&base.directory).map_err(|error| {
            if matches!(error, OpenStoredError::Manifest { .. }) {
                damaged();
            }
            told(error)
        })?;
        if stored.geometry() != schedule.geometry() || stored.manifest().place != self.me {
            return Err(format!("generation {} has other blocks", base.generation.0));
        }
        let known = base.hashes.as_ref().map(|hashes| &hashes[..]);
        let changes = Changes::find(&stored, known, image, &self.disk).map_err(|error| {
            if error.kind() == io::ErrorKind::InvalidData {
                damaged();
            }
            told(error)
        })?;
        Ok((stored, changes))
    }

    /// How much longer others may take until they have compared their images.
    fn comparing(&self, schedule: &Schedule) -> Duration {
        let longest = schedule.geometry().lens().iter().max().copied().unwrap_or(0);
        match schedule.job() {
            Job::Update => COMPARING.serialization_delay(Bytes::new(longest)).to_std(),
            Job::Encode | Job::Rebuild(_) | Job::RebuildOne { .. } => Duration::ZERO,
        }
    }

    /// Whether image, parity and manifest fit the disk.
    fn check_room(&self, geometry: &Geometry) -> Result<(), String> {
        let block = u64::from(geometry.block());
        let needed = geometry.lens()[self.me]
            + geometry.parity_blocks() * block
            + 5 * (geometry.parity_blocks() + geometry.image_blocks(self.me));
        let above = self.stored.parent().expect("a generation lies in a directory");
        let room = *self.room.as_ref().map_err(told)?;
        if room < needed {
            let path = above.display();
            return Err(format!(
                "`{path}` has room for {room} octets, and a generation needs {needed}"
            ));
        }
        Ok(())
    }
}
