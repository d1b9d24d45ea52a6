//! The steps of a deployment, from a plain bridge on, and each step taken back.

use std::collections::{BTreeMap, BTreeSet};

use meikyo_fabric::deploy::{Step, plan_deployment, planned_states, step_texts};
use meikyo_fabric::dialect::{SwitchState, Templates};
use meikyo_fabric::{
    HostId, Parts, PlanOptions, SwitchId, SwitchModel, Topology, Wiring, cable, plan,
};

use super::{Switch, flooded, without_pause_frames};
use crate::built::open_vswitch;
use crate::shapes::vlan;

/// The number that the flows give the port by which the machine itself is reached.
const MANAGE: u16 = 65_000;

/// A ring of four bridges of five ports, two of which lead to hosts: the plain bridges that they are,
/// and the states that are planned.
fn ring() -> (Wiring, Vec<SwitchState>, Vec<SwitchState>) {
    let topology: Topology = "ring 4".parse().expect("a topology");
    let model = SwitchModel { ports: 5, ..SwitchModel::named("open-vswitch").expect("a model") };
    let parts = Parts::uniform(&topology.graph(), &model, 2);
    let wiring = cable(&topology.graph(), parts).expect("enough ports");
    let mut options = PlanOptions::new(Some(topology));
    options.management = Some(vlan(4_000));
    options.manager = Some(HostId::new(0));
    let configuration = plan(&wiring, &options).expect("a plan").configuration(&wiring);
    let plain = SwitchState::factory(open_vswitch(), &model);
    let plain = vec![plain; wiring.switches.len()];
    (wiring, plain, planned_states(&configuration, options.management))
}

impl Switch {
    /// The bridge that somebody begins with: nothing but its ports and a spanning tree protocol.
    fn set_up_plainly(&self, ports: u16) {
        self.run("ovs-appctl", &["time/stop"], "");
        self.run(
            "ovs-vsctl",
            &["add-br", "br0", "--", "set", "bridge", "br0", "stp_enable=true"],
            "",
        );
        for port in 1..=ports {
            let name = format!("swp{port}");
            let request = format!("ofport_request={port}");
            let add = ["add-port", "br0", &name, "--", "set", "interface", &name, &request];
            self.run("ovs-vsctl", &add, "");
        }
    }

    /// The numbers of ports in flows, by those in the datapath.
    fn ports(&self) -> BTreeMap<u16, u16> {
        let shown = self.run("ovs-appctl", &["dpif/show"], "");
        let ports = shown.lines().filter_map(|line| line.trim().split(' ').nth(1)?.split_once('/'));
        let number = |text: &str| text.trim_end_matches(':').parse().ok();
        ports.filter_map(|(flows, datapath)| Some((number(datapath)?, number(flows)?))).collect()
    }

    /// Every port takes frames with and without a tag to where the state says, and to nowhere else.
    fn is_in(&self, state: &SwitchState, vlans: &BTreeSet<u16>, told: &str) {
        if state.settings.spanning_tree {
            // Ports forward after the protocol has listened and learned for 15 s each.
            self.run("ovs-appctl", &["time/warp", "60000", "1000"], "");
        }
        let ports = self.ports();
        for own in &state.settings.ports {
            let from = own.ports[0].0;
            for tag in vlans.iter().copied().map(Some).chain([None]) {
                let taken =
                    tag.is_none_or(|id| own.accept_tagged && own.is_member(vlan(id.into())));
                let own_vlan = tag.map(|id| vlan(id.into())).or(own.pvid).filter(|_| taken);
                let mut expected = own_vlan
                    .map_or_else(BTreeSet::new, |vlan| flooded(&state.settings, vlan, from));
                if own_vlan.is_some() && own_vlan == state.management {
                    expected.insert((MANAGE, None));
                }
                let sent = self.send(from, tag.map(|id| vlan(id.into())), 0x10, 0x77);
                let sent: BTreeSet<_> =
                    sent.iter().map(|(port, tag)| (ports[port], *tag)).collect();
                assert_eq!(sent, expected, "{told}, port {from}, tag {tag:?}");
            }
        }
    }

    /// Carries out a script of which some commands may fail.
    fn carry_out_what_can_be(&self, script: &str) {
        assert!(!script.contains("set -e"), "{script}");
        self.output("sh", &[], &without_pause_frames(script));
    }
}

#[test]
fn every_step_of_a_deployment_does_what_it_says_and_can_be_taken_back() {
    let (wiring, plain, planned) = ring();
    let steps = plan_deployment(&wiring, &plain, &planned, Some(HostId::new(0))).expect("an order");
    let mut vlans: BTreeSet<u16> = BTreeSet::from([1, 999, 4_000]);
    vlans.extend(planned.iter().flat_map(|own| own.settings.vlans.iter()).map(|own| own.id()));
    for (place, last) in planned.iter().enumerate() {
        let Some(switch) = Switch::start() else { return };
        switch.set_up_plainly(wiring.switches[place].model.ports);
        for step in steps.iter().filter(|step| step.switch == SwitchId::new(place)) {
            let Step { why, before, after, .. } = step;
            let texts = step_texts(&Templates::built_in(), open_vswitch(), &wiring, step)
                .expect("Open vSwitch can say it");
            let told = |what: &str| format!("switch {place}, {why:?}: {what}");
            // Ended before its flows, then in full.
            let begun = texts.apply.split("ovs-ofctl").next().expect("a beginning");
            for apply in [begun, &texts.apply] {
                switch.carry_out(apply);
                switch.carry_out_what_can_be(&texts.roll_back);
                switch.is_in(before, &vlans, &told("taken back"));
            }
            switch.carry_out(&texts.apply);
            switch.is_in(after, &vlans, &told("carried out"));
        }
        // Started anew it has no flows and passes nothing on, whereas a plain bridge would, over loops.
        switch.stop_forwarding();
        switch.start_forwarding();
        for own in &last.settings.ports {
            assert_eq!(switch.send(own.ports[0].0, None, 0x10, 0x77), BTreeSet::new());
        }
    }
}
