//! The texts for Linux bridges themselves, run by `sh` with the real `ip` and `bridge`: what the kernel
//! has then is what is planned.
//!
//! Virtual interfaces have no pause frames, so `ethtool` is a script that keeps what it is told.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use meikyo_fabric::deploy::{
    Step, StepTexts, Why, confirmation, guarded_delivery, plan_deployment, planned_states,
    step_texts,
};
use meikyo_fabric::dialect::{Dialect, SwitchState, Templates};
use meikyo_fabric::{
    Bundling, Configuration, HostId, HostSettings, PortSettings, Priming, SwitchId, Vlan, Wiring,
};
use meikyo_lab::{Done, Frame, Task, VerifyOptions, verify};
use meikyo_units::{Nanos, WallTime};
use serde_json::Value;

use crate::running::{Cabling, Fabric, Lab, cabled_fabric, lab, lab_of};

const OPTIONS: VerifyOptions = VerifyOptions { pairs_max: 300, quiet_ms: 4, patience_ms: 2_000 };
const MANAGEMENT: u16 = 4_000;
/// For bundles that agree, spanning trees that settle, scripts in the background.
const PATIENCE: Nanos = Nanos::from_secs(60);
/// Between two looks: who asks takes time from what is to settle.
const PAUSE: Duration = Duration::from_millis(100);

/// What a kernel says of a switch, as far as texts set it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Seen {
    spanning_tree: bool,
    /// Unless the spanning tree protocol runs: the kernel makes it shorter when the topology changes.
    ageing_cs: Option<u64>,
    management: Option<u16>,
    /// By the names of the interfaces that are up: a port, or several that are a bundle.
    ports: BTreeMap<BTreeSet<String>, Membership>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Membership {
    bonding: Option<String>,
    pause: bool,
    pvid: Option<u64>,
    untagged: BTreeSet<u64>,
    tagged: BTreeSet<u64>,
}

/// What the kernel must say of a switch in this state.
fn due(state: &SwitchState) -> Seen {
    let numbers =
        |vlans: &meikyo_fabric::VlanSet| vlans.iter().map(|own| own.id().into()).collect();
    let port = |own: &PortSettings| {
        let names = own.ports.iter().map(|port| format!("swp{}", port.0)).collect();
        let bonding = own.bundle.map(|own| match own {
            Bundling::Lacp => "802.3ad".to_owned(),
            Bundling::Static => "balance-xor".to_owned(),
        });
        let pvid = own.pvid.map(|vlan| vlan.id().into());
        let (untagged, tagged) = (numbers(&own.untagged), numbers(&own.tagged));
        (names, Membership { bonding, pause: own.flow_control, pvid, untagged, tagged })
    };
    Seen {
        spanning_tree: state.settings.spanning_tree,
        ageing_cs: (!state.settings.spanning_tree)
            .then(|| state.settings.ageing.unwrap().get() / 10_000_000),
        management: state.management.map(Vlan::id),
        ports: state.settings.ports.iter().map(port).collect(),
    }
}

