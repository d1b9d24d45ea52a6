//! Whether a configuration does what it must, proven from the settings of ports alone.
//!
//! The checker knows no plan and no topology: it reads what frames can do out of what is set at both
//! ends of every cable. It shares no code with the planner beyond the types of settings, and none with
//! the [`emulator`](crate::emulator) that its tests hold it against.
//!
//! For `n` switches, `h` hosts and `v` VLANs it costs about `v * (n + h)` steps for the VLANs, and `n`
//! for each switch and VLAN that hosts send in.

mod channels;
mod company;
mod fault;
mod fit;
mod loops;
mod path;
mod plain;
mod report;
mod shared_learning;
mod standing;
mod tangle;
mod waits;
mod walk;

use std::collections::BTreeMap;

use meikyo_units::Nanos;

use self::channels::Channels;
use self::company::{Company, Receivers, Senders};
pub use self::fault::{Difference, Fault, InWords, Limit, Lost};
use self::loops::{Kinds, kinds, loops};
pub use self::path::{Hop, path};
use self::plain::Plain;
use self::report::Findings;
pub use self::report::{LinkLoad, Report, Verdict};
use self::shared_learning::Shared;
use self::standing::Primed;
use self::tangle::Tangle;
use self::waits::Waits;
use crate::{
    Configuration, HostId, HostSettings, Learning, Loads, SwitchId, TrunkId, Wiring, warning,
};

/// What a check supposes, and how much it tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckOptions {
    /// A trunk that has failed: hosts that the others do not connect need not reach each other.
    pub failed: Option<TrunkId>,
    /// Most faults that are listed.
    pub faults_max: usize,
}

impl CheckOptions {
    /// Nothing has failed, and up to 100 faults are listed.
    pub const INTACT: Self = Self { failed: None, faults_max: 100 };

    /// The fabric without this trunk, and up to 100 faults listed.
    #[must_use]
    pub const fn failed(trunk: TrunkId) -> Self {
        Self { failed: Some(trunk), ..Self::INTACT }
    }
}

/// Proves a configuration of a wiring, or says what is wrong with it. It knows no plan: it follows
/// what the ports at both ends of every cable let through, and its time is about linear in VLANs
/// times trunks where each VLAN is a tree.
pub fn check(wiring: &Wiring, configuration: &Configuration, options: &CheckOptions) -> Report {
    let mut findings = Findings::new(options.faults_max);
    let without;
    let mut wiring = wiring;
    if let Some(failed) = options.failed {
        without = without_trunk(wiring, failed);
        wiring = &without;
    }
    let Some(plugged) = fit::fit(wiring, configuration, &mut findings) else {
        return report((wiring, configuration), findings, None);
    };
    let channels = Channels::new(wiring, configuration, &plugged);
    findings.entries = vec![0; channels.switches];
    findings.loads = vec![0; channels.all.len()];
    let before = findings.faults_count();
    loops(&channels, &mut findings);
    if findings.faults_count() > before {
        // Where frames go round, nothing else can be said of them.
        return report((wiring, configuration), findings, None);
    }
    let parts = match options.failed {
        Some(_) => parts(wiring),
        None => vec![0; channels.switches],
    };
    let kinds = kinds(&channels);
    let followed = follow(wiring, configuration, (&channels, &parts), kinds, &mut findings);
    full_tables(wiring, &mut findings);
    report((wiring, configuration), findings, Some((&channels, followed)))
}

/// What is known once frames have been followed.
#[derive(Debug, Clone, Copy)]
struct Followed {
    vlans: usize,
    deadlock_free: bool,
}

