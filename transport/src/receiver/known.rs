//! What a receiver knows of its senders, for people.

use std::collections::BTreeMap;

use meikyo_recording::PackedRows;
use meikyo_units::WallTime;

use crate::limits::SENDERS_KNOWN_MAX;
use crate::wire::{Gap, Hello, Offset};

/// How a sender stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SenderState {
    /// Its name.
    pub sender: String,
    /// The cluster that it measures, if it does.
    pub cluster: Option<String>,
    /// What it is called together with those that stand by for it.
    pub identity: Option<String>,
    /// Whether the newest rows are taken from it; without others beside it they always are.
    pub is_active: bool,
    /// Whether it has a session.
    pub is_connected: bool,
    /// When something of it came last.
    pub heard: WallTime,
    /// The greatest time of its rows, by its own clock, ns since the epoch.
    pub newest_ns: Option<i64>,
    /// How its clock stands against the receiver's.
    pub clock: Option<Offset>,
    /// Blocks that were stored since the receiver began.
    pub blocks: u64,
    /// Rows in them.
    pub rows: u64,
    /// Gaps that it told.
    pub gaps: u64,
    /// Rows in these gaps, where they are counted.
    pub missing_rows: u64,
}

/// Whose name it is: senders without a cluster share one recording.
type Name = (Option<String>, String);

/// The senders that a receiver has heard of since it began.
#[derive(Debug, Default)]
pub(super) struct Known(BTreeMap<Name, SenderState>);

impl Known {
    pub(super) fn all(&self) -> impl Iterator<Item = &SenderState> {
        self.0.values()
    }

    /// A sender is welcome. Of too many, one that is gone and was heard longest ago is forgotten.
    pub(super) fn greeted(&mut self, hello: &Hello, now: WallTime) {
        let (cluster, sender) = (hello.cluster.clone(), hello.sender.clone());
        let name = (cluster.clone(), sender.clone());
        if !self.0.contains_key(&name) && self.0.len() >= SENDERS_KNOWN_MAX {
            let gone = self.0.iter().filter(|(_, state)| !state.is_connected);
            if let Some(name) =
                gone.min_by_key(|(_, state)| state.heard).map(|(name, _)| name.clone())
            {
                self.0.remove(&name);
            }
        }
        let state = self.0.entry(name).or_insert(SenderState {
            sender,
            cluster,
            identity: None,
            is_active: true,
            is_connected: true,
            heard: now,
            newest_ns: None,
            clock: None,
            blocks: 0,
            rows: 0,
            gaps: 0,
            missing_rows: 0,
        });
        (state.is_connected, state.heard) = (true, now);
        state.identity.clone_from(&hello.identity);
        state.is_active = hello.identity.is_none();
    }

    /// Of the collectors of an identity, that one is active.
    pub(super) fn roles(&mut self, cluster: Option<&String>, identity: &str, active: Option<&str>) {
        let is_one = |state: &&mut SenderState| {
            state.cluster.as_ref() == cluster && state.identity.as_deref() == Some(identity)
        };
        for state in self.0.values_mut().filter(is_one) {
            state.is_active = active == Some(&*state.sender);
        }
    }

    /// Rows came, whether they are stored or not.
    pub(super) fn came(&mut self, cluster: Option<&String>, sender: &str, newest_ns: i64) {
        if let Some(state) = self.state(cluster, sender) {
            state.newest_ns = state.newest_ns.max(Some(newest_ns));
        }
    }

    fn state(&mut self, cluster: Option<&String>, sender: &str) -> Option<&mut SenderState> {
        self.0.get_mut(&(cluster.cloned(), sender.to_owned()))
    }

    pub(super) fn gone(&mut self, cluster: Option<&String>, sender: &str) {
        if let Some(state) = self.state(cluster, sender) {
            state.is_connected = false;
        }
    }

    pub(super) fn heard(&mut self, cluster: Option<&String>, sender: &str, now: WallTime) {
        if let Some(state) = self.state(cluster, sender) {
            state.heard = now;
        }
    }

    pub(super) fn stored(&mut self, cluster: Option<&String>, sender: &str, rows: &PackedRows) {
        if let Some(state) = self.state(cluster, sender) {
            state.blocks += 1;
            state.rows += rows.rows() as u64;
        }
    }

    pub(super) fn missing(&mut self, cluster: Option<&String>, sender: &str, gap: &Gap) {
        if let Some(state) = self.state(cluster, sender) {
            state.gaps += 1;
            // Saturates: a sender may say any number.
            state.missing_rows = state.missing_rows.saturating_add(gap.rows.unwrap_or(0));
        }
    }

    pub(super) fn clock(&mut self, cluster: Option<&String>, sender: &str, offset: Offset) {
        if let Some(state) = self.state(cluster, sender) {
            state.clock = Some(offset);
        }
    }
}
