//! Vendors' texts say what was meant, and are read as a switch would read them.

use std::collections::BTreeMap;

use meikyo_units::{BitsPerSecond, Nanos};
use proptest::prelude::*;

use super::vendors::laws::{self, configuration, only, says_the_settings, set, vlan};
use super::{Dialect, SwitchState, Templates, differences, parse, read, render};
use crate::{
    Bundling, Learning, PortNumber, PortSettings, Switch, SwitchModel, SwitchSettings, Vlan,
    VlanSet, Wiring,
};

const PORTS: u16 = 12;

fn named(dialect: &str) -> Dialect {
    dialect.parse().expect("the tests use dialects that there are")
}

fn powerconnect() -> Dialect {
    named("powerconnect-6248")
}

fn open_vswitch() -> Dialect {
    named("open-vswitch")
}

fn wiring(dialect: Dialect) -> Wiring {
    let model = SwitchModel {
        name: dialect.name().into(),
        ports: PORTS,
        table_entries: 8_000,
        vlans: 1_024,
        vlan_ids: set("2-4093"),
        bundle_ports: 8,
        bundles: 48,
        multi_untagged: true,
        learning: Learning::Independent,
        ageing_min: Nanos::from_secs(10),
        ageing_max: Some(Nanos::from_secs(1_000_000)),
        default_vlan_stays: false,
    };
    Wiring {
        switches: vec![Switch { name: "sw1".into(), model }],
        hosts: Vec::new(),
        trunks: Vec::new(),
        rate: BitsPerSecond::GIGABIT,
    }
}

/// What a port is in: pvid, and for each of the VLANs 101 to 106 whether it is a member and how.
type Membership = (Option<usize>, [Option<bool>; 6], bool);

fn membership() -> impl Strategy<Value = Membership> {
    (
        prop::option::of(0_usize..6),
        prop::array::uniform6(prop::option::of(any::<bool>())),
        any::<bool>(),
    )
}

fn port(
    dialect: Dialect,
    ports: Vec<PortNumber>,
    bundle: Option<Bundling>,
    of: Membership,
) -> PortSettings {
    let (pvid, members, access) = of;
    let id = |at: usize| vlan(101 + u16::try_from(at).expect("six VLANs"));
    let kind = |tagged: bool| -> VlanSet {
        members
            .iter()
            .enumerate()
            .filter(|(_, own)| **own == Some(tagged))
            .map(|(at, _)| id(at))
            .collect()
    };
    let (untagged, tagged) = (kind(false), kind(true));
    let pvid = pvid.map(id).filter(|own| untagged.contains(*own) || tagged.contains(*own));
    let access = access && dialect != Dialect::linux_bridge();
    PortSettings {
        ports,
        bundle,
        pvid,
        untagged,
        tagged,
        accept_tagged: !access,
        flow_control: true,
    }
}

/// How the ports are cut into single ports, bundles and ports that are shut.
fn settings(dialect: Dialect) -> impl Strategy<Value = SwitchSettings> {
    let ports = prop::collection::vec((0_u8..4, membership()), usize::from(PORTS));
    (ports, 10_u64..1_000_000, any::<bool>(), any::<bool>()).prop_map(
        move |(kinds, ageing, tree, pause)| {
            let mut bundles: [Vec<PortNumber>; 2] = [Vec::new(), Vec::new()];
            let mut ports = Vec::new();
            for (number, (kind, of)) in (1..).zip(kinds) {
                match kind {
                    0 => {}
                    1.. if dialect == open_vswitch() => {
                        ports.push(port(dialect, vec![PortNumber(number)], None, of));
                    }
                    1 => ports.push(port(dialect, vec![PortNumber(number)], None, of)),
                    _ => bundles[usize::from(kind) - 2].push(PortNumber(number)),
                }
            }
            for (members, bundling) in bundles.into_iter().zip([Bundling::Lacp, Bundling::Static]) {
                if !members.is_empty() {
                    let of =
                        (Some(2), [Some(true), None, Some(false), Some(true), None, None], false);
                    ports.push(port(dialect, members, Some(bundling), of));
                }
            }
            ports.retain(|port| dialect != open_vswitch() || !port.members().is_empty());
            let ageing = if dialect == open_vswitch() { ageing % 65_535 + 1 } else { ageing };
            ports.sort_by(|one, other| one.ports.cmp(&other.ports));
            ports.iter_mut().for_each(|port| port.flow_control = pause);
            // VLANs without a port do not exist on these switches.
            let mut vlans = VlanSet::EMPTY;
            for port in &ports {
                vlans = vlans.union(&port.members());
                vlans.extend(port.pvid);
            }
            SwitchSettings {
                vlans,
                ports,
                ageing: Some(Nanos::from_secs(ageing)),
                spanning_tree: tree,
            }
        },
    )
}

