//! The switch models that are known by name: those of the vendors, and generic ones.

use super::vendors::{Entry, VENDORS};
use crate::SwitchModel;
use crate::model::{GENERICS, ModelFacts};

impl SwitchModel {
    /// The names of the models that are built in: those whose vendor's commands are known, the generic
    /// ones, and those that are refused.
    pub fn names() -> impl Iterator<Item = &'static str> {
        built_in().map(|facts| facts.name)
    }

    /// The built-in model of that name; `None` if there is none.
    pub fn named(name: &str) -> Option<Self> {
        let mut known = built_in();
        known.find(|facts| facts.name == name).map(ModelFacts::model)
    }
}

/// The models that are built in: of vendors whose commands are known, generic ones, refused ones.
fn built_in() -> impl Iterator<Item = &'static ModelFacts> {
    let of = |spoken: bool| {
        VENDORS
            .iter()
            .filter(move |entry| matches!(entry, Entry::Spoken(_)) == spoken)
            .flat_map(Entry::models)
    };
    of(true).chain(&GENERICS).chain(of(false))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_switch_of_the_paper_is_known() {
        let model = SwitchModel::named("powerconnect-6248").unwrap();
        assert_eq!((model.ports, model.table_entries, model.vlans), (48, 8_000, 1_024));
        assert_eq!(model.vlan_ids.to_string(), "2-4093");
        assert!(SwitchModel::names().all(|name| SwitchModel::named(name).is_some()));
        assert_eq!(SwitchModel::named("powerconnect"), None);
    }

    #[test]
    fn no_two_models_have_the_same_name() {
        let names: BTreeSet<&str> = SwitchModel::names().collect();
        assert_eq!(names.len(), SwitchModel::names().count());
    }
}
