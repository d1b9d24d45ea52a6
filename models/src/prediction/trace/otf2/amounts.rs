//! What a collective operation is about, from the octets that its members told to have sent and received.
//!
//! The format does not say what they count. Score-P counts each message that the operation's definition implies, those
//! of a member to itself too, unless it is done in place: an `MPI_Allreduce` of b octets is n b sent and n b received
//! at each of n members. Others (`EZTrace`) tell the size of the buffers that were passed, here b.

/// What a member told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Amounts {
    pub(super) sent: u64,
    pub(super) received: u64,
}

/// A collective operation that takes time, by `OTF2_CollectiveOp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Barrier,
    Broadcast,
    Gather,
    GatherUneven,
    Scatter,
    ScatterUneven,
    AllGather,
    AllGatherUneven,
    AllToAll,
    AllToAllUneven,
    AllReduce,
    Reduce,
    ReduceScatter,
    ReduceScatterBlock,
    Scan,
    ExclusiveScan,
}

/// Their names in MPI, for calls of which nothing was told.
const NAMES: [&str; 17] = [
    "bcast",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "allreduce",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "exscan",
    "barrier",
];

/// Other calls that send, unless their partner is nobody.
const OTHERS: [&str; 11] = [
    "sendrecv",
    "sendrecv_replace",
    "put",
    "get",
    "accumulate",
    "get_accumulate",
    "fetch_and_op",
    "compare_and_swap",
    "rput",
    "rget",
    "raccumulate",
];

/// Whether a call of this name sends something in any case, or but for a partner that is nobody.
pub(super) fn sends(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.trim_start_matches("mpi_").trim_end_matches("_c");
    let at_once = name.strip_prefix('i').unwrap_or(name);
    OTHERS.contains(&name)
        || [name, at_once].iter().any(|name| NAMES.contains(name))
        || name.contains("neighbor_")
}

impl Operation {
    /// The operation of a number; nothing for those that make and free things.
    pub(super) fn of(number: u64) -> Option<Self> {
        Some(match number {
            0 => Self::Barrier,
            1 => Self::Broadcast,
            2 => Self::Gather,
            3 => Self::GatherUneven,
            4 => Self::Scatter,
            5 => Self::ScatterUneven,
            6 => Self::AllGather,
            7 => Self::AllGatherUneven,
            8 => Self::AllToAll,
            9 | 10 => Self::AllToAllUneven,
            11 => Self::AllReduce,
            12 => Self::Reduce,
            13 => Self::ReduceScatter,
            14 => Self::Scan,
            15 => Self::ExclusiveScan,
            16 => Self::ReduceScatterBlock,
            _ => return None,
        })
    }

    /// Whether what goes between two members is not known, only sums.
    pub(super) fn is_apportioned(self) -> bool {
        self == Self::AllToAllUneven
    }

    /// What member `own` called, given what all told.
    pub(super) fn words(self, own: usize, root: u64, all: &[Amounts], sums_all: bool) -> String {
        let members = u64::try_from(all.len()).expect("members are counted in 64 bits");
        let others = || {
            let at_root = |at: usize| u64::try_from(at) == Ok(root);
            all.iter().enumerate().filter(move |(at, _)| !at_root(*at)).map(|(_, told)| told)
        };
        let received = || others().map(|told| told.received).max().unwrap_or(0);
        let sent = || others().map(|told| told.sent).max().unwrap_or(0);
        // Of an operation of all with all.
        let part = |sum: u64| if sums_all { part(sum, members) } else { sum };
        let each_sent = || all.iter().map(|told| part(told.sent));
        let one_sent = || each_sent().max().unwrap_or(0);
        match self {
            Self::Barrier => "barrier".to_owned(),
            Self::Broadcast => format!("bcast {} {root}", received()),
            Self::Reduce => format!("reduce {} 0 {root}", sent()),
            Self::AllReduce => format!("allreduce {} 0", one_sent()),
            Self::Scan => {
                let first = all.first().map_or(0, |told| told.sent);
                format!("scan {} 0", part(first))
            }
            Self::ExclusiveScan => {
                let first = all.first().map_or(0, |told| told.sent);
                let bytes = if sums_all { first / members.saturating_sub(1).max(1) } else { first };
                format!("exscan {bytes} 0")
            }
            Self::AllToAll => format!("alltoall {0} {0}", one_sent()),
            Self::AllGather => format!("allgather {0} {0}", one_sent()),
            Self::Gather => format!("gather {0} {0} {root}", sent()),
            Self::Scatter => format!("scatter {0} {0} {root}", received()),
            Self::GatherUneven => {
                let each: Vec<u64> = all.iter().map(|told| told.sent).collect();
                format!("gatherv {} {} {root}", each[own], words(each.iter().copied()))
            }
            Self::ScatterUneven => {
                let each: Vec<u64> = all.iter().map(|told| told.received).collect();
                format!("scatterv {} {} {root}", words(each.iter().copied()), each[own])
            }
            Self::AllGatherUneven => {
                format!("allgatherv {} {}", part(all[own].sent), words(each_sent()))
            }
            Self::AllToAllUneven => {
                let out = words((0..all.len()).map(|to| between(own, to, all)));
                let into = words((0..all.len()).map(|from| between(from, own, all)));
                let told = all[own];
                format!("alltoallv {} {out} {} {into}", told.sent, told.received)
            }
            Self::ReduceScatter | Self::ReduceScatterBlock => {
                // Buffers tell what the result is as a whole.
                let each = all.iter().map(|told| match (sums_all, self) {
                    (false, Self::ReduceScatter) => told.sent / members.max(1),
                    _ => part(told.received),
                });
                format!("reducescatter {} 0", words(each))
            }
        }
    }
}

/// What goes to each of `members`, of which one is the sender, if `sum` goes to all. In place nothing goes to the sender; that
/// is taken to be so where only then each part is whole, in numbers of four octets if possible.
fn part(sum: u64, members: u64) -> u64 {
    let counts = [members, members.saturating_sub(1)].into_iter().filter(|count| *count > 0);
    let whole = |grain: u64| counts.clone().find(|count| sum.is_multiple_of(grain * count));
    let count = whole(4).or_else(|| whole(1)).unwrap_or_else(|| members.max(1));
    sum / count
}

/// What goes from one member to another, if each member's receives come from all in proportion to what these send.
fn between(from: usize, to: usize, all: &[Amounts]) -> u64 {
    let wide = |told: &Amounts| u128::from(told.received);
    let total: u128 = all.iter().map(wide).sum();
    if total == 0 {
        return 0;
    }
    let before: u128 = all[..to].iter().map(wide).sum();
    let sent = u128::from(all[from].sent);
    let share = |received: u128| sent * received / total;
    let share = share(before + wide(&all[to])) - share(before);
    u64::try_from(share).expect("no more than is sent")
}

fn words(numbers: impl Iterator<Item = u64>) -> String {
    numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
}
