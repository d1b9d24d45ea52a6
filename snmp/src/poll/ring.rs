//! The absolute schedule: devices of one interval, due at its multiples on the wall clock.

use std::collections::VecDeque;

use meikyo_units::{Nanos, WallTime};

use crate::tables::State;

/// Devices that are read at the same span, and the intervals of theirs that are still open.
#[derive(Debug)]
pub(super) struct Ring {
    /// Span between two readings.
    pub(super) interval: Nanos,
    /// The next due instant: a multiple of `interval` since the epoch, and 1 ns more for each time
    /// that the clock was set back.
    pub(super) next: WallTime,
    /// Ordinals of the devices.
    pub(super) devices: Vec<u32>,
    /// Devices of the newest interval whose turn comes when the others have answered: nobody
    /// waits for the silent.
    pub(super) silent: Vec<u32>,
    /// Position of the device that is asked first: where not all could be asked within an interval,
    /// the next one begins with those that were not.
    pub(super) first: usize,
    /// Requests waiting to be sent: the earliest instant, and the device.
    pub(super) queue: VecDeque<(WallTime, u32)>,
    /// Intervals whose devices have not all ended, oldest first.
    pub(super) open: VecDeque<Tally>,
}

/// How the devices of one interval ended so far.
#[derive(Debug, Clone)]
pub(super) struct Tally {
    pub(super) due: WallTime,
    pub(super) devices: u32,
    /// Devices that have not ended.
    pub(super) left: u32,
    /// Indexed by [`State`].
    pub(super) states: [u32; State::ALL.len()],
    pub(super) batches: u32,
    pub(super) first_sent: Option<WallTime>,
    pub(super) last_sent: Option<WallTime>,
    pub(super) last_answer: Option<WallTime>,
    /// When the rows of the last answer were handed to the kernel.
    pub(super) last_kept: Option<WallTime>,
    /// Whether there are answers whose rows are not handed over.
    unhanded: bool,
    /// The mark behind the rows of the last answer, until it is kept.
    token: Option<u64>,
    /// The collector itself was late.
    pub(super) stalled: bool,
}

impl Ring {
    /// A ring whose first interval is the next one after `due`.
    pub(super) fn new(interval: Nanos, due: WallTime) -> Self {
        Self {
            interval,
            next: due + interval,
            devices: Vec::new(),
            silent: Vec::new(),
            first: 0,
            queue: VecDeque::new(),
            open: VecDeque::new(),
        }
    }

    /// The newest interval that has begun.
    pub(super) fn begun(&self) -> WallTime {
        self.next.before(self.interval)
    }

    /// When the silent have their turn at the earliest: the rows of the others are on their way to
    /// the kernel, and the thread that brings them there may share our core.
    pub(super) fn silent_from(&self) -> WallTime {
        self.begun() + Nanos::new(self.interval.get() / 8)
    }

    /// When the silent have their turn at the latest.
    pub(super) fn silent_by(&self) -> WallTime {
        self.begun() + Nanos::new(self.interval.get() / 2)
    }

    /// Opens the tally of an interval.
    pub(super) fn open(&mut self, due: WallTime) {
        let devices = u32::try_from(self.devices.len()).expect("ordinals are 18 bits");
        self.open.push_back(Tally {
            due,
            devices,
            left: devices,
            states: [0; State::ALL.len()],
            batches: 0,
            first_sent: None,
            last_sent: None,
            last_answer: None,
            last_kept: None,
            unhanded: false,
            token: None,
            stalled: false,
        });
    }

    /// The open tally of an interval; at most timeout / interval of them are open, and the one that
    /// is asked for is most often the newest.
    pub(super) fn tally(&mut self, due: WallTime) -> Option<&mut Tally> {
        self.open.iter_mut().rev().find(|tally| tally.due == due)
    }

    /// Counts the end of one device's interval.
    pub(super) fn end(&mut self, due: WallTime, state: State) {
        if let Some(tally) = self.tally(due) {
            tally.states[state as usize] += 1;
            tally.left = tally.left.saturating_sub(1);
        }
    }
}

impl Tally {
    /// An answer of this interval was received.
    pub(super) fn answered(&mut self, received: WallTime) {
        self.last_answer = self.last_answer.max(Some(received));
        self.unhanded = true;
    }

    /// All rows written so far were handed over before the mark `token`.
    pub(super) fn handed_over(&mut self, token: u64) {
        if std::mem::take(&mut self.unhanded) {
            self.token = Some(token);
        }
    }

    /// All rows before the mark `token` are kept since `at`, where that is known.
    pub(super) fn kept(&mut self, token: u64, at: Option<WallTime>) {
        if self.token.take_if(|own| *own <= token).is_some() {
            self.last_kept = at;
        }
    }

    /// Devices that ended in `state`.
    pub(super) fn ended(&self, state: State) -> u64 {
        u64::from(self.states[state as usize])
    }
}
