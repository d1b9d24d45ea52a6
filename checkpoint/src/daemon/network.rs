//! A daemon's connections: one to each other host for messages, and those of jobs, which are kept until
//! the job takes them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};
use std::{sync::Arc, thread};

use super::{Input, JobFile, now, told};
use crate::charter::Generation;
use crate::exchange::Links;
use crate::link::{self, Greeting, MeetError, Meeting, Purpose, STALL, Wanted};
use crate::member::{MESSAGE_BYTES_MAX, Message};
use crate::pace::Pace;
use crate::schedule::Schedule;
use crate::shelf::Stored;
use crate::tls::{Inbound, Outbound};

/// Messages that wait for a host; more are dropped, as the network could.
const MESSAGES_MAX: usize = 256;

/// How long a host that does not answer is left alone.
const RECONNECT: Duration = Duration::from_millis(100);

/// How long hosts wait for each other at the begin of a job, beside what it takes them to prepare it.
pub(super) const MEETING: Duration = Duration::from_secs(10);

/// A wish that was not heard is said again after so long.
const WANT_AGAIN: Duration = Duration::from_millis(300);

/// A message that is not acknowledged for so long is lost, and the connection with it.
const MESSAGE_STALL: Duration = Duration::from_secs(2);

/// A host from which no message came for so long has another connection, or none.
const SILENCE: Duration = Duration::from_secs(60);

/// Connections that may be without a greeting at once: more are closed, so that strangers take no memory.
const GREETING_MAX: usize = 256;

/// The same, of one address.
const GREETING_PER_ADDRESS_MAX: usize = 64;

/// When the system has no descriptor for another connection, it is asked again after so long.
pub(super) const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Connections of jobs that nobody has taken.
const LANES_MAX: usize = 1_024;

/// How long they are kept.
const LANE_LIFE: Duration = Duration::from_secs(30);

/// The first octet of what is sent: a message of a member, a wish for what was lost of a
/// generation, or for an image.
const MESSAGE: u8 = 0;
const WANTED: u8 = 1;
const FETCH: u8 = 2;

/// A wish for an image that was not heard is said again after so long.
const FETCH_AGAIN: Duration = Duration::from_secs(2);

/// A host that is rebuilding the image is waited for so long.
const FETCH_PATIENCE: Duration = Duration::from_secs(120);

/// Octets of an image that are taken from a connection at once.
const FETCH_BYTES: usize = 1 << 20;

/// What connections are for: purpose, generation, membership version, attempt.
type For = (u8, Generation, u64, u64);

/// Which connection: the place that it comes from, and the link that it stands for.
type Slot = (usize, u8);

/// Connections that have come, and when.
type Lanes = BTreeMap<Slot, (Instant, Inbound)>;

/// A job that hosts meet for.
pub(super) struct Meet<'a> {
    pub(super) purpose: Purpose,
    pub(super) generation: Generation,
    /// The membership version that meets.
    pub(super) version: u64,
    pub(super) attempt: u64,
    pub(super) schedule: &'a Schedule,
    /// How long the others are waited for.
    pub(super) patience: Duration,
    /// What the others are asked for until they come.
    pub(super) wanted: Option<Wanted>,
}

pub(super) struct Network {
    job: JobFile,
    me: usize,
    /// How fast blocks and images may be sent.
    pace: Arc<Pace>,
    queues: BTreeMap<usize, SyncSender<Vec<u8>>>,
    waiting: Mutex<BTreeMap<For, Lanes>>,
    came: Condvar,
    /// Connections whose greeting has not come yet, by who has made them.
    greeting: Mutex<BTreeMap<IpAddr, usize>>,
}

impl Network {
    pub(super) fn start(
        job: &JobFile,
        me: usize,
        pace: Pace,
        listeners: Vec<TcpListener>,
        inputs: &SyncSender<Input>,
    ) -> Arc<Self> {
        let mut queues = BTreeMap::new();
        for place in (0..job.names().len()).filter(|place| *place != me) {
            let (queue, messages) = sync_channel(MESSAGES_MAX);
            let job = job.clone();
            thread::spawn(move || talk(&job, me, place, &messages));
            queues.insert(place, queue);
        }
        let network = Arc::new(Self {
            job: job.clone(),
            me,
            pace: Arc::new(pace),
            queues,
            waiting: Mutex::default(),
            came: Condvar::new(),
            greeting: Mutex::default(),
        });
        for listener in listeners {
            let (network, inputs) = (Arc::clone(&network), inputs.clone());
            thread::spawn(move || accept_all(&network, &listener, &inputs));
        }
        network
    }

