use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::parameters::Choice as _;
use crate::prediction::collective::{AllReduce, AllToAll, Library};
use crate::prediction::ranks::Op;

const COLLECTIVES: Collectives = Collectives {
    library: Library::Mpich12,
    all_to_all: AllToAll::Library,
    all_reduce: AllReduce::Library,
};

fn run(kernel: Kernel, class: Class, ranks: u32) -> Npb {
    Npb { kernel, class, ranks, sample: 1, operations_per_s: 1e9, collectives: COLLECTIVES }
}

/// What came of a program whose messages never wait for their receiver.
struct Played {
    /// What was sent between each pair.
    sent: BTreeMap<(u32, u32), Vec<u64>>,
    /// From whom each rank has something, by itself or through others.
    heard: Vec<BTreeSet<u32>>,
}

impl Played {
    fn total(&self) -> u64 {
        self.sent.values().flatten().sum()
    }

    /// Whether something of everybody has come to everybody.
    fn is_shared_by_all(&self) -> bool {
        self.heard.iter().all(|heard| heard.len() == self.heard.len())
    }
}

/// Plays a program, one rank after the other, until nothing moves. Panics if somebody still waits or a
/// message is left.
fn play(program: &RankProgram) -> Played {
    let mut under_way: BTreeMap<(u32, u32, u32), Vec<BTreeSet<u32>>> = BTreeMap::new();
    let mut sent: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
    let scripts: Vec<Vec<Op>> =
        (0..program.ranks()).map(|rank| program.script(rank).ops().collect()).collect();
    let mut at = vec![0; scripts.len()];
    let mut asked: Vec<Vec<(u32, u32)>> = vec![Vec::new(); scripts.len()];
    let mut heard: Vec<BTreeSet<u32>> =
        (0..).take(scripts.len()).map(|rank| BTreeSet::from([rank])).collect();
    let mut moved = true;
    while std::mem::take(&mut moved) {
        for (rank, ops) in (0_u32..).zip(&scripts) {
            let place = usize::try_from(rank).unwrap();
            while let Some(op) = ops.get(at[place]) {
                match *op {
                    Op::Compute { .. } => {}
                    Op::Send { to, tag, bytes } => {
                        let messages = under_way.entry((rank, to, tag)).or_default();
                        messages.push(heard[place].clone());
                        sent.entry((rank, to)).or_default().push(bytes);
                    }
                    Op::Receive { from, tag } => asked[place].push((from, tag)),
                    Op::WaitFor { .. } => unreachable!("only traces wait for one message"),
                    Op::Wait { .. } => {
                        asked[place].retain(|&(from, tag)| {
                            let messages = under_way.get_mut(&(from, rank, tag));
                            let there = messages.filter(|messages| !messages.is_empty());
                            let came = there.map(|messages| messages.remove(0));
                            heard[place].extend(came.iter().flatten());
                            came.is_none()
                        });
                        if !asked[place].is_empty() {
                            break;
                        }
                    }
                }
                at[place] += 1;
                moved = true;
            }
        }
    }
    let waiting = at.iter().zip(&scripts).filter(|(at, ops)| **at < ops.len()).count();
    assert_eq!(waiting, 0, "ranks wait");
    assert!(under_way.values().all(Vec::is_empty), "messages that nobody receives");
    Played { sent, heard }
}

#[test]
fn every_message_of_every_benchmark_has_its_receiver() {
    for kernel in Kernel::ALL {
        for ranks in [1, 2, 4, 8, 9, 16, 25, 64] {
            for class in [Class::A, Class::B] {
                if let Ok(program) = run(*kernel, class, ranks).program() {
                    let sent = play(&program);
                    assert!(sent.sent.is_empty() == (ranks == 1), "{kernel:?} on {ranks}");
                }
            }
        }
    }
}

#[test]
fn numbers_of_ranks_that_do_not_suit_are_refused() {
    for (kernel, ranks) in [
        (Kernel::Cg, 12),
        (Kernel::Ft, 1024),
        (Kernel::Bt, 8),
        (Kernel::Is, 2048),
        (Kernel::Lu, 24),
        (Kernel::Ep, 0),
    ] {
        run(kernel, Class::C, ranks).program().unwrap_err();
    }
    let error = run(Kernel::Sp, Class::C, 128).program().unwrap_err();
    assert_eq!(
        error.to_string(),
        "SP of class C does not run on 128 ranks: it needs a square number"
    );
}

