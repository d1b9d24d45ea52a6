//! What has not changed, said without sending it.
//!
//! A host that is to make the parity of one generation that of the next is told by every other which of its blocks
//! are as they were: in runs of stripes, before any block, so that nobody waits for one that does not come. Those that
//! get parity from it are told in the end how much of theirs is as it was.

use std::collections::BTreeMap;

use super::begin::{number, small};
use super::{Exchange, ExchangeError, Outgoing, Payload, State, locked};
use crate::frame::{Head, Kind};
use crate::schedule::{Job, Route, Stop};

/// Runs of stripes: the first of each, and the one behind its last.
#[derive(Debug, Default)]
pub(super) struct Runs(BTreeMap<u32, u32>);

impl Runs {
    /// Adds a run; whether it meets no other.
    fn add(&mut self, first: u32, end: u32) -> bool {
        let is_free = self.0.range(..end).next_back().is_none_or(|(_, before)| *before <= first);
        if is_free {
            self.0.insert(first, end);
        }
        is_free
    }

    fn has(&self, stripe: u32) -> bool {
        self.0.range(..=stripe).next_back().is_some_and(|(_, end)| *end > stripe)
    }
}

impl State {
    /// Whether a source has said that its block in a code word has not changed.
    pub(super) fn is_same(&self, stripe: u32, word: usize, place: usize) -> bool {
        self.same.get(&(word, place)).is_some_and(|runs| runs.has(stripe))
    }

    /// Whether all blocks of a code word that come have come.
    pub(super) fn is_gathered(
        &self,
        stripe: u32,
        word: usize,
        sources: &[Stop],
        me: usize,
    ) -> bool {
        let come = self.gathering.get(&(stripe, word)).map(|gathering| &gathering.sources);
        sources.iter().filter(|(host, _)| *host != me).all(|(host, _)| {
            come.is_some_and(|come| come.contains(host)) || self.is_same(stripe, word, *host)
        })
    }
}

impl Exchange<'_> {
    pub(super) fn is_update(&self) -> bool {
        *self.schedule.job() == Job::Update
    }

    /// Says of all blocks of this host which have not changed.
    pub(super) fn tell_same(&self) -> Result<(), ExchangeError> {
        let layout = self.schedule.geometry().layout();
        for word in 0..layout.hosts() {
            let Some(Route::Gather { sources, at, .. }) = self.schedule.route(0, word) else {
                continue;
            };
            let Some((_, shard)) = sources.iter().find(|(host, _)| *host == self.me) else {
                continue;
            };
            let stripes = self.schedule.stripes_of(word);
            let mut first = 0;
            for stripe in 0..=stripes {
                if stripe < stripes && !self.blocks.is_changed(stripe, *shard) {
                    continue;
                }
                if stripe > first {
                    let stop = small(number(layout, *shard));
                    self.push_same(*at, (first, word, stop), stripe - first)?;
                }
                first = stripe + 1;
            }
        }
        Ok(())
    }

    fn push_same(
        &self,
        to: usize,
        (stripe, word, stop): (u32, usize, u16),
        len: u32,
    ) -> Result<(), ExchangeError> {
        let head = Head { kind: Kind::Same, word: small(word), stripe, stop, len };
        self.push(to, Outgoing { head, payload: Payload::Nothing, credits: Vec::new() })
    }

    /// A host has said what has not changed.
    pub(super) fn same_came(&self, place: usize, head: Head) -> Result<(), ExchangeError> {
        let foreign = || ExchangeError::Foreign { place, what: format!("{head:?}") };
        let (first, word, stop) = (head.stripe, usize::from(head.word), usize::from(head.stop));
        let end = first.checked_add(head.len).filter(|end| *end > first).ok_or_else(foreign)?;
        let route = self.schedule.route(end - 1, word).filter(|_| self.is_update());
        let Some(Route::Gather { sources, at, results }) = route else { return Err(foreign()) };
        if *at == place && results.iter().any(|(host, _)| *host == self.me) {
            self.arrived(Kind::Result, head.len);
            return Ok(());
        }
        let layout = self.schedule.geometry().layout();
        let is_it = |(host, shard): &Stop| *host == place && number(layout, *shard) == stop;
        if *at != self.me || !sources.iter().any(is_it) {
            return Err(foreign());
        }
        let mut state = locked(&self.state);
        if !state.same.entry((word, place)).or_default().add(first, end) {
            return Err(foreign());
        }
        // What came from others may have waited for nothing else.
        let waiting = state.gathering.keys().filter(|(stripe, of)| {
            *of == word
                && (first..end).contains(stripe)
                && state.is_gathered(*stripe, word, sources, self.me)
        });
        let waiting: Vec<u32> = waiting.map(|(stripe, _)| *stripe).collect();
        let whole: Vec<_> = waiting
            .into_iter()
            .filter_map(|stripe| Some((stripe, state.gathering.remove(&(stripe, word))?)))
            .collect();
        drop(state);
        for (stripe, gathered) in whole {
            self.code(stripe, word, gathered.parts, gathered.sources)?;
        }
        self.arrived(Kind::Part, head.len);
        Ok(())
    }

    /// Waits until everything is gathered that this host codes, and tells those that get parity from it how much has
    /// not changed.
    pub(super) fn tell_same_results(&self, gathered: u64) -> Result<(), ExchangeError> {
        let mut state = locked(&self.state);
        while state.gathered < gathered && state.failure.is_none() {
            state = self.changed.wait(state).expect("no thread panics under this lock");
        }
        if state.failure.is_some() {
            return Ok(());
        }
        let coded = std::mem::take(&mut state.coded);
        drop(state);
        for word in 0..self.schedule.geometry().layout().hosts() {
            let Some(Route::Gather { at, results, .. }) = self.schedule.route(0, word) else {
                continue;
            };
            let same = self.schedule.stripes_of(word) - coded.get(&word).copied().unwrap_or(0);
            if *at != self.me || same == 0 {
                continue;
            }
            for (host, _) in results.iter().filter(|(host, _)| *host != self.me) {
                self.push_same(*host, (0, word, 0), same)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_their_stripes_and_meet_no_other() {
        let mut runs = Runs::default();
        assert!(runs.add(10, 12) && runs.add(0, 3) && runs.add(12, 13) && runs.add(3, 4));
        for (first, end) in [(0, 1), (2, 5), (9, 11), (11, 20), (5, 30)] {
            assert!(!runs.add(first, end), "{first} {end}");
        }
        let has: Vec<u32> = (0..20).filter(|stripe| runs.has(*stripe)).collect();
        assert_eq!(has, [0, 1, 2, 3, 10, 11, 12]);
    }
}
