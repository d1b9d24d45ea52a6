//! Resources: so many of something, and who waits for one.

use meikyo_undo::{Cell, Change, Deque, Log, State, Wire, bytes_of_fields};
use meikyo_units::SimTime;

/// A counted resource with a queue, first come first served.
///
/// `T` is what its LP wants to know of a user whose turn comes. The queue grows with its users; an LP
/// that wants a limit looks at [`Resource::queued`] before it asks.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource<T> {
    capacity: u32,
    used: Cell<u32>,
    queue: Deque<T>,
    /// Since when as many are used and as many wait as now.
    since: Cell<SimTime>,
    /// Units used times nanoseconds, up to `since`.
    used_time: Cell<u64>,
    /// Users waiting times nanoseconds, up to `since`.
    queued_time: Cell<u64>,
    /// Before this instant nothing is accounted for.
    from: SimTime,
}

impl<T: Send + Wire + 'static> State for Resource<T> {
    const COPIED: bool = false;

    fn revert(&mut self, change: &mut Change<'_>) -> bool {
        self.used.revert(change)
            || self.queue.revert(change)
            || self.since.revert(change)
            || self.used_time.revert(change)
            || self.queued_time.revert(change)
    }

    bytes_of_fields!(used, queue, since, used_time, queued_time);
}

impl<T: Clone + Send + 'static> Resource<T> {
    /// `capacity` units, all free.
    pub fn new(capacity: u32) -> Self {
        Self {
            capacity,
            used: Cell::default(),
            queue: Deque::default(),
            since: Cell::default(),
            used_time: Cell::default(),
            queued_time: Cell::default(),
            from: SimTime::START,
        }
    }

    /// The same resource, whose means leave out what is before `instant`.
    #[must_use]
    pub fn accounted_from(self, instant: SimTime) -> Self {
        Self { from: instant, ..self }
    }

    /// Asks for a unit at `now`: gives `user` back if it has one, else `user` waits.
    pub fn acquire(&mut self, log: &mut impl Log, now: SimTime, user: T) -> Option<T> {
        self.account(log, now);
        if self.used.get() < self.capacity {
            self.used.add(log, 1);
            return Some(user);
        }
        self.queue.push_back(log, user);
        None
    }

    /// Gives a unit back at `now`; the user that waited longest has it then, and is given.
    ///
    /// # Panics
    /// If no unit is used.
    pub fn release(&mut self, log: &mut impl Log, now: SimTime) -> Option<T> {
        self.account(log, now);
        let next = self.queue.pop_front(log);
        if next.is_none() {
            let used = self.used.get().checked_sub(1).expect("a unit was acquired");
            self.used.set(log, used);
        }
        next
    }

    fn account(&mut self, log: &mut impl Log, now: SimTime) {
        if now > self.since.get() {
            let span = now.since(self.since.get().max(self.from).min(now)).get();
            self.since.set(log, now);
            self.used_time.add(log, span * u64::from(self.used.get()));
            let queued = u64::try_from(self.queued()).expect("a length fits into 64 bits");
            self.queued_time.add(log, span * queued);
        }
    }

    /// How many wait for a unit now.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// How many units are used.
    pub fn used(&self) -> u32 {
        self.used.get()
    }

    /// The mean share of the units that were used, from the start (or what [`Resource::accounted_from`] says) to the
    /// last change.
    pub fn busy_share(&self) -> f64 {
        self.mean(self.used_time.get()) / f64::from(self.capacity)
    }

    /// How many waited in the mean, from the start (or what [`Resource::accounted_from`] says) to the
    /// last change.
    pub fn queued_mean(&self) -> f64 {
        self.mean(self.queued_time.get())
    }

    #[expect(clippy::cast_precision_loss, reason = "a mean, to 15 digits")]
    fn mean(&self, time: u64) -> f64 {
        let span = self.since.get().as_nanos().saturating_sub(self.from.as_nanos());
        if span == 0 { 0.0 } else { time as f64 / span as f64 }
    }
}

#[cfg(test)]
mod tests {
    use meikyo_undo::{Forget, Mark, UndoLog};

    use super::*;

    #[test]
    fn users_have_their_turn_in_order_and_everything_can_be_taken_back() {
        let at = SimTime::from_nanos;
        let mut resource = Resource::new(2);
        let fresh = resource.clone();
        let mut log = UndoLog::new();
        let granted = ['a', 'b', 'c', 'd'].map(|user| resource.acquire(&mut log, at(0), user));
        assert_eq!(granted, [Some('a'), Some('b'), None, None]);
        // Two used for 10 ns with two waiting, for 10 ns with one, for 20 ns with none.
        let next = [10, 20, 40, 80].map(|now| resource.release(&mut log, at(now)));
        assert_eq!(next, [Some('c'), Some('d'), None, None]);
        assert_eq!((resource.used(), resource.queued()), (0, 0));
        // 2 * 40 + 1 * 40 units times ns of 2 * 80, and 2 * 10 + 1 * 10 waiting over 80 ns.
        assert!((resource.busy_share() - 0.75).abs() < 1e-12);
        assert!((resource.queued_mean() - 0.375).abs() < 1e-12);
        let mut later = Resource::new(2).accounted_from(at(20));
        for _ in 0..3 {
            later.acquire(&mut Forget, at(0), 'a');
        }
        // From 20 to 40 ns two are used and one waits, from then to 60 ns two are used.
        for instant in [40, 60] {
            later.release(&mut Forget, at(instant));
        }
        assert!((later.busy_share() - 1.0).abs() < 1e-12);
        assert!((later.queued_mean() - 0.5).abs() < 1e-12);
        log.revert(Mark::default(), log.mark(), &mut resource).unwrap();
        assert_eq!(resource, fresh);
    }
}
