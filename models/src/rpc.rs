//! Request and reply: calls that travel, and what a caller remembers of them.
//!
//! A [`Call`] is the envelope: it goes with the request and comes back with the reply, so that every
//! LP on the way knows both ends, and the caller knows which of its calls is answered. What the caller
//! wants to do then stays with the caller, in [`Calls`]: a message names no event to come back to.
//!
//! ```
//! use meikyo_models::rpc::{Body, Calls, Message};
//! use meikyo_sim::LpId;
//! use meikyo_undo::Forget;
//!
//! // The caller keeps a word for each call that is in flight.
//! let mut calls: Calls<&str> = Calls::default();
//! let (client, server) = (LpId::new(0), LpId::new(7));
//! let first = calls.begin(&mut Forget, client, server, "the sum for Ada");
//! let second = calls.begin(&mut Forget, client, server, "the sum for Grace");
//! let request: Message<(u32, u32), u32> = second.request((40, 2));
//!
//! // The server answers whom it was asked by; here the second call comes back first.
//! let Body::Request((a, b)) = request.body else { unreachable!("it was a request") };
//! let reply: Message<(u32, u32), u32> = request.call.reply(a + b);
//! assert_eq!(reply.call.caller, client);
//! assert_eq!(calls.end(&mut Forget, reply.call), Some("the sum for Grace"));
//! assert_eq!(calls.end(&mut Forget, reply.call), None);
//! assert_eq!(calls.end(&mut Forget, first), Some("the sum for Ada"));
//! ```

use meikyo_sim::LpId;
use meikyo_undo::{Cell, Change, Held, Log, Map, State, Wire, bytes_of_fields};

/// One call: who asks whom, and which of the caller's calls it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Call {
    /// The LP that began the call and gets the reply.
    pub caller: LpId,
    /// The LP that the request goes to.
    pub callee: LpId,
    /// The caller's number for it; given again after 2^32 calls.
    number: u32,
}

/// What travels between the two ends of a call.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Message<Q, R> {
    /// The call that it belongs to.
    pub call: Call,
    /// The question or the answer.
    pub body: Body<Q, R>,
}

/// The question or the answer of a call.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Body<Q, R> {
    /// On the way to the callee.
    Request(Q),
    /// On the way back to the caller.
    Reply(R),
}

impl Call {
    /// The caller's number for it: no other one that is in flight has the same.
    pub(crate) fn number(self) -> u32 {
        self.number
    }

    /// The message that carries `request` to the callee.
    pub fn request<Q, R>(self, request: Q) -> Message<Q, R> {
        Message { call: self, body: Body::Request(request) }
    }

    /// The message that carries `reply` back to the caller.
    pub fn reply<Q, R>(self, reply: R) -> Message<Q, R> {
        Message { call: self, body: Body::Reply(reply) }
    }
}

/// The calls that an LP waits for, with what it remembers of each.
///
/// A single call in flight stands in the LP itself; only more at once cost an allocation.
#[derive(Clone, Debug, PartialEq)]
pub struct Calls<T> {
    begun: Cell<u32>,
    one: Held<Option<(u32, T)>>,
    more: Map<u32, T>,
}

impl<T: Send + 'static> Default for Calls<T> {
    fn default() -> Self {
        Self { begun: Cell::default(), one: Held::new(None), more: Map::default() }
    }
}

impl<T: Send + Wire + 'static> State for Calls<T> {
    const COPIED: bool = false;

    fn revert(&mut self, change: &mut Change<'_>) -> bool {
        self.begun.revert(change) || self.one.revert(change) || self.more.revert(change)
    }

    bytes_of_fields!(begun, one, more);
}

impl<T: Clone + Send + 'static> Calls<T> {
    /// Begins a call of `caller`, and remembers `memory` until it ends.
    pub fn begin(&mut self, log: &mut impl Log, caller: LpId, callee: LpId, memory: T) -> Call {
        let number = self.begun.get();
        self.begun.set(log, number.wrapping_add(1));
        if self.one.get().is_none() {
            self.one.set(log, Some((number, memory)));
        } else {
            self.more.insert(log, number, memory);
        }
        Call { caller, callee, number }
    }

    /// Ends `call`, and gives what was remembered; nothing if it is not in flight.
    pub fn end(&mut self, log: &mut impl Log, call: Call) -> Option<T> {
        match self.one.get() {
            Some((number, _)) if *number == call.number => {
                self.one.replace(log, None).map(|(_, memory)| memory)
            }
            _ => self.more.remove(log, &call.number),
        }
    }

    /// How many calls are in flight.
    pub fn len(&self) -> usize {
        usize::from(self.one.get().is_some()) + self.more.len()
    }

    /// Whether no call is in flight.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use meikyo_undo::{Mark, UndoLog};

    use super::*;

    #[test]
    fn replies_in_any_order_find_their_calls_and_everything_can_be_taken_back() {
        let (me, other) = (LpId::new(3), LpId::new(4));
        let mut calls = Calls::default();
        let fresh = calls.clone();
        let mut log = UndoLog::new();
        let [a, b, c] = [10, 20, 30].map(|memory| calls.begin(&mut log, me, other, memory));
        assert_eq!(calls.len(), 3);
        assert_eq!(calls.end(&mut log, a), Some(10));
        let d = calls.begin(&mut log, me, other, 40);
        let ended = [c, d, b, d].map(|call| calls.end(&mut log, call));
        assert_eq!(ended, [Some(30), Some(40), Some(20), None]);
        assert!(calls.is_empty());
        log.revert(Mark::default(), log.mark(), &mut calls).unwrap();
        assert_eq!(calls, fresh);
    }
}
