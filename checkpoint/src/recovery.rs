//! What can be had back from hosts that survived, whether or not they are a majority.
//!
//! Reading needs no majority: a generation that any survivor knows to be committed is whole, since a
//! commit is only proposed once every host has written. This is what a restart asks when too many hosts
//! are gone for the group to agree on anything.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::charter::{Charter, Generation, Reached};
use crate::layout::Layout;

/// What is on a host's disk of a generation, whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// Octets of the image of each host of the group.
    pub lens: Vec<u64>,
    /// The checksum of this host's manifest.
    pub manifest: u32,
}

/// What one surviving host knows and has.
#[derive(Debug, Clone)]
pub struct Survivor {
    /// The place of the host in its group.
    pub place: usize,
    /// The charter that it accepted last.
    pub charter: Charter,
    /// What is whole on its disk.
    pub prepared: BTreeMap<Generation, Prepared>,
}

/// What to restart from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restart {
    /// This generation is whole, or is made whole by parity.
    From {
        /// The generation that can be had back.
        generation: Generation,
        /// How far the program had come.
        reached: Reached,
        /// Whether a commit of it was found, or only all its parts.
        is_committed: bool,
        /// The places that have to be rebuilt.
        rebuild: Vec<usize>,
    },
    /// Nothing was ever committed.
    Nothing,
    /// There are generations, and of each too much is lost; with the places that are missing of the newest.
    Lost {
        /// The newest committed one.
        generation: Generation,
        /// The places that do not have it.
        missing: Vec<usize>,
    },
}

/// Chooses what to restart from: the greatest generation with a commit on a survivor whose parts are there
/// or can be rebuilt; before it, one that is still open and of which every survivor but those that parity
/// makes up for has its part.
pub fn choose(layout: &Layout, survivors: &[Survivor]) -> Restart {
    let mut commits = BTreeMap::new();
    for survivor in survivors {
        for commit in &survivor.charter.commits {
            commits.insert(commit.generation, (commit.reached, commit.manifests.clone()));
        }
    }
    let lacking = |generation: Generation, manifests: Option<&[Option<u32>]>| -> Vec<usize> {
        let has = |place: usize| {
            survivors.iter().filter(|survivor| survivor.place == place).any(|survivor| {
                let agreed = manifests.and_then(|manifests| manifests[place]);
                let prepared = survivor.prepared.get(&generation);
                prepared.is_some_and(|whole| agreed.is_none_or(|agreed| agreed == whole.manifest))
            })
        };
        (0..layout.hosts()).filter(|&place| !has(place)).collect()
    };
    let can_do = |missing: &[usize]| {
        missing.len() < layout.hosts()
            && layout.survives(&missing.iter().copied().collect::<BTreeSet<_>>())
    };
    let newest = commits.last_key_value().map(|(generation, _)| *generation);
    // The newest charter says whether a generation is still open; an older one may not know its abort.
    let opened = survivors
        .iter()
        .map(|survivor| &survivor.charter)
        .max_by_key(|charter| (charter.last, charter.open.is_none()))
        .and_then(|charter| charter.open)
        .filter(|open| Some(open.generation) > newest);
    if let Some(open) = opened {
        let rebuild = lacking(open.generation, None);
        if can_do(&rebuild) {
            let (generation, reached) = (open.generation, open.reached);
            return Restart::From { generation, reached, is_committed: false, rebuild };
        }
    }
    for (&generation, (reached, manifests)) in commits.iter().rev() {
        let rebuild = lacking(generation, Some(manifests));
        if can_do(&rebuild) {
            let (reached, is_committed) = (*reached, true);
            return Restart::From { generation, reached, is_committed, rebuild };
        }
    }
    match commits.last_key_value() {
        None => Restart::Nothing,
        Some((&generation, (_, manifests))) => {
            Restart::Lost { generation, missing: lacking(generation, Some(manifests)) }
        }
    }
}
