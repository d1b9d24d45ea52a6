//! What compaction takes while a collector measures: its memory, watched from outside, and the
//! intervals that were late meanwhile.
//!
//! A collector has one segment but while it compacts: then there is the one before, too. What is
//! compacted at the end of a measurement can make nothing late, and is not looked at.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use meikyo_console::failure::Failure;
use meikyo_console::output::real;
use meikyo_units::{Bytes, Nanos, WallTime};

use crate::placement::wait_until;
use crate::reading::{self, States};

/// What compaction may take beside the collector's own memory, and hold when it has ended.
const MEMORY_MAX: Bytes = Bytes::new(64 << 20);
const HELD_MAX: Bytes = Bytes::new(8 << 20);

/// How often the collector is looked at, and how long after a compaction at the latest.
const LOOK_EVERY: Nanos = Nanos::from_millis(20);
const LOOK_AFTER: Nanos = Nanos::from_secs(5);

/// What the compactions of one run took.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Compactions {
    pub(crate) count: u64,
    /// From the first sight of the next segment until the segment was gone, all together.
    pub(crate) span: Nanos,
    /// Resident memory of the collector before the first one.
    pub(crate) memory_before: Bytes,
    /// The greatest while they ran.
    pub(crate) memory_peak: Bytes,
    /// Soon after the last one.
    pub(crate) memory_after: Bytes,
    /// (device, interval)s that were not `ok` while they ran, and in all other intervals.
    pub(crate) spoiled: u64,
    pub(crate) spoiled_otherwise: u64,
    /// Intervals while they ran, and all others.
    pub(crate) intervals: u64,
    pub(crate) intervals_otherwise: u64,
}

impl Compactions {
    /// The numbers with their keys; none when nothing was compacted while it was measured.
    pub(crate) fn entries(&self) -> Vec<(&'static str, f64)> {
        if self.count == 0 {
            return Vec::new();
        }
        vec![
            ("compactions", real(self.count)),
            ("compaction_seconds", self.span.as_secs_f64()),
            ("memory_before_bytes", real(self.memory_before.get())),
            ("memory_compacting_bytes", real(self.memory_peak.get())),
            ("memory_after_bytes", real(self.memory_after.get())),
            ("spoiled_compacting", real(self.spoiled)),
            ("spoiled_otherwise", real(self.spoiled_otherwise)),
        ]
    }

    /// What was exceeded, for people.
    pub(crate) fn excess(&self) -> Vec<String> {
        let mut excess = Vec::new();
        let over = |memory: Bytes| memory.get().saturating_sub(self.memory_before.get());
        for (memory, limit, when) in [
            (self.memory_peak, MEMORY_MAX, "while it compacted"),
            (self.memory_after, HELD_MAX, "after it had compacted"),
        ] {
            if over(memory) > limit.get() {
                let over = over(memory);
                excess.push(format!("{over} bytes more memory {when}, allowed are {limit}"));
            }
        }
        // A machine that spoils intervals at all spoils them at any time.
        let often = |spoiled: u64, intervals: u64| real(spoiled) / real(intervals.max(1));
        let otherwise = often(self.spoiled_otherwise, self.intervals_otherwise);
        if often(self.spoiled, self.intervals) > otherwise {
            let Self { spoiled, intervals, .. } = self;
            excess.push(format!(
                "{spoiled} readings were late, missed or skipped in the {intervals} intervals in \
                 which it compacted, which is more often than otherwise"
            ));
        }
        excess
    }
}

/// One compaction as it was seen.
#[derive(Debug, Clone, Copy)]
struct Seen {
    from: WallTime,
    to: WallTime,
    before: Bytes,
    peak: Bytes,
    after: Bytes,
}

/// A thread that looks at a collector and its log.
#[derive(Debug)]
pub(crate) struct Watch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Vec<Seen>>>,
}

