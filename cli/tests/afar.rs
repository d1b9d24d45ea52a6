//! Rows from afar between real processes: `meikyo serve --ingest` and senders, both killed at random
//! moments, over connections that are cut. What the recording holds in the end is what was made.
//!
//! A sender is this test program itself, started again with `MEIKYO_AFAR_ROLE`. The short form runs
//! with the other tests; `./x soak afar` goes on for longer.
#![expect(clippy::disallowed_methods, reason = "tests start real programs")]
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod afar {
    pub(crate) mod collectors;
    pub(crate) mod lines;
    pub(crate) mod relay;
    pub(crate) mod rows;
    pub(crate) mod sender;
}

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use afar::relay::Relay;
use afar::rows;
use meikyo_testing::http;

/// Kills and cuts of the short form.
const FAULTS: u64 = 80;
/// How long anything may take that has to happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the started process is to do; an ordinary test run does nothing here.
#[test]
fn started_process() {
    if std::env::var("MEIKYO_AFAR_ROLE").is_ok() {
        afar::sender::send_until_killed();
    }
}

/// `meikyo serve --ingest`, which comes back at the same address.
struct Receiver {
    child: Child,
    _lines: Lines<BufReader<ChildStderr>>,
}

impl Receiver {
    fn start(dir: &Path, port: u16, more: &[&str]) -> Self {
        Self::start_at(dir, &format!("127.0.0.1:{port}"), more)
    }

