//! Daemons of a group, each a process of `meikyo`.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use meikyo_checkpoint::daemon::{Answer, Request, Status, ask};
use meikyo_checkpoint::tls::JobKey;
use meikyo_console::failure::Failure;
use meikyo_spaces::Lan;

use crate::collector::product;

/// Longest that daemons may take for anything.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often they are asked.
const ASK_EVERY: Duration = Duration::from_millis(10);

/// The daemons of a group; all are killed when this is dropped.
pub(super) struct Daemons<'a> {
    home: tempfile::TempDir,
    /// The network in which each of them is a host; that of this process otherwise.
    network: Option<&'a Lan>,
    running: Vec<Option<Child>>,
}

impl<'a> Daemons<'a> {
    /// Founds a group whose hosts listen at some addresses.
    pub(super) fn found(
        directory: &Path,
        scheme: &str,
        addresses: &[SocketAddr],
        network: Option<&'a Lan>,
    ) -> Result<Self, Failure> {
        let home = tempfile::tempdir_in(directory)?;
        let mut private = fs::OpenOptions::new();
        let key = private.write(true).create_new(true).mode(0o600).open(home.path().join("key"));
        key?.write_all(&JobKey::generate()?)?;
        let mut job = format!("scheme = \"{scheme}\"\nkey = \"key\"\n");
        for (host, address) in addresses.iter().enumerate() {
            job += &format!("[[hosts]]\nname = \"node{host}\"\naddresses = [\"{address}\"]\n");
        }
        fs::write(home.path().join("job.toml"), job)?;
        let running = addresses.iter().map(|_| None).collect();
        let mut daemons = Self { home, network, running };
        for host in 0..addresses.len() {
            daemons.start(host, &["--found"])?;
        }
        daemons.wait_for("meet", |status| status.is_member)?;
        Ok(daemons)
    }

    /// Where all of them have their directories.
    pub(super) fn home(&self) -> &Path {
        self.home.path()
    }

    /// The directory of one of them.
    pub(super) fn directory(&self, host: usize) -> PathBuf {
        self.home.path().join(host.to_string())
    }

    /// Starts the daemon of a host. It ends with its standard input, and so with this process.
    pub(super) fn start(&mut self, host: usize, options: &[&str]) -> Result<(), Failure> {
        let mut command = product()?;
        command.args(["checkpoint", "daemon", "--with-input", "--keep", "1", "--job"]);
        command.arg(self.home.path().join("job.toml")).args(["--host", &format!("node{host}")]);
        command.arg("--directory").arg(self.directory(host)).args(options);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let network = self.network;
        let started = thread::scope(|scope| {
            let starting = scope.spawn(move || {
                network.map_or(Ok(()), |network| network.enter(host))?;
                command.spawn()
            });
            starting.join().expect("starting a process does not panic")
        });
        self.running[host] = Some(started?);
        Ok(())
    }

    /// Kills the daemon of a host.
    pub(super) fn kill(&mut self, host: usize) -> Result<(), Failure> {
        if let Some(mut daemon) = self.running[host].take() {
            daemon.kill()?;
            daemon.wait()?;
        }
        Ok(())
    }

    /// Waits until something holds of every daemon that runs.
    pub(super) fn wait_for(
        &self,
        what: &str,
        holds: impl Fn(&Status) -> bool,
    ) -> Result<(), Failure> {
        let deadline = Instant::now() + PATIENCE;
        let does_hold = |host: usize| match ask(&self.directory(host), &Request::Status) {
            Ok(Answer::Status(status)) => holds(&status),
            _ => false,
        };
        while !(0..self.running.len()).all(|host| self.running[host].is_none() || does_hold(host)) {
            if Instant::now() > deadline {
                return Err(Failure::new(format!("the daemons of the bench do not {what}")));
            }
            thread::park_timeout(ASK_EVERY);
        }
        Ok(())
    }

    /// Has a daemon write the newest image of its host into a file, once it has it; which step it is of.
    pub(super) fn restore(&self, host: usize, to: &Path) -> Result<u64, Failure> {
        let request = Request::Restore { to: to.to_owned(), generation: None };
        let deadline = Instant::now() + PATIENCE;
        loop {
            match ask(&self.directory(host), &request) {
                Ok(Answer::Restored { step, .. }) => return Ok(step),
                // It starts, or its data are being rebuilt.
                Ok(Answer::Refused(_)) | Err(_) if Instant::now() < deadline => {
                    thread::park_timeout(ASK_EVERY);
                }
                answer => {
                    return Err(Failure::new(format!("a daemon of the bench says {answer:?}")));
                }
            }
        }
    }
}

impl Drop for Daemons<'_> {
    fn drop(&mut self) {
        for daemon in self.running.iter_mut().flatten() {
            // It may have ended.
            drop(daemon.kill());
            drop(daemon.wait());
        }
    }
}
