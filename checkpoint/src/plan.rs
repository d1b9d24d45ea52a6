//! Which scheme to take: each that fits the group with its predicted cost and what it survives.

use meikyo_units::{Bytes, Nanos};
use serde::Serialize;

use crate::interval::{self, Risk};
use crate::layout::{Layout, Scheme};
use crate::model::{self, Load, Machine, Terms};

/// What a plan is made for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Wishes {
    /// Hosts of the program.
    pub hosts: usize,
    /// Hosts of a group.
    pub group: usize,
    /// How many hosts of a group may be lost at once.
    pub losses: usize,
    /// Mean time between failures of one host.
    pub between_failures: Nanos,
    /// From a host's death until it is known and another stands ready.
    pub detection: Nanos,
    /// The largest part of a program's speed that a checkpoint under way takes, by its use of processor
    /// and memory: 0.05 for 5 %.
    pub interference: f64,
}

/// One scheme, and what it would mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Candidate {
    /// The scheme that the figures are for.
    pub scheme: Scheme,
    /// Hosts of a group that can be lost at once, whichever they are.
    pub losses: usize,
    /// The terms of a checkpoint's time.
    pub terms: Terms,
    /// The same by the paper's formula, in which nothing overlaps.
    pub serial: Nanos,
    /// Until a lost host's data is whole again elsewhere.
    pub rebuild: Nanos,
    /// From the end of a checkpoint to the begin of the next.
    pub interval: Nanos,
    /// The same by Young's formula.
    pub interval_young: Nanos,
    /// The part of the time that is lost at that interval.
    pub lost_share: f64,
    /// How often a year, in the mean, a group loses more hosts than it survives before the first is
    /// rebuilt.
    pub unrecoverable_per_year: f64,
}

/// A level of the chosen scheme: what its checkpoints take, and how often one pays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LevelPlan {
    /// From the stop until it is whole.
    pub total: Nanos,
    /// From one to the next.
    pub interval: Nanos,
    /// Mean time between the failures that it is for.
    pub between_failures: Nanos,
}

/// Both levels of the chosen scheme, where most checkpoints are kept in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LevelsPlan {
    /// In memory: against every failure that parity makes up for.
    pub memory: LevelPlan,
    /// On disk: against the loss of more memory than that.
    pub disk: LevelPlan,
    /// What a host gives for one in memory and the next that is being written.
    pub memory_bytes: Bytes,
}

/// All schemes that fit, and the one to take.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// Those that fit the group, in a fixed order.
    pub candidates: Vec<Candidate>,
    /// Where the chosen one stands in them; none when none survives what it must.
    pub chosen: Option<usize>,
    /// What levels would mean for it.
    pub levels: Option<LevelsPlan>,
}

const YEAR: Nanos = Nanos::from_secs(31_557_600);

/// Compares all schemes. The one chosen is, of those that survive `wishes.losses`, the one that loses the
/// least time, and of equals the one that writes the least.
pub fn plan(wishes: &Wishes, machine: &Machine, load: &Load) -> Plan {
    let most = wishes.losses.max(2);
    let schemes = [Scheme::Partner, Scheme::Ring];
    let schemes = schemes.into_iter().chain((2..=most).map(Scheme::ReedSolomon));
    let layouts = schemes.filter_map(|scheme| Layout::new(scheme, wishes.group).ok());
    let candidates: Vec<Candidate> =
        layouts.map(|layout| candidate(&layout, wishes, machine, load)).collect();
    let fit = |candidate: &Candidate| candidate.losses >= wishes.losses;
    // A tenth of a per cent of the time is less than what any figure here is known to.
    let key = |candidate: &Candidate| {
        ((candidate.lost_share * 1_000.0).round(), candidate.terms.written.get())
    };
    let chosen = candidates
        .iter()
        .enumerate()
        .filter(|(_, candidate)| fit(candidate))
        .min_by(|(_, a), (_, b)| {
            key(a).0.total_cmp(&key(b).0).then_with(|| key(a).1.cmp(&key(b).1))
        })
        .map(|(at, _)| at);
    let levels = chosen.and_then(|at| candidates.get(at)).and_then(|candidate| {
        let layout = Layout::new(candidate.scheme, wishes.group).ok()?;
        Some(levels(&layout, wishes, machine, load, &candidate.terms))
    });
    Plan { candidates, chosen, levels }
}

/// What is written to memory is bound by the network or by how fast memory is copied.
fn levels(
    layout: &Layout,
    wishes: &Wishes,
    machine: &Machine,
    load: &Load,
    on_disk: &Terms,
) -> LevelsPlan {
    let in_memory = Machine { disk: machine.memory, ..*machine };
    let terms = model::checkpoint(layout, &in_memory, load);
    let risk = risk(&terms, model::rebuild(layout, &in_memory, load), wishes);
    let mean = risk.between_failures.as_secs_f64() / interval::BEYOND_PARITY;
    LevelsPlan {
        memory: LevelPlan {
            total: terms.total,
            interval: interval::daly(&risk),
            between_failures: risk.between_failures,
        },
        disk: LevelPlan {
            total: on_disk.total,
            interval: interval::beyond_parity(on_disk.total, wishes.between_failures, wishes.hosts),
            between_failures: Nanos::from_secs_f64(mean),
        },
        memory_bytes: Bytes::new(2 * terms.written.get()),
    }
}

