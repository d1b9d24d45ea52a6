//! The core of the collector: what to ask whom and when, and what each answer means.
//!
//! It does no input or output, reads no clock and starts no thread: it is driven with `now` and
//! datagrams, and polled for datagrams to send and rows to keep ([`RowSink`]). The same core runs on
//! real sockets ([`crate::collector`]) and under virtual time against the simulated agents.
//!
//! Every (device, interval) ends in exactly one [`State`]. The PDUs of one interval follow each
//! other; a device has at most two requests open, of two intervals, and the second only when the
//! answer to the first is overdue (`poll/waiting.rs`). A row is written once, when the answer is there or
//! the wait for it is over; the rows of a device follow each other in time.
//!
//! # Cost
//! Per poll of five values: 60 ns to write the request, about 150 ns to read the answer, 100 ns to
//! push the rows, 30 ns of schedule; 2 µs of it all are system calls. Memory: about 1 kB a device
//! and 32 octets a value.

mod alerts;
mod answers;
mod closing;
mod device;
mod failing;
mod jumps;
mod observe;
mod refused;
mod renewal;
mod repeats;
mod request;
mod resets;
mod ring;
mod rows;
mod schedule;
mod series;
mod session;
mod sink;
mod values;
mod waiting;

use std::collections::VecDeque;
use std::sync::Arc;

use meikyo_cluster::AlertRule;
use meikyo_recording::Symbol;
use meikyo_units::{Nanos, WallTime};

pub use self::alerts::{AlertAction, AlertAnswer, AlertAnswerError};
pub use self::device::DeviceSpec;
pub use self::failing::Outage;
pub use self::rows::{Event, Reason, Rows};
pub use self::sink::{Outlet, RowSink};

use self::closing::Closed;
use self::device::{Device, Phase};
use self::request::{Answer, Layouts};
use self::ring::Ring;
use self::waiting::Open;
use crate::plan::DevicePlan;
use crate::tables::State;
use crate::template;

/// Bits of a request id that name the device; the others count its requests.
const DEVICE_BITS: u32 = 18;

/// Most devices of one collector.
pub const DEVICES_MAX: usize = 1 << DEVICE_BITS;

/// Generations begin here, so that every id has four octets in its shortest form.
const GENERATION_MIN: u32 = template::REQUEST_ID_MIN.cast_unsigned() >> DEVICE_BITS;

/// Generations end here: a request id is a positive 32-bit integer.
const GENERATION_MAX: u32 = (1 << (31 - DEVICE_BITS)) - 1;

/// When the requests of an interval leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// All at once: a snapshot of the cluster.
    AtOnce,
    /// Evenly over the first four fifths of the interval: gentle on one uplink.
    Spread,
}

/// How the core behaves.
#[derive(Debug, Clone, Copy)]
pub struct PollOptions {
    /// When requests leave.
    pub pace: Pace,
    /// Most requests open at once: what the receive buffer can hold answers of.
    pub in_flight_max: usize,
    /// Whether `now` is the real time, so that instants of the writer's thread can be compared
    /// with it (`intervals.kept_us`).
    pub real_time: bool,
}

/// What the core counts beside the rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests handed over.
    pub requests: u64,
    /// Datagrams that belong to no open request: duplicates, answers after the timeout, forgeries.
    pub strays: u64,
    /// Datagrams that could not be used: cut, not SNMP, of another community, version or user.
    pub unreadable: u64,
    /// Intervals that our own late wake-up spoiled.
    pub stalls: u64,
    /// Whole intervals that we slept through.
    pub overruns: u64,
    /// Datagrams that our own socket dropped.
    pub socket_drops: u64,
}

