//! Containers on hosts that are reached by `ssh`, as whoever runs the job sees them: one process of each host that has its
//! container ([`super::machine`]), which is told that the job still runs, and when the program's network is to be silent.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use meikyo_checkpoint::daemon::Status;
use meikyo_console::failure::Failure;

use super::machine::{BEAT, END, SEND, SILENT, STATUS, UP};
use super::role_names::UNREACHED;
use super::site::Site;
use super::trouble::{LOOK_AGAIN, NotStarted, now, spawned};

/// A host has its container in this time.
const STARTING: Duration = Duration::from_secs(60);

/// A host that does not carry out an order in this time is silent.
const CARRYING: Duration = Duration::from_secs(2);

/// Whoever reaches a host has so long to end with what it has there.
const ENDING: Duration = Duration::from_secs(2);

/// A host with a container.
struct Machine {
    child: Child,
    /// The container ends with it.
    input: Option<File>,
    /// What the host says.
    said: Receiver<String>,
}

/// All of them, by place. They end when this is dropped.
pub(super) struct Afar {
    machines: Vec<Machine>,
    /// Of the last order.
    number: Cell<u64>,
    /// The thread that says that the job runs ends with it.
    beats: Option<Sender<()>>,
}

impl Afar {
    /// Starts the containers of all hosts of a site.
    pub(super) fn start(site: &Site) -> Result<Self, NotStarted> {
        let mut machines = Vec::new();
        let mut inputs = Vec::new();
        for place in 0..site.hosts.len() {
            let host = &site.hosts[place];
            let mut command = site.machine(place)?;
            let log = File::create(site.container_log_of(host)).map_err(Failure::from)?;
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
            let mut child = spawned(&mut command)?;
            let input = child.stdin.take().map(OwnedFd::from).map(File::from);
            if let Some(input) = &input {
                // A host that takes nothing any more is not waited for.
                rustix::io::ioctl_fionbio(input, true).map_err(|error| {
                    Failure::new(format!("cannot talk to {}: {error}", host.name))
                })?;
                inputs.push(input.try_clone().map_err(Failure::from)?);
            }
            let said = lines(child.stdout.take());
            machines.push(Machine { child, input, said });
        }
        let mut afar = Self { machines, number: Cell::new(0), beats: Some(beat(inputs)) };
        let deadline = now() + STARTING;
        for place in 0..afar.machines.len() {
            afar.await_up(site, place, deadline)?;
        }
        Ok(afar)
    }

    fn await_up(&mut self, site: &Site, place: usize, deadline: Instant) -> Result<(), NotStarted> {
        let machine = &mut self.machines[place];
        while now() < deadline {
            match machine.said.recv_timeout(LOOK_AGAIN) {
                Ok(line) if line == UP => return Ok(()),
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let host = &site.hosts[place];
        let ended = machine.child.try_wait().map_err(Failure::from)?;
        if ended.is_some_and(|ended| ended.code() == Some(UNREACHED.into())) {
            return Err(NotStarted::Lost(place));
        }
        let log = site.container_log_of(host);
        let said = fs::read_to_string(&log).unwrap_or_default();
        let errors = said.lines().find_map(|line| line.strip_prefix("error: "));
        let why = errors.or_else(|| said.lines().last()).unwrap_or("it says nothing");
        Err(Failure::new(format!("{} has no container: {why}", host.name))
            .hint(format!(
                "`{}` has all that it said; root is needed there, and the same meikyo in the same place",
                log.display()
            ))
            .into())
    }

    /// Gives a host an order.
    fn tell(&self, place: usize, word: &str, number: u64) {
        let machine = self.machines.get(place);
        if let Some(mut input) = machine.and_then(|machine| machine.input.as_ref()) {
            // One that is gone says nothing.
            drop(input.write_all(format!("{word} {number}\n").as_bytes()));
        }
    }

    /// What a host answers to an order, if it does so in time.
    fn answer(&self, place: usize, number: u64, deadline: Instant) -> Option<String> {
        let number = number.to_string();
        loop {
            let left = deadline.saturating_duration_since(now());
            let line = self.machines.get(place)?.said.recv_timeout(left).ok()?;
            if let Some((answered, behind)) = line.split_once(' ')
                && answered == number
            {
                return Some(behind.to_owned());
            }
        }
    }

    fn next_number(&self) -> u64 {
        self.number.set(self.number.get() + 1);
        self.number.get()
    }

    /// Lets the program's devices send, or drop what is sent; the places of hosts that did not say in time that they do.
    pub(super) fn carry(&self, is_on: bool) -> Result<(), Vec<usize>> {
        let (word, number) = (if is_on { SEND } else { SILENT }, self.next_number());
        (0..self.machines.len()).for_each(|place| self.tell(place, word, number));
        let deadline = now() + CARRYING;
        let is_late = |place: &usize| self.answer(*place, number, deadline).is_none();
        let late: Vec<usize> = (0..self.machines.len()).filter(is_late).collect();
        if late.is_empty() { Ok(()) } else { Err(late) }
    }

    /// How the daemon of a host stands; nothing while it does not answer.
    pub(super) fn status(&self, place: usize) -> Option<Status> {
        let number = self.next_number();
        self.tell(place, STATUS, number);
        let answer = self.answer(place, number, now() + CARRYING)?;
        serde_json::from_str(&answer).ok()
    }

    /// Whether the host of a place still has its container.
    pub(super) fn is_running(&mut self, place: usize) -> bool {
        let machine = self.machines.get_mut(place);
        machine.is_some_and(|machine| matches!(machine.child.try_wait(), Ok(None)))
    }

    /// Ends the container of a host, if that is reached; else it does so itself when its lease is over.
    pub(super) fn end(&mut self, place: usize) {
        // What reaches it may go on for a while behind whoever is killed here.
        self.tell(place, END, self.next_number());
        if let Some(machine) = self.machines.get_mut(place) {
            machine.end(now() + ENDING);
        }
    }
}

impl Machine {
    /// Waits so long for its end, and kills whoever reaches it then.
    fn end(&mut self, deadline: Instant) {
        drop(self.input.take());
        while matches!(self.child.try_wait(), Ok(None)) && now() < deadline {
            thread::park_timeout(LOOK_AGAIN);
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Drop for Afar {
    fn drop(&mut self) {
        // Whoever beats has their inputs, too.
        drop(self.beats.take());
        self.machines.iter_mut().for_each(|machine| drop(machine.input.take()));
        let deadline = now() + ENDING;
        self.machines.iter_mut().for_each(|machine| machine.end(deadline));
    }
}

/// Says on all of these, from now until what is given is dropped, that the job runs.
fn beat(mut inputs: Vec<File>) -> Sender<()> {
    let (sender, stopped) = channel();
    thread::spawn(move || {
        while stopped.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
            for input in &mut inputs {
                // One that is gone, or takes nothing any more, is noticed otherwise.
                drop(input.write_all(b".\n"));
            }
        }
    });
    sender
}

fn lines(output: Option<std::process::ChildStdout>) -> Receiver<String> {
    let (sender, said) = channel();
    if let Some(output) = output {
        thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
    }
    said
}
