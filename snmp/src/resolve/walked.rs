//! What walking an agent returned, ordered for looking up.

use crate::plan::Watched;
use crate::{Oid, Value};

/// Varbinds in the order of their OIDs.
pub(super) struct Walked<'a>(Vec<(&'a [u32], &'a Value)>);

impl<'a> Walked<'a> {
    /// Orders what was walked; exceptions count as nothing.
    pub(super) fn new(varbinds: &'a [(Oid, Value)]) -> Self {
        let there = varbinds.iter().filter(|(_, value)| !value.is_exception());
        let mut ordered: Vec<_> = there.map(|(oid, value)| (oid.as_slice(), value)).collect();
        ordered.sort_by_key(|(arcs, _)| *arcs);
        Self(ordered)
    }

    /// The values below `prefix`, with what follows it in their OIDs.
    pub(super) fn below(&self, prefix: &[u32]) -> impl Iterator<Item = (&'a [u32], &'a Value)> {
        let from = self.0.partition_point(|(arcs, _)| *arcs < prefix);
        let length = prefix.len();
        let prefix = prefix.to_vec();
        self.0[from..]
            .iter()
            .take_while(move |(arcs, _)| arcs.starts_with(&prefix))
            .map(move |(arcs, value)| (&arcs[length..], *value))
    }

    /// The value of exactly this instance.
    pub(super) fn get(&self, arcs: &[u32]) -> Option<&'a Value> {
        let at = self.0.binary_search_by_key(&arcs, |(arcs, _)| *arcs).ok()?;
        Some(self.0[at].1)
    }

    /// The cell of a table's column in the row of that index.
    pub(super) fn cell(&self, column: &[u32], index: &[u32]) -> Option<&'a Value> {
        self.get(&[column, index].concat())
    }

    /// The instance that a new row of a table would have in this column if the agent numbers its
    /// rows on; `None` if it has none yet.
    pub(super) fn next_row(&self, column: &[u32]) -> Option<Watched> {
        let last = self.below(column).filter_map(|(index, _)| index.first()).max()?;
        let oid = Oid::from_slice(column).child(&[last.checked_add(1)?]);
        Some(Watched { oid, seen: None })
    }

    /// Whether nothing is visible below any of these.
    pub(super) fn hides(&self, prefixes: &[&[u32]]) -> bool {
        prefixes.iter().all(|prefix| self.below(prefix).next().is_none())
    }
}

/// Octets as a name for people: UTF-8 as far as they are, without what pads them.
pub(super) fn name_of(value: &Value) -> Option<String> {
    let octets = value.as_octets()?;
    let text = String::from_utf8_lossy(octets);
    Some(text.trim_end_matches(['\0', ' ']).to_owned())
}