fn candidate(layout: &Layout, wishes: &Wishes, machine: &Machine, load: &Load) -> Candidate {
    let terms = model::checkpoint(layout, machine, load);
    let rebuild = model::rebuild(layout, machine, load);
    let risk = risk(&terms, rebuild, wishes);
    let interval = interval::daly(&risk);
    Candidate {
        scheme: layout.scheme(),
        losses: layout.losses(),
        terms,
        serial: model::serial(layout, machine, load),
        rebuild,
        interval,
        interval_young: interval::young(&risk),
        lost_share: interval::lost_share(&risk, interval),
        unrecoverable_per_year: unrecoverable_per_year(layout, wishes, rebuild),
    }
}

/// What a checkpoint takes from the program: the stop, and a share of its speed while the rest is
/// written behind it. A failure meanwhile falls back on the checkpoint before, so the restart is
/// later by the time that a checkpoint takes.
fn risk(terms: &Terms, rebuild: Nanos, wishes: &Wishes) -> Risk {
    let behind = Nanos::from_secs_f64(terms.total.as_secs_f64() * wishes.interference);
    let mean = Nanos::new(wishes.between_failures.get() / (wishes.hosts.max(1) as u64));
    Risk {
        cost: terms.stop + behind,
        restart: wishes.detection + rebuild + terms.total,
        between_failures: mean,
    }
}

/// Another `m` hosts of the same group fail before the first is rebuilt; of a copy, only a neighbour
/// counts. Failures are independent, and rare against the time of a rebuild.
fn unrecoverable_per_year(layout: &Layout, wishes: &Wishes, rebuild: Nanos) -> f64 {
    let rate = 1.0 / wishes.between_failures.as_secs_f64();
    let window = (wishes.detection + rebuild).as_secs_f64();
    let mut per_second = rate * real(wishes.hosts);
    for nth in 1..=layout.parity() {
        let endangered = match layout.scheme() {
            Scheme::Partner => 2.min(layout.hosts() - 1),
            Scheme::Ring | Scheme::ReedSolomon(_) => layout.hosts() - nth,
        };
        per_second *= real(endangered) * rate * window / real(nth);
    }
    per_second * YEAR.as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "counts of hosts are far below 2^53")]
const fn real(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine {
            link: "118MB/s".parse().unwrap(),
            links: 1,
            disk: "500MB/s".parse().unwrap(),
            xor: "10GB/s".parse().unwrap(),
            code: "5GB/s".parse().unwrap(),
            memory: "8GB/s".parse().unwrap(),
            step: Nanos::from_micros(100),
            quiesce: Nanos::from_millis(1),
            commit: Nanos::from_millis(10),
        }
    }

    fn wishes(losses: usize) -> Wishes {
        Wishes {
            hosts: 32,
            group: 8,
            losses,
            between_failures: Nanos::from_secs(31_557_600),
            detection: Nanos::from_secs(2),
            interference: 0.05,
        }
    }

    const LOAD: Load = Load {
        image: Bytes::new(8_000_000_000),
        changed: Bytes::new(800_000_000),
        block: Bytes::new(1 << 18),
    };

    #[test]
    fn one_loss_is_left_to_the_ring_and_two_to_a_code() {
        let chosen = |losses| {
            let plan = plan(&wishes(losses), &machine(), &LOAD);
            plan.chosen.map(|at| plan.candidates[at].scheme)
        };
        // A copy loses as little time and writes twice the image.
        assert_eq!(chosen(1), Some(Scheme::Ring));
        assert_eq!(chosen(2), Some(Scheme::ReedSolomon(2)));
        assert_eq!(chosen(3), Some(Scheme::ReedSolomon(3)));
        assert_eq!(chosen(8), None);
    }

    #[test]
    fn losses_beyond_parity_are_as_rare_as_counting_says() {
        let plan = plan(&wishes(1), &machine(), &LOAD);
        let ring = plan.candidates[1];
        // 32 hosts fail once a year each; each time one of 7 others would have to fail within the
        // detection and the rebuild of 9.14 GB at 118 MB/s.
        let window_s = 2.0 + 8.0 / 7.0 * 8_000.0 / 118.0;
        let expected = 32.0 * 7.0 * window_s / 31_557_600.0;
        let error = (ring.unrecoverable_per_year - expected).abs() / expected;
        assert!(error < 0.001, "{} {expected}", ring.unrecoverable_per_year);
        // A code with two parity blocks is safer by far, a copy safer by what has to coincide.
        assert!(plan.candidates[2].unrecoverable_per_year < expected / 1_000.0);
        assert!(plan.candidates[0].unrecoverable_per_year < expected);
    }

    #[test]
    fn memory_is_not_bound_by_disks_and_disks_get_what_memory_does_not_survive() {
        let machine = Machine { link: "1180MB/s".parse().unwrap(), ..machine() };
        let plan = plan(&wishes(1), &machine, &LOAD);
        let LevelsPlan { memory, disk, memory_bytes } = plan.levels.unwrap();
        // 8 GB and a seventh of it as parity, twice; on a disk of 500 MB/s that takes 18.3 s.
        assert!(memory_bytes.get().abs_diff(18_285_714_286) < 10_000_000, "{memory_bytes}");
        assert!((disk.total.as_secs_f64() - 18.3).abs() < 0.2, "{}", disk.total);
        // 8 GB go over the network in 6.8 s, and memory is written in 1.1 s.
        assert!((memory.total.as_secs_f64() - 6.8).abs() < 0.2, "{}", memory.total);
        // Young: 5 % of 18.3 s, and 32 hosts of which one fails in a year, 15 % of it beyond parity.
        let mean_s = 31_557_600.0 / 32.0 / 0.15;
        let young_s = f64::sqrt(2.0 * 0.05 * 18.3 * mean_s);
        let off = (disk.interval.as_secs_f64() - young_s).abs() / young_s;
        assert!(off < 0.02, "{} {young_s}", disk.interval);
        assert!(memory.interval < disk.interval);
    }
}
