//! HPL rank by rank against real runs: Debian's `hpcc` 1.5.0 with Open MPI 4.1 on six ranks, recorded by
//! `meikyo trace`. Of each run `hpl_recorded.txt` has what was sent in HPL's own communicators, those of
//! process rows and process columns, from rank to rank: sizes in octets in their order, `x` before how often
//! the same size followed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use meikyo_models::prediction::Op;
use meikyo_models::prediction::hpl::{Broadcast, GridOrder, Hpl, TAGS};
use meikyo_units::Nanos;

const RECORDED: &str = include_str!("hpl_recorded.txt");

/// Messages by sender and receiver, with their sizes in order.
type Sizes = BTreeMap<[usize; 2], Vec<u64>>;

fn hpl(order: u64, block: u64, [rows, columns]: [usize; 2]) -> Hpl {
    Hpl {
        order,
        block,
        rows,
        columns,
        grid_order: GridOrder::RowMajor,
        look_ahead: 1,
        broadcast: Broadcast::RingModified,
        flop_per_s: 1e9,
        panel_share: 0.5,
        latency: Nanos::ZERO,
        seed: 1,
    }
}

/// The pivots of HPL's matrix: numbers from -0.5 to 0.5 by `HPL_rand` with `HPL_ISEED`, column by column,
/// eliminated in the way of the textbook.
fn pivots(order: usize) -> Vec<u64> {
    let next = |x: u64| x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    let mut x = next(100);
    let half = |x: u64| u32::try_from(x).unwrap();
    let mut columns = vec![vec![0.0; order]; order];
    for element in columns.iter_mut().flatten() {
        let [high, low] = [f64::from(half(x >> 32)), f64::from(half(x & 0xffff_ffff))];
        *element = 0.5 - (low / 4_294_967_296.0 + high) / 4_294_967_296.0;
        x = next(x);
    }
    let mut pivots = Vec::new();
    for at in 0..order {
        let greatest = |one: &usize, other: &usize| {
            let size = |row: usize| columns[at][row].abs();
            size(*one).total_cmp(&size(*other))
        };
        let pivot = (at..order).max_by(greatest).unwrap();
        pivots.push(u64::try_from(pivot).unwrap());
        for column in &mut columns {
            column.swap(at, pivot);
        }
        let factors: Vec<f64> =
            (at + 1..order).map(|row| columns[at][row] / columns[at][at]).collect();
        for column in columns.iter_mut().skip(at + 1) {
            let first = column[at];
            for (element, factor) in column.iter_mut().skip(at + 1).zip(&factors) {
                *element -= first * factor;
            }
        }
    }
    pivots
}

/// What the skeleton sends within process rows, and within process columns.
fn skeleton(hpl: &Hpl) -> [Sizes; 2] {
    let program = hpl.program(&pivots(usize::try_from(hpl.order).unwrap()));
    TAGS.map(|wanted| {
        let mut sizes = Sizes::new();
        for rank in 0..hpl.ranks() {
            for op in program.script(rank).ops() {
                if let Op::Send { to, tag, bytes } = op
                    && tag == wanted
                {
                    sizes.entry([rank, usize::try_from(to).unwrap()]).or_default().push(bytes);
                }
            }
        }
        sizes
    })
}

/// The runs of the file, each with what was sent within process rows, and within process columns.
fn recorded() -> Vec<(Hpl, [Sizes; 2])> {
    let mut runs: Vec<(Hpl, [Sizes; 2])> = Vec::new();
    for line in RECORDED.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["run", order, block, rows, columns, look_ahead, broadcast] = words[..] {
            let grid = [rows, columns].map(|count| count.parse().unwrap());
            let broadcast = match broadcast {
                "1ring-modified" => Broadcast::RingModified,
                "2ring-modified" => Broadcast::TwoRingsModified,
                other => panic!("{other}"),
            };
            let look_ahead = look_ahead.parse().unwrap();
            let hpl = hpl(order.parse().unwrap(), block.parse().unwrap(), grid);
            runs.push((Hpl { look_ahead, broadcast, ..hpl }, Default::default()));
            continue;
        }
        let [place, from, to] = [words[0], words[1], words[2]];
        let mut sizes = Vec::new();
        for word in &words[3..] {
            let (size, times) = word.split_once('x').unwrap_or((word, "1"));
            sizes.extend(vec![size.parse::<u64>().unwrap(); times.parse().unwrap()]);
        }
        let (_, [across, down]) = runs.last_mut().unwrap();
        let all = if place == "row" { across } else { down };
        all.insert([from.parse().unwrap(), to.parse().unwrap()], sizes);
    }
    runs
}

#[test]
fn every_message_of_hpl_is_that_of_a_real_run() {
    let runs = recorded();
    assert_eq!(runs.len(), 2);
    for (hpl, recorded) in runs {
        for (expected, found) in skeleton(&hpl).iter().zip(&recorded) {
            assert!(expected.keys().all(|pair| found.contains_key(pair)), "{hpl:?}");
            let none = Vec::new();
            for (pair, found) in found {
                let expected = expected.get(pair).unwrap_or(&none);
                let same = expected.iter().zip(found).take_while(|(one, other)| one == other);
                let same = same.count();
                let around = |sizes: &[u64]| {
                    sizes[same.saturating_sub(3).min(sizes.len())..sizes.len().min(same + 6)]
                        .to_vec()
                };
                assert_eq!(
                    same,
                    expected.len(),
                    "{pair:?}, {hpl:?}: {:?}, recorded {:?}",
                    around(expected),
                    around(found)
                );
                // What follows is HPL's check of the solution: norms, and sums of the residuals.
                assert!(found.len() <= expected.len() + 6, "{pair:?}: {:?}", &found[same..]);
            }
        }
    }
}
