//! What happens again and again is told a few times, and then as a number: a device that comes and
//! goes three times a second, or a counter that is set anew in every interval, must not fill the table
//! `events`, and nothing of it may be lost silently.

use meikyo_units::{Nanos, WallTime};

use crate::poll::Poller;
use crate::poll::device::Device;
use crate::poll::rows::{Event, Rows};

/// The span that a number is told for.
const WINDOW: Nanos = Nanos::from_secs(60);

/// Events of one kind and device that are told by themselves in a window.
const TOLD_MAX: u32 = 6;

/// Events that name one object each: those of all columns of a few ports.
const OBJECTS_TOLD_MAX: u32 = 64;

/// How often it is looked whether a window is over.
const LOOK_EVERY: Nanos = Nanos::from_secs(1);

/// What is held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeated {
    /// A device fails, or answers again.
    Outage,
    /// Counters began anew.
    Reset,
    /// A request was refused, and no object named.
    Request,
    /// An object is missing, refused or unreadable, or it came back.
    Object,
    /// The agent restarted.
    Restart,
}

impl Repeated {
    const ALL: [Self; 5] = [Self::Outage, Self::Reset, Self::Request, Self::Object, Self::Restart];

    fn told_max(self) -> u32 {
        if self == Self::Object { OBJECTS_TOLD_MAX } else { TOLD_MAX }
    }
}

/// Events of one kind.
#[derive(Debug, Clone, Copy, Default)]
struct Limit {
    /// When the window began.
    window: WallTime,
    /// Events that were told in it.
    told: u32,
    /// Events that were held back.
    held: u32,
}

/// What one device does again and again.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Repeats {
    /// In the order of [`Repeated::ALL`].
    limits: [Limit; 5],
}

impl Limit {
    /// Whether an event is told by itself; in a window `most` are.
    fn admit(&mut self, at: WallTime, most: u32) -> bool {
        if self.held == 0 && at.since(self.window) >= WINDOW {
            (self.window, self.told) = (at, 0);
        }
        let admitted = self.told < most;
        if admitted {
            self.told += 1;
        } else {
            self.held += 1;
        }
        admitted
    }

    /// The number of events that were held back and the span in which they were, once the window is
    /// over or `ending`. What goes on is told as a number only, until a window passes without it.
    fn take_due(&mut self, now: WallTime, ending: bool) -> Option<(u32, Nanos)> {
        let span = now.since(self.window);
        if self.held == 0 || (span < WINDOW && !ending) {
            return None;
        }
        (self.window, self.told) = (now, u32::MAX);
        Some((std::mem::take(&mut self.held), span))
    }
}

impl Repeats {
    /// Whether an event is told by itself; else it is counted and told with others.
    pub(super) fn admit(&mut self, kind: Repeated, at: WallTime) -> bool {
        self.limits[kind as usize].admit(at, kind.told_max())
    }

    /// Whether anything is held back.
    fn holds(&self) -> bool {
        self.limits.iter().any(|limit| limit.held > 0)
    }

    /// The real-time clock was set.
    pub(super) fn clock_stepped(&mut self, moved: &dyn Fn(WallTime) -> WallTime) {
        for limit in &mut self.limits {
            limit.window = moved(limit.window);
        }
    }
}

/// Writes down what of a device was held back.
fn tell(device: &mut Device, now: WallTime, ending: bool, rows: &mut Rows) {
    let (name, fails) = (device.name, device.is_failing());
    let Some(repeats) = &mut device.repeats else { return };
    for kind in Repeated::ALL {
        let Some((held, span)) = repeats.limits[kind as usize].take_due(now, ending) else {
            continue;
        };
        let span = seconds(span);
        let (word, text) = match kind {
            Repeated::Outage => {
                let state = if fails { "it fails" } else { "it answers" };
                let text =
                    format!("it failed and answered again, {held} changes in {span}; {state} now");
                ("flapping", text)
            }
            Repeated::Reset => {
                ("reset", format!("counters began anew {held} more times in {span}"))
            }
            Repeated::Request => {
                let text = format!(
                    "the agent refused requests {held} more times in {span} without saying for \
                     which object"
                );
                ("refused_request", text)
            }
            Repeated::Object => {
                let text = format!(
                    "objects were missing, refused or unreadable or came back, {held} more times in \
                     {span}"
                );
                ("missing_object", text)
            }
            Repeated::Restart => {
                let text = format!(
                    "sysUpTime began anew {held} more times in {span}: the agent restarts again and \
                     again, or several answer in turn"
                );
                ("restart", text)
            }
        };
        let count = Some(u64::from(held));
        rows.event(now, word, Event { device: Some(name), object: None, text: &text, count });
    }
}

