//! One group: its line, its checkpoints, the rebuild of one host, and whether what lies there is right.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use meikyo_checkpoint::charter::Generation;
use meikyo_checkpoint::coding;
use meikyo_checkpoint::exchange::ExchangeOptions;
use meikyo_checkpoint::geometry::{BLOCK_DEFAULT, Geometry};
use meikyo_checkpoint::increment::{self, GRAIN_BYTES, Hash};
use meikyo_checkpoint::layout::{Layout, Scheme, Shard};
use meikyo_checkpoint::link::{Greeting, Meeting, Purpose, STALL, meet};
use meikyo_checkpoint::model::{self, Load, Machine};
use meikyo_checkpoint::pace::Pace;
use meikyo_checkpoint::schedule::{Job, Schedule};
use meikyo_checkpoint::shelf::{self, Changes, Done, Shelved, Stored};
use meikyo_checkpoint::tls::JobKey;
use meikyo_console::failure::Failure;
use meikyo_console::output::real;
use meikyo_spaces::Lan;
use meikyo_units::{BitsPerSecond, Bytes, Nanos};
use serde::Serialize;

use super::line::{self, address};

/// The host that is lost.
const LOST: usize = 1;

/// The generation that is written whole, and the one that is made of it.
const WHOLE: Generation = Generation(1);
const MADE_OF_IT: Generation = Generation(2);

/// One page of so many changes between the two.
const CHANGED_ONE_IN: usize = 10;

/// Octets that a link carries beside a program's are part of what the line was measured with; what is
/// left per block is waking four threads.
const STEP: Nanos = Nanos::from_micros(200);

/// Meeting, and syncing and naming what was written.
const COMMIT: Nanos = Nanos::from_millis(25);

/// A group that is measured.
#[derive(Debug)]
pub(super) struct Case<'a> {
    pub(super) hosts: usize,
    pub(super) scheme: Scheme,
    pub(super) rate: BitsPerSecond,
    pub(super) links: usize,
    pub(super) bytes: Bytes,
    pub(super) disk: Option<BitsPerSecond>,
    pub(super) directory: &'a Path,
    pub(super) rounds: u32,
}

/// What was measured: medians of the rounds.
#[derive(Debug, Serialize)]
pub(super) struct Figures {
    pub(super) scheme: String,
    pub(super) hosts: usize,
    pub(super) links: usize,
    pub(super) link: BitsPerSecond,
    pub(super) bytes_per_host: u64,
    pub(super) encode_bytes_per_s_per_host: f64,
    pub(super) line_bytes_per_s: f64,
    pub(super) rebuild_bytes_per_s: f64,
    pub(super) sent_bytes: u64,
    pub(super) cpu_s_per_gb: f64,
    pub(super) model_s: f64,
    pub(super) measured_s: f64,
    pub(super) rebuild_s: f64,
    /// Octets of the pages that changed in the image of a host until the next checkpoint, and what it sent for them.
    pub(super) dirty_bytes: u64,
    pub(super) delta_sent_bytes: u64,
    pub(super) delta_s: f64,
}

struct Group<'a> {
    case: &'a Case<'a>,
    hosts: Lan,
    geometry: Geometry,
    images: Vec<Vec<u8>>,
    /// The hashes of the blocks of the images that were written whole.
    hashes: Vec<Vec<Hash>>,
    generation: Generation,
    key: JobKey,
    home: tempfile::TempDir,
}

/// The namespaces of a group; all of them go when the process lets go of them.
fn network(case: &Case<'_>) -> Result<Lan, Failure> {
    Lan::make(case.hosts, case.links, Some(case.rate))
        .map_err(|error| Failure::new(error).hint("the kernel needs veth, bridge and tbf"))
}