/// What the kernel says.
fn seen(lab: &Lab, switch: &str) -> Seen {
    let asked = b"ip -j -d link show && bridge -j vlan show";
    let said = lab.exec(Some(switch), &["sh"], asked);
    assert_eq!(said.code, 0, "{}", String::from_utf8_lossy(&said.errors));
    let mut documents = serde_json::Deserializer::from_slice(&said.output).into_iter();
    let [links, vlans]: [Vec<Value>; 2] =
        std::array::from_fn(|_| documents.next().expect("two documents").unwrap());
    let name = |link: &Value| link["ifname"].as_str().unwrap().to_owned();
    let is_up = |link: &&Value| link["flags"].as_array().unwrap().contains(&"UP".into());
    let under = |master: &str| -> Vec<&Value> {
        links.iter().filter(|link| link["master"] == master).filter(is_up).collect()
    };
    let bridge = &links.iter().find(|link| link["ifname"] == "br0").unwrap()["linkinfo"];
    assert_eq!(bridge["info_data"]["vlan_filtering"], 1);
    let data = &bridge["info_data"];
    let spanning_tree = data["stp_state"] == 1;
    let ageing_cs = if spanning_tree { None } else { data["ageing_time"].as_u64() };
    let mut found = Seen { spanning_tree, ageing_cs, ..Seen::default() };
    let memberships = |device: &str| {
        let of_device = vlans.iter().filter(|own| own["ifname"] == device);
        let all: Vec<&Value> = of_device.flat_map(|own| own["vlans"].as_array().unwrap()).collect();
        let mut membership = Membership::default();
        for own in all {
            let vlan = own["vlan"].as_u64().unwrap();
            let has =
                |flag: &str| own["flags"].as_array().is_some_and(|all| all.contains(&flag.into()));
            assert!(own.get("vlanEnd").is_none(), "`bridge` is not asked to compress");
            membership.pvid = if has("PVID") { Some(vlan) } else { membership.pvid };
            match has("Egress Untagged") {
                true => membership.untagged.insert(vlan),
                false => membership.tagged.insert(vlan),
            };
        }
        membership
    };
    for port in under("br0") {
        let device = name(port);
        let bonding = port["linkinfo"]["info_data"]["mode"].as_str().map(str::to_owned);
        let ports = match bonding {
            Some(_) => under(&device).into_iter().map(name).collect(),
            None => BTreeSet::from([device.clone()]),
        };
        let pause = pauses(lab, switch, &ports);
        found.ports.insert(ports, Membership { bonding, pause, ..memberships(&device) });
    }
    let upper = links.iter().filter(|link| link["link"] == "br0").filter(is_up);
    let own = memberships("br0").tagged;
    let managed = upper.filter_map(|link| link["linkinfo"]["info_data"]["id"].as_u64());
    found.management = managed.filter(|id| own.contains(id)).find_map(|id| u16::try_from(id).ok());
    found
}

/// What `ethtool` was told last of these ports, which must be the same.
fn pauses(lab: &Lab, switch: &str, ports: &BTreeSet<String>) -> bool {
    let told = std::fs::read_to_string(lab.directory.own_files().join("told")).unwrap_or_default();
    let last = |port: &String| {
        let on = format!("{switch} --pause {port} rx on tx on");
        let off = format!("{switch} --pause {port} rx off tx off");
        told.lines().rfind(|line| **line == on || **line == off) == Some(&on)
    };
    let all: BTreeSet<bool> = ports.iter().map(last).collect();
    assert_eq!(all.len(), 1, "{ports:?}: {told}");
    all.contains(&true)
}

