//! The collective exchange of threads: words, mail and lines in memory that all of them share.
//!
//! At an exchange every part publishes a row of words; when all have done so, everybody reads everybody's row.
//! Whoever waits for a part looks at its row, too, so that the same cache line tells that a part is done and, among
//! few parts, what matters most of its words. Rows are kept twice and used in turn, so that a part that publishes for
//! the next exchange already does not overwrite what a slower one still reads: nobody can be two exchanges ahead. Mail
//! may also be sent and received between two exchanges; what was sent before one can be received after it by every
//! part.
//!
//! This module knows neither events nor reports, only words and values that move from part to part. It calls nothing
//! else of the crate, so that the model check can compile it and the crew by themselves.
//!
//! Cost: a store for each word, a load for each word that is read. Between cores that share no cache a line takes
//! 0.25 µs, so that what counts are lines that are waited for one after the other: the row, the end of the ring,
//! and the mail in it, which is copied once; or the row, the lock of a list and the mail in that, which is not.

use rtrb::{Consumer, Producer, RingBuffer};

use super::crew::Arrivals;
use crate::sync::{AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering};

/// Words in one [`Lines`] of the cache.
const LINE_WORDS: usize = 16;

/// Two cache lines, which processors fetch together: no two parts write into the same ones.
#[repr(align(128))]
struct Lines([AtomicU64; LINE_WORDS]);

/// What one part published at an exchange, in cache lines of its own: the number of the exchange, and the words.
struct Row(Vec<Lines>);

const EXCHANGE: usize = 0;
const WORDS: usize = 1;

impl Row {
    fn new(words: usize) -> Self {
        let lines = || Lines(std::array::from_fn(|_| AtomicU64::new(0)));
        Self((0..(WORDS + words).div_ceil(LINE_WORDS)).map(|_| lines()).collect())
    }

    fn place(&self, at: usize) -> &AtomicU64 {
        &self.0[at / LINE_WORDS].0[at % LINE_WORDS]
    }

    /// Publishes `words` as those of an exchange: whoever sees its number sees them, too.
    fn store(&self, exchange: u64, words: impl Iterator<Item = u64>) {
        for (at, word) in words.enumerate() {
            self.place(WORDS + at).store(word, Ordering::Relaxed);
        }
        self.place(EXCHANGE).store(exchange, Ordering::Release);
    }

    fn exchange(&self) -> u64 {
        self.place(EXCHANGE).load(Ordering::Acquire)
    }

    fn load(&self, at: usize) -> u64 {
        self.place(at).load(Ordering::Relaxed)
    }
}

/// What stands on cache lines of its own. Small lists of one part are put beside those of another otherwise, and
/// each write to them takes from the other part what it reads all the time.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Apart<V>(pub(crate) V);

/// The memory that the parts of one run share: mail of type `T`, notes for the first part of type `N`.
pub(crate) struct SharedMemory<T, N> {
    parts: usize,
    /// The rows of all parts, for exchanges of either parity.
    rows: [Vec<Row>; 2],
    /// For each part its ends of the rings between it and the others, until it has its endpoint.
    ends: Vec<Mutex<Ends<T>>>,
    /// What found no room in the ring from each part to each other one: one list after the other for each
    /// receiver.
    lists: Vec<Apart<Mutex<Vec<T>>>>,
    /// Whether there may be something in a list for a part.
    has_lists: Vec<Apart<AtomicBool>>,
    notes: Apart<Mutex<Vec<N>>>,
    /// The last exchange after which a part has asked the others to come to the next one.
    requested: Apart<AtomicU64>,
}

impl<T, N> SharedMemory<T, N> {
    /// Memory for `parts` parts that publish at most `words` words each.
    pub(crate) fn new(parts: usize, words: usize) -> Self {
        let rows = || (0..parts).map(|_| Row::new(words)).collect();
        Self {
            parts,
            rows: [rows(), rows()],
            ends: rings(parts).into_iter().map(Mutex::new).collect(),
            lists: (0..parts * parts).map(|_| Apart(Mutex::new(Vec::new()))).collect(),
            has_lists: (0..parts).map(|_| Apart(AtomicBool::new(false))).collect(),
            notes: Apart(Mutex::new(Vec::new())),
            requested: Apart(AtomicU64::new(0)),
        }
    }

    /// The memory as `part` sees it. Every part must have one endpoint and use it on one thread at a time.
    pub(crate) fn endpoint(&self, part: usize) -> Endpoint<'_, T, N> {
        let ends = std::mem::take(&mut *self.ends[part].lock().expect(NEVER_POISONED));
        assert_eq!(ends.to.len(), self.parts, "a part has one endpoint");
        Endpoint { memory: self, part, ends, exchanges: 0, batch: Vec::new() }
    }
}

/// One part's access to the [`SharedMemory`].
pub(crate) struct Endpoint<'a, T, N> {
    memory: &'a SharedMemory<T, N>,
    part: usize,
    ends: Ends<T>,
    /// How many exchanges there were, the one that is published for included.
    exchanges: u64,
    /// The list that mail is received into; empty in between.
    batch: Vec<T>,
}

