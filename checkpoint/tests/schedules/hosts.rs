//! One host of a virtual world: its member, its disk, and what it does for the member.

use std::collections::{BTreeMap, BTreeSet};

use meikyo_checkpoint::charter::{Charter, Commit, Generation, Incarnation};
use meikyo_checkpoint::coding;
use meikyo_checkpoint::detection::Patience;
use meikyo_checkpoint::geometry::Geometry;
use meikyo_checkpoint::journal::{Files, Journal};
use meikyo_checkpoint::layout::{Layout, Shard};
use meikyo_checkpoint::level::{Keep, Level};
use meikyo_checkpoint::manifest::Manifest;
use meikyo_checkpoint::member::{Member, MemberOptions, Message};
use meikyo_checkpoint::program::Program;
use meikyo_checkpoint::recovery::Prepared;
use meikyo_checkpoint::register::Vote;
use meikyo_units::{Nanos, SimTime};
use meikyo_worlds::{Disk, DiskError, Random};

pub(crate) const BLOCK: u32 = 64;

/// Slower than in the daemon, so that a history has fewer events.
pub(crate) const PATIENCE: Patience = Patience {
    period: Nanos::from_millis(400),
    timeout: Nanos::from_millis(400),
    suspicion: Nanos::from_millis(800),
};

/// What goes from host to host.
#[derive(Debug, Clone)]
pub(crate) enum Packet {
    Agreement(Message),
    /// The image of the sender, or what changed in it, for parity.
    Image(Generation, Vec<u8>),
    /// What has the receiver of this generation?
    Want(Generation),
    /// Image and parity of the sender.
    Part(Generation, Vec<u8>, Vec<u8>),
}

/// Killed in the middle of a write.
#[derive(Debug)]
pub(crate) enum Stopped {
    Killed,
    Disk,
}

/// The disk and the memory of a host, and after how many operations it is killed.
#[derive(Debug, Default)]
pub(crate) struct Storage {
    pub(crate) disk: Disk,
    /// It outlives the daemon, and goes with the power.
    memory: Disk,
    /// Generations that are kept in it.
    in_memory: BTreeSet<Generation>,
    pub(crate) kill_after: Option<u64>,
    pub(crate) operations: u64,
}

