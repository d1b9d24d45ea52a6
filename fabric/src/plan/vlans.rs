//! Who sends in which VLAN, and whether that fits the switches.

use std::collections::{BTreeMap, BTreeSet};

use meikyo_cluster::{Routing, Tagging};

use super::tables::{self, Use};
use super::{Plan, PlanError, PlanOptions, PlannedVlan, spare};
use crate::routing::{Net, Routes};
use crate::{Learning, Priming, Representative, SwitchId, TrunkId, Vlan, VlanSet, Wiring};

/// The first VLAN that is used where nothing is said: that of the paper.
const FIRST: u16 = 101;

/// Working VLANs, and how the hosts of each switch are dealt out to them.
#[derive(Debug, Clone)]
pub(super) struct Assignment {
    /// Working VLANs, each with what uses it.
    pub(super) vlans: Vec<Use>,
    /// For each switch the VLANs that its hosts take in turn.
    pub(super) turns: Vec<Vec<usize>>,
}

impl Assignment {
    /// The hosts of each switch in these forests of the routes, in turn; forests without senders are
    /// left out.
    pub(super) fn new(net: &Net, routes: &Routes, forests: &[Vec<usize>]) -> Self {
        let mut place = vec![None; routes.forests.len()];
        let mut assignment = Self { vlans: Vec::new(), turns: vec![Vec::new(); net.switches()] };
        for source in net.sources() {
            for &forest in &forests[source] {
                let at = *place[forest].get_or_insert_with(|| {
                    let trunks = routes.forests[forest].clone();
                    assignment.vlans.push(Use { trunks, senders: BTreeMap::new() });
                    assignment.vlans.len() - 1
                });
                assignment.turns[source].push(at);
            }
            let turns = &assignment.turns[source];
            for host in 0..net.hosts[source] {
                *assignment.vlans[turns[host % turns.len()]].senders.entry(source).or_insert(0) +=
                    1;
            }
        }
        assignment
    }

    /// Whether hosts of several switches send in one VLAN.
    pub(super) fn shares_trees(&self) -> bool {
        self.vlans.iter().any(|one| one.senders.len() > 1)
    }
}

/// What an assignment needs, and that it fits.
#[derive(Debug)]
pub(super) struct Fitted {
    /// The identifiers of the working VLANs.
    pub(super) ids: Vec<Vlan>,
    spare_ids: Vec<Vlan>,
    directed: bool,
    entries: Vec<usize>,
}

/// What all assignments of a wiring have around them.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    pub(super) wiring: &'a Wiring,
    pub(super) net: &'a Net,
    pub(super) options: &'a PlanOptions,
    ids: Vec<Vlan>,
    spare: Vec<Use>,
    management: Option<PlannedVlan>,
}

impl<'a> Frame<'a> {
    pub(super) fn new(
        wiring: &'a Wiring,
        net: &'a Net,
        options: &'a PlanOptions,
    ) -> Result<Self, PlanError> {
        let trees = if options.spare { spare::trees(net) } else { Vec::new() };
        let all = |trunks| Use { trunks, senders: net.sources().map(|at| (at, 0)).collect() };
        Ok(Self {
            wiring,
            net,
            options,
            ids: usable(wiring, options),
            spare: trees.into_iter().map(all).collect(),
            management: management(wiring, net, options)?,
        })
    }

    /// Whether the assignment fits the switches, and by which priming.
    pub(super) fn fit(&self, assignment: &Assignment) -> Result<Fitted, PlanError> {
        let (working, spare) = (assignment.vlans.len(), self.spare.len());
        self.check_ids(working)?;
        self.check_kinds(working + spare)?;
        let uses = || assignment.vlans.iter().chain(&self.spare);
        let fits = |entries: &[usize]| {
            let limits = self.wiring.switches.iter().map(|switch| switch.model.table_entries);
            entries.iter().zip(limits).position(|(&needed, limit)| {
                u32::try_from(needed).map_or(true, |needed| needed > limit)
            })
        };
        let mut directed = false;
        let mut entries = tables::broadcast(self.net, uses());
        if fits(&entries).is_some() {
            directed = true;
            entries = tables::directed(self.net, uses());
        }
        if let Some(switch) = fits(&entries) {
            return Err(self.too_many(&entries, switch, working + spare));
        }
        let ids = self.ids[..working].to_vec();
        let spare_ids = self.ids[working..working + spare].to_vec();
        Ok(Fitted { ids, spare_ids, directed, entries })
    }

