//! The laws of [`Vendor`](super::Vendor), as tests of a vendor call them: random settings that its
//! switches can have, written and read back.

use meikyo_units::{BitsPerSecond, Nanos};
use proptest::prelude::*;

use crate::deploy::{plan_deployment, planned_states, step_texts};
use crate::dialect::state::SwitchState;
use crate::dialect::{Dialect, Templates, differences, parse, read, render};
use crate::{
    Bundling, CheckOptions, Configuration, HostId, HostSettings, PlanOptions, PortNumber,
    PortSettings, Priming, Switch, SwitchId, SwitchModel, SwitchSettings, Topology, Verdict, Vlan,
    VlanSet, Wiring, cable_uniform, check, plan,
};

/// The only switch of [`wiring`].
pub(in crate::dialect) fn only() -> SwitchId {
    SwitchId::new(0)
}

/// The VLANs of a list: `101-104`.
pub(in crate::dialect) fn set(text: &str) -> VlanSet {
    text.parse().expect("the tests use sets of VLANs")
}

/// The VLAN with this identifier.
pub(in crate::dialect) fn vlan(id: u16) -> Vlan {
    Vlan::new(id).expect("the tests use VLANs")
}

/// One switch of the model with this name, with nothing plugged in.
pub(super) fn wiring(model: &str) -> Wiring {
    let model = SwitchModel::named(model).expect("a built-in model");
    Wiring {
        switches: vec![Switch { name: "sw1".into(), model }],
        hosts: Vec::new(),
        trunks: Vec::new(),
        rate: BitsPerSecond::GIGABIT,
    }
}

/// These settings on that switch.
pub(in crate::dialect) fn configuration(settings: SwitchSettings) -> Configuration {
    Configuration {
        switches: vec![settings],
        hosts: vec![HostSettings::Untagged],
        host_bundling: Bundling::Lacp,
        priming: Priming::None,
    }
}

/// Any settings of a switch that is typed to, on its first ports: single ports, two bundles, ports that are
/// shut; VLANs 101 to 106 and one without a port.
pub(super) fn typed_settings(
    ports: u16,
    ageing: impl Strategy<Value = Option<u64>>,
) -> impl Strategy<Value = SwitchSettings> {
    let ports = prop::collection::vec((0_u8..4, membership()), usize::from(ports));
    (ports, ageing, any::<bool>(), any::<bool>()).prop_map(|(kinds, ageing, tree, pause)| {
        let mut bundles: [Vec<PortNumber>; 2] = [Vec::new(), Vec::new()];
        let mut of_bundles = [(None, [None; 6], false); 2];
        let mut ports = Vec::new();
        for (number, (kind, membership)) in (1..).map(PortNumber).zip(kinds) {
            match kind {
                0 => {}
                1 => ports.push(port(vec![number], None, membership, pause)),
                _ => {
                    bundles[usize::from(kind) - 2].push(number);
                    of_bundles[usize::from(kind) - 2] = membership;
                }
            }
        }
        let protocols = [Bundling::Lacp, Bundling::Static];
        for ((members, membership), protocol) in bundles.into_iter().zip(of_bundles).zip(protocols)
        {
            if !members.is_empty() {
                ports.push(port(members, Some(protocol), membership, pause));
            }
        }
        ports.sort_by(|one, other| one.ports.cmp(&other.ports));
        let ageing = ageing.map(Nanos::from_secs);
        SwitchSettings { vlans: set("101-106,300"), ports, ageing, spanning_tree: tree }
    })
}

/// The same, but no port drops tagged frames.
pub(super) fn with_tags(mut settings: SwitchSettings) -> SwitchSettings {
    settings.ports.iter_mut().for_each(|port| port.accept_tagged = true);
    settings
}

/// The same, but each port is in the VLAN of its PVID, without a tag.
pub(super) fn in_own_vlans(mut settings: SwitchSettings) -> SwitchSettings {
    for port in &mut settings.ports {
        if let Some(vlan) = port.pvid {
            port.tagged.remove(vlan);
            port.untagged.insert(vlan);
        }
    }
    settings
}

/// What a port is in: pvid, for each of the VLANs 101 to 106 whether it is a member and how, and
/// whether it is an access port.
type Membership = (Option<u16>, [Option<bool>; 6], bool);

fn membership() -> impl Strategy<Value = Membership> {
    let members = prop::array::uniform6(prop::option::of(any::<bool>()));
    (prop::option::of(101_u16..=106), members, any::<bool>())
}