/// 2 GiB of complex numbers change their place, but for the part that stays on each rank.
#[test]
fn ft_moves_the_whole_cube_once_an_iteration() {
    let sent = play(&run(Kernel::Ft, Class::C, 128).program().unwrap());
    let cube = 16 * 512_u64.pow(3);
    let checksum = 127 * 16;
    assert_eq!(sent.total(), cube / 128 * 127 + checksum);
    // 128 KiB for each pair.
    assert!(sent.sent[&(3, 77)].contains(&131_072));
    assert_eq!(sent.sent.len(), 128 * 127);
}

/// The volume that the 26 products of one iteration take, from the division of the vector alone: with 8
/// rows and 16 columns each rank exchanges half a row's part with four others, and a column's part with
/// its transposed one, which is itself for some.
#[test]
fn cg_exchanges_parts_along_rows_and_with_the_transposed_place() {
    let sent = play(&run(Kernel::Cg, Class::C, 128).program().unwrap());
    let part = 8 * 150_000 / 16;
    let long: Vec<_> = sent.sent.values().flatten().filter(|bytes| **bytes > 8).collect();
    assert!(long.iter().all(|bytes| **bytes == part));
    let on_diagonal = 16;
    assert_eq!(long.len(), 26 * (128 * 4 + 128 - on_diagonal));
    let dots = sent.sent.values().flatten().filter(|bytes| **bytes == 8).count();
    assert_eq!(dots, 128 * 4 * (25 * 2 + 1));
    // Whoever sends a part gets one back.
    assert!(
        sent.sent
            .keys()
            .all(|&(from, to)| sent.sent[&(from, to)].len() == sent.sent[&(to, from)].len())
    );
}

/// On a square grid of 4 rows, what rank 1 in row 0 has belongs to column 1, and goes to the rank in row 1 and
/// column 0, which no sum along a row ever meets.
#[test]
fn cg_on_a_square_grid_exchanges_rows_and_columns() {
    let played = play(&run(Kernel::Cg, Class::A, 16).program().unwrap());
    let part = 8 * 14_000 / 4;
    assert_eq!(played.sent[&(1, 4)], vec![part; 26]);
    assert_eq!(played.sent[&(4, 1)], vec![part; 26]);
    assert!(!played.sent.contains_key(&(1, 8)));
}

#[test]
fn is_sends_every_key_but_those_that_stay() {
    let sent = play(&run(Kernel::Is, Class::B, 16).program().unwrap());
    let keys: u64 = 4 << 25;
    let long: u64 = sent.sent.values().flatten().filter(|bytes| **bytes > 100_000).sum();
    assert_eq!(long, keys / 16 * 15);
}

/// On the finest grid of 8 ranks, each a cube of 128 points a side, faces have 130 or 128 points a side.
#[test]
fn mg_exchanges_faces_of_each_level() {
    let sent = play(&run(Kernel::Mg, Class::A, 8).program().unwrap());
    let faces: Vec<u64> = [128 * 128, 130 * 128, 130 * 130].map(|points| 8 * points).to_vec();
    for (axis, bytes) in (0..3).zip(&faces) {
        let neighbour = 1 << axis;
        let to = &sent.sent[&(0, neighbour)];
        // Residual, smoothing, and the residual after the cycle, with the same neighbour on both sides.
        assert_eq!(to.iter().filter(|sent| *sent == bytes).count(), 2 * 3, "{axis}");
        assert_eq!(to.iter().max(), Some(bytes));
    }
    // Coarse grids have no points for some of 64 ranks, and every rank ends the cycle.
    play(&run(Kernel::Mg, Class::A, 512).program().unwrap());
}

/// The study of the paper's machine has 145 KB for each of six faces, and 10 to 28 KB for each cell.
#[test]
fn bt_sends_faces_and_systems_of_its_cells() {
    let sent = play(&run(Kernel::Bt, Class::C, 225).program().unwrap());
    let mut sizes: Vec<u64> = sent.sent.values().flatten().copied().collect();
    sizes.sort_unstable();
    sizes.dedup();
    assert_eq!(sizes, [8 * 5 * 121, 8 * 30 * 121, 8 * 5 * 2 * 100 * 14]);
    let of_one: usize =
        sent.sent.iter().filter(|((from, _), _)| *from == 7).map(|(_, all)| all.len()).sum();
    assert_eq!(of_one, 6 + 3 * 2 * 14);
}

