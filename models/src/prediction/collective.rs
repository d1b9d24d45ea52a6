//! Collective operations as messages between ranks, by the algorithms that MPI libraries use.
//!
//! Every function appends one rank's part of an operation over all ranks. Roots are rank 0. The sources
//! of the algorithms: Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication
//! Operations in MPICH" (2005), and Bruck and others, "Efficient Algorithms for All-to-All
//! Communications" (1997).

mod open_mpi;

use super::ranks::Steps;
use crate::parameters::choice;

/// Whose choice of algorithms is followed where none is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// MPICH 1.2: up to 128 bytes a pair by Bruck's algorithm, up to 256 KiB all messages at once, beyond
    /// that pairwise; sums by a reduction and a broadcast.
    Mpich12,
    /// Open MPI 1.3: below 200 bytes and on more than 12 ranks by Bruck's algorithm, below 3,000 bytes all
    /// messages at once, beyond that pairwise; sums by recursive doubling below 10,000 bytes, else on a
    /// ring.
    OpenMpi13,
    /// MPICH 4: on 8 ranks and more up to 256 bytes a pair by Bruck's algorithm, up to 32 KiB 32 messages at once,
    /// beyond that pairwise; sums by recursive doubling up to 2 KiB, else by halving and doubling. The defaults of
    /// `MPIR_CVAR_ALLTOALL_SHORT_MSG_SIZE`, `..._MEDIUM_MSG_SIZE`, `..._THROTTLE` and
    /// `MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE`.
    Mpich4,
    /// Open MPI 4.1: by tables over the number of ranks and the size (`coll_tuned_decision_fixed.c`).
    OpenMpi41,
}
choice!(Library {
    Mpich12 = "mpich-1.2",
    OpenMpi13 = "openmpi-1.3",
    Mpich4 = "mpich-4",
    OpenMpi41 = "openmpi-4.1",
});

/// How every rank gets something from every other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllToAll {
    /// As the library chooses.
    Library,
    /// All messages at once.
    Linear,
    /// 32 messages at once.
    Scattered,
    /// In as many steps as there are other ranks, each with one partner a step.
    Pairwise,
    /// In log2 P steps, in which most data travel several times.
    Bruck,
}
choice!(AllToAll {
    Library = "library",
    Linear = "linear",
    Scattered = "scattered",
    Pairwise = "pairwise",
    Bruck = "bruck",
});

/// How every rank gets the sum of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllReduce {
    /// As the library chooses.
    Library,
    /// Up a binomial tree to rank 0, and down again.
    ReduceBroadcast,
    /// With a partner at twice the distance in every step.
    RecursiveDoubling,
    /// A part of the data in each of 2 (P - 1) steps around a ring.
    Ring,
    /// Half the data with a partner at the least distance, a quarter at the next, until each rank has the sum of its
    /// part, and all of it back.
    HalvingDoubling,
}
choice!(AllReduce {
    Library = "library",
    ReduceBroadcast = "reduce-broadcast",
    RecursiveDoubling = "recursive-doubling",
    Ring = "ring",
    HalvingDoubling = "halving-doubling",
});

/// Which algorithms a program's library uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collectives {
    /// Whose choice it is where no algorithm is named.
    pub library: Library,
    /// For all-to-all exchanges.
    pub all_to_all: AllToAll,
    /// For sums that all ranks get.
    pub all_reduce: AllReduce,
}

/// How many messages MPICH sends at once (`MPIR_CVAR_ALLTOALL_THROTTLE`).
const AT_ONCE: u32 = 32;

/// Octets of what is summed up: a number of double precision.
const ELEMENT_BYTES: u64 = 8;

/// What messages of collective operations are called; programs use names below these.
const TAG_ALL_TO_ALL: u32 = 1 << 20;
const TAG_ALL_REDUCE: u32 = TAG_ALL_TO_ALL + 1;
const TAG_REDUCE: u32 = TAG_ALL_TO_ALL + 2;
const TAG_BROADCAST: u32 = TAG_ALL_TO_ALL + 3;
const TAG_BARRIER: u32 = TAG_ALL_TO_ALL + 4;
const TAG_GATHER: u32 = TAG_ALL_TO_ALL + 5;
const TAG_SCATTER: u32 = TAG_ALL_TO_ALL + 6;
const TAG_ALL_GATHER: u32 = TAG_ALL_TO_ALL + 7;
const TAG_SCAN: u32 = TAG_ALL_TO_ALL + 8;

