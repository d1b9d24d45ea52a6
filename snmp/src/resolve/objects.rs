//! Any other object, by OID or by name.

use super::walked::Walked;
use super::{Fault, Wanted, value};
use crate::Oid;
use crate::plan::{Convert, RowPlan};
use crate::tables::Table;

/// The OID of an object as it is written in the cluster file: digits, or a known name with its
/// instance.
pub(super) fn oid_of(text: &str) -> Option<Oid> {
    text.trim_start_matches('.').parse().ok()
}

/// The subtree whose walk shows whether the instance is there: a walk begins behind the OID it is
/// given, so that of the instance itself would not.
pub(super) fn walk(text: &str) -> Option<Oid> {
    let oid = oid_of(text)?;
    let (_, parent) = oid.as_slice().split_last()?;
    Some(Oid::from_slice(parent))
}

/// An object of the table `objects`.
pub(super) fn one(wanted: &mut Wanted<'_>, walked: &Walked<'_>, text: &str) {
    let Some(oid) = oid_of(text) else {
        wanted.problem(Fault::UnknownObject { name: text.to_owned() }, Vec::new());
        return;
    };
    if walked.get(oid.as_slice()).is_none() {
        let parent = oid.as_slice().split_last().map_or(&[][..], |(_, parent)| parent);
        let beside: Vec<_> = walked
            .below(parent)
            .map(|(rest, _)| Oid::from_slice(parent).child(rest).to_string())
            .collect();
        let hidden = beside.is_empty();
        wanted.problem(Fault::NoObject { object: text.to_owned() }, beside);
        if let Some(problem) = wanted.problems.last_mut().filter(|_| hidden) {
            problem.add.push(super::problem::view_line(oid.as_slice()));
        }
        return;
    }
    // The column is chosen by the type that the agent answers with; `integer` stands for all three.
    let values = vec![value(Table::Objects, "integer", oid, Convert::AsTyped)];
    let every = wanted.every();
    let instance = Some(text.to_owned());
    wanted.rows.push(RowPlan {
        table: Table::Objects,
        instance,
        guard: None,
        values,
        every,
        declared_refresh: None,
    });
}
