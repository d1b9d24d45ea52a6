//! Any other object, by OID or by name.

use super::walked::Walked;
use super::{Fault, Wanted, value};
use crate::Oid;
use crate::objects;
use crate::plan::{Convert, RowPlan, Watched};
use crate::tables::Table;

/// The subtree whose walk shows whether the instance is there: a walk begins behind the OID it is
/// given, so that of the instance itself would not.
pub(super) fn walk(text: &str) -> Option<Oid> {
    let oid = objects::lookup(text).ok()?.oid;
    let (_, parent) = oid.as_slice().split_last()?;
    Some(Oid::from_slice(parent))
}

/// An object of the table `objects`.
pub(super) fn one(wanted: &mut Wanted<'_>, walked: &Walked<'_>, text: &str) {
    let oid = match objects::lookup(text) {
        Ok(instance) => instance.oid,
        Err(source) => {
            wanted.problem(Fault::UnknownObject { source }, Vec::new());
            return;
        }
    };
    if walked.get(oid.as_slice()).is_none() {
        let missing = oid.as_slice().to_vec();
        let parent = missing.split_last().map_or(&[][..], |(_, parent)| parent);
        let beside: Vec<_> = walked
            .below(parent)
            .map(|(rest, _)| shown(text, &Oid::from_slice(parent).child(rest)))
            .collect();
        wanted.watched.push(Watched { oid, seen: None });
        let hidden = beside.is_empty();
        wanted.problem(Fault::NoObject { object: text.to_owned() }, beside);
        if let Some(problem) = wanted.problems.last_mut().filter(|_| hidden) {
            problem.add.push(super::problem::view_line(&missing));
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
        named: true,
        values,
        every,
        declared_refresh: None,
    });
}

/// An instance as the person would write it: digits if that is what stands in the file.
fn shown(text: &str, oid: &Oid) -> String {
    let digits = text.starts_with(|first: char| first == '.' || first.is_ascii_digit());
    if digits { oid.to_string() } else { objects::name_of(oid) }
}
