//! Samples that stay on the host until somebody wants them: a ring of the newest blocks.
//!
//! A block is **released** once, to be recorded or sent: because a second near it was found to be unlike what was
//! before, because a job in it is wanted anyway, or because a person asked ([`FlightRecorder::grab`]). Else
//! it goes when it is older than the ring is long, or when the ring is full, and is counted. The module reads
//! no clock.

use std::collections::VecDeque;

use meikyo_recording::PackedRows;
use meikyo_units::{Bytes, Nanos};

/// How long before and after a finding blocks are released.
pub const AROUND: Nanos = Nanos::from_secs(5);

/// What is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlightOptions {
    /// How old a block may become.
    pub span: Nanos,
    /// Octets of blocks at most; the oldest go first.
    pub bytes: Bytes,
    /// Jobs whose blocks are released always, as patterns.
    pub jobs: Vec<String>,
}

/// What a person was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Grabbed {
    /// Blocks that are released now.
    pub blocks: u64,
    /// Samples in them.
    pub samples: u64,
    /// Samples of the same span that had been released before.
    pub released_before: u64,
}

/// Blocks that wait.
#[derive(Debug)]
pub struct FlightRecorder {
    span: Nanos,
    bytes_max: u64,
    ring: VecDeque<Held>,
    bytes: u64,
    /// Blocks that begin before this are released as they come, ns since the epoch.
    released_until: i64,
    forgotten: u64,
}

#[derive(Debug)]
struct Held {
    times: (i64, i64),
    samples: u64,
    /// `None` once it was released.
    rows: Option<PackedRows>,
}

impl FlightRecorder {
    /// A ring with nothing in it.
    pub fn new(options: &FlightOptions) -> Self {
        Self {
            span: options.span,
            bytes_max: options.bytes.get(),
            ring: VecDeque::new(),
            bytes: 0,
            released_until: i64::MIN,
            forgotten: 0,
        }
    }

    /// Takes a block, or releases it at once when it is wanted.
    pub fn take(&mut self, rows: PackedRows, is_wanted: bool, sink: &mut impl FnMut(PackedRows)) {
        let (times, samples) = (rows.times(), rows.rows() as u64);
        let mut held = Held { times, samples, rows: None };
        if is_wanted || times.0 < self.released_until {
            sink(rows);
        } else {
            self.bytes += rows.payload().len() as u64;
            held.rows = Some(rows);
        }
        self.ring.push_back(held);
        while self.bytes > self.bytes_max {
            self.forget_oldest();
        }
    }

    /// Releases what is near the second of a finding, and what comes near it.
    pub fn found(&mut self, second_ns: i64, sink: &mut impl FnMut(PackedRows)) {
        let around = AROUND.get().cast_signed();
        let until = second_ns.saturating_add(around).saturating_add(1_000_000_000);
        self.released_until = self.released_until.max(until);
        self.release(second_ns.saturating_sub(around), sink);
    }

    /// Releases everything from a time on.
    pub fn grab(&mut self, from_ns: i64, sink: &mut impl FnMut(PackedRows)) -> Grabbed {
        self.release(from_ns, sink)
    }

    fn release(&mut self, from_ns: i64, sink: &mut impl FnMut(PackedRows)) -> Grabbed {
        let mut grabbed = Grabbed::default();
        for held in self.ring.iter_mut().filter(|held| held.times.1 >= from_ns) {
            let Some(rows) = held.rows.take() else {
                grabbed.released_before += held.samples;
                continue;
            };
            self.bytes -= rows.payload().len() as u64;
            grabbed.blocks += 1;
            grabbed.samples += held.samples;
            sink(rows);
        }
        grabbed
    }

    /// Forgets what is too old at a time.
    pub fn forget(&mut self, now_ns: i64) {
        let oldest = now_ns.saturating_sub(self.span.get().cast_signed());
        while self.ring.front().is_some_and(|held| held.times.1 < oldest) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some(held) = self.ring.pop_front() else { return };
        if let Some(rows) = held.rows {
            self.bytes -= rows.payload().len() as u64;
            self.forgotten += held.samples;
        }
    }

