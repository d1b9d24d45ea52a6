//! Lives of senders that are over: what of them will not come is told.

use meikyo_recording::{Origin, Source};

use super::store::accounted;
use super::{Place, Receiver, Session, SessionId, State, damaged, given_up};
use crate::gaps;
use crate::now::Now;
use crate::wire::{Declared, Gap, Hello, Over, Reason, Refusal, TIME_UNKNOWN};

impl Receiver {
    /// A life that was given up when another sender of that name came is not taken any more.
    pub(super) fn check_life(&self, hello: &Hello) -> Result<(), Refusal> {
        let Hello { sender, boot, .. } = hello;
        let is_over = |declared: &Declared| {
            let stream = declared.stream.clone();
            let source = Source { sender: sender.clone(), boot: *boot, stream };
            let place = Place::new(hello.cluster.as_deref(), &declared.stream);
            self.stores.get(&place).is_some_and(|store| store.gave_up(&source, u64::MAX))
        };
        if hello.streams.iter().any(is_over) { Err(given_up(sender)) } else { Ok(()) }
    }

    /// Lives of a sender of which it holds nothing any more are over: numbers that are not accounted
    /// for will not come, and what was made behind the last one, nobody knows.
    pub(super) fn end_earlier_lives(&mut self, now: Now, hello: &Hello) {
        if !hello.tells_all {
            return;
        }
        let mut over = Vec::new();
        for place in Place::all_of(hello) {
            let Some(store) = self.stores.get(&place) else { continue };
            for source in store.lives_of(&hello.sender) {
                let is_held = hello
                    .holds
                    .iter()
                    .any(|held| held.boot == source.boot && held.stream == source.stream);
                if source.boot != hello.boot && source.stream == place.stream && !is_held {
                    over.push((place.clone(), source));
                }
            }
        }
        for (place, source) in over {
            self.tell_holes(now, &place, &source, hello.begun_ns);
        }
    }

    /// Tells that the numbers of a life which are not accounted for will not come, nor rows that had none:
    /// those between its last row and the beginning of the next life.
    fn tell_holes(&mut self, now: Now, place: &Place, source: &Source, next_ns: Option<i64>) {
        let Some(store) = self.stores.get_mut(place) else { return };
        let holes: Vec<_> = accounted(&store.held, source).holes(1, u64::MAX).collect();
        let (at, newest) = (now.wall.as_nanos(), store.newest_of_life(source));
        let from_ns = newest.unwrap_or(at);
        let until_ns = next_ns.unwrap_or(at).max(from_ns);
        for hole in holes {
            self.tell_hole(place, source.clone(), hole, (from_ns, until_ns));
        }
    }

    /// Tells that numbers will not come which nobody else knows anything of.
    fn tell_hole(
        &mut self,
        place: &Place,
        source: Source,
        (first, last): (u64, u64),
        (from_ns, until_ns): (i64, i64),
    ) {
        let Source { sender, boot, stream } = source;
        let (rows, reason) = (None, Reason::Restarted);
        let gap = Gap { boot, stream, first, last, rows, from_ns, until_ns, reason };
        let before = self.next_ticket;
        // One that cannot be stored now is told when the sender greets again.
        drop(self.take_gap(&sender, place, &gap));
        if let Some(store) = self.stores.get_mut(place) {
            store.found.extend(before + 1..=self.next_ticket);
        }
    }

    /// Takes a gap that a sender tells of. One whose machine lost power may have forgotten blocks of an earlier life
    /// that were acknowledged, and when its newest row was: what is here is not told as missing, nor an older time.
    pub(super) fn take_told_gap(
        &mut self,
        now: Now,
        sender: &str,
        place: &Place,
        gap: &Gap,
    ) -> Result<(), Refusal> {
        let may_have_forgotten = matches!(gap.reason, Reason::Restarted | Reason::SpoolDamaged);
        let source = Source { sender: sender.into(), boot: gap.boot, stream: gap.stream.clone() };
        let store = self.stores.get_mut(place).filter(|_| may_have_forgotten);
        let Some(store) = store else { return self.take_gap(sender, place, gap) };
        let Gap { first, last, from_ns, until_ns, .. } = *gap;
        store.is_told_too(&Origin { source: gaps::given_up(&source), first, last });
        let durable = accounted(&store.durable, &source);
        let of_source = |(first, last)| Origin { source: source.clone(), first, last };
        let here: Vec<_> = durable.within(first, last).map(of_source).collect();
        let holes: Vec<_> = accounted(&store.held, &source).holes(first, last).collect();
        let own = store.newest_of(&source);
        let newest = match (own, from_ns) {
            (None, TIME_UNKNOWN) => store.newest_ns.unwrap_or(now.wall.as_nanos()),
            (own, _) => own.unwrap_or(i64::MIN),
        };
        self.acknowledge(here);
        for (first, last) in holes {
            // Rows of numbers below those that are here are older.
            let is_behind_all = last == u64::MAX || from_ns == TIME_UNKNOWN;
            let from_ns = if is_behind_all { from_ns.max(newest) } else { from_ns };
            let until_ns = until_ns.max(newest);
            self.take_gap(sender, place, &Gap { first, last, from_ns, until_ns, ..gap.clone() })?;
        }
        Ok(())
    }

    /// Everything of an earlier life was delivered: what is not there will not come.
    pub(super) fn end_life(&mut self, now: Now, id: SessionId, over: &Over) -> Result<(), Refusal> {
        let Some(Session { state: State::Open(party), .. }) = self.sessions.get(&id) else {
            return Ok(());
        };
        let Over { boot, stream } = over.clone();
        let begun_ns = party.begun_ns;
        if boot == party.boot {
            return Err(damaged("a sender's own life is over when it says nothing more"));
        }
        let place = party.place(&stream);
        let source = Source { sender: party.sender.clone(), boot, stream };
        let store = self.stores.get(&place);
        let store = store.filter(|_| party.tables.contains_key(&source.stream));
        if store.is_some_and(|store| store.lives_of(&source.sender).contains(&source)) {
            self.tell_holes(now, &place, &source, begun_ns);
        }
        Ok(())
    }
}