impl Collectives {
    /// Every rank sends `bytes` to every other.
    pub fn all_to_all(&self, steps: &mut Steps, ranks: u32, bytes: u64) {
        let by_library = match self.library {
            Library::Mpich12 if bytes <= 128 => AllToAll::Bruck,
            Library::Mpich12 if bytes <= 262_144 => AllToAll::Linear,
            Library::OpenMpi13 if bytes < 200 && ranks > 12 => AllToAll::Bruck,
            Library::OpenMpi13 if bytes < 3_000 => AllToAll::Linear,
            Library::Mpich4 if bytes <= 256 && ranks >= 8 => AllToAll::Bruck,
            Library::Mpich4 if bytes <= 32_768 => AllToAll::Scattered,
            Library::Mpich12 | Library::OpenMpi13 | Library::Mpich4 => AllToAll::Pairwise,
            Library::OpenMpi41 => open_mpi::all_to_all(ranks, bytes),
        };
        match self.all_to_all {
            AllToAll::Library => exchanged(by_library, steps, ranks, bytes),
            named => exchanged(named, steps, ranks, bytes),
        }
    }

    /// Every rank sends `bytes` to every other, as programs with amounts of their own for each pair do
    /// (`MPI_Alltoallv`): libraries send all of it at once.
    pub fn all_to_all_uneven(&self, steps: &mut Steps, ranks: u32, bytes: u64) {
        match self.all_to_all {
            AllToAll::Pairwise => exchanged(AllToAll::Pairwise, steps, ranks, bytes),
            _ => exchanged(AllToAll::Linear, steps, ranks, bytes),
        }
    }

    /// Every rank gets the sum of `bytes` of all.
    pub fn all_reduce(&self, steps: &mut Steps, ranks: u32, bytes: u64) {
        let by_library = match self.library {
            Library::Mpich12 => AllReduce::ReduceBroadcast,
            Library::OpenMpi13 if bytes < 10_000 => AllReduce::RecursiveDoubling,
            Library::OpenMpi13 => AllReduce::Ring,
            Library::Mpich4 if bytes <= 2_048 => AllReduce::RecursiveDoubling,
            Library::Mpich4 => AllReduce::HalvingDoubling,
            Library::OpenMpi41 => open_mpi::all_reduce(ranks, bytes),
        };
        let too_few = bytes < ELEMENT_BYTES * u64::from(ranks);
        let by_library = match (self.library, by_library) {
            // There is not an element for each rank.
            (
                Library::Mpich4 | Library::OpenMpi41,
                AllReduce::Ring | AllReduce::HalvingDoubling,
            ) if too_few => AllReduce::RecursiveDoubling,
            (_, chosen) => chosen,
        };
        match self.all_reduce {
            AllReduce::Library => summed(by_library, steps, ranks, bytes),
            named => summed(named, steps, ranks, bytes),
        }
    }
}

fn exchanged(algorithm: AllToAll, steps: &mut Steps, ranks: u32, bytes: u64) {
    const WHAT: &str = "all-to-all";
    let own = steps.rank();
    let behind = |by: u32| (own + ranks - by) % ranks;
    let ahead = |by: u32| (own + by) % ranks;
    match algorithm {
        AllToAll::Library => unreachable!("the library has chosen"),
        AllToAll::Linear => {
            (1..ranks).for_each(|by| steps.receive(ahead(by), TAG_ALL_TO_ALL));
            (1..ranks).for_each(|by| steps.send(ahead(by), TAG_ALL_TO_ALL, bytes));
            steps.wait(WHAT);
        }
        AllToAll::Scattered => {
            // The first of them is the rank itself.
            let mut first = 0;
            while first < ranks {
                let end = ranks.min(first + AT_ONCE);
                (first..end).for_each(|by| steps.receive(ahead(by), TAG_ALL_TO_ALL));
                (first..end).for_each(|by| steps.send(behind(by), TAG_ALL_TO_ALL, bytes));
                steps.wait(WHAT);
                first = end;
            }
        }
        AllToAll::Pairwise => {
            for by in 1..ranks {
                let (from, to) = if ranks.is_power_of_two() {
                    (own ^ by, own ^ by)
                } else {
                    (behind(by), ahead(by))
                };
                steps.exchange(from, to, TAG_ALL_TO_ALL, bytes, WHAT);
            }
        }
        AllToAll::Bruck => {
            for by in distances(ranks) {
                let blocks = (1..ranks).filter(|block| block & by != 0).count() as u64;
                steps.exchange(behind(by), ahead(by), TAG_ALL_TO_ALL, blocks * bytes, WHAT);
            }
        }
    }
}