fn port(
    ports: Vec<PortNumber>,
    bundle: Option<Bundling>,
    (pvid, members, access): Membership,
    flow_control: bool,
) -> PortSettings {
    let kind = |tagged: bool| -> VlanSet {
        let own = (101..).zip(members).filter(|(_, own)| *own == Some(tagged));
        own.map(|(id, _)| vlan(id)).collect()
    };
    let pvid = pvid.map(vlan);
    let (pvid, untagged, tagged) = match access {
        true => {
            let only = pvid.unwrap_or_else(|| vlan(101));
            (Some(only), VlanSet::from_iter([only]), VlanSet::EMPTY)
        }
        false => (pvid, kind(false), kind(true)),
    };
    PortSettings { ports, bundle, pvid, untagged, tagged, accept_tagged: !access, flow_control }
}

/// The text for a blank switch of a wiring is read as the settings that it was made of.
pub(in crate::dialect) fn says_the_settings(
    dialect: Dialect,
    wiring: Wiring,
    settings: SwitchSettings,
) -> Result<(), TestCaseError> {
    let configuration = configuration(settings);
    let text = render(dialect, &wiring, &configuration, only())
        .map_err(|error| TestCaseError::fail(error.to_string()))?;
    let said = parse(dialect, &wiring, only(), &text);
    prop_assert_eq!(said, Ok(configuration.switches[0].clone()), "{}", text);
    Ok(())
}

/// A text typed upon one state gives the other, and the text that takes it back gives the first, for
/// any two states and any two VLANs in which the switch is reached.
pub(super) fn changes(
    dialect: Dialect,
    model: &str,
    [before, after]: [SwitchSettings; 2],
    managed: [u16; 2],
) -> Result<(), TestCaseError> {
    let wiring = &wiring(model);
    let [first, second] = managed.map(|id| Some(vlan(id)));
    let before = SwitchState::managed(before, first);
    let after = SwitchState::managed(after, second);
    let model = &wiring.switches[0].model;
    let templates = Templates::built_in();
    let failed = |error: crate::dialect::RenderError| TestCaseError::fail(error.to_string());
    let blank = SwitchState::blank(dialect, model);
    let first = templates.render(dialect, wiring, only(), &before).map_err(failed)?;
    let before = read(dialect, model, &blank, &first).expect("a text that was read back");
    let text = templates.render_change(dialect, wiring, only(), &before, &after).map_err(failed)?;
    let then = read(dialect, model, &before, &text).expect("a text that was read back");
    let meant = SwitchState { management: after.management.or(before.management), ..after };
    prop_assert_eq!(differences(&meant, &then), vec![], "{}", text);
    let back = templates.render_back(dialect, wiring, only(), &then, &before).map_err(failed)?;
    let again = read(dialect, model, &then, &back).expect("a text that was read back");
    prop_assert_eq!(differences(&before, &again), vec![], "{}", back);
    Ok(())
}

/// A fabric of switches of this model is planned, written, read and proven: what is proven is what is
/// typed.
pub(super) fn proven_from_texts(dialect: Dialect, model: &str, topology: &str) {
    let topology: Topology = topology.parse().unwrap();
    let model = SwitchModel::named(model).expect("a built-in model");
    let wiring = cable_uniform(&topology, &model, 4).unwrap();
    let plan = plan(&wiring, &PlanOptions::new(Some(topology))).unwrap();
    let mut configuration = plan.configuration(&wiring);
    for place in 0..wiring.switches.len() {
        let switch = SwitchId::new(place);
        let text = render(dialect, &wiring, &configuration, switch).unwrap();
        configuration.switches[place] = parse(dialect, &wiring, switch, &text).unwrap();
    }
    let report = check(&wiring, &configuration, &CheckOptions::INTACT);
    assert_eq!(report.verdict(), Verdict::Good, "{}: {:?}", model.name, report.faults);
}

/// Every step of a deployment, forth and back, from switches of this model as delivered.
pub(super) fn deployed_from_factory(dialect: Dialect, model: &str) {
    let topology: Topology = "ring 4".parse().unwrap();
    let model = SwitchModel::named(model).expect("a built-in model");
    let wiring = cable_uniform(&topology, &model, 2).unwrap();
    let mut options = PlanOptions::new(Some(topology));
    options.management = Some(vlan(4_000));
    options.manager = Some(HostId::new(0));
    let configuration = plan(&wiring, &options).unwrap().configuration(&wiring);
    let planned = planned_states(&configuration, options.management);
    let mut states = vec![SwitchState::factory(dialect, &model); wiring.switches.len()];
    let steps = plan_deployment(&wiring, &states, &planned, options.manager).unwrap();
    for step in &steps {
        let texts = step_texts(&Templates::built_in(), dialect, &wiring, step).unwrap();
        let state = &mut states[step.switch.place()];
        let after = read(dialect, &model, state, &texts.apply).unwrap();
        assert_eq!(differences(&step.after, &after), vec![], "{}", texts.apply);
        let back = read(dialect, &model, &after, &texts.roll_back).unwrap();
        assert_eq!(differences(&step.before, &back), vec![], "{}", texts.roll_back);
        *state = after;
    }
    for (state, planned) in states.iter().zip(&planned) {
        assert_eq!(differences(planned, state), vec![]);
    }
}