impl Storage {
    fn operation(&mut self) -> Result<(), Stopped> {
        self.operations += 1;
        match &mut self.kill_after {
            Some(0) => Err(Stopped::Killed),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn write(&mut self, name: &str, octets: &[u8]) -> Result<(), Stopped> {
        for piece in octets.chunks(octets.len().div_ceil(2).max(1)) {
            self.operation()?;
            self.of_mut(name).append(name, piece).map_err(|_| Stopped::Disk)?;
        }
        if octets.is_empty() {
            self.of_mut(name).append(name, &[]).map_err(|_| Stopped::Disk)?;
        }
        self.operation()?;
        self.of_mut(name).sync(name).map_err(|_| Stopped::Disk)
    }

    fn is_in_memory(&self, name: &str) -> bool {
        generation_of(name).is_some_and(|generation| self.in_memory.contains(&generation))
    }

    fn of(&self, name: &str) -> &Disk {
        if self.is_in_memory(name) { &self.memory } else { &self.disk }
    }

    fn of_mut(&mut self, name: &str) -> &mut Disk {
        if self.is_in_memory(name) { &mut self.memory } else { &mut self.disk }
    }

    /// A generation is about to be written on this level.
    pub(crate) fn put(&mut self, generation: Generation, level: Level) {
        if level == Level::Memory {
            self.in_memory.insert(generation);
        }
    }

    /// The power goes: memory is lost. The generations that were whole in it.
    pub(crate) fn cut_power(&mut self, random: &mut Random) -> Vec<Generation> {
        let whole = self.whole_in_memory();
        self.disk.cut_power(random);
        self.memory = Disk::new();
        whole
    }

    pub(crate) fn whole_in_memory(&self) -> Vec<Generation> {
        let is_whole = |generation: &Generation| self.manifest(*generation).is_some();
        self.in_memory.iter().copied().filter(is_whole).collect()
    }

    pub(crate) fn free(&mut self, generation: Generation) -> Result<(), Stopped> {
        for part in ["manifest", "image", "parity"] {
            let name = file(generation, part);
            if self.of(&name).read(&name).is_ok() {
                self.operation()?;
                self.of_mut(&name).remove(&name).map_err(|_| Stopped::Disk)?;
            }
        }
        Ok(())
    }

    /// The manifest of a generation that is whole. A manifest that was removed can be there again after a
    /// power cut, without what was removed after it.
    pub(crate) fn manifest(&self, generation: Generation) -> Option<(Manifest, Geometry, u32)> {
        let disk = self.of(&file(generation, "manifest"));
        let octets = disk.read(&file(generation, "manifest")).ok()?;
        let (manifest, geometry) = Manifest::read(octets).ok()?;
        disk.read(&file(generation, "image")).ok()?;
        disk.read(&file(generation, "parity")).ok()?;
        Some((manifest, geometry, Manifest::checksum(octets)))
    }

    pub(crate) fn part(&self, generation: Generation, part: &str) -> &[u8] {
        let name = file(generation, part);
        self.of(&name).read(&name).unwrap_or_default()
    }

    fn generations(&self) -> Vec<Generation> {
        let names = self.disk.names().chain(self.memory.names());
        let all: BTreeSet<Generation> = names.filter_map(generation_of).collect();
        all.into_iter().collect()
    }
}

impl Files for Storage {
    type Error = Stopped;

    fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>, Stopped> {
        Ok(self.disk.read(name).ok().map(<[u8]>::to_vec))
    }

    fn append(&mut self, name: &str, octets: &[u8]) -> Result<(), Stopped> {
        self.write(name, octets)
    }

    fn sync(&mut self, name: &str) -> Result<(), Stopped> {
        self.operation()?;
        self.of_mut(name).sync(name).map_err(|_| Stopped::Disk)
    }

    fn truncate(&mut self, name: &str, len: usize) -> Result<(), Stopped> {
        self.operation()?;
        match self.disk.truncate(name, len) {
            Ok(()) | Err(DiskError::Missing) => Ok(()),
            Err(DiskError::Full) => Err(Stopped::Disk),
        }
    }

    fn remove(&mut self, name: &str) -> Result<(), Stopped> {
        self.operation()?;
        match self.disk.remove(name) {
            Ok(()) | Err(DiskError::Missing) => Ok(()),
            Err(DiskError::Full) => Err(Stopped::Disk),
        }
    }
}

fn file(generation: Generation, part: &str) -> String {
    format!("{}/{part}", generation.0)
}

/// The generation that a file is of.
fn generation_of(name: &str) -> Option<Generation> {
    Some(Generation(name.split_once('/')?.0.parse().ok()?))
}

/// What a generation is written by: membership version, lengths of images, and what it is made of.
type Written = (u64, Vec<u64>, Option<Generation>);

/// Image and parity of hosts.
type Parts = BTreeMap<usize, [Vec<u8>; 2]>;

/// A daemon that runs.
#[derive(Debug)]
pub(crate) struct Daemon {
    pub(crate) member: Member,
    /// What its program has handed over.
    pub(crate) program: Program<(), Vec<u8>>,
    journal: Journal,
    /// Images of others that have come, by generation.
    images: BTreeMap<Generation, BTreeMap<usize, Vec<u8>>>,
    writing: BTreeMap<Generation, Written>,
    rebuilding: BTreeMap<Generation, (Commit, Parts)>,
}

#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) place: usize,
    pub(crate) layout: Layout,
    pub(crate) incarnation: Incarnation,
    pub(crate) keep: Keep,
    pub(crate) life: u64,
    pub(crate) storage: Storage,
    pub(crate) daemon: Option<Daemon>,
    /// It stands still until then.
    pub(crate) stopped_until: SimTime,
}

impl Host {
    /// Starts the daemon with what is on the disk; a founder's first vote is `founding`'s.
    pub(crate) fn start(
        &mut self,
        now: SimTime,
        life: u64,
        founding: Option<Charter>,
    ) -> Result<(), Stopped> {
        self.life = life;
        let (mut journal, mut vote) = Journal::open(&mut self.storage)?;
        if let Some(founding) = founding {
            let first = Vote::first(founding);
            journal.keep(&mut self.storage, &first)?;
            vote = Some(first);
        }
        let mut prepared = BTreeMap::new();
        for generation in self.storage.generations() {
            match self.storage.manifest(generation) {
                Some((Manifest { lens, .. }, _, manifest)) => {
                    // The daemon may have been killed between a write and its sync.
                    for part in ["image", "parity", "manifest"] {
                        self.storage.sync(&file(generation, part))?;
                    }
                    prepared.insert(generation, Prepared { lens, manifest });
                }
                None => self.storage.free(generation)?,
            }
        }
        let options = MemberOptions {
            place: self.place,
            layout: self.layout,
            incarnation: self.incarnation,
            life,
            patience: PATIENCE,
            save_timeout: Nanos::from_millis(2_500),
            keep: self.keep,
            is_founding: false,
        };
        self.daemon = Some(Daemon {
            member: Member::new(now, options, vote, prepared),
            program: Program::default(),
            journal,
            images: BTreeMap::new(),
            writing: BTreeMap::new(),
            rebuilding: BTreeMap::new(),
        });
        Ok(())
    }

