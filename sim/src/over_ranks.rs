//! A run over several ranks: every rank makes the whole model, runs its own part of it, and gets the
//! others' when all are done.
//!
//! Only what may change of an LP is sent (`meikyo_undo::State::save`), and only at the end: whatever
//! LPs share and never change (the plan of a network, say) is on every rank from the beginning.

use meikyo_undo::{put, take};

use crate::conservative;
use crate::context::Lp;
use crate::fault::{Fault, RunError};
use crate::key::LpId;
use crate::optimistic;
use crate::queue::Queue;
use crate::random::mix;
use crate::ranks::Ranks;
use crate::ranks::exchange::Exchange;
use crate::rules::Rules;
use crate::run::{Crew, Effort, Options, Scheduler};
use crate::share::Share;
use crate::statistics::Observer;

/// A rank that begins a run says so in a roll call by this bit, and which run it is by the others; a
/// rank that leaves says with what word it goes.
pub(crate) const BEGINS: u64 = 1 << 63;

/// What all ranks say at this point, where each of them begins a run or leaves.
pub(crate) fn roll_call(ranks: Ranks, own: u64) -> Vec<u64> {
    let mut exchange = Exchange::among(ranks, ranks.count(), 1).expect("every rank is among all");
    exchange.meet(&[own], |_| &[]);
    (0..ranks.count()).map(|rank| exchange.told(rank)[0]).collect()
}

/// How one rank's part of a run ended.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Ending {
    pub(crate) fault: Option<Box<Fault>>,
    pub(crate) handled: u64,
    pub(crate) undone: u64,
    pub(crate) rollbacks: u64,
    pub(crate) setbacks: Vec<(LpId, u32)>,
    pub(crate) undo_records: u64,
    pub(crate) meetings: u64,
    pub(crate) events_left: bool,
}

/// Makes sure that all ranks are about to run the same model in the same way.
pub(crate) fn agree(rules: &Rules, options: &Options) -> Result<(), RunError> {
    let ranks = options.ranks;
    if !ranks.on_its_thread() {
        return Err(RunError::OffThread);
    }
    let Options { scheduler, until, memory_limit, .. } = options;
    let Rules { seed, starts, names, group_links, lp_links, statistics, series, .. } = rules;
    let Rules { steps_max, traced, .. } = rules;
    let text = format!(
        "{seed} {starts:?} {names:?} {group_links:?} {lp_links:?} {statistics:?} {series:?} \
         {steps_max} {traced} {scheduler:?} {until:?} {memory_limit:?}"
    );
    let digest = text.bytes().fold(0, |digest, byte| mix(digest ^ u64::from(byte)));
    let words = roll_call(ranks, digest | BEGINS);
    if let Some(rank) = words.iter().position(|word| word & BEGINS == 0) {
        return Err(RunError::Gone { rank });
    }
    let differs = words.iter().position(|word| *word != words[0]);
    differs.map_or(Ok(()), |rank| Err(RunError::Differs { rank }))
}

/// Runs the part of this rank; gives the final shares of all, and whether events are left.
pub(crate) fn run<L: Lp>(
    crew: &Crew<'_>,
    mut shares: Vec<Share<L>>,
    observer: &mut dyn Observer,
    effort: &mut Effort,
) -> Result<(Vec<Share<L>>, bool), RunError> {
    let parts = shares.len();
    let own = crew.options.ranks.own();
    let own_share = (own < parts).then(|| shares.remove(own));
    for share in &mut shares {
        // The others' events and lines are theirs; of their LPs, what never changes is needed later.
        share.queue = Queue::new();
        share.ledger.lines = Vec::new();
    }
    let (own_share, mut ending) = if crew.options.scheduler == Scheduler::Optimistic {
        effort.scheduler = "optimistic";
        optimistic::run_part(crew, own_share, observer)
    } else {
        effort.scheduler = "conservative";
        conservative::run_part(crew, own_share, observer)
    };
    let mut bytes = Vec::new();
    if let Some(mut share) = own_share {
        ending.events_left = !share.queue.is_empty();
        write(&ending, &share, &mut bytes);
        shares.insert(own, share);
    }
    let endings = gather(crew, &mut shares, &bytes);
    effort.threads_used = effort.threads_used.max(parts);
    effort.ranks = parts;
    let (mut events_left, mut fault) = (false, None);
    for ending in endings.into_iter().chain((own < parts).then_some(ending)) {
        effort.handled += ending.handled;
        effort.undone += ending.undone;
        effort.rollbacks += ending.rollbacks;
        effort.add_setbacks(ending.setbacks);
        effort.undo_records += ending.undo_records;
        effort.meetings = effort.meetings.max(ending.meetings);
        events_left |= ending.events_left;
        fault = [fault, ending.fault].into_iter().flatten().min_by_key(|fault| fault.key);
    }
    fault.map_or(Ok((shares, events_left)), |fault| Err(RunError::Fault(fault)))
}

/// Reads what the other ranks' parts have become into `shares`.
fn gather<L: Lp>(crew: &Crew<'_>, shares: &mut [Share<L>], own_bytes: &[u8]) -> Vec<Ending> {
    let ranks = crew.options.ranks;
    let mut exchange = Exchange::among(ranks, ranks.count(), 0).expect("every rank is among all");
    exchange.meet(&[], |_| own_bytes);
    let others = shares.iter_mut().enumerate().filter(|(part, _)| *part != ranks.own());
    others.map(|(part, share)| read(exchange.inbox(part), share)).collect()
}

fn write<L: Lp>(ending: &Ending, share: &Share<L>, bytes: &mut Vec<u8>) {
    let written = "what LPs hold can be written as bytes";
    put(ending, bytes).expect(written);
    for slot in &share.slots {
        slot.state.save(bytes).expect(written);
        put(&slot.counters, bytes).expect(written);
    }
    put(&share.ledger.tallies, bytes).expect(written);
    put(&share.ledger.trace, bytes).expect(written);
}

fn read<L: Lp>(mut bytes: &[u8], share: &mut Share<L>) -> Ending {
    let read = "the rank that has this part wrote it";
    let ending = take(&mut bytes).expect(read);
    for slot in &mut share.slots {
        slot.state.load(&mut bytes).expect(read);
        slot.counters = take(&mut bytes).expect(read);
    }
    share.ledger.tallies = take(&mut bytes).expect(read);
    share.ledger.trace = take(&mut bytes).expect(read);
    ending
}
