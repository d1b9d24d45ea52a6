//! The collector: the poll core on real sockets, on one thread.
//!
//! # Threads
//! The collector's thread owns the core, the sockets and the writer. It never waits for a disk, a
//! name or a viewer: rows go to the recording's writer thread through a bounded queue, names are
//! resolved on a thread of their own ([`crate::resolver`]), and whoever wants something of it sends
//! a [`Command`] and wakes it.
//!
//! # Cost
//! Two system calls for 64 requests and as many answers. After a burst the thread naps for
//! at most 250 µs instead of waking for every answer: the kernel has stamped them already, so nothing is
//! lost but wake-ups.

mod clock;
mod incidents;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError};

use meikyo_cluster::AlertRule;
use meikyo_recording::{Incident, WriterCounters};
use meikyo_sockets::{BATCH, ReceiveBatch, SendBatch, readable, wait};
use meikyo_units::{Bytes, Nanos, WallTime};
use rustix::io::Errno;

use clock::{Clock, Reading};

use crate::plan::DevicePlan;
use crate::poll::{
    AlertAnswer, AlertAnswerError, Counts, DeviceSpec, Event, Outage, Outlet, Pace, PollOptions,
    Poller,
};
use crate::socket::{DATAGRAM, Socket, SocketError, charged};
use crate::system::{self, RealtimeError, Waker};
use crate::tables::{Table, clocks};

/// How long answers are left to gather before they are read, for each that is open, and at most: what
/// an agent beside us takes for one, and what an interval may be longer for it.
const NAP_EACH: Nanos = Nanos::from_micros(3);
const NAP_MAX: Nanos = Nanos::from_micros(250);

/// How much earlier than due a collector with real-time priority wakes up, beside the time that it
/// takes to prepare the requests. It then watches the clock, since a timer alone is up to 100 µs late
/// on a virtual machine.
const EARLY: Nanos = Nanos::from_micros(100);

/// How much earlier it wakes up before that, too. The host of a virtual machine wakes a processor up to
/// 0.6 ms late after a long sleep, and 0.11 ms after a short one (99 of 100 times, docs/benchmarks.md).
const FIRST_EARLY: Nanos = Nanos::from_millis(1);

/// The longest preparation that is waited for.
const PREPARING_MAX: Nanos = Nanos::from_millis(2);

/// Rows are handed to the writer when the interval is complete, or this long after the first.
const HAND_OVER: Nanos = Nanos::from_millis(1);

/// How often it is asked what happened to the recording.
const INCIDENTS_EVERY: Nanos = Nanos::from_millis(250);

/// How often the clocks are compared for the table `clocks`.
const CLOCKS_EVERY: Nanos = Nanos::from_secs(10);

/// Answers that the receive buffer is sized for, a device: the open one and a stray.
const ANSWERS_PER_DEVICE: u64 = 2;

/// The longest answer that is usual, for sizing the receive buffer.
const ANSWER_USUAL: usize = 1_400;