/// Measures a group.
pub(super) fn measure(case: &Case<'_>) -> Result<Figures, Failure> {
    let layout = Layout::new(case.scheme, case.hosts)?;
    let lens = vec![case.bytes.get(); case.hosts];
    let len = usize::try_from(case.bytes.get())?;
    let images: Vec<Vec<u8>> = (0..case.hosts).map(|host| image(host, len)).collect();
    let blocks =
        |image: &Vec<u8>| image.chunks(BLOCK_DEFAULT as usize).map(increment::hash_of).collect();
    let mut group = Group {
        case,
        generation: WHOLE,
        hashes: images.iter().map(blocks).collect(),
        hosts: network(case)?,
        geometry: Geometry::new(layout, BLOCK_DEFAULT, lens)?,
        images,
        key: JobKey::from_pkcs8(&JobKey::generate()?)?,
        home: tempfile::tempdir_in(case.directory)?,
    };
    let (mut lines, mut saves, mut rebuilds, mut cpus) = (vec![], vec![], vec![], vec![]);
    let (mut sent, mut rebuilt, mut dirty, mut delta_sent) = (0, 0, 0, 0);
    let mut deltas = Vec::new();
    for _ in 0..case.rounds {
        lines.push(line::measure(&group.hosts, case.hosts, case.links, len)?);
        let cpu = cpu_seconds();
        let (seconds, done) = group.run(&Job::Encode)?;
        saves.push(seconds);
        sent = done.iter().map(|done| done.moved.sent.get()).max().unwrap_or(0);
        let all_sent: u64 = done.iter().map(|done| done.moved.sent.get()).sum();
        cpus.push((cpu_seconds() - cpu) / (real(all_sent) / 1e9));
        group.check(&done)?;
        fs::remove_dir_all(group.directory(LOST))?;
        let (seconds, again) = group.run(&Job::Rebuild([LOST].into()))?;
        rebuilds.push(seconds);
        rebuilt = again[LOST].moved.received.get();
        group.check(&done)?;
        dirty = group.change();
        group.generation = MADE_OF_IT;
        let (seconds, done) = group.run(&Job::Update)?;
        deltas.push(seconds);
        delta_sent = done.iter().map(|done| done.moved.sent.get()).max().unwrap_or(0);
        group.check(&done)?;
        group.change();
        group.generation = WHOLE;
        for host in 0..case.hosts {
            fs::remove_dir_all(group.home.path().join(host.to_string()))?;
        }
    }
    let (line, measured_s, rebuild_s) = (median(lines), median(saves), median(rebuilds));
    Ok(Figures {
        scheme: case.scheme.to_string(),
        hosts: case.hosts,
        links: case.links,
        link: case.rate,
        bytes_per_host: case.bytes.get(),
        encode_bytes_per_s_per_host: real(case.bytes.get()) / measured_s,
        line_bytes_per_s: line,
        rebuild_bytes_per_s: real(rebuilt) / rebuild_s,
        sent_bytes: sent,
        cpu_s_per_gb: median(cpus),
        model_s: predicted(case, &layout, line).as_secs_f64(),
        measured_s,
        rebuild_s,
        dirty_bytes: dirty,
        delta_sent_bytes: delta_sent,
        delta_s: median(deltas),
    })
}

/// What the model says, with the line as it was measured.
fn predicted(case: &Case<'_>, layout: &Layout, line: f64) -> Nanos {
    let gigabytes = |count: u64| BitsPerSecond::new(count * 8_000_000_000);
    let per_link = line / real(case.links as u64);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate of a link, far below 2^53"
    )]
    let link = BitsPerSecond::new((per_link * 8.0) as u64);
    let machine = Machine {
        link,
        links: case.links as u64,
        disk: case.disk.unwrap_or_else(|| gigabytes(4)),
        xor: gigabytes(5),
        code: gigabytes(2),
        memory: gigabytes(5),
        step: STEP,
        quiesce: Nanos::ZERO,
        commit: COMMIT,
    };
    let block = Bytes::new(BLOCK_DEFAULT.into());
    let load = Load { image: case.bytes, changed: case.bytes, block };
    model::checkpoint(layout, &machine, &load).total
}

