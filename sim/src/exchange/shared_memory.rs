//! The collective exchange of threads: words, mail and lines in memory that all of them share.
//!
//! At an exchange every part publishes a row of words; when all have done so, which is for somebody else
//! to see to, everybody reads everybody's row. Rows are kept twice and used in turn, so that a part that
//! publishes for the next exchange already does not overwrite what a slower one still reads: nobody can
//! be two exchanges ahead. Mail may also be sent and received between two exchanges; what was sent before one
//! can be received after it by every part.
//!
//! This module knows neither events nor reports, only words and values that move from part to part. It
//! never calls anything else of the crate, so that the model check can compile it by itself.
//!
//! Cost: a store for each word, a load for each word that is read; for each pair of parts
//! that has mail, two locks that nobody else holds, with the list of mail swapped rather than copied.

use crate::sync::{AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering};

/// Words in one [`Lines`] of the cache.
const LINE_WORDS: usize = 16;

/// Two cache lines, which processors fetch together: no two parts write into the same ones.
#[repr(align(128))]
struct Lines([AtomicU64; LINE_WORDS]);

/// What one part published at an exchange, in cache lines of its own.
struct Row(Vec<Lines>);

impl Row {
    fn new(words: usize) -> Self {
        let lines = || Lines(std::array::from_fn(|_| AtomicU64::new(0)));
        Self((0..words.div_ceil(LINE_WORDS)).map(|_| lines()).collect())
    }

    // Relaxed: whoever sees to it that all parts have published orders writing and reading.
    fn store(&self, words: &[u64]) {
        assert!(words.len() <= self.0.len() * LINE_WORDS, "a row has room for every word");
        for (lines, words) in self.0.iter().zip(words.chunks(LINE_WORDS)) {
            for (place, word) in lines.0.iter().zip(words) {
                place.store(*word, Ordering::Relaxed);
            }
        }
    }

    fn load(&self, at: usize) -> u64 {
        self.0[at / LINE_WORDS].0[at % LINE_WORDS].load(Ordering::Relaxed)
    }
}

/// The memory that the parts of one run share: mail of type `T`, notes for the first part of type `N`.
pub(crate) struct SharedMemory<T, N> {
    parts: usize,
    /// The rows of all parts, for exchanges of either parity.
    rows: [Vec<Row>; 2],
    /// What each part has for each other one: one list after the other for each receiver.
    mail: Vec<Mutex<Vec<T>>>,
    /// Whether there may be mail for a part.
    has_mail: Vec<AtomicBool>,
    notes: Mutex<Vec<N>>,
    /// The last exchange after which a part has asked the others to come to the next one.
    requested: AtomicU64,
}

impl<T, N> SharedMemory<T, N> {
    /// Memory for `parts` parts that publish at most `words` words each.
    pub(crate) fn new(parts: usize, words: usize) -> Self {
        let rows = || (0..parts).map(|_| Row::new(words)).collect();
        Self {
            parts,
            rows: [rows(), rows()],
            mail: (0..parts * parts).map(|_| Mutex::new(Vec::new())).collect(),
            has_mail: (0..parts).map(|_| AtomicBool::new(false)).collect(),
            notes: Mutex::new(Vec::new()),
            requested: AtomicU64::new(0),
        }
    }

    /// The memory as `part` sees it. Every part must have one endpoint and use it on one thread.
    pub(crate) fn endpoint(&self, part: usize) -> Endpoint<'_, T, N> {
        Endpoint { memory: self, part, exchanges: 0, batch: Vec::new() }
    }
}

/// One part's access to the [`SharedMemory`].
pub(crate) struct Endpoint<'a, T, N> {
    memory: &'a SharedMemory<T, N>,
    part: usize,
    /// How many exchanges there were, the one that is published for included.
    exchanges: u64,
    /// The list that mail is received into; empty in between.
    batch: Vec<T>,
}

impl<T, N> Endpoint<'_, T, N> {
    /// Publishes `words`, sends `mail[to]` to each part and `notes` to the first one: all of that is
    /// there when every part has done so. `mail` and `notes` are empty afterwards.
    pub(crate) fn publish(&mut self, words: &[u64], mail: &mut [Vec<T>], notes: &mut Vec<N>) {
        self.send(mail);
        if !notes.is_empty() {
            locked(&self.memory.notes).append(notes);
        }
        self.exchanges += 1;
        self.memory.rows[self.parity()][self.part].store(words);
    }

    /// Which of the rows are those of the last exchange.
    fn parity(&self) -> usize {
        usize::from(self.exchanges % 2 == 1)
    }

    /// The word `at` of those that `part` published at the last exchange.
    pub(crate) fn published(&self, part: usize, at: usize) -> u64 {
        self.memory.rows[self.parity()][part].load(at)
    }

    /// Sends `mail[to]` to each part, and leaves the lists empty.
    pub(crate) fn send(&mut self, mail: &mut [Vec<T>]) {
        let Self { memory, part, .. } = *self;
        for (to, mail) in mail.iter_mut().enumerate().filter(|(_, mail)| !mail.is_empty()) {
            let mut slot = locked(&memory.mail[to * memory.parts + part]);
            if slot.is_empty() {
                std::mem::swap(&mut *slot, mail);
            } else {
                slot.append(mail);
            }
            drop(slot);
            // After the mail is there: a receiver clears the flag before it looks, so that the flag of
            // mail that it has missed stays set. The lock orders the two, so relaxed is enough.
            memory.has_mail[to].store(true, Ordering::Relaxed);
        }
    }

    /// Calls `each` with the mail that has arrived for this part.
    pub(crate) fn receive(&mut self, mut each: impl FnMut(T)) {
        let Self { memory, part, .. } = *self;
        if !memory.has_mail[part].load(Ordering::Relaxed) {
            return;
        }
        memory.has_mail[part].store(false, Ordering::Relaxed);
        for slot in &memory.mail[part * memory.parts..][..memory.parts] {
            std::mem::swap(&mut *locked(slot), &mut self.batch);
            self.batch.drain(..).for_each(&mut each);
        }
    }

    /// Appends the notes that have arrived to `into`.
    pub(crate) fn take_notes(&mut self, into: &mut Vec<N>) {
        into.append(&mut locked(&self.memory.notes));
    }

    /// Asks all parts to come to the next exchange soon.
    pub(crate) fn request(&self) {
        self.memory.requested.store(self.exchanges, Ordering::Relaxed);
    }

    /// Whether a part has asked for the next exchange since the last one.
    pub(crate) fn is_requested(&self) -> bool {
        self.memory.requested.load(Ordering::Relaxed) == self.exchanges
    }
}

fn locked<V>(mutex: &Mutex<V>) -> MutexGuard<'_, V> {
    mutex.lock().expect("no thread panics while it holds one of these locks")
}
