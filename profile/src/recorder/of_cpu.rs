//! A CPU that is sampled: the block of the second that it is in, and what that second is like.

use super::Over;
use crate::analysis::Analyst;
use crate::block::{BlockOptions, BlockWriter, Sample};

/// Seconds without a sample that an analyst is told of at most: more than it remembers.
const EMPTY_MAX: i64 = 60;

#[derive(Debug)]
pub(super) struct OfCpu {
    pub(super) cpu: u32,
    pub(super) writer: BlockWriter,
    /// The second that the block is of; least before the first sample.
    second: i64,
    /// Whether the block has a sample that is handed on in any case.
    is_wanted: bool,
    /// Who sums seconds up, where that is wanted.
    analyst: Option<Analyst>,
}

impl OfCpu {
    pub(super) fn new(host: &str, cpu: u32, options: BlockOptions, is_summed_up: bool) -> Self {
        Self {
            cpu,
            writer: BlockWriter::new(host, cpu, options),
            second: i64::MIN,
            is_wanted: false,
            analyst: is_summed_up.then(Analyst::default),
        }
    }

    pub(super) fn push(&mut self, sample: &Sample, is_wanted: bool) {
        self.writer.push(sample);
        self.is_wanted |= is_wanted;
        if let Some(analyst) = &mut self.analyst {
            analyst.push(sample);
        }
    }

    /// Makes room for a sample of a second.
    pub(super) fn go_on_to(
        &mut self,
        second: i64,
        period_of: &impl Fn(i64) -> Option<u64>,
        over: &mut Over,
    ) {
        if second != self.second {
            self.end_before(second, period_of, over);
            // Also where the clock was set back.
            self.end_block(over);
            self.second = second;
        } else if self.writer.is_full() {
            self.end_block(over);
        }
    }

    /// Ends the seconds before one.
    pub(super) fn end_before(
        &mut self,
        second: i64,
        period_of: &impl Fn(i64) -> Option<u64>,
        over: &mut Over,
    ) {
        if self.second >= second || self.second == i64::MIN {
            return;
        }
        self.end_block(over);
        let Some(analyst) = &mut self.analyst else {
            // A second that is over has no further block, unless a late sample comes.
            return;
        };
        // The end of all has no seconds behind the last one.
        let last = if second == i64::MAX { self.second + 1 } else { second };
        let first = self.second.max(last.saturating_sub(EMPTY_MAX));
        for of in std::iter::once(self.second).chain(first + 1..last) {
            let summary = analyst.end_second(period_of(of));
            over.summaries.push((of, self.cpu, summary));
        }
        self.second = last;
    }

    pub(super) fn end_block(&mut self, over: &mut Over) {
        let is_wanted = std::mem::take(&mut self.is_wanted);
        if self.writer.samples() > 0 {
            over.blocks.push((self.writer.finish(), is_wanted));
        }
    }
}
