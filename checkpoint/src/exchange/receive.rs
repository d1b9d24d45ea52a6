//! What a host does with what comes: folds and sends on, gathers and codes, keeps.

use meikyo_units::Bytes;

use super::begin::{number, small};
use super::{Exchange, ExchangeError, Gathering, Outgoing, Payload, locked};
use crate::coding::{self, CodingError};
use crate::frame::{HEAD_BYTES, Head, Kind};
use crate::increment;
use crate::layout::Shard;
use crate::schedule::{Job, Route, Stop};
use crate::tls::Inbound;

impl Exchange<'_> {
    /// One connection's receiving end, until the other says that nothing more comes.
    pub(super) fn receive_all(&self, place: usize, mut lane: Inbound) -> Result<(), ExchangeError> {
        let block = self.schedule.geometry().block();
        let mask = increment::mask_bytes(block as usize) * usize::from(self.is_update());
        let most = block + u32::try_from(mask).expect("a mask is shorter than its block");
        let broke = |source| ExchangeError::Peer { place, source };
        let mut received = 0;
        loop {
            let mut head = [0; HEAD_BYTES];
            lane.receive(&mut head).map_err(broke)?;
            let head = Head::read(&head, most).map_err(|error| (place, error))?;
            match head.kind {
                Kind::Credit => self.credited(),
                Kind::Idle => {}
                Kind::End => break,
                Kind::Folded | Kind::Part | Kind::Result => {
                    // The length was checked against that of a block.
                    let len = head.len as usize;
                    let mut octets = self.keep.memory();
                    octets.resize(len, 0);
                    lane.receive(&mut octets).map_err(broke)?;
                    received += len as u64;
                    self.received(place, head, octets)?;
                    self.arrived(head.kind, 1);
                }
                Kind::Same => self.same_came(place, head)?,
            }
            if self.has_failed() {
                return Ok(());
            }
        }
        locked(&self.state).moved.received += Bytes::new(received);
        Ok(())
    }

    pub(super) fn arrived(&self, kind: Kind, blocks: u32) {
        let mut state = locked(&self.state);
        state.arrived += u64::from(blocks);
        state.gathered += u64::from(blocks) * u64::from(kind == Kind::Part);
        drop(state);
        self.changed.notify_all();
    }

    fn received(&self, place: usize, head: Head, mut octets: Vec<u8>) -> Result<(), ExchangeError> {
        let foreign = || ExchangeError::Foreign { place, what: format!("{head:?}") };
        let (stripe, word, stop) = (head.stripe, usize::from(head.word), usize::from(head.stop));
        let route = self.schedule.route(stripe, word).ok_or_else(foreign)?;
        let word_len = self.schedule.geometry().word_len(stripe, word);
        if self.is_update() {
            octets = increment::unpack(&octets, word_len).ok_or_else(foreign)?;
        }
        if octets.len() > word_len {
            return Err(foreign());
        }
        match (head.kind, route) {
            (Kind::Folded, Route::Chain { stops, keeper }) => {
                let before = stop.checked_sub(1).and_then(|at| stops.get(at));
                if before.is_none_or(|(host, _)| *host != place) {
                    return Err(foreign());
                }
                match stops.get(stop) {
                    Some((host, shard)) if *host == self.me => {
                        self.fold(stripe, *shard, &mut octets)?;
                        let next = stops.get(stop + 1).map_or(keeper.0, |(host, _)| *host);
                        let head = Head { stop: small(stop + 1), ..head };
                        let payload = Payload::Octets(octets);
                        self.push(next, Outgoing { head, payload, credits: Vec::new() })
                    }
                    None if keeper.0 == self.me && stop == stops.len() => {
                        self.keep(stripe, keeper.1, octets)?;
                        self.credit(stops[0].0)
                    }
                    _ => Err(foreign()),
                }
            }
            (Kind::Part, Route::Gather { sources, at, .. }) if *at == self.me => {
                octets.resize(word_len, 0);
                self.part(place, (stripe, word, stop), sources, octets)?.ok_or_else(foreign)
            }
            (Kind::Result, Route::Gather { results, at, .. }) if *at == place => {
                let layout = self.schedule.geometry().layout();
                let is_it =
                    |(host, shard): &&Stop| *host == self.me && number(layout, *shard) == stop;
                let (_, shard) = results.iter().find(is_it).ok_or_else(foreign)?;
                self.keep(stripe, *shard, octets)
            }
            _ => Err(foreign()),
        }
    }

    /// Folds this host's block onto what came; what came is lengthened where it is shorter.
    fn fold(&self, stripe: u32, shard: Shard, octets: &mut Vec<u8>) -> Result<(), ExchangeError> {
        let mut scratch = Vec::new();
        let block = self.blocks.block(stripe, shard, &mut scratch).map_err(ExchangeError::Read)?;
        if block.len() > octets.len() {
            octets.resize(block.len(), 0);
        }
        coding::fold(octets, block);
        Ok(())
    }

    /// Keeps a block, cut or filled to the length that it has.
    fn keep(&self, stripe: u32, shard: Shard, mut octets: Vec<u8>) -> Result<(), ExchangeError> {
        octets.resize(self.schedule.geometry().len_of(self.me, stripe, shard), 0);
        self.keep.keep(stripe, shard, octets).map_err(ExchangeError::Keep)
    }

    /// A block that is needed here has come. `None` when it is not one that is waited for.
    fn part(
        &self,
        place: usize,
        (stripe, word, number_of_part): (u32, usize, usize),
        sources: &[Stop],
        octets: Vec<u8>,
    ) -> Result<Option<()>, ExchangeError> {
        let layout = self.schedule.geometry().layout();
        let is_it =
            |(host, shard): &Stop| *host == place && number(layout, *shard) == number_of_part;
        if !sources.iter().any(is_it) {
            return Ok(None);
        }
        let mut state = locked(&self.state);
        if state.is_same(stripe, word, place) {
            return Ok(None);
        }
        let gathering = state.gathering.entry((stripe, word)).or_insert_with(|| Gathering {
            parts: vec![None; layout.data() + layout.parity()],
            sources: Vec::new(),
        });
        if gathering.parts[number_of_part].replace(octets).is_some() {
            return Ok(None);
        }
        gathering.sources.push(place);
        if !state.is_gathered(stripe, word, sources, self.me) {
            return Ok(Some(()));
        }
        let whole = state.gathering.remove(&(stripe, word)).expect("it was there just now");
        drop(state);
        self.code(stripe, word, whole.parts, whole.sources).map(Some)
    }

    /// Codes what has come together, keeps what is this host's, and sends the rest on; `sources` may begin
    /// another block when that has left.
    pub(super) fn code(
        &self,
        stripe: u32,
        word: usize,
        mut parts: Vec<Option<Vec<u8>>>,
        sources: Vec<usize>,
    ) -> Result<(), ExchangeError> {
        let geometry = self.schedule.geometry();
        let layout = geometry.layout();
        let Some(Route::Gather { sources: stops, results, .. }) = self.schedule.route(stripe, word)
        else {
            return Ok(());
        };
        let word_len = geometry.word_len(stripe, word);
        for &(_, shard) in stops.iter().filter(|(host, _)| *host == self.me) {
            let mut scratch = Vec::new();
            let block =
                self.blocks.block(stripe, shard, &mut scratch).map_err(ExchangeError::Read)?;
            let mut block = block.to_vec();
            block.resize(word_len, 0);
            parts[number(layout, shard)] = Some(block);
        }
        let made = self.coded(&parts).map_err(ExchangeError::Coding)?;
        let mut frames = Vec::new();
        for (made, octets) in made {
            let is_it = |(_, shard): &&Stop| number(layout, *shard) == made;
            let Some(&(host, shard)) = results.iter().find(is_it) else { continue };
            if host == self.me {
                self.keep(stripe, shard, octets)?;
            } else {
                let octets = if self.is_update() {
                    let mut packed = Vec::new();
                    increment::pack(&octets, word_len, &mut packed);
                    packed
                } else {
                    octets
                };
                let (kind, stop) = (Kind::Result, small(made));
                let head = Head { kind, word: small(word), stripe, stop, len: 0 };
                frames.push((host, head, octets));
            }
        }
        if self.is_update() {
            *locked(&self.state).coded.entry(word).or_default() += 1;
        }
        if frames.is_empty() {
            return sources.into_iter().try_for_each(|place| self.credit(place));
        }
        if !sources.is_empty() {
            locked(&self.state).owed += 1;
        }
        let last = frames.len() - 1;
        let mut sources = Some(sources);
        for (at, (host, head, octets)) in frames.into_iter().enumerate() {
            let credits = if at == last { sources.take().unwrap_or_default() } else { Vec::new() };
            self.push(host, Outgoing { head, payload: Payload::Octets(octets), credits })?;
        }
        Ok(())
    }

    fn coded(&self, parts: &[Option<Vec<u8>>]) -> Result<Vec<(usize, Vec<u8>)>, CodingError> {
        let layout = self.schedule.geometry().layout();
        match self.schedule.job() {
            Job::Encode => {
                let data: Vec<&[u8]> = parts.iter().flatten().map(Vec::as_slice).collect();
                let parity = coding::encode(layout, &data)?;
                Ok(parity.into_iter().zip(layout.data()..).map(|(made, at)| (at, made)).collect())
            }
            Job::Update => {
                // What did not come has not changed.
                let len = parts.iter().flatten().map(Vec::len).max().unwrap_or(0);
                let same = vec![0; len];
                let data = parts[..layout.data()].iter();
                let data: Vec<&[u8]> =
                    data.map(|part| part.as_ref().map_or(&same[..], Vec::as_slice)).collect();
                let parity = coding::encode(layout, &data)?;
                Ok(parity.into_iter().zip(layout.data()..).map(|(made, at)| (at, made)).collect())
            }
            Job::Rebuild(_) | Job::RebuildOne { .. } => {
                let parts: Vec<Option<&[u8]>> = parts.iter().map(Option::as_deref).collect();
                coding::reconstruct(layout, &parts)
            }
        }
    }
}
