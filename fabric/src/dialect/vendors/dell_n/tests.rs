//! What an N-series switch is told, and how it is read.

use meikyo_units::Nanos;
use proptest::prelude::*;

use super::names::{port_list, ports_named};
use crate::dialect::state::SwitchState;
use crate::dialect::vendors::laws;
use crate::dialect::{Dialect, Templates, interface_name, parse, read, render};
use crate::{PortNumber, SwitchModel, SwitchSettings};

const PORTS: u16 = 12;

fn settings() -> impl Strategy<Value = SwitchSettings> {
    laws::typed_settings(PORTS, prop::option::of(10_u64..=1_000_000))
}

fn dialect() -> Dialect {
    "dell-n".parse().expect("the table has the N series")
}

fn small() -> SwitchSettings {
    SwitchSettings { ageing: Some(Nanos::from_secs(1_000)), ..laws::small() }
}

/// The first words of commands.
const FIRST: [&str; 12] = [
    "interface",
    "interface range",
    "vlan",
    "no",
    "no switchport",
    "switchport general",
    "switchport general allowed vlan",
    "switchport access vlan",
    "channel-group",
    "mac address-table",
    "ip address",
    "exit",
];

/// Words of commands, and what looks like them.
const WORDS: [&str; 30] = [
    "Gi1/0/1",
    "Gi1/0/1-4",
    "gi1/0/4-1",
    "te1/0/",
    "te1/0/1-",
    "Gi",
    "Gi1",
    "gigabitethernet",
    "1/0/7",
    "1/0/1-é",
    "-",
    ",",
    "Gi1/0/1,",
    "Gi1/0/65535",
    "port-channel",
    "1-65535",
    "9-7",
    "0",
    "7",
    "101",
    "4095",
    "vlan",
    "add",
    "remove",
    "tagged",
    "pvid",
    "mode",
    "active",
    "aging-time",
    "dhcp",
];

fn line() -> impl Strategy<Value = String> {
    let words = prop::collection::vec(prop::sample::select(WORDS.to_vec()), 0..4);
    (prop::sample::select(FIRST.to_vec()), words)
        .prop_map(|(first, words)| format!("{first} {}", words.join(" ")))
}

laws::hold!(dialect(), "dell-n2024", settings());

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_text_makes_the_parser_panic(lines in prop::collection::vec(line(), 0..24)) {
        let wiring = laws::wiring("dell-n1524");
        let text = lines.join("\n");
        drop(parse(dialect(), &wiring, laws::only(), &text));
    }

    #[test]
    fn lists_of_ports_are_read_as_they_are_written(
        numbers in prop::collection::btree_set(1_u16..=52, 1..20),
    ) {
        let model = SwitchModel { ports: 52, name: "dell-n1548-uplinks".into(), ..model("dell-n1548") };
        let ports: Vec<PortNumber> = numbers.into_iter().map(PortNumber).collect();
        let list = port_list(&model, &ports);
        let read = list.split(',').flat_map(|part| {
            let (first, last) = ports_named(&model, part).expect("its own names");
            (first.0..=last.0).map(PortNumber)
        });
        prop_assert_eq!(read.collect::<Vec<_>>(), ports, "{}", list);
    }
}

/// Every beginning of a command with every word, and every two, outside of an interface and in one.
#[test]
fn no_command_makes_the_parser_panic() {
    let wiring = laws::wiring("dell-n1524");
    let modes = ["vlan 101\nexit", "interface Gi1/0/1\nswitchport mode general"];
    let mut read = 0;
    for (mode, first) in modes.iter().flat_map(|mode| FIRST.map(|first| (mode, first))) {
        for (word, next) in WORDS.iter().flat_map(|word| WORDS.map(|next| (word, next))) {
            for line in [format!("{first} {word}"), format!("{first} {word} {next}")] {
                let text = format!("configure\n{mode}\n{line}\n");
                read += usize::from(parse(dialect(), &wiring, laws::only(), &text).is_ok());
            }
        }
    }
    assert!(read > 100, "only {read} commands were understood");
}

fn model(name: &str) -> SwitchModel {
    SwitchModel::named(name).expect("a built-in model")
}