fn summed(algorithm: AllReduce, steps: &mut Steps, ranks: u32, bytes: u64) {
    match algorithm {
        AllReduce::Library => unreachable!("the library has chosen"),
        AllReduce::ReduceBroadcast => {
            reduce(steps, ranks, bytes);
            broadcast(steps, ranks, bytes);
        }
        AllReduce::RecursiveDoubling => folded(steps, ranks, bytes, |steps, partner, power| {
            for distance in distances(power) {
                let other = partner(distance);
                steps.exchange(other, other, TAG_ALL_REDUCE, bytes, "all-reduce");
            }
        }),
        AllReduce::HalvingDoubling => folded(steps, ranks, bytes, |steps, partner, power| {
            let part = |distance: u32| bytes.div_ceil(2 * u64::from(distance));
            let steps_of = distances(power).chain(distances(power).rev());
            for distance in steps_of {
                let other = partner(distance);
                steps.exchange(other, other, TAG_ALL_REDUCE, part(distance), "all-reduce");
            }
        }),
        AllReduce::Ring => {
            let (own, part) = (steps.rank(), bytes.div_ceil(u64::from(ranks)));
            for _ in 0..2 * (ranks - 1) {
                let (from, to) = ((own + ranks - 1) % ranks, (own + 1) % ranks);
                steps.exchange(from, to, TAG_ALL_REDUCE, part, "all-reduce");
            }
        }
    }
}

/// The powers of two below the number of ranks, the least first.
fn distances(ranks: u32) -> impl DoubleEndedIterator<Item = u32> {
    (0..u32::BITS - (ranks - 1).leading_zeros()).map(|step| 1 << step)
}

/// Rank 0 gets the sum of `bytes` of all ranks, by a binomial tree.
pub fn reduce(steps: &mut Steps, ranks: u32, bytes: u64) {
    let own = steps.rank();
    for distance in distances(ranks) {
        if own & distance != 0 {
            steps.send(own - distance, TAG_REDUCE, bytes);
            steps.wait("reduce");
            return;
        }
        if own + distance < ranks {
            steps.receive(own + distance, TAG_REDUCE);
            steps.wait("reduce");
        }
    }
}

/// All ranks get `bytes` of rank 0, by a binomial tree.
pub fn broadcast(steps: &mut Steps, ranks: u32, bytes: u64) {
    let own = steps.rank();
    let above = distances(ranks).find(|distance| own & distance != 0);
    if let Some(distance) = above {
        steps.receive(own - distance, TAG_BROADCAST);
        steps.wait("broadcast");
    }
    for distance in distances(ranks).rev().filter(|distance| above.is_none_or(|up| *distance < up))
    {
        if own + distance < ranks {
            steps.send(own + distance, TAG_BROADCAST, bytes);
            steps.wait("broadcast");
        }
    }
}

/// All ranks wait for each other: in every step each hears of twice as many (dissemination).
pub fn barrier(steps: &mut Steps, ranks: u32) {
    let own = steps.rank();
    for by in distances(ranks) {
        let (from, to) = ((own + ranks - by) % ranks, (own + by) % ranks);
        steps.exchange(from, to, TAG_BARRIER, 0, "barrier");
    }
}

/// Rank 0 gets `bytes` of each rank, by a binomial tree.
pub fn gather(steps: &mut Steps, ranks: u32, bytes: u64) {
    let own = steps.rank();
    for distance in distances(ranks) {
        if own & distance != 0 {
            let below = u64::from(distance.min(ranks - own));
            steps.send(own - distance, TAG_GATHER, below * bytes);
            steps.wait("gather");
            return;
        }
        if own + distance < ranks {
            steps.receive(own + distance, TAG_GATHER);
            steps.wait("gather");
        }
    }
}

/// Each rank gets `bytes` of rank 0, by a binomial tree.
pub fn scatter(steps: &mut Steps, ranks: u32, bytes: u64) {
    let own = steps.rank();
    let above = distances(ranks).find(|distance| own & distance != 0);
    if let Some(distance) = above {
        steps.receive(own - distance, TAG_SCATTER);
        steps.wait("scatter");
    }
    for distance in distances(ranks).rev().filter(|distance| above.is_none_or(|up| *distance < up))
    {
        let to = own + distance;
        if to < ranks {
            let below = u64::from(distance.min(ranks - to));
            steps.send(to, TAG_SCATTER, below * bytes);
            steps.wait("scatter");
        }
    }
}

