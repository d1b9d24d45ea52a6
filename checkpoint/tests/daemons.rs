//! Real daemons as processes of their own, killed with SIGKILL while they write and rebuild.
//!
//! A daemon is this test program, started once more for the test `a_daemon`, which is one when the
//! environment names a job and does nothing otherwise.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::disallowed_methods,
    reason = "daemons are processes, and are waited for by the clock"
)]

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use meikyo_checkpoint::daemon::{
    self, Answer, DaemonOptions, JobFile, LevelOptions, MemoryOptions, Request, Status, ask,
};
use meikyo_checkpoint::level::{Keep, Level};
use meikyo_checkpoint::tls::JobKey;
use meikyo_units::{Bytes, Nanos};
use meikyo_worlds::Random;

/// Longest that anything may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_daemon() {
    let Ok(job) = std::env::var("MEIKYO_TEST_JOB") else { return };
    let read = |name: &str| std::env::var(name).unwrap();
    let options = DaemonOptions {
        job: JobFile::load(Path::new(&job)).unwrap(),
        place: read("MEIKYO_TEST_PLACE").parse().unwrap(),
        directory: PathBuf::from(read("MEIKYO_TEST_DIRECTORY")),
        is_founding: read("MEIKYO_TEST_FOUNDING") == "yes",
        from: None,
        stalled_after: None,
        disk_rate: None,
        network_rate: None,
        cpu_share: None,
        room_for: None,
        drain: None,
        levels: levels(),
        ends_with_input: std::env::var_os("MEIKYO_TEST_WITH_INPUT").is_some(),
    };
    daemon::run(options, Box::new(|_| {})).unwrap();
}

/// On disk, or as the environment says: keep in memory and on disk, and the time between two on disk.
fn levels() -> LevelOptions {
    let mut levels = LevelOptions::on_disk(Nanos::from_secs(86_400));
    let Ok(text) = std::env::var("MEIKYO_TEST_LEVELS") else { return levels };
    let (directory, rules) = text.split_once('|').unwrap();
    let [memory, disk, every_s]: [u64; 3] =
        rules.split(' ').map(|word| word.parse().unwrap()).collect::<Vec<_>>().try_into().unwrap();
    levels.keep = Keep { memory: memory.try_into().unwrap(), disk: disk.try_into().unwrap() };
    levels.disk_every = Some(Nanos::from_secs(every_s));
    let directory = PathBuf::from(directory);
    levels.memory = Some(MemoryOptions { directory, room: Bytes::new(MEMORY_BYTES) });
    levels
}

/// What a host gives to generations in memory: four of them, about 480 kB each.
const MEMORY_BYTES: u64 = 2 << 20;

/// A group of daemons; all are killed when it is dropped.
struct Group {
    home: tempfile::TempDir,
    /// Memory of the hosts, and rules of its levels.
    memory: Option<(tempfile::TempDir, &'static str)>,
    daemons: Vec<Option<Child>>,
}

impl Group {
    fn start(scheme: &str, hosts: usize) -> Self {
        Self::start_with(scheme, hosts, None)
    }

    fn start_with(scheme: &str, hosts: usize, rules: Option<&'static str>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let key = JobKey::generate().unwrap();
        let mut private = fs::OpenOptions::new();
        private.write(true).create_new(true).mode(0o600);
        let mut file = private.open(home.path().join("key")).unwrap();
        std::io::Write::write_all(&mut file, &key).unwrap();
        // Ports that were free just now, and are not given to others so soon.
        let ports: Vec<TcpListener> =
            (0..hosts).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let mut job = format!("scheme = \"{scheme}\"\nblock = \"4KiB\"\nkey = \"key\"\n");
        for (host, port) in ports.iter().enumerate() {
            let address = port.local_addr().unwrap();
            job += &format!("[[hosts]]\nname = \"node{host}\"\naddresses = [\"{address}\"]\n");
        }
        fs::write(home.path().join("job.toml"), job).unwrap();
        drop(ports);
        let memory = rules.map(|rules| (tempfile::tempdir_in("/dev/shm").unwrap(), rules));
        let mut group = Self { home, memory, daemons: (0..hosts).map(|_| None).collect() };
        for host in 0..hosts {
            group.run(host, true);
        }
        group
    }

