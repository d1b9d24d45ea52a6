//! Devices that fail several times in a row: written down once when it begins and once when it ends.
//!
//! An answer costs one comparison here. It does not say what a person should do about it, see
//! [`crate::probe::Trouble`].

use meikyo_units::WallTime;

use crate::poll::Poller;
use crate::poll::device::Device;
use crate::poll::repeats::Repeated;
use crate::poll::rows::{Event, Reason};

/// Failures in a row after which a device is told of: one or two are losses of the network.
pub(super) const FAILURES_TOLD: u32 = 3;

/// A device has begun to fail, or has ended to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outage {
    /// It fails again and again.
    Began {
        /// Why; `None` if no answer comes.
        reason: Option<Reason>,
    },
    /// It answers again.
    Ended,
}

impl Device {
    /// Whether so many intervals in a row failed that it was told.
    pub(super) fn is_failing(&self) -> bool {
        self.failures >= FAILURES_TOLD
    }
}

impl Poller {
    /// Devices that have begun to fail, or to answer again, since the last call, in this order.
    pub fn take_outages(&mut self) -> Vec<(u32, Outage)> {
        std::mem::take(&mut self.outages)
    }

    /// An interval of a device failed by its own fault.
    pub(super) fn failed(&mut self, ordinal: u32, due: WallTime, reason: Option<Reason>) {
        let device = &mut self.devices[ordinal as usize];
        device.failures = device.failures.saturating_add(1);
        if device.failures != FAILURES_TOLD || device.removed {
            return;
        }
        let text = match reason {
            None => "no answer to several requests in a row".to_owned(),
            Some(reason) => format!("several requests in a row failed: {}", reason.word()),
        };
        let count = Some(u64::from(FAILURES_TOLD));
        let event = Event { device: Some(device.name), object: None, text: &text, count };
        self.outages.push((ordinal, Outage::Began { reason }));
        self.tell_outage(ordinal, due, "failing", event);
    }

    /// An interval of a device was answered in full, after so many that failed.
    #[inline]
    pub(super) fn answered(&mut self, ordinal: u32, due: WallTime, failures: u32) {
        if failures >= FAILURES_TOLD {
            let (device, count) = (Some(self.device_symbol(ordinal)), Some(u64::from(failures)));
            let text = "it answers again";
            self.outages.push((ordinal, Outage::Ended));
            let event = Event { device, object: None, text, count };
            self.tell_outage(ordinal, due, "answering", event);
        }
    }

    /// Writes an event about an outage down, or holds it back where there are many of one device.
    fn tell_outage(&mut self, ordinal: u32, due: WallTime, kind: &str, event: Event<'_>) {
        let repeats = &mut self.devices[ordinal as usize].repeats;
        if repeats.get_or_insert_default().admit(Repeated::Outage, due) {
            self.rows.event(due, kind, event);
        } else {
            self.holds_back(ordinal);
        }
    }
}
