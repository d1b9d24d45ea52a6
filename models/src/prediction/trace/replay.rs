//! A trace as the steps of its ranks.

use std::collections::{BTreeMap, VecDeque};

use meikyo_units::Nanos;

use super::line::{Call, Operation};
use crate::prediction::collective::{self, Collectives};
use crate::prediction::ranks::{Op, Steps, number, rank};

/// What computing is called in the breakdown.
const COMPUTE: &str = "compute";
/// Names of messages of collective operations for each group.
const TAGS_OF_GROUP: u32 = 16;

/// The steps of a rank.
pub(super) fn ops<'a>(
    own: u32,
    calls: impl Iterator<Item = &'a Call>,
    groups: &[Vec<u32>],
    units_per_s: f64,
    collectives: &Collectives,
) -> Vec<Op> {
    let mut made = Made::default();
    for call in calls {
        match call {
            Call::Compute(units) => {
                let span = Nanos::from_secs_f64(units / units_per_s);
                if span > Nanos::ZERO {
                    made.ops.push(Op::Compute { span, what: COMPUTE });
                }
            }
            // A message to itself costs nothing that is modelled.
            Call::Send { to: other, .. }
            | Call::Receive { from: other, .. }
            | Call::Wait { other, .. }
                if *other == own => {}
            Call::Send { to, tag, bytes, blocks } => {
                made.ops.push(Op::Send { to: *to, tag: *tag, bytes: *bytes });
                made.begun(*blocks, "send", (true, *to, *tag));
            }
            Call::Receive { from, tag, blocks } => {
                made.ops.push(Op::Receive { from: *from, tag: *tag });
                made.begun(*blocks, "receive", (false, *from, *tag));
            }
            Call::Wait { sends, other, tag } => made.wait((*sends, *other, *tag)),
            Call::WaitLast => made.wait_last(),
            Call::WaitAll => made.wait_all(),
            Call::Collective { group, own: place, operation } => {
                made.collective(&groups[*group], *group, *place, operation, collectives);
            }
        }
    }
    made.ops
}

/// Whether a message is sent, to or from whom, and its tag.
type Name = (bool, u32, u32);

/// Steps in the making.
#[derive(Default)]
struct Made {
    ops: Vec<Op>,
    /// Messages that were begun.
    begun: u64,
    /// Which of them nobody waited for, in their order.
    open: BTreeMap<Name, VecDeque<u64>>,
}

impl Made {
    fn begun(&mut self, blocks: bool, what: &'static str, name: Name) {
        let begun = self.begun;
        self.begun += 1;
        if blocks {
            self.ops.push(Op::WaitFor { begun, what });
        } else {
            self.open.entry(name).or_default().push_back(begun);
        }
    }

    fn wait(&mut self, name: Name) {
        let Some(open) = self.open.get_mut(&name) else { return };
        if let Some(begun) = open.pop_front() {
            self.ops.push(Op::WaitFor { begun, what: "wait" });
        }
        if open.is_empty() {
            self.open.remove(&name);
        }
    }

    fn wait_last(&mut self) {
        let last = self.open.iter().max_by_key(|(_, open)| open.back().copied());
        let Some((&name, _)) = last else { return };
        let open = self.open.get_mut(&name).and_then(VecDeque::pop_back);
        self.ops.extend(open.map(|begun| Op::WaitFor { begun, what: "wait" }));
        if self.open.get(&name).is_some_and(VecDeque::is_empty) {
            self.open.remove(&name);
        }
    }

    fn wait_all(&mut self) {
        self.open.clear();
        self.ops.push(Op::Wait { what: "wait" });
    }

    fn collective(
        &mut self,
        members: &[u32],
        group: usize,
        own: u32,
        operation: &Operation,
        collectives: &Collectives,
    ) {
        let ranks = number(members.len());
        let root = root(operation);
        // Counted from the root on.
        let mut steps = Steps::of((own + ranks - root) % ranks);
        perform(operation, &mut steps, ranks, collectives);
        let member = |at: u32| members[rank((at + root) % ranks)];
        let named = |tag: u32| tag + TAGS_OF_GROUP * number(group);
        let alone = self.open.is_empty();
        let mut waiting = Vec::new();
        for op in steps.finish() {
            match op {
                Op::Send { to, tag, bytes } => {
                    self.ops.push(Op::Send { to: member(to), tag: named(tag), bytes });
                }
                Op::Receive { from, tag } => {
                    self.ops.push(Op::Receive { from: member(from), tag: named(tag) });
                }
                Op::Wait { what } if !alone => {
                    // Not for what the program has under way.
                    let own = waiting.drain(..).map(|begun| Op::WaitFor { begun, what });
                    self.ops.extend(own);
                    continue;
                }
                other => {
                    self.ops.push(other);
                    continue;
                }
            }
            waiting.push(self.begun);
            self.begun += 1;
        }
    }
}

fn root(operation: &Operation) -> u32 {
    match operation {
        Operation::Broadcast { root, .. }
        | Operation::Reduce { root, .. }
        | Operation::Gather { root, .. }
        | Operation::Scatter { root, .. }
        | Operation::GatherUneven { root, .. }
        | Operation::ScatterUneven { root, .. } => *root,
        _ => 0,
    }
}

fn perform(operation: &Operation, steps: &mut Steps, ranks: u32, collectives: &Collectives) {
    match operation {
        _ if ranks < 2 => {}
        Operation::Barrier => collective::barrier(steps, ranks),
        Operation::Broadcast { bytes, .. } => collective::broadcast(steps, ranks, *bytes),
        Operation::Reduce { bytes, .. } => collective::reduce(steps, ranks, *bytes),
        Operation::AllReduce { bytes } => collectives.all_reduce(steps, ranks, *bytes),
        Operation::AllToAll { bytes } => collectives.all_to_all(steps, ranks, *bytes),
        Operation::AllToAllUneven { out, into } => collective::exchange_uneven(steps, out, into),
        Operation::Gather { bytes, .. } => collective::gather(steps, ranks, *bytes),
        Operation::Scatter { bytes, .. } => collective::scatter(steps, ranks, *bytes),
        Operation::GatherUneven { each, root } => {
            collective::gather_uneven(steps, &rotated(each, *root));
        }
        Operation::ScatterUneven { each, root } => {
            collective::scatter_uneven(steps, &rotated(each, *root));
        }
        Operation::AllGather { bytes } => {
            let each = vec![*bytes; rank(ranks)];
            collective::all_gather(steps, &each);
        }
        Operation::AllGatherUneven { each } => collective::all_gather(steps, each),
        Operation::ReduceScatter { each } => {
            collective::reduce(steps, ranks, each.iter().sum());
            collective::scatter_uneven(steps, each);
        }
        Operation::Scan { bytes } => collective::scan(steps, ranks, *bytes),
    }
}

/// Amounts of members counted from the root on.
fn rotated(each: &[u64], root: u32) -> Vec<u64> {
    let mut each = each.to_vec();
    each.rotate_left(rank(root));
    each
}