    fn start_at(dir: &Path, address: &str, more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_meikyo"));
        command.args(["serve", "--listen", address, "--ingest"]).arg(dir);
        command.args(more).stderr(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        assert!(first.starts_with("serving at "), "{first}");
        Self { child, _lines: lines }
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end; it closes the recording.
    fn end(mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

/// A sender's process, and what it said last.
struct Sender {
    name: String,
    spool: PathBuf,
    run: u64,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// By run, the blocks that the sender had in its spool when it said so.
    accepted: BTreeMap<u64, u64>,
    acknowledged: u64,
    trouble: String,
}

impl Sender {
    fn start(name: &str, spool: &Path, target: &str, token: &str, run: u64) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "started_process", "--nocapture", "--test-threads=1"])
            .env("MEIKYO_AFAR_ROLE", "send")
            .env("MEIKYO_AFAR_NAME", name)
            .env("MEIKYO_AFAR_SPOOL", spool)
            .env("MEIKYO_AFAR_TARGET", target)
            .env("MEIKYO_AFAR_TOKEN", token)
            .env("MEIKYO_AFAR_RUN", run.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (name, spool) = (name.to_owned(), spool.to_path_buf());
        let (accepted, trouble) = (BTreeMap::new(), String::new());
        Self { name, spool, run, child, lines, accepted, acknowledged: 0, trouble }
    }

    /// Hears one line; whether there was one.
    fn hear(&mut self) -> bool {
        let Some(Ok(line)) = self.lines.next() else { return false };
        let mut words = line.split(' ');
        match (words.next(), words.next(), words.next()) {
            (Some("stands"), Some(accepted), Some(acknowledged)) => {
                self.accepted.insert(self.run, accepted.parse().unwrap());
                self.acknowledged = acknowledged.parse().unwrap();
            }
            (Some("trouble:"), ..) => self.trouble = line,
            _ => {}
        }
        true
    }

    /// Hears until the receiver has acknowledged more than so many blocks of this run.
    fn hear_acknowledged(&mut self, more_than: u64, seed: u64) {
        let begin = Instant::now();
        while self.acknowledged <= more_than {
            assert!(begin.elapsed() < PATIENCE, "SEED={seed}, {}: {}", self.name, self.trouble);
            assert!(self.hear(), "SEED={seed}: {} has ended", self.name);
        }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        while self.hear() {}
        self.acknowledged = 0;
    }

    fn restart(&mut self, target: &str, token: &str) {
        self.kill();
        let next = Self::start(&self.name, &self.spool, target, token, self.run + 1);
        let accepted = std::mem::take(&mut self.accepted);
        *self = Self { accepted, ..next };
    }

    /// Lets it deliver everything and end.
    fn finish(&mut self, seed: u64) {
        std::fs::write(self.spool.join("finish"), "").unwrap();
        while self.hear() {}
        assert!(
            self.child.wait().unwrap().success(),
            "SEED={seed}: {} could not deliver",
            self.name
        );
    }
}

/// xorshift64*: what happens follows from the seed.
fn next(random: &mut u64, below: u64) -> u64 {
    *random ^= *random >> 12;
    *random ^= *random << 25;
    *random ^= *random >> 27;
    (random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % below
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A new token, and the line of the server's file that lets it in.
fn new_token(role: &str) -> (String, String) {
    let made = Command::new(env!("CARGO_BIN_EXE_meikyo")).args(["serve", role]).output();
    let made = made.unwrap();
    let line = String::from_utf8(made.stdout).unwrap();
    let said = String::from_utf8(made.stderr).unwrap();
    (said.trim().rsplit(' ').next().unwrap().to_owned(), line)
}

/// In memory where that is possible: what a kill leaves is the same.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

#[test]
fn killed_and_cut_at_random_moments_the_recording_holds_what_was_made() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seed = number("MEIKYO_SOAK_SEED").unwrap_or(20_261_123);
    let (seconds, begin) = (number("MEIKYO_SOAK_SECONDS"), Instant::now());
    let mut random = seed | 1;
    let dir = scratch();
    let (recording, port) = (dir.path().join("rec"), free_port());
    let mut receiver = Receiver::start(&recording, port, &[]);
    let relay = Relay::start(port);
    let target = format!("127.0.0.1:{}", relay.port());
    let start = |name: &str| Sender::start(name, &dir.path().join(name), &target, "", 1);
    let mut senders = ["node001", "node002"].map(start);
    let (mut kills, mut receiver_kills, mut cuts) = (0, 0, 0);
    for fault in 0_u64.. {
        let goes_on = seconds.map_or(fault < FAULTS, |most| begin.elapsed().as_secs() < most);
        if !goes_on {
            break;
        }
        let which = usize::try_from(next(&mut random, 2)).unwrap();
        match next(&mut random, 3) {
            0 => {
                senders[which].restart(&target, "");
                kills += 1;
            }
            1 => {
                receiver.kill();
                receiver = Receiver::start(&recording, port, &[]);
                receiver_kills += 1;
            }
            _ => {
                relay.cut();
                cuts += 1;
            }
        }
        // Sometimes the next fault comes before anything is well again.
        if next(&mut random, 3) > 0 {
            let more = senders[which].acknowledged + next(&mut random, 60);
            senders[which].hear_acknowledged(more, seed);
        }
    }
    senders.iter_mut().for_each(|sender| sender.finish(seed));
    receiver.end();
    let found = rows::read(&recording);
    assert_eq!(found.losses, Vec::<String>::new(), "SEED={seed}: spools on a disk lose nothing");
    let mut all = 0;
    for sender in &senders {
        for (run, accepted) in &sender.accepted {
            let there = found.blocks_of(&sender.name, *run);
            assert!(there >= *accepted, "SEED={seed}: {} {run}: {there} < {accepted}", sender.name);
            all += there;
        }
    }
    assert_eq!(found.blocks(), all, "SEED={seed}: blocks of runs that nobody knows");
    assert!(kills > 0 && receiver_kills > 0 && cuts > 0, "SEED={seed}: too tame");
    tell(&format!(
        "SEED={seed}: {kills} senders and {receiver_kills} receivers killed, {cuts} cuts; \
         {all} blocks, {} rows",
        found.rows()
    ));
}

#[test]
fn a_token_is_for_sending_or_for_viewing_and_for_the_senders_that_it_names() {
    let dir = scratch();
    let tokens = dir.path().join("tokens");
    let (view, for_view) = new_token("--new-token");
    let (ingest, for_ingest) = new_token("--new-token=ingest:node00*,west:*");
    std::fs::write(&tokens, for_view + &for_ingest).unwrap();
    let (recording, port) = (dir.path().join("rec"), free_port());
    let more = ["--token-file", tokens.to_str().unwrap()];
    let receiver = Receiver::start(&recording, port, &more);
    let target = format!("127.0.0.1:{port}");
    let hear_trouble = |name: &str, token: &str| {
        let mut sender = Sender::start(name, &dir.path().join(name), &target, token, 1);
        let begin = Instant::now();
        while sender.trouble.is_empty() && sender.acknowledged == 0 {
            assert!(begin.elapsed() < PATIENCE && sender.hear());
        }
        sender.kill();
        sender.trouble
    };
    assert_eq!(hear_trouble("node001", &ingest), "");
    let another = hear_trouble("node101", &ingest);
    assert!(another.contains("the token is for node00*, west:*, not for `node101`"), "{another}");
    let viewing = hear_trouble("node002", &view);
    assert!(viewing.contains("403") && viewing.contains("is for viewing"), "{viewing}");
    let wrong = hear_trouble("node003", "wrong");
    assert!(wrong.contains("401") && wrong.contains("the token is wrong"), "{wrong}");
    let ask = |token: &str| {
        let headers = format!("Host: localhost\r\nAuthorization: Bearer {token}\r\n");
        let request = format!("GET /api/v1/recordings HTTP/1.0\r\n{headers}\r\n");
        let mut stream = TcpStream::connect(&target).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        http::read_answer(stream)
    };
    assert_eq!(ask(&view).status, 200);
    let refused = ask(&ingest);
    assert!(refused.status == 403 && refused.text().contains("not for viewing"), "{refused:?}");
    receiver.end();
}

#[expect(clippy::print_stdout, reason = "what a long run has shown")]
fn tell(text: &str) {
    println!("{text}");
}