    fn too_many(&self, entries: &[usize], first: usize, vlans: usize) -> PlanError {
        // The switch that lacks most.
        let limit = |at: usize| {
            let entries = self.wiring.switches[at].model.table_entries;
            usize::try_from(entries).expect("machines of 32 bits and more")
        };
        let lack = |at: &usize| entries[*at].saturating_sub(limit(*at));
        let at = (0..entries.len()).rev().max_by_key(lack).unwrap_or(first);
        let (hosts, needed) = (self.wiring.hosts.len(), entries[at]);
        let switch = &self.wiring.switches[at];
        let room = limit(at);
        PlanError::Tables {
            switch: switch.name.clone(),
            model: switch.model.name.clone(),
            needed,
            hosts,
            vlans,
            how: "directed frames",
            limit: switch.model.table_entries,
            fits: hosts.saturating_mul(room) / needed.max(1),
        }
    }

    fn check_ids(&self, working: usize) -> Result<(), PlanError> {
        let (spare, management) = (self.spare.len(), usize::from(self.management.is_some()));
        let needed = working + spare + management;
        let least = self.wiring.switches.iter().min_by_key(|switch| switch.model.vlans);
        let (most, because) = least.map_or((0, String::new()), |switch| {
            let because = format!(" (`{}` is a {})", switch.name, switch.model.name);
            (usize::from(switch.model.vlans), because)
        });
        let free = self.ids.len() + management;
        let (limit, because) = if most < free { (most, because) } else { (free, String::new()) };
        if needed > limit {
            return Err(PlanError::Vlans { needed, working, spare, management, limit, because });
        }
        Ok(())
    }

    fn check_kinds(&self, vlans: usize) -> Result<(), PlanError> {
        if vlans < 2 {
            return Ok(());
        }
        for (at, switch) in self.wiring.switches.iter().enumerate() {
            let names = || (switch.name.clone(), switch.model.name.clone());
            if !switch.model.multi_untagged && self.net.hosts[at] > 0 {
                let (switch, model) = names();
                return Err(PlanError::Untagged { switch, model, vlans });
            }
            if switch.model.learning == Learning::Shared {
                let (switch, model) = names();
                return Err(PlanError::SharedLearning { switch, model, vlans });
            }
        }
        Ok(())
    }

    /// The plan of an assignment that fits.
    pub(super) fn plan(&self, routing: Routing, assignment: Assignment, fitted: Fitted) -> Plan {
        let mut seen = vec![0; self.net.switches()];
        let places = self.wiring.hosts.iter().map(|host| {
            let turns = &assignment.turns[host.switch.place()];
            let turn = seen[host.switch.place()];
            seen[host.switch.place()] += 1;
            turns[turn % turns.len()]
        });
        let pvids: Vec<Vlan> = places.map(|place| fitted.ids[place]).collect();
        let different = |turns: &Vec<usize>| turns.iter().collect::<BTreeSet<_>>().len();
        let spread = assignment.turns.iter().map(different).max().unwrap_or(0);
        let named = |uses: &[Use], ids: &[Vlan]| -> Vec<PlannedVlan> {
            uses.iter().zip(ids).map(|(one, &vlan)| planned(vlan, one)).collect()
        };
        let working = named(&assignment.vlans, &fitted.ids);
        let spare = named(&self.spare, &fitted.spare_ids);
        let priming = self.priming(&working, &spare, &pvids, fitted.directed);
        Plan {
            routing,
            tagging: self.options.tagging,
            working,
            fewest: false,
            spare,
            management: self.management.clone(),
            pvids,
            tags: Vec::new(),
            spread,
            priming,
            table_entries: fitted.entries,
            bundling: self.options.bundling,
            flow_control: self.options.flow_control,
            ageing: self.options.ageing,
            manager: self.options.manager,
        }
    }