#[test]
fn lu_hands_two_edges_a_plane_through_the_grid_of_ranks() {
    let sent = play(&run(Kernel::Lu, Class::A, 16).program().unwrap());
    let edge = 8 * 5 * 16;
    // From the corner to its two neighbours: 62 planes, and one face of two layers.
    for to in [1, 4] {
        let all = &sent.sent[&(0, to)];
        assert_eq!(all.iter().filter(|bytes| **bytes == edge).count(), 62);
        assert_eq!(all.iter().filter(|bytes| **bytes == 2 * edge * 64).count(), 1);
        assert_eq!(all.len(), 63);
    }
}

/// Mop/s of NPB's own reports: operations of class A in 10^6, as its documentation prints them
/// (rounded there).
#[test]
fn operations_are_those_that_the_benchmarks_count() {
    for (kernel, mop) in [
        (Kernel::Ep, 536.9),
        (Kernel::Is, 83.9),
        (Kernel::Cg, 1_496.0),
        (Kernel::Mg, 3_892.0),
        (Kernel::Ft, 7_137.0),
        (Kernel::Lu, 119_280.0),
        (Kernel::Bt, 168_300.0),
        (Kernel::Sp, 85_000.0),
    ] {
        let counted = run(kernel, Class::A, 1).operations() / 1e6;
        assert!((counted / mop - 1.0).abs() < 0.01, "{kernel:?}: {counted}");
    }
}

#[test]
fn what_ranks_compute_is_the_whole_of_the_operations() {
    for (kernel, ranks) in [(Kernel::Cg, 8), (Kernel::Mg, 8), (Kernel::Lu, 8), (Kernel::Bt, 9)] {
        let run = Npb { sample: 0, ..run(kernel, Class::A, ranks) };
        let program = run.program().unwrap();
        let computed: u64 = (0..program.ranks())
            .flat_map(|rank| program.script(rank).ops().collect::<Vec<_>>())
            .map(|op| if let Op::Compute { span, .. } = op { span.get() } else { 0 })
            .sum();
        let expected = run.operations() / run.operations_per_s * 1e9;
        assert!((count_f64(computed) / expected - 1.0).abs() < 1e-3, "{kernel:?}");
    }
}

/// After an all-to-all and after a sum every rank has something of every other, by every algorithm.
#[test]
fn collective_operations_reach_everybody() {
    for ranks in [1, 2, 3, 5, 8, 12, 13, 16] {
        for algorithm in AllReduce::ALL {
            let collectives = Collectives { all_reduce: *algorithm, ..COLLECTIVES };
            let sent = play(&all(ranks, |steps| collectives.all_reduce(steps, ranks, 1 << 20)));
            assert!(sent.is_shared_by_all(), "{algorithm:?} on {ranks}");
            let least = u64::from(ranks - 1) << 20;
            assert!(sent.total() >= least, "{algorithm:?} on {ranks}");
        }
        for algorithm in AllToAll::ALL {
            let collectives = Collectives { all_to_all: *algorithm, ..COLLECTIVES };
            let sent = play(&all(ranks, |steps| collectives.all_to_all(steps, ranks, 1 << 20)));
            assert!(sent.is_shared_by_all(), "{algorithm:?} on {ranks}");
            let pairs = u64::from(ranks) * u64::from(ranks - 1);
            assert!(sent.total() >= pairs << 20, "{algorithm:?} on {ranks}");
            if *algorithm != AllToAll::Bruck {
                assert_eq!(sent.total(), pairs << 20);
            }
        }
    }
    // By Bruck's algorithm half of the blocks travel in each of log2 P steps.
    let bruck = Collectives { all_to_all: AllToAll::Bruck, ..COLLECTIVES };
    let sent = play(&all(16, |steps| bruck.all_to_all(steps, 16, 10)));
    assert_eq!(sent.total(), 16 * 4 * 8 * 10);
}

fn all(ranks: u32, write: impl Fn(&mut Steps)) -> RankProgram {
    let script = |rank| {
        let mut steps = Steps::of(rank);
        write(&mut steps);
        let mut script = Script::default();
        script.repeat(1, steps.finish());
        script
    };
    RankProgram::new((0..ranks).map(script).collect())
}
