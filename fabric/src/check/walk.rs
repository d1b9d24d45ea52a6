//! The tree that a VLAN without loops is, seen from one of its switches.

use super::channels::{Channels, NONE};

/// A tree, nearer switches first.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pub(super) steps: Vec<Step>,
}

/// A switch of the tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) switch: usize,
    /// The channel that leads there; [`NONE`] for the root.
    pub(super) channel: u32,
    /// The place of the step before it; its own place for the root.
    pub(super) before: usize,
    /// The place of the first step after the root on the way to here; the root's own for the root.
    pub(super) branch: usize,
}

impl Walk {
    /// Walks the tree of a plain VLAN from one of its switches.
    pub(super) fn from(&mut self, channels: &Channels, vlan: usize, switch: usize) {
        self.steps.clear();
        self.steps.push(Step { switch, channel: NONE, before: 0, branch: 0 });
        let mut at = 0;
        while let Some(&step) = self.steps.get(at) {
            let came = if step.channel == NONE { NONE } else { step.channel ^ 1 };
            for way in channels.moves(vlan, step.switch).iter().filter(|way| way.channel != came) {
                let to = channels.channel(*way).to;
                let branch = if at == 0 { self.steps.len() } else { step.branch };
                self.steps.push(Step { switch: to, channel: way.channel, before: at, branch });
            }
            at += 1;
        }
    }

    /// For each step the sum of `of` over the switches behind it, itself included.
    pub(super) fn sums(&self, of: impl Fn(usize) -> u64, sums: &mut Vec<u64>) {
        sums.clear();
        sums.extend(self.steps.iter().map(|step| of(step.switch)));
        for at in (1..self.steps.len()).rev() {
            sums[self.steps[at].before] += sums[at];
        }
    }

    /// The steps from the one at this place back to the root.
    pub(super) fn back(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        let mut next = Some(at);
        std::iter::from_fn(move || {
            let at = next?;
            next = (at != 0).then(|| self.steps[at].before);
            Some(at)
        })
    }
}
