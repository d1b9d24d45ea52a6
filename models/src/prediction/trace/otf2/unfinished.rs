//! Receives whose end is not told: `EZTrace` 2.0 tells it of persistent requests only.
//!
//! What they received is not known, but what was sent is. If as many messages to a rank were received by nobody as it began
//! receives without an end, each takes the next of those in the order in which they were sent. Which of them gets which does not
//! change what a rank waits for where it waits for all of them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Call, Message, Rank};
use crate::prediction::ranks::{number, rank};

/// Gives messages to receives, and how many these are.
pub(super) fn assume(ranks: &mut [Rank]) -> u64 {
    let open = |call: &Call| matches!(call, Call::Open { receives: true, .. });
    let begun = |rank: &Rank| rank.calls.iter().filter(|call| open(call)).count();
    if ranks.iter().all(|rank| begun(rank) == 0) {
        return 0;
    }
    let mut assumed = 0;
    for (rank, missed) in not_received(ranks) {
        let Some(rank) = ranks.get_mut(rank) else { continue };
        if begun(rank) != missed.len() {
            continue;
        }
        let receives = rank.calls.iter_mut().filter(|call| open(call));
        for (call, message) in receives.zip(missed) {
            let blocks = matches!(call, Call::Open { blocks: true, .. });
            *call = Call::Message { sends: false, blocks, message };
            assumed += 1;
        }
    }
    assumed
}

/// Leaves out messages of which only one side tells, the last ones of their name; how many these are.
pub(super) fn drop_one_sided(ranks: &mut [Rank]) -> u64 {
    // By sender, receiver, communicator and tag: how many are sent and received.
    let mut counts: BTreeMap<(usize, usize, u64, u64), [u64; 2]> = BTreeMap::new();
    let name = |own: usize, sends: bool, message: &Message| {
        let other = rank(message.other);
        let (from, to) = if sends { (own, other) } else { (other, own) };
        (from, to, message.comm, message.tag)
    };
    for (own, of) in ranks.iter().enumerate() {
        for call in &of.calls {
            if let Call::Message { sends, message, .. } = call {
                counts.entry(name(own, *sends, message)).or_default()[usize::from(!sends)] += 1;
            }
        }
    }
    counts.retain(|_, [sent, received]| sent != received);
    let mut seen: BTreeMap<(usize, usize, u64, u64), [u64; 2]> = BTreeMap::new();
    let mut dropped = 0;
    for (own, of) in ranks.iter_mut().enumerate() {
        let mut without = BTreeSet::new();
        for call in &mut of.calls {
            if matches!(call, Call::Wait { message, .. } if without.contains(&message.order)) {
                *call = Call::Nothing;
            }
            let Call::Message { sends, message, .. } = call else { continue };
            let name = name(own, *sends, message);
            let Some([sent, received]) = counts.get(&name) else { continue };
            let seen = &mut seen.entry(name).or_default()[usize::from(!*sends)];
            *seen += 1;
            if *seen > *sent.min(received) {
                without.insert(message.order);
                *call = Call::Nothing;
                dropped += 1;
            }
        }
    }
    dropped
}

/// What was sent to each rank and received by nobody, as the receiver would name it, in the order of sending.
fn not_received(ranks: &[Rank]) -> BTreeMap<usize, Vec<Message>> {
    // By sender, receiver, communicator and tag.
    let mut sent: BTreeMap<(usize, usize, u64, u64), Vec<Message>> = BTreeMap::new();
    let messages = |wanted: bool| {
        ranks.iter().enumerate().flat_map(move |(own, of)| {
            of.calls.iter().filter_map(move |call| match call {
                Call::Message { sends, message, .. } if *sends == wanted => {
                    Some((own, rank(message.other), message))
                }
                _ => None,
            })
        })
    };
    for (own, to, message) in messages(true) {
        let other = number(own);
        let of_name = sent.entry((own, to, message.comm, message.tag)).or_default();
        of_name.push(Message { other, ..*message });
    }
    let mut received: BTreeMap<_, usize> = BTreeMap::new();
    for (own, from, message) in messages(false) {
        *received.entry((from, own, message.comm, message.tag)).or_default() += 1;
    }
    let mut missed: BTreeMap<usize, Vec<Message>> = BTreeMap::new();
    for (name @ (_, to, ..), messages) in sent {
        // Of one name the first ones are received first.
        let received = received.get(&name).copied().unwrap_or(0);
        missed.entry(to).or_default().extend(messages.into_iter().skip(received));
    }
    missed.values_mut().for_each(|of_rank| of_rank.sort_by_key(|message| message.order));
    missed
}