/// Rank 0 gets what each rank has, from each of them.
pub fn gather_uneven(steps: &mut Steps, each: &[u64]) {
    let others = || (1..).zip(each.iter().skip(1)).filter(|(_, bytes)| **bytes > 0);
    if steps.rank() == 0 {
        others().for_each(|(from, _)| steps.receive(from, TAG_GATHER));
    } else if let Some((_, bytes)) = others().find(|(own, _)| *own == steps.rank()) {
        steps.send(0, TAG_GATHER, *bytes);
    }
    steps.wait("gather");
}

/// Each rank gets what is its own of rank 0, from that.
pub fn scatter_uneven(steps: &mut Steps, each: &[u64]) {
    let others = || (1..).zip(each.iter().skip(1)).filter(|(_, bytes)| **bytes > 0);
    if steps.rank() == 0 {
        others().for_each(|(to, bytes)| steps.send(to, TAG_SCATTER, *bytes));
    } else if others().any(|(own, _)| own == steps.rank()) {
        steps.receive(0, TAG_SCATTER);
    }
    steps.wait("scatter");
}

/// All ranks get what each has. Up to 80 KiB in all and for a power of two, in log2 P steps with partners at
/// twice the distance; else around a ring.
pub fn all_gather(steps: &mut Steps, each: &[u64]) {
    const WHAT: &str = "all-gather";
    const DOUBLED_MAX: u64 = 81_920;
    let ranks = super::ranks::number(each.len());
    let own = steps.rank();
    let all: u64 = each.iter().sum();
    let of = |at: u32| each[super::ranks::rank(at % ranks)];
    if ranks.is_power_of_two() && all <= DOUBLED_MAX {
        for distance in distances(ranks) {
            let first = own - own % distance;
            let has = (first..first + distance).map(of).sum();
            steps.exchange(own ^ distance, own ^ distance, TAG_ALL_GATHER, has, WHAT);
        }
        return;
    }
    let (from, to) = ((own + ranks - 1) % ranks, (own + 1) % ranks);
    for step in 0..ranks - 1 {
        steps.exchange(from, to, TAG_ALL_GATHER, of(own + ranks - step), WHAT);
    }
}

/// All ranks get the sum of those up to them: with partners at twice the distance in every step.
pub fn scan(steps: &mut Steps, ranks: u32, bytes: u64) {
    let own = steps.rank();
    for other in distances(ranks).map(|distance| own ^ distance).filter(|other| *other < ranks) {
        steps.exchange(other, other, TAG_SCAN, bytes, "scan");
    }
}

/// Every rank sends another amount to each: all of it at once, and nothing where there is nothing.
pub fn exchange_uneven(steps: &mut Steps, out: &[u64], into: &[u64]) {
    for (from, bytes) in (0..).zip(into) {
        if *bytes > 0 {
            steps.receive(from, TAG_ALL_TO_ALL);
        }
    }
    for (to, bytes) in (0..).zip(out) {
        if *bytes > 0 {
            steps.send(to, TAG_ALL_TO_ALL, *bytes);
        }
    }
    steps.wait("all-to-all");
}

/// Lets a power of two of ranks sum up by `among`, which gets a rank's partner by its distance. Where the ranks are no power
/// of two, the first ones go in pairs, of which one stands for both.
fn folded(
    steps: &mut Steps,
    ranks: u32,
    bytes: u64,
    among: impl FnOnce(&mut Steps, &dyn Fn(u32) -> u32, u32),
) {
    const WHAT: &str = "all-reduce";
    let own = steps.rank();
    let power = 1 << (u32::BITS - 1 - ranks.leading_zeros());
    let paired = 2 * (ranks - power);
    if own < paired && own.is_multiple_of(2) {
        steps.send(own + 1, TAG_ALL_REDUCE, bytes);
        steps.wait(WHAT);
        steps.receive(own + 1, TAG_ALL_REDUCE);
        steps.wait(WHAT);
        return;
    }
    let number = if own < paired {
        steps.receive(own - 1, TAG_ALL_REDUCE);
        steps.wait(WHAT);
        own / 2
    } else {
        own - paired / 2
    };
    let partner = |distance: u32| {
        let other = number ^ distance;
        if other < paired / 2 { 2 * other + 1 } else { other + paired / 2 }
    };
    among(steps, &partner, power);
    if own < paired {
        steps.send(own - 1, TAG_ALL_REDUCE, bytes);
        steps.wait(WHAT);
    }
}

#[cfg(test)]
mod tests;
