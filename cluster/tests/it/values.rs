//! What right files say.

use std::path::Path;

use meikyo_cluster::{
    Access, AuthProtocol, Cluster, Condition, DeviceKind, Origin, PrivProtocol, Secret, What,
    parse, parse_resolved,
};
use meikyo_units::Nanos;

fn read(text: &str) -> Cluster {
    parse(text, Path::new("etc/cluster.toml")).unwrap_or_else(|error| panic!("{error}"))
}

const MINIMAL: &str = r#"name = "presto"
measure = ["interfaces", "load"]
snmp = { version = "2c", community = "env:COMMUNITY" }

[[hosts]]
name = "node[001-225]"
address = "10.0.0.[1-225]"
"#;

#[test]
fn eight_lines_describe_a_cluster() {
    assert!(MINIMAL.lines().count() <= 8);
    let cluster = read(MINIMAL);
    assert_eq!(cluster.name, "presto");
    assert_eq!(cluster.base(), Path::new("etc"));
    assert_eq!(cluster.keep, None);
    assert_eq!(cluster.devices.len(), 225);
    let device = &cluster.devices[9];
    assert_eq!(device.name, "node010");
    assert_eq!(device.kind, DeviceKind::Host);
    assert_eq!(device.address.to_string(), "10.0.0.10:161");
    assert_eq!(device.snmp.interval, Nanos::from_millis(100));
    assert_eq!(device.snmp.timeout, Nanos::SECOND);
    assert_eq!(device.snmp.rate_max, 1_000);
    assert_eq!(device.snmp.write_access, None);
    let community = Secret::Env("COMMUNITY".into());
    assert_eq!(device.snmp.access, Access::V2c { community });
    assert_eq!(device.place.line, 5);
    let what: Vec<_> = device.measure.iter().map(|measure| &measure.what).collect();
    assert_eq!(what, [&What::Interfaces, &What::Load]);
}

const LAYERED: &str = r#"
name = "two-racks"
measure = ["load"]

[snmp]
user = "meikyo"
auth = { protocol = "SHA-256", password = "file:secrets/auth" }
privacy = { protocol = "AES-128", password = "file:secrets/privacy" }
interval = "200ms"
write = { user = "meikyo-write" }

[recording]
keep = "30d"

[groups.rack1]
members = ["node[1-2]", "sw1"]
snmp = { interval = "1s" }
measure = ["cpu"]

[[hosts]]
name = "node[1-3]"
address = ["10.0.0.[1-2]", "[fd00::3]:1610"]

[[switches]]
name = "sw1"
address = "10.0.1.1"
snmp = { version = "2c", community = "env:SWITCH", timeout = "2s", rate_max = 50, port = 1161 }
measure = ["interfaces(in_octets,out_octets)", "ifHCInOctets.3 every 10s"]
"#;

#[test]
fn tables_of_the_recording_are_kept_for_their_own_time() {
    let text = format!(
        "{MINIMAL}\n[recording]\nkeep = \"30d\"\n[recording.tables.interfaces]\nkeep = \"7d\"\n\
         [recording.tables.\"interfaces.summary\"]\nkeep = \"365d\"\n"
    );
    let cluster = read(&text);
    let days = |days: u64| Nanos::from_secs(days * 86_400);
    let found: Vec<_> =
        cluster.keep_tables.iter().map(|of| (&*of.table, of.keep, of.place.line)).collect();
    let expected = [("interfaces", days(7), 12), ("interfaces.summary", days(365), 14)];
    assert_eq!((cluster.keep, &found[..]), (Some(days(30)), &expected[..]));
    assert_eq!(read(MINIMAL).keep_tables, []);
}

#[test]
fn the_nearer_section_wins() {
    let cluster = read(LAYERED);
    let [node1, _, node3, switch] = &cluster.devices[..] else { panic!("four devices") };
    assert_eq!(cluster.keep, Some("30d".parse().unwrap()));
    let v3 = Access::V3 {
        user: "meikyo".into(),
        auth: Some((AuthProtocol::Sha256, Secret::File("secrets/auth".into()))),
        privacy: Some((PrivProtocol::Aes128, Secret::File("secrets/privacy".into()))),
    };
    assert_eq!(node1.snmp.access, v3);
    assert_eq!(node3.snmp.access, v3);
    let write = Access::V3 { user: "meikyo-write".into(), auth: None, privacy: None };
    assert_eq!(node1.snmp.write_access, Some(write));
    assert_eq!(
        (node1.group.as_deref(), node1.snmp.interval, &node1.measure[0].what),
        (Some("rack1"), Nanos::SECOND, &What::Cpu)
    );
    assert_eq!(
        (node3.group.as_deref(), node3.snmp.interval, &node3.measure[0].what),
        (None, Nanos::from_millis(200), &What::Load)
    );
    assert_eq!(node3.address.to_string(), "[fd00::3]:1610");
    assert_eq!(switch.kind, DeviceKind::Switch);
    assert_eq!(switch.address.to_string(), "10.0.1.1:1161");
    assert_eq!(switch.group.as_deref(), Some("rack1"));
    assert_eq!(switch.snmp.access, Access::V2c { community: Secret::Env("SWITCH".into()) });
    assert_eq!((switch.snmp.timeout, switch.snmp.rate_max), (Nanos::from_secs(2), 50));
    assert_eq!(switch.measure[0].columns, ["in_octets", "out_octets"]);
    assert_eq!(switch.measure[1].every, Some(Nanos::from_secs(10)));
    assert_eq!(switch.measure[1].place.line, 28);
}

