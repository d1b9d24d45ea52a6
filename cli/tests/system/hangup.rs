//! SIGHUP: files are read anew, and what lost its terminal ends as it should.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::fs;
use std::io::{BufRead as _, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use meikyo_units::WallTime;

use crate::running::{Farm, PATIENCE, Process, interrupt, is_ok, meikyo};

fn hang_up(process: &Child) {
    let done = Command::new("kill").args(["-HUP", &process.id().to_string()]).status().unwrap();
    assert!(done.success());
}

/// A process and what it tells, in a session without a terminal.
struct Daemon {
    process: Process,
    lines: Lines<BufReader<ChildStderr>>,
}

impl Daemon {
    fn start(of: &Command) -> Self {
        let mut command = Command::new("setsid");
        // It makes a session and becomes the program: a child leads no group, so nothing is forked.
        command.arg(of.get_program()).args(of.get_args());
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { process: Process(child), lines }
    }

    /// Reads until a line contains something.
    fn wait_for(&mut self, text: &str) -> String {
        self.lines.by_ref().map(Result::unwrap).find(|line| line.contains(text)).unwrap()
    }
}

fn certificate(dir: &Path) {
    meikyo_testing::certificate::make(dir, "DNS:meikyo").unwrap();
}

/// The certificate that a server shows, as `openssl` prints it.
fn shown(address: &str) -> String {
    let output = Command::new("openssl")
        .args(["s_client", "-connect", address])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let begin = text.find("-----BEGIN CERTIFICATE").unwrap();
    let end = text.find("-----END CERTIFICATE").unwrap();
    text[begin..end].to_owned()
}

#[test]
fn a_server_shows_a_new_certificate_after_sighup_and_the_old_one_when_the_new_is_bad() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let mut agents = meikyo();
    agents.args(["farm", "--count", "1", "--virtual", "10s", "--out", &at("rec")]);
    assert!(agents.stderr(Stdio::null()).status().unwrap().success());
    certificate(dir.path());
    let token = meikyo().args(["serve", "--new-token"]).output().unwrap();
    fs::write(at("tokens"), token.stdout).unwrap();
    let mut child = meikyo()
        .args(["serve", &at("rec"), "--listen", "127.0.0.1:0", "--token-file", &at("tokens")])
        .args(["--tls-cert", &at("chain.pem"), "--tls-key", &at("key.pem")])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut server = Daemon { process: Process(child), lines };
    let address = server.wait_for("serving at ");
    let address = address.split('/').nth(2).unwrap();
    let first = shown(address);
    certificate(dir.path());
    assert_eq!(shown(address), first, "not before it is asked to");
    hang_up(&server.process.0);
    server.wait_for("certificate and key and tokens reloaded");
    let second = shown(address);
    assert_ne!(second, first);
    assert!(fs::read_to_string(at("chain.pem")).unwrap().contains(&second));
    fs::write(at("chain.pem"), "no certificate").unwrap();
    hang_up(&server.process.0);
    server.wait_for("the old files stay in use");
    assert!(server.wait_for("error: ").contains("chain.pem"));
    assert_eq!(shown(address), second);
    interrupt(&server.process.0);
    assert!(server.process.0.wait().unwrap().success());
}

#[test]
fn a_measurement_without_a_terminal_goes_on_after_sighup() {
    let farm = Farm::start(2);
    let mut measurement = Daemon::start(&farm.measure(&["--serve", "127.0.0.1:0"]));
    measurement.wait_for("serving at ");
    farm.wait_for("polls", 10, is_ok);
    hang_up(&measurement.process.0);
    measurement.wait_for("the measurement goes on");
    measurement.wait_for("neither a certificate nor a token file");
    let before = farm.wait_for("polls", 1, is_ok).len();
    farm.wait_for("polls", before + 10, is_ok);
    interrupt(&measurement.process.0);
    assert!(measurement.process.0.wait().unwrap().success());
}

#[test]
fn a_measurement_whose_terminal_is_closed_ends_as_it_should() {
    let farm = Farm::start(2);
    let measure = farm.measure(&[]);
    let words = [measure.get_program()].into_iter().chain(measure.get_args());
    let words: Vec<_> = words.map(|word| word.to_str().unwrap()).collect();
    let command = format!("exec {}", words.join(" "));
    // Whoever runs the tests may have been started with `nohup`.
    let script = Command::new("env")
        .args(["--default-signal=HUP", "script", "--quiet", "--command", &command, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut script = Process(script);
    farm.wait_for("polls", 10, is_ok);
    let door = farm.recording().join("control.sock");
    assert!(door.exists());
    // The terminal goes without a word, as when a window or a connection is closed.
    script.0.kill().unwrap();
    script.0.wait().unwrap();
    let deadline = WallTime::now() + PATIENCE;
    while door.exists() {
        assert!(WallTime::now() < deadline, "its socket is left: it did not end as it should");
    }
    // Another one can go on there, since nobody writes any more.
    let mut next = farm.measure(&["--for", "1s"]);
    let deadline = WallTime::now() + PATIENCE;
    while !next.output().unwrap().status.success() {
        assert!(WallTime::now() < deadline, "somebody still writes");
    }
}
