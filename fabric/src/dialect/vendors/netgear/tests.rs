//! What a switch of the M4 series is told, and how it is read.

use proptest::prelude::*;

use crate::dialect::vendors::laws;
use crate::dialect::{Dialect, interface_name};
use crate::{PortNumber, SwitchModel, SwitchSettings};

const MODEL: &str = "netgear-m4300-28g";

fn dialect() -> Dialect {
    "netgear-m4".parse().expect("the table has it")
}

fn settings() -> impl Strategy<Value = SwitchSettings> {
    laws::typed_settings(12, (10_u64..=1_000_000).prop_map(Some))
}

laws::hold!(dialect(), MODEL, settings());

#[test]
fn what_a_switch_is_told() {
    let text = laws::told(dialect(), MODEL);
    let end = text.split_once("! nothing is plugged in\n").unwrap().1;
    insta::assert_snapshot!(end, @r##"
    interface 1/0/1
    switchport mode general
    vlan participation exclude 1
    vlan participation include 101-104
    no vlan tagging 101-104
    vlan pvid 101
    vlan acceptframe all
    vlan ingressfilter
    exit
    ! nothing is plugged in
    interface lag 1
    no port-channel static
    exit
    interface 1/0/11
    addport lag 1
    exit
    interface 1/0/12
    addport lag 1
    exit
    interface lag 1
    switchport mode general
    vlan participation exclude 1,103
    vlan participation include 101-102,104
    vlan tagging 101-102,104
    vlan acceptframe vlanonly
    vlan ingressfilter
    no shutdown
    exit
    interface 1/0/11
    no shutdown
    exit
    interface 1/0/12
    no shutdown
    exit
    no spanning-tree
    exit
    "##);
}

#[test]
fn a_running_configuration_is_read() {
    let shut = "configure\ninterface 1/0/PORT\nshutdown\nexit\nexit\n";
    let running = include_str!("samples/running-config.cfg");
    laws::running_configuration_is_read(dialect(), MODEL, shut, running);
    let model = SwitchModel::named(MODEL).unwrap();
    assert_eq!(interface_name(&model, PortNumber(24)), "1/0/24");
}

#[test]
fn what_is_not_understood_is_told_with_its_line() {
    let wrong = |text: &str| laws::misunderstood(dialect(), MODEL, text);
    insta::assert_snapshot!(wrong("configure\ninterface 1/0/25"), @"line 2: `interface 1/0/25`: netgear-m4300-28g has no port `1/0/25`; it has 24 ports");
    insta::assert_snapshot!(wrong("configure\ninterface 1/0/1\nswitchport mode trunk"), @"line 3: `switchport mode trunk`: is not understood for an interface (see docs/fabric-deployment.md)");
    insta::assert_snapshot!(wrong("configure\ninterface 1/0/1\nvlan pvid 101"), @"line 3: `vlan pvid 101`: VLAN 101 is not defined; `vlan 101` in `vlan database` comes first");
    insta::assert_snapshot!(wrong("configure\ninterface 1/0/1\nvlan tagging 1-2"), @"line 3: `vlan tagging 1-2`: the interface is not in VLAN 2; it has to be, before its tags are set");
    insta::assert_snapshot!(wrong("configure\nvlan 101"), @"line 2: `vlan 101`: is not understood (docs/fabric-deployment.md lists what is)");
    insta::assert_snapshot!(wrong("network mgmt_vlan 101"), @"line 1: `network mgmt_vlan 101`: VLAN 101 is not defined; `vlan 101` in `vlan database` comes first");
    insta::assert_snapshot!(wrong("configure\ninterface lag 3\nexit"), @"line 2: `interface lag 3`: `lag 3` has no ports");
}

#[test]
fn what_a_switch_cannot_be_is_refused_with_the_reason() {
    let refused = laws::refused(dialect(), MODEL, |own| own.ports[0].flow_control = false);
    insta::assert_snapshot!(refused, @"`sw1`: an M4 switch has flow control on all ports or on none");
}

#[test]
fn any_lines_are_read_or_refused() {
    let modes = [
        "configure",
        "vlan database\nvlan 101-104\nexit\nconfigure\ninterface 1/0/1",
        "configure\ninterface lag 1",
        "vlan database",
    ];
    let words = [
        "interface",
        "vlan",
        "no",
        "vlan participation",
        "include",
        "exclude",
        "101",
        "4095",
        "0",
        "tagging",
        "1/0/1",
        "1/0/1-1/0/4",
        "1/0/4-1",
        "lag",
        "1",
        "bridge",
        "aging-time",
        "é",
        "addport",
        "deleteport",
        "pvid",
        "network",
        "mgmt_vlan",
        "shutdown",
        "exit",
    ];
    laws::any_lines_are_read(dialect(), MODEL, &modes, &words);
}

#[test]
fn fabrics_are_proven_from_texts_and_deployed() {
    laws::proven_from_texts(dialect(), "netgear-m4300-52g", "torus 4x2");
    laws::deployed_from_factory(dialect(), MODEL);
}
