//! How long a checkpoint takes: the time model of the `SCore` paper, corrected.
//!
//! The paper adds the times of network, disk and XOR, as if one waited for the other, and knows no cost
//! per block. Here streams overlap, so the slowest decides; a hop's latency is paid once for the
//! pipeline to fill; and [`serial`] and [`one_block_in_flight`] keep the paper's own terms, to show what
//! the difference is worth.

use meikyo_units::{BitsPerSecond, Bytes, Nanos};
use serde::Serialize;

use crate::layout::{Layout, Scheme};

/// What a host and its network can do.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Machine {
    /// What one link carries of a program's octets, each way; a little less than its nominal rate.
    pub link: BitsPerSecond,
    /// How many such links a host has.
    pub links: u64,
    /// What a host's disk writes, and reads.
    pub disk: BitsPerSecond,
    /// How fast a host folds blocks together, by the octets that are folded in.
    pub xor: BitsPerSecond,
    /// How fast a host makes Reed-Solomon parity, by octets of data.
    pub code: BitsPerSecond,
    /// How fast a host copies memory.
    pub memory: BitsPerSecond,
    /// What a block costs at every hop beside its transmission.
    pub step: Nanos,
    /// How long it takes until a program stands still on all hosts.
    pub quiesce: Nanos,
    /// How long it takes until all have told that they have written, and know that all have.
    pub commit: Nanos,
}

/// What is written, and in what pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Load {
    /// A host's image.
    pub image: Bytes,
    /// The part of it that changed since the last checkpoint; all of it without increments.
    pub changed: Bytes,
    /// Octets of a block as it goes over a link.
    pub block: Bytes,
}

/// The terms of a checkpoint's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Terms {
    /// What one host sends.
    pub sent: Bytes,
    /// What one host writes.
    pub written: Bytes,
    /// Until the program stands still.
    pub quiesce: Nanos,
    /// The program stands still so long in all: until it does, and while what changed is copied.
    pub stop: Nanos,
    /// What a host sends, at the rate of all its links.
    pub network: Nanos,
    /// What it writes, at the rate of its disk; zero where parity stays in memory.
    pub disk: Nanos,
    /// Folding or coding.
    pub coding: Nanos,
    /// Octets through memory: the copy of the image, and what is received.
    pub memory: Nanos,
    /// Until the first block is through all hops.
    pub fill: Nanos,
    /// Until all know that all have written.
    pub commit: Nanos,
    /// The whole: quiesce, the longest of the four streams, fill and commit.
    pub total: Nanos,
    /// The stream that the others wait for.
    pub bound: Stream,
}

/// What can be the slowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// The links.
    Network,
    /// The disk that image and parity are written to.
    Disk,
    /// Folding or coding.
    Coding,
    /// Copies in memory.
    Memory,
}

impl Stream {
    /// The word for people.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Disk => "disk",
            Self::Coding => "coding",
            Self::Memory => "memory",
        }
    }
}

/// The image is copied once, and every block that is received goes through memory once more.
const MEMORY_PASSES: u64 = 2;

/// Numerator and denominator of what `octets` become.
fn share(octets: Bytes, numerator: usize, denominator: usize) -> Bytes {
    let scaled = u128::from(octets.get()) * numerator as u128 / denominator as u128;
    // Saturates at 16 EiB, which no host has.
    Bytes::new(u64::try_from(scaled).unwrap_or(u64::MAX))
}

/// All links of a host together.
fn all_links(machine: &Machine) -> BitsPerSecond {
    BitsPerSecond::new(machine.link.get().saturating_mul(machine.links))
}

/// What a host sends so that `octets` of every host are protected.
pub fn sent_per_host(layout: &Layout, octets: Bytes) -> Bytes {
    // A ring, or a copy: every octet goes on once. A code: a word's data goes to one host, which
    // sends parity to the others that keep some.
    share(octets, layout.data() + layout.parity() - 1, layout.data())
}