    /// Samples that nobody wanted while they were here.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Samples that wait.
    pub fn waiting(&self) -> u64 {
        self.ring.iter().filter(|held| held.rows.is_some()).map(|held| held.samples).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{BlockOptions, BlockWriter, Sample};

    const SECOND: i64 = 1_000_000_000;

    /// A block of as many samples as its second says, and one.
    fn block(second: i64) -> PackedRows {
        let options = BlockOptions { stacks: false, cgroups: false, whole_microseconds: false };
        let mut writer = BlockWriter::new("a", 0, options);
        for at in 0..=second {
            writer.push(&Sample { time: second * SECOND + at * 1_000_000, ..Sample::default() });
        }
        writer.finish().unwrap().unwrap()
    }

    fn ring(span: u64, bytes: u64) -> FlightRecorder {
        let (span, bytes) = (Nanos::from_secs(span), Bytes::new(bytes));
        FlightRecorder::new(&FlightOptions { span, bytes, jobs: Vec::new() })
    }

    /// The seconds of some blocks.
    fn seconds(blocks: &[PackedRows]) -> Vec<i64> {
        blocks.iter().map(|block| block.times().0 / SECOND).collect()
    }

    #[test]
    fn what_is_near_a_finding_is_released_once_and_the_rest_is_forgotten() {
        let (mut ring, mut out) = (ring(20, 1 << 20), Vec::new());
        for second in 0..60 {
            ring.take(block(second), second == 50, &mut |rows| out.push(rows));
            if second == 30 || second == 32 {
                ring.found(second * SECOND, &mut |rows| out.push(rows));
            }
            ring.forget(second * SECOND);
        }
        let mut released = seconds(&out);
        assert_eq!(released.len(), 14, "{released:?}");
        released.sort_unstable();
        assert_eq!(released, (25..=37).chain([50]).collect::<Vec<_>>());
        // Of seconds 0 to 38 at 20 s: their samples, less those that were released.
        let all =
            |range: std::ops::RangeInclusive<u64>| range.map(|second| second + 1).sum::<u64>();
        assert_eq!(ring.forgotten(), all(0..=38) - all(25..=37));
        assert_eq!(ring.waiting(), all(39..=59) - 51);
    }

    #[test]
    fn a_person_is_given_what_was_not_released_before() {
        let (mut ring, mut out) = (ring(100, 1 << 20), Vec::new());
        for second in 0..10 {
            ring.take(block(second), second == 7, &mut |rows| out.push(rows));
        }
        out.clear();
        let grabbed = ring.grab(5 * SECOND, &mut |rows| out.push(rows));
        assert_eq!(seconds(&out), [5, 6, 8, 9]);
        assert_eq!(grabbed, Grabbed { blocks: 4, samples: 6 + 7 + 9 + 10, released_before: 8 });
        out.clear();
        let again = ring.grab(5 * SECOND, &mut |rows| out.push(rows));
        assert_eq!((again.blocks, out.len()), (0, 0));
        assert_eq!(ring.waiting(), 1 + 2 + 3 + 4 + 5);
    }

    #[test]
    fn a_full_ring_lets_the_oldest_go() {
        let length = block(9).payload().len() as u64;
        let (mut ring, mut out) = (ring(1_000, 4 * length), Vec::new());
        for second in 0..10 {
            ring.take(block(second), false, &mut |rows| out.push(rows));
        }
        let grabbed = ring.grab(0, &mut |rows| out.push(rows));
        assert!((3..=6).contains(&grabbed.blocks), "{grabbed:?}");
        assert_eq!(grabbed.samples + ring.forgotten(), (1..=10).sum::<u64>());
        assert_eq!(seconds(&out).last(), Some(&9));
    }
}
