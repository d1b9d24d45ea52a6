//! What one worker owns: the LPs of its part, with their pending events and what they have committed.
//!
//! A [`World`] is the whole model between two runs. It is split into one [`Share`] for each part of the
//! partition, and the shares are joined again; neither direction changes anything of the model.

use meikyo_undo::Forget;
use meikyo_units::SimTime;

use crate::context::{Counters, Lp, Port, Turn};
use crate::effects::Effects;
use crate::fault::{Fault, Problem};
use crate::key::{Event, EventKey, LpId};
use crate::panics::{self, Handling};
use crate::partition::Partition;
use crate::queue::Queue;
use crate::rules::Rules;
use crate::statistics::{Ledger, Origin, Spread, Tally};
use crate::withdrawn::Withdrawn;

/// An LP's state, and what the kernel keeps beside it.
#[derive(Clone, Debug)]
pub(crate) struct Slot<L> {
    pub(crate) state: L,
    pub(crate) counters: Counters,
}

/// Where each LP of a share stands in the share's list.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// For each group: its first LP here, and that one's place in the list.
    groups: Vec<(u32, u32)>,
}

/// Where an LP is found in a share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Location {
    /// Its group in the model.
    pub(crate) group: usize,
    /// Its place in the share's list.
    pub(crate) local: usize,
    /// Its place among the LPs of its group that are in the share.
    pub(crate) member: usize,
}

impl Layout {
    fn new(rules: &Rules, partition: &Partition, part: usize) -> Self {
        let mut before = 0;
        let groups = (0..rules.groups())
            .map(|group| {
                let (first, end) = partition.block(group, part);
                let place = before;
                before += end - first;
                (first, place)
            })
            .collect();
        Self { groups }
    }

    /// The LPs of the share in the order of its list of `count`.
    pub(crate) fn lps(&self, count: usize) -> impl Iterator<Item = LpId> {
        let count = u32::try_from(count).expect("an LP's number has 32 bits");
        let ends = self.groups.iter().skip(1).map(|(_, place)| *place).chain([count]);
        self.groups
            .iter()
            .zip(ends)
            .flat_map(|((first, place), end)| (*first..*first + (end - place)).map(LpId))
    }

    #[inline]
    pub(crate) fn locate(&self, rules: &Rules, lp: LpId) -> Location {
        let group = rules.group_of(lp);
        let (first, place) = self.groups[group];
        let member = lp.get() - first;
        Location { group, local: (place + member) as usize, member: member as usize }
    }
}

/// The part of a model that one worker runs.
#[derive(Debug)]
pub(crate) struct Share<L: Lp> {
    pub(crate) layout: Layout,
    pub(crate) slots: Vec<Slot<L>>,
    pub(crate) queue: Queue<L::Message>,
    pub(crate) ledger: Ledger,
    /// Pending events of LPs here that were taken back.
    pub(crate) withdrawn: Withdrawn,
}

impl<L: Lp> Share<L> {
    /// Whether an event is pending that was not taken back.
    pub(crate) fn has_events_left(&mut self) -> bool {
        if self.withdrawn.is_empty() {
            return !self.queue.is_empty();
        }
        let (mut events, mut left) = (Vec::new(), false);
        self.queue.take_all(|event| events.push(event));
        for event in events {
            left |= !self.withdrawn.contains(&event);
            self.queue.push(event);
        }
        left
    }
}

/// What becomes of the pending events when shares are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pending {
    /// They stay in the world, for another scheduler to go on with.
    Kept,
    /// They are dropped: the run is over.
    Dropped,
}

