//! Whole groups over TCP and TLS on loopback: what lies on the disks afterwards is compared with parity
//! computed by hand, hosts are lost and rebuilt, and blocks are damaged.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use meikyo_checkpoint::charter::Generation;
use meikyo_checkpoint::exchange::ExchangeOptions;
use meikyo_checkpoint::geometry::Geometry;
use meikyo_checkpoint::increment::{Hash, mask_bytes};
use meikyo_checkpoint::layout::{Layout, Scheme, Shard};
use meikyo_checkpoint::link::{Greeting, Meeting, Purpose, STALL, meet};
use meikyo_checkpoint::pace::Pace;
use meikyo_checkpoint::schedule::{Job, Schedule};
use meikyo_checkpoint::shelf::{self, Changes, Done, ShelfError, Shelved, Stored};
use meikyo_checkpoint::tls::JobKey;
use meikyo_units::BitsPerSecond;
use meikyo_worlds::Random;

/// One group of hosts, each a directory and listeners on loopback.
struct Group {
    directory: tempfile::TempDir,
    geometry: Geometry,
    images: Vec<Vec<u8>>,
    /// The number of the generation that jobs are of; an update is made of the one before.
    generation: u64,
    /// What is known of the images of the one before.
    hashes: Vec<Option<Vec<Hash>>>,
    key: JobKey,
    lanes: usize,
    stall: Duration,
    pace: Pace,
    /// How fast each host may send.
    network: Option<BitsPerSecond>,
}

impl Group {
    fn new(scheme: Scheme, hosts: usize, block: u32, lens: &[u64], lanes: usize) -> Self {
        let layout = Layout::new(scheme, hosts).unwrap();
        let mut random = Random::new(hosts as u64);
        let mut octets = |len: u64| -> Vec<u8> {
            (0..len).map(|_| u8::try_from(random.below(256)).unwrap()).collect()
        };
        Self {
            directory: tempfile::tempdir().unwrap(),
            geometry: Geometry::new(layout, block, lens.to_vec()).unwrap(),
            images: lens.iter().map(|&len| octets(len)).collect(),
            generation: 1,
            hashes: vec![None; hosts],
            key: JobKey::from_pkcs8(&JobKey::generate().unwrap()).unwrap(),
            lanes,
            stall: STALL,
            pace: Pace::unlimited(),
            network: None,
        }
    }

    fn hosts(&self) -> usize {
        self.images.len()
    }

    fn home(&self, place: usize) -> PathBuf {
        self.home_of(place, self.generation)
    }

    fn home_of(&self, place: usize, generation: u64) -> PathBuf {
        self.directory.path().join(format!("host{place}/{generation}"))
    }

    /// The next generation, of the images as they are now, by what changed in them.
    fn update(&mut self) -> Vec<Result<Done, ShelfError>> {
        self.generation += 1;
        self.run(Job::Update)
    }

    /// Carries out a job on all hosts at once.
    fn run(&self, job: Job) -> Vec<Result<Done, ShelfError>> {
        let purpose = match job {
            Job::Encode | Job::Update => Purpose::Save,
            Job::Rebuild(_) | Job::RebuildOne { .. } => Purpose::Rebuild,
        };
        let schedule = Schedule::new(self.geometry.clone(), job).unwrap();
        let listeners: Vec<Vec<TcpListener>> = (0..self.hosts())
            .map(|_| (0..self.lanes).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect())
            .collect();
        let addresses: Vec<Vec<SocketAddr>> = listeners
            .iter()
            .map(|lanes| lanes.iter().map(|lane| lane.local_addr().unwrap()).collect())
            .collect();
        let generation = Generation(self.generation);
        let greeting = Greeting::new(purpose, 1, generation);
        let patience = Duration::from_secs(60);
        let (key, stall) = (&self.key, self.stall);
        let meeting = Meeting { key, addresses: &addresses, greeting, patience, stall };
        std::thread::scope(|scope| {
            let (meeting, schedule) = (&meeting, &schedule);
            let hosts: Vec<_> = listeners
                .iter()
                .enumerate()
                .map(|(place, listeners)| {
                    scope.spawn(move || {
                        let mut links = meet(meeting, listeners, schedule, place).unwrap();
                        links.pace = self.network.map(|rate| Arc::new(Pace::new(rate)));
                        let directory = self.home(place);
                        let shelved = Shelved {
                            directory: &directory,
                            generation,
                            version: 1,
                            place,
                            pace: &self.pace,
                            options: ExchangeOptions {
                                idle: self.stall / 5,
                                ..ExchangeOptions::DEFAULT
                            },
                        };
                        match schedule.job() {
                            Job::Encode => {
                                shelf::save(&shelved, schedule, &self.images[place], links)
                            }
                            Job::Update => {
                                let base = self.home_of(place, self.generation - 1);
                                let base = Stored::open(&base).unwrap();
                                let (known, image) = (&self.hashes[place], &self.images[place]);
                                let changes =
                                    Changes::find(&base, known.as_deref(), image, &self.pace);
                                let changes = changes.map_err(ShelfError::Base)?;
                                let made_of = (&base, &changes);
                                shelf::update(&shelved, schedule, image, made_of, links)
                            }
                            _ => shelf::rebuild(&shelved, schedule, links),
                        }
                    })
                })
                .collect();
            hosts.into_iter().map(|host| host.join().unwrap()).collect()
        })
    }

