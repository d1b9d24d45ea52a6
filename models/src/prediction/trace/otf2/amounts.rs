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
const OTHERS: [&str; 15] = [
    "sendrecv",
    "sendrecv_replace",
    "isendrecv",
    "isendrecv_replace",
    "pready",
    "rget_accumulate",
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

/// Whether a call sends something in any case, or but for a partner that is nobody; its name is that of the function without
/// `MPI_`.
pub(super) fn sends(name: &str) -> bool {
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

    /// Whether parts of members are not known, only sums.
    pub(super) fn is_apportioned(self, sums_all: bool) -> bool {
        self == Self::AllToAllUneven || self == Self::ReduceScatter && !sums_all
    }
}

/// What all members told of an operation, and what follows from it for each.
#[derive(Debug)]
pub(super) struct All {
    told: Vec<Amounts>,
    sums_all: bool,
    /// To how many members goes what is told to be sent by one.
    count: u64,
    /// The most that others than the root sent and received.
    others: Amounts,
    /// What the members before each one received together, and at last all.
    received_before: Vec<u128>,
}

impl All {
    pub(super) fn new(operation: Operation, root: u64, told: Vec<Amounts>, sums_all: bool) -> Self {
        let at_root = |at: usize| u64::try_from(at) == Ok(root);
        let others = || told.iter().enumerate().filter(|(at, _)| !at_root(*at));
        let most = |of: fn(&Amounts) -> u64| others().map(|(_, told)| of(told)).max().unwrap_or(0);
        let mut sum = 0;
        let before = told.iter().map(|told| {
            sum += u128::from(told.received);
            sum
        });
        Self {
            count: if sums_all { operation.count(&told) } else { 1 },
            others: Amounts { sent: most(|told| told.sent), received: most(|told| told.received) },
            received_before: std::iter::once(0).chain(before).collect(),
            told,
            sums_all,
        }
    }

    /// What member `own` called.
    pub(super) fn words(&self, operation: Operation, root: u64, own: usize) -> String {
        let Self { told, sums_all, count, others, .. } = self;
        let part = |sum: u64| sum / count;
        let most_sent = || part(told.iter().map(|told| told.sent).max().unwrap_or(0));
        let members = u64::try_from(told.len()).expect("members are counted in 64 bits");
        match operation {
            Operation::Barrier => "barrier".to_owned(),
            Operation::Broadcast => format!("bcast {} {root}", others.received),
            Operation::Reduce => format!("reduce {} 0 {root}", others.sent),
            Operation::AllReduce => format!("allreduce {} 0", most_sent()),
            Operation::Scan | Operation::ExclusiveScan => {
                let verb = if operation == Operation::Scan { "scan" } else { "exscan" };
                format!("{verb} {} 0", part(told.first().map_or(0, |told| told.sent)))
            }
            Operation::AllToAll => format!("alltoall {0} {0}", most_sent()),
            Operation::AllGather => format!("allgather {0} {0}", most_sent()),
            Operation::Gather => format!("gather {0} {0} {root}", others.sent),
            Operation::Scatter => format!("scatter {0} {0} {root}", others.received),
            Operation::GatherUneven => {
                let each = words(told.iter().map(|told| told.sent));
                format!("gatherv {} {each} {root}", told[own].sent)
            }
            Operation::ScatterUneven => {
                let each = words(told.iter().map(|told| told.received));
                format!("scatterv {each} {} {root}", told[own].received)
            }
            Operation::AllGatherUneven => {
                let each = words(told.iter().map(|told| part(told.sent)));
                format!("allgatherv {} {each}", part(told[own].sent))
            }
            Operation::AllToAllUneven => {
                let out = words((0..told.len()).map(|to| self.between(own, to)));
                let into = words((0..told.len()).map(|from| self.between(from, own)));
                format!("alltoallv {} {out} {} {into}", told[own].sent, told[own].received)
            }
            Operation::ReduceScatter | Operation::ReduceScatterBlock => {
                let each = words(told.iter().map(|told| match (sums_all, operation) {
                    // Buffers tell what the result is as a whole.
                    (false, Operation::ReduceScatter) => told.sent / members,
                    _ => part(told.received),
                }));
                format!("reducescatter {each} 0")
            }
        }
    }

    /// What goes from one member to another, if each one's receives come from all in proportion to what these send.
    fn between(&self, from: usize, to: usize) -> u64 {
        let total = self.received_before.last().copied().unwrap_or(0);
        let share = |received: u128| {
            let sent = u128::from(self.told[from].sent);
            (sent * received).checked_div(total).unwrap_or(0)
        };
        let share = share(self.received_before[to + 1]) - share(self.received_before[to]);
        u64::try_from(share).expect("no more than is sent")
    }
}

impl Operation {
    /// To how many members goes what a member tells to send: to all, or in place to all others.
    fn count(self, told: &[Amounts]) -> u64 {
        let members = u64::try_from(told.len()).expect("members are counted in 64 bits");
        let others = members.saturating_sub(1).max(1);
        let most = |of: fn(&Amounts) -> u64| told.iter().map(of).max().unwrap_or(0);
        let sum =
            |of: fn(&Amounts) -> u64| told.iter().map(|told| u128::from(of(told))).sum::<u128>();
        let (sent, received) = (|told: &Amounts| told.sent, |told: &Amounts| told.received);
        let of_all = |most: u64| u128::from(most) * u128::from(members);
        let is_in_place = match self {
            // The last one sends to itself only, or to nobody.
            Self::Scan => told.last().is_some_and(|last| last.sent == 0),
            Self::ExclusiveScan => true,
            // What all send arrives at each.
            Self::AllGatherUneven => sum(sent) != of_all(most(received)),
            Self::ReduceScatter => sum(received) != of_all(most(sent)),
            // Sums of numbers, which have four octets at least.
            Self::AllReduce | Self::ReduceScatterBlock => {
                let fits = |count: u64| most(sent).is_multiple_of(4 * count);
                !fits(members.max(1)) && fits(others)
            }
            _ => {
                let fits = |count: u64| most(sent).is_multiple_of(count);
                !fits(members.max(1)) && fits(others)
            }
        };
        if is_in_place { others } else { members.max(1) }
    }
}

fn words(numbers: impl Iterator<Item = u64>) -> String {
    numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
}
