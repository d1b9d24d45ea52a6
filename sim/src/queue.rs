//! The pending events of one scheduler, the least key first.
//!
//! A ladder queue (Tang, Goh, Thng 2005): events far away lie unsorted in `top`, events ahead in
//! buckets of equal width, and only the few of the bucket that is being read are sorted. A rung of
//! buckets is as wide as its events need; a bucket with too many of them becomes a rung of its own.
//!
//! Cost: a push writes the event into a bucket; it is moved once a rung, three times on the whole,
//! and sorted among `NEAR` others. Memory: the event itself (32 bytes and the message), 24 bytes for
//! every block of 16 events, and 48 bytes and half a block for each bucket, of which a rung has at
//! most `BUCKETS`.

mod bucket;

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use bucket::{Bucket, Pool};

use crate::key::{Event, EventKey};

/// A bucket of at most this many events is sorted; a larger one is spread over a finer rung.
const NEAR: usize = 32;
/// Events that a bucket of a new rung shall hold.
const AIM: usize = 6;
/// Buckets of a rung at most: their heads stay in the second-level cache.
const BUCKETS: usize = 2048;

/// Events ordered by their keys.
#[derive(Debug)]
pub(crate) struct Queue<M> {
    /// Sorted, the least last; all before `near_end`.
    near: Vec<Event<M>>,
    /// What was pushed before `near_end`.
    fresh: BinaryHeap<Least<M>>,
    /// The time from which events lie in rungs or in `top`.
    near_end: u64,
    /// From coarse to fine. The finest begins at `near_end`, and each ends where the unread part of
    /// the one before it begins.
    rungs: Vec<Rung<M>>,
    /// Events later than all rungs, unsorted.
    top: Bucket<M>,
    top_least: u64,
    top_greatest: u64,
    pool: Pool<M>,
    spare: Vec<Vec<Bucket<M>>>,
}

#[derive(Debug)]
struct Rung<M> {
    start: u64,
    /// A bucket is 2^shift ns wide.
    shift: u32,
    /// The first bucket that is not read yet.
    next: usize,
    buckets: Vec<Bucket<M>>,
}

impl<M> Rung<M> {
    fn bucket(&self, time: u64) -> Option<usize> {
        usize::try_from((time - self.start) >> self.shift)
            .ok()
            .filter(|bucket| *bucket < self.buckets.len())
    }

    fn bucket_start(&self, bucket: usize) -> u64 {
        let offset = u128::try_from(bucket).expect("a bucket's number fits") << self.shift;
        // Saturates: the last bucket may reach beyond the end of time.
        u64::try_from(u128::from(self.start) + offset).unwrap_or(u64::MAX)
    }
}

/// The heap's order: the least key is the greatest element.
#[derive(Debug)]
struct Least<M>(Event<M>);

impl<M> Ord for Least<M> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.order(&self.0)
    }
}
impl<M> PartialOrd for Least<M> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<M> PartialEq for Least<M> {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}
impl<M> Eq for Least<M> {}

impl<M> Queue<M> {
    pub(crate) fn new() -> Self {
        Self {
            near: Vec::new(),
            fresh: BinaryHeap::new(),
            near_end: 0,
            rungs: Vec::new(),
            top: Bucket::default(),
            top_least: u64::MAX,
            top_greatest: 0,
            pool: Pool::new(),
            spare: Vec::new(),
        }
    }

    /// Takes `event` in, which is before the end of time.
    #[inline]
    pub(crate) fn push(&mut self, event: Event<M>) {
        let time = event.time();
        debug_assert!(time < u64::MAX, "what never happens is not pending");
        if time < self.near_end {
            self.fresh.push(Least(event));
            return;
        }
        for rung in self.rungs.iter_mut().rev() {
            if let Some(bucket) = rung.bucket(time) {
                rung.buckets[bucket].push(event, &mut self.pool);
                return;
            }
        }
        self.top_least = self.top_least.min(time);
        self.top_greatest = self.top_greatest.max(time);
        self.top.push(event, &mut self.pool);
    }