    /// Compares every image, and every parity block with one that is computed from the images.
    fn check(&self) {
        let layout = self.geometry.layout();
        for place in 0..self.hosts() {
            assert_eq!(fs::read(self.home(place).join("image")).unwrap(), self.images[place]);
            assert_eq!(Stored::open(&self.home(place)).unwrap().damages(), []);
        }
        for stripe in 0..self.geometry.stripes() {
            for word in 0..self.hosts() {
                let len = self.geometry.word_len(stripe, word);
                let data: Vec<Vec<u8>> = (0..layout.data())
                    .map(|at| {
                        let image = &self.images[layout.host_of(word, Shard::Data(at))];
                        let begin = self.geometry.offset(stripe, Shard::Data(at));
                        let begin = image.len().min(usize::try_from(begin).unwrap());
                        let end = image.len().min(begin + len);
                        let mut block = image[begin..end].to_vec();
                        block.truncate(usize::try_from(self.geometry.block()).unwrap());
                        block.resize(len, 0);
                        block
                    })
                    .collect();
                let expected = if layout.parity() == 1 {
                    let xor = |at: usize| data.iter().fold(0, |sum, block| sum ^ block[at]);
                    vec![(0..len).map(xor).collect::<Vec<u8>>()]
                } else if len == 0 {
                    vec![Vec::new(); layout.parity()]
                } else {
                    reed_solomon_simd::encode(layout.data(), layout.parity(), &data).unwrap()
                };
                for (parity, expected) in expected.iter().enumerate() {
                    let shard = Shard::Parity(parity);
                    let file = self.home(layout.host_of(word, shard)).join("parity");
                    let begin = usize::try_from(self.geometry.offset(stripe, shard)).unwrap();
                    let stored = fs::read(file).unwrap();
                    let stored = stored.get(begin..begin + len).unwrap_or_default();
                    assert_eq!(stored, expected, "stripe {stripe}, word {word}");
                }
            }
        }
    }

    fn save(&self) -> Vec<Done> {
        self.run(Job::Encode).into_iter().map(Result::unwrap).collect()
    }
}

fn set(places: &[usize]) -> BTreeSet<usize> {
    places.iter().copied().collect()
}

#[test]
fn what_is_on_the_disks_is_the_images_and_their_parity() {
    for (scheme, hosts, lanes) in [
        (Scheme::Ring, 3, 1),
        (Scheme::Ring, 5, 2),
        (Scheme::Partner, 2, 1),
        (Scheme::Partner, 4, 1),
        (Scheme::ReedSolomon(2), 3, 1),
        (Scheme::ReedSolomon(2), 5, 1),
        (Scheme::ReedSolomon(3), 6, 1),
    ] {
        // Lengths that differ, one of nothing, and ends inside of blocks.
        let lens: Vec<u64> = (0..hosts as u64).map(|host| host * 70_001).collect();
        let group = Group::new(scheme, hosts, 4_096, &lens, lanes);
        group.save();
        group.check();
    }
}

/// Octets of pages of an image that are others than they were.
fn changed_pages(old: &[u8], new: &[u8]) -> u64 {
    let pages = old.chunks(4_096).zip(new.chunks(4_096));
    pages.filter(|(old, new)| old != new).map(|(old, _)| old.len() as u64).sum()
}

