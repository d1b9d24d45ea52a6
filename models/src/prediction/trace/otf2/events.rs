//! What events make of the ranks that call.

use super::amounts::{self, Amounts, Operation};
use super::{Call, Comm, Defined, Message, Otf2Error, Otf2Events, Place, Rank, undefined};
use crate::prediction::ranks::number;

/// Computing of less between two calls is a loop over tests, as for the recorder.
const SHORTEST_NS: u64 = 1000;

impl Otf2Events {
    /// Takes an event; whether there is such a one.
    pub(super) fn event(
        &mut self,
        word: &str,
        time: u64,
        location: u64,
        numbers: &[u64],
    ) -> Result<bool, Otf2Error> {
        let Some(place) = self.places.get_mut(&location) else {
            // A thread of a process that MPI does not know.
            return Ok(true);
        };
        let rank = &mut self.ranks[place.rank];
        match (word, numbers) {
            ("begins", []) => place.left = Some(time),
            ("ends", []) => {
                if place.is_of_mpi && place.depth == 0 && !rank.finalized {
                    rank.computes(self.defined.computed(place.left, time));
                    rank.add_computing();
                }
            }
            ("flush", [until]) => {
                // Nothing of that is the program's.
                let flushed = until.saturating_sub(time);
                place.left = place.left.map(|left| left.saturating_add(flushed));
            }
            ("off", []) => {
                if place.is_of_mpi && place.depth == 0 {
                    rank.computes(self.defined.computed(place.left, time));
                }
                place.left = None;
                self.notes.switched_off += u64::from(place.is_of_mpi);
            }
            ("on", []) => place.left = Some(time),
            ("enter", [region]) => {
                place.depth += 1;
                if place.depth == 1 {
                    enter(&self.defined, place, rank, time, *region)?;
                }
            }
            ("leave", []) => {
                place.depth = place.depth.saturating_sub(1);
                if place.depth == 0 {
                    place.left = Some(time);
                    place.sent = None;
                    self.leave(location);
                }
            }
            ("sent" | "posted" | "cancelled" | "begun", [request]) => {
                place.told = true;
                rank.requested(word, *request);
            }
            ("send" | "recv", &[other, comm, tag, octets]) => {
                self.message(location, word, [other, comm, tag, octets], None)?;
            }
            ("isend" | "irecv", &[other, comm, tag, octets, request]) => {
                self.message(location, word, [other, comm, tag, octets], Some(request))?;
            }
            ("collective", &[operation, comm, root, sent, received]) => {
                let told = Amounts { sent, received };
                self.collective(location, operation, comm, root, told, None)?;
            }
            ("done", &[operation, comm, root, sent, received, request]) => {
                let told = Amounts { sent, received };
                self.collective(location, operation, comm, root, told, Some(request))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The end of a call, of which something should have been told.
    fn leave(&mut self, location: u64) {
        let place = &self.places[&location];
        let Some(name) = self.defined.regions.get(&place.call).filter(|_| !place.told) else {
            return;
        };
        let rank = &mut self.ranks[place.rank];
        match plain(name).as_str() {
            // What they received is found among what nobody received.
            "mrecv" => {
                rank.add(Call::Open { receives: true, blocks: true });
            }
            "imrecv" => {
                rank.add(Call::Open { receives: true, blocks: false });
                rank.open += 1;
            }
            wait if wait.starts_with("wait") => {
                rank.add(Call::UntoldWait);
            }
            other if amounts::sends(other) => {
                *self.notes.untold.entry(name.clone()).or_default() += 1;
            }
            _ => {}
        }
    }

    /// A communicator through which something goes; otherwise the request is forgotten.
    fn through(&mut self, location: u64, comm: u64, request: Option<u64>) -> Option<&Comm> {
        let place = self.places.get_mut(&location)?;
        place.told = true;
        match self.comms.get(&comm) {
            Some(known) if known.members.len() > 1 => return Some(known),
            Some(_) => {}
            None => self.notes.between_groups += 1,
        }
        if let Some(request) = request {
            self.ranks[place.rank].forget(request);
        }
        None
    }

    fn message(
        &mut self,
        location: u64,
        word: &str,
        [other, comm, tag, octets]: [u64; 4],
        request: Option<u64>,
    ) -> Result<(), Otf2Error> {
        let Some(Comm { members, .. }) = self.through(location, comm, request) else {
            return Ok(());
        };
        let member = usize::try_from(other).ok().and_then(|other| members.get(other)).copied();
        let other = member.ok_or_else(|| undefined("a partner's rank", other))?;
        let message = Message { other, comm, tag, octets, order: self.messages };
        self.messages += 1;
        let place = self.places.get_mut(&location).expect("the event came from it");
        let rank = &mut self.ranks[place.rank];
        match (word, request) {
            ("isend", Some(request)) => {
                let at = rank.add(Call::Message { sends: true, blocks: false, message });
                rank.begin(request, at);
            }
            (_, Some(request)) => {
                let call = Call::Message { sends: false, blocks: false, message };
                match rank.end(request) {
                    Some(at) => rank.calls[at] = call,
                    // It was begun while nothing was recorded.
                    None => {
                        rank.add(call);
                    }
                }
                rank.add(Call::Wait { sends: false, message });
            }
            ("send", None) => {
                // Score-P tells of `MPI_Isend` so where it was asked not to record requests.
                let name = self.defined.regions.get(&place.call).map(|name| plain(name));
                let begins =
                    name.is_some_and(|name| name.starts_with('i') && name.ends_with("send"));
                let blocks = place.depth == 0 || !begins;
                let at = rank.add(Call::Message { sends: true, blocks, message });
                place.sent = (place.depth > 0).then_some(at);
            }
            (_, None) => rank.receive(place.sent.take(), message),
        }
        Ok(())
    }

    fn collective(
        &mut self,
        location: u64,
        operation: u64,
        comm: u64,
        root: u64,
        told: Amounts,
        request: Option<u64>,
    ) -> Result<(), Otf2Error> {
        let Some(operation) = Operation::of(operation) else {
            // It makes or frees something.
            let place = self.places.get_mut(&location).expect("the event came from it");
            place.told = true;
            if let Some(request) = request {
                self.ranks[place.rank].forget(request);
            }
            return Ok(());
        };
        let own = number(self.places[&location].rank);
        let Some(Comm { members, .. }) = self.through(location, comm, request) else {
            return Ok(());
        };
        if !members.contains(&own) {
            return Err(undefined("a member of communicator", comm));
        }
        let rank = &mut self.ranks[self.places[&location].rank];
        let call = Call::Collective { comm, operation, root, told };
        match request.and_then(|request| rank.end(request)) {
            Some(begun) => rank.calls[begun] = call,
            None => {
                rank.add(call);
            }
        }
        Ok(())
    }
}

fn enter(
    defined: &Defined,
    place: &mut Place,
    rank: &mut Rank,
    time: u64,
    region: u64,
) -> Result<(), Otf2Error> {
    let name = defined.regions.get(&region);
    let name = plain(name.ok_or_else(|| undefined("region", region))?);
    if place.is_of_mpi && !["init", "init_thread"].contains(&name.as_str()) {
        rank.computes(defined.computed(place.left, time));
    }
    if name == "finalize" {
        rank.finalized = true;
        rank.add_computing();
    }
    (place.call, place.told, place.sent) = (region, false, None);
    Ok(())
}

/// A function's name in C or Fortran without what all of them have.
fn plain(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    let name = name.trim_start_matches("mpi_").trim_end_matches('_');
    name.trim_end_matches("_c").to_owned()
}

impl Defined {
    /// What was computed between two calls.
    fn computed(&self, left: Option<u64>, entered: u64) -> u64 {
        let ticks = left.map_or(0, |left| entered.saturating_sub(left));
        let ns = u128::from(ticks) * 1_000_000_000 / u128::from(self.ticks_per_s.max(1));
        // Saturates: what was 585 years ago is as good as anything later.
        let ns = u64::try_from(ns).unwrap_or(u64::MAX);
        if ns < SHORTEST_NS { 0 } else { ns }
    }
}

impl Rank {
    fn add(&mut self, call: Call) -> usize {
        self.add_computing();
        self.calls.push(call);
        self.calls.len() - 1
    }

    fn computes(&mut self, ns: u64) {
        // Saturates: what was 585 years ago is as good as anything later.
        self.computed_ns = self.computed_ns.saturating_add(ns);
    }

    fn add_computing(&mut self) {
        let computed = std::mem::take(&mut self.computed_ns);
        if computed > 0 {
            self.calls.push(Call::Compute(computed));
        }
    }

    /// What happened to a request without more being told.
    fn requested(&mut self, word: &str, request: u64) {
        match word {
            "posted" | "begun" => {
                let at = self.add(Call::Open { receives: word == "posted", blocks: false });
                self.begin(request, at);
            }
            "sent" => {
                let begun = self.end(request).map(|at| &self.calls[at]);
                if let Some(&Call::Message { sends, message, .. }) = begun {
                    self.add(Call::Wait { sends, message });
                }
            }
            _ => self.forget(request),
        }
    }

    fn begin(&mut self, request: u64, at: usize) {
        self.requests.insert(request, at);
        self.open += 1;
    }

    fn end(&mut self, request: u64) -> Option<usize> {
        let at = self.requests.remove(&request);
        self.open -= u64::from(at.is_some());
        at
    }

    fn forget(&mut self, request: u64) {
        if let Some(at) = self.end(request) {
            self.calls[at] = Call::Nothing;
        }
    }

    /// A receive that blocks. One within the call of a send is a part of it, which must not block that.
    fn receive(&mut self, sent: Option<usize>, message: Message) {
        match sent {
            None => {
                self.add(Call::Message { sends: false, blocks: true, message });
            }
            Some(at) => {
                self.calls.insert(at, Call::Message { sends: false, blocks: false, message });
                self.requests.values_mut().filter(|begun| **begun >= at).for_each(|at| *at += 1);
                self.add(Call::Wait { sends: false, message });
            }
        }
    }
}
