//! What a `JetStream` switch is told, and how it is read.

use proptest::prelude::*;

use crate::dialect::vendors::laws;
use crate::dialect::{Dialect, interface_name};
use crate::{PortNumber, SwitchModel, SwitchSettings};

const MODEL: &str = "tplink-t2600g-28";

fn dialect() -> Dialect {
    "tplink-jetstream".parse().expect("the table has it")
}

fn settings() -> impl Strategy<Value = SwitchSettings> {
    laws::typed_settings(12, prop::option::of(10_u64..=630)).prop_map(laws::with_tags)
}

laws::hold!(dialect(), MODEL, settings());

#[test]
fn what_a_switch_is_told() {
    let text = laws::told(dialect(), MODEL);
    let end = text.split_once("! nothing is plugged in\n").unwrap().1;
    insta::assert_snapshot!(end, @r##"
    interface gigabitEthernet 1/0/1
    flow-control
    exit
    interface gigabitEthernet 1/0/1
    switchport general allowed vlan 101-104 untagged
    switchport pvid 101
    switchport acceptable frame all
    no switchport general allowed vlan 1
    switchport check ingress
    exit
    ! nothing is plugged in
    interface gigabitEthernet 1/0/11
    channel-group 1 mode active
    exit
    interface gigabitEthernet 1/0/12
    channel-group 1 mode active
    exit
    interface gigabitEthernet 1/0/11
    flow-control
    exit
    interface gigabitEthernet 1/0/12
    flow-control
    exit
    interface port-channel 1
    switchport general allowed vlan 101-102,104 tagged
    switchport acceptable frame tagged
    no switchport general allowed vlan 1,103
    switchport check ingress
    no shutdown
    exit
    interface gigabitEthernet 1/0/11
    no shutdown
    exit
    interface gigabitEthernet 1/0/12
    no shutdown
    exit
    no spanning-tree
    end
    "##);
}

#[test]
fn a_running_configuration_is_read() {
    let shut = "configure\ninterface gigabitEthernet 1/0/PORT\nshutdown\nexit\nend\n";
    let running = include_str!("samples/running-config.cfg");
    laws::running_configuration_is_read(dialect(), MODEL, shut, running);
    let model = SwitchModel::named(MODEL).unwrap();
    assert_eq!(interface_name(&model, PortNumber(24)), "gigabitEthernet 1/0/24");
}

#[test]
fn what_is_not_understood_is_told_with_its_line() {
    let wrong = |text: &str| {
        let text = format!("configure\n{text}");
        laws::misunderstood(dialect(), MODEL, &text)
    };
    insta::assert_snapshot!(wrong("interface gigabitEthernet 1/0/25"), @"line 2: `interface gigabitEthernet 1/0/25`: tplink-t2600g-28 has no port `1/0/25`; it has 24 ports");
    insta::assert_snapshot!(wrong("interface gigabitEthernet 1/0/1\nno switchport check ingress"), @"line 3: `no switchport check ingress`: is not understood for an interface (see docs/fabric-deployment.md)");
    insta::assert_snapshot!(wrong("interface gigabitEthernet 1/0/1\nswitchport pvid 101"), @"line 3: `switchport pvid 101`: VLAN 101 is not defined; `vlan 101` comes first");
    insta::assert_snapshot!(wrong("interface gigabitEthernet 1/0/1\nchannel-group 1 mode passive"), @"line 3: `channel-group 1 mode passive`: allowed modes are `active` (LACP) and `on`");
    insta::assert_snapshot!(wrong("mac address-table aging-time 631"), @"line 2: `mac address-table aging-time 631`: allowed are 10 to 630 seconds");
    insta::assert_snapshot!(wrong("interface port-channel 3\nexit"), @"line 2: `interface port-channel 3`: `port-channel 3` has no ports");
}

#[test]
fn what_a_switch_cannot_be_is_refused_with_the_reason() {
    let refused = laws::refused(dialect(), MODEL, |own| own.ports[0].accept_tagged = false);
    insta::assert_snapshot!(refused, @"`sw1`, port 1: a JetStream switch takes tagged frames at every port");
}

#[test]
fn any_lines_are_read_or_refused() {
    let modes = [
        "configure",
        "configure\nvlan 101-104\nexit\ninterface gigabitEthernet 1/0/1",
        "configure\ninterface port-channel 1",
    ];
    let words = [
        "interface",
        "vlan",
        "no",
        "switchport",
        "switchport general allowed vlan",
        "101",
        "4095",
        "0",
        "tagged",
        "untagged",
        "gigabitEthernet",
        "1/0/1",
        "1/0/1-4",
        "1/0/4-1",
        "range",
        "port-channel",
        "1",
        "mac",
        "address-table",
        "aging-time",
        "é",
        "channel-group",
        "mode",
        "pvid",
        "shutdown",
        "exit",
    ];
    laws::any_lines_are_read(dialect(), MODEL, &modes, &words);
}

#[test]
fn fabrics_are_proven_from_texts() {
    laws::proven_from_texts(dialect(), "tplink-sg3452", "torus 4x2");
}
