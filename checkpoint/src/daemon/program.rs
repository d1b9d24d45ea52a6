//! Programs that name their arrays: every rank keeps a connection to its host's daemon, and hands over what it has
//! by saying where it lies. The host's image is made when all ranks of the host have done so.
//!
//! A rank waits for the answer while its arrays are read out of its memory, so that what is read is what it had at
//! that moment. When a rank's connection ends, what the ranks of its host had begun to hand over is forgotten.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::{SyncSender, sync_channel};

use serde::{Deserialize, Serialize};

use super::control::{Question, Reply, question};
use super::network::Network;
use super::{Input, told};
use crate::charter::{Generation, Reached};
use crate::image::{Array, Rank, Table, padded};
use crate::shelf::Stored;

/// Images of other hosts, while a program on other ranks looks for its arrays in them.
const FETCHED: &str = "fetched";

/// Most ranks on a host.
pub(super) const RANKS_MAX: u32 = 4_096;

/// Where a rank has an array.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// In its memory, at this address.
    Address(u64),
    /// In a memory file of its own with this descriptor, from its begin.
    Descriptor(i32),
}

/// An array that a rank hands over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offered {
    /// Its name, type and shape.
    pub array: Array,
    /// Where the rank has it.
    pub place: Place,
}

/// A rank as its connection knows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Joined {
    pub(super) rank: u32,
    pub(super) ranks: u32,
    /// Ranks of the program on this host.
    pub(super) here: u32,
    pub(super) process: i32,
}

/// What a program goes on from.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) generation: Generation,
    pub(super) reached: Reached,
    pub(super) directory: PathBuf,
}

/// What goes to each rank that asks what to go on from.
type Begun = Result<Option<Found>, String>;

#[derive(Default)]
struct Gathering {
    reached: Reached,
    parts: BTreeMap<u32, (Rank, Vec<u8>)>,
    beginning: BTreeMap<u32, SyncSender<Begun>>,
}

/// What ranks of this host have handed over, until all have.
pub(super) struct Programs {
    directory: PathBuf,
    gathering: Mutex<Gathering>,
    /// One at a time looks into the images of other hosts.
    fetching: Mutex<()>,
}