/// A text typed upon one state gives the other, for any two states.
fn change(
    dialect: Dialect,
    before: SwitchSettings,
    after: SwitchSettings,
) -> Result<(), TestCaseError> {
    let wiring = wiring(dialect);
    let model = &wiring.switches[0].model;
    let templates = Templates::built_in();
    let blank = SwitchState::blank(dialect, model);
    let first = templates
        .render(dialect, &wiring, only(), &SwitchState::unmanaged(before))
        .expect("the first text");
    let managed = |state: SwitchState| SwitchState { management: blank.management, ..state };
    let before = managed(read(dialect, model, &blank, &first).expect("a text that was read back"));
    let after = managed(SwitchState::unmanaged(after));
    let text = templates
        .render_change(dialect, &wiring, only(), &before, &after)
        .map_err(|error| TestCaseError::fail(error.to_string()))?;
    let then = read(dialect, model, &before, &text).expect("a text that was read back");
    prop_assert_eq!(differences(&after, &then), vec![], "{}", text);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_linux_text_says_the_settings(settings in settings(Dialect::linux_bridge())) {
        says_the_settings(Dialect::linux_bridge(), wiring(Dialect::linux_bridge()), settings)?;
    }

    #[test]
    fn an_open_vswitch_text_says_the_settings(settings in settings(open_vswitch())) {
        says_the_settings(open_vswitch(), wiring(open_vswitch()), settings)?;
    }

    #[test]
    fn an_open_vswitch_is_changed_from_any_settings_to_any(
        before in settings(open_vswitch()), after in settings(open_vswitch()),
    ) {
        change(open_vswitch(), before, after)?;
    }

    #[test]
    fn a_linux_bridge_is_changed_from_any_settings_to_any(
        before in settings(Dialect::linux_bridge()), after in settings(Dialect::linux_bridge()),
    ) {
        change(Dialect::linux_bridge(), before, after)?;
    }

    #[test]
    fn no_text_makes_a_parser_panic(
        words in prop::collection::vec("(interface|ethernet|1/g1|range|vlan|database|101|9-7|add|link|set|dev|swp1|switchport|general|pvid|exit|ip|-batch|-|END|no|,|shutdown|ovs-vsctl|table=0|priority=10|in_port=1|actions=|ovs-ofctl add-flows br0 - <<'END'\n| |\n){1,6}", 0..40),
    ) {
        let text = words.join(" ");
        for dialect in Dialect::all() {
            drop(parse(dialect, &wiring(dialect), only(), &text));
        }
    }
}

/// One host in VLAN 101 that is in four, one trunk of two cables; of one in Open vSwitch, which has no bundles.
fn small(dialect: Dialect) -> SwitchSettings {
    let mut small = laws::small();
    small.ageing = Some(Nanos::from_secs(1_000));
    if dialect == open_vswitch() {
        small.ports[1].ports.pop();
        small.ports[1].bundle = None;
    }
    small
}