    fn priming(
        &self,
        working: &[PlannedVlan],
        spare: &[PlannedVlan],
        pvids: &[Vlan],
        directed: bool,
    ) -> Priming {
        let all = || working.iter().chain(spare);
        if working.len() + spare.len() == 1 && self.options.tagging == Tagging::Switch {
            // Answers come back in the same VLAN and teach switches by themselves.
            return Priming::None;
        }
        if !directed {
            return Priming::Broadcast(Box::new(all().map(|vlan| vlan.vlan).collect()));
        }
        // The first host of the switch that sends in the VLAN anyway, else the first at all.
        let mut first = BTreeMap::new();
        for (host, (of, &pvid)) in self.wiring.hosts.iter().zip(pvids).enumerate() {
            first.entry((of.switch, Some(pvid))).or_insert(host);
            first.entry((of.switch, None)).or_insert(host);
        }
        let representatives = all().flat_map(|vlan| {
            let first = &first;
            vlan.sources.iter().filter_map(move |&source| {
                let own = first.get(&(source, Some(vlan.vlan)));
                let host = own.or_else(|| first.get(&(source, None)))?;
                Some(Representative { vlan: vlan.vlan, host: crate::HostId::new(*host) })
            })
        });
        Priming::Directed(representatives.collect())
    }
}

fn planned(vlan: Vlan, one: &Use) -> PlannedVlan {
    PlannedVlan {
        vlan,
        trunks: one.trunks.iter().map(|&trunk| TrunkId::new(trunk)).collect(),
        sources: one.senders.keys().map(|&switch| SwitchId::new(switch)).collect(),
    }
}

/// The VLANs that may carry frames, in the order in which they are taken.
fn usable(wiring: &Wiring, options: &PlanOptions) -> Vec<Vlan> {
    let every: VlanSet = (2..=Vlan::MAX.id()).filter_map(Vlan::new).collect();
    let mut usable = options.vlans.clone().unwrap_or(every);
    for switch in &wiring.switches {
        usable = usable.intersection(&switch.model.vlan_ids);
    }
    usable.remove(Vlan::DEFAULT);
    if let Some(management) = options.management {
        usable.remove(management);
    }
    let first = if options.vlans.is_some() { 0 } else { FIRST };
    let (before, after): (Vec<Vlan>, Vec<Vlan>) = usable.iter().partition(|vlan| vlan.id() < first);
    [after, before].concat()
}

/// A spanning tree for the management VLAN: shortest ways from the manager's switch, or from the centre.
fn management(
    wiring: &Wiring,
    net: &Net,
    options: &PlanOptions,
) -> Result<Option<PlannedVlan>, PlanError> {
    let Some(vlan) = options.management else { return Ok(None) };
    let refuses = |switch: &&crate::Switch| !switch.model.vlan_ids.contains(vlan);
    if let Some(switch) = wiring.switches.iter().find(refuses) {
        return Err(PlanError::VlanId {
            vlan,
            switch: switch.name.clone(),
            model: switch.model.name.clone(),
            allowed: switch.model.vlan_ids.to_string(),
        });
    }
    let manager = options.manager.map(|host| wiring.hosts[host.place()].switch);
    let root = manager.map_or_else(|| net.centre(), SwitchId::place);
    let trunks = spare::tree_from(net, root);
    Ok(Some(PlannedVlan {
        vlan,
        trunks: trunks.into_iter().map(TrunkId::new).collect(),
        sources: manager.into_iter().collect(),
    }))
}
