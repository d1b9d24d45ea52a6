//! Why there is no plan.

use meikyo_cluster::Routing;
use meikyo_units::Nanos;
use thiserror::Error;

use super::PlanOptions;
use crate::routing::{Net, Sets};
use crate::{Vlan, Wiring};

/// A wiring cannot be planned as asked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanError {
    /// There are no hosts, or all are on the same switch.
    #[error("there is nothing to plan: hosts are on {switches} switches")]
    Nothing {
        /// Switches that have hosts: none, or a single one.
        switches: usize,
    },
    /// A switch with hosts cannot be reached from another one.
    #[error("`{to}` cannot be reached from `{from}`")]
    Apart {
        /// A switch with hosts.
        from: String,
        /// One that is not joined to it.
        to: String,
    },
    /// The routing needs coordinates that the wiring does not have.
    #[error("{} routing needs a {needs}; {instead}", routing.word())]
    Coordinates {
        /// The routing that was asked for.
        routing: Routing,
        /// The kind of topology that gives a wiring such coordinates.
        needs: &'static str,
        /// A routing, or a key of the cluster file, that would do instead.
        instead: String,
    },
    /// Frames could wait for each other in a cycle.
    #[error(
        "{} routing could deadlock under pause frames: {cycle}; `acyclic` would do", routing.word()
    )]
    Deadlock {
        /// The routing whose paths wait for each other.
        routing: Routing,
        /// Trunks, each of which waits for the next, the last for the first.
        cycle: String,
    },
    /// More VLANs are needed than there may be.
    #[error(
        "{needed} VLANs are needed ({working} working, {spare} spare, {management} for management), \
         {limit} can be used{because}"
    )]
    Vlans {
        /// VLANs of all three kinds together.
        needed: usize,
        /// VLANs that carry frames between hosts.
        working: usize,
        /// VLANs that carry frames when a trunk fails.
        spare: usize,
        /// 1 if switches are managed in a VLAN of their own, otherwise 0.
        management: usize,
        /// How many can be used.
        limit: usize,
        /// The option or the switch that limits them, as the end of the sentence.
        because: String,
    },
    /// A VLAN cannot be used on a switch.
    #[error("VLAN {vlan} cannot be used on `{switch}` ({model}): it allows {allowed}")]
    VlanId {
        /// The VLAN that the cluster file asks for.
        vlan: Vlan,
        /// The switch that has no such VLAN.
        switch: String,
        /// The name of its model.
        model: String,
        /// The VLANs that can be used on it.
        allowed: String,
    },
    /// A switch cannot forget addresses so soon.
    #[error(
        "`{switch}` ({model}) keeps addresses for {least} at least, and `ageing` asks for {asked}"
    )]
    Ageing {
        /// The switch that forgets later than it is asked to.
        switch: String,
        /// The name of its model.
        model: String,
        /// The shortest ageing time that it can be set to.
        least: Nanos,
        /// The ageing time that the cluster file asks for.
        asked: Nanos,
    },
    /// A switch would have to hold more addresses than its table does.
    #[error(
        "`{switch}` ({model}) would hold {needed} table entries ({hosts} hosts in {vlans} VLANs, \
         primed by {how}), it has {limit}: {fits} hosts would fit, or a model with {needed} entries"
    )]
    Tables {
        /// The switch that lacks most entries.
        switch: String,
        /// The name of its model.
        model: String,
        /// Table entries that the switch would need.
        needed: usize,
        /// Hosts of the fabric.
        hosts: usize,
        /// Working and spare VLANs together.
        vlans: usize,
        /// The way of priming that needs the fewest entries.
        how: &'static str,
        /// Entries that its table holds.
        limit: u32,
        /// About how many hosts would fit.
        fits: usize,
    },
    /// A port cannot be an untagged member of several VLANs.
    #[error(
        "`{switch}` ({model}) allows one untagged VLAN on a port, {vlans} are needed; a tree, which \
         needs 1, would do, or switches that allow several"
    )]
    Untagged {
        /// The first switch whose ports cannot do it.
        switch: String,
        /// The name of its model.
        model: String,
        /// Working and spare VLANs together.
        vlans: usize,
    },
    /// A switch keeps one entry for an address over all VLANs.
    #[error(
        "`{switch}` ({model}) keeps one table entry for an address over all VLANs, and {vlans} are \
         needed, in which it would be at different ports; a tree, which needs 1, would do"
    )]
    SharedLearning {
        /// The first switch that learns so.
        switch: String,
        /// The name of its model.
        model: String,
        /// Working and spare VLANs together.
        vlans: usize,
    },
    /// Switches that cannot leave VLAN 1 are joined in a loop.
    #[error(
        "`{switch}` ({model}) and others around a loop keep their ports in VLAN 1, so its frames would \
         go round; a tree of them would do, or one switch in each loop that can leave VLAN 1"
    )]
    DefaultVlan {
        /// A switch of the loop.
        switch: String,
        /// The name of its model.
        model: String,
    },
    /// Host-tagged plans are rules for every pair of hosts.
    #[error(
        "host-tagged, {switches} switches with hosts and {hosts} hosts are too many: up to \
         {switches_max} switches and {hosts_max} hosts; switch-tagged has no such limit"
    )]
    Pairs {
        /// Switches that have hosts.
        switches: usize,
        /// Hosts of the fabric.
        hosts: usize,
        /// Switches with hosts that are possible at most.
        switches_max: usize,
        /// Hosts that are possible at most.
        hosts_max: usize,
    },
}

