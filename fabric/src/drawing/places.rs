//! Where switches stand: in steps, neighbours about one apart.

use std::collections::VecDeque;
use std::f64::consts::TAU;

use crate::{Layout, Wiring};

/// Rounds of pulling and pushing for wirings without a layout.
const ROUNDS: u32 = 200;

/// A place for each switch.
pub(super) fn places(wiring: &Wiring, layout: Option<&Layout>) -> Vec<(f64, f64)> {
    let switches = wiring.switches.len();
    match layout {
        Some(Layout::Grid { sizes, wraps: true }) if sizes.len() == 1 => circle(switches),
        Some(Layout::HyperX { sizes }) if sizes.len() == 1 => circle(switches),
        Some(Layout::Grid { sizes, .. } | Layout::HyperX { sizes }) => grid(switches, sizes),
        Some(Layout::Tree | Layout::LeafSpine { .. } | Layout::FatTree { .. }) => levels(wiring),
        Some(Layout::Irregular) | None => sprung(wiring),
    }
}

fn real(count: usize) -> f64 {
    f64::from(u32::try_from(count).expect("nobody draws 2^32 switches"))
}

/// A circle, the first at its top.
fn circle(switches: usize) -> Vec<(f64, f64)> {
    let radius = (real(switches) / TAU).max(1.0);
    let angle = |place: usize| real(place) / real(switches.max(1)) * TAU;
    (0..switches).map(|place| (radius * angle(place).sin(), -radius * angle(place).cos())).collect()
}

/// The first dimension to the right, the second down, the third in blocks to the right, and so on.
/// Every second row and column is moved a little, so that lines around rings do not cover others.
fn grid(switches: usize, sizes: &[usize]) -> Vec<(f64, f64)> {
    let place = |switch: usize| {
        let (mut rest, mut steps, mut at) = (switch, [1.0, 1.0], [0.0, 0.0]);
        let mut bend = [0.0, 0.0];
        for (dimension, size) in sizes.iter().enumerate() {
            let coordinate = rest % size;
            rest /= size;
            let axis = dimension % 2;
            at[axis] += real(coordinate) * steps[axis];
            bend[1 - axis] += if coordinate % 2 == 1 && *size > 2 { 0.2 } else { 0.0 };
            steps[axis] *= real(*size) + 0.5;
        }
        (at[0] + bend[0], at[1] + bend[1])
    };
    (0..switches).map(place).collect()
}

/// Levels above each other: switches with hosts lowest, or, where all have hosts, by the distance
/// from the middle of the tree.
fn levels(wiring: &Wiring) -> Vec<(f64, f64)> {
    let neighbours = neighbours(wiring);
    let mut has_hosts = vec![false; neighbours.len()];
    wiring.hosts.iter().for_each(|host| has_hosts[host.switch.place()] = true);
    let by_hosts = has_hosts.contains(&false);
    let level = if by_hosts {
        let lowest = |switch: &usize| has_hosts[*switch];
        distances(&neighbours, (0..neighbours.len()).filter(lowest))
    } else {
        distances(&neighbours, std::iter::once(middle(&neighbours)))
    };
    let highest = level.iter().copied().max().unwrap_or(0);
    let mut count = vec![0_usize; highest + 1];
    level.iter().for_each(|level| count[*level] += 1);
    let widest = real(count.iter().copied().max().unwrap_or(1));
    let mut next = vec![0_usize; highest + 1];
    let place = |switch: usize| {
        let own = level[switch];
        let number = next[own];
        next[own] += 1;
        let x = (real(number) + 0.5) / real(count[own]) * widest;
        let y = real(if by_hosts { highest - own } else { own });
        (x, y * 1.5)
    };
    (0..neighbours.len()).map(place).collect()
}

fn neighbours(wiring: &Wiring) -> Vec<Vec<usize>> {
    let mut neighbours = vec![Vec::new(); wiring.switches.len()];
    for trunk in &wiring.trunks {
        let [one, other] = [trunk.ends[0].switch.place(), trunk.ends[1].switch.place()];
        neighbours[one].push(other);
        neighbours[other].push(one);
    }
    neighbours
}

/// Trunks to the nearest of some switches; what cannot be reached is with them.
fn distances(neighbours: &[Vec<usize>], from: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut distances = vec![usize::MAX; neighbours.len()];
    let mut open: VecDeque<usize> = from.collect();
    open.iter().for_each(|switch| distances[*switch] = 0);
    while let Some(switch) = open.pop_front() {
        for &next in &neighbours[switch] {
            if distances[next] == usize::MAX {
                distances[next] = distances[switch] + 1;
                open.push_back(next);
            }
        }
    }
    distances.iter_mut().filter(|own| **own == usize::MAX).for_each(|own| *own = 0);
    distances
}

/// The first switch from which the farthest is nearest.
fn middle(neighbours: &[Vec<usize>]) -> usize {
    let farthest = |switch: &usize| {
        distances(neighbours, std::iter::once(*switch)).into_iter().max().unwrap_or(0)
    };
    (0..neighbours.len()).min_by_key(farthest).unwrap_or(0)
}

/// Trunks pull their ends together, all switches push each other away; from a circle, so that the
/// same wiring is always drawn the same. Large wirings stay on the circle: pushing costs the square.
fn sprung(wiring: &Wiring) -> Vec<(f64, f64)> {
    let switches = wiring.switches.len();
    let mut at = circle(switches);
    if switches > 300 {
        return at;
    }
    let neighbours = neighbours(wiring);
    for round in 0..ROUNDS {
        let heat = 0.3 * (1.0 - f64::from(round) / f64::from(ROUNDS));
        let mut pull = vec![(0.0_f64, 0.0_f64); switches];
        for one in 0..switches {
            for other in 0..switches {
                let (dx, dy) = (at[other].0 - at[one].0, at[other].1 - at[one].1);
                let distance = dx.hypot(dy).max(0.01);
                let away = if one == other { 0.0 } else { -1.0 / (distance * distance) };
                let joined = if neighbours[one].contains(&other) { distance } else { 0.0 };
                pull[one].0 += dx / distance * (away + joined);
                pull[one].1 += dy / distance * (away + joined);
            }
        }
        for (place, (dx, dy)) in at.iter_mut().zip(pull) {
            let length = dx.hypot(dy).max(0.01);
            let step = length.min(heat);
            place.0 += dx / length * step;
            place.1 += dy / length * step;
        }
    }
    at
}
