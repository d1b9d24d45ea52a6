//! `meikyo config`, `man` and `completions`: the real binary, and the printed lines in a real
//! `snmpd`.

#![expect(clippy::unwrap_used, reason = "a test that cannot prepare its files has failed")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::running::ring;

mod init;
pub(crate) mod real_agent;

const MINIMAL: &str = r#"name = "presto"
measure = ["interfaces", "load"]
snmp = { version = "2c", community = "file:community" }

[[hosts]]
name = "node[001-225]"
address = "10.0.0.[1-225]"
"#;

fn meikyo(directory: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_meikyo"))
        .args(args)
        .current_dir(directory)
        .env_remove("MEIKYO_CLUSTER")
        .output()
        .expect("the binary starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("output is UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("output is UTF-8")
}

/// A directory with the file, and a community that only its owner can read.
fn directory_with(text: &str) -> tempfile::TempDir {
    use std::os::unix::fs::OpenOptionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("cluster.toml"), text).unwrap();
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600);
    let mut community = file.open(directory.path().join("community")).unwrap();
    std::io::Write::write_all(&mut community, b"a-secret-word\n").unwrap();
    directory
}

#[test]
fn a_right_file_is_answered_with_0_and_its_size() {
    let directory = directory_with(MINIMAL);
    let output = meikyo(directory.path(), &["config", "check"]);
    assert_eq!(output.status.code(), Some(0));
    insta::assert_snapshot!(stdout(&output), @"
    cluster.toml: note: timeout 1s is longer than interval 100ms (devices: 225): a lost packet is asked for again within its interval; an agent that is slower than its interval is waited for, and up to 10 intervals are skipped meanwhile
    cluster.toml: cluster `presto` is valid: 225 hosts, 0 switches, 450 things to measure
    ");
    let output =
        meikyo(directory.path(), &["config", "check", "--json", "--cluster", "cluster.toml"]);
    insta::assert_snapshot!(stdout(&output), @r#"{"schema":"meikyo.config.check/1","file":"cluster.toml","ok":true,"hosts":225,"switches":0,"measures":450,"problems":[],"problems_unlisted":0,"warnings":[],"notes":["timeout 1s is longer than interval 100ms (devices: 225): a lost packet is asked for again within its interval; an agent that is slower than its interval is waited for, and up to 10 intervals are skipped meanwhile"]}"#);
}

#[test]
fn a_timeout_within_the_interval_needs_no_note() {
    let text = MINIMAL.replace("version = \"2c\",", "version = \"2c\", timeout = \"50ms\",");
    let directory = directory_with(&text);
    let output = meikyo(directory.path(), &["config", "check"]);
    insta::assert_snapshot!(stdout(&output), @"cluster.toml: cluster `presto` is valid: 225 hosts, 0 switches, 450 things to measure");
}

#[test]
fn a_wrong_file_is_answered_with_1_and_all_its_problems() {
    let directory = directory_with(&MINIMAL.replace("measure", "mesure").replace("[1-", "[2-"));
    let output = meikyo(directory.path(), &["config", "check", "--cluster", "cluster.toml"]);
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(stdout(&output), @r#"
cluster.toml:2: mesure: unknown key (did you mean `measure`?); allowed are `name`, `snmp`, `measure`, `hosts`, `switches`, `groups`, `alerts`, `default_alerts`, `recording`, `checkpoint`, `fabric`, `links`
cluster.toml:7: hosts.address: 224 addresses for 225 names; as many are needed
"#);
    let output =
        meikyo(directory.path(), &["config", "check", "--json", "--cluster", "cluster.toml"]);
    assert_eq!(output.status.code(), Some(1));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["schema"], "meikyo.config.check/1");
    assert_eq!(document["ok"], false);
    assert_eq!(document["problems"][0]["line"], 2);
    assert_eq!(document["problems"][0]["key"], "mesure");
    let output = meikyo(directory.path(), &["config", "show", "--cluster", "cluster.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(stderr(&output).contains("cluster.toml:2: mesure: unknown key"));
}

#[test]
fn a_missing_file_is_answered_with_2_on_standard_error() {
    let directory = tempfile::tempdir().unwrap();
    let output = meikyo(directory.path(), &["config", "check", "--cluster", "nowhere.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    insta::assert_snapshot!(stderr(&output), @r#"
error: cannot read the cluster file `nowhere.toml`
  cause: No such file or directory (os error 2)
hint: name the cluster file with `--cluster`, or have one written for the devices that answer: `meikyo config init '10.0.0.[1-9]' --community env:COMMUNITY`
"#);
}

#[test]
fn the_environment_names_the_file_where_nobody_else_does() {
    let directory = directory_with(MINIMAL);
    let output = Command::new(env!("CARGO_BIN_EXE_meikyo"))
        .args(["config", "check"])
        .env("MEIKYO_CLUSTER", directory.path().join("cluster.toml"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn a_secret_that_others_can_read_or_that_is_missing_is_warned_about() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = directory_with(MINIMAL);
    let community = directory.path().join("community");
    fs::set_permissions(&community, fs::Permissions::from_mode(0o644)).unwrap();
    let output = meikyo(directory.path(), &["config", "check"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("`file:community` can be read by every user"));
    fs::remove_file(community).unwrap();
    let output = meikyo(directory.path(), &["config", "check"]);
    assert!(stdout(&output).contains("cannot read the secret in `community`"), "{output:?}");
}

#[test]
fn every_setting_is_shown_with_its_line_and_no_secret() {
    let directory = directory_with(MINIMAL);
    let output = meikyo(directory.path(), &["config", "show"]);
    assert_eq!(output.status.code(), Some(0));
    insta::assert_snapshot!(stdout(&output), @r#"
cluster presto, 225 devices, from cluster.toml
keep everything (built in)

host node[001-225] (225)
  setting      from      value
  address      line 7    10.0.0.[1-225]
  port         built in  161
  version      line 3    2c
  credentials  line 3    community file:community
  interval     built in  100ms
  timeout      built in  1s
  rate_max     built in  1000 requests/s
  measure      line 2    interfaces
  measure      line 2    load

alerts (4)
  rule              from      raised by                                                           devices
  silent            built in  no answer for more than 30s                                         all
  frozen            built in  interfaces or CPU time frozen                                       all
  disk-nearly-full  built in  disk:/*(used_bytes) above 90%, cleared at 88%, for 10s              all
  interface-errors  built in  interface:*(in_errors,out_errors) above 1, cleared at 0.5, for 10s  all
"#);
    let json = meikyo(directory.path(), &["config", "show", "--json"]);
    let agents = meikyo(directory.path(), &["config", "snmpd"]);
    for output in [&output, &json, &agents] {
        assert!(!stdout(output).contains("a-secret-word"));
    }
    let document: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let devices = document["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 225);
    assert_eq!(devices[224]["name"], "node225");
    assert_eq!(devices[224]["address"]["value"], "10.0.0.225");
    assert_eq!(devices[224]["interval_us"]["value"], 100_000);
    assert_eq!(devices[224]["interval_us"]["line"], serde_json::Value::Null);
    assert_eq!(devices[224]["credentials"]["line"], 3);
}

#[test]
fn tables_are_kept_for_their_own_time_and_unknown_ones_are_refused_with_their_line() {
    let known = "[recording.tables.\"interfaces.summary\"]\nkeep = \"365d\"\n";
    let directory = directory_with(&format!("{MINIMAL}\n{known}"));
    let output = meikyo(directory.path(), &["config", "show"]);
    assert!(
        stdout(&output).contains("\nkeep 365d of interfaces.summary (line 10)\n"),
        "{output:?}"
    );
    let unknown = "[recording.tables.interface]\nkeep = \"7d\"\n";
    let directory = directory_with(&format!("{MINIMAL}\n{unknown}"));
    for arguments in [&["config", "check"][..], &["measure", "--for", "1s"]] {
        let output = meikyo(directory.path(), arguments);
        assert!(!output.status.success(), "{output:?}");
        let told = stdout(&output) + &stderr(&output);
        let problem = "cluster.toml:10: recording.tables.interface: there is no table `interface`";
        assert!(told.contains(problem), "{told}");
    }
}

#[test]
fn output_that_nobody_reads_is_no_failure() {
    use std::process::Stdio;
    let directory = directory_with(MINIMAL);
    let mut child = Command::new(env!("CARGO_BIN_EXE_meikyo"))
        .args(["config", "show", "--json"])
        .current_dir(directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
}

/// The verbs, as the program itself lists them.
fn verbs(directory: &Path) -> Vec<String> {
    let help = stdout(&meikyo(directory, &["--help"]));
    let groups = help.split("\nOptions:\n").next().unwrap();
    let verbs = groups.lines().filter(|line| line.starts_with("  ") && !line.starts_with("    "));
    let verbs: Vec<_> =
        verbs.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect();
    assert!(verbs.len() > 3, "{help}");
    verbs
}

#[test]
fn the_bare_name_says_what_help_says() {
    let directory = tempfile::tempdir().unwrap();
    let (bare, help) = (meikyo(directory.path(), &[]), meikyo(directory.path(), &["--help"]));
    assert_eq!((bare.status.code(), help.status.code()), (Some(0), Some(0)));
    assert_eq!((stdout(&bare), stderr(&bare)), (stdout(&help), String::new()));
    assert_eq!(stdout(&meikyo(directory.path(), &["help"])), stdout(&help));
    assert!(stdout(&help).starts_with("Meikyo measures"), "{}", stdout(&help));
    // No escape sequence, since this is no terminal.
    assert!(!stdout(&help).contains('\u{1b}'));
}

#[test]
fn completions_hold_every_verb_in_every_shell() {
    let directory = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let output = meikyo(directory.path(), &["completions", shell]);
        assert_eq!(output.status.code(), Some(0));
        for verb in verbs(directory.path()) {
            assert!(stdout(&output).contains(&verb), "{shell}: {verb}");
        }
    }
}

#[test]
fn there_is_a_manual_page_for_every_verb() {
    let directory = tempfile::tempdir().unwrap();
    let output = meikyo(directory.path(), &["man", "--out", "pages"]);
    assert_eq!(output.status.code(), Some(0));
    let pages = directory.path().join("pages");
    let main = fs::read_to_string(pages.join("meikyo.1")).unwrap();
    for verb in verbs(directory.path()).iter().filter(|verb| *verb != "help") {
        let page = fs::read_to_string(pages.join(format!("meikyo-{verb}.1"))).unwrap();
        assert!(page.starts_with(".ie") && page.contains("SYNOPSIS"), "{verb}");
        assert!(main.contains(&format!("meikyo\\-{verb}(1)")), "{verb}");
    }
    let check = fs::read_to_string(pages.join("meikyo-config-check.1")).unwrap();
    assert!(
        check.contains("EXIT STATUS") && check.contains("something is wrong with the file"),
        "{check}"
    );
    assert!(
        check.contains("meikyo config check \\-\\-cluster /etc/meikyo/cluster.toml"),
        "{check}"
    );
    let names = fs::read_dir(&pages).unwrap().map(|page| page.unwrap().file_name());
    let names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    assert!(names.len() > 50, "{names:?}");
    let internal = |name: &&String| name.contains("role") || name.contains("-help");
    assert_eq!(names.iter().find(internal), None);
    for name in &names {
        let page = fs::read_to_string(pages.join(name)).unwrap();
        assert!(!page.contains("lab\\-role") && !page.contains("\\-help(1)"), "{page}");
        // Words of the program's text that mean nothing to who runs it.
        for internal in ["::", "[`", "Args", "PathBuf", concat!("TO", "DO"), "#[", ".rs"] {
            assert!(!page.contains(internal), "{name} has {internal:?}: {page}");
        }
        for heading in ["NAME", "SYNOPSIS", "DESCRIPTION", "\"EXIT STATUS\"", "EXAMPLES"] {
            assert!(page.contains(&format!("\n.SH {heading}\n")), "{name}: {heading}: {page}");
        }
        let (_, examples) = page.split_once(".SH EXAMPLES").unwrap();
        let verb = name.trim_end_matches(".1").replace('-', " ");
        let is_example = |end: &str| examples.contains(&format!("\\fB{verb}{end}"));
        assert!(is_example(" ") || is_example("\\fR"), "{name}: {examples}");
    }
}

#[test]
fn object_names_that_nobody_knows_are_told_with_line_and_what_is_near() {
    let text = MINIMAL.replace(
        "measure = [\"interfaces\", \"load\"]",
        "measure = [\n  \"load\",\n  \"ifHCInOctet.3\",\n  \"temperature.1\",\n  \"sysUpTime.1\",\n  \
         \"ifHCInOctets.3 every 1s\",\n]",
    );
    let directory = directory_with(&text);
    let output = meikyo(directory.path(), &["config", "check"]);
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(stdout(&output), @"
    cluster.toml:4: measure: `ifHCInOctet.3`: `ifHCInOctet` is no object that is known by name (`ifHCInOctets` is); objects can be written as OIDs, like `1.3.6.1.2.1.1.3.0`
    cluster.toml:5: measure: `temperature.1`: `temperature` is no object that is known by name; objects can be written as OIDs, like `1.3.6.1.2.1.1.3.0`
    cluster.toml:6: measure: `sysUpTime.1`: `sysUpTime` has one instance only: write `sysUpTime` or `sysUpTime.0`
    ");
    let output = meikyo(directory.path(), &["config", "check", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["problems"][0]["line"], 4);
    assert_eq!(document["problems"][0]["key"], "measure");
    // A mistake of form hides none of them.
    let text = text.replace("\"load\",", "\"lod\",").replace("[[hosts]]", "[[hosts]]\ncolour = 1");
    let directory = directory_with(&text);
    let output = meikyo(directory.path(), &["config", "check"]);
    let lines: Vec<_> = stdout(&output).lines().map(|line| line[..23].to_owned()).collect();
    let expected = [3, 4, 5, 6].map(|line| format!("cluster.toml:{line}: measure"));
    assert_eq!(lines[..4], expected, "{}", stdout(&output));
    assert!(stdout(&output).contains("hosts.colour: unknown key"), "{}", stdout(&output));
}

/// A ring that can be planned, and the same one with one mistake: what is replaced by what, and the
/// line and the words that must be told.
#[test]
fn what_cannot_be_wired_or_planned_is_told_with_its_line() {
    let right = ring("powerconnect-6248", "");
    let directory = directory_with(&right);
    let check = |directory: &Path| meikyo(directory, &["config", "check"]);
    let output = check(directory.path());
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    let ring_line = "topology = \"ring 4\"";
    let model_line = "model = \"powerconnect-6248\"";
    for (was, is, line, words) in [
        (ring_line, "topology = \"rng 4\"", 6, "fabric.topology: "),
        (ring_line, "topology = \"ring 5\"", 6, "has 5 switches, the cluster file 4"),
        (model_line, "model = \"powerconnect\"", 7, "`powerconnect` is no model"),
        (model_line, "vlans = \"101-9999\"", 7, "fabric.vlans: "),
        (model_line, "cables = 40", 7, "80 for trunks"),
        (model_line, "vlans = \"101\"\nspare = true", 5, "VLANs are needed"),
        ("sw[1-4]", "sw[1-3]", 6, "has 4 switches, the cluster file 3"),
    ] {
        let mut text = right.replace(was, is);
        assert_ne!(text, right, "{was}");
        if is.contains("[1-3]") {
            text = text.replace("10.0.1.[1-4]", "10.0.1.[1-3]");
        }
        fs::write(directory.path().join("cluster.toml"), text).unwrap();
        let plan = meikyo(directory.path(), &["fabric", "plan"]);
        assert_eq!(plan.status.code(), Some(2), "{is}: the plan is the oracle");
        let output = check(directory.path());
        let told = stdout(&output);
        assert_eq!(output.status.code(), Some(1), "{is}: {told}");
        // The line of bundles is that of the topology which asks for them.
        let line = if is.starts_with("cables") { 6 } else { line };
        assert!(told.starts_with(&format!("cluster.toml:{line}: ")), "{is}: {told}");
        assert!(told.contains(words), "{is}: {told}");
    }
}

/// Links one by one: a port twice, a port that the model does not have, a host on nothing.
#[test]
fn links_that_cannot_be_plugged_are_told_with_their_line() {
    let file = |links: &str| {
        ring("powerconnect-6248", "")
            .replace("topology = \"ring 4\"\n", "")
            .replace("h[1-8]", "h[1-2]")
            .replace("10.0.0.[1-8]", "10.0.0.[1-2]")
            .replace("sw[1-4]", "sw[1-2]")
            .replace("10.0.1.[1-4]", "10.0.1.[1-2]")
            + links
    };
    let link = |one: &str, other: &str| format!("[[links]]\nbetween = [\"{one}\", \"{other}\"]\n");
    let trunk = link("sw1", "sw2");
    let [first, second] = [link("h1", "sw1:1"), link("h2", "sw2:1")];
    for (links, words) in [
        (trunk.clone() + &first + &second, None),
        (trunk.clone() + &first + &link("h2", "sw1:1"), Some("port 1 of `sw1` is used twice")),
        (trunk.clone() + &first + &link("h2", "sw2:77"), Some("has no port 77")),
        (trunk + &first, Some("`h2` is linked to no switch")),
        (first + &second, Some("cannot be reached")),
    ] {
        let directory = directory_with(&file(&links));
        let output = meikyo(directory.path(), &["config", "check", "--json"]);
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["ok"], words.is_none(), "{document}");
        assert_eq!(output.status.code(), Some(i32::from(words.is_some())));
        if let Some(words) = words {
            let problem = &document["problems"][0];
            assert!(problem["text"].as_str().unwrap().contains(words), "{document}");
            assert!(problem["line"].as_u64().unwrap() > 4, "{document}");
        }
    }
}

/// RFC 3414, section 11.2: a password has at least 8 octets.
#[test]
fn a_password_that_is_too_short_for_version_3_is_told_with_its_line() {
    let snmp = "snmp = { version = \"3\", user = \"m\", auth = { protocol = \"SHA-256\", \
                password = \"file:auth\" }, privacy = { protocol = \"AES-128\", \
                password = \"file:privacy\" } }";
    let text = MINIMAL.replace("snmp = { version = \"2c\", community = \"file:community\" }", snmp);
    let directory = directory_with(&text);
    for (auth, privacy, problems) in [
        ("12345678", "1234567", vec!["privacy"]),
        ("1234567", "12345678", vec!["auth"]),
        ("1", "\u{fc}\u{fc}\u{fc}\u{fc}", vec!["auth"]),
        ("12345678", "12345678", vec![]),
    ] {
        fs::write(directory.path().join("auth"), auth).unwrap();
        fs::write(directory.path().join("privacy"), privacy).unwrap();
        let output = meikyo(directory.path(), &["config", "check"]);
        let told = stdout(&output);
        assert_eq!(output.status.code(), Some(i32::from(!problems.is_empty())), "{told}");
        for key in &problems {
            let begin = format!("cluster.toml:3: {key}.password: `file:{key}`: the password has ");
            assert!(told.contains(&begin) && told.contains("at least 8"), "{told}");
        }
        assert_eq!(told.matches("password has").count(), problems.len(), "{told}");
    }
}

#[test]
fn a_known_object_name_is_in_the_view_with_its_oid() {
    let text = MINIMAL.replace("\"load\"", "\"ifHCInOctets.3\", \"sysName.0\"");
    let directory = directory_with(&text);
    let output = meikyo(directory.path(), &["config", "snmpd"]);
    assert_eq!(output.status.code(), Some(0));
    let lines = stdout(&output);
    // RFC 2863 (ifXTable) and RFC 3418 (system group).
    for line in [
        "# ifHCInOctets.3\nview meikyo included .1.3.6.1.2.1.31.1.1.1.6.3\n",
        "# sysName.0\nview meikyo included .1.3.6.1.2.1.1.5.0\n",
    ] {
        assert!(lines.contains(line), "{lines}");
    }
    assert!(!lines.contains("not a known object"), "{lines}");
}
