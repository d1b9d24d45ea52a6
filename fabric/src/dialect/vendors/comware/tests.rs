//! What a Comware switch is told, and how it is read.

use proptest::prelude::*;

use crate::dialect::vendors::laws;
use crate::dialect::{Dialect, interface_name};
use crate::{PortNumber, SwitchModel, SwitchSettings};

const MODEL: &str = "hpe-5130-ei-24";

fn dialect() -> Dialect {
    "comware".parse().expect("the table has it")
}

/// Settings in which a port is in the VLAN of its PVID.
fn settings() -> impl Strategy<Value = SwitchSettings> {
    laws::typed_settings(12, prop::option::of(10_u64..=1_000_000)).prop_map(laws::in_own_vlans)
}

laws::hold!(dialect(), MODEL, settings());

#[test]
fn what_a_switch_is_told() {
    let text = laws::told(dialect(), MODEL);
    let end = text.split_once("# nothing is plugged in\n").unwrap().1;
    insta::assert_snapshot!(end, @r##"
    interface GigabitEthernet1/0/1
    flow-control
    quit
    interface GigabitEthernet1/0/1
    port link-type hybrid
    undo port hybrid vlan 1
    port hybrid vlan 101 to 104 untagged
    port hybrid pvid vlan 101
    quit
    # nothing is plugged in
    interface Bridge-Aggregation1
    link-aggregation mode dynamic
    quit
    interface GigabitEthernet1/0/11
    port link-aggregation group 1
    quit
    interface GigabitEthernet1/0/12
    port link-aggregation group 1
    quit
    interface GigabitEthernet1/0/11
    flow-control
    quit
    interface GigabitEthernet1/0/12
    flow-control
    quit
    interface Bridge-Aggregation1
    port link-type hybrid
    undo port hybrid vlan 1
    undo port hybrid vlan 103
    port hybrid vlan 101 to 102 tagged
    port hybrid vlan 104 tagged
    port hybrid pvid vlan 4094
    undo shutdown
    quit
    interface GigabitEthernet1/0/11
    undo shutdown
    quit
    interface GigabitEthernet1/0/12
    undo shutdown
    quit
    undo stp global enable
    return
    "##);
}

#[test]
fn a_running_configuration_is_read() {
    let shut = "system-view\ninterface GigabitEthernet1/0/PORT\nshutdown\nquit\nreturn\n";
    let running = include_str!("samples/running-config.cfg");
    laws::running_configuration_is_read(dialect(), MODEL, shut, running);
    let model = SwitchModel::named(MODEL).unwrap();
    assert_eq!(interface_name(&model, PortNumber(24)), "GigabitEthernet1/0/24");
}

#[test]
fn what_is_not_understood_is_told_with_its_line() {
    let wrong = |text: &str| {
        let text = format!("system-view\n{text}");
        laws::misunderstood(dialect(), MODEL, &text)
    };
    insta::assert_snapshot!(wrong("interface GigabitEthernet1/0/25"), @"line 2: `interface GigabitEthernet1/0/25`: hpe-5130-ei-24 has no port `GigabitEthernet1/0/25`; it has 24 ports");
    insta::assert_snapshot!(wrong("interface GigabitEthernet1/0/1\nport trunk permit vlan all"), @"line 3: `port trunk permit vlan all`: is not understood for an interface (see docs/fabric-deployment.md)");
    insta::assert_snapshot!(wrong("interface GigabitEthernet1/0/1\nport hybrid vlan 101 untagged"), @"line 3: `port hybrid vlan 101 untagged`: the interface is in another mode; `port link-type hybrid` comes first");
    insta::assert_snapshot!(wrong("vlan 104 to 101"), @"line 2: `vlan 104 to 101`: 104 to 101 is no range");
    insta::assert_snapshot!(wrong("vlan 4094"), @"line 2: `vlan 4094`: hpe-5130-ei-24 has no VLAN 4094; allowed are 2-4093");
    insta::assert_snapshot!(wrong("interface Bridge-Aggregation3\nquit"), @"line 2: `interface Bridge-Aggregation3`: `Bridge-Aggregation3` has no ports");
}

#[test]
fn what_a_switch_cannot_be_is_refused_with_the_reason() {
    let refused =
        laws::refused(dialect(), MODEL, |own| own.ports[0].untagged = laws::set("102-104"));
    insta::assert_snapshot!(refused, @"`sw1`, port 1: a Comware switch drops frames without a tag at a port whose PVID is 101 and that is not in VLAN 101");
}

#[test]
fn any_lines_are_read_or_refused() {
    let modes = [
        "system-view",
        "system-view\nvlan 101 to 104\ninterface GigabitEthernet1/0/1\nport link-type hybrid",
        "system-view\ninterface Bridge-Aggregation1",
    ];
    let words = [
        "interface",
        "vlan",
        "undo",
        "port",
        "hybrid",
        "pvid",
        "101",
        "to",
        "4095",
        "0",
        "tagged",
        "GigabitEthernet1/0/1",
        "GigabitEthernet1/0/",
        "Bridge-Aggregation",
        "Bridge-Aggregation1",
        "link-aggregation",
        "group",
        "mac-address",
        "timer",
        "aging",
        "é",
        "port hybrid vlan",
        "sysname",
        "stp global enable",
        "flow-control",
        "shutdown",
        "quit",
    ];
    laws::any_lines_are_read(dialect(), MODEL, &modes, &words);
}

#[test]
fn fabrics_are_proven_from_texts_and_deployed() {
    laws::proven_from_texts(dialect(), "hpe-5130-hi-48", "torus 4x2");
    laws::deployed_from_factory(dialect(), MODEL);
}
