//! `meikyo fabric plan` and `meikyo bench fabric` as a person calls them.

use std::collections::BTreeSet;
use std::fs;
use std::process::Output;

use serde_json::Value;

use crate::running::{meikyo, text};

/// The paper's cluster: 225 hosts on 8 switches.
fn plan(fabric: &str, arguments: &[&str]) -> Output {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("cluster.toml");
    let text = format!(
        "name = \"supernova\"\nmeasure = [\"interfaces\"]\n\
         snmp = {{ version = \"2c\", community = \"env:MEIKYO_COMMUNITY\" }}\n\n\
         [fabric]\n{fabric}\nmodel = \"powerconnect-6248\"\n\n\
         [[hosts]]\nname = \"node[001-225]\"\naddress = \"10.0.0.[1-225]\"\n\n\
         [[switches]]\nname = \"sw[1-8]\"\naddress = \"10.0.1.[1-8]\"\n"
    );
    fs::write(&file, text).expect("the file can be written");
    meikyo()
        .args(["fabric", "plan", "--cluster"])
        .arg(&file)
        .args(arguments)
        .output()
        .expect("the binary runs")
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(output));
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

#[test]
fn the_paper_s_topologies_cost_what_its_table_says() {
    for (topology, cables, vlans, switches, bisection) in [
        ("tree 8", 6, 1, 6, 6_u32),
        ("complete 8", 2, 8, 2, 32),
        ("mesh 4x2", 3, 2, 5, 6),
        ("torus 4x2", 3, 4, 4, 12),
    ] {
        let fabric = format!("topology = \"{topology}\"\ncables = {cables}");
        let plan = json(&plan(&fabric, &["--json"]));
        assert_eq!(plan["working"].as_array().map(Vec::len), Some(vlans), "{topology}");
        assert_eq!(plan["fewest"], true, "{topology}");
        assert_eq!(plan["diameter_switches"], switches, "{topology}");
        assert_eq!(plan["bisection"]["cables"], bisection, "{topology}");
        assert_eq!(plan["bisection"]["bit_per_s"], u64::from(bisection) * 1_000_000_000);
        assert_eq!(plan["table_entries_max"], 225 * vlans, "{topology}");
    }
    let loads = json(&plan("topology = \"complete 8\"\ncables = 2", &["--json"]));
    // The 29 hosts of the first switch to the 28 of another, over 2 cables.
    assert_eq!(loads["loads"][0]["pattern"], "all_to_all");
    assert_eq!(loads["loads"][0]["busiest"]["pairs_per_cable"], 29.0 * 28.0 / 2.0);
}

#[test]
fn a_plan_is_one_calm_table() {
    let output = plan("topology = \"mesh 4x2\"\ncables = 3", &[]);
    assert!(output.status.success(), "{}", text(&output));
    let printed = printed(&output);
    for part in [
        "225 hosts, 8 switches, 10 trunks; routing dimension-order, the switch chooses the VLAN",
        "2 working VLANs (101-102), and fewer are impossible; priming broadcast; at most 450 table",
        "at most 5 switches on a path; bisection 6 cables, 6Gbit/s",
    ] {
        assert!(printed.contains(part), "{printed}");
    }
}

#[test]
fn what_does_not_fit_is_refused_with_what_would() {
    for (fabric, error) in [
        (
            "topology = \"complete 8\"\ncables = 3",
            "`sw1` (powerconnect-6248) needs 29 ports for hosts and 21 for trunks, 50 in all, and \
             has 48: 2 links a bundle would fit",
        ),
        ("topology = \"ring 8\"\nrouting = \"minimal\"", "could deadlock under pause frames"),
        ("topology = \"complete 9\"", "the topology has 9 switches, the cluster file 8"),
    ] {
        let output = plan(fabric, &[]);
        assert_eq!(output.status.code(), Some(2), "{fabric}");
        assert!(text(&output).contains(error), "{}", text(&output));
    }
}

#[test]
fn one_vlan_is_one() {
    let output = plan("topology = \"tree 8\"", &[]);
    assert!(printed(&output).contains("\n1 working VLAN (101)"), "{}", printed(&output));
}

#[test]
fn a_mistake_in_the_fabric_has_its_place_like_any_other() {
    let output = plan("topology = \"complete 9\"", &[]);
    let line = "the topology has 9 switches, the cluster file 8";
    let told = text(&output);
    let (place, _) = told.split_once(&format!(": {line}")).expect("the message");
    let (file, number) = place.rsplit_once(':').expect("a place");
    assert!(file.ends_with(".toml") && number.parse::<u32>().is_ok(), "{told}");
}

#[test]
fn a_row_of_the_bench_has_its_keys_and_is_proven() {
    let bench = |arguments: &[&str]| {
        let output = meikyo().args(["bench", "fabric", "--json"]).args(arguments).output();
        output.expect("the binary runs")
    };
    let document = json(&bench(&["--only", "torus 4x4", "--hosts-per-switch", "4"]));
    let row = document["rows"][0].as_object().expect("a row");
    let keys: BTreeSet<&str> = row.keys().map(String::as_str).collect();
    let expected = "topology hosts switches links routing vlans table_entries_max link_load_max \
                    busiest_by_mean deadlock_free verdict plan_s check_s peak_rss_bytes";
    assert_eq!(keys, expected.split_whitespace().collect());
    assert_eq!(row["vlans"], 8);
    assert_eq!(row["links"], 32);
    assert_eq!(row["verdict"], "good");
    let refused = bench(&["--only", "ring 8", "--routing", "minimal"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(printed(&refused).contains("\"deadlock_free\":false"), "{}", printed(&refused));
}