fn seconds(span: Nanos) -> String {
    format!("{} s", span.get().div_ceil(Nanos::SECOND.get()))
}

impl Poller {
    /// Once a second: tells what was held back for a whole window.
    pub(super) fn tell_repeats(&mut self, now: WallTime) {
        if now.since(self.repeats_at) < LOOK_EVERY && now >= self.repeats_at {
            return;
        }
        self.repeats_at = now;
        let Self { repeating, devices, rows, .. } = self;
        repeating.retain(|&ordinal| {
            let device = &mut devices[ordinal as usize];
            tell(device, now, false, rows);
            device.repeats.as_ref().is_some_and(|repeats| repeats.holds())
        });
    }

    /// Takes note of a device of which an event is held back.
    pub(super) fn holds_back(&mut self, ordinal: u32) {
        if !self.repeating.contains(&ordinal) {
            self.repeating.push(ordinal);
        }
    }

    /// Tells what was held back of a device that is not measured any more.
    pub(super) fn tell_last_repeats(&mut self, ordinal: u32, now: WallTime) {
        tell(&mut self.devices[ordinal as usize], now, true, &mut self.rows);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: u64) -> WallTime {
        WallTime::from_nanos(1_700_000_000_000_000_000) + Nanos::from_secs(seconds)
    }

    #[test]
    fn the_first_are_told_the_rest_counted_until_a_quiet_window() {
        let mut limit = Limit::default();
        let told = (0..50).filter(|&second| limit.admit(at(second), TOLD_MAX)).count();
        assert_eq!(told, 6);
        assert_eq!(limit.take_due(at(59), false), None);
        assert_eq!(limit.take_due(at(60), false), Some((44, Nanos::from_secs(60))));
        // It goes on: a number only.
        assert!(!(61..70).any(|second| limit.admit(at(second), TOLD_MAX)));
        assert_eq!(limit.take_due(at(120), false), Some((9, Nanos::from_secs(60))));
        // A window without any, and the next is told by itself.
        assert_eq!(limit.take_due(at(180), false), None);
        assert!(limit.admit(at(181), TOLD_MAX));
        assert_eq!(limit.take_due(at(182), true), None);
    }

    proptest! {
        /// Whatever happens when: every event is told or counted once, and in any minute there are
        /// few events.
        #[test]
        fn nothing_is_lost_and_events_are_bounded(gaps in proptest::collection::vec(0_u64..40, 1..400)) {
            let (mut limit, mut now) = (Limit::default(), 0);
            let (mut told, mut counted, mut written) = (0, 0, Vec::new());
            for gap in &gaps {
                for second in now..now + gap {
                    if let Some((held, _)) = limit.take_due(at(second), false) {
                        counted += held;
                        written.push(second);
                    }
                }
                now += gap;
                if limit.admit(at(now), TOLD_MAX) {
                    told += 1;
                    written.push(now);
                }
            }
            counted += limit.take_due(at(now), true).map_or(0, |(held, _)| held);
            prop_assert_eq!(u64::from(told + counted), gaps.len() as u64);
            for &first in &written {
                let within = written.iter().filter(|&&at| (first..first + 60).contains(&at)).count();
                prop_assert!(within <= 13, "{} within a minute of {}", within, first);
            }
        }
    }
}