    pub(crate) fn member(&mut self) -> Option<&mut Member> {
        self.daemon.as_mut().map(|daemon| &mut daemon.member)
    }

    pub(crate) fn keep(&mut self, vote: &Vote) -> Result<(), Stopped> {
        let daemon = self.daemon.as_mut().expect("a task is of a daemon that runs");
        match daemon.journal.keep(&mut self.storage, vote) {
            // A daemon that cannot keep its vote ends, before it tells anybody.
            Err(Stopped::Disk) => Err(Stopped::Killed),
            other => other,
        }
    }

    /// What other hosts are told of an image: all of it, or what changed since another one that is whole here.
    pub(crate) fn told_of(&self, base: Option<Generation>, image: &[u8]) -> Option<Vec<u8>> {
        let Some(base) = base else { return Some(image.to_vec()) };
        self.storage.manifest(base)?;
        let old = self.storage.part(base, "image");
        assert_eq!(old.len(), image.len(), "a generation is made of one with the same lengths");
        Some(old.iter().zip(image).map(|(old, new)| old ^ new).collect())
    }

    /// Writes the image, and parity if all others' images are there.
    pub(crate) fn write(
        &mut self,
        generation: Generation,
        written_by: Written,
        image: &[u8],
        told: Vec<u8>,
    ) -> Result<(), Stopped> {
        let written = self.storage.write(&file(generation, "image"), image);
        let daemon = self.daemon.as_mut().expect("a task is of a daemon that runs");
        if let Err(Stopped::Disk) = written {
            daemon.member.failed(generation, "it was written too slowly, or has no room");
            return Ok(());
        }
        written?;
        daemon.writing.insert(generation, written_by);
        daemon.images.entry(generation).or_default().insert(self.place, told);
        self.finish_writing(generation)
    }

    pub(crate) fn image_came(
        &mut self,
        generation: Generation,
        from: usize,
        image: Vec<u8>,
    ) -> Result<(), Stopped> {
        let Some(daemon) = &mut self.daemon else { return Ok(()) };
        daemon.images.entry(generation).or_default().insert(from, image);
        self.finish_writing(generation)
    }

    fn finish_writing(&mut self, generation: Generation) -> Result<(), Stopped> {
        let daemon = self.daemon.as_mut().expect("it was there just now");
        let Some((version, lens, base)) = daemon.writing.get(&generation).cloned() else {
            return Ok(());
        };
        let images = &daemon.images[&generation];
        if images.len() < lens.len() {
            return Ok(());
        }
        let images: Vec<Vec<u8>> = images.values().cloned().collect();
        // An image of another life of its host is not the one that was agreed on.
        if images.iter().zip(&lens).any(|(image, len)| image.len() as u64 != *len) {
            return Ok(());
        }
        daemon.writing.remove(&generation);
        daemon.images.remove(&generation);
        let geometry = Geometry::new(self.layout, BLOCK, lens).unwrap();
        let mut parity = parity_of(&geometry, self.place, &images);
        if let Some(base) = base {
            let old = self.storage.part(base, "parity");
            if self.storage.manifest(base).is_none() {
                self.member().unwrap().failed(generation, "what it is made of is gone");
                return Ok(());
            }
            parity.iter_mut().zip(old).for_each(|(new, old)| *new ^= old);
        }
        let image = self.storage.part(generation, "image").to_vec();
        match self.store(generation, version, &geometry, &image, &parity, false) {
            Ok(prepared) => {
                self.member().unwrap().prepared(generation, prepared.manifest);
                Ok(())
            }
            Err(Stopped::Disk) => {
                self.member().unwrap().failed(generation, "there is no room");
                Ok(())
            }
            Err(killed) => Err(killed),
        }
    }

