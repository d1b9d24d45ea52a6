//! Containers as hosts: what they share and what not, commands in them, and their end.
//!
//! The first process of a container is this test program, started once more for the test `a_first_process`, and whoever
//! reaches one is the test `a_reach`: both do nothing where no argument or variable asks for them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::disallowed_methods,
    reason = "starts containers, and waits for them by the clock"
)]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use meikyo_spaces::{Container, ContainerOptions, Lan, container};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_first_process() {
    let orders = std::env::args().next_back().unwrap();
    if orders.starts_with('{') {
        let code = container::be_first(&orders);
        assert_eq!(code, 0, "{orders}");
    }
}

#[test]
fn a_reach() {
    let Ok(socket) = std::env::var("MEIKYO_TEST_SOCKET") else { return };
    let command = std::env::var("MEIKYO_TEST_COMMAND").unwrap();
    let command = ["sh", "-c", &command].map(str::to_owned);
    let (_none, signals) = UnixStream::pair().unwrap();
    let ended = container::reach(Path::new(&socket), &command, &signals);
    // The harness has words of its own.
    fs::write(std::env::var("MEIKYO_TEST_ENDED").unwrap(), format!("{ended:?}")).unwrap();
}

/// Whether namespaces can be made here.
fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let is_root = status.lines().any(|line| line.starts_with("Uid:\t0\t0"));
    if !is_root {
        meikyo_testing::lacking("only root makes containers without a user namespace");
    }
    is_root
}

struct Site {
    home: tempfile::TempDir,
    containers: Vec<Option<Container>>,
}

