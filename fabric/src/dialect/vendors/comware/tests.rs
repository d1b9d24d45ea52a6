//! What a Comware switch is told, and how it is read.

use proptest::prelude::*;

use crate::dialect::state::SwitchState;
use crate::dialect::vendors::laws;
use crate::dialect::{Dialect, interface_name, parse, read, render};
use crate::{PortNumber, SwitchModel, SwitchSettings};

const MODEL: &str = "hpe-5130-ei-24";

fn dialect() -> Dialect {
    "comware".parse().expect("the table has it")
}

/// Settings in which a port is in the VLAN of its PVID.
fn settings() -> impl Strategy<Value = SwitchSettings> {
    laws::typed_settings(12, prop::option::of(10_u64..=1_000_000)).prop_map(laws::in_own_vlans)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_text_says_the_settings(own in settings()) {
        laws::says_the_settings(dialect(), &laws::wiring(MODEL), own)?;
    }

    #[test]
    fn a_switch_is_changed_from_any_settings_to_any(
        before in settings(), after in settings(),
        managed in prop::array::uniform2(prop::sample::select(vec![1_u16, 101, 300])),
    ) {
        let [first, second] = managed.map(|id| Some(laws::vlan(id)));
        let before = SwitchState::managed(before, first);
        let after = SwitchState::managed(after, second);
        laws::changes(dialect(), &laws::wiring(MODEL), before, after)?;
    }
}

#[test]
fn what_a_switch_is_told() {
    let configuration = laws::configuration(laws::small());
    let text = render(dialect(), &laws::wiring(MODEL), &configuration, laws::only()).unwrap();
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
    let model = SwitchModel::named(MODEL).unwrap();
    let shut = "system-view\ninterface GigabitEthernet1/0/PORT\nshutdown\nquit\nreturn\n";
    let mut state = SwitchState::blank(dialect(), &model);
    for port in (3..=24).filter(|port| ![11, 12].contains(port)) {
        let text = shut.replace("PORT", &port.to_string());
        state = read(dialect(), &model, &state, &text).unwrap();
    }
    let state =
        read(dialect(), &model, &state, include_str!("samples/running-config.cfg")).unwrap();
    assert_eq!(state.settings, laws::small());
    assert_eq!(state.management, Some(laws::vlan(104)));
    assert_eq!(state.bundles, [(PortNumber(11), 7)].into());
    assert_eq!(interface_name(&model, PortNumber(24)), "GigabitEthernet1/0/24");
}

#[test]
fn what_is_not_understood_is_told_with_its_line() {
    let wrong = |text: &str| {
        let text = format!("system-view\n{text}");
        parse(dialect(), &laws::wiring(MODEL), laws::only(), &text).unwrap_err().to_string()
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
    let mut settings = laws::small();
    settings.ports[0].untagged = laws::set("102-104");
    let configuration = laws::configuration(settings);
    let refused = render(dialect(), &laws::wiring(MODEL), &configuration, laws::only());
    insta::assert_snapshot!(refused.unwrap_err().to_string(), @"`sw1`, port 1: a Comware switch drops frames without a tag at a port whose PVID is 101 and that is not in VLAN 101");
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