impl<T, N> Endpoint<'_, T, N> {
    /// Publishes `words`, with which this part arrives: they and what was sent before are there when every part
    /// has done so.
    pub(crate) fn publish(&mut self, words: impl Iterator<Item = u64>) {
        self.exchanges += 1;
        self.row(self.part).store(self.exchanges, words);
    }

    /// Sends `notes` to the first part, and leaves the list empty.
    pub(crate) fn send_notes(&self, notes: &mut Vec<N>) {
        if !notes.is_empty() {
            locked(&self.memory.notes).append(notes);
        }
    }

    /// How many parts there are.
    pub(crate) fn parts(&self) -> usize {
        self.memory.parts
    }

    /// What a part published at the last exchange.
    fn row(&self, part: usize) -> &Row {
        self.memory.row(part, self.exchanges)
    }

    /// The word `at` of those that `part` published at the last exchange.
    pub(crate) fn published(&self, part: usize, at: usize) -> u64 {
        self.row(part).load(WORDS + at)
    }

    /// Sends each part its list of `mail`, and leaves the lists empty.
    pub(crate) fn send<'m>(&mut self, mail: impl Iterator<Item = &'m mut Vec<T>>)
    where
        T: 'm,
    {
        let Self { memory, part, ends, .. } = self;
        for ((to, Apart(way)), mail) in ends.to.iter_mut().enumerate().zip(mail) {
            if mail.is_empty() {
                continue;
            }
            let list = &memory.lists[to * memory.parts + *part];
            // Mail comes in the order in which it was sent: nothing goes into the ring while there is a list.
            if way.has_list {
                way.has_list = !locked(list).is_empty();
            }
            if !way.has_list
                && let Ok(room) = way.ring.write_chunk_uninit(mail.len())
            {
                room.fill_from_iter(mail.drain(..));
                continue;
            }
            way.has_list = true;
            append(mail, &mut locked(list));
            // After the mail is there: a receiver clears the flag before it looks, so that the flag of
            // mail that it has missed stays set. The lock orders the two, so relaxed is enough.
            memory.has_lists[to].0.store(true, Ordering::Relaxed);
        }
    }

    /// Calls `each` with the mail that has arrived for this part.
    pub(crate) fn receive(&mut self, mut each: impl FnMut(T)) {
        let Self { memory, part, ends, batch, .. } = self;
        let flag = &memory.has_lists[*part].0;
        let has_lists = flag.load(Ordering::Relaxed);
        if has_lists {
            flag.store(false, Ordering::Relaxed);
        }
        for (from, Apart(ring)) in ends.from.iter_mut().enumerate() {
            if has_lists {
                let mut list = locked(&memory.lists[*part * memory.parts + from]);
                // What is in the ring was sent before.
                batch.extend(std::iter::from_fn(|| ring.pop().ok()));
                append(&mut list, batch);
                drop(list);
                batch.drain(..).for_each(&mut each);
                continue;
            }
            // Taking nothing would still be written down.
            let sent = ring.slots();
            if sent > 0
                && let Ok(mail) = ring.read_chunk(sent)
            {
                mail.into_iter().for_each(&mut each);
            }
        }
    }

    /// Appends the notes that have arrived to `into`.
    pub(crate) fn take_notes(&mut self, into: &mut Vec<N>) {
        into.append(&mut locked(&self.memory.notes));
    }

    /// Asks all parts to come to the next exchange soon.
    pub(crate) fn request(&self) {
        self.memory.requested.0.store(self.exchanges, Ordering::Relaxed);
    }

    /// Whether a part has asked for the next exchange since the last one.
    pub(crate) fn is_requested(&self) -> bool {
        self.memory.requested.0.load(Ordering::Relaxed) == self.exchanges
    }
}

impl<T, N> SharedMemory<T, N> {
    /// What `part` published at an exchange, or at one by an even number before or after it.
    fn row(&self, part: usize, exchange: u64) -> &Row {
        &self.rows[usize::from(exchange % 2 == 1)][part]
    }
}

/// The first exchange is before the first window. A part has arrived in the window after that when it has
/// published for the second.
impl<T, N> Arrivals for &SharedMemory<T, N> {
    fn windows(&self) -> u64 {
        let exchanges = |part| [0, 1].map(|exchange| self.row(part, exchange).exchange());
        let last = (0..self.parts).map(|part| exchanges(part).into_iter().max().unwrap_or(0));
        last.min().unwrap_or(0).saturating_sub(1)
    }

    fn has_arrived(&self, part: usize, window: u64) -> bool {
        let exchange = window + 2;
        self.row(part, exchange).exchange() >= exchange
    }

    fn all_have_arrived(&self, window: u64) -> bool {
        (0..self.parts).all(|part| self.has_arrived(part, window))
    }
}

/// Room in a ring. More at once goes as a list, which changes hands without being copied.
const RING_ROOM: usize = 16;

/// The ends that a part has of the rings between it and each part.
struct Ends<T> {
    to: Vec<Apart<Way<T>>>,
    from: Vec<Apart<Consumer<T>>>,
}

impl<T> Default for Ends<T> {
    fn default() -> Self {
        Self { to: Vec::new(), from: Vec::new() }
    }
}

struct Way<T> {
    ring: Producer<T>,
    /// Whether something may be in the list beside the ring.
    has_list: bool,
}

/// A ring from each part to each other one; their ends, grouped by owner.
fn rings<T>(parts: usize) -> Vec<Ends<T>> {
    let mut ends: Vec<Ends<T>> = (0..parts).map(|_| Ends::default()).collect();
    for (from, to) in (0..parts).flat_map(|from| (0..parts).map(move |to| (from, to))) {
        let (ring, consumer) = RingBuffer::new(if from == to { 1 } else { RING_ROOM });
        ends[from].to.push(Apart(Way { ring, has_list: false }));
        ends[to].from.push(Apart(consumer));
    }
    ends
}

/// Moves all of one list to the end of another, without copying it if that one is empty.
fn append<T>(from: &mut Vec<T>, to: &mut Vec<T>) {
    if to.is_empty() {
        std::mem::swap(from, to);
    } else {
        to.append(from);
    }
}

const NEVER_POISONED: &str = "no thread panics while it holds one of these locks";

fn locked<V>(mutex: &Apart<Mutex<V>>) -> MutexGuard<'_, V> {
    mutex.0.lock().expect(NEVER_POISONED)
}
