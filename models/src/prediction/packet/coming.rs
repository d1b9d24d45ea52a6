//! How much of each message has come to the last switch of its way.

use meikyo_undo::{Cell, Log, Map, fields};

use super::signal::Frame;

/// Messages of which some frames have come, and not all.
///
/// Of each way one is at hand; it has others only if frames are lost and come later, or if a host sends
/// several messages to the same one at once.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Coming {
    at_hand: Vec<Open>,
    /// How many frames of other messages are missing, by the way, the tag and the number.
    others: Map<(u32, u32, u32), u32>,
}
fields!(Coming { at_hand, others });

#[derive(Clone, Debug, PartialEq, Default)]
struct Open {
    tag: Cell<u32>,
    number: Cell<u32>,
    /// Frames that are missing; 0 if there is no message.
    missing: Cell<u32>,
}
fields!(Open { tag, number, missing });

impl Coming {
    /// Nothing of so many ways.
    pub(super) fn new(ways: usize) -> Self {
        Self { at_hand: vec![Open::default(); ways], others: Map::default() }
    }

    /// So many frames have come by a way. Gives whether their message has come with them.
    pub(super) fn completes(
        &mut self,
        way: usize,
        frame: &Frame,
        count: u32,
        log: &mut impl Log,
    ) -> bool {
        if frame.frames == 1 {
            return true;
        }
        let open = &mut self.at_hand[way];
        let missing = open.missing.get();
        if missing > 0 && (open.tag.get(), open.number.get()) == (frame.tag, frame.number) {
            open.missing.set(log, missing - count);
            return missing == count;
        }
        let key = (crate::prediction::ranks::number(way), frame.tag, frame.number);
        let other = self.others.get(&key).copied();
        if other.is_none() && missing == 0 {
            open.tag.set(log, frame.tag);
            open.number.set(log, frame.number);
            open.missing.set(log, frame.frames - count);
            return frame.frames == count;
        }
        match other.unwrap_or(frame.frames) - count {
            0 => {
                self.others.remove(log, &key);
                true
            }
            left => {
                self.others.insert(log, key, left);
                false
            }
        }
    }
}
