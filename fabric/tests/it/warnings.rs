//! What works and is warned of: hot spots, idle and parallel links, bundles that lack cables.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use meikyo_fabric::dialect;
use meikyo_fabric::{
    CheckOptions, Configuration, Described, Loads, Pattern, Report, SwitchId, Verdict, Warning,
    Wiring, check, describe, loads, plan, warnings,
};

use crate::built::powerconnect;

fn described(text: &str) -> Result<Described, String> {
    let file = format!("name = \"test\"\n{text}");
    let cluster = meikyo_cluster::parse(&file, "cluster.toml".as_ref());
    let cluster = cluster.map_err(|error| error.to_string())?;
    describe(&cluster).map_err(|error| error.to_string())
}

/// Two stars of `arms` switches each, one host on each, whose middles one cable joins.
fn two_stars(arms: usize) -> String {
    let last = 2 * arms + 2;
    let (left, right) = (2 + arms, 3 + arms);
    format!(
        "[fabric]\n\
         [[links]]\nbetween = [\"sw1\", \"sw2\"]\n\
         [[links]]\nbetween = [\"sw1\", \"sw[3-{left}]\"]\n\
         [[links]]\nbetween = [\"sw2\", \"sw[{right}-{last}]\"]\n\
         [[links]]\nbetween = [\"node[3-{last}]\", \"sw[3-{last}]\"]\n\
         [[hosts]]\nname = \"node[3-{last}]\"\naddress = \"10.0.0.[3-{last}]\"\n\
         [[switches]]\nname = \"sw[1-{last}]\"\naddress = \"10.0.1.[1-{last}]\"\n"
    )
}

fn words(wiring: &Wiring, warnings: &[Warning]) -> Vec<String> {
    warnings.iter().map(|warning| warning.in_words(wiring).to_string()).collect()
}

fn all_to_all(described: &Described) -> (Loads, Configuration) {
    let plan = plan(&described.wiring, &described.options).unwrap();
    let loads = loads(&described.wiring, &plan, Pattern::AllToAll);
    (loads, plan.configuration(&described.wiring))
}

#[test]
fn a_cable_that_carries_more_than_three_times_the_mean_is_warned_of() {
    // The middle cable carries k^2 pairs, each of the 2k others 2k - 1.
    for k in [2_u32, 5, 6, 7, 8, 10, 20] {
        let described = described(&two_stars(usize::try_from(k).unwrap())).unwrap();
        let (loads, configuration) = all_to_all(&described);
        let k = f64::from(k);
        let mean = (k * k + 2.0 * k * (2.0 * k - 1.0)) / (2.0 * k + 1.0);
        let found = warnings(&described.wiring, &loads);
        let report = check(&described.wiring, &configuration, &CheckOptions::INTACT);
        assert_eq!(report.verdict(), Verdict::Good);
        assert_eq!(report.warnings, found, "planner and checker see the same, k = {k}");
        match found.as_slice() {
            [] => assert!(k * k <= 3.0 * mean, "k = {k}"),
            [Warning::HotSpot { busiest, mean: told }] => {
                assert!(k * k > 3.0 * mean, "k = {k}");
                assert!((busiest.pairs_per_cable - k * k).abs() < 1e-9);
                assert!((told - mean).abs() < 1e-9);
            }
            other => panic!("k = {k}: {other:?}"),
        }
    }
}