/// The core.
#[derive(Debug)]
pub struct Poller {
    options: PollOptions,
    devices: Vec<Device>,
    rings: Vec<Ring>,
    layouts: Layouts,
    /// No open request's wait ends before this instant; `None` when nothing is open.
    sweep_at: Option<WallTime>,
    in_flight: usize,
    /// Those of them whose devices have not been silent.
    awaited: usize,
    /// Overdue requests that are to be sent once more: the device, and the id of the first try.
    overdue: Vec<(u32, i32)>,
    answer: Answer,
    rows: Rows,
    closed: VecDeque<Closed>,
    tokens: u64,
    counts: Counts,
    /// How many (device, interval)s ended in each state, indexed by [`State`].
    states: [u64; State::ALL.len()],
    /// Nothing new is asked any more.
    stopping: bool,
    drops_seen: Vec<u32>,
    /// When it was last learned that our own socket dropped datagrams.
    dropped_at: Option<WallTime>,
    to_resolve: Vec<u32>,
    restarted: Vec<u32>,
    outages: Vec<(u32, Outage)>,
    /// The last salt of an encrypted request (RFC 3826, 3.1.2.1): never used twice with a key, also
    /// not by the next process, since it begins with the time.
    salt: u64,
    /// The rules by which devices are watched and alerts raised.
    alerts: Arc<[AlertRule]>,
    /// Devices whose watches are of earlier rules.
    to_compile: Vec<u32>,
    /// How often the sender of an unreadable datagram is still looked for before the next look at
    /// the clock.
    searches_left: u32,
    /// When silence is looked for again.
    look_at: WallTime,
    /// 1 ns for each time that the real-time clock was set back.
    steps_back: Nanos,
    /// Devices of which events are held back, and when it was last looked at them.
    repeating: Vec<u32>,
    repeats_at: WallTime,
}

/// The latest instant at which an interval is due that is not after `now`.
fn due(now: WallTime, interval: Nanos, steps_back: Nanos) -> WallTime {
    now.before(steps_back).floor(interval) + steps_back
}

/// A step of the clock for people: `the real-time clock was set back by 7.2 ms`.
fn clock_step_text(step_ns: i64) -> String {
    let tenths = |unit: u64| (step_ns.unsigned_abs() + unit / 20) / (unit / 10);
    let (tenths, unit) = match step_ns.unsigned_abs() {
        0..1_000_000_000 => (tenths(1_000_000), "ms"),
        _ => (tenths(1_000_000_000), "s"),
    };
    let direction = if step_ns < 0 { "back" } else { "forward" };
    format!("the real-time clock was set {direction} by {}.{} {unit}", tenths / 10, tenths % 10)
}

impl Poller {
    /// A core without devices.
    pub fn new(now: WallTime, options: PollOptions) -> Self {
        Self {
            options,
            devices: Vec::new(),
            rings: Vec::new(),
            layouts: Layouts::default(),
            sweep_at: None,
            in_flight: 0,
            awaited: 0,
            overdue: Vec::new(),
            answer: Answer::default(),
            rows: Rows::new(),
            closed: VecDeque::new(),
            tokens: 0,
            counts: Counts::default(),
            states: [0; State::ALL.len()],
            stopping: false,
            drops_seen: Vec::new(),
            dropped_at: None,
            to_resolve: Vec::new(),
            restarted: Vec::new(),
            outages: Vec::new(),
            salt: now.as_nanos().cast_unsigned(),
            alerts: Arc::new([]),
            to_compile: Vec::new(),
            searches_left: 0,
            look_at: WallTime::default(),
            steps_back: Nanos::ZERO,
            repeating: Vec::new(),
            repeats_at: WallTime::default(),
        }
    }

    /// Adds a device, which is asked from the next multiple of its interval on; returns its ordinal.
    ///
    /// # Panics
    /// Beyond [`DEVICES_MAX`] devices.
    pub fn add_device(&mut self, now: WallTime, spec: DeviceSpec) -> u32 {
        let ring = self.ring(now, spec.interval);
        // The place of a removed device is used again; its generations go on, so that a late
        // answer to the old one is no answer to the new one.
        let free = self.devices.iter().position(|old| old.removed && old.pending.is_none());
        let position = free.unwrap_or(self.devices.len());
        assert!(position < DEVICES_MAX, "one collector has at most {DEVICES_MAX} devices");
        let ordinal = u32::try_from(position).expect("checked above");
        let interval = spec.interval;
        let mut device = Device::new(spec, ordinal, index(ring), &mut self.rows);
        device.make_sets(interval, &mut self.layouts);
        match self.devices.get_mut(position) {
            Some(old) => {
                device.generation = old.generation;
                *old = device;
            }
            None => self.devices.push(device),
        }
        self.rings[ring].devices.push(ordinal);
        self.watch(ordinal, now);
        ordinal
    }

    /// The ring of an interval.
    fn ring(&mut self, now: WallTime, interval: Nanos) -> usize {
        let known = self.rings.iter().position(|ring| ring.interval == interval);
        known.unwrap_or_else(|| {
            self.rings.push(Ring::new(interval, due(now, interval, self.steps_back)));
            self.rings.len() - 1
        })
    }

