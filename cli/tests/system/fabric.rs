//! `meikyo fabric configure | diff | templates | deploy | failover | cables | worksheet | draw |
//! verify | predict`.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod switches;

use std::fs;
use std::path::Path;
use std::process::Output;

use meikyo_fabric::HostId;
use serde_json::Value;

use crate::running::{instant, meikyo, ring};

/// A ring of four with spare VLANs, managed from its first host.
fn managed_ring() -> String {
    ring("powerconnect-6248", "management_vlan = 4000\nmanager = \"h1\"\nspare = true")
}

fn directory_with(text: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("cluster.toml"), text).unwrap();
    directory
}

fn fabric(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = meikyo();
    command.arg("fabric").args(arguments).current_dir(directory);
    command.env_remove("MEIKYO_CLUSTER").env("MEIKYO_COMMUNITY", "public").output().unwrap()
}

/// What a command prints that must end with this code.
fn printed(directory: &Path, arguments: &[&str], code: i32) -> String {
    let output = fabric(directory, arguments);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
    String::from_utf8(if code == 2 { output.stderr } else { output.stdout }).unwrap()
}

fn json(directory: &Path, arguments: &[&str], code: i32) -> Value {
    serde_json::from_str(&printed(directory, arguments, code)).unwrap()
}

#[test]
fn hpl_is_predicted_for_the_example_and_for_other_topologies() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    #[rustfmt::skip]
    let wanted = [
        "predict", "--cluster", "fabric.toml", "--program", "hpl", "--machine", "predict-hpl.toml",
        "--set", "n=6000", "--compare", "tree,ring,complete", "--json",
    ];
    let said = json(&examples, &wanted, 0);
    let rows = said["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4, "{said}");
    // HPL's own count of operations (`HPL_pdtest.c`), which 32 ranks of 8,000 MFLOP/s carry out.
    let operations = 2.0 / 3.0 * 6_000_f64.powi(3) + 1.5 * 6_000_f64.powi(2);
    for row in rows {
        let of = |key: &str| row[key].as_f64().unwrap();
        let (time, least) = (of("time_s"), of("time_s_least"));
        assert!((of("gflops") * time * 1e9 / operations - 1.0).abs() < 1e-6, "{row}");
        assert!(operations / (32.0 * 8e9) < least && least <= time, "{row}");
    }
    let wrong = [&wanted[..7], &["--set", "p=5"]].concat();
    let refused = printed(&examples, &wrong, 2);
    assert!(refused.contains("hint: "), "{refused}");
}

