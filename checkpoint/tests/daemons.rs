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

use meikyo_checkpoint::daemon::{self, Answer, DaemonOptions, JobFile, Request, Status, ask};
use meikyo_checkpoint::tls::JobKey;
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
    };
    daemon::run(options).unwrap();
}

/// A group of daemons; all are killed when it is dropped.
struct Group {
    home: tempfile::TempDir,
    daemons: Vec<Option<Child>>,
}

impl Group {
    fn start(scheme: &str, hosts: usize) -> Self {
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
        let mut group = Self { home, daemons: (0..hosts).map(|_| None).collect() };
        for host in 0..hosts {
            group.run(host, true);
        }
        group
    }

    fn directory(&self, host: usize) -> PathBuf {
        self.home.path().join(format!("host{host}"))
    }

    fn run(&mut self, host: usize, founding: bool) {
        let child = Command::new(std::env::current_exe().unwrap())
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
            Ok(Answer::Status(status)) => Some(status),
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
            let request = Request::Save { step, image };
            let answer = ask(&self.directory(host), &request).unwrap();
            assert_eq!(answer, Answer::Snapped { bytes: image_of(host, step).len() as u64 });
        }
    }

    /// Reads the newest generation of every host, and compares it with what the program had.
    fn check(&self, step: u64) {
        for host in 0..self.daemons.len() {
            let to = self.home.path().join("restored");
            let answer = ask(&self.directory(host), &Request::Restore { to: to.clone() }).unwrap();
            assert!(
                matches!(answer, Answer::Restored { step: is, .. } if is == step),
                "{answer:?}"
            );
            assert!(fs::read(to).unwrap() == image_of(host, step), "host {host}, step {step}");
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

#[test]
fn whatever_is_killed_while_it_writes_the_newest_step_is_read_again() {
    let mut group = Group::start("ring", 3);
    group.wait_for("all are members", |status| status.is_member);
    group.save(1);
    group.wait_for("the step is committed", |status| status.step == Some(1));
    let mut random = Random::new(5);
    for kill in 0..8 {
        let (host, step) = (random.index(3), 100 + kill);
        group.save(step);
        let wait = Duration::from_micros(random.below(60_000));
        let until = Instant::now() + wait;
        while Instant::now() < until {
            std::thread::park_timeout(wait / 8);
        }
        group.kill(host);
        group.run(host, false);
        group.wait_for("nothing is open", |status| status.is_member && status.open.is_none());
        let committed = group.status(0).unwrap();
        let step = committed.step.unwrap();
        group.wait_for("all have the newest", |status| {
            status.step == Some(step)
                && status.committed.is_some_and(|newest| status.whole.contains(&newest))
        });
        group.check(step);
    }
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
    let answer = ask(&group.directory(0), &Request::Restore { to: to.clone() }).unwrap();
    assert!(matches!(answer, Answer::Restored { step: 1, .. }), "{answer:?}");
    assert!(fs::read(to).unwrap() == image_of(0, 1));
}