    /// Changes interval, timeout and rate cap of a device; its open request goes on.
    pub fn respecify(&mut self, now: WallTime, ordinal: u32, spec: &DeviceSpec) {
        let ring = self.ring(now, spec.interval);
        let device = &mut self.devices[ordinal as usize];
        if device.ring as usize != ring {
            self.rings[device.ring as usize].devices.retain(|&other| other != ordinal);
            self.rings[ring].devices.push(ordinal);
        }
        device.respecify(spec, index(ring));
    }

    /// Takes a device out; its open request, if any, is still waited for.
    pub fn remove_device(&mut self, now: WallTime, ordinal: u32) {
        self.withdraw_alerts(ordinal, now, "the device was removed");
        self.tell_last_repeats(ordinal, now);
        let device = &mut self.devices[ordinal as usize];
        device.removed = true;
        let ring = device.ring as usize;
        self.rings[ring].devices.retain(|&other| other != ordinal);
        for ring in 0..self.rings.len() {
            if let Some(position) = self.rings[ring].silent.iter().position(|&o| o == ordinal) {
                self.rings[ring].silent.remove(position);
                self.skip(ring, ordinal, self.rings[ring].begun(), Reason::BackedOff);
            }
        }
    }

    /// Sets what a device is asked from its next interval on.
    pub fn set_plan(&mut self, now: WallTime, ordinal: u32, plan: DevicePlan) {
        let device = &mut self.devices[ordinal as usize];
        if device.pending.is_some() {
            device.next_plan = Some(Box::new(plan));
        } else {
            device.set_plan(now, plan, &mut self.rows);
            let interval = self.rings[device.ring as usize].interval;
            device.make_sets(interval, &mut self.layouts);
            self.watch(ordinal, now);
        }
    }

    /// Lets a device be asked for a sign of life again after its names could not be resolved; they
    /// are tried again after 5 s. A device that is measured meanwhile is measured on.
    pub fn resolution_failed(&mut self, now: WallTime, ordinal: u32) {
        let device = &mut self.devices[ordinal as usize];
        device.renewal.failed();
        if device.phase == Phase::Resolved {
            return;
        }
        device.phase = Phase::Unresolved;
        device.resolve_after = now + device::RESOLVE_AGAIN;
    }