    /// Writes parity and manifest, and the image where that is not there yet.
    fn store(
        &mut self,
        generation: Generation,
        version: u64,
        geometry: &Geometry,
        image: &[u8],
        parity: &[u8],
        with_image: bool,
    ) -> Result<Prepared, Stopped> {
        if with_image {
            self.storage.free(generation)?;
            self.storage.write(&file(generation, "image"), image)?;
        }
        self.storage.write(&file(generation, "parity"), parity)?;
        let block = usize::try_from(BLOCK).unwrap();
        let mut parity_checksums = Vec::new();
        let mut at = 0;
        for stripe in 0..geometry.stripes() {
            for shard in (0..self.layout.parity()).map(Shard::Parity) {
                let len = geometry.len_of(self.place, stripe, shard);
                parity_checksums.push(crc32fast::hash(&parity[at..at + len]));
                at += len;
            }
        }
        let manifest = Manifest {
            generation,
            version,
            place: self.place,
            scheme: self.layout.scheme(),
            block: BLOCK,
            lens: geometry.lens().to_vec(),
            image: image.chunks(block).map(crc32fast::hash).collect(),
            parity: parity_checksums,
        };
        let octets = manifest.octets();
        self.storage.write(&file(generation, "manifest"), &octets)?;
        Ok(Prepared { lens: manifest.lens, manifest: Manifest::checksum(&octets) })
    }

    pub(crate) fn free(&mut self, generation: Generation) -> Result<(), Stopped> {
        let daemon = self.daemon.as_mut().expect("a task is of a daemon that runs");
        daemon.images.remove(&generation);
        daemon.writing.remove(&generation);
        daemon.program.freed(generation);
        daemon.rebuilding.remove(&generation);
        self.storage.free(generation)
    }

    pub(crate) fn begin_rebuild(&mut self, commit: Commit) {
        let daemon = self.daemon.as_mut().expect("a task is of a daemon that runs");
        self.storage.put(commit.generation, commit.level);
        daemon.rebuilding.insert(commit.generation, (commit, BTreeMap::new()));
    }

    /// What is taking too long is given up.
    pub(crate) fn give_up(&mut self, now: SimTime, generation: Generation) {
        let Some(daemon) = &mut self.daemon else { return };
        if daemon.writing.remove(&generation).is_some() {
            daemon.member.failed(generation, "it was written too slowly, or has no room");
        }
        if daemon.rebuilding.remove(&generation).is_some() {
            daemon.member.rebuild_failed(now, generation);
        }
    }

    /// What this host has of a generation, for one that lost it.
    pub(crate) fn parts(&self, generation: Generation) -> Option<(Vec<u8>, Vec<u8>)> {
        let daemon = self.daemon.as_ref()?;
        daemon.member.prepared_generations().find(|(whole, _)| *whole == generation)?;
        let part = |name| self.storage.part(generation, name).to_vec();
        Some((part("image"), part("parity")))
    }