#[test]
fn every_setting_has_its_origin() {
    let resolved = parse_resolved(LAYERED, Path::new("cluster.toml")).unwrap();
    let (node1, switch) = (resolved.origins[0], resolved.origins[3]);
    assert_eq!(node1.version, Origin::Default);
    assert_eq!(node1.credentials, Origin::Line(6));
    assert_eq!(node1.interval, Origin::Line(17));
    assert_eq!(node1.timeout, Origin::Default);
    assert_eq!(node1.measure, Origin::Line(18));
    assert_eq!(node1.group, Origin::Line(16));
    assert_eq!(switch.port, Origin::Line(27));
    assert_eq!(switch.interval, Origin::Line(17));
    assert_eq!(resolved.keep_origin, Origin::Line(13));
}

#[test]
fn ports_and_ipv6_addresses_fold_too() {
    let text = r#"
        name = "loopback"
        measure = ["uptime"]
        snmp = { version = "1", community = "file:community" }
        [[hosts]]
        name = "a[1-2],b[1-3],c"
        address = "127.0.0.1:[1611-1612],[fd00::[1-2]]:162,fd00::9,[::1]"
    "#;
    let addresses: Vec<_> =
        read(text).devices.iter().map(|device| device.address.to_string()).collect();
    assert_eq!(
        addresses,
        [
            "127.0.0.1:1611",
            "127.0.0.1:1612",
            "[fd00::1]:162",
            "[fd00::2]:162",
            "[fd00::9]:161",
            "[::1]:161"
        ]
    );
}

#[test]
fn sixty_five_thousand_devices_are_read() {
    let text = MINIMAL
        .replace("node[001-225]", "r[0-255]n[0-255]")
        .replace("10.0.0.[1-225]", "10.0.[0-255].[0-255]");
    let cluster = read(&text);
    assert_eq!(cluster.devices.len(), 65_536);
    assert_eq!(cluster.devices[65_535].name, "r255n255");
    assert_eq!(cluster.devices[65_535].address.to_string(), "10.0.255.255:161");
}

#[test]
fn a_question_mark_in_a_rule_stands_for_one_letter() {
    let text = r#"
        name = "x"
        measure = ["interface:eth0", "interface:ib0", "ifHCInOctets.3"]
        snmp = { version = "2c", community = "env:C" }
        hosts = [{ name = "node[1-20]", address = "10.0.0.[1-20]" }]

        [[alerts]]
        name = "busy"
        value = "interface:eth?(in_octets)"
        above = "900Mbit/s"
        devices = ["node?", "node1[1-2]"]

        [[alerts]]
        name = "object"
        value = "ifHCInOctets.?"
        below = 10
    "#;
    let cluster = read(text);
    let [busy, object] = &cluster.alerts[..] else { panic!("two rules") };
    let names = cluster.devices.iter().map(|device| device.name.as_str());
    let its: Vec<_> = names.filter(|name| busy.is_for(name)).collect();
    let expected = "node1 node2 node3 node4 node5 node6 node7 node8 node9 node11 node12";
    assert_eq!(its.join(" "), expected);
    let Condition::Threshold(level) = &object.condition else { panic!("a level") };
    assert_eq!(level.watched.what, What::Object("ifHCInOctets.?".to_owned()));
}