#[test]
fn links_beside_each_other_that_are_no_bundle_are_told() {
    let text = "[fabric]\n\
                [[links]]\nbetween = [\"sw1\", \"sw2\"]\n\
                [[links]]\nbetween = [\"sw2\", \"sw1\"]\n\
                [[links]]\nbetween = [\"node[1-2]\", \"sw[1-2]\"]\n\
                [[hosts]]\nname = \"node[1-2]\"\naddress = \"10.0.0.[1-2]\"\n\
                [[switches]]\nname = \"sw[1-2]\"\naddress = \"10.0.1.[1-2]\"\n";
    let described = described(text).unwrap();
    let (loads, configuration) = all_to_all(&described);
    let report = check(&described.wiring, &configuration, &CheckOptions::INTACT);
    assert_eq!(report.verdict(), Verdict::Good);
    let told = words(&described.wiring, &warnings(&described.wiring, &loads));
    assert_eq!(told, words(&described.wiring, &report.warnings));
    insta::assert_snapshot!(told.join("\n"), @r"
    2 links join `sw1:sw2` and are not one bundle, so that each VLAN uses one of them; `cables = 2` in one `[[links]]` makes them a bundle
    no frame between hosts goes over `sw2:sw1`
    ");
}

/// Two PowerConnect switches joined by two cables, a host with two cables on each.
fn bundles(bundling: &str) -> Described {
    let links = "[[links]]\nbetween = [\"sw1\", \"sw2\"]\ncables = 2\n\
                 [[links]]\nbetween = [\"node[1-2]\", \"sw[1-2]\"]\ncables = 2\n\
                 [[hosts]]\nname = \"node[1-2]\"\naddress = \"10.0.0.[1-2]\"\n\
                 [[switches]]\nname = \"sw[1-2]\"\naddress = \"10.0.1.[1-2]\"\n";
    let fabric =
        format!("[fabric]\nmodel = \"powerconnect-6248\"\nbundling = \"{bundling}\"\n{links}");
    described(&fabric).unwrap()
}

/// What is found if these lines are typed at the first switch after the planned text.
fn with_lines(described: &Described, lines: &str) -> Report {
    let (_, mut configuration) = all_to_all(described);
    let switch = SwitchId::new(0);
    let text = dialect::render(powerconnect(), &described.wiring, &configuration, switch).unwrap();
    let text = format!("{text}\nconfigure\n{lines}\nexit\n");
    configuration.switches[0] =
        dialect::parse(powerconnect(), &described.wiring, switch, &text).unwrap();
    check(&described.wiring, &configuration, &CheckOptions::INTACT)
}

fn shut(port: &str) -> String {
    format!("interface ethernet 1/g{port}\nshutdown\nexit")
}

#[test]
fn the_protocol_of_a_host_s_bundle_is_compared() {
    let regroup = |mode: &str| {
        format!(
            "interface range ethernet 1/g1-1/g2\nno channel-group\nchannel-group 1 mode {mode}\nexit"
        )
    };
    let said = |bundling: &str, mode: &str| {
        let described = bundles(bundling);
        let report = with_lines(&described, &regroup(mode));
        let faults = report.faults.iter();
        faults.map(|fault| fault.in_words(&described.wiring).to_string()).collect::<Vec<_>>()
    };
    assert_eq!(said("lacp", "auto"), Vec::<String>::new());
    assert_eq!(said("static", "on"), Vec::<String>::new());
    insta::assert_snapshot!(said("lacp", "on").join("\n"), @"the bundle at port 1 of `sw1` is static, but host `node1` bundles its cables by LACP (`bundling` in `[fabric]`)");
    insta::assert_snapshot!(said("static", "auto").join("\n"), @"the bundle at port 1 of `sw1` is set to LACP, but host `node1` bundles its cables statically (`bundling` in `[fabric]`)");
}

#[test]
fn lacp_goes_on_without_a_cable_and_a_static_bundle_does_not() {
    for (port, lacp) in [
        ("2", "host `node1` uses 1 of its 2 cables: the others are shut at `sw1`"),
        ("47", "the bundle `sw1:sw2` uses 1 of its 2 cables: the others are shut"),
    ] {
        let described = bundles("lacp");
        let report = with_lines(&described, &shut(port));
        assert_eq!(report.verdict(), Verdict::Good, "{:?}", report.faults);
        assert_eq!(words(&described.wiring, &report.warnings), [lacp]);
        let statically = with_lines(&bundles("static"), &shut(port));
        assert_eq!(statically.verdict(), Verdict::Refused, "port {port}");
    }
    // Nothing is left of the host's bundle.
    let both = format!("{}\n{}", shut("1"), shut("2"));
    assert_eq!(with_lines(&bundles("lacp"), &both).verdict(), Verdict::Refused);
}

#[test]
fn an_ageing_time_and_vlans_that_switches_do_not_have_are_refused() {
    let fabric = |more: &str| {
        let text = format!(
            "[fabric]\ntopology = \"ring 3\"\nmodel = \"powerconnect-6248\"\n{more}\n\
             [[hosts]]\nname = \"node[1-3]\"\naddress = \"10.0.0.[1-3]\"\n\
             [[switches]]\nname = \"sw[1-3]\"\naddress = \"10.0.1.[1-3]\"\n"
        );
        let described = described(&text)?;
        plan(&described.wiring, &described.options).map_err(|error| error.to_string())
    };
    let refused = |more: &str| fabric(more).map(|plan| plan.working.len()).unwrap_err();
    insta::assert_snapshot!(refused("ageing = \"1s\""), @"`sw1` (powerconnect-6248) keeps addresses for 10s at least, and `ageing` asks for 1s");
    assert!(fabric("ageing = \"10s\"").is_ok());
    insta::assert_snapshot!(refused("vlans = \"1-5\""), @r#"line 5: fabric.vlans: `sw1` (powerconnect-6248) allows 2-4093, not 1; VLAN 1 is where every port is by default, and is kept off trunks; write "2-5""#);
    insta::assert_snapshot!(refused("vlans = \"4090-4094\""), @r#"line 5: fabric.vlans: `sw1` (powerconnect-6248) allows 2-4093, not 4094; write "4090-4093""#);
    assert!(fabric("vlans = \"2-5\"").is_ok());
}

#[test]
fn a_wrong_name_in_a_link_is_the_only_thing_told() {
    let text = "[fabric]\n\
                [[links]]\nbetween = [\"sw1\", \"switch2\"]\n\
                [[hosts]]\nname = \"node[1-2]\"\naddress = \"10.0.0.[1-2]\"\n\
                [[switches]]\nname = \"sw[1-2]\"\naddress = \"10.0.1.[1-2]\"\n";
    let told = described(text).unwrap_err();
    assert!(told.contains("`switch2`"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
}
