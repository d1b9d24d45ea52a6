//! A daemon's connections: one to each other host for messages, and those of jobs, which are kept until
//! the job takes them.

use std::collections::BTreeMap;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex};
use std::time::Duration;
use std::{sync::Arc, thread};

use super::{Input, JobFile, now};
use crate::charter::Generation;
use crate::exchange::Links;
use crate::link::{self, Greeting, MeetError, Meeting, Purpose};
use crate::member::{MESSAGE_BYTES_MAX, Message};
use crate::schedule::Schedule;
use crate::tls::{Inbound, Outbound};

/// Messages that wait for a host; more are dropped, as the network could.
const MESSAGES_MAX: usize = 256;

/// How long a host that does not answer is left alone.
const RECONNECT: Duration = Duration::from_millis(100);

/// How long hosts wait for each other at the begin of a job.
const MEETING: Duration = Duration::from_secs(10);

/// Connections that may be without a greeting at once: more are closed, so that strangers take no memory.
const GREETING_MAX: usize = 256;

/// Connections of jobs that nobody has taken.
const LANES_MAX: usize = 1_024;

/// The first octet of what is sent: a message of a member, or a wish for a generation.
const MESSAGE: u8 = 0;
const WANTED: u8 = 1;

/// Connections by purpose, generation and membership version.
type Waiting = BTreeMap<(u8, Generation, u64), Vec<(usize, Inbound)>>;

pub(super) struct Network {
    job: JobFile,
    me: usize,
    queues: BTreeMap<usize, SyncSender<Vec<u8>>>,
    waiting: Mutex<Waiting>,
    came: Condvar,
    /// Connections whose greeting has not come yet.
    greeting: AtomicUsize,
}

impl Network {
    pub(super) fn start(
        job: &JobFile,
        me: usize,
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
            queues,
            waiting: Mutex::default(),
            came: Condvar::new(),
            greeting: AtomicUsize::new(0),
        });
        for listener in listeners {
            let (network, inputs) = (Arc::clone(&network), inputs.clone());
            thread::spawn(move || {
                for socket in listener.incoming().flatten() {
                    let (network, inputs) = (Arc::clone(&network), inputs.clone());
                    if network.greeting.fetch_add(1, Ordering::Relaxed) >= GREETING_MAX {
                        network.greeting.fetch_sub(1, Ordering::Relaxed);
                        continue;
                    }
                    thread::spawn(move || drop(network.welcome(socket, &inputs)));
                }
            });
        }
        network
    }

    /// Sends a message, unless too many wait.
    pub(super) fn send(&self, to: usize, message: &Message) {
        let mut octets = vec![MESSAGE];
        octets.extend(message.octets());
        self.push(to, octets);
    }

    /// Tells all that this host wants what it lost of a generation.
    pub(super) fn want(&self, generation: Generation) {
        for &to in self.queues.keys() {
            let mut octets = vec![WANTED];
            octets.extend_from_slice(&generation.0.to_le_bytes());
            self.push(to, octets);
        }
    }

    fn push(&self, to: usize, octets: Vec<u8>) {
        if let Some(queue) = self.queues.get(&to) {
            // Members ask again for what was not answered.
            drop(queue.try_send(octets));
        }
    }

    /// All connections that this host needs for a job.
    pub(super) fn meet(
        &self,
        purpose: Purpose,
        (generation, version): (Generation, u64),
        schedule: &Schedule,
    ) -> Result<Links, MeetError> {
        let greeting = Greeting { purpose, from: 0, to: 0, version, generation };
        let (key, addresses) = (self.job.key(), self.job.addresses());
        let meeting = Meeting { key, addresses, greeting, patience: MEETING };
        let deadline = now() + MEETING;
        let outbound = link::reach(&meeting, schedule, self.me, deadline)?;
        let lanes = addresses[self.me].len();
        let expected = schedule.links().iter().filter(|(_, to)| *to == self.me).count() * lanes;
        let mut waiting = self.waiting.lock().expect("no thread panics under this lock");
        let key = (purpose.octet(), generation, version);
        loop {
            let there = waiting.get(&key).map_or(0, Vec::len);
            if there >= expected {
                let inbound = waiting.remove(&key).unwrap_or_default();
                return Ok(Links { outbound, inbound });
            }
            let left = deadline.saturating_duration_since(now());
            if left.is_zero() {
                waiting.remove(&key);
                return Err(MeetError::Missing { missing: expected - there, waited: MEETING });
            }
            let (next, _) =
                self.came.wait_timeout(waiting, left).expect("no thread panics under this lock");
            waiting = next;
        }
    }

    /// Who has connected, with the job's key.
    fn welcome(&self, socket: TcpStream, inputs: &SyncSender<Input>) -> io::Result<()> {
        let greeted = link::greeted(self.job.key(), socket);
        self.greeting.fetch_sub(1, Ordering::Relaxed);
        let (greeting, lane) = greeted?;
        let from = usize::from(greeting.from);
        if usize::from(greeting.to) != self.me || from >= self.job.names().len() {
            return Ok(());
        }
        if greeting.purpose == Purpose::Agreement {
            return listen_to(from, lane, inputs);
        }
        let mut waiting = self.waiting.lock().expect("no thread panics under this lock");
        if waiting.values().map(Vec::len).sum::<usize>() < LANES_MAX {
            let key = (greeting.purpose.octet(), greeting.generation, greeting.version);
            waiting.entry(key).or_default().push((from, lane));
            self.came.notify_all();
        }
        Ok(())
    }
}

/// Hands over what a host says, until it says no more.
fn listen_to(from: usize, mut lane: Inbound, inputs: &SyncSender<Input>) -> io::Result<()> {
    lane.socket()?.set_read_timeout(None)?;
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
                let number = rest.try_into().map_err(io::Error::other)?;
                let generation = Generation(u64::from_le_bytes(number));
                Input::Wanted { from, generation }
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
    let (purpose, generation) = (Purpose::Agreement, Generation(0));
    let greeting = Greeting { purpose, from: 0, to: 0, version: 0, generation };
    let meeting =
        Meeting { key: job.key(), addresses: job.addresses(), greeting, patience: RECONNECT };
    let (mut lane, mut away_until): (Option<Outbound>, _) = (None, now());
    let mut links = job.addresses()[place].iter().cycle();
    while let Ok(octets) = messages.recv() {
        if lane.is_none() && now() >= away_until {
            let address = *links.next().expect("every host has an address");
            lane = link::dial(&meeting, me, place, address, now() + RECONNECT).ok();
            away_until = now() + RECONNECT;
        }
        let Some(open) = &mut lane else { continue };
        let len = u32::try_from(octets.len()).expect("a message is short");
        if open.send(&len.to_le_bytes(), &octets).is_err() {
            lane = None;
        }
    }
}
