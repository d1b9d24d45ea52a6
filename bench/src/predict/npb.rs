//! What the paper says of the NAS Parallel Benchmarks on `SuperNova`: how far one topology is above another,
//! in percentage points of the rate on the tree with one cable a link.

use meikyo_console::failure::Failure;
use meikyo_fabric::Wiring;
use meikyo_models::prediction::{Settings, Skeleton};
use serde::Serialize;

use super::compared::{Compared, named};
use super::{now, predict};
use crate::progress;

/// What all of it is predicted from.
const INPUT: &str = include_str!("supernova-npb.toml");

/// What all gains are counted in.
const BASE: (&str, u16) = ("tree 8", 1);

/// One sentence of the paper.
#[derive(Debug, Clone, Copy)]
struct Stated {
    program: &'static str,
    better: (&'static str, u16),
    worse: (&'static str, u16),
    /// Percentage points of the rate on [`BASE`].
    gain: f64,
}

const STATED: [Stated; 5] = [
    Stated { program: "cg", better: ("tree 8", 6), worse: BASE, gain: 426.7 },
    Stated { program: "cg", better: ("complete 8", 2), worse: ("tree 8", 6), gain: 227.7 },
    Stated { program: "ft", better: ("torus 4x2", 6), worse: ("tree 8", 6), gain: 63.6 },
    Stated { program: "is", better: ("torus 4x2", 6), worse: ("tree 8", 6), gain: 20.7 },
    Stated { program: "mg", better: ("ring 8", 8), worse: ("tree 8", 6), gain: 115.6 },
];

/// A gain of one topology over another.
#[derive(Debug, Serialize)]
pub(super) struct Gain {
    #[serde(flatten)]
    pub(super) of: Compared,
    /// Whose TCP hosts have, or `off`.
    pub(super) tcp: &'static str,
    /// Mop/s for each rank that are predicted of the better one, the worse one, and the tree with one
    /// cable.
    pub(super) rates: [f64; 3],
}

/// The kernels of `SuperNova` had this TCP (2.6.x); the other one is no TCP at all.
pub(super) const TCPS: [&str; 2] = ["off", "linux-2.6"];

/// Predicts every gain that the paper states, without TCP and with.
pub(super) fn gains(wiring: &Wiring) -> Result<Vec<Gain>, Failure> {
    let all = TCPS.iter().flat_map(|tcp| STATED.iter().map(move |stated| (stated, *tcp)));
    all.map(|(stated, tcp)| gain(wiring, stated, tcp)).collect()
}

fn gain(wiring: &Wiring, stated: &Stated, tcp: &'static str) -> Result<Gain, Failure> {
    let Stated { program, better, worse, gain } = *stated;
    let skeleton = Skeleton::named(program).expect("it is known");
    let mut settings = Settings::parse(skeleton, INPUT, "supernova-npb.toml")?;
    settings.set("mop_per_s", &mop_per_s(program).to_string())?;
    settings.set("tcp", tcp)?;
    let start = now();
    let rate = |(topology, cables): (&'static str, u16)| {
        progress(&format!("{program}, {topology}, {cables} cables, TCP {tcp}"));
        predict(wiring, &settings, topology, cables).map(|predicted| predicted.rate)
    };
    let rates = [rate(better)?, rate(worse)?, rate(BASE)?];
    let predicted = 100.0 * (rates[0] - rates[1]) / rates[2];
    let what = [program.to_owned(), format!("{} over {}", named(better), named(worse))];
    let unit = "percentage points of tree 8 (1 link)";
    let seconds = start.elapsed().as_secs_f64();
    Ok(Gain { of: Compared::new(what, "packet", [gain, predicted], unit, seconds), tcp, rates })
}

/// What one processor of `SuperNova` (Opteron, 1.8 GHz) computes of each benchmark, in 10^6 operations a
/// second. The paper does not say it; these are orders of magnitude that such processors reached alone
/// in class A or B. Nothing here is fitted.
fn mop_per_s(program: &str) -> u32 {
    match program {
        "cg" => 150,
        "ft" => 300,
        "is" => 15,
        _ => 350,
    }
}