impl PlanError {
    pub(super) fn deadlock(wiring: &Wiring, net: &Net, routing: Routing, cycle: &[usize]) -> Self {
        let name = |switch: usize| wiring.switches[switch].name.as_str();
        let trunks: Vec<String> = cycle
            .iter()
            .map(|&channel| {
                format!("`{}` to `{}`", name(net.tail(channel)), name(net.head(channel)))
            })
            .collect();
        Self::Deadlock { routing, cycle: trunks.join(", ") }
    }
}

/// Refuses a wiring in which some host cannot reach another.
pub(super) fn check_reach(wiring: &Wiring, net: &Net) -> Result<(), PlanError> {
    let sources: Vec<usize> = net.sources().collect();
    let (Some(&from), true) = (sources.first(), sources.len() > 1) else {
        return Err(PlanError::Nothing { switches: sources.len() });
    };
    let distances = net.distances(from);
    match sources.iter().find(|&&to| distances[to].is_none()) {
        Some(&to) => {
            let name = |switch: usize| wiring.switches[switch].name.clone();
            Err(PlanError::Apart { from: name(from), to: name(to) })
        }
        None => Ok(()),
    }
}

/// Refuses a loop of switches that keep VLAN 1.
pub(super) fn check_default_vlan(wiring: &Wiring, net: &Net) -> Result<(), PlanError> {
    let mut joined = Sets::new(net.switches());
    let stays = |at: usize| wiring.switches[at].model.default_vlan_stays;
    for channel in (0..net.switches()).flat_map(|at| net.from(at)).map(|link| link.channel) {
        let [one, other] = net.ends(channel / 2);
        let counts = channel % 2 == 0 && stays(one) && stays(other);
        if counts && !joined.join(one, other) {
            let switch = &wiring.switches[one];
            let (switch, model) = (switch.name.clone(), switch.model.name.clone());
            return Err(PlanError::DefaultVlan { switch, model });
        }
    }
    Ok(())
}

/// Refuses an ageing time that is too short for a switch; one that is too long is cut to its longest.
pub(super) fn check_ageing(wiring: &Wiring, options: &PlanOptions) -> Result<(), PlanError> {
    let Some(asked) = options.ageing else { return Ok(()) };
    match wiring.switches.iter().find(|switch| asked < switch.model.ageing_min) {
        Some(switch) => Err(PlanError::Ageing {
            switch: switch.name.clone(),
            model: switch.model.name.clone(),
            least: switch.model.ageing_min,
            asked,
        }),
        None => Ok(()),
    }
}