impl Group<'_> {
    fn directory(&self, host: usize) -> PathBuf {
        self.directory_of(host, self.generation)
    }

    fn directory_of(&self, host: usize, generation: Generation) -> PathBuf {
        self.home.path().join(host.to_string()).join(generation.0.to_string())
    }

    /// Changes an octet in one page of [`CHANGED_ONE_IN`] of every image, not the same pages on all hosts, or changes it back;
    /// octets of the pages of a host.
    fn change(&mut self) -> u64 {
        let mut most = 0;
        for (host, image) in self.images.iter_mut().enumerate() {
            let pages = image.chunks_mut(GRAIN_BYTES).skip(host).step_by(CHANGED_ONE_IN);
            let changed = pages.map(|page| {
                page[page.len() / 2] ^= 0x5a;
                page.len() as u64
            });
            most = changed.sum::<u64>().max(most);
        }
        most
    }

    /// Carries out a job on all hosts at once; the seconds until the last is done.
    fn run(&self, job: &Job) -> Result<(f64, Vec<Done>), Failure> {
        let count = self.case.hosts;
        let (purpose, port) = match job {
            Job::Encode | Job::Update => (Purpose::Save, 7_002),
            Job::Rebuild(_) | Job::RebuildOne { .. } => (Purpose::Rebuild, 7_003),
        };
        let schedule = Schedule::new(self.geometry.clone(), job.clone())?;
        let greeting = Greeting::new(purpose, 1, self.generation);
        let addresses: Vec<Vec<SocketAddr>> = (0..count)
            .map(|host| (0..self.case.links).map(|link| address(host, link, port)).collect())
            .collect();
        let patience = Duration::from_secs(30);
        let (key, stall) = (&self.key, STALL);
        let meeting = Meeting { key, addresses: &addresses, greeting, patience, stall };
        let barrier = Barrier::new(count);
        let outcomes = thread::scope(|scope| {
            let threads: Vec<_> = (0..count)
                .map(|host| {
                    let (barrier, meeting, schedule) = (&barrier, &meeting, &schedule);
                    scope.spawn(move || self.host(host, meeting, schedule, barrier))
                })
                .collect();
            threads.into_iter().map(|host| host.join().expect("no host panics")).collect()
        });
        let outcomes: Result<Vec<(f64, Done)>, Failure> = outcomes;
        let outcomes = outcomes?;
        let slowest = outcomes.iter().map(|(seconds, _)| *seconds).fold(0.0, f64::max);
        Ok((slowest, outcomes.into_iter().map(|(_, done)| done).collect()))
    }

    fn host(
        &self,
        place: usize,
        meeting: &Meeting<'_>,
        schedule: &Schedule,
        barrier: &Barrier,
    ) -> Result<(f64, Done), Failure> {
        let entered = self.hosts.enter(place);
        let listeners: std::io::Result<Vec<TcpListener>> =
            meeting.addresses[place].iter().map(TcpListener::bind).collect();
        // All wait for all, whatever became of them.
        barrier.wait();
        entered?;
        let begin = Instant::now();
        let links = meet(meeting, &listeners?, schedule, place)?;
        let pace = self.case.disk.map_or_else(Pace::unlimited, Pace::new);
        let shelved = Shelved {
            directory: &self.directory(place),
            generation: self.generation,
            version: 1,
            place,
            pace: &pace,
            options: ExchangeOptions::DEFAULT,
        };
        let image = &self.images[place];
        let done = match schedule.job() {
            Job::Encode => shelf::save(&shelved, schedule, image, links)?,
            Job::Update => {
                let base = Stored::open(&self.directory_of(place, WHOLE))?;
                let changes = Changes::find(&base, Some(&self.hashes[place]), image, &pace)?;
                shelf::update(&shelved, schedule, image, (&base, &changes), links)?
            }
            Job::Rebuild(_) | Job::RebuildOne { .. } => shelf::rebuild(&shelved, schedule, links)?,
        };
        Ok((begin.elapsed().as_secs_f64(), done))
    }

    /// Compares every image, every block's checksum and every parity block with what they must be.
    fn check(&self, done: &[Done]) -> Result<(), Failure> {
        let layout = self.geometry.layout();
        let mut parities = Vec::new();
        for (place, done) in done.iter().enumerate() {
            let directory = self.directory(place);
            let stored = Stored::open(&directory)?;
            let is_right = stored.checksum() == done.manifest
                && stored.damages().is_empty()
                && fs::read(directory.join("image"))? == self.images[place];
            if !is_right {
                return Err(Failure::new(format!("host {place} does not have what it had")));
            }
            parities.push(fs::read(directory.join("parity"))?);
        }
        for stripe in 0..self.geometry.stripes() {
            for word in 0..self.case.hosts {
                let len = self.geometry.word_len(stripe, word);
                if len == 0 {
                    continue;
                }
                let data: Vec<Vec<u8>> = (0..layout.data())
                    .map(|at| {
                        let shard = Shard::Data(at);
                        let image = &self.images[layout.host_of(word, shard)];
                        let begin = usize::try_from(self.geometry.offset(stripe, shard));
                        let begin = begin.unwrap_or(image.len()).min(image.len());
                        let end = image.len().min(begin + BLOCK_DEFAULT as usize);
                        let mut block = image[begin..end].to_vec();
                        block.resize(len, 0);
                        block
                    })
                    .collect();
                let views: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
                for (at, parity) in coding::encode(layout, &views)?.into_iter().enumerate() {
                    let shard = Shard::Parity(at);
                    let begin = usize::try_from(self.geometry.offset(stripe, shard))?;
                    let stored = &parities[layout.host_of(word, shard)];
                    if stored.get(begin..begin + len) != Some(&parity[..]) {
                        let text = format!("parity of stripe {stripe}, word {word} is wrong");
                        return Err(Failure::new(text));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Octets that no block repeats.
pub(super) fn image(host: usize, len: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(host as u64 + 1);
    let mut octets = Vec::with_capacity(len + 8);
    while octets.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        octets.extend_from_slice(&state.to_le_bytes());
    }
    octets.truncate(len);
    octets
}

/// Processor seconds of this process so far, the kernel's for it included.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let nanos = i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    Nanos::new(u64::try_from(nanos).expect("a process does not run for centuries")).as_secs_f64()
}

pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
