//! What Open MPI 4.1 chooses, by the number of ranks and the size: the tables of `coll_tuned_decision_fixed.c` for
//! operations that commute, which its developers averaged over measurements on their clusters.
//!
//! `linear_sync` without a limit is all messages at once, and `segmented_ring` a ring whose messages of less than 1 MB are not cut.

use super::{AllReduce, AllToAll};

/// Algorithms by the size: each up to below so many octets, the last beyond.
type BySize<T> = (&'static [(u64, T)], T);

/// The row of the first number of ranks that is not reached, else the last row.
fn chosen<T: Copy>(table: &[(u32, BySize<T>)], ranks: u32, bytes: u64) -> T {
    let row = table.iter().find(|(below, _)| ranks < *below).or_else(|| table.last());
    let (_, (sizes, beyond)) = row.expect("a table has rows");
    sizes.iter().find(|(below, _)| bytes < *below).map_or(*beyond, |(_, algorithm)| *algorithm)
}

/// How all-to-all exchanges of so many octets for each pair are done.
pub(super) fn all_to_all(ranks: u32, bytes: u64) -> AllToAll {
    use AllToAll::{Bruck, Linear, Pairwise};
    const TABLE: &[(u32, BySize<AllToAll>)] = &[
        // Two ranks exchange, whatever it is called.
        (3, (&[], Pairwise)),
        (8, (&[(524_288, Linear), (1_048_576, Pairwise)], Linear)),
        (16, (&[], Linear)),
        (32, (&[(4, Linear), (512, Bruck)], Linear)),
        (64, (&[(512, Bruck)], Linear)),
        (256, (&[(1_024, Bruck), (262_144, Linear)], Pairwise)),
        (512, (&[(1_024, Bruck), (32_768, Linear)], Pairwise)),
        (1_024, (&[(512, Bruck), (262_144, Linear)], Pairwise)),
        (2_048, (&[(512, Bruck)], Linear)),
        (4_096, (&[(1_024, Bruck)], Linear)),
        (u32::MAX, (&[(2_048, Bruck)], Linear)),
    ];
    chosen(TABLE, ranks, bytes)
}

/// How sums of so many octets that all ranks get are made, with an element for each rank at least. Rows in which rings
/// are for less than that are left out: there a ring is recursive doubling.
pub(super) fn all_reduce(ranks: u32, bytes: u64) -> AllReduce {
    use AllReduce::{HalvingDoubling, RecursiveDoubling, ReduceBroadcast, Ring};
    const TABLE: &[(u32, BySize<AllReduce>)] = &[
        (
            4,
            (
                &[
                    (4_096, RecursiveDoubling),
                    (8_192, Ring),
                    (16_384, RecursiveDoubling),
                    (262_144, Ring),
                ],
                HalvingDoubling,
            ),
        ),
        (16, (&[(8_192, RecursiveDoubling)], HalvingDoubling)),
        (32, (&[(4_096, RecursiveDoubling)], HalvingDoubling)),
        (64, (&[], HalvingDoubling)),
        (128, (&[(262_144, RecursiveDoubling)], HalvingDoubling)),
        (256, (&[(131_072, ReduceBroadcast), (262_144, RecursiveDoubling)], HalvingDoubling)),
        (512, (&[(4_096, ReduceBroadcast)], HalvingDoubling)),
        (4_096, (&[(2_048, ReduceBroadcast), (16_384, RecursiveDoubling)], HalvingDoubling)),
        (u32::MAX, (&[(2_048, ReduceBroadcast), (32_768, RecursiveDoubling)], HalvingDoubling)),
    ];
    chosen(TABLE, ranks, bytes)
}
