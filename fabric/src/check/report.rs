//! What a check says, and what is gathered for it.

use meikyo_units::Nanos;

use super::fault::Fault;
use crate::{SwitchId, TrunkId, Warning};

/// What was found out about a configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// What is wrong, at most [`CheckOptions::faults_max`](super::CheckOptions::faults_max).
    pub faults: Vec<Fault>,
    /// How many faults there are beyond those, at least: VLANs that must be followed host by host are
    /// left out once the list is full.
    pub faults_unlisted: u64,
    /// Whether frames could be followed at all; without it nothing below is known.
    pub followed: bool,
    /// VLANs in which hosts send.
    pub vlans: usize,
    /// For each switch how many addresses it will hold, over all VLANs, once every host has sent a
    /// broadcast, the switches have been primed, and every host has sent to every other one.
    pub table_entries: Vec<u64>,
    /// The directions of trunks that frames can pass, and how many go through them.
    pub loads: Vec<LinkLoad>,
    /// What works and costs; nothing where frames could not be followed.
    pub warnings: Vec<Warning>,
    /// Whether no trunks can wait for each other in a circle.
    pub deadlock_free: bool,
    /// How often switches must be primed to remember: half the shortest ageing time; none if they
    /// never forget.
    pub prime_every: Option<Nanos>,
}

/// The load of a direction of a trunk when every host sends one frame to every other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkLoad {
    /// The trunk; of several that are one bundle the first.
    pub trunk: TrunkId,
    /// The switch that frames come from.
    pub from: SwitchId,
    /// The switch that they go to.
    pub to: SwitchId,
    /// Cables that share the load, those that are shut at one end left out.
    pub cables: usize,
    /// Pairs of hosts whose frames go here.
    pub pairs: u64,
}

/// Whether a configuration may be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The configuration does what is asked: no fault was found.
    Good,
    /// Something is wrong: the configuration must not be applied.
    Refused,
}

impl Report {
    /// Whether the configuration may be applied: if there is no fault, listed or not.
    pub const fn verdict(&self) -> Verdict {
        if self.faults.is_empty() && self.faults_unlisted == 0 {
            Verdict::Good
        } else {
            Verdict::Refused
        }
    }

    /// The most table entries that a switch needs.
    pub fn table_entries_max(&self) -> u64 {
        self.table_entries.iter().copied().max().unwrap_or(0)
    }

    /// The most pairs of hosts whose frames share one cable, rounded up.
    ///
    /// # Panics
    /// Never: cables are counted by memory.
    pub fn link_load_max(&self) -> u64 {
        let per_cable = |load: &LinkLoad| {
            let cables = u64::try_from(load.cables).expect("a count fits in 64 bits");
            load.pairs.div_ceil(cables.max(1))
        };
        self.loads.iter().map(per_cable).max().unwrap_or(0)
    }
}

/// What is gathered while checking.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) faults: Vec<Fault>,
    faults_max: usize,
    pub(super) unlisted: u64,
    /// For each switch.
    pub(super) entries: Vec<u64>,
    /// For each channel.
    pub(super) loads: Vec<u64>,
}

impl Findings {
    pub(super) fn new(faults_max: usize) -> Self {
        Self { faults_max, ..Self::default() }
    }

    /// Notes a fault; which one it is is asked only if it will be listed.
    pub(super) fn note(&mut self, fault: impl FnOnce() -> Fault) {
        if self.faults.len() < self.faults_max {
            self.faults.push(fault());
        } else {
            self.unlisted += 1;
        }
    }

    /// Whether there are faults, and no more are listed.
    pub(super) fn is_full(&self) -> bool {
        self.faults.len() >= self.faults_max && self.faults_count() > 0
    }

    pub(super) fn faults_count(&self) -> u64 {
        self.unlisted + u64::try_from(self.faults.len()).expect("a count fits in 64 bits")
    }
}
