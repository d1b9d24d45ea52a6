//! Time off the CPU: who left it, from where, and for how long.
//!
//! The kernel tells when a thread leaves its CPU, with its callers, and when it is back on one. Both can be told
//! by different CPUs, whose rings are read one after the other: what is told is held back until every ring has
//! been read up to its time, and then taken in the order of time. Spans of a thread that left from the same place
//! for the same reason on the same CPU are summed up until they are handed on, so that threads that switch a
//! hundred thousand times a second do not make as many rows. No clock is read here and no system called.

use std::collections::BTreeMap;

use crate::block::Sample;
use crate::records::Ids;

/// Why a thread left its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// It waited for something.
    Waiting,
    /// It could have run on, and others ran.
    Preempted,
}

impl Reason {
    /// Its word in the table `off_cpu`.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Preempted => "preempted",
        }
    }
}

/// What is told of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    /// It is about to leave its CPU, and is there.
    At(Box<Sample>),
    /// It does not run any more.
    Left(Reason),
    /// It is on a CPU again.
    Back,
    /// Nothing is heard of it any more, and what it waited for last is no span.
    Ended,
}

/// Spans that a thread was off the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spans {
    /// When the first of them began, ns since the epoch.
    pub(crate) first: i64,
    pub(crate) count: u64,
    pub(crate) total_ns: u64,
    pub(crate) longest_ns: u64,
}

/// Which spans are summed up together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Same {
    pub(crate) cpu: u32,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) reason: Reason,
    pub(crate) address: u64,
    pub(crate) cgroup: Option<u64>,
    pub(crate) callers: Vec<u64>,
}

/// What was counted so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OffCpuCounts {
    /// Spans that ended.
    pub spans: u64,
    /// Sum of those in which threads waited, ns.
    pub waiting_ns: u64,
    /// Sum of those in which others ran in their place, ns.
    pub preempted_ns: u64,
    /// Rows that they became.
    pub rows: u64,
    /// Records that found no room in a ring.
    pub lost: u64,
}

/// Threads that are off the CPU, and the spans of those that are back.
#[derive(Debug, Default)]
pub(crate) struct OffCpu {
    /// What is told, not yet in the order of time: when, where, of whom.
    held: Vec<(u64, u32, Ids, Told)>,
    away: BTreeMap<u32, Away>,
    sums: BTreeMap<Same, Spans>,
    counts: OffCpuCounts,
}

/// A thread that is about to leave or has left.
#[derive(Debug, Default)]
struct Away {
    at: Option<Box<Sample>>,
    left: Option<(u64, u32, u32, Reason)>,
}

impl OffCpu {
    /// Something is told of a thread.
    pub(crate) fn told(&mut self, time: u64, cpu: u32, ids: Ids, told: Told) {
        // Number 0 is who idles, which is nobody.
        if ids.tid != 0 {
            self.held.push((time, cpu, ids, told));
        }
    }

    pub(crate) fn lost(&mut self, count: u64) {
        self.counts.lost += count;
    }

    /// Everything before a time has been told: takes it. `wall` makes a time one since the epoch.
    pub(crate) fn settle(&mut self, before: u64, wall: impl Fn(u64) -> i64) {
        // Of what happens at the same time on a CPU the order in which it was told counts.
        self.held.sort_by_key(|(time, ..)| *time);
        let later = self.held.partition_point(|(time, ..)| *time < before);
        let later = self.held.split_off(later);
        for (time, cpu, ids, told) in std::mem::replace(&mut self.held, later) {
            match told {
                Told::At(sample) => self.away.entry(ids.tid).or_default().at = Some(sample),
                Told::Left(reason) => {
                    let away = self.away.entry(ids.tid).or_default();
                    away.left = Some((time, cpu, ids.pid, reason));
                }
                Told::Back => {
                    let away = self.away.remove(&ids.tid);
                    self.end_span(ids.tid, away, time, &wall);
                }
                Told::Ended => {
                    self.away.remove(&ids.tid);
                }
            }
        }
    }

    /// Ends all spans at a time, at the end of all.
    pub(crate) fn end(&mut self, now: u64, wall: impl Fn(u64) -> i64) {
        self.settle(u64::MAX, &wall);
        for (tid, away) in std::mem::take(&mut self.away) {
            self.end_span(tid, Some(away), now, &wall);
        }
    }