/// A model between two runs: every LP in its state, and every event that is not handled yet.
#[derive(Debug)]
pub(crate) struct World<L: Lp> {
    pub(crate) slots: Vec<Slot<L>>,
    pub(crate) pending: Vec<Event<L::Message>>,
    /// Those of them that were taken back.
    pub(crate) withdrawn: Withdrawn,
    /// Whether events are left, kept or not.
    pub(crate) events_left: bool,
    /// For each statistic, the tallies of its LPs in the order of the group.
    pub(crate) tallies: Vec<Vec<Tally>>,
    /// What all LPs tallied together, for each statistic.
    pub(crate) spreads: Vec<Spread>,
    pub(crate) trace: Vec<u64>,
}

impl<L: Lp> World<L> {
    /// The model before its first event.
    pub(crate) fn new(rules: &Rules, lps: Vec<L>) -> Self {
        let tallies = rules
            .statistics
            .iter()
            .map(|declared| {
                let (first, end) = (rules.starts[declared.group], rules.starts[declared.group + 1]);
                vec![Tally::EMPTY; (end - first) as usize]
            })
            .collect();
        Self {
            trace: if rules.traced { vec![0; lps.len()] } else { Vec::new() },
            slots: lps
                .into_iter()
                .map(|state| Slot { state, counters: Counters::default() })
                .collect(),
            pending: Vec::new(),
            withdrawn: Withdrawn::default(),
            events_left: false,
            spreads: vec![Spread::default(); rules.statistics.len()],
            tallies,
        }
    }

    /// Divides the model into one share for each part.
    pub(crate) fn split(self, rules: &Rules, partition: &Partition) -> Vec<Share<L>> {
        let mut shares: Vec<Share<L>> = (0..partition.parts())
            .map(|part| Share {
                layout: Layout::new(rules, partition, part),
                slots: Vec::new(),
                queue: Queue::new(),
                withdrawn: Withdrawn::default(),
                ledger: Ledger {
                    tallies: vec![Vec::new(); self.tallies.len()],
                    spreads: vec![Spread::default(); self.spreads.len()],
                    timelines: rules.timelines,
                    trace: Vec::new(),
                    lines: Vec::new(),
                },
            })
            .collect();
        shares[0].ledger.spreads = self.spreads;
        if let [only] = shares.as_mut_slice() {
            only.slots = self.slots;
            only.ledger.trace = self.trace;
            only.ledger.tallies = self.tallies;
        } else {
            let place = |lp: usize| {
                let lp = LpId(u32::try_from(lp).expect("an LP's number has 32 bits"));
                partition.part_of(rules.group_of(lp), lp)
            };
            for (lp, slot) in self.slots.into_iter().enumerate() {
                shares[place(lp)].slots.push(slot);
            }
            for (lp, chain) in self.trace.into_iter().enumerate() {
                shares[place(lp)].ledger.trace.push(chain);
            }
            for (statistic, tallies) in self.tallies.into_iter().enumerate() {
                let first = rules.starts[rules.statistics[statistic].group] as usize;
                for (member, tally) in tallies.into_iter().enumerate() {
                    shares[place(first + member)].ledger.tallies[statistic].push(tally);
                }
            }
        }
        for (lp, sequence) in self.withdrawn.into_iter() {
            let part = partition.part_of(rules.group_of(lp), lp);
            shares[part].withdrawn.insert(lp, sequence);
        }
        for event in self.pending {
            let group = rules.group_of(event.destination);
            shares[partition.part_of(group, event.destination)].queue.push(event);
        }
        shares
    }

