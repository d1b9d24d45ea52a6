//! What is asked of heat: sums over hosts and CPUs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use meikyo_recording::ReadError;
use meikyo_units::glob;

use super::TILES;
use super::file::{Chunk, read_body, rows};

/// What is wanted.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    /// The first second, since the epoch.
    pub(crate) from_s: i64,
    /// The second behind the last one.
    pub(crate) until_s: i64,
    /// Patterns of hosts of which one fits; every host when there are none.
    pub(crate) hosts: Vec<String>,
    /// CPUs; every one when there are none.
    pub(crate) cpus: BTreeSet<u32>,
    /// Whether seconds are told of each CPU by itself.
    pub(crate) by_core: bool,
}

/// The samples of one CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CoreSums {
    pub(crate) host: String,
    pub(crate) cpu: u32,
    pub(crate) samples: u64,
    /// Samples of each second, where they were asked for.
    pub(crate) seconds: Vec<u32>,
}

/// Samples of what was selected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Sums {
    /// Samples of each second.
    pub(crate) seconds: Vec<u32>,
    /// Samples of each tile, second after second.
    pub(crate) tiles: Vec<u32>,
    /// What they are the sums of, by host and CPU.
    pub(crate) cores: Vec<CoreSums>,
}

/// Numbers of CPUs by second in one answer at most.
pub(super) const CELLS_MAX: usize = 4_000_000;

/// Why nothing can be added up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SumsError {
    /// There are more numbers than an answer takes.
    #[error(
        "{found} numbers are asked for, of each CPU and second, and {CELLS_MAX} are the most of one \
         answer: ask for fewer hosts or less time"
    )]
    TooMany {
        /// How many there would be at least.
        found: usize,
    },
    /// There are more samples than are read.
    #[error("there are more than {most} samples in that time: ask for less time or fewer hosts")]
    TooManySamples {
        /// How many are read at most.
        most: usize,
    },
    /// The recording cannot be read.
    #[error(transparent)]
    Recording(ReadError),
    /// A file cannot be read.
    #[error("cannot read `{path}`")]
    System {
        /// File of sums below the recording.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The chunks of one file that can hold what is wanted.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    /// The number of each of the file's hosts among all.
    pub(super) hosts: Arc<[u32]>,
    pub(super) chunks: Vec<Chunk>,
}

/// Adds up what is selected; `hosts` are the names of all by their numbers.
///
/// # Errors
/// When a file cannot be read, a chunk is damaged, or there are too many numbers.
///
/// # Panics
/// When the selection ends before it begins.
pub(super) fn read(
    hosts: &[String],
    places: &[Place],
    selection: &Selection,
) -> Result<Sums, SumsError> {
    let Selection { from_s, until_s, hosts: patterns, cpus, by_core } = selection;
    let span = usize::try_from(until_s - from_s).expect("it does not end before it begins");
    let fits = |host: &String| {
        patterns.is_empty() || patterns.iter().any(|pattern| glob::matches(pattern, host))
    };
    let is_wanted: Vec<bool> = hosts.iter().map(fits).collect();
    let mut sums = Sums { seconds: vec![0; span], tiles: vec![0; span * TILES], cores: Vec::new() };
    let mut cores: BTreeMap<(u32, u32), CoreSums> = BTreeMap::new();
    let mut body = Vec::new();
    for place in places {
        let file = match File::open(&place.path) {
            Ok(file) => file,
            // Its segment was deleted meanwhile, since it is too old.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(source) => return Err(SumsError::System { path: place.path.clone(), source }),
        };
        for chunk in &place.chunks {
            read_body(&file, chunk, &mut body)
                .map_err(|source| SumsError::System { path: place.path.clone(), source })?;
            if *by_core && cores.len() * span > CELLS_MAX {
                return Err(SumsError::TooMany { found: cores.len() * span });
            }
            for row in rows(&body) {
                let host = usize::try_from(row.host).ok().and_then(|at| place.hosts.get(at));
                let Some(&host) = host else { continue };
                let is_host = usize::try_from(host).is_ok_and(|at| is_wanted[at]);
                let at = usize::try_from(row.second - from_s).ok().filter(|at| *at < span);
                let Some(at) = at.filter(|_| is_host) else { continue };
                if !cpus.is_empty() && !cpus.contains(&row.cpu) {
                    continue;
                }
                sums.seconds[at] = sums.seconds[at].saturating_add(row.samples);
                for (sum, tile) in sums.tiles[at * TILES..].iter_mut().zip(row.tiles) {
                    *sum = sum.saturating_add((*tile).into());
                }
                let core = cores.entry((host, row.cpu)).or_insert_with(|| CoreSums {
                    host: String::new(),
                    cpu: row.cpu,
                    samples: 0,
                    seconds: vec![0; if *by_core { span } else { 0 }],
                });
                core.samples += u64::from(row.samples);
                if *by_core {
                    core.seconds[at] = core.seconds[at].saturating_add(row.samples);
                }
            }
        }
    }
    if *by_core && cores.len() * span > CELLS_MAX {
        return Err(SumsError::TooMany { found: cores.len() * span });
    }
    let named = cores.into_iter().map(|((host, _), core)| {
        let at = usize::try_from(host).expect("it was looked up above");
        CoreSums { host: hosts[at].clone(), ..core }
    });
    sums.cores = named.collect();
    sums.cores.sort_by(|a, b| (&a.host, a.cpu).cmp(&(&b.host, b.cpu)));
    Ok(sums)
}
