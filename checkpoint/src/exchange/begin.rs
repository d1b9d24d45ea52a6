//! The blocks that a host begins: the first of its chains, and its parts of what others code.

use super::{Exchange, ExchangeError, Outgoing, Payload, locked};
use crate::frame::{Head, Kind};
use crate::layout::{Layout, Shard};
use crate::schedule::Route;

/// The number of a block in its code word, data first.
pub(super) fn number(layout: &Layout, shard: Shard) -> usize {
    match shard {
        Shard::Data(at) => at,
        Shard::Parity(at) => layout.data() + at,
    }
}

/// Numbers of hosts and blocks of a word are at most 64.
pub(super) fn small(number: usize) -> u16 {
    u16::try_from(number).expect("groups have at most 64 hosts")
}

impl Exchange<'_> {
    /// Begins every block in its turn, then waits until everything has come that was to come, and until all that came is
    /// acknowledged: nothing more is sent after that.
    pub(super) fn begin_all(&self) -> Result<(), ExchangeError> {
        let (mut expected, mut to_gather, me) = (0, 0, self.me);
        for (_, _, route) in self.schedule.routes_from(me) {
            let count = arrivals(route, me);
            expected += count;
            if matches!(route, Route::Gather { at, .. } if *at == me) {
                to_gather += count;
            }
        }
        if self.is_update() {
            self.tell_same()?;
        }
        let layout = self.schedule.geometry().layout();
        for (stripe, word, route) in self.schedule.routes_from(me) {
            match route {
                Route::Chain { stops, keeper } => {
                    let (host, shard) = stops[0];
                    if host == me {
                        let next = stops.get(1).map_or(keeper.0, |(host, _)| *host);
                        self.begin(next, Kind::Folded, (stripe, word, 1), shard)?;
                    }
                }
                Route::Gather { sources, at, .. } if *at != me => {
                    for &(host, shard) in sources {
                        if host == me && self.blocks.is_changed(stripe, shard) {
                            let number = number(layout, shard);
                            self.begin(*at, Kind::Part, (stripe, word, number), shard)?;
                        }
                    }
                }
                Route::Gather { sources, .. } => {
                    // Where all that is needed lies here, nothing comes that would have it coded.
                    if sources.iter().all(|(host, _)| *host == me) {
                        let parts = vec![None; layout.data() + layout.parity()];
                        self.code(stripe, word, parts, Vec::new())?;
                    }
                }
            }
            if self.has_failed() {
                return Ok(());
            }
        }
        if self.is_update() {
            self.tell_same_results(to_gather)?;
        }
        let mut state = locked(&self.state);
        while (state.arrived < expected || state.owed > 0) && state.failure.is_none() {
            state = self.changed.wait(state).expect("no thread panics under this lock");
        }
        Ok(())
    }

    fn begin(
        &self,
        to: usize,
        kind: Kind,
        (stripe, word, stop): (u32, usize, usize),
        shard: Shard,
    ) -> Result<(), ExchangeError> {
        let mut state = locked(&self.state);
        while state.under_way >= self.window && state.failure.is_none() {
            state = self.changed.wait(state).expect("no thread panics under this lock");
        }
        state.under_way += 1;
        drop(state);
        let head = Head { kind, word: small(word), stripe, stop: small(stop), len: 0 };
        self.push(to, Outgoing { head, payload: Payload::Own(stripe, shard), credits: Vec::new() })
    }
}

/// How many blocks a way brings to a host.
fn arrivals(route: &Route, me: usize) -> u64 {
    let count = match route {
        Route::Chain { stops, keeper } => {
            stops[1..].iter().chain([keeper]).filter(|(host, _)| *host == me).count()
        }
        Route::Gather { sources, at, .. } if *at == me => {
            sources.iter().filter(|(host, _)| *host != me).count()
        }
        Route::Gather { results, .. } => results.iter().filter(|(host, _)| *host == me).count(),
    };
    count as u64
}