    fn end_span(&mut self, tid: u32, away: Option<Away>, now: u64, wall: impl Fn(u64) -> i64) {
        let Some(Away { at, left: Some((left, cpu, pid, reason)) }) = away else { return };
        let span = now.saturating_sub(left);
        // Where it was is not known if that found no room in the ring.
        let at = at.map(|at| *at).unwrap_or_default();
        let Sample { address, cgroup, callers, .. } = at;
        let same = Same { cpu, pid, tid, reason, address, cgroup, callers };
        let none = Spans { first: wall(left), count: 0, total_ns: 0, longest_ns: 0 };
        let sum = self.sums.entry(same).or_insert(none);
        sum.count += 1;
        sum.total_ns += span;
        sum.longest_ns = sum.longest_ns.max(span);
        self.counts.spans += 1;
        match reason {
            Reason::Waiting => self.counts.waiting_ns += span,
            Reason::Preempted => self.counts.preempted_ns += span,
        }
    }

    /// Hands on the sums so far, and begins anew.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = (Same, Spans)> + use<> {
        self.counts.rows += self.sums.len() as u64;
        std::mem::take(&mut self.sums).into_iter()
    }

    /// What was counted so far.
    pub(crate) fn counts(&self) -> OffCpuCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEVEN: Ids = Ids { pid: 7, tid: 8 };

    fn at(address: u64) -> Told {
        Told::At(Box::new(Sample { address, ..Sample::default() }))
    }

    fn wall(time: u64) -> i64 {
        time.cast_signed() + 1_000
    }

    fn sums(off: &mut OffCpu) -> Vec<(u32, u64, Reason, Spans)> {
        off.take().map(|(same, spans)| (same.cpu, same.address, same.reason, spans)).collect()
    }

    #[test]
    fn spans_are_taken_in_the_order_of_time_whatever_cpu_tells_first() {
        let mut off = OffCpu::default();
        // CPU 0, which is read first, is the one that the thread comes back on.
        off.told(90, 0, SEVEN, Told::Back);
        off.told(190, 0, SEVEN, at(0x20));
        off.told(191, 0, SEVEN, Told::Left(Reason::Preempted));
        off.told(10, 1, SEVEN, at(0x10));
        off.told(11, 1, SEVEN, Told::Left(Reason::Waiting));
        off.told(11, 1, Ids { pid: 0, tid: 0 }, Told::Back);
        off.settle(100, wall);
        let first = Spans { first: 1_011, count: 1, total_ns: 79, longest_ns: 79 };
        assert_eq!(sums(&mut off), [(1, 0x10, Reason::Waiting, first)]);
        off.settle(200, wall);
        assert!(sums(&mut off).is_empty());
        off.end(300, wall);
        let last = Spans { first: 1_191, count: 1, total_ns: 109, longest_ns: 109 };
        assert_eq!(sums(&mut off), [(0, 0x20, Reason::Preempted, last)]);
        let expected =
            OffCpuCounts { spans: 2, waiting_ns: 79, preempted_ns: 109, rows: 2, lost: 0 };
        assert_eq!(off.counts(), expected);
    }

    #[test]
    fn spans_from_the_same_place_are_summed_up_and_who_has_ended_is_off_no_more() {
        let mut off = OffCpu::default();
        for turn in 0..1_000 {
            off.told(turn * 10, 0, SEVEN, at(0x10));
            off.told(turn * 10 + 1, 0, SEVEN, Told::Left(Reason::Waiting));
            off.told(turn * 10 + 2 + turn % 3, 0, SEVEN, Told::Back);
        }
        off.told(20_000, 0, SEVEN, Told::Left(Reason::Waiting));
        off.told(20_001, 0, SEVEN, Told::Ended);
        off.end(30_000, wall);
        let spans = Spans { first: 1_001, count: 1_000, total_ns: 1_999, longest_ns: 3 };
        assert_eq!(sums(&mut off), [(0, 0x10, Reason::Waiting, spans)]);
    }

    #[test]
    fn a_place_that_was_lost_is_not_that_of_the_time_before() {
        let mut off = OffCpu::default();
        off.told(10, 0, SEVEN, at(0x10));
        off.told(11, 0, SEVEN, Told::Left(Reason::Waiting));
        off.told(20, 0, SEVEN, Told::Back);
        off.told(31, 0, SEVEN, Told::Left(Reason::Waiting));
        off.told(40, 0, SEVEN, Told::Back);
        // Back without having left: sampling had just begun.
        off.told(50, 0, Ids { pid: 9, tid: 9 }, Told::Back);
        off.end(60, wall);
        let addresses: Vec<u64> = off.take().map(|(same, _)| same.address).collect();
        assert_eq!(addresses, [0, 0x10]);
    }
}