/// What a host writes so that `octets` of every host are protected: its own, and parity of others.
pub fn written_per_host(layout: &Layout, octets: Bytes) -> Bytes {
    share(octets, layout.data() + layout.parity(), layout.data())
}

/// The time of a checkpoint with all streams overlapped.
pub fn checkpoint(layout: &Layout, machine: &Machine, load: &Load) -> Terms {
    let sent = sent_per_host(layout, load.image);
    let written = written_per_host(layout, load.image);
    let network = all_links(machine).serialization_delay(sent);
    let disk = machine.disk.serialization_delay(written);
    let coding = match layout.scheme() {
        Scheme::Partner => Nanos::ZERO,
        Scheme::Ring => {
            machine.xor.serialization_delay(share(load.image, layout.data() - 1, layout.data()))
        }
        Scheme::ReedSolomon(_) => machine.code.serialization_delay(load.image),
    };
    let memory = machine.memory.serialization_delay(load.image) * MEMORY_PASSES;
    let hop = machine.step + machine.link.serialization_delay(load.block);
    let fill = match layout.scheme() {
        Scheme::Partner | Scheme::Ring => {
            (hop + machine.xor.serialization_delay(load.block)) * layout.data() as u64
        }
        // To the host that codes, and on to the last that keeps parity.
        Scheme::ReedSolomon(_) => hop * 2 + machine.code.serialization_delay(load.block),
    };
    let streams = [
        (network, Stream::Network),
        (disk, Stream::Disk),
        (coding, Stream::Coding),
        (memory, Stream::Memory),
    ];
    let mut longest = streams[0];
    for stream in streams {
        if stream.0 > longest.0 {
            longest = stream;
        }
    }
    let stop = machine.quiesce + machine.memory.serialization_delay(load.changed);
    let total = machine.quiesce + longest.0 + fill + machine.commit;
    Terms {
        sent,
        written,
        quiesce: machine.quiesce,
        stop,
        network,
        disk,
        coding,
        memory,
        fill,
        commit: machine.commit,
        total,
        bound: longest.1,
    }
}

/// How long it takes to have a lost host's image and its parity back on another host: the survivors read
/// and fold, and the one that is rebuilt receives and writes.
pub fn rebuild(layout: &Layout, machine: &Machine, load: &Load) -> Nanos {
    let octets = written_per_host(layout, load.image);
    let network = all_links(machine).serialization_delay(octets);
    let disk = machine.disk.serialization_delay(octets);
    let hop = machine.step + machine.link.serialization_delay(load.block);
    network.max(disk) + hop * (layout.hosts() as u64 - 1)
}

/// The paper's own formula (its equations 1 to 5): network, disk and XOR one after the other.
pub fn serial(layout: &Layout, machine: &Machine, load: &Load) -> Nanos {
    let terms = checkpoint(layout, machine, load);
    terms.network + terms.disk + terms.coding
}