/// What the collector can be asked to do while it runs.
#[derive(Debug)]
pub enum Command {
    /// Put a person's mark into `events`; the answer comes when it is handed to the writer.
    Mark {
        /// What a person marks, as it will stand in the events.
        text: String,
        /// Told when the mark is on its way.
        done: Sender<()>,
    },
    /// The names of a device are resolved.
    Resolved {
        /// Ordinal of the device that was resolved.
        ordinal: u32,
        /// What it is to be asked.
        plan: DevicePlan,
        /// What the cluster file asks for and the agent does not have.
        problems: Vec<String>,
    },
    /// Interval, timeout or rate cap of a device have changed.
    Respecify {
        /// Ordinal of the device that was changed.
        ordinal: u32,
        /// As it is from now on; its address and credentials are as before.
        spec: DeviceSpec,
    },
    /// The names of a device could not be resolved.
    Unresolved {
        /// Ordinal of the device that was not resolved.
        ordinal: u32,
        /// What a person is told of it.
        problem: String,
    },
    /// The cluster file has changed: both happen between two intervals.
    Exchange {
        /// Devices that are no longer asked.
        remove: Vec<u32>,
        /// New or changed devices, with their names resolved if that was possible.
        add: Vec<(DeviceSpec, Option<DevicePlan>)>,
        /// The ordinals of the added ones, in their order.
        done: Sender<Vec<u32>>,
    },
    /// An event for the recording, by its kind and text.
    Note {
        /// The kind of event, one of the words of the table `events`.
        kind: &'static str,
        /// The device that it concerns.
        ordinal: Option<u32>,
        /// For people.
        text: String,
    },
    /// What is alerted of from now on.
    Alerts(Vec<AlertRule>),
    /// A person answers an alert; what comes of it comes back.
    Answer {
        /// Which alert, and what is said.
        answer: AlertAnswer,
        /// Told when it is on its way to the recording, or why it was refused.
        done: Sender<Result<(), AlertAnswerError>>,
    },
    /// End after the open requests.
    Stop,
}

/// What the collector tells of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The names of a device must be resolved. If it is new or has restarted, it is not asked
    /// anything until they are.
    Resolve(u32),
    /// An agent has restarted.
    Restarted(u32),
    /// A device has begun to fail, or answers again.
    Outage(u32, Outage),
    /// Something happened to the recording.
    Incident(Incident),
}

/// The collector at one moment, sent once a second.
#[derive(Debug, Clone)]
pub struct Status {
    /// Moment at which the counts were read.
    pub at: WallTime,
    /// What the core counts.
    pub counts: Counts,
    /// How many (device, interval)s ended in each state since the start.
    pub states: [u64; 5],
    /// Rows that the writer kept and dropped so far.
    pub writer: WriterCounters,
    /// Requests open now.
    pub in_flight: usize,
}

/// How the collector runs.
#[derive(Debug, Clone, Copy)]
pub struct CollectorOptions {
    /// When the requests of an interval leave.
    pub pace: Pace,
    /// `SCHED_FIFO`, locked memory, and processors that do not sleep where that is permitted.
    pub realtime: bool,
}

