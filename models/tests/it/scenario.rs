//! Scenario files: what they say, and what is said of those that are wrong.

use meikyo_models::scenario::{Origin, Scenario, model_names};
use meikyo_sim::{LpId, Options, Scheduler, Unobserved};

fn problems(text: &str) -> String {
    match Scenario::parse(text, "file.toml") {
        Ok(scenario) => panic!("{scenario:?} is a scenario"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_problem_of_a_file_is_told_with_its_place() {
    insta::assert_snapshot!(problems(
        r#"model = "metadata"
servers = 0
clients = "88"
net_startup = 32
client_bandwidth = "125 megs"
packet_size = "1500"
switches = "magic"
payload_size = "0B"
read_latency = "0.5ns"
"#
    ), @r#"
    file.toml:2: servers: expected a whole number from 1 to 65535; found 0
    file.toml:3: clients: expected a whole number from 1 to 2147483648; found a text
    file.toml:4: net_startup: expected a span of time in quotes such as "32us"; found a whole number
    file.toml:5: client_bandwidth: `125 megs` has no known unit; allowed are `bit/s`, `kbit/s`, `Mbit/s`, `Gbit/s`, `Tbit/s`, `B/s`, `kB/s`, `MB/s`, `GB/s`, `KiB/s`, `MiB/s`, `GiB/s`
    file.toml:6: packet_size: `1500` has no known unit; allowed are `B`, `kB`, `MB`, `GB`, `TB`, `KiB`, `MiB`, `GiB`, `TiB`
    file.toml:7: switches: expected one of "unlimited", "per-port", "per-network", "shared"; found `magic`
    file.toml:8: payload_size: expected an amount of data in quotes such as "1500B", more than 0; found 0B
    file.toml:9: read_latency: `0.5ns` cannot be kept exactly in 64 bits
    "#);
}

#[test]
fn a_key_that_is_not_known_is_told_with_those_that_are() {
    insta::assert_snapshot!(problems("model = \"phold\"\n\nlpcount = 3\n"), @"file.toml:3: lpcount: unknown key; allowed for the model `phold` are `seed`, `until`, `lps`, `events_per_lp`, `remote`, `lookahead`, `mean`, `work`");
}

#[test]
fn a_file_without_a_known_model_or_without_sense_is_told_so() {
    insta::assert_snapshot!(problems("servers = 2\n"), @r#"file.toml:1: model: missing; allowed are "metadata", "phold", "queue", "closed", "ring", "chord""#);
    insta::assert_snapshot!(problems("servers = 2\nmodel = \"metadat\"\n"), @r#"file.toml:2: model: no such model; allowed are "metadata", "phold", "queue", "closed", "ring", "chord""#);
    insta::assert_snapshot!(problems("model = \"phold\"\nlps = = 3\n"), @r#"
    file.toml:2: not valid TOML: extra `=`, expected nothing
    file.toml:2: not valid TOML: unexpected key or value, expected newline, `#`
    "#);
}

#[test]
fn values_that_do_not_go_together_are_told() {
    insta::assert_snapshot!(problems(
        r#"model = "metadata"
load = "open"
think = "1ms"
store_seek = "1ms"
directories = "own"
"#
    ), @r#"
    file.toml:3: think: has an effect only with load = "closed"
    file.toml:4: store_seek: has an effect only with store = "device"
    file.toml:5: directories: a client that makes its directory waits for it; allowed with load = "open" is "one"
    "#);
    insta::assert_snapshot!(problems("model = \"phold\"\nlookahead = \"2s\"\n"), @"file.toml:2: lookahead: 2s is above the mean of 1s");
    let weightless = "model = \"metadata\"\nworkload = \"mix\"\nmix_create = 0\nmix_stat = 0\n\
                      mix_lookup = 0\nmix_unlink = 0\n";
    insta::assert_snapshot!(problems(weightless), @"file.toml:2: workload: all weights are 0; one of `mix_create` and so on must not be");
}

#[test]
fn a_setting_replaces_what_the_file_says_or_is_refused() {
    let mut scenario = Scenario::parse("model = \"metadata\"\nservers = 3\n", "file.toml").unwrap();
    scenario.set("servers", "4").unwrap();
    scenario.set("net_startup", "10us").unwrap();
    let shown: Vec<_> = scenario
        .settings()
        .filter(|setting| setting.origin != Origin::Default || setting.key == "until")
        .map(|setting| (setting.key, setting.value.unwrap_or_default(), setting.origin))
        .collect();
    let expected = [
        ("until", String::new(), Origin::Default),
        ("servers", "4".to_owned(), Origin::Set),
        ("net_startup", "10us".to_owned(), Origin::Set),
    ];
    assert_eq!(shown, expected);
    let refused = |scenario: &mut Scenario, key, value| match scenario.set(key, value) {
        Ok(()) => panic!("{key} = {value} is accepted"),
        Err(error) => error.to_string(),
    };
    insta::assert_snapshot!(refused(&mut scenario, "net_startup", "10"), @"net_startup = 10: `10` has no known unit; allowed are `ns`, `us`, `ms`, `s`, `min`, `h`, `d`");
    insta::assert_snapshot!(refused(&mut scenario, "clients", "many"), @"clients = many: expected a whole number from 1 to 2147483648; found `many`");
    insta::assert_snapshot!(refused(&mut scenario, "model", "phold"), @"model = phold: the file says which model it is");
    // What the file says of a store that a setting replaces does no harm; what is set itself must have
    // an effect.
    let text = "model = \"metadata\"\nstore_latency = \"1ms\"\n";
    let mut scenario = Scenario::parse(text, "file.toml").unwrap();
    scenario.set("store", "device").unwrap();
    scenario.check().unwrap();
    scenario.set("think", "1ms").unwrap();
    scenario.set("load", "open").unwrap();
    let options = Options::new(Scheduler::Sequential, 1);
    let error = scenario.run(&options, &mut Unobserved).unwrap_err();
    insta::assert_snapshot!(error, @r#"file.toml: think: has an effect only with load = "closed""#);
}

#[test]
fn every_model_runs_from_its_defaults_and_says_how_long() {
    for model in model_names() {
        let text = format!("model = \"{model}\"\nuntil = \"1ms\"\n");
        let scenario = Scenario::parse(&text, "file.toml").unwrap();
        assert_eq!(scenario.model(), model);
        let options = Options::new(Scheduler::Sequential, 1);
        let report = scenario.run(&options, &mut Unobserved).unwrap();
        assert!(report.end.as_nanos() <= 1_000_000, "{model}: {}", report.end);
        let grouped: u64 = report.events_per_group.iter().map(|(_, events)| events).sum();
        assert_eq!(grouped, report.events, "{model}");
        assert!(!scenario.lp_name(LpId::new(0)).is_empty());
    }
}

#[test]
fn lps_are_called_by_what_they_are() {
    let text = "model = \"metadata\"\nclients = 10\nservers = 3\nswitch_lps = 2\n";
    let mut scenario = Scenario::parse(text, "file.toml").unwrap();
    let name = |scenario: &Scenario, lp| scenario.lp_name(LpId::new(lp));
    let names = [0, 9, 10, 12, 13, 16].map(|lp| name(&scenario, lp));
    let expected =
        ["client 0", "client 9", "server 0", "server 2", "client switch 0", "server switch 1"];
    assert_eq!(names, expected);
    assert_eq!(scenario.series_names()[0], "create_response_us");
    scenario.set("switch_lps", "1").unwrap();
    assert_eq!(name(&scenario, 14), "server switch");
}

#[test]
fn the_examples_are_scenarios_and_run() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut seen = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.starts_with("simulate-") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let scenario = Scenario::parse(&text, &name).unwrap();
        seen.push(scenario.model());
        let options = Options::new(Scheduler::Sequential, 1);
        let report = scenario.run(&options, &mut Unobserved).unwrap();
        assert!(report.events > 1000, "{name}: {report:?}");
    }
    seen.sort_unstable();
    assert_eq!(seen, ["chord", "metadata", "metadata", "phold", "queue"]);
}