    /// Puts the shares of `partition` together again, with their pending events or without.
    pub(crate) fn join(
        rules: &Rules,
        partition: &Partition,
        shares: Vec<Share<L>>,
        pending: Pending,
    ) -> Self {
        let mut world = Self {
            events_left: false,
            slots: Vec::new(),
            pending: Vec::new(),
            withdrawn: Withdrawn::default(),
            tallies: vec![Vec::new(); rules.statistics.len()],
            spreads: vec![Spread::default(); rules.statistics.len()],
            trace: Vec::new(),
        };
        let mut rest: Vec<_> = shares
            .into_iter()
            .map(|mut share| {
                world.events_left |= share.has_events_left();
                world.withdrawn.extend(share.withdrawn);
                if pending == Pending::Kept {
                    share.queue.take_all(|event| world.pending.push(event));
                }
                let Ledger { tallies, spreads, trace, .. } = share.ledger;
                for (all, own) in world.spreads.iter_mut().zip(&spreads) {
                    all.join(own);
                }
                for (all, own) in world.tallies.iter_mut().zip(tallies) {
                    if all.is_empty() {
                        *all = own;
                    } else {
                        all.extend(own);
                    }
                }
                (share.slots, trace)
            })
            .collect();
        if let [(slots, trace)] = rest.as_mut_slice() {
            // Copying the only part would take the memory of all LPs once more.
            (world.slots, world.trace) = (std::mem::take(slots), std::mem::take(trace));
            return world;
        }
        let mut rest: Vec<_> =
            rest.into_iter().map(|(slots, trace)| (slots.into_iter(), trace.into_iter())).collect();
        for group in 0..rules.groups() {
            for (part, (slots, trace)) in rest.iter_mut().enumerate() {
                let (first, end) = partition.block(group, part);
                let count = (end - first) as usize;
                world.slots.extend(slots.by_ref().take(count));
                world.trace.extend(trace.by_ref().take(count));
            }
        }
        world
    }
}

/// Has the LP in `slot` handle `event`, with `port` taking what it does.
pub(crate) fn handle<L: Lp, P: Port<L::Message>>(
    rules: &Rules,
    slot: &mut Slot<L>,
    group: usize,
    event: Event<L::Message>,
    port: &mut P,
) {
    slot.counters.handled += 1;
    let mut turn = Turn {
        rules,
        key: event.key(),
        me: event.destination,
        group,
        counters: &mut slot.counters,
        port,
    };
    slot.state.handle(event.message, &mut turn);
}

/// The key under which LPs are started.
fn start_key(lp: LpId) -> EventKey {
    EventKey { time: SimTime::START, depth: 0, priority: 0, source: lp, sequence: 0 }
}

/// Starts every LP, in the order of their numbers.
pub(crate) fn start<L: Lp>(
    rules: &Rules,
    partition: &Partition,
    shares: &mut [Share<L>],
) -> Result<(), Box<Fault>> {
    let mut port = Effects::new(Forget);
    for lp in (0..rules.lps()).map(LpId) {
        let group = rules.group_of(lp);
        let share = &mut shares[partition.part_of(group, lp)];
        let location = share.layout.locate(rules, lp);
        let slot = &mut share.slots[location.local];
        let (key, counters) = (start_key(lp), &mut slot.counters);
        let mut turn = Turn { rules, key, me: lp, group, counters, port: &mut port };
        panics::caught(Handling::Committed, || slot.state.start(&mut turn))
            .map_err(|panicked| fault(rules, lp, None, panicked))?;
        if let Some(problem) = port.problem {
            return Err(fault(rules, lp, None, *problem));
        }
        for sequence in port.withdrawn.drain(..) {
            share.withdrawn.insert(lp, sequence);
        }
        let origin = Origin { key, lp, member: location.member };
        for output in port.outputs.drain(..) {
            share.ledger.output(origin, output);
        }
        for event in port.sent.drain(..) {
            let group = rules.group_of(event.destination);
            shares[partition.part_of(group, event.destination)].queue.push(event);
        }
    }
    Ok(())
}

/// The fault of the event `key` of `lp`, or of its start, as a person is told of it.
pub(crate) fn fault(
    rules: &Rules,
    lp: LpId,
    key: Option<EventKey>,
    problem: Problem,
) -> Box<Fault> {
    Box::new(Fault {
        time: key.map_or(SimTime::START, |key| key.time),
        key,
        lp,
        group: rules.group_name(rules.group_of(lp)).to_owned(),
        problem,
    })
}