/// Why a collector could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No socket.
    #[error("the collector has no socket")]
    Socket(#[from] SocketError),
    /// Real-time priority was asked for and refused.
    #[error("`--realtime` is not possible: {}", source.remedy())]
    Realtime {
        /// What was refused.
        source: RealtimeError,
    },
    /// The thread could not be started.
    #[error("the collector's thread cannot start")]
    Thread(#[source] io::Error),
}

/// The ends that the outside holds of a collector.
#[derive(Debug)]
pub struct Ends {
    /// Commands to the collector.
    pub commands: Receiver<Command>,
    /// Notices from it.
    pub notices: Sender<Notice>,
    /// Its state, once a second; a status that nobody takes is replaced by none.
    pub status: SyncSender<Status>,
    /// Ends the collector's wait after a command was sent.
    pub waker: Arc<Waker>,
}

/// A collector before its thread starts.
#[derive(Debug)]
pub struct Collector<O> {
    poller: Poller,
    writer: O,
    sockets: Vec<Socket>,
    ends: Ends,
    realtime: bool,
    /// What it takes to prepare the requests of an interval (a running mean).
    preparing: Nanos,
    clock: Clock,
    clocks: Clocks,
    /// When the oldest row that is not handed over was written.
    rows_since: Option<WallTime>,
    status_at: WallTime,
    incidents_at: WallTime,
    stopping: bool,
    /// Incidents that wait until rows are kept again.
    incidents: incidents::Waiting,
}

/// What is written to the table `clocks`.
#[derive(Debug)]
struct Clocks {
    /// When it was, by the monotonic clock.
    written: Nanos,
    host: String,
}

impl<O: Outlet> Collector<O> {
    /// A collector for about `devices` devices that writes into `writer`, whose tables are
    /// [`crate::tables::schemas`].
    ///
    /// # Errors
    /// [`StartError::Socket`] when the system gives no socket.
    pub fn new(
        writer: O,
        devices: &[DeviceSpec],
        options: CollectorOptions,
        host: &str,
        ends: Ends,
    ) -> Result<Self, StartError> {
        let wanted =
            charged(ANSWER_USUAL).get() * ANSWERS_PER_DEVICE * devices.len().max(64) as u64;
        let needs_v6 = devices.iter().any(|device| device.address.is_ipv6());
        let needs_v4 = devices.iter().any(|device| device.address.is_ipv4()) || !needs_v6;
        let mut sockets = Vec::new();
        for (needed, v6) in [(needs_v4, false), (needs_v6, true)] {
            if needed {
                sockets.push(Socket::open(v6, Bytes::new(wanted))?);
            }
        }
        let least = sockets.iter().map(|socket| socket.receive_buffer().get()).min().unwrap_or(0);
        // Saturates: more requests than that are never in flight.
        let fitting = usize::try_from(least / charged(ANSWER_USUAL).get()).unwrap_or(usize::MAX);
        let in_flight_max = fitting.max(1);
        let clock = Clock::new(read_clocks);
        let now = clock.at(system::monotonic());
        let poll_options = PollOptions { pace: options.pace, in_flight_max, real_time: true };
        let mut poller = Poller::new(now, poll_options);
        for device in devices {
            poller.add_device(now, device.clone());
        }
        if in_flight_max < devices.len() {
            let text = format!(
                "the receive buffer holds {in_flight_max} answers: requests in flight are capped \
                 to that; net.core.rmem_max or CAP_NET_ADMIN lifts it"
            );
            let event = Event { text: &text, ..Event::default() };
            poller.rows().event(now, "in_flight_capped", event);
        }
        let clocks = Clocks { written: Nanos::ZERO, host: host.into() };
        Ok(Self {
            poller,
            writer,
            sockets,
            ends,
            realtime: options.realtime,
            preparing: Nanos::ZERO,
            clock,
            clocks,
            rows_since: None,
            status_at: now,
            incidents_at: now,
            stopping: false,
            incidents: incidents::Waiting::default(),
        })
    }

    /// The core, to set plans before the start.
    pub fn poller(&mut self) -> &mut Poller {
        &mut self.poller
    }

    /// Starts the thread; it gives the writer back when it is stopped.
    ///
    /// # Errors
    /// [`StartError`] when real-time priority was asked for and refused, or no thread can be had.
    pub fn start(self) -> Result<std::thread::JoinHandle<O>, StartError> {
        let (ready, started) = std::sync::mpsc::channel();
        let realtime = self.realtime;
        let thread = std::thread::Builder::new().name("collector".into()).spawn(move || {
            let permitted = if realtime { system::become_realtime() } else { Ok(()) };
            let refused = permitted.is_err();
            if ready.send(permitted).is_err() || refused {
                return self.finish();
            }
            system::sharpen_timers();
            let awake = realtime.then(system::keep_processors_awake);
            if let Some(Err(error)) = &awake {
                tracing::warn!(%error, "processors may sleep, and intervals start later for it");
            }
            self.run()
        });
        let thread = thread.map_err(StartError::Thread)?;
        match started.recv() {
            Ok(Err(source)) => Err(StartError::Realtime { source }),
            _ => Ok(thread),
        }
    }

    fn run(mut self) -> O {
        let (mut sends, mut receives) = (SendBatch::default(), ReceiveBatch::new(DATAGRAM));
        loop {
            self.look_at_clocks();
            let now = self.now();
            if self.poller.is_looking_back(now + self.early()) {
                // Nobody is given up whose answer waits at the socket.
                self.receive(&mut receives);
            }
            self.begin(now);
            self.exchange_datagrams(&mut sends, &mut receives);
            self.take_commands();
            self.tell();
            if self.stopping && self.poller.in_flight() == 0 {
                self.tell_incidents();
                let now = self.now();
                self.send_status(now);
                return self.finish();
            }
            self.hand_over();
            self.wait();
        }
    }

    fn finish(mut self) -> O {
        let now = self.now();
        self.poller.finish(now, &mut self.writer);
        self.writer
    }

    /// Begins what is due; with real-time priority what is due in a moment, and waits for that moment.
    fn begin(&mut self, now: WallTime) {
        let early = self.early();
        let soon = self.poller.next_due().filter(|&due| due > now && due <= now + early);
        match soon.filter(|_| self.realtime) {
            Some(due) => {
                self.poller.handle_time(due);
                self.prepared(self.now().since(now));
                while self.now() < due {
                    std::hint::spin_loop();
                }
            }
            None => self.poller.handle_time(now),
        }
    }

    /// How much earlier than due the requests of an interval are prepared.
    fn early(&self) -> Nanos {
        EARLY + self.preparing
    }

    /// Takes in how long it took to prepare the requests of an interval.
    fn prepared(&mut self, span: Nanos) {
        let span = span.min(PREPARING_MAX);
        let before = if self.preparing == Nanos::ZERO { span } else { self.preparing };
        self.preparing = Nanos::new((before.get() * 7 + span.get()) / 8);
    }

    /// The real time, without the steps that were not looked at yet.
    fn now(&self) -> WallTime {
        self.clock.at(system::monotonic())
    }

    /// Writes a step of the clock down, which the schedule follows, and the clocks now and then.
    fn look_at_clocks(&mut self) {
        if let Some(step) = self.clock.look(read_clocks) {
            self.poller.handle_clock_step(self.now(), step);
            // Both are waited for by spans that have passed, whatever the clock says.
            let moved = |at: WallTime| WallTime::from_nanos(at.as_nanos().saturating_add(step));
            self.status_at = moved(self.status_at);
            self.incidents_at = moved(self.incidents_at);
            self.rows_since = self.rows_since.map(moved);
        }
        let monotonic = system::monotonic();
        if monotonic.saturating_sub(self.clocks.written) >= CLOCKS_EVERY
            || self.clocks.written == Nanos::ZERO
        {
            self.clocks.written = monotonic;
            let now = self.clock.at(monotonic);
            let offset = system::clock_offset();
            let host = self.poller.rows().symbol(&self.clocks.host);
            let batch = self.poller.rows().batch(Table::Clocks);
            batch.begin_row(now.as_nanos());
            batch.put(clocks::HOST, host);
            batch.put(clocks::MONOTONIC_NS, monotonic.get());
            batch.put(clocks::NTP_OFFSET_NS, offset.offset_ns);
            if let Some(error) = offset.error {
                batch.put(clocks::NTP_ERROR_NS, error.get());
            }
        }
    }

    /// Sends everything that is due and reads everything that is there.
    fn exchange_datagrams(&mut self, sends: &mut SendBatch, receives: &mut ReceiveBatch) {
        loop {
            self.poller.poll_transmit(self.now(), sends);
            if !sends.is_empty() {
                self.send(sends);
            }
            let read = self.receive(receives);
            if !sends.is_empty() {
                continue;
            }
            if self.poller.awaited() == 0 || self.stopping {
                return;
            }
            if read == 0 {
                return;
            }
            if !self.poller.has_queued() {
                // Let answers gather; they are stamped already.
                let open = self.poller.awaited() as u64;
                nap((NAP_EACH * open).min(NAP_MAX));
            }
        }
    }

    fn send(&mut self, batch: &mut SendBatch) {
        let mut from = 0;
        let v6_socket = self.sockets.len() - 1;
        while from < batch.len() {
            let socket = if batch.address(from).is_ipv6() { v6_socket } else { 0 };
            match batch.send(&self.sockets[socket], from) {
                Ok(sent) => from += sent.max(1),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    nap(NAP_MAX);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error)
                    if error.raw_os_error() == Some(Errno::MSGSIZE.raw_os_error())
                        && self.sockets[socket].permit_fragments() => {}
                Err(_) => {
                    self.poller.handle_send_error(batch, from);
                    from += 1;
                }
            }
        }
    }

    /// Reads what waits at the sockets; returns how many datagrams.
    fn receive(&mut self, batch: &mut ReceiveBatch) -> usize {
        let mut total = 0;
        for position in 0..self.sockets.len() {
            loop {
                // An error of the socket itself (a port unreachable elsewhere) is no datagram.
                let count = batch.receive(&self.sockets[position]).unwrap_or(0);
                if count > 0 {
                    // The stamps are of the real-time clock, which may have been set a moment ago.
                    self.look_at_clocks();
                }
                if let Some(drops) = batch.drops() {
                    // Before the answers, which may end the wait for one that was dropped.
                    self.poller.handle_drops(self.now(), position, drops);
                }
                self.poller.touch(batch.octets());
                // One reading for all of them: each was received before.
                let now = self.clock.at(system::monotonic());
                for datagram in batch.datagrams() {
                    let received = datagram.received.map_or(now, |at| self.clock.received(at, now));
                    self.poller.handle_datagram(received, datagram);
                }
                total += count;
                if count < BATCH {
                    break;
                }
            }
        }
        self.clock.settle();
        total
    }

    fn take_commands(&mut self) {
        while let Ok(command) = self.ends.commands.try_recv() {
            let now = self.now();
            match command {
                Command::Mark { text, done } => {
                    let event = Event { text: &text, ..Event::default() };
                    self.poller.rows().event(now, "mark", event);
                    self.poller.flush(&mut self.writer);
                    if done.send(()).is_err() {
                        tracing::debug!("nobody waits for the mark any more");
                    }
                }
                Command::Resolved { ordinal, plan, problems } => {
                    self.poller.set_plan(now, ordinal, plan);
                    for problem in problems {
                        self.note(now, "not_found", Some(ordinal), &problem);
                    }
                }
                Command::Respecify { ordinal, spec } => {
                    self.poller.respecify(now, ordinal, &spec);
                }
                Command::Unresolved { ordinal, problem } => {
                    self.poller.resolution_failed(now, ordinal);
                    self.note(now, "unresolved", Some(ordinal), &problem);
                }
                Command::Exchange { remove, add, done } => {
                    for ordinal in remove {
                        self.poller.remove_device(now, ordinal);
                    }
                    let mut ordinals = Vec::new();
                    for (spec, plan) in add {
                        let ordinal = self.poller.add_device(now, spec);
                        if let Some(plan) = plan {
                            self.poller.set_plan(now, ordinal, plan);
                        }
                        ordinals.push(ordinal);
                    }
                    if done.send(ordinals).is_err() {
                        tracing::debug!("nobody waits for the exchange any more");
                    }
                }
                Command::Note { kind, ordinal, text } => self.note(now, kind, ordinal, &text),
                Command::Alerts(rules) => self.poller.set_alerts(rules),
                Command::Answer { answer, done } => {
                    let outcome = self.poller.answer_alert(now, &answer);
                    self.poller.flush(&mut self.writer);
                    if done.send(outcome).is_err() {
                        tracing::debug!("nobody waits for the answer any more");
                    }
                }
                Command::Stop => self.stopping = true,
            }
        }
        if self.stopping {
            self.poller.stop();
        }
    }

    fn note(&mut self, now: WallTime, kind: &str, ordinal: Option<u32>, text: &str) {
        let device = ordinal.map(|ordinal| self.poller.device_symbol(ordinal));
        self.poller.rows().event(now, kind, Event { device, text, ..Event::default() });
    }

    /// Tells the outside what it must know. A receiver that is gone is not told.
    fn tell(&mut self) {
        let resolve = self.poller.take_to_resolve().into_iter().map(Notice::Resolve);
        let restarted = self.poller.take_restarted().into_iter().map(Notice::Restarted);
        let outages = self.poller.take_outages().into_iter();
        let outages = outages.map(|(ordinal, outage)| Notice::Outage(ordinal, outage));
        for notice in restarted.chain(resolve).chain(outages) {
            self.notify(notice);
        }
        let now = self.now();
        if now.since(self.incidents_at) >= INCIDENTS_EVERY {
            self.incidents_at = now;
            self.tell_incidents();
        }
        if now.since(self.status_at) < Nanos::SECOND {
            return;
        }
        self.status_at = now;
        self.send_status(now);
    }

    /// Tells of what happened to the recording at once, and writes it down when that can be kept.
    fn tell_incidents(&mut self) {
        let kept = self.writer.counters().rows_kept;
        for incident in self.writer.take_incidents() {
            self.notify(Notice::Incident(incident.clone()));
            self.incidents.push(incident, kept);
        }
        let ready = self.incidents.take_ready(if self.stopping { u64::MAX } else { kept });
        for incident in ready {
            let event =
                Event { text: &incident.text, count: Some(incident.rows), ..Event::default() };
            self.poller.rows().event(incident.at, incident.kind.word(), event);
        }
    }

    fn notify(&self, notice: Notice) {
        if self.ends.notices.send(notice).is_err() {
            tracing::debug!("nobody listens to notices");
        }
    }

    /// Sends the status of this moment, once a second and at the end.
    fn send_status(&mut self, now: WallTime) {
        let status = Status {
            at: now,
            counts: self.poller.counts(),
            states: self.poller.states(),
            writer: self.writer.counters(),
            in_flight: self.poller.in_flight(),
        };
        if let Err(TrySendError::Disconnected(_)) = self.ends.status.try_send(status) {
            tracing::debug!("nobody takes the status");
        }
    }

    /// Hands rows to the writer when the interval is complete, or when they have waited long enough.
    fn hand_over(&mut self) {
        let now = self.now();
        if self.poller.rows().is_empty() {
            self.poller.write_intervals(&mut self.writer);
            if self.poller.rows().is_empty() {
                return;
            }
        }
        let since = *self.rows_since.get_or_insert(now);
        if self.poller.awaited() == 0 || now.since(since) >= HAND_OVER {
            self.poller.flush(&mut self.writer);
            self.rows_since = None;
        }
    }

    fn wait(&mut self) {
        let now = self.now();
        let status_due = self.status_at + Nanos::SECOND;
        let rows_due = self.rows_since.map(|since| since + HAND_OVER);
        let due = self.poller.next_due().map(|due| match self.realtime {
            true => {
                let last = due.before(self.early());
                let first = last.before(FIRST_EARLY);
                if now < first { first } else { last }
            }
            false => due,
        });
        let wakeup = self.poller.next_wakeup();
        let incidents_due = self.incidents_at + INCIDENTS_EVERY;
        let others = rows_due.into_iter().chain([status_due, incidents_due]);
        let next = wakeup.into_iter().chain(due).chain(others).min();
        let span = next.map_or(Nanos::SECOND, |next| next.since(now));
        if span == Nanos::ZERO {
            return;
        }
        let waker = readable(&*self.ends.waker);
        let mut polls = [waker.clone(), waker.clone(), waker];
        for (poll, socket) in polls[1..].iter_mut().zip(&self.sockets) {
            *poll = readable(socket);
        }
        wait(&mut polls[..=self.sockets.len()], Some(span)).expect(WAITS);
        if !polls[0].revents().is_empty() {
            self.ends.waker.clear();
        }
    }
}

/// Why a wait of the collector cannot fail.
const WAITS: &str = "the kernel has memory for three descriptors";

fn nap(span: Nanos) {
    wait(&mut [], Some(span)).expect(WAITS);
}

/// Reads the real-time clock between two readings of the monotonic one.
fn read_clocks() -> Reading {
    let before = system::monotonic();
    Reading { before, real: WallTime::now(), after: system::monotonic() }
}