fn sh(lab: &Lab, space: &str, script: &str) -> (u8, String) {
    use std::os::unix::fs::PermissionsExt as _;
    let files = lab.directory.own_files();
    let ethtool = files.join("ethtool");
    if !ethtool.exists() {
        let told = files.join("told");
        let keeps = format!("#!/bin/sh\necho $(hostname) $* >> {}\n", told.display());
        std::fs::write(&ethtool, keeps).unwrap();
        std::fs::set_permissions(&ethtool, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("PATH={}:/usr/sbin:/usr/bin:/sbin:/bin", files.display());
    let said = lab.exec(Some(space), &["env", &path, "sh"], script.as_bytes());
    (said.code, String::from_utf8_lossy(&said.errors).into_owned())
}

fn carried_out(lab: &Lab, space: &str, script: &str) {
    let (code, errors) = sh(lab, space, script);
    assert_eq!((code, errors.as_str()), (0, ""), "{space}: {script}");
}

/// Asks again and again until there is no problem any more.
fn at_last(mut problem: impl FnMut() -> Option<String>) {
    let deadline = WallTime::now() + PATIENCE;
    while let Some(problem) = problem() {
        assert!(WallTime::now() < deadline, "{problem}");
        std::thread::park_timeout(PAUSE);
    }
}

/// Waits until both sides of every bundle use all of its cables (bit 5 of the actor's state, IEEE
/// 802.1AX, 6.4.2.3): until then frames are lost now and then.
fn bundles_agree(lab: &Lab, switch: &str) {
    let script = "for file in $(ls /sys/class/net/*/bonding_slave/ad_actor_oper_port_state); do \
                  [ $(($(cat $file) & 32)) != 0 ] || exit 1; done 2>/dev/null";
    at_last(|| {
        let (code, errors) = sh(lab, switch, script);
        (code != 0).then(|| format!("not every cable of {switch} is used: {errors}"))
    });
}

fn all_answer(lab: &Lab) {
    at_last(|| match lab.ask(&Task::PingAll { patience_ms: 500 }) {
        Done::Pinged { lost, .. } => (!lost.is_empty()).then(|| format!("lost: {lost:?}")),
        done => panic!("{done:?}"),
    });
}

#[test]
fn the_text_for_a_new_bridge_makes_the_kernel_have_what_is_planned() {
    for (topology, hosts, cables) in [("ring 4", 2, 1), ("mesh 4x2", 1, 1), ("ring 4", 1, 2)] {
        let fabric = cabled_fabric(topology, hosts, Cabling::of_links(cables), |_| {});
        let Some(lab) = lab(&fabric, None) else { return };
        let Fabric { wiring, configuration, .. } = &fabric;
        for (place, switch) in wiring.switches.iter().enumerate() {
            let state = SwitchState::unmanaged(configuration.switches[place].clone());
            let text = Templates::built_in()
                .render(Dialect::linux_bridge(), wiring, SwitchId::new(place), &state)
                .unwrap();
            let clear = "ip link del br0; for bond in $(ls -d /sys/class/net/bond*); do \
                         ip link del ${bond##*/}; done 2>/dev/null; \
                         for port in $(ls -d /sys/class/net/swp*); do \
                         ip link set ${port##*/} down; done; true";
            let (code, errors) = sh(&lab, &switch.name, clear);
            assert_eq!(code, 0, "{errors}");
            carried_out(&lab, &switch.name, &text);
            assert_eq!(seen(&lab, &switch.name), due(&state), "{topology}: {text}");
        }
        for switch in &wiring.switches {
            bundles_agree(&lab, &switch.name);
        }
        all_answer(&lab);
        let found = verify(&lab.directory, &lab.roles, wiring, configuration, &OPTIONS).unwrap();
        assert!(found.good, "{topology}, {cables} cables: {found:?}");
    }
}

/// A fabric to be deployed, and what its switches have as delivered: a plain bridge of all ports that
/// are plugged in, with a spanning tree protocol.
fn deployment(cables: u16) -> (Fabric, Vec<SwitchState>, Vec<SwitchState>) {
    let fabric = cabled_fabric("ring 4", 1, Cabling::of_links(cables), |options| {
        options.management = Vlan::new(MANAGEMENT);
        options.manager = Some(HostId::new(0));
    });
    let planned = planned_states(&fabric.configuration, Vlan::new(MANAGEMENT));
    let factory = |(switch, planned): (&meikyo_fabric::Switch, &SwitchState)| {
        let mut state = SwitchState::factory(Dialect::linux_bridge(), &switch.model);
        let used = |port: &PortSettings| {
            planned.settings.ports.iter().any(|own| own.ports.contains(&port.ports[0]))
        };
        state.settings.ports.retain(used);
        state
    };
    let now = fabric.wiring.switches.iter().zip(&planned).map(factory).collect();
    (fabric, now, planned)
}

fn lab_as_delivered(wiring: &Wiring, now: &[SwitchState]) -> Option<Lab> {
    let switches = now.iter().map(|state| state.settings.clone()).collect();
    let hosts = vec![HostSettings::Untagged; wiring.hosts.len()];
    let host_bundling = Bundling::Lacp;
    let priming = Priming::None;
    lab_of(wiring, &Configuration { switches, hosts, host_bundling, priming }, None)
}

/// No broadcast arrives anywhere twice.
fn nothing_goes_round(lab: &Lab, hosts: usize) {
    let frames = (0..hosts).map(|from| Frame { from, to: None, vlan: None }).collect();
    match lab.ask(&Task::Send { frames, each: false, quiet_ms: 4 }) {
        Done::Sent(traces) => {
            let most = traces.iter().flat_map(|trace| trace.copies.values()).max();
            assert!(most.is_none_or(|&most| most == 1), "{traces:?}");
        }
        done => panic!("{done:?}"),
    }
}

/// The manager, who is a host, reaches every switch that is in the management VLAN, also the one that
/// was changed, which has lost the address that it was given before.
fn the_manager_reaches_all(lab: &Lab, wiring: &Wiring, states: &[SwitchState], changed: SwitchId) {
    let is_managed = |place: usize| states[place].management.is_some();
    if is_managed(changed.place()) {
        let place = changed.place();
        let script = format!("ip address replace 10.127.1.{place}/16 dev br0.{MANAGEMENT}");
        carried_out(lab, &wiring.switches[place].name, &script);
    }
    let managed: Vec<_> = (0..states.len()).filter(|&place| is_managed(place)).collect();
    // Nobody listens there, which the switch itself has to say.
    let refused = |place: &usize| {
        format!(
            "case $( {{ : < /dev/tcp/10.127.1.{place}/9; }} 2>&1 ) in *refused*);; *) exit 1;; esac\n"
        )
    };
    let script: String = managed.iter().map(refused).collect();
    at_last(|| {
        let said =
            lab.exec(Some(&wiring.hosts[0].name), &["timeout", "5", "bash"], script.as_bytes());
        (said.code != 0).then(|| format!("not all of {managed:?} are reached: {}", said.code))
    });
}

#[test]
fn every_step_of_a_deployment_is_carried_out_taken_back_and_carried_out_again() {
    for cables in [1, 2] {
        let (fabric, now, planned) = deployment(cables);
        let Fabric { wiring, configuration, .. } = &fabric;
        let Some(lab) = lab_as_delivered(wiring, &now) else { return };
        let manager = format!(
            "ip link add link eth0 name manage type vlan id {MANAGEMENT}\n\
             ip address add 10.127.0.1/16 dev manage\nip link set manage up\n"
        );
        carried_out(&lab, &wiring.hosts[0].name, &manager);
        let mut states = now.clone();
        for (state, switch) in states.iter().zip(&wiring.switches) {
            assert_eq!(seen(&lab, &switch.name), due(state));
        }
        all_answer(&lab);
        let steps = plan_deployment(wiring, &now, &planned, Some(HostId::new(0))).unwrap();
        for step in &steps {
            let Step { switch, why, before, after } = step;
            let name = &wiring.switches[switch.place()].name;
            let texts =
                step_texts(&Templates::built_in(), Dialect::linux_bridge(), wiring, step).unwrap();
            carried_out(&lab, name, &texts.apply);
            assert_eq!(seen(&lab, name), due(after), "{name}: {why:?}: {}", texts.apply);
            // What the manager reaches a switch by is not taken back under it.
            let (code, errors) = sh(&lab, name, &texts.roll_back);
            assert_eq!(code, 0, "{errors}");
            assert_eq!(seen(&lab, name), due(before), "{name}: {why:?}: {}", texts.roll_back);
            carried_out(&lab, name, &texts.apply);
            assert_eq!(seen(&lab, name), due(after), "{name}: {why:?}");
            states[switch.place()] = after.clone();
            nothing_goes_round(&lab, wiring.hosts.len());
            the_manager_reaches_all(&lab, wiring, &states, *switch);
        }
        assert!(steps.iter().any(|step| step.why == Why::Bundle) == (cables > 1));
        all_answer(&lab);
        let found = verify(&lab.directory, &lab.roles, wiring, configuration, &OPTIONS).unwrap();
        assert!(found.good, "{cables} cables: {found:?}");
    }
}

#[test]
fn a_guarded_step_is_taken_back_unless_it_is_confirmed() {
    let (fabric, now, planned) = deployment(1);
    let wiring = &fabric.wiring;
    let Some(lab) = lab_as_delivered(wiring, &now) else { return };
    let steps = plan_deployment(wiring, &now, &planned, Some(HostId::new(0))).unwrap();
    let step = steps.iter().find(|step| step.why == Why::Shut).unwrap();
    let name = &wiring.switches[step.switch.place()].name;
    let texts = step_texts(&Templates::built_in(), Dialect::linux_bridge(), wiring, step).unwrap();
    let deliver = |texts: &StepTexts| guarded_delivery("/run/steps", "one", 1, texts);
    // Nobody confirms it.
    carried_out(&lab, name, &deliver(&texts));
    at_last(|| (seen(&lab, name) != due(&step.before)).then(|| "not taken back".to_owned()));
    // Somebody does, and the script that waits ends without having done anything.
    carried_out(
        &lab,
        name,
        &format!("({})\n{}", deliver(&texts), confirmation("/run/steps", "one")),
    );
    at_last(|| {
        let waits = "cat /proc/[0-9]*/cmdline 2>/dev/null | grep -aq 'one.confirmed \\]'";
        (sh(&lab, name, waits).0 == 0).then(|| "still waiting".to_owned())
    });
    assert_eq!(seen(&lab, name), due(&step.after));
    // A step that fails is taken back at once.
    carried_out(&lab, name, &texts.roll_back);
    let failing = StepTexts { apply: format!("{}false\n", texts.apply), ..texts };
    assert_eq!(sh(&lab, name, &deliver(&failing)).0, 1);
    assert_eq!(seen(&lab, name), due(&step.before));
}
