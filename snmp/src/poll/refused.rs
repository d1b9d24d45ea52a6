//! Objects that an agent refuses to answer together with others.
//!
//! An agent that fails at one object (`genErr`, v1 `noSuchName`, `authorizationError`) answers the
//! whole request with an error status and names the object by its position (`error-index`, RFC
//! 3416, section 4.2.1). The object is left out, told by name, and asked for again after
//! [`AGAIN_AFTER`], one object at a time and ever more seldom; the rest is measured meanwhile. Where
//! a single row is too big for an agent, its last values are left out until the rest fits. An error
//! status that names no object may concern the whole agent: nothing is left out for it, and what was
//! asked is told.

use meikyo_units::{Nanos, WallTime};

use crate::Oid;
use crate::pdu::{ErrorStatus, error_status_name};
use crate::plan::Convert;
use crate::poll::Poller;
use crate::poll::device::{Device, asked};
use crate::poll::failing::FAILURES_TOLD;
use crate::poll::repeats::Repeated;
use crate::poll::rows::{Event, Reason};
use crate::tables::{object_name, schema};

/// How long a refused object is left out at first; the span doubles with every refusal.
const AGAIN_AFTER: Nanos = Nanos::from_secs(10);

/// How long it is left out at most.
const AGAIN_AFTER_MAX: Nanos = Nanos::from_secs(640);

/// An instant that does not come.
pub(super) const NEVER: WallTime = WallTime::from_nanos(i64::MAX);

/// The objects of one device that are left out.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    objects: Vec<Refused>,
}

#[derive(Debug)]
struct Refused {
    object: Oid,
    /// How long it is left out this time.
    for_span: Nanos,
    again_at: WallTime,
    /// It is asked for again, and nobody knows yet what the agent says.
    on_trial: bool,
}

impl LeftOut {
    /// Whether an object is not asked for.
    pub(super) fn holds(&self, object: &Oid) -> bool {
        self.objects.iter().any(|refused| !refused.on_trial && refused.object == *object)
    }

    /// When an object is asked for again.
    pub(super) fn next(&self) -> WallTime {
        let waiting = self.objects.iter().filter(|refused| !refused.on_trial);
        waiting.map(|refused| refused.again_at).min().unwrap_or(NEVER)
    }

    /// Leaves out an object; `true` if it was not refused before.
    fn add(&mut self, now: WallTime, object: &Oid) -> bool {
        let known = self.objects.iter_mut().find(|refused| refused.object == *object);
        if let Some(known) = known {
            known.for_span = (known.for_span * 2).min(AGAIN_AFTER_MAX);
            known.again_at = now + known.for_span;
            known.on_trial = false;
            return false;
        }
        let (object, again_at) = (object.clone(), now + AGAIN_AFTER);
        self.objects.push(Refused { object, for_span: AGAIN_AFTER, again_at, on_trial: false });
        true
    }

    /// Puts the object that has waited for longest on trial.
    pub(super) fn try_one(&mut self, due: WallTime) {
        let waiting = self.objects.iter_mut().filter(|refused| !refused.on_trial);
        if let Some(first) = waiting.min_by_key(|refused| refused.again_at)
            && first.again_at <= due
        {
            first.on_trial = true;
        }
        // The others have their turn a second later each.
        for other in self.objects.iter_mut().filter(|refused| !refused.on_trial) {
            other.again_at = other.again_at.max(due + Nanos::SECOND);
        }
    }

    /// Forgets what was on trial and is answered; `true` if something still is on trial.
    pub(super) fn answered(&mut self, is_asked: impl Fn(&Oid) -> bool) -> bool {
        self.objects.retain(|refused| !refused.on_trial || !is_asked(&refused.object));
        self.objects.iter().any(|refused| refused.on_trial)
    }

    /// The real-time clock was set.
    pub(super) fn clock_stepped(&mut self, moved: &dyn Fn(WallTime) -> WallTime) {
        for refused in &mut self.objects {
            refused.again_at = moved(refused.again_at);
        }
    }
}

impl Device {
    /// The name under which events speak of an object that is asked for.
    fn name_of(&self, object: &Oid) -> Option<String> {
        self.rows.iter().find_map(|row| {
            let instance = row.instance.as_deref();
            if row.guard.as_ref().is_some_and(|guard| guard.oid == *object) {
                let table = &schema(row.table).name;
                return Some(instance.map_or_else(|| table.clone(), |it| format!("{table}.{it}")));
            }
            let is_high = |convert: &Convert| {
                matches!(convert, Convert::LowHigh { high, .. } if high == object)
            };
            let value =
                asked(row).find(|value| value.oid == *object || is_high(&value.convert))?;
            Some(object_name(row.table, instance, value.column))
        })
    }
}