#[test]
fn seeds_hosts_of_ranks_and_traffic_of_others_are_part_of_a_prediction() {
    let directory = directory_with(&ring("powerconnect-6248", ""));
    let path = directory.path();
    let wanted = ["predict", "--program", "cg", "--class", "a", "--ranks", "8", "--json"];
    let with = |more: &[&str]| json(path, &[&wanted[..], more].concat(), 0);
    let time = |said: &Value| said["rows"][0]["time_s"].as_f64().unwrap();
    // Ranks at random places, drawn by each of three seeds, as each seed by itself draws them.
    let random = ["--method", "flow", "--set", "placement=random"];
    let said =
        with(&[&random[..], &["--seeds", "3", "--compare", "tree", "--set", "seed=5"]].concat());
    let times: Vec<f64> = said["rows"][0]["time_s_of_seeds"]
        .as_array()
        .unwrap()
        .iter()
        .map(|time| time.as_f64().unwrap())
        .collect();
    assert_eq!(said["rows"][1]["time_s_of_seeds"].as_array().unwrap().len(), 3);
    for (at, seed) in ["seed=5", "seed=6", "seed=7"].into_iter().enumerate() {
        let alone = with(&[&random[..], &["--set", seed]].concat());
        assert!((time(&alone) - times[at]).abs() < 1e-12, "{seed}: {alone}");
    }
    assert!(times.iter().any(|time| (time - times[0]).abs() > 1e-6), "{times:?}");
    let text = printed(path, &[&wanted[..7], &random, &["--seeds", "2"]].concat(), 0);
    assert!(text.contains(" with 2 seeds"), "{text}");

    // The same hosts in the order of blocks, written in each way.
    fs::write(path.join("hosts"), "# in order\nh1\nh2 slots=1\nh3:1\nh4\nh5\nh6\nh7\nh8\n")
        .unwrap();
    let listed = with(&["--hostfile", "hosts"]);
    assert_eq!(listed["settings"]["placement"], "listed");
    assert_eq!(listed["rows"], with(&[])["rows"]);
    fs::write(path.join("hosts"), "h1 slots=8\n").unwrap();
    let within = with(&["--hostfile", "hosts"]);
    assert!(time(&within) < time(&listed), "{within}");
    for (text, told) in [
        ("h1\nh2 cores=2\n", "hosts, line 2: `h2 cores=2` is no host"),
        ("h1:0\n", "line 1"),
        ("h1 slots=7\n", "7 places for 8 ranks"),
        ("h99 slots=8\n", "`h99`, which is no host"),
    ] {
        fs::write(path.join("hosts"), text).unwrap();
        let refused = printed(path, &[&wanted[..], &["--hostfile", "hosts"]].concat(), 2);
        assert!(refused.contains(told), "{refused}");
    }

    // Others take most of a cable that the program needs.
    let busy = with(&["--background", "h1:h3:800Mbit/s"]);
    assert!(time(&busy) > 1.05 * time(&listed), "{busy}");
    assert_eq!(busy["background"][0]["bits_per_s"], 800_000_000);
    for wrong in ["h1:h3", "h1:h3:fast", "h1:h3:0bit/s"] {
        printed(path, &[&wanted[..], &["--background", wrong]].concat(), 2);
    }
    let refused = printed(path, &[&wanted[..], &["--background", "h1:h3:1Gbit/s"]].concat(), 2);
    assert!(refused.contains("leaves the program nothing of a cable: from h1"), "{refused}");

    let loads = with(&["--method", "static"]);
    let of = |key: &str| loads["rows"][0][key].as_f64().unwrap();
    assert!(
        of("time_s_least") <= time(&loads) && time(&loads) <= of("time_s_without_overlap"),
        "{loads}"
    );
}

#[test]
fn what_a_predicted_program_carries_is_recorded_and_drawn() {
    let directory = directory_with(&ring("powerconnect-6248", ""));
    let path = directory.path();
    #[rustfmt::skip]
    let wanted = [
        "predict", "--program", "is", "--class", "a", "--ranks", "8", "--set", "tcp=linux", "--out", "run",
        "--compare", "tree,complete", "--cables", "1..2", "--figure", "rates.svg", "--json",
    ];
    let said = json(path, &wanted, 0);
    assert_eq!(said["settings"]["tcp"], "linux");
    let svg = fs::read_to_string(path.join("rates.svg")).unwrap();
    for label in ["tree 4", "complete 4", "cables per link", "Mop/s for each rank"] {
        assert!(svg.contains(label), "{label}: {svg}");
    }
    let rows = meikyo().args(["query", "run", "interfaces", "--json"]).current_dir(path).output();
    let rows = String::from_utf8(rows.unwrap().stdout).unwrap();
    let mut rows: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    rows.sort_by_key(|row| instant(&row["time"]));
    // 8 ports of hosts and both ends of 4 trunks, each read from the beginning to the end.
    let ports = 8 + 2 * 4;
    let readings = rows.len() / ports;
    assert_eq!(rows.len() % ports, 0);
    assert!((100..=257).contains(&readings), "{readings}");
    let sum = |row: &[Value], name: &str| -> u64 {
        row.iter().map(|row| row[name].as_u64().unwrap()).sum()
    };
    let last = &rows[rows.len() - ports..];
    let same = "what goes in at one port comes out at another";
    assert_eq!(sum(last, "in_octets"), sum(last, "out_octets"), "{same}");
    // Ranks exchange keys between the iterations' ranking: what all ports have carried grows from
    // reading to reading, in some of them and not in others.
    let all: Vec<u64> = rows.chunks(ports).map(|reading| sum(reading, "in_octets")).collect();
    assert!(all[0] == 0 && all.is_sorted(), "{all:?}");
    let grows = all.windows(2).filter(|pair| pair[0] < pair[1]).count();
    assert!((9..readings - 4).contains(&grows), "{grows} of {readings}: {all:?}");
    // 2^23 keys of 4 octets an iteration, of which each rank keeps one eighth; little else.
    let keys = 10 * (1_u64 << 23) * 4 / 8 * 7 / 8;
    let port = rows.iter().filter(|row| row["device"] == "sw1" && row["interface"] == "1/g1");
    let came = port.map(|row| row["in_octets"].as_u64().unwrap()).max().unwrap();
    assert!((keys..keys + keys / 20).contains(&came), "{came} of {keys}");
    let again = printed(path, &wanted, 2);
    assert!(again.contains("holds a recording already"), "{again}");
}