impl Site {
    fn start(hosts: usize) -> Self {
        let home = tempfile::tempdir().unwrap();
        let lan = Lan::make(hosts, 1, None).unwrap();
        let line = |host: usize| format!("{} node{}\n", Lan::address(host, 0), host + 1);
        let names: String = (0..hosts).map(line).collect();
        fs::write(home.path().join("names"), names).unwrap();
        let mut site = Self { home, containers: Vec::new() };
        for host in 0..hosts {
            let (own, seen) = (site.path(&format!("disk{host}")), site.path("disk"));
            fs::create_dir_all(&own).unwrap();
            fs::create_dir_all(&seen).unwrap();
            let options = ContainerOptions {
                name: format!("node{}", host + 1),
                hosts: site.path("names"),
                socket: site.socket(host),
                binds: vec![(own, seen)],
            };
            let role = ["--exact", "a_first_process", "--nocapture"];
            let program = std::env::current_exe().unwrap();
            let made = Container::start(&program, &role, lan.space(host), &options);
            site.containers.push(Some(made.unwrap()));
        }
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn socket(&self, host: usize) -> PathBuf {
        self.path(&format!("socket{host}"))
    }

    fn begin(&self, host: usize, command: &str) -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_reach", "--nocapture"])
            .env("MEIKYO_TEST_SOCKET", self.socket(host))
            .env("MEIKYO_TEST_COMMAND", command)
            .env("MEIKYO_TEST_ENDED", self.path("ended"))
            .current_dir(self.home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// What a command says on a host, and how it ended.
    fn run(&self, host: usize, command: &str) -> (String, String) {
        let Output { stdout, stderr, .. } = self.begin(host, command).wait_with_output().unwrap();
        let mut said = String::from_utf8_lossy(&stdout).into_owned();
        said += &String::from_utf8_lossy(&stderr);
        (said, fs::read_to_string(self.path("ended")).unwrap())
    }
}

#[test]
fn a_container_has_a_name_processes_a_disk_and_memory_of_its_own() {
    if !is_root() {
        return;
    }
    let site = Site::start(2);
    let (said, ended) = site.run(1, "hostname; echo $$; cat /etc/hosts; echo two > disk/mark");
    assert!(said.contains("node2\n"), "{said}");
    assert!(said.contains("10.77.0.1 node1\n10.77.0.2 node2\n"), "{said}");
    assert_eq!(ended, "Ok(0)");
    // Process 2 is the first that the container's own first process starts.
    assert!(said.lines().any(|line| line.parse::<u32>().is_ok_and(|id| id < 30)), "{said}");
    assert_eq!(fs::read_to_string(site.path("disk1/mark")).unwrap(), "two\n");
    assert!(!site.path("disk0/mark").exists() && !site.path("disk/mark").exists());
    let (said, ended) = site.run(0, "echo here > /dev/shm/mark; kill -9 $$");
    assert_eq!(ended, "Ok(137)", "{said}");
    let (_, ended) = site.run(1, "test -e /dev/shm/mark");
    assert_eq!(ended, "Ok(1)");
    assert!(!Path::new("/dev/shm/mark").exists());
    let (said, _) = site.run(0, "ping -c 1 -W 5 node2 > /dev/null 2>&1 || getent hosts node2");
    assert!(!said.contains("unknown"), "{said}");
}

#[test]
fn hosts_of_a_network_reach_each_other_over_every_link() {
    if !is_root() {
        return;
    }
    let lan = Lan::make(3, 2, None).unwrap();
    for link in 0..2 {
        std::thread::scope(|scope| {
            let listening = scope.spawn(|| {
                lan.enter(2).unwrap();
                TcpListener::bind((Lan::address(2, link), 7_000)).unwrap()
            });
            let listener = listening.join().unwrap();
            let sent = scope.spawn(|| {
                lan.enter(0).unwrap();
                TcpStream::connect((Lan::address(2, link), 7_000)).unwrap().write_all(b"octets")
            });
            let (mut socket, from) = listener.accept().unwrap();
            assert_eq!(from.ip(), Lan::address(0, link));
            let mut octets = Vec::new();
            socket.read_to_end(&mut octets).unwrap();
            assert_eq!(octets, b"octets");
            sent.join().unwrap().unwrap();
        });
    }
    assert!(Lan::make(0, 1, None).is_err() && Lan::make(251, 1, None).is_err());
}

#[test]
fn what_is_sent_while_a_link_carries_nothing_arrives_afterwards() {
    if !is_root() {
        return;
    }
    let mut lan = Lan::make(2, 2, None).unwrap();
    let connected = |link: usize| {
        std::thread::scope(|scope| {
            let listening = scope.spawn(|| {
                lan.enter(1).unwrap();
                TcpListener::bind((Lan::address(1, link), 7_000)).unwrap()
            });
            let listener = listening.join().unwrap();
            let connecting = scope.spawn(|| {
                lan.enter(0).unwrap();
                TcpStream::connect((Lan::address(1, link), 7_000)).unwrap()
            });
            (connecting.join().unwrap(), listener.accept().unwrap().0)
        })
    };
    let ((mut sent, mut come), (mut other, mut others)) = (connected(0), connected(1));
    lan.carry(0, false).unwrap();
    sent.write_all(b"late").unwrap();
    // The other link goes on meanwhile, and nothing comes on this one.
    other.write_all(b"soon").unwrap();
    let mut octets = [0; 4];
    others.read_exact(&mut octets).unwrap();
    assert_eq!(&octets, b"soon");
    come.set_nonblocking(true).unwrap();
    assert_eq!(come.read(&mut octets).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    come.set_nonblocking(false).unwrap();
    lan.carry(0, true).unwrap();
    come.set_read_timeout(Some(PATIENCE)).unwrap();
    come.read_exact(&mut octets).unwrap();
    assert_eq!(&octets, b"late");
}

#[test]
fn what_runs_in_a_container_ends_with_it_and_with_whoever_waits_for_it() {
    if !is_root() {
        return;
    }
    let mut site = Site::start(2);
    let is_there = |mark: &str| {
        let text = format!("sleep\0{mark}\0");
        let numbers = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        numbers
            .into_iter()
            .any(|path| fs::read(path.join("cmdline")).is_ok_and(|line| line == text.as_bytes()))
    };
    let wait = |what: &str, holds: &dyn Fn() -> bool| {
        let deadline = Instant::now() + PATIENCE;
        while !holds() {
            assert!(Instant::now() < deadline, "{what}");
            std::thread::park_timeout(Duration::from_millis(5));
        }
    };
    let id = std::process::id();
    let (one, other) = (format!("{}", 100_000 + id), format!("{}", 1_000_000 + id));
    // Whoever waits is killed: the command and what it has started are, too.
    let mut waiting = site.begin(0, &format!("sleep {one} & sleep {other}"));
    wait("they run", &|| is_there(&one) && is_there(&other));
    waiting.kill().unwrap();
    waiting.wait().unwrap();
    wait("they are killed", &|| !is_there(&one) && !is_there(&other));
    // The container is: whoever waits is told.
    let waiting = site.begin(1, &format!("sleep {one} & sleep {other}"));
    wait("they run", &|| is_there(&one) && is_there(&other));
    drop(site.containers[1].take());
    waiting.wait_with_output().unwrap();
    let ended = fs::read_to_string(site.path("ended")).unwrap();
    assert!(ended.starts_with("Err(Gone"), "{ended}");
    wait("they are killed", &|| !is_there(&one) && !is_there(&other));
    let (_, ended) = site.run(1, "true");
    assert!(ended.starts_with("Err(Gone"), "{ended}");
    assert!(site.containers[0].as_mut().unwrap().is_running().unwrap());
}