impl Poller {
    /// Tells what was asked in a request that an agent refuses for the third time in a row without
    /// naming an object.
    fn tell_refused_request(&mut self, ordinal: u32, status: i32) {
        let device = &self.devices[ordinal as usize];
        let Some(open) = device.pending.filter(|_| device.failures + 1 == FAILURES_TOLD) else {
            return;
        };
        let layout = self.layouts.get(open.layout as usize);
        let name = |position: usize| {
            let object = layout.object(position)?;
            Some(device.name_of(&object).unwrap_or_else(|| object.to_string()))
        };
        // The first object is sysUpTime.
        let asked = match (name(2), name(layout.objects())) {
            (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
            (Some(only), _) => only,
            (None, _) => "sysUpTime.0".to_owned(),
        };
        let text = format!(
            "the agent answers {} without saying to which object; it was asked for {asked}",
            error_status_name(status)
        );
        let (name, count) = (Some(device.name), Some(u64::from(FAILURES_TOLD)));
        let repeats = self.devices[ordinal as usize].repeats.get_or_insert_default();
        if repeats.admit(Repeated::Request, open.due) {
            let event = Event { device: name, object: None, text: &text, count };
            self.rows.event(open.due, "refused_request", event);
        } else {
            self.holds_back(ordinal);
        }
    }

    /// An answer with an error status: some can be cured within the interval.
    pub(super) fn error_status(
        &mut self,
        ordinal: u32,
        received: WallTime,
        status: i32,
        index: i32,
    ) {
        let device = &mut self.devices[ordinal as usize];
        let Some(pending) = device.pending else { return };
        let (set, pdu) = (pending.set as usize, pending.pdu as usize);
        let too_big = status == ErrorStatus::TooBig.code();
        let object = if too_big {
            if device.split(set, pdu, &mut self.layouts) {
                return self.ask_again(ordinal, received);
            }
            self.layouts.get(pending.layout as usize).last_of_several()
        } else {
            // The first object is sysUpTime, without which no restart would be seen.
            let layout = self.layouts.get(pending.layout as usize);
            usize::try_from(index).ok().filter(|&at| at > 1).and_then(|at| layout.object(at))
        };
        let Some(object) = object.filter(|object| !device.left_out.holds(object)) else {
            let reason = match status {
                _ if too_big => Reason::TooBig,
                status if status == ErrorStatus::AuthorizationError.code() => Reason::NotAuthorized,
                _ => Reason::ErrorStatus,
            };
            self.tell_refused_request(ordinal, status);
            return self.fail(ordinal, received, reason);
        };
        if device.left_out.add(pending.due, &object) {
            let name = device.name_of(&object).unwrap_or_else(|| object.to_string());
            let (kind, text) = if status == ErrorStatus::NoSuchName.code() {
                ("missing_object", format!("the agent has no such object: {object}"))
            } else {
                let status = error_status_name(status);
                let text = format!(
                    "the agent answers {status} for {object}: it is left out and asked for again \
                     in {AGAIN_AFTER}"
                );
                ("refused_object", text)
            };
            let symbol = Some(device.name);
            if device.repeats.get_or_insert_default().admit(Repeated::Object, pending.due) {
                let event = Event { device: symbol, object: Some(&name), text: &text, count: None };
                self.rows.event(pending.due, kind, event);
            } else {
                self.holds_back(ordinal);
            }
        }
        self.devices[ordinal as usize].left_out_changed(set, pdu, &mut self.layouts);
        self.ask_again(ordinal, received);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> WallTime {
        WallTime::from_nanos(seconds * 1_000_000_000)
    }

    /// When an object that was left out at `now` is tried again, and whether its refusal was news.
    fn refused(left_out: &mut LeftOut, now: i64, object: &Oid) -> (bool, i64) {
        let is_new = left_out.add(at(now), object);
        (is_new, left_out.next().as_nanos() / 1_000_000_000 - now)
    }

    #[test]
    fn an_object_is_tried_ever_more_seldom_and_anew_once_it_was_answered() {
        let object = Oid::from_slice(&[1, 3, 6, 1, 2, 1, 2, 2, 1, 10, 7]);
        let mut left_out = LeftOut::default();
        assert_eq!(refused(&mut left_out, 100, &object), (true, 10));
        left_out.try_one(at(110));
        assert_eq!(refused(&mut left_out, 110, &object), (false, 20));
        left_out.try_one(at(130));
        assert!(left_out.answered(|_| false), "what was not asked is still on trial");
        assert!(!left_out.answered(|asked| *asked == object));
        assert_eq!(left_out.next(), NEVER);
        assert_eq!(refused(&mut left_out, 500, &object), (true, 10));
    }
}