fn follow(
    wiring: &Wiring,
    configuration: &Configuration,
    (channels, parts): (&Channels, &[usize]),
    kinds: Kinds,
    findings: &mut Findings,
) -> Followed {
    let Kinds { is_plain, mut tangles } = kinds;
    let shares = wiring.switches.iter().any(|switch| switch.model.learning == Learning::Shared);
    if shares && !tangles.is_empty() {
        // What a switch learns in one VLAN it uses in all of them.
        tangles = vec![(0..channels.vlans.len()).collect()];
    }
    let is_alone = |vlan: usize| is_plain[vlan] && tangles.iter().all(|its| !its.contains(&vlan));
    let senders = senders(configuration, channels, findings);
    let mut waits = Waits::new(channels);
    let none = Shared::none(channels);
    let mut companies: Vec<Company> = Vec::new();
    for vlan in (0..channels.vlans.len()).filter(|&vlan| is_alone(vlan)) {
        let primed = Primed::new(configuration, channels, vlan);
        let mut company = Company::new(channels, primed, vlan);
        Plain::new(channels, parts, &none, findings, &mut waits).tables(&mut company);
        companies.push(company);
    }
    let shared = if shares && tangles.is_empty() {
        Shared::new(channels, (wiring, configuration), &companies, &senders, findings)
    } else {
        none
    };
    let mut plain = Plain::new(channels, parts, &shared, findings, &mut waits);
    for senders in &senders {
        let company = companies.binary_search_by_key(&senders.vlan, |company| company.place);
        if let Ok(place) = company {
            plain.follow(&companies[place], senders);
        }
    }
    shared.count(findings);
    for vlans in &tangles {
        if findings.is_full() {
            // Each is followed host by host: what is refused already is not worth that.
            break;
        }
        match Tangle::new(channels, (wiring, configuration), parts, vlans) {
            Some(mut tangle) => tangle.check(&senders, findings, &mut waits),
            None => findings.note(|| Fault::Tangled { vlan: channels.vlans[vlans[0]] }),
        }
    }
    let mut vlans: Vec<usize> = senders.iter().map(|senders| senders.vlan).collect();
    vlans.sort_unstable();
    vlans.dedup();
    let deadlock_free = waits.check(channels, findings);
    Followed { vlans: vlans.len(), deadlock_free }
}

/// Hosts by the VLAN and the switch that they send from; notes those whose frames come in nowhere.
fn senders(
    configuration: &Configuration,
    channels: &Channels,
    findings: &mut Findings,
) -> Vec<Senders> {
    let mut everyone: BTreeMap<(usize, usize), Vec<HostId>> = BTreeMap::new();
    let mut broadcast: BTreeMap<(usize, usize), Vec<HostId>> = BTreeMap::new();
    let mut chosen: BTreeMap<(usize, usize), Vec<(HostId, HostId)>> = BTreeMap::new();
    for (place, plug) in channels.hosts.iter().enumerate() {
        let host = HostId::new(place);
        match (&configuration.hosts[place], plug.enters) {
            (_, None) => findings.note(|| Fault::Mute { host }),
            (HostSettings::Untagged, Some(vlan)) => {
                everyone.entry((vlan, plug.switch)).or_default().push(host);
            }
            (HostSettings::Tagged(_), Some(vlan)) => {
                broadcast.entry((vlan, plug.switch)).or_default().push(host);
            }
        }
        if let HostSettings::Tagged(tags) = &configuration.hosts[place] {
            for to in (0..channels.hosts.len()).map(HostId::new).filter(|&to| to != host) {
                let vlan = match tags.get(&to) {
                    None => plug.enters,
                    Some(&vlan) if plug.accepts.contains(vlan) => channels.place(vlan),
                    Some(&vlan) => {
                        let why = Lost::Tag;
                        findings.note(|| Fault::Unreachable { from: host, to, vlan, why });
                        continue;
                    }
                };
                if let Some(vlan) = vlan {
                    chosen.entry((vlan, plug.switch)).or_default().push((host, to));
                }
            }
        }
    }
    let plain = |to: Receivers| {
        move |((vlan, switch), hosts)| Senders { vlan, switch, hosts, to: to.clone() }
    };
    let chosen = chosen.into_iter().map(|((vlan, switch), pairs)| {
        let mut hosts: Vec<HostId> = pairs.iter().map(|&(from, _)| from).collect();
        hosts.dedup();
        Senders { vlan, switch, hosts, to: Receivers::Chosen(pairs) }
    });
    let everyone = everyone.into_iter().map(plain(Receivers::Everyone));
    let broadcast = broadcast.into_iter().map(plain(Receivers::Broadcast));
    everyone.chain(broadcast).chain(chosen).collect()
}

fn full_tables(wiring: &Wiring, findings: &mut Findings) {
    for (place, switch) in wiring.switches.iter().enumerate() {
        let (entries, limit) = (findings.entries[place], switch.model.table_entries);
        if entries > u64::from(limit) {
            let switch = SwitchId::new(place);
            findings.note(|| Fault::TableFull { switch, entries, limit });
        }
    }
}

/// The wiring with a trunk whose cables are pulled.
fn without_trunk(wiring: &Wiring, failed: TrunkId) -> Wiring {
    let mut without = wiring.clone();
    if let Some(trunk) = without.trunks.get_mut(failed.place()) {
        trunk.ends.iter_mut().for_each(|end| end.ports.clear());
    }
    without
}

