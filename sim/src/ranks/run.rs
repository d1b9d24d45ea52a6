//! A run over several ranks: every rank makes the whole model, runs its own part of it, and gets the
//! others' parts when all are done.
//!
//! Only what may change of an LP is sent (`meikyo_undo::State::save`), and only at the end: whatever
//! LPs share and never change (the plan of a network, say) is on every rank from the beginning.

use meikyo_undo::{Wire, read_value, write_value};

use crate::conservative;
use crate::context::Lp;
use crate::coordinator::{Coordinator, words_max};
use crate::fault::RunError;
use crate::optimistic;
use crate::options::{Options, Scheduler};
use crate::outcome::{Effort, Ending, PartResult};
use crate::queue::Queue;
use crate::random::mix;
use crate::ranks::Ranks;
use crate::ranks::collective::Collective;
use crate::ranks::exchange::MpiExchange;
use crate::rules::Rules;
use crate::setup::Setup;
use crate::share::Share;
use crate::statistics::Observer;
use crate::transport::Transport;

/// The bit of a roll call's word by which a rank says that it begins a run; the other bits say which
/// run that is. The word of a rank that leaves has this bit clear.
pub(crate) const BEGINS: u64 = 1 << 63;

/// Publishes `own`, and gives the words of all ranks: called where a rank begins a run or leaves.
pub(crate) fn roll_call(ranks: Ranks, own: u64) -> Vec<u64> {
    let mut all = Collective::among(ranks, ranks.count(), 1).expect("every rank is among all");
    all.exchange([own].into_iter(), |_| &[]);
    (0..ranks.count()).map(|rank| all.words(rank)[0]).collect()
}

/// Makes sure that all ranks are about to run the same model in the same way.
pub(crate) fn agree(rules: &Rules, options: &Options) -> Result<(), RunError> {
    let ranks = options.ranks;
    if !ranks.on_its_thread() {
        return Err(RunError::OffThread);
    }
    let Options { scheduler, until, memory_limit, .. } = options;
    let Rules { seed, starts, names, group_links, lp_links, statistics, series, .. } = rules;
    let Rules { weights, steps_max, traced, statistics_from, timelines, .. } = rules;
    let text = format!(
        "{seed} {starts:?} {names:?} {group_links:?} {lp_links:?} {statistics:?} {series:?} \
         {weights:?} {steps_max} {traced} {statistics_from:?} {timelines} {scheduler:?} {until:?} {memory_limit:?}"
    );
    let digest = text.bytes().fold(0, |digest, byte| mix(digest ^ u64::from(byte)));
    let words = roll_call(ranks, digest | BEGINS);
    if let Some(rank) = words.iter().position(|word| word & BEGINS == 0) {
        return Err(RunError::Gone { rank });
    }
    let differs = words.iter().position(|word| *word != words[0]);
    differs.map_or(Ok(()), |rank| Err(RunError::Differs { rank }))
}

/// Runs the part of this rank; gives the final shares of all parts, and whether events are left.
pub(crate) fn run<L: Lp>(
    setup: &Setup<'_>,
    mut shares: Vec<Share<L>>,
    observer: &mut dyn Observer,
    effort: &mut Effort,
) -> Result<(Vec<Share<L>>, bool), RunError> {
    let parts = shares.len();
    let own = setup.options.ranks.own();
    let own_share = (own < parts).then(|| shares.remove(own));
    for share in &mut shares {
        // Events and lines of other parts are their ranks' business; of their LPs, what never changes
        // is needed later.
        share.queue = Queue::new();
        share.ledger.lines = Vec::new();
    }
    let (scheduler, result) = if setup.options.scheduler == Scheduler::Optimistic {
        ("optimistic", run_own(setup, own_share, observer, optimistic::run_part))
    } else {
        ("conservative", run_own(setup, own_share, observer, conservative::run_part))
    };
    let (mut bytes, mut endings) = (Vec::new(), Vec::new());
    if let Some(PartResult { share, ending, .. }) = result {
        write(&ending, &share, &mut bytes);
        shares.insert(own, share);
        endings.push(ending);
    }
    endings.extend(gather(setup, &mut shares, &bytes));
    effort.scheduler = scheduler;
    effort.threads_used = effort.threads_used.max(parts);
    effort.ranks = parts;
    let events_left = endings.iter().any(|ending| ending.events_left);
    let fault = effort.add_parts(scheduler, &endings);
    fault.map_or(Ok((shares, events_left)), |fault| Err(RunError::Fault(fault)))
}

/// Runs the part of this rank, if it has one, with `work`.
fn run_own<'a, L: Lp, T: Wire + 'a>(
    setup: &'a Setup<'a>,
    share: Option<Share<L>>,
    observer: &'a mut dyn Observer,
    work: impl FnOnce(Coordinator<'a, Transport<'a, T>>, Share<L>) -> PartResult<L>,
) -> Option<PartResult<L>> {
    let ranks = setup.options.ranks;
    let parts = setup.partition.parts();
    // Also a rank without a part takes part in this.
    let exchange = MpiExchange::among(ranks, parts, words_max(parts));
    let observer: Option<&mut dyn Observer> = if ranks.is_first() { Some(observer) } else { None };
    let coordinator =
        Coordinator::new(setup, ranks.own(), Transport::Ranks(exchange?), observer, None);
    Some(work(coordinator, share?))
}

/// Sends the own part's bytes to all ranks, and reads what theirs have become into `shares`; gives how
/// they ended.
fn gather<L: Lp>(setup: &Setup<'_>, shares: &mut [Share<L>], own_bytes: &[u8]) -> Vec<Ending> {
    let ranks = setup.options.ranks;
    let mut all = Collective::among(ranks, ranks.count(), 0).expect("every rank is among all");
    all.exchange(std::iter::empty(), |_| own_bytes);
    let others = shares.iter_mut().enumerate().filter(|(part, _)| *part != ranks.own());
    others.map(|(part, share)| read(all.inbox(part), share)).collect()
}

fn write<L: Lp>(ending: &Ending, share: &Share<L>, bytes: &mut Vec<u8>) {
    let written = "what LPs hold can be written as bytes";
    write_value(ending, bytes).expect(written);
    for slot in &share.slots {
        slot.state.save(bytes).expect(written);
        write_value(&slot.counters, bytes).expect(written);
    }
    write_value(&share.ledger.tallies, bytes).expect(written);
    write_value(&share.ledger.spreads, bytes).expect(written);
    write_value(&share.ledger.trace, bytes).expect(written);
}

fn read<L: Lp>(mut bytes: &[u8], share: &mut Share<L>) -> Ending {
    let read = "the rank that has this part wrote it";
    let ending = read_value(&mut bytes).expect(read);
    for slot in &mut share.slots {
        slot.state.load(&mut bytes).expect(read);
        slot.counters = read_value(&mut bytes).expect(read);
    }
    share.ledger.tallies = read_value(&mut bytes).expect(read);
    share.ledger.spreads = read_value(&mut bytes).expect(read);
    share.ledger.trace = read_value(&mut bytes).expect(read);
    ending
}
