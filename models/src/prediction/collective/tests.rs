//! What each algorithm sends, against closed forms, and what libraries choose.

use super::*;
use crate::prediction::ranks::Op;

/// Octets that each rank sends in an operation, once every message has been found to be received.
fn sent(ranks: u32, perform: impl Fn(&mut Steps)) -> Vec<u64> {
    use std::collections::BTreeMap;
    let mut open: BTreeMap<(u32, u32, u32), i64> = BTreeMap::new();
    let mut all = Vec::new();
    for own in 0..ranks {
        let mut steps = Steps::of(own);
        perform(&mut steps);
        let mut octets = 0;
        for op in steps.finish() {
            match op {
                Op::Send { to, tag, bytes } => {
                    *open.entry((own, to, tag)).or_default() += 1;
                    octets += bytes;
                }
                Op::Receive { from, tag } => *open.entry((from, own, tag)).or_default() -= 1,
                _ => {}
            }
        }
        all.push(octets);
    }
    assert!(open.values().all(|left| *left == 0), "{open:?}");
    all
}

fn with(library: Library) -> Collectives {
    Collectives { library, all_to_all: AllToAll::Library, all_reduce: AllReduce::Library }
}

#[test]
fn halving_and_doubling_sends_twice_the_data_but_for_the_own_part() {
    for ranks in [2, 4, 8, 16] {
        let bytes = 1 << 20;
        let each = 2 * bytes / u64::from(ranks) * u64::from(ranks - 1);
        let all = sent(ranks, |steps| summed(AllReduce::HalvingDoubling, steps, ranks, bytes));
        assert_eq!(all, vec![each; all.len()], "{ranks}");
    }
    // Of six ranks two stand for two others each, which send and get everything once.
    let all = sent(6, |steps| summed(AllReduce::HalvingDoubling, steps, 6, 4_000));
    assert_eq!(all, [4_000, 6_000 + 4_000, 4_000, 6_000 + 4_000, 6_000, 6_000]);
    let all = sent(6, |steps| summed(AllReduce::RecursiveDoubling, steps, 6, 4_000));
    assert_eq!(all, [4_000, 8_000 + 4_000, 4_000, 8_000 + 4_000, 8_000, 8_000]);
}

#[test]
fn scattered_messages_are_all_sent_some_at_once() {
    for ranks in [2, 7, 33, 64, 70] {
        let all = sent(ranks, |steps| exchanged(AllToAll::Scattered, steps, ranks, 10));
        assert_eq!(all, vec![10 * u64::from(ranks - 1); all.len()]);
    }
    let mut steps = Steps::of(5);
    exchanged(AllToAll::Scattered, &mut steps, 70, 10);
    let ops = steps.finish();
    let mut under_way = 0;
    let mut most = 0;
    for op in &ops {
        match op {
            Op::Send { .. } => under_way += 1,
            Op::Wait { .. } => under_way = 0,
            _ => {}
        }
        most = most.max(under_way);
    }
    assert_eq!(most, 32);
}

/// Rows of the tables of Open MPI 4.1.4 and of the documented defaults of MPICH 4, at both sides of their bounds.
#[test]
fn libraries_choose_by_ranks_and_size() {
    let messages = |library, ranks: u32, bytes: u64| {
        let mut steps = Steps::of(0);
        with(library).all_reduce(&mut steps, ranks, bytes);
        let sends = steps.finish().into_iter().filter(|op| matches!(op, Op::Send { .. }));
        sends.count()
    };
    // Recursive doubling sends log2 P messages, halving and doubling twice as many.
    for (library, ranks, bytes, count) in [
        (Library::OpenMpi41, 8, 8_191, 3),
        (Library::OpenMpi41, 8, 8_192, 6),
        (Library::OpenMpi41, 64, 262_143, 6),
        (Library::OpenMpi41, 64, 262_144, 12),
        (Library::OpenMpi41, 4, 15, 2),
        (Library::OpenMpi41, 3, 8_191, 4),
        (Library::OpenMpi41, 128, 262_144, 14),
        (Library::Mpich4, 512, 4_095, 9),
        (Library::Mpich4, 512, 4_096, 18),
        (Library::OpenMpi41, 4, 16, 2),
        (Library::Mpich4, 8, 2_048, 3),
        (Library::Mpich4, 8, 2_049, 6),
        (Library::Mpich12, 8, 2_049, 3),
    ] {
        assert_eq!(messages(library, ranks, bytes), count, "{library:?} {ranks} {bytes}");
    }
    let waits = |library, ranks: u32, bytes: u64| {
        let mut steps = Steps::of(0);
        with(library).all_to_all(&mut steps, ranks, bytes);
        steps.finish().into_iter().filter(|op| matches!(op, Op::Wait { .. })).count()
    };
    // All at once is one wait, pairwise one for each other rank, Bruck's log2 P.
    for (library, ranks, bytes, count) in [
        (Library::OpenMpi41, 8, 1 << 20, 1),
        (Library::OpenMpi41, 4, 524_287, 1),
        (Library::OpenMpi41, 4, 524_288, 3),
        (Library::OpenMpi41, 128, 1_023, 7),
        (Library::OpenMpi41, 128, 1_024, 1),
        (Library::OpenMpi41, 128, 262_144, 127),
        (Library::Mpich4, 8, 256, 3),
        (Library::Mpich4, 4, 256, 1),
        (Library::Mpich4, 64, 32_768, 2),
        (Library::Mpich4, 64, 32_769, 63),
    ] {
        assert_eq!(waits(library, ranks, bytes), count, "{library:?} {ranks} {bytes}");
    }
}
