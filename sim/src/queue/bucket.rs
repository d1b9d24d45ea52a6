//! Buckets that grow without copying and give their memory back.

use crate::key::Event;

/// Events in a block: large enough that a full one is read at the speed of memory, small enough that
/// many buckets with a few events each waste little.
const BLOCK: usize = 16;
/// Blocks that are kept for reuse although nobody needs them now.
const SPARE: usize = 4096;

/// Events in no order. The block that is being filled is at hand: a push touches this and the place
/// where the event goes.
#[derive(Debug)]
pub(super) struct Bucket<M> {
    tail: Vec<Event<M>>,
    full: Vec<Vec<Event<M>>>,
}

impl<M> Default for Bucket<M> {
    fn default() -> Self {
        Self { tail: Vec::new(), full: Vec::new() }
    }
}

impl<M> Bucket<M> {
    pub(super) fn len(&self) -> usize {
        self.full.len() * BLOCK + self.tail.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tail.is_empty()
    }

    pub(super) fn push(&mut self, event: Event<M>, pool: &mut Pool<M>) {
        if self.tail.len() == self.tail.capacity() {
            let full = std::mem::replace(&mut self.tail, pool.take_block());
            if !full.is_empty() {
                self.full.push(full);
            }
        }
        self.tail.push(event);
    }

    /// Takes the events out, block by block.
    pub(super) fn drain(
        &mut self,
        pool: &mut Pool<M>,
        mut each: impl FnMut(&mut Pool<M>, Event<M>),
    ) {
        let tail = std::mem::take(&mut self.tail);
        for mut block in self.full.drain(..).chain([tail]) {
            for event in block.drain(..) {
                each(pool, event);
            }
            pool.give_back(block);
        }
    }

    /// Moves the events to the end of `into`.
    pub(super) fn append_to(&mut self, into: &mut Vec<Event<M>>, pool: &mut Pool<M>) {
        let tail = std::mem::take(&mut self.tail);
        for mut block in self.full.drain(..).chain([tail]) {
            into.append(&mut block);
            pool.give_back(block);
        }
    }
}

/// Empty blocks that buckets have given back, for the next ones to use.
#[derive(Debug)]
pub(super) struct Pool<M> {
    blocks: Vec<Vec<Event<M>>>,
    kept_max: usize,
}

impl<M> Pool<M> {
    pub(super) fn new() -> Self {
        Self { blocks: Vec::new(), kept_max: SPARE }
    }

    /// A pool that keeps nothing.
    pub(super) fn none() -> Self {
        Self { blocks: Vec::new(), kept_max: 0 }
    }

    fn take_block(&mut self) -> Vec<Event<M>> {
        self.blocks.pop().unwrap_or_else(|| Vec::with_capacity(BLOCK))
    }

    fn give_back(&mut self, block: Vec<Event<M>>) {
        if self.blocks.len() < self.kept_max && block.capacity() > 0 {
            self.blocks.push(block);
        }
    }
}