/// The laws for random settings, as tests: `hold!(DIALECT, MODEL, SETTINGS)`, the last a strategy.
macro_rules! hold {
    ($dialect:expr, $model:expr, $settings:expr) => {
        proptest::prelude::proptest! {
            #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

            #[test]
            fn a_text_says_the_settings(own in $settings) {
                $crate::dialect::vendors::laws::says_the_settings(
                    $dialect, $crate::dialect::vendors::laws::wiring($model), own,
                )?;
            }

            #[test]
            fn a_switch_is_changed_from_any_settings_to_any(
                before in $settings, after in $settings,
                managed in proptest::array::uniform2(
                    proptest::sample::select(vec![1_u16, 101, 300]),
                ),
            ) {
                let changed = [before, after];
                $crate::dialect::vendors::laws::changes($dialect, $model, changed, managed)?;
            }
        }
    };
}
pub(super) use hold;

/// What a switch is told of [`small`]; a snapshot of it is a vendor's.
pub(super) fn told(dialect: Dialect, model: &str) -> String {
    render(dialect, &wiring(model), &configuration(small()), only()).expect("it can be said")
}

/// Why a switch is not told what `change` makes of [`small`].
pub(super) fn refused(
    dialect: Dialect,
    model: &str,
    change: impl FnOnce(&mut SwitchSettings),
) -> String {
    let mut settings = small();
    change(&mut settings);
    let refused = render(dialect, &wiring(model), &configuration(settings), only());
    refused.expect_err("it cannot be said").to_string()
}

/// Why a text is not understood.
pub(super) fn misunderstood(dialect: Dialect, model: &str, text: &str) -> String {
    parse(dialect, &wiring(model), only(), text).expect_err("it is wrong").to_string()
}

/// A running configuration says [`small`] of a switch of 24 ports that is managed in VLAN 104 and has
/// its bundle under the number 7. `shut` shuts the port `PORT`.
pub(super) fn running_configuration_is_read(
    dialect: Dialect,
    model: &str,
    shut: &str,
    running: &str,
) {
    let model = SwitchModel::named(model).expect("a built-in model");
    let mut state = SwitchState::blank(dialect, &model);
    for port in (3..=24).filter(|port| ![11, 12].contains(port)) {
        let text = shut.replace("PORT", &port.to_string());
        state = read(dialect, &model, &state, &text).expect("a port is shut");
    }
    let state = read(dialect, &model, &state, running).expect("it is understood");
    assert_eq!(state.settings, small());
    assert_eq!(state.management, Some(vlan(104)));
    assert_eq!(state.bundles, [(PortNumber(11), 7)].into());
}

/// One host in VLAN 101 that is in four, at port 1, and one trunk of two cables, at ports 11 and 12.
pub(in crate::dialect) fn small() -> SwitchSettings {
    let host = PortSettings {
        ports: vec![PortNumber(1)],
        bundle: None,
        pvid: Some(vlan(101)),
        untagged: set("101-104"),
        tagged: VlanSet::EMPTY,
        accept_tagged: true,
        flow_control: true,
    };
    let trunk = PortSettings {
        ports: vec![PortNumber(11), PortNumber(12)],
        bundle: Some(Bundling::Lacp),
        pvid: None,
        untagged: VlanSet::EMPTY,
        tagged: set("101,102,104"),
        ..host.clone()
    };
    SwitchSettings {
        vlans: set("101-104"),
        ports: vec![host, trunk],
        ageing: Some(Nanos::from_secs(300)),
        spanning_tree: false,
    }
}

/// Any lines of these words are read, or refused with a reason: no text makes the parser panic. Lines of
/// three words begin with one of the first twelve.
pub(super) fn any_lines_are_read(dialect: Dialect, model: &str, modes: &[&str], words: &[&str]) {
    let wiring = wiring(model);
    let mut read = 0;
    for (mode, first) in modes.iter().flat_map(|mode| words.iter().map(move |word| (mode, word))) {
        for second in words {
            let lines = words[..12].iter().map(|begin| format!("{begin} {first} {second}"));
            for line in lines.chain([format!("{first} {second}")]) {
                let text = format!("{mode}\n{line}\n");
                read += usize::from(parse(dialect, &wiring, only(), &text).is_ok());
            }
        }
    }
    assert!(read > 10, "only {read} commands were understood");
}