#[test]
fn texts_are_written_read_back_and_compared() {
    let directory = directory_with(&managed_ring());
    let path = directory.path();
    let written = json(path, &["configure", "--out", "now", "--json"], 0);
    assert_eq!(written["texts"].as_array().unwrap().len(), 4);
    let one = fs::read_to_string(path.join("now/sw2.cfg")).unwrap();
    assert_eq!(printed(path, &["configure", "--switch", "sw2"], 0), one);
    let as_json = json(path, &["configure", "--switch", "sw2", "--json"], 0);
    assert_eq!(as_json["texts"][0]["text"], one.as_str());
    let same = printed(path, &["diff", "--config", "now"], 0);
    assert_eq!(same, "all switches have the planned settings\n");

    let changed = one.replacen("switchport general pvid 10", "switchport general pvid 400", 1);
    let changed =
        changed.replacen("pvid 4001", "pvid 4000", 1).replacen("pvid 4002", "pvid 4000", 1);
    fs::write(path.join("now/sw2.cfg"), &changed).unwrap();
    let differs = json(path, &["diff", "--config", "now", "--json"], 1);
    let rows = differs["differences"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!((&rows[0]["switch"], &rows[0]["port"]), (&"sw2".into(), &1.into()));
    assert_eq!((&rows[0]["what"], &rows[0]["found"]), (&"pvid".into(), &"4000".into()));

    fs::write(path.join("now/sw2.cfg"), one.replace("flowcontrol", "storm control")).unwrap();
    let told = printed(path, &["diff", "--config", "now"], 2);
    let line = 1 + one.lines().position(|line| line.trim() == "flowcontrol").unwrap();
    let place = format!("now/sw2.cfg:{line}: `storm control`: is not understood");
    assert!(told.contains(&place), "{told}");

    fs::write(path.join("now/sw2.cfg"), &changed).unwrap();
    fs::remove_file(path.join("now/sw1.cfg")).unwrap();
    let told = printed(path, &["configure", "--out", "now"], 2);
    assert!(told.contains("now/sw2.cfg is there already"), "{told}");
    assert_eq!(fs::read_to_string(path.join("now/sw2.cfg")).unwrap(), changed);
    assert!(!path.join("now/sw1.cfg").exists(), "nothing is written");
    printed(path, &["configure", "--out", "now", "--force"], 0);
    assert_eq!(fs::read_to_string(path.join("now/sw2.cfg")).unwrap(), one);
}

#[test]
fn templates_of_the_site_are_used_and_their_errors_have_a_place() {
    let directory = directory_with(&managed_ring());
    let path = directory.path();
    printed(path, &["templates", "--out", "own"], 0);
    let again = printed(path, &["templates", "--out", "own"], 2);
    assert!(again.contains("powerconnect-6248.j2 is there already"), "{again}");
    let file = path.join("own/powerconnect-6248.j2");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("configure\n", "configure\nlogging 10.0.0.9\n", 1)).unwrap();
    let one = printed(path, &["configure", "--switch", "sw1", "--templates", "own"], 0);
    assert!(one.contains("logging 10.0.0.9\n"), "{one}");
    fs::write(&file, text.replacen("{% endif %}", "{% endiff %}", 1)).unwrap();
    let told = printed(path, &["configure", "--out", "texts", "--templates", "own"], 2);
    assert!(told.contains("template `powerconnect-6248.j2`, line "), "{told}");
    assert!(!path.join("texts").exists(), "nothing is written");
}

