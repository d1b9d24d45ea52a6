//! A generation made of the one before and of what changed.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use super::writing::Writing;
use super::{Changes, InMemory, Stored};
use crate::coding::fold;
use crate::exchange::{Blocks, Keep};
use crate::layout::Shard;

/// What changed in this host's image: new against old, which lies on its disk.
pub(super) struct Differences<'a> {
    pub(super) image: InMemory<'a>,
    pub(super) base: &'a Stored,
    pub(super) changes: &'a Changes,
}

impl Blocks for Differences<'_> {
    fn block<'a>(
        &'a self,
        stripe: u32,
        shard: Shard,
        scratch: &'a mut Vec<u8>,
    ) -> io::Result<&'a [u8]> {
        self.base.block(stripe, shard, scratch)?;
        fold(scratch, self.image.block(stripe, shard, &mut Vec::new())?);
        Ok(scratch)
    }

    fn is_changed(&self, stripe: u32, shard: Shard) -> bool {
        self.changes.has(self.base.geometry().index(stripe, shard))
    }
}

/// Parity as it becomes that of the new generation.
pub(super) struct Updating<'a> {
    writing: &'a Writing<'a>,
    base: &'a Stored,
    is_done: Vec<AtomicBool>,
}

impl<'a> Updating<'a> {
    pub(super) fn new(writing: &'a Writing<'a>, base: &'a Stored) -> Self {
        let blocks = base.geometry().parity_blocks();
        Self { writing, base, is_done: (0..blocks).map(|_| AtomicBool::new(false)).collect() }
    }

    fn done(&self, stripe: u32, shard: Shard) -> Option<&AtomicBool> {
        let index = self.base.geometry().index(stripe, shard);
        usize::try_from(index).ok().and_then(|index| self.is_done.get(index))
    }

    /// Writes the parity blocks in which nothing changed as they were.
    pub(super) fn write_same(&self) -> io::Result<()> {
        let (geometry, mut scratch) = (self.base.geometry(), Vec::new());
        for stripe in 0..geometry.stripes() {
            for shard in (0..geometry.layout().parity()).map(Shard::Parity) {
                let is_done =
                    self.done(stripe, shard).is_none_or(|done| done.load(Ordering::Relaxed));
                if !is_done {
                    let same = self.base.block(stripe, shard, &mut scratch)?;
                    self.writing.write(stripe, shard, same)?;
                }
            }
        }
        Ok(())
    }
}

impl Keep for Updating<'_> {
    fn keep(&self, stripe: u32, shard: Shard, mut octets: Vec<u8>) -> io::Result<()> {
        let mut scratch = Vec::new();
        fold(&mut octets, self.base.block(stripe, shard, &mut scratch)?);
        self.writing.keep(stripe, shard, octets)?;
        if let Some(done) = self.done(stripe, shard) {
            done.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn memory(&self) -> Vec<u8> {
        self.writing.memory()
    }
}