/// For each switch the first switch that cables connect it with.
fn parts(wiring: &Wiring) -> Vec<usize> {
    let mut parts: Vec<usize> = (0..wiring.switches.len()).collect();
    loop {
        let mut is_settled = true;
        for trunk in wiring.trunks.iter().filter(|trunk| trunk.cables() > 0) {
            let [one, other] = trunk.ends.each_ref().map(|end| end.switch.place());
            let least = parts[one].min(parts[other]);
            is_settled &= parts[one] == parts[other];
            (parts[one], parts[other]) = (least, least);
        }
        if is_settled {
            return parts;
        }
    }
}

fn report(
    (wiring, configuration): (&Wiring, &Configuration),
    findings: Findings,
    followed: Option<(&Channels, Followed)>,
) -> Report {
    let ageing = configuration.switches.iter().filter_map(|switch| switch.ageing).min();
    let warnings = followed.map_or_else(Vec::new, |(channels, _)| {
        warning::of_settings(wiring, configuration, &by_trunk(wiring, channels, &findings.loads))
    });
    let loads = followed.map_or_else(Vec::new, |(channels, _)| {
        let all = channels.all.iter().zip(&findings.loads);
        let load = all.map(|(channel, &pairs)| LinkLoad {
            trunk: channel.trunk,
            from: SwitchId::new(channel.from),
            to: SwitchId::new(channel.to),
            cables: channel.cables,
            pairs,
        });
        load.collect()
    });
    Report {
        faults: findings.faults,
        faults_unlisted: findings.unlisted,
        followed: followed.is_some(),
        vlans: followed.map_or(0, |(_, followed)| followed.vlans),
        table_entries: findings.entries,
        loads,
        warnings,
        deadlock_free: followed.is_some_and(|(_, followed)| followed.deadlock_free),
        prime_every: ageing.map(|ageing| Nanos::new(ageing.get() / 2)),
    }
}

/// The loads of channels as those of the trunks that they belong to.
fn by_trunk(wiring: &Wiring, channels: &Channels, loads: &[u64]) -> Loads {
    let mut pairs = vec![[0, 0]; wiring.trunks.len()];
    for (channel, &load) in channels.all.iter().zip(loads) {
        let trunk = channel.trunk.place();
        let direction = usize::from(wiring.trunks[trunk].ends[0].switch.place() != channel.from);
        pairs[trunk][direction] += load;
    }
    Loads { pairs }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PlanOptions, Priming, SwitchModel, Topology, cable_uniform, plan};

    /// What is found if VLANs are what they are, or if each is taken for a tangle.
    fn followed(
        wiring: &Wiring,
        configuration: &Configuration,
        are_tangles: bool,
    ) -> (Vec<u64>, Vec<u64>, bool, usize) {
        let mut findings = Findings::new(usize::MAX);
        let plugged = fit::fit(wiring, configuration, &mut findings).unwrap();
        let channels = Channels::new(wiring, configuration, &plugged);
        findings.entries = vec![0; channels.switches];
        findings.loads = vec![0; channels.all.len()];
        let mut kinds = kinds(&channels);
        assert!(kinds.tangles.is_empty());
        if are_tangles {
            kinds.is_plain.fill(false);
            kinds.tangles = (0..channels.vlans.len()).map(|vlan| vec![vlan]).collect();
        }
        let parts = vec![0; channels.switches];
        let followed = follow(wiring, configuration, (&channels, &parts), kinds, &mut findings);
        (findings.entries, findings.loads, followed.deadlock_free, findings.faults.len())
    }

    #[test]
    fn sums_over_trees_are_what_single_hosts_give() {
        for text in ["torus 4x4", "fat-tree 4", "hyperx 3x3", "random-regular 12 degree 3 seed 5"] {
            let topology: Topology = text.parse().unwrap();
            let model = SwitchModel::named("generic").unwrap();
            let wiring = cable_uniform(&topology, &model, 3).unwrap();
            let options = PlanOptions { spare: true, ..PlanOptions::new(Some(topology)) };
            let mut configuration = plan(&wiring, &options).unwrap().configuration(&wiring);
            let (entries, loads, is_free, faults) = followed(&wiring, &configuration, false);
            assert_eq!((is_free, faults), (true, 0), "{text}");
            assert_eq!(
                followed(&wiring, &configuration, true),
                (entries, loads, true, 0),
                "{text}"
            );
            if let Priming::Directed(representatives) = &mut configuration.priming {
                representatives.remove(0);
            }
            let (_, plain_loads, _, plain) = followed(&wiring, &configuration, false);
            let (_, loads, _, tangled) = followed(&wiring, &configuration, true);
            assert_eq!((plain > 0, &plain_loads), (tangled > 0, &loads), "{text}");
        }
    }
}