    /// Sends a message, unless too many wait.
    pub(super) fn send(&self, to: usize, message: &Message) {
        let mut octets = vec![MESSAGE];
        octets.extend(message.octets());
        self.push(to, octets);
    }

    /// Tells those that have it that this host wants what it lost of a generation.
    fn want(&self, wanted: &Wanted) {
        let mut octets = vec![WANTED];
        octets.extend_from_slice(&wanted.octets());
        for &to in self.queues.keys().filter(|to| wanted.lost >> **to & 1 == 0) {
            self.push(to, octets.clone());
        }
    }

    fn push(&self, to: usize, octets: Vec<u8>) {
        if let Some(queue) = self.queues.get(&to) {
            // Members ask again for what was not answered.
            drop(queue.try_send(octets));
        }
    }

    /// All connections that this host needs for a job.
    pub(super) fn meet(&self, meet: &Meet<'_>) -> Result<Links, MeetError> {
        let Meet { purpose, generation, version, attempt, schedule, patience, .. } = *meet;
        let greeting = Greeting {
            attempt,
            job: self.job.digest(),
            ..Greeting::new(purpose, version, generation)
        };
        let (key, addresses) = (self.job.key(), self.job.addresses());
        let meeting = Meeting { key, addresses, greeting, patience, stall: STALL };
        let deadline = now() + patience;
        meet.wanted.iter().for_each(|wanted| self.want(wanted));
        let outbound = link::reach(&meeting, schedule, self.me, deadline)?;
        let lanes = u8::try_from(addresses[self.me].len()).expect("a job's file is checked for it");
        let links = schedule.links();
        let senders = links.iter().filter(|(_, to)| *to == self.me).map(|(from, _)| *from);
        let expected: BTreeSet<Slot> =
            senders.flat_map(|from| (0..lanes).map(move |link| (from, link))).collect();
        let key = (purpose.octet(), generation, version, attempt);
        let mut waiting = self.waiting.lock().expect("no thread panics under this lock");
        loop {
            let there = waiting.entry(key).or_default();
            let missing = expected.iter().filter(|slot| !there.contains_key(slot)).count();
            let left = deadline.saturating_duration_since(now());
            if missing == 0 {
                let there = waiting.remove(&key).unwrap_or_default().into_iter();
                let wanted = there.filter(|(slot, _)| expected.contains(slot));
                let inbound = wanted.map(|((from, _), (_, lane))| (from, lane)).collect();
                return Ok(Links { outbound, inbound, pace: Some(Arc::clone(&self.pace)) });
            }
            if left.is_zero() {
                waiting.remove(&key);
                return Err(MeetError::Missing { missing, waited: patience });
            }
            let (next, waited) = self
                .came
                .wait_timeout(waiting, left.min(WANT_AGAIN))
                .expect("no thread panics under this lock");
            waiting = next;
            if waited.timed_out() {
                meet.wanted.iter().for_each(|wanted| self.want(wanted));
            }
        }
    }