#[test]
fn rules_of_alerts_hold_levels_in_one_unit() {
    let text = r#"
        name = "x"
        measure = ["interfaces", "load", "disk:/", "ifHCInOctets.3"]
        snmp = { version = "2c", community = "env:C" }
        hosts = [{ name = "node[1-20]", address = "10.0.0.[1-20]" }]
        switches = [{ name = "sw-r1", address = "10.0.1.1" }]

        [[alerts]]
        name = "busy"
        value = "interface:eth*(in_octets, out_octets)"
        above = "900Mbit/s"
        for = "1s"
        devices = ["node[1-2]", "sw*"]

        [[alerts]]
        name = "full"
        value = "disk:/*(available_bytes)"
        below = "5GiB"
        clear = "6GiB"

        [[alerts]]
        name = "loaded"
        value = "load(load_1min)"
        above = 0.5

        [[alerts]]
        name = "object"
        value = "ifHCInOctets.*"
        below = 10

        [[alerts]]
        name = "down"
        value = "interface:eth*(oper_status)"
        above = 1

        [[alerts]]
        name = "slow"
        value = "interfaces(speed_mbps)"
        below = 1000

        [[alerts]]
        name = "errors"
        value = "interfaces(in_errors)"
        above = 10

        [[alerts]]
        name = "silent"
        silent = "5s"

        [[alerts]]
        name = "frozen"
        frozen = true
    "#;
    let cluster = read(text);
    let said: Vec<_> =
        cluster.alerts.iter().map(|rule| format!("{}: {}", rule.name, rule.condition)).collect();
    insta::assert_snapshot!(said.join("\n"), @r"
busy: interface:eth*(in_octets, out_octets) above 900Mbit/s, cleared at 810 Mbit/s, for 1s
full: disk:/*(available_bytes) below 5GiB, cleared at 6GiB
loaded: load(load_1min) above 0.5, cleared at 0.45
object: ifHCInOctets.* below 10, cleared at 11, or at 10 if it does not count
down: interface:eth*(oper_status) above 1, cleared at 1
slow: interfaces(speed_mbps) below 1000, cleared at 1000
errors: interfaces(in_errors) above 10, cleared at 9
silent: no answer for more than 5s
frozen: interfaces or CPU time frozen
");
    let for_device = |rule: usize, name: &str| cluster.alerts[rule].is_for(name);
    assert!(for_device(0, "node2") && for_device(0, "sw-r1") && !for_device(0, "node3"));
    assert!(for_device(1, "node3"));
    let Condition::Threshold(full) = &cluster.alerts[1].condition else { panic!() };
    assert_eq!(full.raise.thousandths(), 5 * (1 << 30) * 1_000);
}

#[test]
fn four_rules_hold_unwritten_unless_the_file_says_no() {
    let text = |more: &str| {
        format!(
            "name = \"x\"\n{more}\nmeasure = [\"interfaces\", \"disk:/\"]\n\
             snmp = {{ version = \"2c\", community = \"env:C\" }}\n\
             hosts = [{{ name = \"n\", address = \"10.0.0.1\" }}]\n"
        )
    };
    let names = |cluster: &Cluster| -> Vec<String> {
        cluster.rules().iter().map(|rule| format!("{} {}", rule.name, rule.is_default())).collect()
    };
    let plain = read(&text(""));
    let unwritten =
        ["silent true", "frozen true", "disk-nearly-full true", "interface-errors true"];
    assert_eq!(names(&plain), unwritten);
    assert_eq!(plain.alerts, []);
    let conditions: Vec<_> = plain.rules().iter().map(|rule| rule.condition.to_string()).collect();
    assert_eq!(
        conditions,
        [
            "no answer for more than 30s",
            "interfaces or CPU time frozen",
            "disk:/*(used_bytes) above 90%, cleared at 88%, for 10s",
            "interface:*(in_errors,out_errors) above 1, cleared at 0.5, for 10s",
        ]
    );
    let off = read(&text("default_alerts = false"));
    assert_eq!(names(&off), [""; 0]);
    let own = format!("{}\n[[alerts]]\nname = \"silent\"\nsilent = \"5s\"\n", text(""));
    let own = read(&own);
    let expected =
        ["silent false", "frozen true", "disk-nearly-full true", "interface-errors true"];
    assert_eq!(names(&own), expected);
    // Taking them away is a change that a running measurement takes over.
    assert!(meikyo_cluster::diff(&plain, &off).alerts_changed);
    assert!(!meikyo_cluster::diff(&plain, &read(&text("default_alerts = true"))).alerts_changed);
}

#[test]
fn a_share_of_a_disk_needs_its_size() {
    let file = |measured: &str| {
        format!(
            "name = \"one\"\nmeasure = [\"{measured}\"]\n[snmp]\nversion = \"2c\"\n\
             community = \"env:MEIKYO_TEST_COMMUNITY\"\n[[hosts]]\nname = \"a\"\n\
             address = \"127.0.0.1\"\n[[alerts]]\nname = \"full\"\n\
             value = \"disk:/*(used_bytes)\"\nabove = \"90%\"\n"
        )
    };
    let read = |text: &str| parse(text, Path::new("cluster.toml"));
    read(&file("disk:/")).unwrap();
    assert!(read(&file("disk:/(total_bytes,used_bytes)")).is_ok());
    let error = read(&file("disk:/(used_bytes)")).unwrap_err().to_string();
    assert!(error.contains("`total_bytes`"), "{error}");
    let memory = file("memory").replace("disk:/*(used_bytes)", "memory(available_bytes)");
    assert!(read(&memory).is_err(), "only disks have shares");
}
