//! Hosts that fail together, as a cluster file tells: those of a rack (a group of the file) and those on a switch of its
//! fabric. They are set apart in a group, and what the group does not survive is said.

use std::collections::{BTreeMap, BTreeSet};

use meikyo_checkpoint::layout::Layout;
use meikyo_cluster::Cluster;
use meikyo_fabric::describe;
use serde::{Deserialize, Serialize};

/// Names of hosts that fail together, by what they share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Domains {
    racks: BTreeMap<String, String>,
    switches: BTreeMap<String, String>,
}

impl Domains {
    /// What a cluster file tells; a fabric that it does not describe tells nothing.
    pub(super) fn of(cluster: &Cluster) -> Self {
        let grouped = cluster.devices.iter();
        let racks = grouped.filter_map(|device| Some((device.name.clone(), device.group.clone()?)));
        let wiring = cluster.fabric.as_ref().and_then(|_| describe(cluster).ok());
        let switches = wiring.iter().flat_map(|described| {
            let switches = &described.wiring.switches;
            let hosts = described.wiring.hosts.iter();
            hosts.filter_map(|host| {
                let switch = switches.get(host.switch.place())?;
                Some((host.name.clone(), switch.name.clone()))
            })
        });
        Self { racks: racks.collect(), switches: switches.collect() }
    }

    /// Whether nothing is told.
    pub(super) fn is_empty(&self) -> bool {
        self.racks.is_empty() && self.switches.is_empty()
    }

    /// What it tells of these hosts alone.
    pub(super) fn only(mut self, names: &[&str]) -> Self {
        for of in [&mut self.racks, &mut self.switches] {
            of.retain(|host, _| names.contains(&host.as_str()));
        }
        self
    }

    /// Hosts in an order in which neighbours share no rack, nor a switch where no racks are told, as far as that is possible.
    pub(super) fn spread<T>(&self, hosts: Vec<T>, name: impl Fn(&T) -> &str) -> Vec<T> {
        let by = if self.racks.is_empty() { &self.switches } else { &self.racks };
        let shared: Vec<Option<&str>> =
            hosts.iter().map(|host| by.get(name(host)).map(String::as_str)).collect();
        let mut hosts: Vec<Option<T>> = hosts.into_iter().map(Some).collect();
        let order = set_apart(&shared);
        order.into_iter().filter_map(|place| hosts.get_mut(place)?.take()).collect()
    }

    /// Racks and switches whose loss a group does not survive, each with its hosts there; `names` are by place.
    pub(super) fn fatal(&self, layout: &Layout, names: &[&str]) -> Vec<String> {
        let kinds = [("rack", &self.racks), ("switch", &self.switches)];
        let fatal = |(kind, of): (&str, &BTreeMap<String, String>)| {
            let mut places: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
            for (place, name) in names.iter().enumerate() {
                if let Some(domain) = of.get(*name) {
                    places.entry(domain).or_default().insert(place);
                }
            }
            let lost = places.into_iter().filter(|(_, places)| !layout.survives(places));
            lost.map(|(domain, places)| {
                let own: Vec<String> = places
                    .into_iter()
                    .filter_map(|place| names.get(place).map(|name| (*name).to_owned()))
                    .collect();
                format!("{kind} {domain} ({})", meikyo_cluster::fold(&own))
            })
            .collect::<Vec<_>>()
        };
        kinds.into_iter().flat_map(fatal).collect()
    }
}

/// An order of hosts around a circle in which neighbours share nothing, where no domain has more than half of them.
///
/// The domain with most hosts first, every second place is filled, then the others: so hosts of a domain that does not come to
/// an end of the circle are two places apart.
fn set_apart(domains: &[Option<&str>]) -> Vec<usize> {
    let mut of: BTreeMap<(&str, usize), Vec<usize>> = BTreeMap::new();
    for (place, domain) in domains.iter().enumerate() {
        // Whoever shares nothing is a domain by himself.
        let key = domain.map_or(("", place + 1), |domain| (domain, 0));
        of.entry(key).or_default().push(place);
    }
    let mut all: Vec<Vec<usize>> = of.into_values().collect();
    // Where nothing is to be set apart, hosts stay in the order of the file.
    if all.iter().all(|own| own.len() == 1) || all.len() == 1 {
        return (0..domains.len()).collect();
    }
    all.sort_by_key(|own| std::cmp::Reverse(own.len()));
    let mut taken = all.into_iter().flatten();
    let mut order = vec![0; domains.len()];
    for first in [0, 1] {
        for place in order.iter_mut().skip(first).step_by(2) {
            *place = taken.next().unwrap_or_default();
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use meikyo_checkpoint::layout::Scheme;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn neighbours_share_nothing_where_that_is_possible(sizes in proptest::collection::vec(1_usize..6, 2..8)) {
            let names: Vec<String> = (0..sizes.len()).map(|number| format!("rack{number}")).collect();
            let domains: Vec<Option<&str>> = sizes
                .iter()
                .zip(&names)
                .flat_map(|(&size, name)| std::iter::repeat_n(Some(name.as_str()), size))
                .collect();
            let order = set_apart(&domains);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..domains.len()).collect::<Vec<_>>());
            let most = sizes.iter().max().copied().unwrap_or_default();
            if 2 * most <= domains.len() {
                for (at, &place) in order.iter().enumerate() {
                    let next = order[(at + 1) % order.len()];
                    prop_assert_ne!(domains[place], domains[next], "{:?}", order);
                }
            }
        }
    }

    fn domains(racks: &[(&str, &str)]) -> Domains {
        let racks = racks.iter().map(|&(host, rack)| (host.to_owned(), rack.to_owned()));
        Domains { racks: racks.collect(), switches: BTreeMap::new() }
    }

    #[test]
    fn a_rack_is_survived_by_copies_on_others_and_named_where_it_is_not() {
        let domains = domains(&[("n1", "a"), ("n2", "a"), ("n3", "b"), ("n4", "b")]);
        let spread = domains.spread(vec!["n1", "n2", "n3", "n4"], |name| name);
        let partner = Layout::new(Scheme::Partner, 4).unwrap();
        assert_eq!(domains.fatal(&partner, &spread), Vec::<String>::new());
        // In the order of the file, copies are in the same rack.
        let fatal = domains.fatal(&partner, &["n1", "n2", "n3", "n4"]);
        assert_eq!(fatal, ["rack a (n[1-2])", "rack b (n[3-4])"]);
        let ring = Layout::new(Scheme::Ring, 4).unwrap();
        assert_eq!(domains.fatal(&ring, &spread).len(), 2);
        let none = Domains::default();
        assert_eq!(none.spread(vec!["n1", "n2", "n3"], |name| name), ["n1", "n2", "n3"]);
        assert!(none.fatal(&ring, &spread).is_empty());
    }
}
