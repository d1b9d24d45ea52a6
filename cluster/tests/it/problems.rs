//! What wrong files are told.

use std::path::Path;

use meikyo_cluster::{LinkEnd, LoadError, PROBLEMS_MAX, load, parse};
use meikyo_units::{Nanos, WallTime};

fn problems(text: &str) -> String {
    match parse(text, Path::new("cluster.toml")) {
        Ok(_) => "no problem".into(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn all_problems_are_told_at_once_in_the_order_of_the_lines() {
    let text = r#"
nmae = "presto"
measure = ["interfce:eth0", "load"]
spares = []

[snmp]
version = "2"
intervall = "10ms"
timeout = "fast"
port = "161"
rate_max = 0

[[hosts]]
name = "node[1-3]"
address = "10.0.0.[1-4]"

[[host]]
name = "head"
"#;
    insta::assert_snapshot!(problems(text), @r#"
cluster.toml:2: nmae: unknown key (did you mean `name`?); allowed are `name`, `snmp`, `measure`, `hosts`, `switches`, `groups`, `alerts`, `default_alerts`, `recording`, `checkpoint`, `fabric`, `links`
cluster.toml:3: measure: `interfce:eth0` is not known (did you mean `interface:NAME`?); allowed are `interface:NAME`, `interfaces`, `disk:PATH`, `load`, `cpu`, `memory`, `uptime`, `sensors`, `sensor:NAME`, an OID such as `1.3.6.1.2.1.1.3.0`, or an object with its instance such as `ifHCInOctets.3`
cluster.toml:4: spares: unknown key; allowed are `name`, `snmp`, `measure`, `hosts`, `switches`, `groups`, `alerts`, `default_alerts`, `recording`, `checkpoint`, `fabric`, `links`
cluster.toml:7: snmp.version: "2" is not known (did you mean `2c`?); allowed are "1", "2c", "3"
cluster.toml:8: snmp.intervall: unknown key (did you mean `interval`?); allowed are `version`, `community`, `user`, `auth`, `privacy`, `port`, `interval`, `timeout`, `rate_max`, `write`
cluster.toml:9: snmp.timeout: `fast` does not begin with a number; write for example `100ms`
cluster.toml:10: snmp.port: expected a whole number from 1 to 65535, without quotes; found a text
cluster.toml:11: snmp.rate_max: 0 is out of range; allowed are 1 to 1000000
cluster.toml:15: hosts.address: 4 addresses for 3 names; as many are needed
cluster.toml:17: host: unknown key (did you mean `hosts`?); allowed are `name`, `snmp`, `measure`, `hosts`, `switches`, `groups`, `alerts`, `default_alerts`, `recording`, `checkpoint`, `fabric`, `links`
"#);
}

#[test]
fn a_mistyped_key_is_told_once_and_not_what_follows_from_it() {
    let text = r#"
name = "presto"
measure = ["load"]
snmp = { version = "2c", community = "env:X" }

[[hosts]]
name = "a"
address = "10.0.0.1"

[[switches]]
name = "b"
address = "10.0.0.2"
"#;
    assert_eq!(problems(text), "no problem");
    for (key, typo) in [
        ("name = \"presto\"", "nmae = \"presto\""),
        ("measure", "mesure"),
        ("snmp", "snpm"),
        ("community", "comunity"),
        ("version", "verison"),
        ("address", "adress"),
        ("name = \"a\"", "nam = \"a\""),
    ] {
        let told = problems(&text.replacen(key, typo, 1));
        let word = typo.split(' ').next().unwrap();
        assert!(told.contains(&format!("{word}: unknown key (did you mean")), "{typo}: {told}");
        assert_eq!(told.lines().count(), 1, "{typo}: {told}");
    }
    // What is really not there is missed in each section.
    let told = problems(&text.replace("measure = [\"load\"]", ""));
    assert_eq!(told.matches("measure: missing").count(), 2, "{told}");
}

#[test]
fn credentials_are_by_reference_and_fit_the_version() {
    let with = |snmp: &str| {
        problems(&format!(
            "name = \"x\"\nmeasure = [\"load\"]\nsnmp = {{ {snmp} }}\n[[hosts]]\nname = \"a\"\n\
             address = \"10.0.0.1\"\n"
        ))
    };
    insta::assert_snapshot!(with("version = \"2c\", community = \"public\""), @"cluster.toml:3: snmp.community: secrets stand in the file by reference only; allowed are `env:NAME` (an environment variable) and `file:PATH` (the first line of a file)");
    assert!(!with("version = \"2c\", community = \"hunter2\"").contains("hunter2"));
    insta::assert_snapshot!(with("community = \"env:C\""), @r#"cluster.toml:3: snmp.community: a community needs version = "2c" (or "1") beside it; without one the version is "3""#);
    insta::assert_snapshot!(with("version = \"2c\""), @r#"cluster.toml:3: snmp.community: missing; version "2c" needs it: give `community` as "env:NAME" or "file:PATH""#);
    insta::assert_snapshot!(with("version = \"3\""), @r#"cluster.toml:3: snmp.user: missing; version "3" needs it: give `user` with `auth` and `privacy`, or ask for version = "2c" with a `community`"#);
    insta::assert_snapshot!(with("user = \"u\", auth = { protocol = \"SHA256\" }"), @r#"
cluster.toml:3: snmp.auth.password: missing; `auth` has `protocol` and `password`
cluster.toml:3: snmp.auth.protocol: "SHA256" is not known (did you mean `SHA-256`?); allowed are "MD5", "SHA-1", "SHA-224", "SHA-256", "SHA-384", "SHA-512"
"#);
    insta::assert_snapshot!(with("user = \"u\", privacy = { protocol = \"AES-128\", password = \"env:P\" }"), @"cluster.toml:3: snmp.privacy: `privacy` needs `auth` beside it (RFC 3414)");
    insta::assert_snapshot!(with("version = \"2c\", community = \"env:C\", user = \"u\""), @r#"cluster.toml:3: snmp.user: `user` is for version "3"; here the version is "2c""#);
    insta::assert_snapshot!(with("user = \"u\", write = { community = \"env:C\" }"), @r#"cluster.toml:3: snmp.write.community: a community needs version = "2c" (or "1") beside it; without one the version is "3""#);
    insta::assert_snapshot!(with("user = \"u\", interval = \"0.5ms\""), @"cluster.toml:3: snmp.interval: 500us is out of range; allowed are 1ms to 1h");
}

#[test]
fn devices_are_unique_and_groups_known() {
    let text = r#"
name = "x"
measure = ["load", "load every 1s", "disk:/ every 150ms"]
snmp = { version = "2c", community = "env:C" }

[groups.rack1]
members = "node[1-2],nod3"

[groups.rack2]
members = "node2"

[[hosts]]
name = "node[1-2]"
address = "10.0.0.[1-2]"

[[hosts]]
name = ["node2", "bad name"]
address = ["10.0.0.1", "node2.example"]

[[switches]]
name = "sw1"
address = "10.0.1.1"
group = "rakc1"

[[switches]]
address = 7
"#;
    insta::assert_snapshot!(problems(text), @r#"
cluster.toml:3: measure: `disk:/ every 150ms`: 150ms is not a multiple of the device's interval of 100ms
cluster.toml:3: measure: `load every 1s` and `load` (line 3) measure the same
cluster.toml:7: groups.rack1.members: no host or switch is named `nod3`
cluster.toml:10: groups.rack2.members: `node2` is a member of `rack1` already (line 7)
cluster.toml:17: hosts.name: `bad name` is not a name; allowed are at most 255 letters, digits, `-`, `_` and `.`
cluster.toml:17: hosts.name: `node2` is named already in line 13
cluster.toml:18: hosts.address: `node2.example` is not an IP address; allowed are `10.0.0.7`, `10.0.0.7:1610`, `fd00::7`, `[fd00::7]:1610`, with ranges such as `10.0.0.[1-225]`
cluster.toml:18: hosts.address: `node2` has the address 10.0.0.1:161 of a device in line 14, and the same credentials; devices behind one address differ in `community` or `user`
cluster.toml:23: switches.group: no section `[groups.rakc1]` (did you mean `rack1`?)
cluster.toml:25: switches.name: missing; every entry has `name` and `address`
cluster.toml:26: switches.address: expected a text in quotes such as "node[001-225]", or a list of them; found a whole number
"#);
}

#[test]
fn a_range_that_is_wrong_is_one_problem_with_a_count() {
    let with = |entries: &str| {
        problems(&format!(
            "name = \"x\"\nmeasure = [\"load\"]\nsnmp = {{ version = \"2c\", community = \
             \"env:C\" }}\n[[hosts]]\n{entries}"
        ))
    };
    insta::assert_snapshot!(with("name = \"n[1-101]\"\naddress = \"10.0.0.[200-300]\"\n"), @"cluster.toml:6: hosts.address: `10.0.0.256` is not an IP address; allowed are `10.0.0.7`, `10.0.0.7:1610`, `fd00::7`, `[fd00::7]:1610`, with ranges such as `10.0.0.[1-225]`; and 44 more like it, the last `10.0.0.300`");
    let twice = "name = \"n[1-9]\"\naddress = \"10.0.0.[1-9]\"\n";
    insta::assert_snapshot!(with(&format!("{twice}[[hosts]]\n{twice}")), @"
cluster.toml:8: hosts.name: `n1` is named already in line 5; and 8 more like it, the last `n9`
cluster.toml:9: hosts.address: `n1` has the address 10.0.0.1:161 of a device in line 6, and the same credentials; devices behind one address differ in `community` or `user`; and 8 more like it, the last `n9`
");
    insta::assert_snapshot!(with("name = \"n ode[1-3]\"\naddress = \"10.0.0.[1-3]\"\n[groups.a]\nmembers = \"x[1-7]\"\n"), @"
cluster.toml:5: hosts.name: `n ode1` is not a name; allowed are at most 255 letters, digits, `-`, `_` and `.`; and 2 more like it, the last `n ode3`
cluster.toml:8: groups.a.members: no host or switch is named `x1`; and 6 more like it, the last `x7`
");
}

#[test]
fn addresses_that_no_agent_has_are_refused() {
    let with = |address: &str| {
        problems(&format!(
            "name = \"x\"\nmeasure = [\"load\"]\nsnmp = {{ version = \"2c\", community = \
             \"env:C\" }}\n[[hosts]]\nname = \"a\"\naddress = \"{address}\"\n"
        ))
    };
    insta::assert_snapshot!(with("0.0.0.0"), @"cluster.toml:6: hosts.address: `0.0.0.0` is the unspecified address; write the one that the agent listens on");
    insta::assert_snapshot!(with("224.0.0.1:1610"), @"cluster.toml:6: hosts.address: `224.0.0.1` is a multicast address; an agent is asked alone, so write its own address");
    insta::assert_snapshot!(with("255.255.255.255"), @"cluster.toml:6: hosts.address: `255.255.255.255` is the broadcast address; an agent is asked alone, so write its own address");
    for (address, word) in [
        ("::", "unspecified"),
        ("[ff02::1]:161", "multicast"),
        ("239.255.255.255", "multicast"),
        ("::ffff:0.0.0.0", "unspecified"),
        ("::ffff:224.0.0.1", "multicast"),
    ] {
        assert!(with(address).contains(word), "{address}: {}", with(address));
    }
    for address in ["10.0.0.255", "127.0.0.1", "223.255.255.255", "240.0.0.1", "fe80::1", "::1"] {
        assert_eq!(with(address), "no problem", "{address}");
    }
}

#[test]
fn a_rate_cap_below_what_is_measured_is_refused() {
    let with = |measure: &str, snmp: &str| {
        problems(&format!(
            "name = \"x\"\nmeasure = [\"{measure}\"]\nsnmp = {{ version = \"2c\", community \
             = \"env:C\", {snmp} }}\n[[hosts]]\nname = \"a\"\naddress = \"10.0.0.1\"\n"
        ))
    };
    insta::assert_snapshot!(with("load", "rate_max = 5"), @"cluster.toml:3: snmp.rate_max: 5 requests a second are fewer than one every 100ms, as is wanted; allowed is at least 10, or a longer interval");
    insta::assert_snapshot!(with("load every 10ms", "rate_max = 99, interval = \"10ms\""), @"cluster.toml:3: snmp.rate_max: 99 requests a second are fewer than one every 10ms, as is wanted; allowed is at least 100, or a longer interval");
    for (measure, snmp) in [
        ("load", "rate_max = 10"),
        ("load every 1s", "rate_max = 1"),
        ("load", "rate_max = 1, interval = \"1h\""),
        ("load", "interval = \"1ms\""),
    ] {
        assert_eq!(with(measure, snmp), "no problem", "{measure} {snmp}");
    }
}

#[test]
fn devices_behind_one_address_differ_in_community_or_user() {
    let text = |first: &str, second: &str| {
        problems(&format!(
            "name = \"x\"\nmeasure = [\"load\"]\n\
             [[hosts]]\nname = \"a\"\naddress = \"10.0.0.1\"\nsnmp = {{ {first} }}\n\
             [[hosts]]\nname = \"b\"\naddress = \"10.0.0.1\"\nsnmp = {{ {second} }}\n"
        ))
    };
    let (one, two) =
        ("version = \"2c\", community = \"env:A\"", "version = \"2c\", community = \"env:B\"");
    assert_eq!(text(one, two), "no problem");
    assert_eq!(text(one, "user = \"u\""), "no problem");
    assert_eq!(text("user = \"v\"", "user = \"u\""), "no problem");
    assert!(text(one, one).contains("of a device in line 5, and the same credentials"));
    assert!(text(one, "version = \"1\", community = \"env:A\"").contains("in line 5"));
    assert!(text("user = \"u\"", "user = \"u\"").contains("in line 5"));
}

#[test]
fn text_that_is_not_toml_is_told_by_line() {
    insta::assert_snapshot!(problems("name = \"x\n[[hosts]\nname = node1\n"), @r#"
cluster.toml:1: not valid TOML: invalid basic string, expected `"`
cluster.toml:2: not valid TOML: unclosed array table, expected `]`
cluster.toml:3: not valid TOML: duplicate key
"#);
    insta::assert_snapshot!(problems(""), @r#"
cluster.toml:1: hosts: missing; a cluster has at least one `[[hosts]]` or `[[switches]]` with `name` and `address`
cluster.toml:1: name: missing; give the cluster a name, for example name = "presto"
"#);
    insta::assert_snapshot!(problems("name = 1\nhosts = 3\n"), @r#"
cluster.toml:1: name: expected a text in quotes; found a whole number
cluster.toml:2: hosts: expected sections, each under its own `[[hosts]]`; found a whole number
"#);
}

#[test]
fn no_text_of_the_file_makes_a_line_of_its_own() {
    let text = "name = \"a\\nb\"\nmeasure = [\"load\\n\"]\n\"k\\ny\" = 1\n[groups.\"g\\n\"]\n\
                [[hosts]]\nname = \"a\\u001b[0m\"\naddress = \"10.0.0.1\"\ngroup = \"x\\ty\"\n\
                snmp = { version = \"2c\", community = \"file:a\\nrwcommunity x\" }\n";
    let Err(error) = parse(text, Path::new("cluster.toml")) else { panic!("six problems") };
    let lines: Vec<_> = error.problems().iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [1, 2, 3, 4, 6, 8, 9].map(Some), "{error}");
    assert_eq!(error.to_string().lines().count(), 7, "{error}");
    assert!(!error.to_string().contains('\u{1b}'));
}

#[test]
fn the_list_of_problems_is_bounded() {
    let keys: String = (0..5_000).map(|key| format!("k{key} = 1\n")).collect();
    let Err(error) = parse(&keys, Path::new("cluster.toml")) else { panic!("5,000 problems") };
    assert_eq!(error.problems().len(), PROBLEMS_MAX);
    assert!(error.to_string().ends_with("and 4952 more"), "{error}");
}

#[test]
fn a_missing_file_is_told_with_its_path() {
    let error = load(Path::new("no-such-directory/cluster.toml")).unwrap_err();
    assert!(matches!(error, LoadError::Read { .. }));
    assert_eq!(error.to_string(), "cannot read the cluster file `no-such-directory/cluster.toml`");
}

#[test]
fn files_made_to_stall_or_to_break_the_parser_are_told_soon() {
    let deep = format!("name = {}", "[".repeat(200_000));
    let dotted = format!("{} = 1", vec!["a"; 50_000].join("."));
    let strangers = "name = \"x\"\n[groups.a]\nmembers = \"r[0-99999]\"\n[[hosts]]\n\
                     name = \"n[0-65535]\"\naddress = \"10.0.0.1\"\n"
        .to_owned();
    let bomb = "name = \"x\"\n[[hosts]]\nname = \"n[0-99999999999999999]\"\n".to_owned();
    let entry = "[[hosts]]\nname = \"a b\"\nsnmp = { itnerval = 1 }\n";
    let entries = entry.repeat(20_000);
    let started = WallTime::now();
    for text in [deep, dotted, strangers, bomb, entries] {
        let told = problems(&text);
        assert!(told.len() < 50_000 && told != "no problem", "{told}");
    }
    let took = WallTime::now().since(started);
    assert!(took < Nanos::from_secs(20), "{took}");
}

/// Every mistake that a rule can hold, one a rule.
const WRONG_RULES: &str = r#"
name = "x"
measure = ["interface:eth0(in_octets)", "load"]
snmp = { version = "2c", community = "env:C", interval = "1s" }
hosts = [{ name = "node[1-2]", address = "10.0.0.[1-2]" }]

[[alerts]]
name = "no condition"
value = "load(load_1min)"

[[alerts]]
name = "a"
value = "load(load_2min)"
above = 1

[[alerts]]
name = "b"
value = "load"
above = 1

[[alerts]]
name = "c"
value = "interface:eth*(in_octets)"
above = 900

[[alerts]]
name = "d"
value = "interface:eth*(in_octets)"
above = "900Mbit/s"
clear = "950Mbit/s"

[[alerts]]
name = "e"
value = "interface:eth*(in_octets)"
below = "900Mbit/s"
clear = "100MB/s"

[[alerts]]
name = "f"
value = "interface:eth*(out_octets)"
above = "1Gbit/s"
devices = ["node1", "nodes*"]

[[alerts]]
name = "f"
silent = "1.5s"
frozen = true

[[alerts]]
name = "g"
silent = "1.5s"
for = "1s"
value = "load"

[[alerts]]
name = "h"
frozen = "yes"

[[alerts]]
name = "i"
value = "uptime"
above = true

[[alerts]]
name = "j"
value = "interface:eth*(in_octets,in_errors)"
above = 1
clear = 1
fro = "1s"
"#;

#[test]
fn rules_of_alerts_are_told_what_is_allowed() {
    insta::assert_snapshot!(problems(WRONG_RULES), @r#"
cluster.toml:7: alerts.above: missing; a rule has exactly one of `above`, `below`, `silent` and `frozen`
cluster.toml:8: alerts.name: `no condition` is not a name; allowed are at most 64 letters, digits, `-`, `_` and `.`
cluster.toml:13: alerts.value: `load` has no column `load_2min`; allowed are `load_1min`, `load_5min`, `load_15min`
cluster.toml:18: alerts.value: `load` has several values; say which in parentheses: `load_1min`, `load_5min`, `load_15min`
cluster.toml:24: alerts.above: `900` has no unit that fits; octets are compared as rates: allowed are `bit/s`, `kbit/s`, `Mbit/s`, `Gbit/s`, `Tbit/s`, `B/s`, `kB/s`, `MB/s`, `GB/s`, `TB/s`, `KiB/s`, `MiB/s`, `GiB/s`, `TiB/s`, for example `900Mbit/s`
cluster.toml:30: alerts.clear: `950Mbit/s` lies above the level of `900Mbit/s`; allowed is at most that
cluster.toml:36: alerts.clear: `100MB/s` is of another unit than `below`, `900Mbit/s`
cluster.toml:40: alerts.value: `interface:eth*(out_octets)` is measured on none of the rule's devices
cluster.toml:42: alerts.devices: no host or switch is named `nodes*`
cluster.toml:45: alerts.name: `f` is the name of a rule in line 39 already
cluster.toml:47: alerts.frozen: `silent` is there already; a rule has exactly one of `above`, `below`, `silent` and `frozen`
cluster.toml:51: alerts.silent: 1500ms is too short for `node1`, which is asked every 1s; allowed is at least twice that
cluster.toml:52: alerts.for: `for` is for rules with `above` or `below`
cluster.toml:53: alerts.value: a device is silent as a whole; leave it out
cluster.toml:57: alerts.frozen: expected true or false; found a text
cluster.toml:61: alerts.value: `uptime` has no value to look at; a rule with `silent` watches whether a device answers
cluster.toml:66: alerts.value: `in_octets` and `in_errors` have different units; write a rule for each
cluster.toml:69: alerts.fro: unknown key (did you mean `for`?); allowed are `name`, `value`, `above`, `below`, `clear`, `for`, `silent`, `frozen`, `devices`
"#);
}

#[test]
fn a_fabric_that_is_wrong_is_told_with_its_place() {
    let text = r#"
name = "presto"
measure = ["load"]
snmp = { version = "2c", community = "env:C" }

[fabric]
topology = "ring 4"
routing = "shortest"
management_vlan = 1
manager = "node4"
rate = "0bit/s"
models.big = { ports = 0, colour = "red" }

[[hosts]]
name = "node[1-3]"
address = "10.0.0.[1-3]"
mac = "02:00:00:00:00:[01-02]"

[[hosts]]
name = "node[8-9]"
address = "10.0.0.[8-9]"
mac = ["02:00:00:00:00:07", "02:00:00:00:00:07"]

[[switches]]
name = "sw[1-2]"
address = "10.0.1.[1-2]"

[[links]]
between = ["node[1-3]", "sw1:[1-2]"]

[[links]]
between = ["sw1:1", "sw3:1"]

[[links]]
between = ["node1", "node2"]

[[links]]
between = ["sw1:4", "sw2:4"]
cables = 2

[[links]]
between = ["node1:1", "sw1:x"]
"#;
    insta::assert_snapshot!(problems(text), @r#"
cluster.toml:8: fabric.routing: "shortest" is not known; allowed are "auto", "dimension-order", "minimal", "up-down", "acyclic"
cluster.toml:9: fabric.management_vlan: 1 is out of range; allowed are 2 to 4094
cluster.toml:10: fabric.manager: no host is named `node4` (did you mean `node1`?)
cluster.toml:11: fabric.rate: a link has a rate above 0
cluster.toml:12: fabric.models.big.colour: unknown key; allowed are `like`, `ports`, `table_entries`, `vlans`, `bundle_ports`, `multi_untagged`, `shared_learning`, `ageing_min`, `ageing_max`, `vlan_1_stays`
cluster.toml:12: fabric.models.big.ports: 0 is out of range; allowed are 1 to 4096
cluster.toml:17: hosts.mac: 2 addresses for 3 names; as many are needed
cluster.toml:22: hosts.mac: `02:00:00:00:00:07` is the address of a host in line 22 already
cluster.toml:29: links.between: 3 ends for 2; as many are needed, or one
cluster.toml:32: links.between: no host or switch is named `sw3` (did you mean `sw1`?)
cluster.toml:35: links.between: `node1` and `node2` are both hosts
cluster.toml:38: links.between: `sw1` names 1 of 2 ports; write `cables` and one port for each, as `sw1:45+46`
cluster.toml:42: links.between: `sw1:x` names no ports; allowed are `sw1:45` or `sw1:45+46`
"#);
}

#[test]
fn links_are_unfolded_on_both_sides() {
    let text = r#"
name = "presto"
measure = ["load"]
snmp = { version = "2c", community = "env:C" }
fabric = {}
hosts = [{ name = "node[1-3]", address = "10.0.0.[1-3]", mac = "02:00:00:00:00:0[1-3]" }]
switches = [{ name = "sw[1-2]", address = "10.0.1.[1-2]", model = "m" }]
links = [
  { between = ["node[1-3]", "sw1:[5-7]"] },
  { between = ["sw1:1+2", "sw2"], cables = 2 },
]
"#;
    let cluster = parse(text, Path::new("cluster.toml")).unwrap();
    let shown = |end: &LinkEnd| format!("{}:{:?}", end.device, end.ports);
    let links = cluster.fabric.unwrap().links;
    let links: Vec<_> = links
        .iter()
        .map(|link| format!("{} {}", shown(&link.ends[0]), shown(&link.ends[1])))
        .collect();
    assert_eq!(
        links,
        ["node1:[] sw1:[5]", "node2:[] sw1:[6]", "node3:[] sw1:[7]", "sw1:[1, 2] sw2:[]"]
    );
    assert_eq!(cluster.devices[2].mac.unwrap().to_string(), "02:00:00:00:00:03");
    assert_eq!(cluster.devices[3].model.as_deref(), Some("m"));
}

#[test]
fn how_long_a_table_is_kept_is_checked_where_it_stands() {
    let text = "name = \"presto\"\nmeasure = [\"load\"]\n\
        snmp = { version = \"2c\", community = \"env:COMMUNITY\" }\n\
        [[hosts]]\nname = \"a\"\naddress = \"10.0.0.1\"\n\
        [recording.tables.load]\nkeep = \"5min\"\n\
        [recording.tables.cpu]\n\
        [recording.tables.disk]\nkep = \"7d\"\n";
    insta::assert_snapshot!(problems(text), @r#"
cluster.toml:8: recording.tables.load.keep: 5min is too short; at least 1h
cluster.toml:9: recording.tables.cpu.keep: missing; say how long the table is kept, for example keep = "7d"
cluster.toml:11: recording.tables.disk.kep: unknown key (did you mean `keep`?); allowed are `keep`
"#);
}

#[test]
fn spares_are_hosts_of_the_file_each_named_once() {
    let text = |section: &str| {
        format!(
            "name = \"presto\"\nmeasure = [\"load\"]\nsnmp = {{ version = \"2c\", community = \"env:X\" }}\n\
             [[hosts]]\nname = \"node[1-8]\"\naddress = \"10.0.0.[1-8]\"\n\
             [[switches]]\nname = \"sw1\"\naddress = \"10.0.1.1\"\n\
             [checkpoint]\n{section}\n"
        )
    };
    let good = text("spares = [\"node8\", \"node[6-7]\"]\nnetwork = \"10.9.8.0/24\"");
    let cluster = parse(&good, Path::new("cluster.toml")).unwrap();
    assert_eq!(cluster.checkpoint.spares, ["node8", "node6", "node7"]);
    assert_eq!(cluster.checkpoint.network.to_string(), "10.9.8.0/24");
    let told = problems(&text(
        "spares = [\"nod8\", \"sw1\", \"node7\", \"node[7-8]\"]\nnetwork = \"10.9.8.0/16\"\nspare = 1",
    ));
    insta::assert_snapshot!(told, @r#"
cluster.toml:11: checkpoint.spares: `node7` is named twice; spares are used in their order
cluster.toml:11: checkpoint.spares: no host is named `nod8` (did you mean `node8`?); and 1 more like it, the last `sw1`
cluster.toml:12: checkpoint.network: `10.9.8.0/16` is no network of 256 addresses; write for example `10.77.0.0/24`
cluster.toml:13: checkpoint.spare: unknown key (did you mean `spares`?); allowed are `spares`, `network`
"#);
}