    /// Who has connected, with the job's key.
    fn welcome(&self, socket: TcpStream, inputs: &SyncSender<Input>) -> io::Result<()> {
        let address = socket.peer_addr()?.ip();
        if !self.begins_greeting(address) {
            return Ok(());
        }
        let greeted = link::greeted(self.job.key(), socket, STALL);
        self.ends_greeting(address);
        let (greeting, lane) = greeted?;
        let from = usize::from(greeting.from);
        let is_of_job = greeting.job == self.job.digest()
            && usize::from(greeting.to) == self.me
            && self
                .job
                .addresses()
                .get(from)
                .is_some_and(|links| links.len() > greeting.link.into());
        if !is_of_job {
            return Ok(());
        }
        if greeting.purpose == Purpose::Agreement {
            return listen_to(from, lane, inputs);
        }
        let mut waiting = self.waiting.lock().expect("no thread panics under this lock");
        let oldest = now().checked_sub(LANE_LIFE);
        waiting.retain(|_, lanes| {
            lanes.retain(|_, (came, _)| oldest.is_none_or(|oldest| *came > oldest));
            !lanes.is_empty()
        });
        if waiting.values().map(BTreeMap::len).sum::<usize>() < LANES_MAX {
            let Greeting { purpose, generation, version, attempt, .. } = greeting;
            let key = (purpose.octet(), generation, version, attempt);
            waiting.entry(key).or_default().insert((from, greeting.link), (now(), lane));
            self.came.notify_all();
        }
        Ok(())
    }

    pub(super) const fn me(&self) -> usize {
        self.me
    }

    pub(super) fn hosts(&self) -> usize {
        self.job.names().len()
    }

    /// Sends this host's image to one that has asked for it.
    pub(super) fn give_image(
        &self,
        to: usize,
        generation: Generation,
        attempt: u64,
        directory: &Path,
    ) -> io::Result<()> {
        let greeting = Greeting {
            attempt,
            job: self.job.digest(),
            ..Greeting::new(Purpose::Fetch, 0, generation)
        };
        let (key, addresses) = (self.job.key(), self.job.addresses());
        let meeting = Meeting { key, addresses, greeting, patience: MEETING, stall: STALL };
        let lane = link::dial(&meeting, (self.me, to, 0), &addresses[to], now() + MEETING);
        let mut lane = lane.map_err(io::Error::other)?;
        // Whoever does not get all of it asks again.
        let given = give_image(directory, |octets| {
            self.pace.wait_for(octets.len());
            lane.send(&[], octets)
        });
        lane.close();
        given
    }

    /// Writes the image of another host into a file.
    pub(super) fn fetch(
        &self,
        place: usize,
        generation: Generation,
        to: &Path,
    ) -> Result<(), String> {
        let attempt = super::storage::random();
        let mut octets = vec![FETCH];
        octets.extend_from_slice(&generation.0.to_le_bytes());
        octets.extend_from_slice(&attempt.to_le_bytes());
        let name = &self.job.names()[place];
        let key = (Purpose::Fetch.octet(), generation, 0, attempt);
        let deadline = now() + FETCH_PATIENCE;
        self.push(place, octets.clone());
        let mut waiting = self.waiting.lock().expect("no thread panics under this lock");
        let mut lane = loop {
            let come = waiting.get_mut(&key).and_then(|lanes| lanes.remove(&(place, 0)));
            if let Some((_, lane)) = come {
                waiting.remove(&key);
                break lane;
            }
            let left = deadline.saturating_duration_since(now());
            if left.is_zero() {
                let number = generation.0;
                return Err(format!("`{name}` does not give its image of generation {number}"));
            }
            let waited = self.came.wait_timeout(waiting, left.min(FETCH_AGAIN));
            let (next, waited) = waited.expect("no thread panics under this lock");
            waiting = next;
            if waited.timed_out() {
                self.push(place, octets.clone());
            }
        };
        drop(waiting);
        let broke = |error| format!("the image of `{name}` has not come: {}", told(error));
        let mut len = [0; 8];
        lane.receive(&mut len).map_err(broke)?;
        let mut left = u64::from_le_bytes(len);
        let mut file = private_file(to).map_err(broke)?;
        let mut octets = vec![0; FETCH_BYTES];
        while left > 0 {
            let count = usize::try_from(left).map_or(FETCH_BYTES, |left| left.min(FETCH_BYTES));
            lane.receive(&mut octets[..count]).map_err(broke)?;
            file.write_all(&octets[..count]).map_err(broke)?;
            left -= count as u64;
        }
        Ok(())
    }

    /// Nothing that was made for a generation is waited for any more.
    pub(super) fn forget(&self, generation: Generation) {
        let mut waiting = self.waiting.lock().expect("no thread panics under this lock");
        waiting.retain(|(_, of, ..), _| *of != generation);
    }