    fn directory(&self, host: usize) -> PathBuf {
        self.home.path().join(format!("host{host}"))
    }

    /// The memory of a host, which goes with it.
    fn memory(&self, host: usize) -> PathBuf {
        self.memory.as_ref().unwrap().0.path().join(host.to_string())
    }

    /// A host loses its power: its daemon, and what was in its memory.
    fn cut_power(&mut self, host: usize) {
        self.kill(host);
        fs::remove_dir_all(self.memory(host)).unwrap();
    }

    fn run(&mut self, host: usize, founding: bool) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        if let Some((_, rules)) = &self.memory {
            let memory = self.memory(host);
            fs::create_dir_all(&memory).unwrap();
            command.env("MEIKYO_TEST_LEVELS", format!("{}|{rules}", memory.display()));
            command.env("MEIKYO_TEST_WITH_INPUT", "yes");
            command.stdin(Stdio::piped());
        }
        let child = command
            .args(["--exact", "a_daemon", "--nocapture"])
            .env("MEIKYO_TEST_JOB", self.home.path().join("job.toml"))
            .env("MEIKYO_TEST_PLACE", host.to_string())
            .env("MEIKYO_TEST_DIRECTORY", self.directory(host))
            .env("MEIKYO_TEST_FOUNDING", if founding { "yes" } else { "no" })
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        self.daemons[host] = Some(child);
    }

    fn kill(&mut self, host: usize) {
        if let Some(mut daemon) = self.daemons[host].take() {
            daemon.kill().unwrap();
            daemon.wait().unwrap();
        }
    }

    fn status(&self, host: usize) -> Option<Status> {
        match ask(&self.directory(host), &Request::Status) {
            Ok(Answer::Status(status)) => Some(*status),
            _ => None,
        }
    }