#[test]
fn what_a_powerconnect_is_told() {
    let dialect = powerconnect();
    let text = render(dialect, &wiring(dialect), &configuration(small(dialect)), only()).unwrap();
    insta::assert_snapshot!(text, @r##"
    ! sw1, from the factory settings
    configure
    vlan database
    vlan 101-104
    exit
    flowcontrol
    bridge aging-time 1000
    interface range ethernet 1/g2-1/g10
    shutdown
    exit
    ! nothing is plugged in
    interface ethernet 1/g1
    switchport mode general
    switchport general allowed vlan remove 1
    switchport general allowed vlan add 101-104 untagged
    switchport general pvid 101
    no switchport general acceptable-frame-type tagged-only
    exit
    ! nothing is plugged in
    interface range ethernet 1/g11-1/g12
    channel-group 1 mode auto
    exit
    interface port-channel 1
    switchport mode general
    switchport general allowed vlan remove 1
    switchport general allowed vlan add 101-102,104 tagged
    switchport general acceptable-frame-type tagged-only
    no shutdown
    exit
    interface range ethernet 1/g11-1/g12
    no shutdown
    exit
    no spanning-tree
    exit
    "##);
}

#[test]
fn what_a_linux_bridge_is_told() {
    let dialect = Dialect::linux_bridge();
    let text = render(dialect, &wiring(dialect), &configuration(small(dialect)), only()).unwrap();
    insta::assert_snapshot!(text, @r##"
    #!/bin/sh
    # sw1: a Linux bridge with VLAN filtering. Variables: docs/fabric-deployment.md.
    set -e
    ethtool --pause swp1 rx on tx on
    ethtool --pause swp11 rx on tx on
    ethtool --pause swp12 rx on tx on
    ip -batch - <<'END'
    link add name br0 type bridge vlan_filtering 1 vlan_default_pvid 0 stp_state 0 ageing_time 100000 mcast_snooping 0
    link set dev br0 up
    # nothing is plugged in
    link set dev swp1 master br0
    link set dev swp1 up
    # nothing is plugged in
    link add name bond1 type bond mode 802.3ad miimon 100 xmit_hash_policy layer3+4
    link set dev swp11 down
    link set dev swp11 master bond1
    link set dev swp11 up
    link set dev swp12 down
    link set dev swp12 master bond1
    link set dev swp12 up
    link set dev bond1 master br0
    link set dev bond1 up
    END
    bridge -batch - <<'END'
    vlan add dev swp1 vid 101-104 untagged
    vlan add dev swp1 vid 101 pvid untagged
    vlan add dev bond1 vid 101-102
    vlan add dev bond1 vid 104
    END
    "##);
}

#[test]
fn what_an_open_vswitch_is_told() {
    let dialect = open_vswitch();
    let mut state = SwitchState::managed(small(dialect), Some(vlan(4_000)));
    state.settings.vlans.insert(vlan(4_000));
    state.settings.ports[1].tagged.insert(vlan(4_000));
    let text = Templates::built_in().render(dialect, &wiring(dialect), only(), &state).unwrap();
    insta::assert_snapshot!(text, @r##"
    #!/bin/sh
    # sw1: Open vSwitch with flows of its own. Variables: docs/fabric-deployment.md.
    # Table 0: which VLAN a frame comes in by. 1: learn the sender. 2: what was learned. 3: where to.
    set -e
    ethtool --pause swp1 rx on tx on
    ethtool --pause swp11 rx on tx on
    ovs-vsctl add-br br0 -- set bridge br0 fail_mode=secure stp_enable=false
    # nothing is plugged in
    ovs-vsctl add-port br0 swp1 -- set interface swp1 ofport_request=1
    # nothing is plugged in
    ovs-vsctl add-port br0 swp11 -- set interface swp11 ofport_request=11
    ovs-vsctl add-port br0 manage -- set interface manage type=internal ofport_request=65000
    ovs-ofctl add-flows br0 - <<'END'
    delete table=0
    delete table=1
    delete table=2
    delete table=3
    table=0 priority=10 in_port=1,vlan_tci=0x0000/0x1fff actions=mod_vlan_vid:101,resubmit(,1)
    table=0 priority=10 in_port=1,dl_vlan=101 actions=resubmit(,1)
    table=0 priority=10 in_port=1,dl_vlan=102 actions=resubmit(,1)
    table=0 priority=10 in_port=1,dl_vlan=103 actions=resubmit(,1)
    table=0 priority=10 in_port=1,dl_vlan=104 actions=resubmit(,1)
    table=0 priority=10 in_port=11,dl_vlan=101 actions=resubmit(,1)
    table=0 priority=10 in_port=11,dl_vlan=102 actions=resubmit(,1)
    table=0 priority=10 in_port=11,dl_vlan=104 actions=resubmit(,1)
    table=0 priority=10 in_port=11,dl_vlan=4000 actions=resubmit(,1)
    table=0 priority=10 in_port=65000,vlan_tci=0x0000/0x1fff actions=mod_vlan_vid:4000,resubmit(,1)
    table=1 priority=10 actions=learn(table=2,hard_timeout=1000,NXM_OF_VLAN_TCI[0..11],NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],load:NXM_OF_IN_PORT[]->NXM_NX_REG0[0..15]),resubmit(,2),resubmit(,3)
    table=3 priority=20 reg0=1 actions=strip_vlan,output:1
    table=3 priority=20 reg0=11 actions=output:11
    table=3 priority=20 reg0=65000 actions=strip_vlan,output:65000
    table=3 priority=10 reg0=0,dl_vlan=101 actions=output:11,strip_vlan,output:1
    table=3 priority=10 reg0=0,dl_vlan=102 actions=output:11,strip_vlan,output:1
    table=3 priority=10 reg0=0,dl_vlan=103 actions=strip_vlan,output:1
    table=3 priority=10 reg0=0,dl_vlan=104 actions=output:11,strip_vlan,output:1
    table=3 priority=10 reg0=0,dl_vlan=4000 actions=output:11,strip_vlan,output:65000
    END
    "##);
}

/// The same as `small`, in other words: spans, single lines, other order, a running configuration.
#[test]
fn a_powerconnect_text_as_a_person_writes_it_is_read() {
    let text = r#"
        !Current Configuration:
        !System Description "Dell Ethernet Switch"
        configure
        vlan database
        vlan 101
        vlan 102-103,104
        exit
        hostname "sw1"
        stack
        member 1 2
        exit
        ip address vlan 104
        interface vlan 104
        name "fabric d"
        exit
        interface range ethernet 1/g2-1/g10
        shutdown
        exit
        interface port-channel 7
        switchport mode general
        switchport general allowed vlan add 101-104 tagged
        switchport general acceptable-frame-type tagged-only
        switchport general allowed vlan remove 1,103
        exit
        interface ethernet 1/g12
        channel-group 7 mode auto
        description "to sw2"
        exit
        interface ethernet 1/g11
        channel-group 7 mode auto
        exit
        interface ethernet 1/g1
        spanning-tree portfast
        switchport mode general
        switchport general pvid 101
        switchport general allowed vlan add 101
        switchport general allowed vlan add 102,103
        switchport general allowed vlan add 104
        switchport general allowed vlan remove 1
        exit
        bridge aging-time 1000
        no spanning-tree
        exit
    "#;
    let dialect = powerconnect();
    assert_eq!(parse(dialect, &wiring(dialect), only(), text), Ok(small(dialect)));
}

#[test]
fn a_linux_text_as_a_person_writes_it_is_read() {
    let text = "
        ip link add name br0 type bridge vlan_filtering 1 stp_state 0 vlan_default_pvid 0
        ip link add name bond3 type bond mode 802.3ad
        ip link set dev swp12 master bond3 up
        ip link set dev swp11 down
        ip link set dev swp11 master bond3
        ip link set dev swp11 up
        ip link set dev bond3 up
        ip link set dev swp1 up
        # VLANs
        ip link set dev swp1 master br0
        ip link set dev bond3 master br0
        bridge vlan add dev swp1 vid 104 untagged
        bridge vlan add dev swp1 vid 102-103 untagged
        bridge vlan add dev swp1 vid 103 untagged pvid
        bridge vlan add dev swp1 vid 101 untagged pvid
        bridge vlan add dev bond3 vid 101-104
        bridge vlan del dev bond3 vid 103
        ip link set dev br0 type bridge ageing_time 100000
        ip link set dev br0 up
        ethtool -A swp1 rx on tx on
        ethtool -A swp11 rx on tx on
        ethtool -A swp12 rx on tx on
    ";
    let dialect = Dialect::linux_bridge();
    assert_eq!(parse(dialect, &wiring(dialect), only(), text), Ok(small(dialect)));
}

#[test]
fn what_is_not_understood_is_told_with_its_line() {
    let wrong = |dialect: Dialect, text: &str| {
        parse(dialect, &wiring(dialect), only(), text).unwrap_err().to_string()
    };
    let dell = |text: &str| wrong(powerconnect(), &format!("configure\n{text}"));
    let linux = |text| wrong(Dialect::linux_bridge(), text);
    let general = "interface ethernet 1/g1\nswitchport mode general\nswitchport general pvid 101";
    insta::assert_snapshot!(dell("vlan 101\n"), @"line 2: `vlan 101`: is not understood (docs/fabric-deployment.md lists what is)");
    insta::assert_snapshot!(dell("interface ethernet 1/g13\n"), @"line 2: `interface ethernet 1/g13`: powerconnect-6248 has no port `1/g13`; it has 12 ports");
    insta::assert_snapshot!(dell("interface ethernet 1/g1\nswitchport general pvid 1\n"), @"line 3: `switchport general pvid 1`: the interface is in another mode; `switchport mode general` comes first");
    insta::assert_snapshot!(dell(general), @"line 4: `switchport general pvid 101`: VLAN 101 is not defined; `vlan 101` in `vlan database` comes first");
    insta::assert_snapshot!(dell("interface ethernet 1/g1\nswitchport mode trunk\n"), @"line 3: `switchport mode trunk`: is not understood for an interface (see docs/fabric-deployment.md)");
    insta::assert_snapshot!(dell("vlan database\nvlan 4094\n"), @"line 3: `vlan 4094`: powerconnect-6248 has no VLAN 4094; allowed are 2-4093");
    insta::assert_snapshot!(dell("interface port-channel 3\nexit\n"), @"line 2: `interface port-channel 3`: `port-channel 3` has no ports");
    insta::assert_snapshot!(dell("bridge aging-time 5"), @"line 2: `bridge aging-time 5`: allowed are 10 to 1000000 seconds");
    insta::assert_snapshot!(wrong(powerconnect(), "vlan database\n"), @"line 1: `vlan database`: is refused before `configure`");
    insta::assert_snapshot!(dell("exit\nspanning-tree\n"), @"line 3: `spanning-tree`: is refused before `configure`");
    insta::assert_snapshot!(dell("no ip address vlan 104\n"), @"line 2: `no ip address vlan 104`: moves the manager to VLAN 1; name the VLAN that is to be managed in: `ip address vlan 4000`");
    insta::assert_snapshot!(wrong(open_vswitch(), "ovs-vsctl add-br br0\n"), @"without `fail_mode=secure` the bridge passes frames on by itself, whatever their VLAN, when its controller is gone");
    insta::assert_snapshot!(linux("ip link add name br0 type bridge vlan_filtering 1 vlan_default_pvid 0\n"), @"`br0` passes nothing on before `link set dev br0 up`");
    insta::assert_snapshot!(linux("ip link add name br0 type bridge\n"), @"line 1: `ip link add name br0 type bridge`: the bridge is made without `vlan_filtering 1`");
    insta::assert_snapshot!(linux("ip -batch - <<'END'\nlink set dev swp99 up\nEND\n"), @"line 2: `link set dev swp99 up`: there is no interface `swp99`; ports are swp1 to swp12");
    insta::assert_snapshot!(linux("ip -batch - <<'END'\n"), @"a batch has no `END`");
    insta::assert_snapshot!(linux("bridge vlan add dev swp1 vid 101\n"), @"line 1: `bridge vlan add dev swp1 vid 101`: `swp1` is not in the bridge yet");
    insta::assert_snapshot!(linux("rm -rf /\n"), @"line 1: `rm -rf /`: is not understood; allowed are `ip`, `bridge`, `ethtool`");
}

#[test]
fn what_a_dialect_cannot_say_is_refused_with_the_reason() {
    let refused = |dialect: Dialect, change: fn(&mut SwitchSettings)| {
        let mut settings = small(dialect);
        change(&mut settings);
        render(dialect, &wiring(dialect), &configuration(settings), only()).unwrap_err().to_string()
    };
    insta::assert_snapshot!(refused(named("cisco-ios"), |_| ()), @"`sw1`, port 1: a port of cisco-ios can be an untagged member of one VLAN only, so frames of the others (101-104) would reach the host with a tag; a fabric needs ports such as FASTPATH's general mode, Comware's hybrid ports or a Linux bridge");
    insta::assert_snapshot!(refused(named("arista-eos"), |_| ()), @"`sw1`, port 1: a port of arista-eos can be an untagged member of one VLAN only, so frames of the others (101-104) would reach the host with a tag; a fabric needs ports such as FASTPATH's general mode, Comware's hybrid ports or a Linux bridge");
    insta::assert_snapshot!(refused(Dialect::linux_bridge(), |own| own.ports[0].accept_tagged = false), @"`sw1`, port 1: a Linux bridge takes tagged frames of every VLAN that a port is in");
    insta::assert_snapshot!(refused(powerconnect(), |own| own.ports[0].flow_control = false), @"`sw1`: a PowerConnect has flow control on all ports or on none");
    insta::assert_snapshot!(refused(powerconnect(), |own| own.ageing = Some(Nanos::from_millis(15_500))), @"`sw1`: an ageing time of 15500ms: allowed are 10 to 1000000 whole seconds");
    insta::assert_snapshot!(refused(open_vswitch(), |own| own.ports[0].bundle = Some(Bundling::Lacp)), @"`sw1`, port 1: Open vSwitch spreads frames over a bundle only without flows, and flows are needed here; use single links, or the dialect `linux-bridge`");
    insta::assert_snapshot!(refused(powerconnect(), |own| own.vlans = set("101-103")), @"`sw1`, port 1: VLAN 104 is not defined");
}

#[test]
fn a_template_of_the_site_is_used_and_proven() {
    let dialect = powerconnect();
    let (name, text) = Templates::files().remove(0);
    let state = SwitchState::managed(small(dialect), Some(Vlan::DEFAULT));
    let with = |text: String| {
        Templates::with(&BTreeMap::from([(name.to_owned(), text)]))
            .and_then(|own| own.render(dialect, &wiring(dialect), only(), &state))
    };
    let logged = with(text.replace("configure\n", "configure\nlogging 10.0.0.1\n")).unwrap();
    assert!(logged.contains("\nlogging 10.0.0.1\n"));
    let wrong = |from: &str, to: &str| with(text.replacen(from, to, 1)).unwrap_err();
    let said = |error: &dyn std::error::Error| {
        error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
    };
    insta::assert_snapshot!(said(&wrong("interface.pvid }}", "interface.pvvid }}")), @"template `powerconnect-6248.j2`, line 57: undefined value");
    insta::assert_snapshot!(said(&wrong("{% endfor %}", "{% endfro %}")), @"template `powerconnect-6248.j2`, line 74: syntax error: unknown statement endfro");
    insta::assert_snapshot!(said(&wrong("bridge aging-time", "mac address-table aging-time")), @"template `powerconnect-6248.j2` makes a text for `sw1` that is not understood: line 7: `mac address-table aging-time 1000`: is not understood (docs/fabric-deployment.md lists what is)");
    insta::assert_snapshot!(said(&wrong(" untagged\n", " tagged\n")), @"template `powerconnect-6248.j2` makes a text for `sw1` that says something else: port 1: untagged 101-104 -> none");
    let other =
        Templates::with(&BTreeMap::from([("ios.j2".to_owned(), String::new())])).unwrap_err();
    let allowed: Vec<String> =
        Templates::files().iter().map(|(name, _)| format!("`{name}`")).collect();
    assert!(allowed.len() >= 3 && allowed[0] == "`powerconnect-6248.j2`", "{allowed:?}");
    let told = "template `ios.j2`: is the name of no template; allowed are ";
    assert_eq!(said(&other), format!("{told}{}", allowed.join(", ")));
}

#[test]
fn a_template_of_the_site_gives_the_switch_its_address() {
    let state = |dialect| SwitchState::managed(small(dialect), Some(vlan(104)));
    for (dialect, from, address) in [
        (
            Dialect::linux_bridge(),
            "link set dev br0.{{ management }} up\n",
            "addr add 10.0.0.7/24 dev br0.{{ management }}\n",
        ),
        (
            open_vswitch(),
            "type=internal ofport_request={{ manage_port }}\n",
            "ip addr add 10.0.0.7/24 dev manage\n",
        ),
    ] {
        let name = format!("{dialect}.j2");
        let files = Templates::files();
        let (_, text) = files.iter().find(|(own, _)| *own == name).unwrap();
        assert_eq!(text.matches(from).count(), 1, "{dialect}");
        let with = |changed: String| {
            let templates = Templates::with(&BTreeMap::from([(name.clone(), changed)])).unwrap();
            templates.render(dialect, &wiring(dialect), only(), &state(dialect))
        };
        let rendered = with(text.replacen(from, &format!("{from}{address}"), 1));
        assert!(rendered.unwrap().contains("addr add 10.0.0.7/24 dev "), "{dialect}");
        let elsewhere = address.replace("br0.{{ management }}", "swp1").replace("manage", "swp1");
        assert!(with(text.replacen(from, &format!("{elsewhere}{from}"), 1)).is_err(), "{dialect}");
    }
}

#[test]
fn differences_are_told_port_by_port() {
    let dialect = powerconnect();
    let before = SwitchState::unmanaged(small(dialect));
    let mut after = before.clone();
    after.settings.ports[0].pvid = Some(vlan(102));
    after.settings.ports[0].untagged.remove(vlan(103));
    after.settings.ports[1].ports.pop();
    after.settings.spanning_tree = true;
    let told: Vec<String> = differences(&before, &after).iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(told.join("\n"), @r##"
    spanning tree off -> on
    port 1: pvid 101 -> 102
    port 1: untagged 101-104 -> 101-102,104
    port 11: bundle LACP, with 12 -> LACP, alone
    port 12: bundle LACP, with 11 -> none
    port 12: is open (pvid none, untagged none, tagged 101-102,104) -> shut down
    "##);
    assert_eq!(differences(&before, &before), vec![]);
}