#[test]
fn a_deployment_is_shown_written_and_carried_out_in_order() {
    let directory = directory_with(&managed_ring());
    let path = directory.path();
    let shown = json(path, &["deploy", "--current", "factory", "--dry-run", "--json"], 0);
    let steps = shown["steps"].as_array().unwrap();
    assert!(steps.len() >= 12, "{}", steps.len());
    let text = printed(path, &["deploy", "--current", "factory", "--dry-run"], 0);
    assert!(text.starts_with(&format!("step 1 of {}: ", steps.len())), "{text}");
    assert!(text.ends_with("nothing was sent\n"), "{text}");

    printed(path, &["deploy", "--current", "factory", "--out", "steps"], 0);
    let again = printed(path, &["deploy", "--current", "factory", "--out", "steps"], 2);
    assert!(again.contains(" is there already") && again.contains("--force"), "{again}");
    printed(path, &["deploy", "--current", "factory", "--out", "steps", "--force"], 0);
    for (way, idle) in [("--dry-run", "--force"), ("--dry-run", "--yes"), ("--dry-run", "--verify")]
    {
        let told = printed(path, &["deploy", "--current", "factory", way, idle], 2);
        assert!(told.contains("cannot be used with"), "{told}");
    }
    let list = fs::read_to_string(path.join("steps/steps.txt")).unwrap();
    assert_eq!(list.lines().count(), steps.len());
    let first = list.split(':').next().unwrap();
    let apply = fs::read_to_string(path.join("steps").join(first)).unwrap();
    assert_eq!(apply, steps[0]["apply"].as_str().unwrap());

    let through = "cat >> {switch}.typed; echo {switch} {address} >> order";
    let carried =
        printed(path, &["deploy", "--current", "factory", "--yes", "--through", through], 0);
    assert!(carried.starts_with(text.strip_suffix("nothing was sent\n").unwrap()), "{carried}");
    let order = fs::read_to_string(path.join("order")).unwrap();
    let planned: Vec<String> = steps
        .iter()
        .map(|step| step["switch"].as_str().unwrap())
        .map(|name| format!("{name} 10.0.1.{}", &name[2..]))
        .collect();
    assert_eq!(order.lines().collect::<Vec<_>>(), planned);

    // What the switches have then is what is planned: nothing is left to do.
    printed(path, &["configure", "--out", "now"], 0);
    let none = json(path, &["deploy", "--current", "now", "--dry-run", "--json"], 0);
    assert_eq!(none["steps"].as_array().unwrap().len(), 0);
}

#[test]
fn a_step_that_fails_is_taken_back_and_ends_the_deployment() {
    let directory = directory_with(&managed_ring());
    let path = directory.path();
    let steps = json(path, &["deploy", "--current", "factory", "--dry-run", "--json"], 0);
    // The second command fails; the third takes its step back.
    let through =
        ": {switch}; cat > $(ls | grep -c typed).typed; [ ! -e 1.typed ] || [ -e 2.typed ]";
    let told = printed(path, &["deploy", "--current", "factory", "--yes", "--through", through], 2);
    assert!(told.contains("step 2 of "), "{told}");
    assert!(told.contains("it was taken back there"), "{told}");
    let typed = |number| fs::read_to_string(path.join(format!("{number}.typed"))).unwrap();
    assert_eq!(typed(1), steps["steps"][1]["apply"].as_str().unwrap());
    assert_eq!(typed(2), steps["steps"][1]["roll_back"].as_str().unwrap());
    assert!(!path.join("3.typed").exists());
}

#[test]
fn a_step_that_cannot_be_confirmed_is_left_to_the_switch_to_take_back() {
    let directory = directory_with(&managed_ring().replace("powerconnect-6248", "linux-bridge"));
    let path = directory.path();
    let steps = json(path, &["deploy", "--current", "factory", "--dry-run", "--json"], 0);
    // The first step is delivered and confirmed, the second delivered, and then the session is lost.
    let through = ": {switch}; cat > $(ls | grep -c typed).typed; [ ! -e 3.typed ]";
    let arguments = [
        "deploy",
        "--current",
        "factory",
        "--yes",
        "--confirm-within",
        "30s",
        "--through",
        through,
    ];
    let told = printed(path, &arguments, 2);
    assert!(told.contains("step 2 of "), "{told}");
    assert!(told.contains("the switch rolls it back within 30 s"), "{told}");
    let typed = |number| fs::read_to_string(path.join(format!("{number}.typed"))).unwrap();
    for (number, step) in [(0, 0), (2, 1)] {
        for text in ["apply", "roll_back"] {
            assert!(typed(number).contains(steps["steps"][step][text].as_str().unwrap()));
        }
        assert!(typed(number).contains("sleep 30;"));
    }
    let switch = steps["steps"][0]["switch"].as_str().unwrap();
    assert!(
        typed(1).starts_with("touch /run/meikyo/") && typed(1).contains(switch),
        "{}",
        typed(1)
    );
    assert!(!path.join("4.typed").exists());
}