    /// The key of the next event.
    pub(crate) fn next_key(&mut self) -> Option<EventKey> {
        self.refill();
        let near = self.near.last().map(Event::key);
        let fresh = self.fresh.peek().map(|least| least.0.key());
        match (near, fresh) {
            (Some(near), Some(fresh)) => Some(near.min(fresh)),
            (near, fresh) => near.or(fresh),
        }
    }

    /// Whether the next event is before `limit` ns.
    #[inline]
    pub(crate) fn is_before(&mut self, limit: u64) -> bool {
        self.refill();
        let next = if self.fresh_first() {
            self.fresh.peek().map(|least| &least.0)
        } else {
            self.near.last()
        };
        next.is_some_and(|next| next.time() < limit)
    }

    /// Takes the next event, which there must be, as [`Queue::is_before`] has said.
    ///
    /// Not as an option: the compiler would write its tag into the middle of the event, and wait for that when it
    /// moves the event as a whole.
    #[inline]
    pub(crate) fn take(&mut self) -> Event<M> {
        if self.fresh_first() {
            return self.fresh.pop().expect("there is one").0;
        }
        self.near.swap_remove(self.near.len() - 1)
    }

    /// Takes the next event if it is before `limit` ns.
    #[inline]
    pub(crate) fn pop_before(&mut self, limit: u64) -> Option<Event<M>> {
        self.is_before(limit).then(|| self.take())
    }

    /// Whether the next event is one that was pushed before `near_end`.
    #[inline]
    fn fresh_first(&self) -> bool {
        match (self.near.last(), self.fresh.peek()) {
            (Some(near), Some(fresh)) => fresh.0.order(near) == Ordering::Less,
            (None, Some(_)) => true,
            _ => false,
        }
    }

    /// The event that is read `ahead` events after the next one, as far as that is sorted.
    pub(crate) fn ahead(&self, ahead: usize) -> Option<&Event<M>> {
        self.near.len().checked_sub(1 + ahead).map(|at| &self.near[at])
    }

    /// Whether no event is pending.
    pub(crate) fn is_empty(&mut self) -> bool {
        self.next_key().is_none()
    }

    /// Takes all events out, in no order, and gives their memory back on the way.
    pub(crate) fn take_all(&mut self, mut each: impl FnMut(Event<M>)) {
        let Self { near, fresh, rungs, top, .. } = std::mem::replace(self, Self::new());
        let mut pool = Pool::none();
        near.into_iter().for_each(&mut each);
        fresh.into_iter().for_each(|least| each(least.0));
        let buckets = rungs.into_iter().flat_map(|rung| rung.buckets).chain([top]);
        for mut bucket in buckets {
            bucket.drain(&mut pool, |_, event| each(event));
        }
    }

    fn refill(&mut self) {
        if self.near.is_empty() && self.fresh.is_empty() {
            self.read_on();
        }
    }

    #[cold]
    fn read_on(&mut self) {
        while self.near.is_empty() {
            let Some(rung) = self.rungs.last_mut() else {
                if self.top.is_empty() {
                    return;
                }
                self.read_top();
                continue;
            };
            let Some(skipped) = rung.buckets[rung.next..].iter().position(|b| !b.is_empty()) else {
                self.near_end = self.near_end.max(rung.bucket_start(rung.buckets.len()));
                self.spare.extend(self.rungs.pop().map(|rung| rung.buckets));
                continue;
            };
            let at = rung.next + skipped;
            rung.next = at + 1;
            let (start, end) = (rung.bucket_start(at), rung.bucket_start(at + 1));
            let bucket = &mut rung.buckets[at];
            if bucket.len() <= NEAR || rung.shift == 0 {
                self.near_end = end;
                bucket.append_to(&mut self.near, &mut self.pool);
                self.sort_near();
            } else {
                self.near_end = start;
                let bucket = std::mem::take(bucket);
                self.spread(bucket, start, end - 1);
            }
        }
    }

    fn read_top(&mut self) {
        let (least, greatest) = (self.top_least, self.top_greatest);
        (self.top_least, self.top_greatest) = (u64::MAX, 0);
        if self.top.len() <= NEAR || least == greatest {
            self.near_end = greatest.saturating_add(1);
            self.top.append_to(&mut self.near, &mut self.pool);
            self.sort_near();
        } else {
            self.near_end = least;
            let top = std::mem::take(&mut self.top);
            self.spread(top, least, greatest);
        }
    }

