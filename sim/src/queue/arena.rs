//! Chains of fixed blocks: buckets that grow without copying and give their memory back.

use crate::key::Event;

/// Events in a block: large enough that the header does not matter, small enough that many buckets
/// that are filled a little waste little.
const EVENTS: usize = 16;
/// Empty blocks that keep their memory beyond as many as are in use.
const SPARE: usize = 256;
const NONE: u32 = u32::MAX;

/// A bucket: a chain of blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    head: u32,
    len: u32,
}

impl Chain {
    pub(crate) const EMPTY: Self = Self { head: NONE, len: 0 };

    pub(crate) fn len(self) -> usize {
        self.len as usize
    }
}

#[derive(Debug)]
struct Block<M> {
    events: Vec<Event<M>>,
    next: u32,
}

/// The blocks of all buckets of a queue.
#[derive(Debug)]
pub(crate) struct Arena<M> {
    blocks: Vec<Block<M>>,
    free: u32,
    free_count: usize,
}

impl<M> Arena<M> {
    pub(crate) fn new() -> Self {
        Self { blocks: Vec::new(), free: NONE, free_count: 0 }
    }

    pub(crate) fn push(&mut self, chain: &mut Chain, event: Event<M>) {
        chain.len += 1;
        if chain.head != NONE {
            let head = &mut self.blocks[chain.head as usize];
            if head.events.len() < EVENTS {
                head.events.push(event);
                return;
            }
        }
        chain.head = self.block(chain.head);
        self.blocks[chain.head as usize].events.push(event);
    }

    /// Takes the events out of `chain`, block by block, in no order.
    pub(crate) fn drain(&mut self, chain: Chain, mut each: impl FnMut(&mut Self, Event<M>)) {
        let mut at = chain.head;
        while at != NONE {
            let block = &mut self.blocks[at as usize];
            let (next, mut events) = (block.next, std::mem::take(&mut block.events));
            for event in events.drain(..) {
                each(self, event);
            }
            self.release(at, events);
            at = next;
        }
    }

    /// Moves the events of `chain` to the end of `into`.
    pub(crate) fn append(&mut self, chain: Chain, into: &mut Vec<Event<M>>) {
        let mut at = chain.head;
        while at != NONE {
            let block = &mut self.blocks[at as usize];
            let (next, mut events) = (block.next, std::mem::take(&mut block.events));
            into.append(&mut events);
            self.release(at, events);
            at = next;
        }
    }

    fn block(&mut self, next: u32) -> u32 {
        if self.free == NONE {
            let at = u32::try_from(self.blocks.len()).expect("blocks are counted by 32 bits");
            self.blocks.push(Block { events: Vec::with_capacity(EVENTS), next });
            return at;
        }
        let at = self.free;
        let block = &mut self.blocks[at as usize];
        self.free = block.next;
        self.free_count -= 1;
        block.next = next;
        if block.events.capacity() == 0 {
            block.events.reserve_exact(EVENTS);
        }
        at
    }

    fn release(&mut self, at: u32, events: Vec<Event<M>>) {
        let used = self.blocks.len() - self.free_count;
        let block = &mut self.blocks[at as usize];
        if self.free_count < used + SPARE {
            block.events = events;
        }
        block.next = self.free;
        self.free = at;
        self.free_count += 1;
    }
}