impl Watch {
    /// Begins to look at the process `pid` that writes the stream in `log`.
    pub(crate) fn start(pid: u32, log: PathBuf) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("watch".into())
            .spawn(move || watch(pid, &log, &flag))?;
        Ok(Self { stop, thread })
    }

    /// Ends the looking; the intervals are those of the recording that the collector wrote.
    pub(crate) fn finish(self, recording: &Path, every: Nanos) -> Result<Compactions, Failure> {
        self.stop.store(true, Ordering::Relaxed);
        let seen =
            self.thread.join().map_err(|_| Failure::new("the watching thread panicked"))??;
        let (Some(first), Some(last)) = (seen.first(), seen.last()) else {
            return Ok(Compactions::default());
        };
        let (mut compactions, mut within) = (Compactions::default(), States::default());
        for one in &seen {
            // What was asked just before is answered while it compacts.
            let (intervals, states) =
                reading::states_between(recording, every, one.from.before(every), one.to)?;
            compactions.intervals += intervals;
            compactions.span += one.to.since(one.from);
            within = within + states;
        }
        let (begin, end) = (WallTime::from_nanos(0), WallTime::from_nanos(i64::MAX));
        let (intervals, all) = reading::states_between(recording, every, begin, end)?;
        Ok(Compactions {
            count: seen.len() as u64,
            memory_before: first.before,
            memory_peak: seen.iter().map(|one| one.peak).max().unwrap_or_default(),
            memory_after: last.after,
            spoiled: within.spoiled(),
            spoiled_otherwise: all.spoiled() - within.spoiled(),
            intervals_otherwise: intervals - compactions.intervals,
            ..compactions
        })
    }
}

fn watch(pid: u32, log: &Path, stop: &AtomicBool) -> io::Result<Vec<Seen>> {
    let mut all: Vec<Seen> = Vec::new();
    let (mut compacting, mut last) = (false, Bytes::default());
    let mut now = WallTime::now();
    while !stop.load(Ordering::Relaxed) {
        now = now + LOOK_EVERY;
        wait_until(now)?;
        // A process that has ended has no memory, and its last compaction is its own affair.
        let Some(memory) = resident(pid) else { return Ok(all) };
        let was_compacting = std::mem::replace(&mut compacting, segments(log) > 1);
        if compacting && !was_compacting {
            all.push(Seen { from: now, to: now, before: last, peak: memory, after: memory });
        }
        if let Some(one) = all.last_mut() {
            if compacting || was_compacting {
                one.to = now;
                one.peak = one.peak.max(memory);
            }
            if now.since(one.to) <= LOOK_AFTER {
                one.after = memory;
            }
        }
        last = memory;
    }
    Ok(all)
}

/// The resident memory of a process, without the pages of its program's file, which the kernel drops as
/// it likes (`RssAnon`, proc(5)); `None` when it has ended.
fn resident(pid: u32) -> Option<Bytes> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes::new(kib * 1_024))
}

/// Segments in a directory; none while it is not there.
fn segments(log: &Path) -> usize {
    let entries = fs::read_dir(log).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "log")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_exceeds_its_limit_is_told() {
        let mebibytes = |count: u64| Bytes::new(count << 20);
        let good = Compactions {
            count: 1,
            memory_before: mebibytes(18),
            memory_peak: mebibytes(82),
            memory_after: mebibytes(26),
            intervals: 100,
            intervals_otherwise: 7_000,
            ..Compactions::default()
        };
        assert_eq!(good.excess(), Vec::<String>::new());
        let spoiled = Compactions { spoiled: 3, spoiled_otherwise: 200, ..good.clone() };
        for (bad, text) in [
            (Compactions { memory_peak: mebibytes(83), ..good.clone() }, "while it compacted"),
            (Compactions { memory_after: mebibytes(27), ..good.clone() }, "after it had"),
            (spoiled.clone(), "3 readings"),
        ] {
            let excess = bad.excess();
            assert!(excess.len() == 1 && excess[0].contains(text), "{excess:?}");
        }
        let always = Compactions { spoiled_otherwise: 300, ..spoiled };
        assert_eq!(always.excess(), Vec::<String>::new());
    }

    #[test]
    fn memory_is_that_of_a_process() {
        let held = vec![1_u8; 16 << 20];
        assert!(resident(std::process::id()).unwrap() > Bytes::new(16 << 20));
        std::hint::black_box(&held);
        assert_eq!(resident(u32::MAX), None);
    }
}