#[test]
fn what_a_switch_is_told() {
    let wiring = laws::wiring("dell-n1548");
    let configuration = laws::configuration(small());
    let text = render(dialect(), &wiring, &configuration, laws::only()).unwrap();
    insta::assert_snapshot!(text, @r##"
    ! sw1, from the factory settings
    configure
    vlan 101-104
    exit
    flowcontrol
    mac address-table aging-time 1000
    interface range Gi1/0/2-10,Gi1/0/13-48
    shutdown
    exit
    ! nothing is plugged in
    interface Gi1/0/1
    switchport mode general
    switchport general allowed vlan remove 1
    switchport general allowed vlan add 101-104 untagged
    switchport general pvid 101
    no switchport general acceptable-frame-type tagged-only
    exit
    ! nothing is plugged in
    interface range Gi1/0/11-12
    channel-group 1 mode active
    exit
    interface port-channel 1
    switchport mode general
    switchport general allowed vlan remove 1,103
    switchport general allowed vlan add 101-102,104 tagged
    switchport general acceptable-frame-type tagged-only
    no shutdown
    exit
    interface range Gi1/0/11-12
    no shutdown
    exit
    no spanning-tree
    exit
    "##);
}

#[test]
fn what_changes_is_typed_and_the_new_address_comes_before_the_old_one_goes() {
    let wiring = laws::wiring("dell-n1548");
    let before = SwitchState::managed(small(), Some(laws::vlan(101)));
    let mut after = SwitchState::managed(small(), Some(laws::vlan(104)));
    after.settings.ports[0].untagged.remove(laws::vlan(103));
    after.settings.vlans.remove(laws::vlan(103));
    after.settings.ageing = None;
    let text = Templates::built_in()
        .render_change(dialect(), &wiring, laws::only(), &before, &after)
        .unwrap();
    insta::assert_snapshot!(text, @r##"
    ! sw1
    configure
    mac address-table aging-time 0
    ! nothing is plugged in
    interface Gi1/0/1
    switchport mode general
    switchport general allowed vlan remove 1,103
    switchport general allowed vlan add 101-102,104 untagged
    switchport general pvid 101
    no switchport general acceptable-frame-type tagged-only
    exit
    interface vlan 104
    ip address dhcp
    exit
    interface vlan 101
    no ip address
    exit
    no vlan 103
    exit
    "##);
}

#[test]
fn a_running_configuration_is_read() {
    let wiring = laws::wiring("dell-n1548");
    let model = &wiring.switches[0].model;
    let blank = SwitchState::blank(dialect(), model);
    let state = read(dialect(), model, &blank, include_str!("samples/running-config.cfg")).unwrap();
    assert_eq!(state.settings, small());
    assert_eq!(state.management, Some(laws::vlan(104)));
    assert_eq!(state.bundles, [(PortNumber(11), 7)].into());
}

#[test]
fn what_is_not_understood_is_told_with_its_line() {
    let wrong = |text: &str| {
        let text = format!("configure\n{text}");
        laws::misunderstood(dialect(), "dell-n1524", &text)
    };
    insta::assert_snapshot!(wrong("vlan database"), @"line 2: `vlan database`: `database` is not a set of VLANs; allowed are numbers from 1 to 4094, as `101-104,110`");
    insta::assert_snapshot!(wrong("interface Gi1/0/25"), @"line 2: `interface Gi1/0/25`: dell-n1524 has no port `Gi1/0/25`; it has 24 ports");
    insta::assert_snapshot!(wrong("interface range Gi1/0/3-2"), @"line 2: `interface range Gi1/0/3-2`: dell-n1524 has no port `Gi1/0/3-2`; it has 24 ports");
    insta::assert_snapshot!(wrong("interface Gi1/0/1\nswitchport mode trunk"), @"line 3: `switchport mode trunk`: is not understood for an interface (see docs/fabric-deployment.md)");
    insta::assert_snapshot!(wrong("interface Gi1/0/1\nswitchport general pvid 1"), @"line 3: `switchport general pvid 1`: the interface is in another mode; `switchport mode general` comes first");
    insta::assert_snapshot!(wrong("interface Gi1/0/1\nswitchport mode general\nswitchport general pvid 101"), @"line 4: `switchport general pvid 101`: VLAN 101 is not defined; `vlan 101` comes first");
    insta::assert_snapshot!(wrong("interface Gi1/0/1\nchannel-group 1 mode passive"), @"line 3: `channel-group 1 mode passive`: allowed modes are `active` (LACP) and `on`");
    insta::assert_snapshot!(wrong("interface port-channel 65"), @"line 2: `interface port-channel 65`: dell-n1524 has bundles 1 to 64");
    insta::assert_snapshot!(wrong("interface port-channel 3\nexit"), @"line 2: `interface port-channel 3`: `port-channel 3` has no ports");
    insta::assert_snapshot!(wrong("vlan 4094"), @"line 2: `vlan 4094`: dell-n1524 has no VLAN 4094; allowed are 2-4093");
    insta::assert_snapshot!(wrong("mac address-table aging-time 5"), @"line 2: `mac address-table aging-time 5`: allowed are 10 to 1000000 seconds");
    insta::assert_snapshot!(wrong("vlan 7\nexit\ninterface vlan 7\nip address 10.0.7.1 255.255.255.0\nexit\ninterface vlan 1\nip address dhcp"), @"line 8: `ip address dhcp`: VLAN 7 has an address, too: frames would be routed between the two");
    insta::assert_snapshot!(wrong("exit\nspanning-tree"), @"line 3: `spanning-tree`: is refused before `configure`");
}

#[test]
fn what_a_switch_cannot_be_is_refused_with_the_reason() {
    let refused = |change: fn(&mut SwitchSettings)| {
        let mut settings = small();
        change(&mut settings);
        let configuration = laws::configuration(settings);
        let wiring = laws::wiring("dell-n1548");
        render(dialect(), &wiring, &configuration, laws::only()).unwrap_err().to_string()
    };
    insta::assert_snapshot!(refused(|own| own.ports[0].accept_tagged = false), @"`sw1`, port 1: an N-series switch drops tagged frames in access mode only, which is one VLAN, untagged");
    insta::assert_snapshot!(refused(|own| own.ports[0].flow_control = false), @"`sw1`: an N-series switch has flow control on all ports or on none");
    insta::assert_snapshot!(refused(|own| own.ageing = Some(Nanos::from_secs(9))), @"`sw1`: an ageing time of 9s: allowed are 10 to 1000000 whole seconds, or never");
    insta::assert_snapshot!(refused(|own| own.vlans = laws::set("101-104,4094")), @"`sw1`: dell-n1548 has no VLAN 4094; allowed are 1-4093");
    insta::assert_snapshot!(refused(|own| own.ports[0].ports = vec![PortNumber(49)]), @"`sw1`, port 49: port 49: dell-n1548 has 48 ports");
}

/// A port that was in general mode before, and shut since, is in its VLANs still when it enters that
/// mode again: the text must say all that it shall not be in.
#[test]
fn what_a_port_was_in_before_does_not_come_back() {
    let wiring = laws::wiring("dell-n1548");
    let model = &wiring.switches[0].model;
    let mut shut = SwitchState::unmanaged(small());
    shut.settings.ports.remove(0);
    let after = SwitchState::unmanaged(small());
    let text = Templates::built_in()
        .render_change(dialect(), &wiring, laws::only(), &shut, &after)
        .unwrap();
    // The switch remembers a tagged VLAN 104, a PVID, and that untagged frames are dropped.
    let mut remembered = SwitchState::unmanaged(small());
    let port = &mut remembered.settings.ports[0];
    (port.pvid, port.untagged, port.tagged) = (None, laws::set("1"), laws::set("104"));
    let shutdown = "configure\ninterface Gi1/0/1\nshutdown\nswitchport mode access\nexit\nexit\n";
    let then = read(dialect(), model, &remembered, &format!("{shutdown}{text}")).unwrap();
    assert_eq!(then.settings, after.settings);
}

#[test]
fn ports_are_called_as_on_the_switch() {
    let name = |of: &str, port: u16| interface_name(&model(of), PortNumber(port));
    assert_eq!(name("dell-n1548", 48), "Gi1/0/48");
    assert_eq!(name("dell-n4032", 1), "Te1/0/1");
    let uplinks =
        SwitchModel { ports: 28, name: "dell-n1524-uplinks".into(), ..model("dell-n1524") };
    assert_eq!(super::names::port_name(&uplinks, PortNumber(25)), "Te1/0/1");
}

#[test]
fn a_planned_fabric_is_proven_from_its_texts() {
    laws::proven_from_texts(dialect(), "dell-n1548", "torus 4x2");
    laws::proven_from_texts(dialect(), "dell-n4032", "complete 6");
}

#[test]
fn a_fabric_is_deployed_from_the_factory() {
    laws::deployed_from_factory(dialect(), "dell-n2048");
}