/// What is left of a rate when every block waits for the one before it to arrive: `b / (a + b / B)`.
pub fn one_block_in_flight(rate: BitsPerSecond, step: Nanos, block: Bytes) -> BitsPerSecond {
    let nanos = u128::from((step + rate.serialization_delay(block)).get());
    let bit_nanos = u128::from(block.get()) * 8 * 1_000_000_000;
    let rate = bit_nanos.checked_div(nanos).unwrap_or(0);
    // Saturates: no block of 2^61 octets passes in a nanosecond.
    BitsPerSecond::new(u64::try_from(rate).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> BitsPerSecond {
        text.parse().unwrap()
    }

    /// The paper's cluster: two gigabit links, a SCSI disk, XOR of that time's processors.
    fn score(disk: &str) -> Machine {
        Machine {
            link: rate("125MB/s"),
            links: 2,
            disk: rate(disk),
            xor: rate("1GB/s"),
            code: rate("1GB/s"),
            memory: rate("2GB/s"),
            step: Nanos::from_micros(274),
            quiesce: Nanos::ZERO,
            commit: Nanos::ZERO,
        }
    }

    const PAPER: Load = Load {
        image: Bytes::new(400_000_000),
        changed: Bytes::new(400_000_000),
        block: Bytes::new(1 << 20),
    };

    fn seconds(span: Nanos) -> f64 {
        span.as_secs_f64()
    }

    fn is_near(value: f64, expected: f64, tolerance: f64) {
        let error = (value - expected).abs() / expected;
        assert!(error <= tolerance, "{value} is not {expected}");
    }

    #[test]
    fn the_papers_case_by_its_own_formula_and_by_the_corrected_one() {
        let ring = Layout::new(Scheme::Ring, 8).unwrap();
        // Tn = 400 / 250, Td = 8/7 * 400 / 40, Tp = 6/7 * 400 / 1000.
        is_near(seconds(serial(&ring, &score("40MB/s"), &PAPER)), 1.6 + 11.429 + 0.343, 1e-3);
        let terms = checkpoint(&ring, &score("40MB/s"), &PAPER);
        is_near(seconds(terms.network), 1.6, 1e-6);
        is_near(seconds(terms.disk), 11.428_571, 1e-6);
        is_near(seconds(terms.coding), 0.342_857, 1e-5);
        assert_eq!(terms.bound, Stream::Disk);
        is_near(seconds(terms.total), 11.5, 5e-3);
        is_near(seconds(checkpoint(&ring, &score("80MB/s"), &PAPER).total), 5.75, 1e-2);
        // In memory: no disk to wait for.
        let memory = checkpoint(&ring, &score("1000GB/s"), &PAPER);
        assert_eq!(memory.bound, Stream::Network);
        is_near(seconds(memory.total), 1.65, 2e-2);
    }

    #[test]
    fn one_small_block_in_flight_is_what_the_paper_measured() {
        // 1,400 octets at 250 MB/s with 274 us a step: 5 MB/s, so that 400 MB take 80 s.
        let measured =
            one_block_in_flight(rate("250MB/s"), Nanos::from_micros(274), Bytes::new(1_400));
        is_near(seconds(measured.serialization_delay(PAPER.image)), 80.0, 0.01);
        // 95 % of the line takes blocks of 19 a B.
        let large =
            one_block_in_flight(rate("250MB/s"), Nanos::from_micros(274), Bytes::new(1_301_500));
        is_near(large.serialization_delay(PAPER.image).as_secs_f64(), 1.6 / 0.95, 1e-4);
    }

    #[test]
    fn what_a_host_sends_in_a_ring_is_its_image_however_many_hosts_there_are() {
        for hosts in 3..=64 {
            let ring = Layout::new(Scheme::Ring, hosts).unwrap();
            assert_eq!(sent_per_host(&ring, PAPER.image), PAPER.image);
        }
        let coded = Layout::new(Scheme::ReedSolomon(2), 6).unwrap();
        // Four blocks sent to who codes, one parity block sent on: 5 for 4.
        assert_eq!(sent_per_host(&coded, PAPER.image), Bytes::new(500_000_000));
        assert_eq!(written_per_host(&coded, PAPER.image), Bytes::new(600_000_000));
        let copied = Layout::new(Scheme::Partner, 2).unwrap();
        assert_eq!(written_per_host(&copied, PAPER.image), Bytes::new(800_000_000));
    }

    #[test]
    fn a_rebuild_is_bound_by_the_slower_of_network_and_disk() {
        let ring = Layout::new(Scheme::Ring, 8).unwrap();
        is_near(seconds(rebuild(&ring, &score("40MB/s"), &PAPER)), 11.5, 1e-2);
        is_near(seconds(rebuild(&ring, &score("1000GB/s"), &PAPER)), 8.0 / 7.0 * 1.6, 0.05);
    }
}