#[test]
fn what_a_deployment_is_carried_out_through_is_held_to_what_it_says() {
    let directory = directory_with(&managed_ring());
    let path = directory.path();
    let through = |command: &str, more: &[&str]| {
        let words = ["deploy", "--current", "factory", "--patience", "1s", "--through", command];
        printed(path, &[&words[..], more].concat(), 2)
    };
    let unknown = through("cat > typed.{swich}", &["--yes"]);
    assert!(unknown.contains("`{swich}` is not known"), "{unknown}");
    let one = through("cat > typed", &["--yes"]);
    assert!(one.contains("would send the steps of all switches to one"), "{one}");
    let unasked = through("cat > typed.{switch}", &[]);
    assert!(unasked.contains("`--yes` carries out the steps without asking"), "{unasked}");
    assert_eq!(fs::read_dir(path).unwrap().count(), 1, "nothing was sent");

    let refusing = "cat >> typed.{switch}; echo \"% Invalid input detected at '^' marker.\"";
    let refused = through(refusing, &["--yes"]);
    let answer = "the switch answered `% Invalid input detected at '^' marker.`; rolling it back failed, too";
    assert!(refused.contains(answer), "{refused}");
    let hanging = through(
        "cat > hanging.{switch}; [ -e second ] || { touch second; cat /dev/zero; }",
        &["--yes"],
    );
    assert!(hanging.contains("did not end within 1 s; it was taken back there"), "{hanging}");
}

#[test]
fn a_switch_that_is_not_as_expected_gets_nothing() {
    let directory = directory_with(&managed_ring());
    let path = directory.path();
    let agents = switches::Agents::start(&path.join("cluster.toml"));
    let text = managed_ring().replace("\"10.0.1.[1-4]\"", &agents.addresses());
    fs::write(path.join("cluster.toml"), text).unwrap();
    let through = ["deploy", "--yes", "--verify", "--through", "cat > typed.{switch}", "--current"];
    // They have what is planned already, and are taken for new ones.
    let told = printed(path, &[&through[..], &["factory"]].concat(), 2);
    assert!(told.contains("it is not as expected: port "), "{told}");
    assert!(told.contains("nothing was sent to it"), "{told}");
    assert!(!path.join("typed.sw1").exists());
}

#[test]
fn the_moves_for_a_failed_trunk_are_shown_and_checked() {
    let directory = directory_with(&managed_ring());
    let path = directory.path();
    let all = json(path, &["failover", "--json"], 0);
    let trunks = all["trunks"].as_array().unwrap();
    assert_eq!(trunks.len(), 4);
    for trunk in trunks {
        assert_eq!(trunk["verdict"], "good");
        assert_eq!(trunk["parts"].as_array().unwrap().len(), 0);
        assert!(!trunk["moves"].as_array().unwrap().is_empty(), "{trunk}");
    }
    let one = printed(path, &["failover", "--link", "sw2:sw1"], 0);
    assert!(one.starts_with("sw1:sw2 has failed: "), "{one}");
    assert!(one.contains("checked: good\n") && one.contains("switchport general pvid "), "{one}");
    let told = printed(path, &["failover", "--link", "sw1:sw3"], 2);
    assert!(told.contains("there is no trunk between the switches of `sw1:sw3`"), "{told}");

    // A tree has no other way: pairs are lost, and named.
    let tree = managed_ring().replace("ring 4", "tree 4").replace("spare = true\n", "");
    fs::write(path.join("cluster.toml"), tree).unwrap();
    let all = json(path, &["failover", "--json"], 0);
    assert!(all["trunks"].as_array().unwrap().iter().all(|own| !own["parts"][1].is_null()));
}

