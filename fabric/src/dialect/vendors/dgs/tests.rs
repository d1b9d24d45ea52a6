//! What a DGS switch is told, and how it is read.

use proptest::prelude::*;

use crate::dialect::vendors::laws;
use crate::dialect::{Dialect, interface_name};
use crate::{PortNumber, SwitchModel, SwitchSettings};

const MODEL: &str = "dlink-dgs-1510-28";

fn dialect() -> Dialect {
    "dlink-dgs".parse().expect("the table has it")
}

fn settings() -> impl Strategy<Value = SwitchSettings> {
    laws::typed_settings(12, prop::option::of(10_u64..=1_000_000))
}

laws::hold!(dialect(), MODEL, settings());

#[test]
fn what_a_switch_is_told() {
    let text = laws::told(dialect(), MODEL);
    let end = text.split_once("! nothing is plugged in\n").unwrap().1;
    insta::assert_snapshot!(end, @r##"
    interface eth1/0/1
    flowcontrol on
    exit
    interface eth1/0/1
    switchport mode hybrid
    switchport hybrid allowed vlan remove 1
    switchport hybrid allowed vlan add untagged 101-104
    switchport hybrid native vlan 101
    acceptable-frame admit-all
    exit
    ! nothing is plugged in
    interface eth1/0/11
    channel-group 1 mode active
    exit
    interface eth1/0/12
    channel-group 1 mode active
    exit
    interface eth1/0/11
    flowcontrol on
    exit
    interface eth1/0/12
    flowcontrol on
    exit
    interface port-channel 1
    switchport mode hybrid
    switchport hybrid allowed vlan remove 1,103
    switchport hybrid allowed vlan add tagged 101-102,104
    acceptable-frame tagged-only
    no shutdown
    exit
    interface eth1/0/11
    no shutdown
    exit
    interface eth1/0/12
    no shutdown
    exit
    spanning-tree global state disable
    end
    "##);
}

#[test]
fn a_running_configuration_is_read() {
    let shut = "configure\ninterface eth1/0/PORT\nshutdown\nexit\nend\n";
    let running = include_str!("samples/running-config.cfg");
    laws::running_configuration_is_read(dialect(), MODEL, shut, running);
    let model = SwitchModel::named(MODEL).unwrap();
    assert_eq!(interface_name(&model, PortNumber(24)), "eth1/0/24");
}

#[test]
fn what_is_not_understood_is_told_with_its_line() {
    let wrong = |text: &str| {
        let text = format!("configure\n{text}");
        laws::misunderstood(dialect(), MODEL, &text)
    };
    insta::assert_snapshot!(wrong("interface eth1/0/25"), @"line 2: `interface eth1/0/25`: dlink-dgs-1510-28 has no port `eth1/0/25`; it has 24 ports");
    insta::assert_snapshot!(wrong("interface eth1/0/1\nswitchport trunk allowed vlan 5"), @"line 3: `switchport trunk allowed vlan 5`: is not understood for an interface (see docs/fabric-deployment.md)");
    insta::assert_snapshot!(wrong("interface eth1/0/1\nswitchport hybrid native vlan 101"), @"line 3: `switchport hybrid native vlan 101`: the interface is in another mode; `switchport mode hybrid` comes first");
    insta::assert_snapshot!(wrong("interface eth1/0/1\nchannel-group 1 mode passive"), @"line 3: `channel-group 1 mode passive`: allowed modes are `active` (LACP) and `on`");
    insta::assert_snapshot!(wrong("mac-address-table aging-time 9"), @"line 2: `mac-address-table aging-time 9`: allowed are 10 to 1000000 seconds");
    insta::assert_snapshot!(wrong("interface port-channel 3\nexit"), @"line 2: `interface port-channel 3`: `port-channel 3` has no ports");
}

#[test]
fn what_a_switch_cannot_be_is_refused_with_the_reason() {
    let refused = laws::refused(dialect(), MODEL, |own| own.ports[0].accept_tagged = false);
    insta::assert_snapshot!(refused, @"`sw1`, port 1: a DGS switch drops tagged frames in access mode only, which is one VLAN, untagged");
}

#[test]
fn any_lines_are_read_or_refused() {
    let modes = [
        "configure terminal",
        "configure\nvlan 101-104\nexit\ninterface eth1/0/1\nswitchport mode hybrid",
        "configure\ninterface port-channel 1",
    ];
    let words = [
        "interface",
        "vlan",
        "no",
        "switchport",
        "switchport hybrid allowed vlan",
        "add",
        "remove",
        "101",
        "4095",
        "0",
        "tagged",
        "untagged",
        "eth1/0/1",
        "eth1/0/1-4",
        "eth1/0/4-1",
        "eth",
        "range",
        "port-channel",
        "1",
        "mac-address-table",
        "aging-time",
        "é",
        "channel-group",
        "mode",
        "native",
        "shutdown",
        "exit",
    ];
    laws::any_lines_are_read(dialect(), MODEL, &modes, &words);
}

#[test]
fn fabrics_are_proven_from_texts_and_deployed() {
    laws::proven_from_texts(dialect(), "dlink-dgs-3130-54", "torus 4x2");
    laws::deployed_from_factory(dialect(), MODEL);
}