    /// Another host's part has come; with enough of them, this host's is made.
    pub(crate) fn part_came(
        &mut self,
        now: SimTime,
        generation: Generation,
        from: usize,
        image: Vec<u8>,
        parity: Vec<u8>,
    ) -> Result<(), Stopped> {
        let Some(daemon) = &mut self.daemon else { return Ok(()) };
        let Some((_, parts)) = daemon.rebuilding.get_mut(&generation) else { return Ok(()) };
        parts.insert(from, [image, parity]);
        let missing = (0..self.layout.hosts()).filter(|place| !parts.contains_key(place)).collect();
        if !self.layout.survives(&missing) {
            return Ok(());
        }
        let (commit, parts) = daemon.rebuilding.remove(&generation).expect("it was there just now");
        let geometry = Geometry::new(self.layout, BLOCK, commit.lens).unwrap();
        let [image, parity] = rebuilt(&geometry, self.place, &parts);
        match self.store(generation, commit.version, &geometry, &image, &parity, true) {
            Ok(prepared) => {
                self.member().unwrap().rebuilt(generation, prepared);
                Ok(())
            }
            Err(Stopped::Disk) => {
                self.member().unwrap().rebuild_failed(now, generation);
                Ok(())
            }
            Err(killed) => Err(killed),
        }
    }
}

/// What a program has on a host when a generation is taken.
pub(crate) fn image_of(seed: u64, place: usize, generation: Generation) -> Vec<u8> {
    let mut random = Random::of_stream(seed ^ generation.0 << 32, place as u64);
    // Most programs have as much at every step.
    let mut of_program = Random::of_stream(seed, place as u64);
    let len = if !seed.is_multiple_of(3) { of_program.index(300) } else { random.index(300) };
    (0..len).map(|_| u8::try_from(random.below(256)).unwrap()).collect()
}

fn block_of(geometry: &Geometry, image: &[u8], stripe: u32, shard: Shard, len: usize) -> Vec<u8> {
    let begin = usize::try_from(geometry.offset(stripe, shard)).unwrap().min(image.len());
    let end = image.len().min(begin + usize::try_from(BLOCK).unwrap());
    let mut block = image[begin..end].to_vec();
    block.resize(len, 0);
    block
}

/// The parity that a host keeps, made of all images.
pub(crate) fn parity_of(geometry: &Geometry, place: usize, images: &[Vec<u8>]) -> Vec<u8> {
    let layout = geometry.layout();
    let mut parity = Vec::new();
    for stripe in 0..geometry.stripes() {
        for at in 0..layout.parity() {
            let word = layout.word_of(place, Shard::Parity(at));
            let len = geometry.word_len(stripe, word);
            if len == 0 {
                continue;
            }
            let data: Vec<Vec<u8>> = (0..layout.data())
                .map(Shard::Data)
                .map(|shard| {
                    let host = layout.host_of(word, shard);
                    block_of(geometry, &images[host], stripe, shard, len)
                })
                .collect();
            let views: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
            parity.extend(coding::encode(layout, &views).unwrap().swap_remove(at));
        }
    }
    parity
}

/// Image and parity of a host, made of the parts of others.
fn rebuilt(geometry: &Geometry, place: usize, parts: &Parts) -> [Vec<u8>; 2] {
    let layout = geometry.layout();
    let (mut image, mut parity) = (Vec::new(), Vec::new());
    // Parity blocks lie one behind the other, without those of no octets.
    let mut read: BTreeMap<usize, usize> = BTreeMap::new();
    for stripe in 0..geometry.stripes() {
        let mut parities: BTreeMap<(usize, Shard), Vec<u8>> = BTreeMap::new();
        for (&host, [_, theirs]) in parts {
            for shard in (0..layout.parity()).map(Shard::Parity) {
                let len = geometry.len_of(host, stripe, shard);
                let at = read.entry(host).or_default();
                parities.insert((host, shard), theirs[*at..*at + len].to_vec());
                *at += len;
            }
        }
        let mut own: BTreeMap<Shard, Vec<u8>> = BTreeMap::new();
        for mine in layout.shards() {
            let word = layout.word_of(place, mine);
            let len = geometry.word_len(stripe, word);
            if len == 0 {
                continue;
            }
            let shards: Vec<Option<Vec<u8>>> = layout
                .shards()
                .map(|shard| {
                    let host = layout.host_of(word, shard);
                    let [image, _] = parts.get(&host)?;
                    Some(match shard {
                        Shard::Data(_) => block_of(geometry, image, stripe, shard, len),
                        Shard::Parity(_) => parities[&(host, shard)].clone(),
                    })
                })
                .collect();
            let views: Vec<Option<&[u8]>> = shards.iter().map(Option::as_deref).collect();
            let made = coding::reconstruct(layout, &views).unwrap();
            let number = layout.shards().position(|shard| shard == mine).unwrap();
            let block = made.into_iter().find(|(at, _)| *at == number).unwrap().1;
            own.insert(mine, block[..geometry.len_of(place, stripe, mine)].to_vec());
        }
        for (shard, block) in own {
            match shard {
                Shard::Data(_) => image.extend(block),
                Shard::Parity(_) => parity.extend(block),
            }
        }
    }
    [image, parity]
}