    /// Devices whose names must be resolved (again), up to [`Poller::set_plan`] or
    /// [`Poller::resolution_failed`]. Those that are new or have restarted are not asked anything
    /// until then.
    pub fn take_to_resolve(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.to_resolve)
    }

    /// Devices whose agent restarted since the last call.
    pub fn take_restarted(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.restarted)
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// How many (device, interval)s ended in each state, indexed by [`State`].
    pub fn states(&self) -> [u64; State::ALL.len()] {
        self.states
    }

    /// Asks nothing new from now on; open requests are still waited for.
    pub fn stop(&mut self) {
        self.stopping = true;
        self.to_compile.clear();
        for ring in 0..self.rings.len() {
            self.pass_over_silent(ring, Reason::Stopped);
            for (_, ordinal) in std::mem::take(&mut self.rings[ring].queue) {
                self.end(ordinal, Open::Newest, State::Skipped, Some(Reason::Stopped));
            }
        }
    }

    /// The rows, to write events beside those of the core.
    pub fn rows(&mut self) -> &mut Rows {
        &mut self.rows
    }

    /// The symbol under which a device is recorded.
    pub fn device_symbol(&self, ordinal: u32) -> Symbol {
        self.devices[ordinal as usize].name
    }

    /// The number of requests without an answer yet.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// The number of open requests to devices that have not been silent: what an interval waits for.
    pub fn awaited(&self) -> usize {
        self.awaited
    }

    /// Whether the next call of [`Poller::handle_time`] may end the wait for open requests: what has
    /// arrived is to be handed over before.
    pub fn is_looking_back(&self, now: WallTime) -> bool {
        let ends = self.sweep_at.is_some_and(|at| at <= now);
        let begins = self.next_due().is_some_and(|due| due <= now);
        self.in_flight > 0 && (ends || begins)
    }

    /// Whether requests wait to be sent at once.
    pub fn has_queued(&self) -> bool {
        self.rings.iter().any(|ring| !ring.queue.is_empty())
    }

    /// The next instant at which an interval begins.
    pub fn next_due(&self) -> Option<WallTime> {
        let busy = self.rings.iter().filter(|ring| !self.stopping && !ring.devices.is_empty());
        busy.map(|ring| ring.next).min()
    }

    /// The next instant at which [`Poller::handle_time`] has something to do.
    pub fn next_wakeup(&self) -> Option<WallTime> {
        let due = self.next_due();
        // At the cap, requests wait for an answer or the end of a wait, and not for an instant.
        let may_send = self.in_flight < self.options.in_flight_max;
        let rings = self.rings.iter().filter(|_| may_send);
        let sends = rings.filter_map(|ring| ring.queue.front().map(|entry| entry.0));
        let waits = self.sweep_at.filter(|_| self.in_flight > 0);
        let silent = self.rings.iter().filter(|ring| !ring.silent.is_empty());
        let idle = self.is_idle();
        let turns = silent.map(|ring| if idle { ring.silent_from() } else { ring.silent_by() });
        let compiling = (!self.to_compile.is_empty()).then(WallTime::default);
        let looks = !self.stopping && !self.alerts.is_empty();
        let looks = looks.then_some(self.look_at);
        let others = compiling.into_iter().chain(looks);
        due.into_iter().chain(sends).chain(waits).chain(turns).chain(others).min()
    }

    /// The real-time clock was set: the schedule follows it at the next multiple, and open requests
    /// are waited for as long as before.
    ///
    /// Behind a step back, instants come again that were due before. They are due 1 ns later for each
    /// such step, so that no two intervals have the same `time`.
    pub fn handle_clock_step(&mut self, now: WallTime, step_ns: i64) {
        let text = clock_step_text(step_ns);
        let count = Some(step_ns.unsigned_abs());
        self.rows.event(now, "clock_step", Event { text: &text, count, ..Event::default() });
        for ring in 0..self.rings.len() {
            self.pass_over_silent(ring, Reason::BackedOff);
        }
        if step_ns < 0 {
            self.steps_back += Nanos::new(1);
        }
        let steps_back = self.steps_back;
        for ring in &mut self.rings {
            ring.next = due(now, ring.interval, steps_back) + ring.interval;
            for (at, _) in &mut ring.queue {
                *at = now;
            }
        }
        let moved = |at: WallTime| WallTime::from_nanos(at.as_nanos().saturating_add(step_ns));
        self.sweep_at = self.sweep_at.map(moved);
        self.look_at = moved(self.look_at);
        for device in &mut self.devices {
            device.clock_stepped(&moved);
        }
    }

    /// Takes in the drop counter of socket number `socket`.
    pub fn handle_drops(&mut self, now: WallTime, socket: usize, drops: u32) {
        if self.drops_seen.len() <= socket {
            self.drops_seen.resize(socket + 1, 0);
        }
        let more = drops.wrapping_sub(self.drops_seen[socket]);
        if more == 0 || more > u32::MAX / 2 {
            return;
        }
        self.drops_seen[socket] = drops;
        self.counts.socket_drops += u64::from(more);
        self.dropped_at = Some(now);
        let text = "our own receive buffer was full";
        let event = Event { text, count: Some(u64::from(more)), ..Event::default() };
        self.rows.event(now, "socket_drops", event);
    }

    /// Ends every interval and alert that is open, and hands over what is left.
    ///
    /// # Panics
    /// When requests are still counted as open after every one has ended.
    pub fn finish(mut self, now: WallTime, sink: &mut impl RowSink) {
        for ordinal in (0..).take(self.devices.len()) {
            for which in [Open::Earlier, Open::Newest] {
                let device = &mut self.devices[ordinal as usize];
                let unusable = device.open(which).and_then(|open| open.unusable);
                let stopped = (State::Skipped, Reason::Stopped);
                let (state, reason) = unusable.map_or(stopped, |reason| (State::Error, reason));
                self.end(ordinal, which, state, Some(reason));
            }
            self.withdraw_alerts(ordinal, now, "the measurement has ended");
            self.tell_last_repeats(ordinal, now);
        }
        assert_eq!((self.in_flight, self.awaited), (0, 0), "every open request has ended");
        self.close_now(sink);
        self.rows.flush(sink);
    }
}

/// A position among the rings.
fn index(ring: usize) -> u32 {
    u32::try_from(ring).expect("rings are the distinct intervals of at most 2^18 devices")
}