    /// Spreads `bucket`, all of it from `start` to `last`, over a new rung.
    fn spread(&mut self, mut bucket: Bucket<M>, start: u64, last: u64) {
        let wanted = (bucket.len() / AIM).clamp(1, BUCKETS);
        let width = (last - start) / u64::try_from(wanted).expect("a count fits into 64 bits") + 1;
        let shift = width.next_power_of_two().trailing_zeros();
        let count = usize::try_from((last - start) >> shift).expect("at most `BUCKETS`") + 1;
        let mut buckets = self.spare.pop().unwrap_or_default();
        buckets.resize_with(count, Bucket::default);
        bucket.drain(&mut self.pool, |pool, event| {
            let at = (event.time() - start) >> shift;
            let at = usize::try_from(at).expect("a rung covers the events it is made of");
            buckets[at].push(event, pool);
        });
        self.rungs.push(Rung { start, shift, next: 0, buckets });
    }

    fn sort_near(&mut self) {
        self.near.sort_unstable_by(|a, b| b.order(a));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use meikyo_units::SimTime;
    use proptest::prelude::*;

    use super::*;
    use crate::key::LpId;

    /// How far ahead of the event that was read last a push lies: ties, near, far, behind.
    #[derive(Clone, Debug)]
    enum Step {
        Push { ahead: i64, depth: u32 },
        Pop { within: u64 },
        TakeAll,
    }

    fn step(reach: i64) -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (-reach / 50..reach, 0_u32..3).prop_map(|(ahead, depth)| Step::Push { ahead, depth }),
            1 => (0_u32..3).prop_map(|depth| Step::Push { ahead: 0, depth }),
            4 => (0..u64::try_from(reach).unwrap()).prop_map(|within| Step::Pop { within }),
            1 => Just(Step::Pop { within: u64::MAX }),
        ]
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let drain = proptest::option::weighted(0.2, Just(Step::TakeAll));
        prop_oneof![Just(3_i64), Just(500), Just(1_000_000), Just(i64::MAX / 2)]
            .prop_flat_map(|reach| proptest::collection::vec(step(reach), 1..1500))
            .prop_flat_map(move |steps| {
                let drain = drain.clone();
                (Just(steps), drain).prop_map(|(mut steps, drain)| {
                    steps.extend(drain);
                    steps
                })
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn events_come_in_the_order_of_a_sorted_map(steps in steps()) {
            let mut queue = Queue::new();
            let mut truth: BTreeMap<EventKey, u64> = BTreeMap::new();
            let (mut now, mut sequence) = (1_000_u64, 0);
            for step in steps {
                match step {
                    Step::Push { ahead, depth } => {
                        let time = now.saturating_add_signed(ahead).min(u64::MAX - 1);
                        let time = SimTime::from_nanos(time);
                        let source = LpId(u32::try_from(sequence % 5).unwrap());
                        let key = EventKey { time, depth, priority: 0, source, sequence };
                        queue.push(Event::new(key, LpId(0), sequence));
                        truth.insert(key, sequence);
                        sequence += 1;
                    }
                    Step::Pop { within } => {
                        let limit = now.saturating_add(within);
                        let coming = truth.first_entry().map(|first| *first.key());
                        prop_assert_eq!(queue.next_key(), coming);
                        let expected = truth
                            .first_entry()
                            .filter(|first| first.key().time.as_nanos() < limit)
                            .map(std::collections::btree_map::OccupiedEntry::remove_entry);
                        let event = queue.pop_before(limit);
                        prop_assert_eq!(event.map(|event| (event.key(), event.message)), expected);
                        now = expected.map_or(now, |(key, _)| key.time.as_nanos());
                    }
                    Step::TakeAll => {
                        let mut all = BTreeMap::new();
                        queue.take_all(|event| { all.insert(event.key(), event.message); });
                        prop_assert_eq!(&all, &truth);
                        truth.clear();
                        prop_assert!(queue.is_empty());
                    }
                }
            }
        }
    }
}