    fn wait_for(&self, what: &str, holds: impl Fn(&Status) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        let hosts: Vec<usize> =
            (0..self.daemons.len()).filter(|&host| self.daemons[host].is_some()).collect();
        while !hosts.iter().all(|&host| self.status(host).is_some_and(|status| holds(&status))) {
            let statuses: Vec<_> = hosts.iter().map(|&host| self.status(host)).collect();
            assert!(Instant::now() < deadline, "{what}: {statuses:#?}");
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    /// Hands over a step on every host that runs.
    fn save(&self, step: u64) {
        for host in 0..self.daemons.len() {
            if self.daemons[host].is_none() {
                continue;
            }
            let image = self.home.path().join(format!("image{host}"));
            fs::write(&image, image_of(host, step)).unwrap();
            let request = Request::Save { run: 1, step, image, stopped_ns: None };
            let answer = ask(&self.directory(host), &request).unwrap();
            assert_eq!(answer, Answer::Snapped { bytes: image_of(host, step).len() as u64 });
        }
    }

    /// Asks for what to go on from until it is not being rebuilt any more.
    fn restore(&self, host: usize, generation: Option<u64>) -> Answer {
        let to = self.home.path().join("restored");
        let request = Request::Restore { to, generation };
        let deadline = Instant::now() + PATIENCE;
        loop {
            match ask(&self.directory(host), &request).unwrap() {
                Answer::Refused(text)
                    if text.ends_with("ask again") && Instant::now() < deadline =>
                {
                    std::thread::park_timeout(Duration::from_millis(50));
                }
                answer => return answer,
            }
        }
    }

    /// Reads the newest generation of every host, and compares it with what the program had.
    fn check(&self, step: u64) {
        self.check_as(step, step);
    }

    fn check_as(&self, image: u64, step: u64) {
        for host in 0..self.daemons.len() {
            let to = self.home.path().join("restored");
            let answer = self.restore(host, None);
            assert!(
                matches!(answer, Answer::Restored { step: is, .. } if is == step),
                "{answer:?}"
            );
            assert!(fs::read(to).unwrap() == image_of(host, image), "host {host}, step {step}");
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for host in 0..self.daemons.len() {
            self.kill(host);
        }
    }
}

fn image_of(host: usize, step: u64) -> Vec<u8> {
    let mut random = Random::of_stream(step, host as u64);
    (0..300_000 + host * 12_345).map(|_| u8::try_from(random.below(256)).unwrap()).collect()
}

#[test]
fn a_step_is_saved_and_read_again_octet_for_octet() {
    for scheme in ["ring", "rs2", "partner"] {
        let group = Group::start(scheme, 4);
        group.wait_for("all are members", |status| status.is_member);
        for step in [10, 20] {
            group.save(step);
            group.wait_for("the step is committed", |status| {
                status.step == Some(step) && status.open.is_none()
            });
            group.check(step);
        }
        let answer = ask(&group.directory(2), &Request::Verify).unwrap();
        assert_eq!(answer, Answer::Verified { generation: 2, damaged_blocks: 0 });
    }
}

#[test]
fn what_changed_is_all_that_is_sent_and_what_was_rebuilt_can_be_gone_on_from() {
    let mut group = Group::start("ring", 4);
    group.wait_for("all are members", |status| status.is_member);
    let save = |group: &Group, step: u64| {
        for host in 0..4 {
            let image = group.home.path().join(format!("image{host}"));
            fs::write(&image, changed(host, step)).unwrap();
            let request = Request::Save { run: 1, step, image, stopped_ns: None };
            ask(&group.directory(host), &request).unwrap();
        }
        group.wait_for("the step is committed", |status| {
            status.step == Some(step) && status.open.is_none()
        });
        for host in 0..4 {
            let answer = group.restore(host, None);
            assert!(
                matches!(answer, Answer::Restored { step: is, .. } if is == step),
                "{answer:?}"
            );
            let restored = fs::read(group.home.path().join("restored")).unwrap();
            assert!(restored == changed(host, step), "host {host}, step {step}");
        }
    };
    let costs = |group: &Group| -> Vec<daemon::Cost> {
        (0..4).map(|host| *group.status(host).unwrap().cost.unwrap()).collect()
    };
    save(&group, 1);
    assert!(costs(&group).iter().all(|cost| cost.made_of.is_none() && cost.sent_bytes > 200_000));
    for step in 2..5 {
        save(&group, step);
        for cost in costs(&group) {
            assert_eq!((cost.generation, cost.made_of), (step, Some(step - 1)));
            // A page of one block, and its mask.
            assert_eq!((cost.changed_bytes, cost.sent_bytes), (4_096, 4_097));
        }
    }
    // A daemon that was started anew has no hashes, and one that replaces another has what was rebuilt.
    for host in [1, 2] {
        group.kill(host);
        if host == 2 {
            fs::remove_dir_all(group.directory(host)).unwrap();
        }
        group.run(host, false);
    }
    group.wait_for("both have the newest", |status| {
        status.is_member && status.version == 2 && status.whole.contains(&4)
    });
    save(&group, 5);
    assert!(costs(&group).iter().all(|cost| (cost.made_of, cost.sent_bytes) == (Some(4), 4_097)));
    // What is damaged is found when it is needed, the step is given up, and the next one is whole.
    flip(&group.directory(3).join("generations/000000000005/parity"));
    for host in 0..4 {
        let image = group.home.path().join(format!("image{host}"));
        fs::write(&image, changed(host, 6)).unwrap();
        ask(&group.directory(host), &Request::Save { run: 1, step: 6, image, stopped_ns: None })
            .unwrap();
    }
    group.wait_for("it is rebuilt", |status| {
        status.open.is_none() && status.handed.is_none() && status.whole.contains(&5)
    });
    let verified = ask(&group.directory(3), &Request::Verify).unwrap();
    assert!(matches!(verified, Answer::Verified { damaged_blocks: 0, .. }), "{verified:?}");
    save(&group, 7);
}

/// An image of which one page is another at every step.
fn changed(host: usize, step: u64) -> Vec<u8> {
    let mut image = image_of(host, 0);
    for step in 1..=step {
        image[usize::try_from(step).unwrap() * 8_192 + host] ^= 0xff;
    }
    image
}

#[test]
fn a_host_that_lost_its_disk_is_rebuilt_on_what_replaces_it() {
    let mut group = Group::start("ring", 4);
    group.wait_for("all are members", |status| status.is_member);
    group.save(1);
    group.wait_for("the step is committed", |status| status.step == Some(1));
    group.kill(2);
    fs::remove_dir_all(group.directory(2)).unwrap();
    group.run(2, false);
    group.wait_for("the host is rebuilt", |status| {
        status.is_member && status.version == 2 && status.whole.contains(&1)
    });
    group.check(1);
    group.save(2);
    group.wait_for("another step is committed", |status| status.step == Some(2));
    group.check(2);
}

/// Kills in `./x test`; `MEIKYO_SOAK_SECONDS` goes on for longer, and `MEIKYO_SOAK_SEED` repeats what was printed.
const KILLS: u64 = 20;

#[test]
fn whatever_is_killed_while_it_writes_the_newest_step_is_read_again() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seed = number("MEIKYO_SOAK_SEED").unwrap_or(5);
    let (seconds, begin) = (number("MEIKYO_SOAK_SECONDS"), Instant::now());
    let goes_on = |kills: u64| match seconds {
        Some(seconds) => begin.elapsed() < Duration::from_secs(seconds),
        None => kills < KILLS,
    };
    let mut group = Group::start("ring", 3);
    group.wait_for("all are members", |status| status.is_member);
    group.save(1);
    group.wait_for("the step is committed", |status| status.step == Some(1));
    let mut random = Random::new(seed);
    let (mut step, mut kills, mut disks) = (100, 0, 0);
    while goes_on(kills) {
        let host = random.index(3);
        tell(&format!("MEIKYO_SOAK_SEED={seed}: kill {kills}, host {host}, step {step}"));
        group.save(step);
        step += 1;
        // Once while all write, and now and then again while it rebuilds what its disk had.
        let (loses_disk, again) = (random.below(3) == 0, random.below(3) == 0);
        for _ in 0..=u64::from(again) {
            let wait = Duration::from_micros(random.below(60_000));
            let until = Instant::now() + wait;
            while Instant::now() < until {
                std::thread::park_timeout(wait / 8);
            }
            group.kill(host);
            if loses_disk {
                // Killed so soon, it may not have made it yet.
                drop(fs::remove_dir_all(group.directory(host)));
                disks += 1;
            }
            group.run(host, false);
            kills += 1;
        }
        group.wait_for("nothing is open", |status| status.is_member && status.open.is_none());
        let committed = group.status(0).unwrap();
        let step = committed.step.unwrap();
        group.wait_for("all have the newest", |status| {
            status.step == Some(step)
                && status.committed.is_some_and(|newest| status.whole.contains(&newest))
        });
        group.check(step);
    }
    tell(&format!("{kills} kills, {disks} of them with the disk"));
}

#[expect(clippy::print_stdout, reason = "what a long run does, and has shown")]
fn tell(text: &str) {
    println!("{text}");
}

#[test]
fn without_a_majority_nothing_is_saved_and_that_is_said() {
    let mut group = Group::start("ring", 3);
    group.wait_for("all are members", |status| status.is_member);
    group.save(1);
    group.wait_for("the step is committed", |status| status.step == Some(1));
    group.kill(1);
    group.kill(2);
    group.wait_for("both are known to be dead", |status| {
        status.hosts.iter().filter(|word| *word == "dead").count() == 2
    });
    group.save(2);
    group.wait_for("it is said", |status| {
        status.last.as_deref() == Some("1 of 3 hosts answer, and a new generation needs 2")
    });
    let to = group.home.path().join("restored");
    // Two images of three are away. What is here is given to whoever insists on it.
    let refused = group.restore(0, None);
    let told = "generation 1 cannot be had back: node1, node2 do not have it";
    assert!(matches!(&refused, Answer::Refused(text) if text.starts_with(told)), "{refused:?}");
    let answer = group.restore(0, Some(1));
    assert!(matches!(answer, Answer::Restored { step: 1, .. }), "{answer:?}");
    assert!(fs::read(to).unwrap() == image_of(0, 1));
}

#[test]
fn two_hosts_that_lost_their_disks_together_are_rebuilt() {
    let mut group = Group::start("rs2", 5);
    group.wait_for("all are members", |status| status.is_member);
    group.save(1);
    group.wait_for("the step is committed", |status| status.step == Some(1));
    for host in [1, 3] {
        group.kill(host);
        fs::remove_dir_all(group.directory(host)).unwrap();
    }
    for host in [1, 3] {
        group.run(host, false);
    }
    group.wait_for("both are rebuilt", |status| {
        status.is_member && status.version == 3 && status.whole.contains(&1)
    });
    group.check(1);
}

#[test]
fn what_there_is_of_a_generation_stays_until_it_is_rebuilt() {
    let mut group = Group::start("ring", 3);
    group.wait_for("all are members", |status| status.is_member);
    group.save(1);
    group.wait_for("the step is committed", |status| status.step == Some(1));
    let generations = group.directory(0).join("generations");
    let is_there = || {
        let mut found = fs::read_dir(&generations).unwrap().map(|entry| entry.unwrap().path());
        found.any(|path| fs::read(path.join("image")).is_ok_and(|image| image == image_of(0, 1)))
    };
    (0..3).for_each(|host| group.kill(host));
    flip(&generations.join("000000000001/manifest"));
    group.run(0, false);
    group.run(1, false);
    // Two of three are a majority, and the third is needed to rebuild anything.
    group.wait_for("it is said that too much is lost", |status| {
        status.place == 1
            || status.last.as_deref()
                == Some("generation 1 cannot be rebuilt as long as places [0, 2] do not have it")
    });
    assert!(is_there(), "the image that lies beside a damaged manifest is deleted");
    assert_eq!(
        group.restore(1, None),
        Answer::Refused(
            "generation 1 cannot be had back: node0, node2 do not have it, which is more than `ring` \
             makes up for"
                .to_owned()
        )
    );
    group.run(2, false);
    group.wait_for("it is rebuilt", |status| status.whole.contains(&1));
    group.check(1);
    assert_eq!(fs::read_dir(&generations).unwrap().count(), 1);
}

#[test]
fn a_damaged_block_is_rebuilt_when_it_is_found() {
    let group = Group::start("ring", 3);
    group.wait_for("all are members", |status| status.is_member);
    group.save(1);
    group.wait_for("the step is committed", |status| status.step == Some(1));
    flip(&group.directory(1).join("generations/000000000001/image"));
    let answer = ask(&group.directory(1), &Request::Verify).unwrap();
    assert_eq!(answer, Answer::Verified { generation: 1, damaged_blocks: 1 });
    group.check(1);
    let answer = ask(&group.directory(1), &Request::Verify).unwrap();
    assert_eq!(answer, Answer::Verified { generation: 1, damaged_blocks: 0 });
}

#[test]
fn a_host_that_forgot_its_votes_is_another_host() {
    let mut group = Group::start("ring", 3);
    group.wait_for("all are members", |status| status.is_member);
    group.save(1);
    group.wait_for("the step is committed", |status| status.step == Some(1));
    group.kill(2);
    for name in ["votes-0", "votes-1"] {
        drop(fs::remove_file(group.directory(2).join(name)));
    }
    group.run(2, false);
    group.wait_for("it is admitted anew", |status| status.is_member && status.version == 2);
    group.check(1);
}

#[test]
fn a_group_that_lives_is_not_founded_again_by_a_host_that_forgot_it() {
    let mut group = Group::start("ring", 3);
    group.wait_for("all are members", |status| status.is_member);
    group.kill(1);
    fs::remove_dir_all(group.directory(1)).unwrap();
    group.run(1, true);
    let ended = group.daemons[1].take().unwrap().wait().unwrap();
    assert!(!ended.success());
    group.run(1, false);
    group.wait_for("it is admitted", |status| status.is_member && status.version == 2);
}

#[test]
fn a_step_of_an_earlier_run_is_not_taken_for_one_of_this_run() {
    let group = Group::start("ring", 3);
    group.wait_for("all are members", |status| status.is_member);
    let hand = |host: usize, run, step| {
        let image = group.home.path().join(format!("image{host}"));
        fs::write(&image, image_of(host, run * 100 + step)).unwrap();
        let answer =
            ask(&group.directory(host), &Request::Save { run, step, image, stopped_ns: None })
                .unwrap();
        assert!(matches!(answer, Answer::Snapped { .. }), "{answer:?}");
    };
    // The first run dies when two hosts have handed over step 7, and the second comes to it again.
    hand(1, 1, 7);
    hand(2, 1, 7);
    (0..3).for_each(|host| hand(host, 2, 7));
    group.wait_for("it is committed", |status| (status.run, status.step) == (Some(2), Some(7)));
    group.check_as(207, 7);
}

/// The numbers of the generations that a level keeps.
fn kept(status: &Status, level: Level) -> Vec<u64> {
    let level = status.levels.iter().find(|status| status.level == level);
    level.map(|level| level.kept.clone()).unwrap_or_default()
}

fn saved(group: &Group, steps: impl IntoIterator<Item = u64>) {
    for step in steps {
        group.save(step);
        group.wait_for("the step is committed", |status| {
            status.step == Some(step) && status.open.is_none()
        });
    }
}

#[test]
fn what_is_in_memory_survives_one_host_and_what_is_on_disk_all() {
    let mut group = Group::start_with("ring", 3, Some("1 2 3600"));
    group.wait_for("all are members", |status| status.is_member);
    saved(&group, 1..=3);
    group.wait_for("the first is on disk and the newest in memory", |status| {
        kept(status, Level::Disk) == [1] && kept(status, Level::Memory) == [3]
    });
    let on_disk = |host: usize| fs::read_dir(group.directory(host).join("generations")).unwrap();
    assert!((0..3).all(|host| on_disk(host).count() == 1), "it touches the disk");
    let freed = group.status(1).unwrap().freed.unwrap();
    assert_eq!(freed, "generation 2 in memory is freed: newer ones are kept");
    // A daemon that is killed finds its memory again, a host without power gets its part from the others.
    group.kill(2);
    group.cut_power(1);
    group.run(2, false);
    group.run(1, false);
    group.wait_for("it has its part again", |status| status.whole.contains(&3));
    assert_eq!(fs::read_dir(group.directory(1).join("generations")).unwrap().count(), 1);
    group.check(3);
    // More than parity makes up for: what is on disk is gone on from.
    (0..3).for_each(|host| group.cut_power(host));
    (0..3).for_each(|host| group.run(host, false));
    group.wait_for("they know that it is lost", |status| {
        status.is_member && status.committed == Some(3) && status.whole == [1]
    });
    group.check(1);
    saved(&group, 4..=5);
    group.check(5);
}

#[test]
fn a_daemon_that_ends_writes_down_what_is_in_memory_and_leaves_none_behind() {
    let mut group = Group::start_with("ring", 3, Some("2 1 3600"));
    group.wait_for("all are members", |status| status.is_member);
    saved(&group, 1..=4);
    group.wait_for("two are in memory", |status| kept(status, Level::Memory) == [4, 3]);
    for host in 0..3 {
        let mut daemon = group.daemons[host].take().unwrap();
        drop(daemon.stdin.take());
        assert!(daemon.wait().unwrap().success());
        assert_eq!(fs::read_dir(group.memory(host)).unwrap().count(), 0);
    }
    (0..3).for_each(|host| group.run(host, false));
    group.wait_for("all have it", |status| status.is_member && status.whole.contains(&4));
    group.check(4);
    // It counts as one in memory, wherever it lies, and goes when newer ones are there.
    saved(&group, 5..=6);
    group.wait_for("it is freed", |status| !status.whole.contains(&4));
    group.check(6);
}

#[test]
fn what_has_no_room_in_memory_goes_to_the_disk() {
    let group = Group::start_with("ring", 3, Some("8 1 3600"));
    group.wait_for("all are members", |status| status.is_member);
    // Of eight that are to be kept three have room beside the one that is being written.
    saved(&group, 1..=12);
    group.wait_for("the oldest are freed", |status| {
        let memory = status.levels.iter().find(|status| status.level == Level::Memory).unwrap();
        memory.bytes <= MEMORY_BYTES * 3 / 4 && (2..=3).contains(&memory.kept.len())
    });
    let freed = group.status(2).unwrap().freed.unwrap();
    assert!(freed.contains("is freed: "), "{freed}");
    group.check(12);
}

fn flip(path: &Path) {
    let mut octets = fs::read(path).unwrap();
    let middle = octets.len() / 2;
    octets[middle] ^= 4;
    fs::write(path, octets).unwrap();
}