/// Changes an octet of each of these pages of a host's image.
fn change(image: &mut [u8], pages: impl Iterator<Item = usize>) {
    for page in pages {
        if let Some(octet) = image.get_mut(page * 4_096 + 77) {
            *octet ^= 0x55;
        }
    }
}

#[test]
fn what_is_made_of_the_one_before_is_what_is_written_whole_whatever_changed_and_whoever_is_lost() {
    let mut random = Random::new(9);
    let mut rebuilt = 0;
    for (scheme, hosts, lanes) in [
        (Scheme::Ring, 3, 1),
        (Scheme::Ring, 4, 2),
        (Scheme::Ring, 6, 1),
        (Scheme::Partner, 2, 2),
        (Scheme::Partner, 4, 1),
        (Scheme::ReedSolomon(2), 4, 1),
        (Scheme::ReedSolomon(2), 5, 2),
        (Scheme::ReedSolomon(3), 6, 1),
    ] {
        let lens: Vec<u64> = (0..hosts as u64).map(|host| host * 70_001).collect();
        let mut group = Group::new(scheme, hosts, 8_192, &lens, lanes);
        group.save();
        for share in [0, 1, 3, 100] {
            for image in &mut group.images {
                let pages = image.len().div_ceil(4_096);
                change(image, (0..pages).filter(|_| random.below(100) < share * share));
            }
            // One that has lost its hashes reads what it had.
            if share == 3 {
                group.hashes[hosts - 1] = None;
            }
            let outcomes = group.update();
            let updated: Vec<Done> = outcomes.into_iter().map(Result::unwrap).collect();
            group.check();
            for (place, image) in group.images.iter().enumerate() {
                let base = Stored::open(&group.home(place)).unwrap();
                let same = Changes::find(&base, None, image, &Pace::unlimited()).unwrap();
                assert_eq!(same.blocks(), 0);
                group.hashes[place] = Some(same.into_hashes());
            }
            let (directory, generation) = (tempfile::tempdir().unwrap(), group.generation);
            let updates = std::mem::replace(&mut group.directory, directory);
            for (whole, updated) in group.save().iter().zip(&updated) {
                assert_eq!(whole.manifest, updated.manifest, "{scheme} {hosts} {generation}");
            }
            group.directory = updates;
        }
        // The last one can be rebuilt like any other.
        let manifests: Vec<u32> =
            (0..hosts).map(|at| Stored::open(&group.home(at)).unwrap().checksum()).collect();
        for pattern in 1_u32..1 << hosts {
            let lost: BTreeSet<usize> = (0..hosts).filter(|at| pattern >> at & 1 == 1).collect();
            if !group.geometry.layout().survives(&lost) || (hosts > 4 && pattern % 3 > 0) {
                continue;
            }
            lost.iter().for_each(|place| fs::remove_dir_all(group.home(*place)).unwrap());
            for (place, done) in group.run(Job::Rebuild(lost)).into_iter().enumerate() {
                assert_eq!(done.unwrap().manifest, manifests[place]);
            }
            group.check();
            rebuilt += 1;
        }
    }
    assert!(rebuilt > 40, "{rebuilt}");
}

#[test]
fn what_goes_over_the_network_is_what_changed_and_five_hundredths_at_most() {
    for (scheme, hosts) in [(Scheme::Ring, 4), (Scheme::Partner, 3)] {
        let block = 256 << 10;
        let mut group = Group::new(scheme, hosts, block, &vec![5 << 20; hosts], 1);
        group.save();
        let mut random = Random::new(4);
        for percent in [1, 10, 50] {
            let before = group.images.clone();
            for image in &mut group.images {
                change(image, (0..(5 << 20) / 4_096).filter(|_| random.below(100) < percent));
            }
            let done: Vec<Done> = group.update().into_iter().map(Result::unwrap).collect();
            group.check();
            for ((done, old), new) in done.iter().zip(&before).zip(&group.images) {
                let dirty = changed_pages(old, new);
                let block = block as usize;
                let blocks = old.chunks(block).zip(new.chunks(block));
                let blocks = blocks.filter(|(old, new)| old != new).count();
                // Nothing but changed pages and the masks that say which.
                assert_eq!(done.moved.sent.get(), dirty + (blocks * mask_bytes(block)) as u64);
                let with_heads = done.moved.sent.get() + 16 * (5 << 20) / block as u64;
                assert!(with_heads * 100 <= dirty * 105, "{with_heads} for {dirty} at {percent} %");
            }
        }
    }
}