    fn begins_greeting(&self, address: IpAddr) -> bool {
        let mut greeting = self.greeting.lock().expect("no thread panics under this lock");
        if greeting.values().sum::<usize>() >= GREETING_MAX {
            return false;
        }
        let count = greeting.entry(address).or_default();
        let begins = *count < GREETING_PER_ADDRESS_MAX;
        *count += usize::from(begins);
        begins
    }

    fn ends_greeting(&self, address: IpAddr) {
        let mut greeting = self.greeting.lock().expect("no thread panics under this lock");
        if let Some(count) = greeting.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                greeting.remove(&address);
            }
        }
    }
}

/// Sends a stored image, block by block, each compared with its checksum.
fn give_image(directory: &Path, mut send: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let stored = Stored::open(directory).map_err(io::Error::other)?;
    let len = stored.geometry().lens()[stored.manifest().place];
    send(&len.to_le_bytes())?;
    stored.read_image(&mut send)
}

/// A file that nobody else can read.
fn private_file(path: &Path) -> io::Result<File> {
    fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

fn accept_all(network: &Arc<Network>, listener: &TcpListener, inputs: &SyncSender<Input>) {
    loop {
        match listener.accept() {
            Ok((socket, _)) => {
                let (network, inputs) = (Arc::clone(network), inputs.clone());
                thread::spawn(move || drop(network.welcome(socket, &inputs)));
            }
            // It was given up before it was taken, or there is no descriptor for it.
            Err(_) => thread::park_timeout(ACCEPT_AGAIN),
        }
    }
}

/// Hands over what a host says, until it says no more.
fn listen_to(from: usize, mut lane: Inbound, inputs: &SyncSender<Input>) -> io::Result<()> {
    lane.wait_at_most(Some(SILENCE))?;
    loop {
        let mut len = [0; 4];
        lane.receive(&mut len)?;
        let len = u32::from_le_bytes(len) as usize;
        if len == 0 || len > MESSAGE_BYTES_MAX + 1 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut octets = vec![0; len];
        lane.receive(&mut octets)?;
        let input = match octets.split_first() {
            Some((&MESSAGE, rest)) => {
                let message = Message::read(rest).map_err(io::Error::other)?;
                if message.from != from {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                Input::Message(message)
            }
            Some((&WANTED, rest)) => {
                let wanted = Wanted::read(rest).ok_or(io::ErrorKind::InvalidData)?;
                Input::Wanted { from, wanted }
            }
            Some((&FETCH, rest)) => {
                let (generation, attempt) =
                    rest.split_first_chunk().ok_or(io::ErrorKind::InvalidData)?;
                let attempt = attempt.try_into().map_err(io::Error::other)?;
                Input::Fetch {
                    from,
                    generation: Generation(u64::from_le_bytes(*generation)),
                    attempt: u64::from_le_bytes(attempt),
                }
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        if inputs.send(input).is_err() {
            return Ok(());
        }
    }
}

/// Keeps a connection to a host, and sends what is queued for it.
fn talk(job: &JobFile, me: usize, place: usize, messages: &Receiver<Vec<u8>>) {
    let job_digest = job.digest();
    let greeting =
        Greeting { job: job_digest, ..Greeting::new(Purpose::Agreement, 0, Generation(0)) };
    let (key, addresses) = (job.key(), job.addresses());
    let meeting = Meeting { key, addresses, greeting, patience: RECONNECT, stall: MESSAGE_STALL };
    let (mut lane, mut away_until): (Option<Outbound>, _) = (None, now());
    let mut turn = (0..addresses[place].len()).cycle();
    while let Ok(octets) = messages.recv() {
        if lane.is_none() && now() >= away_until {
            let link = turn.next().expect("every host has an address");
            let address = &addresses[place][link..=link];
            lane = link::dial(&meeting, (me, place, link), address, now() + RECONNECT).ok();
            away_until = now() + RECONNECT;
        }
        let Some(open) = &mut lane else { continue };
        let len = u32::try_from(octets.len()).expect("a message is short");
        if open.send(&len.to_le_bytes(), &octets).is_err() {
            lane = None;
        }
    }
}
