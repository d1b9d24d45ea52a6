//! Another measure beside PHOLD: the hold model (Jones 1986) on the standard library's heap.
//!
//! As many events wait as in the run. One after the other the first is taken, counted in the state of an
//! LP, and put back for another LP at a later instant. Events are ordered by their instants only, and
//! delays are even, drawn by three shifts: what a simulation adds to that is the ratio.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use meikyo_units::Nanos;

use crate::placement::own_usage;

/// What is held, and for how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hold {
    pub(super) lps: u32,
    pub(super) pending: u64,
    pub(super) events: u64,
    pub(super) mean: Nanos,
}

impl Hold {
    /// CPU time of one event, in ns.
    pub(super) fn cpu_ns_per_event(&self) -> io::Result<f64> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut draw = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let delays = 2 * self.mean.get().max(1);
        let mut heap: BinaryHeap<_> = (0..self.pending)
            .map(|event| Reverse((draw() % delays, event % u64::from(self.lps))))
            .collect();
        let mut counted = vec![0_u64; self.lps as usize];
        let before = own_usage()?.cpu;
        let mut now = 0;
        for _ in 0..self.events {
            let Some(mut first) = heap.peek_mut() else { break };
            let Reverse((at, lp)) = *first;
            assert!(at >= now, "the heap gives the first event");
            now = at;
            counted[usize::try_from(lp).expect("an LP is an index")] += 1;
            *first = Reverse((at + draw() % delays, draw() % u64::from(self.lps)));
        }
        let used = own_usage()?.cpu.saturating_sub(before);
        assert_eq!(counted.iter().sum::<u64>(), self.events, "every event is counted");
        Ok(used.as_secs_f64() * 1e9 / meikyo_console::output::real(self.events.max(1)))
    }
}
