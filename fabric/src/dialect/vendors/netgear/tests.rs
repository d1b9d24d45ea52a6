//! What a switch of the M4 series is told, and how it is read.

use proptest::prelude::*;

use crate::dialect::state::SwitchState;
use crate::dialect::vendors::laws;
use crate::dialect::{Dialect, interface_name, parse, read, render};
use crate::{PortNumber, SwitchModel, SwitchSettings};

const MODEL: &str = "netgear-m4300-28g";

fn dialect() -> Dialect {
    "netgear-m4".parse().expect("the table has it")
}

fn settings() -> impl Strategy<Value = SwitchSettings> {
    laws::typed_settings(12, (10_u64..=1_000_000).prop_map(Some))
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
    let model = SwitchModel::named(MODEL).unwrap();
    let shut = "configure\ninterface 1/0/PORT\nshutdown\nexit\nexit\n";
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
    assert_eq!(interface_name(&model, PortNumber(24)), "1/0/24");
}

#[test]
fn what_is_not_understood_is_told_with_its_line() {
    let wrong = |text: &str| {
        parse(dialect(), &laws::wiring(MODEL), laws::only(), text).unwrap_err().to_string()
    };
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
    let mut settings = laws::small();
    settings.ports[0].flow_control = false;
    let configuration = laws::configuration(settings);
    let refused = render(dialect(), &laws::wiring(MODEL), &configuration, laws::only());
    insta::assert_snapshot!(refused.unwrap_err().to_string(), @"`sw1`: an M4 switch has flow control on all ports or on none");
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