impl Programs {
    pub(super) fn new(directory: &Path) -> io::Result<Self> {
        match fs::remove_dir_all(directory.join(FETCHED)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let directory = directory.to_owned();
        Ok(Self { directory, gathering: Mutex::default(), fetching: Mutex::default() })
    }

    /// A rank's connection has ended: the program is gone, or ends.
    pub(super) fn left(&self, inputs: &SyncSender<Input>) {
        let mut gathering = self.gathering.lock().expect("no thread panics under this lock");
        *gathering = Gathering::default();
        drop(gathering);
        // The daemon may be at its end.
        drop(inputs.send(Input::ProgramLeft));
    }

    /// Takes a rank's arrays; with those of the last rank of the host, all are handed over.
    pub(super) fn hand_over(
        &self,
        joined: Joined,
        reached: Reached,
        arrays: Vec<Offered>,
        inputs: &SyncSender<Input>,
    ) -> Result<u64, String> {
        let octets = read_arrays(joined.process, &arrays)?;
        let bytes = octets.len() as u64;
        let arrays = arrays.into_iter().map(|offered| offered.array).collect();
        let part = Rank { rank: joined.rank, ranks: joined.ranks, arrays };
        let mut gathering = self.gathering.lock().expect("no thread panics under this lock");
        if gathering.reached != reached {
            gathering.parts.clear();
            gathering.reached = reached;
        }
        gathering.parts.insert(joined.rank, (part, octets));
        if gathering.parts.len() < joined.here as usize {
            return Ok(bytes);
        }
        let parts = std::mem::take(&mut gathering.parts);
        drop(gathering);
        let image = assembled(parts).map_err(told)?;
        match question(Question::Handed { reached, image }, inputs).map_err(told)? {
            Reply::Refused(text) => Err(text),
            _ => Ok(bytes),
        }
    }

    /// What the program goes on from: asked once for all ranks of this host, which are all told the same.
    pub(super) fn begin(&self, joined: Joined, inputs: &SyncSender<Input>) -> Begun {
        let (sender, answer) = sync_channel(1);
        let mut gathering = self.gathering.lock().expect("no thread panics under this lock");
        gathering.beginning.insert(joined.rank, sender);
        let is_last = gathering.beginning.len() >= joined.here as usize;
        let all = if is_last { std::mem::take(&mut gathering.beginning) } else { BTreeMap::new() };
        drop(gathering);
        if is_last {
            let begun = self.newest(inputs);
            for waiting in all.into_values() {
                // A rank that is gone needs no answer.
                drop(waiting.send(begun.clone()));
            }
        }
        answer.recv().unwrap_or_else(|_| Err("a rank of this host has ended".to_owned()))
    }

    fn newest(&self, inputs: &SyncSender<Input>) -> Begun {
        drop(fs::remove_dir_all(self.directory.join(FETCHED)));
        let asked = question(Question::Begin, inputs).map_err(told)?;
        let (directory, reached) = match asked {
            Reply::Begun(None) => return Ok(None),
            Reply::Begun(Some(Ok(found))) => found,
            Reply::Begun(Some(Err(text))) | Reply::Refused(text) => return Err(text),
            _ => return Err("the daemon has answered something else".to_owned()),
        };
        let stored = Stored::open(&directory).map_err(told)?;
        let generation = stored.manifest().generation;
        // Nothing is read that was not compared with its checksum.
        if let Err(error) = stored.read_image(|_| Ok(())) {
            if error.kind() == io::ErrorKind::InvalidData {
                drop(inputs.send(Input::Damaged(generation)));
                let told = told(error);
                return Err(format!("{told}: generation {} is rebuilt, ask again", generation.0));
            }
            return Err(told(error));
        }
        Ok(Some(Found { generation, reached, directory }))
    }

    /// The images of all hosts, in files of this host, by place.
    pub(super) fn all_images(
        &self,
        found: &Found,
        network: &Network,
    ) -> Result<Vec<PathBuf>, String> {
        let one_at_a_time = self.fetching.lock().expect("no thread panics under this lock");
        let directory = self.directory.join(FETCHED).join(found.generation.0.to_string());
        crate::shelf::create_directory(&directory).map_err(told)?;
        let image = |place: usize| directory.join(place.to_string());
        let mut paths = Vec::new();
        for place in 0..network.hosts() {
            if place == network.me() {
                paths.push(found.directory.join("image"));
                continue;
            }
            if !image(place).exists() {
                let beside = directory.join(format!("{place}.unfinished"));
                network.fetch(place, found.generation, &beside)?;
                fs::rename(&beside, image(place)).map_err(told)?;
            }
            paths.push(image(place));
        }
        drop(one_at_a_time);
        Ok(paths)
    }
}

/// Sends a stored image, block by block, each compared with its checksum.
pub(super) fn give_image(
    directory: &Path,
    mut send: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let stored = Stored::open(directory).map_err(io::Error::other)?;
    let len = stored.geometry().lens()[stored.manifest().place];
    send(&len.to_le_bytes())?;
    stored.read_image(&mut send)
}

/// A file that nobody else can read.
pub(super) fn private_file(path: &Path) -> io::Result<File> {
    fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

fn read_arrays(process: i32, arrays: &[Offered]) -> Result<Vec<u8>, String> {
    let mut octets = Vec::new();
    let mut memory = None;
    for Offered { array, place } in arrays {
        let name = &array.name;
        let failed = |error: io::Error| format!("cannot read the array `{name}`: {error}");
        let bytes = array.bytes().ok_or_else(|| format!("the array `{name}` is too large"))?;
        let begin = octets.len();
        let end = begin + usize::try_from(padded(bytes)).map_err(told)?;
        octets.resize(end, 0);
        let target = &mut octets[begin..begin + usize::try_from(bytes).map_err(told)?];
        match place {
            Place::Address(address) => {
                if memory.is_none() {
                    memory = Some(File::open(format!("/proc/{process}/mem")).map_err(failed)?);
                }
                let memory = memory.as_ref().expect("it was opened just now");
                memory.read_exact_at(target, *address).map_err(failed)?;
            }
            Place::Descriptor(descriptor) => {
                let file = File::open(format!("/proc/{process}/fd/{descriptor}"));
                file.and_then(|file| file.read_exact_at(target, 0)).map_err(failed)?;
            }
        }
    }
    Ok(octets)
}

fn assembled(parts: BTreeMap<u32, (Rank, Vec<u8>)>) -> Result<Vec<u8>, crate::image::ImageError> {
    let (ranks, octets): (Vec<Rank>, Vec<Vec<u8>>) = parts.into_values().unzip();
    let mut image = Table { ranks }.octets()?;
    image.reserve_exact(octets.iter().map(Vec::len).sum());
    octets.into_iter().for_each(|octets| image.extend_from_slice(&octets));
    Ok(image)
}