#[test]
fn cables_and_the_drawing_name_every_switch() {
    let directory = directory_with(&managed_ring());
    let path = directory.path();
    let list = printed(path, &["cables"], 0);
    for place in 1..=4 {
        assert!(list.contains(&format!("sw{place} (powerconnect-6248): 4 of 48 ports")), "{list}");
    }
    let one = json(path, &["cables", "--switch", "sw1", "--json"], 0);
    assert_eq!(one["switches"][0]["cables"].as_array().unwrap().len(), 4);
    printed(path, &["draw", "--out", "fabric.svg"], 0);
    let svg = fs::read_to_string(path.join("fabric.svg")).unwrap();
    let told = printed(path, &["draw", "--out", "fabric.svg"], 2);
    assert!(told.contains("fabric.svg is there already"), "{told}");
    printed(path, &["draw", "--out", "fabric.svg", "--force"], 0);
    assert!(svg.starts_with("<svg ") && svg.contains("href=\"#vlan-4000\""), "{svg}");
}

/// Every port of a host is in both VLANs of the ring without a tag, and has one of them as PVID.
#[test]
fn worksheets_are_written_for_switches_that_are_clicked() {
    let directory = directory_with(&ring("tplink-sg3428", ""));
    let at = directory.path();
    let text = printed(at, &["worksheet", "--switch", "sw1", "--format", "csv"], 0);
    let row = |head: &str| -> Vec<String> {
        let line = text.lines().find(|line| line.starts_with(&format!("{head},"))).unwrap();
        line.split(',').map(str::to_owned).collect()
    };
    for column in 1..=2 {
        assert_eq!([&row("101")[column], &row("102")[column]], ["U", "U"], "{text}");
        assert!(["101", "102"].contains(&row("PVID")[column].as_str()), "{text}");
    }
    printed(at, &["worksheet", "--out", "sheets", "--format", "html"], 0);
    assert_eq!(fs::read_dir(at.join("sheets")).unwrap().count(), 4);
    assert!(
        printed(at, &["worksheet", "--out", "sheets", "--format", "html"], 2).contains("--force")
    );
}

#[test]
fn live_switches_are_compared_with_the_plan() {
    let macs = "name = \"h[1-8]\"\nmac = \"02:00:00:00:00:0[1-8]\"";
    let text = managed_ring().replace("name = \"h[1-8]\"", macs);
    let directory = directory_with(&text);
    let path = directory.path();
    let mut agents = switches::Agents::start(&path.join("cluster.toml"));
    let text = text.replace("\"10.0.1.[1-4]\"", &agents.addresses());
    fs::write(path.join("cluster.toml"), text).unwrap();
    let good = printed(path, &["verify"], 0);
    assert_eq!(good, "all switches and cables are as planned\n");
    let read = json(path, &["verify", "--json"], 0);
    for switch in read["switches"].as_array().unwrap() {
        // Eight hosts in two VLANs at least.
        assert!(switch["hosts_learned"].as_u64().unwrap() >= 16, "{switch}");
    }

    agents.learn_at(0, 101, HostId::new(4), 1);
    agents.swap_cables(1);
    agents.lose_cable(2);
    agents.set_pvid(3);
    let told = printed(path, &["verify"], 1);
    let learned =
        "sw1     port 1: `h5` was learned here in VLAN 101, where the way to it is port 4";
    assert!(told.contains(learned), "{told}");
    assert!(told.contains("sw2     ports 47 and 48: their cables have changed places"), "{told}");
    assert!(told.contains("sw3     port 47: nothing is heard of "), "{told}");
    assert!(told.contains("sw4     port 1: PVID is 1, planned is "), "{told}");
    assert_eq!(told.lines().count(), 5, "{told}");

    agents.end(0);
    let told = printed(path, &["verify"], 1);
    assert!(told.contains("sw1     nothing listens at "), "{told}");
    let told = printed(path, &["verify", "--switch", "sw1"], 2);
    assert!(told.contains("no switch could be compared"), "{told}");
}