#[test]
fn damage_of_the_one_before_is_found_and_gets_into_nothing_that_is_made_of_it() {
    let is_base = |outcome: &Result<Done, ShelfError>| matches!(outcome, Err(ShelfError::Base(_)));
    for file in ["image", "parity"] {
        let mut group = Group::new(Scheme::Ring, 3, 1_024, &[50_000; 3], 1);
        group.save();
        for image in &mut group.images {
            image.iter_mut().step_by(700).for_each(|octet| *octet ^= 1);
        }
        flip(&group.home(1).join(file), 20_000);
        group.hashes = vec![Some(vec![[0; 16]; 49]); 3];
        let outcomes = group.update();
        assert!(is_base(&outcomes[1]), "{file}: {outcomes:?}");
        assert!(!group.home(1).join("manifest").exists());
    }
    // Where nothing changed, damaged parity is not carried on either.
    let mut group = Group::new(Scheme::Ring, 3, 1_024, &[50_000; 3], 1);
    group.save();
    flip(&group.home(1).join("parity"), 20_000);
    let outcomes = group.update();
    assert!(is_base(&outcomes[1]) && outcomes[0].is_ok(), "{outcomes:?}");
}

#[test]
fn a_connection_that_has_nothing_to_carry_for_long_is_not_taken_for_broken() {
    // One host has nothing, so that the one that copies to it and is copied by it waits for the disk alone.
    let mut group = Group::new(Scheme::Partner, 3, 4_096, &[0, 600_000, 0], 1);
    group.stall = Duration::from_millis(300);
    group.pace = Pace::new(BitsPerSecond::new(4_000_000));
    group.save();
    group.check();
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a rate is measured by the clock")]
fn a_host_sends_and_writes_no_faster_than_it_may() {
    // 400,000 octets at 16 Mbit/s take 0.2 s; what may be caught up on is a tenth of that.
    let rate = BitsPerSecond::new(16_000_000);
    let least = Duration::from_millis(180);
    for of_disk in [false, true] {
        let mut group = Group::new(Scheme::Partner, 2, 4_096, &[400_000; 2], 2);
        if of_disk {
            group.pace = Pace::new(rate);
        } else {
            group.network = Some(rate);
        }
        let begun = std::time::Instant::now();
        group.save();
        // One pace is shared by all hosts of this test that write, each image and its copy.
        let times = if of_disk { 4 } else { 1 };
        assert!(begun.elapsed() >= least * times, "{:?}", begun.elapsed());
        group.check();
    }
}

#[test]
fn a_connection_that_is_silent_while_its_host_is_greeted_is_given_up_in_time() {
    let group = Group::new(Scheme::Partner, 2, 1_024, &[5_000; 2], 1);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut slow = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let refused = std::thread::scope(|scope| {
        let serving =
            scope.spawn(|| group.key.accept(listener.accept().unwrap().0, STALL / 40).err());
        // The head of a record, octet by octet and never whole.
        while !serving.is_finished() {
            drop(std::io::Write::write_all(&mut slow, &[22]));
            std::thread::park_timeout(Duration::from_millis(100));
        }
        serving.join().unwrap()
    });
    assert!(refused.is_some());
}

#[test]
fn a_host_of_a_ring_sends_as_many_octets_as_it_holds() {
    let group = Group::new(Scheme::Ring, 4, 4_096, &[4_096 * 300; 4], 1);
    for done in group.save() {
        assert_eq!(done.moved.sent.get(), 4_096 * 300);
        assert_eq!(done.moved.received.get(), 4_096 * 300);
    }
}

#[test]
fn every_loss_that_a_scheme_survives_is_rebuilt_octet_for_octet() {
    let mut rebuilt = 0;
    for (scheme, hosts) in [
        (Scheme::Ring, 3),
        (Scheme::Ring, 4),
        (Scheme::Partner, 4),
        (Scheme::ReedSolomon(2), 4),
        (Scheme::ReedSolomon(3), 4),
    ] {
        let lens: Vec<u64> = (0..hosts as u64).map(|host| 20_000 - host * 4_999).collect();
        let group = Group::new(scheme, hosts, 1_024, &lens, 1);
        let saved = group.save();
        for pattern in 1_u32..1 << hosts {
            let lost: BTreeSet<usize> = (0..hosts).filter(|at| pattern >> at & 1 == 1).collect();
            if !group.geometry.layout().survives(&lost) {
                continue;
            }
            for &place in &lost {
                fs::remove_dir_all(group.home(place)).unwrap();
            }
            let outcomes = group.run(Job::Rebuild(lost.clone()));
            assert!(outcomes.iter().all(Result::is_ok), "{scheme} {hosts} {lost:?}: {outcomes:?}");
            for (done, before) in outcomes.into_iter().zip(&saved) {
                // The same manifest, so that what was agreed on still holds.
                assert_eq!(done.unwrap().manifest, before.manifest);
            }
            group.check();
            rebuilt += 1;
        }
    }
    assert!(rebuilt > 30, "{rebuilt}");
}

#[test]
fn each_of_several_lost_hosts_is_rebuilt_by_those_that_are_not_lost() {
    for (scheme, hosts, lost) in [(Scheme::ReedSolomon(2), 5, [1, 3]), (Scheme::Partner, 4, [0, 2])]
    {
        let lens: Vec<u64> = (0..hosts as u64).map(|host| 20_000 - host * 3_999).collect();
        let group = Group::new(scheme, hosts, 1_024, &lens, 1);
        group.save();
        for place in lost {
            fs::remove_dir_all(group.home(place)).unwrap();
        }
        for (at, place) in lost.into_iter().enumerate() {
            let lost = set(&lost[at..]);
            let outcomes = group.run(Job::RebuildOne { lost: lost.clone(), place });
            for (host, outcome) in outcomes.iter().enumerate() {
                // The other lost host has nothing to give, and is not asked.
                assert!(outcome.is_ok() || lost.contains(&host) && host != place, "{outcome:?}");
            }
        }
        group.check();
    }
}

#[test]
fn a_damaged_block_is_found_and_never_folded_into_what_is_rebuilt() {
    let group = Group::new(Scheme::Ring, 3, 1_024, &[50_000; 3], 1);
    group.save();
    flip(&group.home(0).join("parity"), 2_000);
    let damages = Stored::open(&group.home(0)).unwrap().damages();
    assert_eq!(damages.len(), 1);
    assert_eq!((damages[0].stripe, damages[0].shard), (1, Shard::Parity(0)));
    fs::remove_dir_all(group.home(2)).unwrap();
    let outcomes = group.run(Job::Rebuild(set(&[2])));
    let told = format!("{:?}", outcomes[0].as_ref().unwrap_err());
    assert!(told.contains("`parity` is damaged in the block that begins at octet 1024"), "{told}");
    assert!(outcomes[2].is_err() && !group.home(2).join("manifest").exists());
}

#[test]
fn an_image_that_is_torn_has_no_manifest_or_is_found() {
    let group = Group::new(Scheme::Ring, 3, 1_024, &[50_000; 3], 1);
    group.save();
    let file = fs::OpenOptions::new().write(true).open(group.home(1).join("image")).unwrap();
    file.set_len(49_000).unwrap();
    let stored = Stored::open(&group.home(1)).unwrap();
    assert_eq!(stored.damages().len(), 2);
    let torn = fs::OpenOptions::new().write(true).open(group.home(1).join("manifest")).unwrap();
    torn.set_len(20).unwrap();
    assert!(Stored::open(&group.home(1)).is_err());
}

#[test]
fn a_host_with_another_key_is_turned_away() {
    let group = Group::new(Scheme::Partner, 2, 1_024, &[5_000; 2], 1);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let stranger = JobKey::from_pkcs8(&JobKey::generate().unwrap()).unwrap();
    let (served, tried) = std::thread::scope(|scope| {
        let serving =
            scope.spawn(|| group.key.accept(listener.accept().unwrap().0, STALL).is_err());
        let tried = stranger.connect(std::net::TcpStream::connect(address).unwrap(), STALL);
        (serving.join().unwrap(), tried.is_err())
    });
    assert!(served && tried);
}

#[test]
fn what_is_stored_belongs_to_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let group = Group::new(Scheme::Partner, 2, 1_024, &[5_000; 2], 1);
    group.save();
    for name in ["image", "parity", "manifest"] {
        let mode = fs::metadata(group.home(0).join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

fn flip(path: &Path, at: usize) {
    let mut octets = fs::read(path).unwrap();
    octets[at] ^= 4;
    fs::write(path, octets).unwrap();
}
