//! `meikyo lab` as a person calls it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use meikyo_units::{Nanos, WallTime};
use serde_json::Value;

use crate::recording::files;
use crate::running::{PATIENCE, meikyo, ring, rows, text};

/// A lab's directory; ends what runs there.
pub(crate) struct Lab<'a>(pub(crate) &'a Path);

impl Lab<'_> {
    pub(crate) fn call(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the binary runs")
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command: Command = meikyo();
        command.arg("lab").args(arguments).env("MEIKYO_LAB", self.0.join("lab"));
        command
    }

    /// Brings it up; `None`, with the reason printed, where nothing can run one.
    pub(crate) fn up(&self, cluster: &str, options: &[&str]) -> Option<Output> {
        let file = self.0.join("cluster.toml");
        std::fs::write(&file, cluster).expect("the test's own directory");
        let file = file.display().to_string();
        let up = self.call(&[&["up", "--cluster", file.as_str()], options].concat());
        if text(&up).contains("there is no user-mode Linux") || text(&up).contains("no snmpd") {
            meikyo_testing::lacking(text(&up).lines().next().unwrap_or_default());
            return None;
        }
        assert!(up.status.success(), "{}", text(&up));
        Some(up)
    }
}

impl Drop for Lab<'_> {
    fn drop(&mut self) {
        assert!(self.call(&["down"]).status.success(), "a lab can be ended");
        assert!(!self.0.join("lab").exists(), "nothing is left of it");
    }
}

#[test]
fn what_a_lab_cannot_do_is_refused_with_what_to_type_instead() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let file = path("cluster.toml");
    std::fs::write(&file, ring("linux-bridge", "")).unwrap();
    let lab = Lab(directory.path());
    let refused = |arguments: &[&str], told: &str| {
        let said = lab.call(arguments);
        assert_eq!(said.status.code(), Some(2), "{arguments:?}: {}", text(&said));
        assert!(text(&said).contains(told), "{arguments:?}: {}", text(&said));
        assert!(!directory.path().join("lab").exists(), "{arguments:?} left something");
    };
    let up = "hint: meikyo lab up --cluster cluster.toml";
    for verb in [&["prime"][..], &["verify"], &["cut", "sw1:sw2"], &["exec", "h1", "--", "true"]] {
        refused(verb, up);
    }
    let range = "links can be shaped to 100kbit/s up to 100Gbit/s";
    for rate in ["0Mbit/s", "99kbit/s", "101Gbit/s"] {
        refused(&["up", "--cluster", &file, "--rate", rate], range);
    }
    refused(&["up", "--cluster", &file, "--rate", "fast"], "write for example `1Gbit/s`");
    refused(&["up", "--cluster", &file, "--memory", "5MiB"], "128");
    refused(&["up", "--cluster", &path("none.toml")], "cannot read the cluster file");
    for (files, told) in
        [(path("none"), "hint: mkdir -p"), (file.clone(), "which is not a directory")]
    {
        let said = lab.call(&["up", "--cluster", &file, "--files", &files]);
        // Where nothing can run a lab, that is what is told.
        if !text(&said).contains("there is no user-mode Linux") {
            refused(&["up", "--cluster", &file, "--files", &files], told);
        }
    }
    let own = directory.path().display().to_string();
    let said = lab.call(&["up", "--cluster", &file, "--snmp", "--files", &own]);
    if !["there is no user-mode Linux", "no snmpd"].iter().any(|none| text(&said).contains(none)) {
        refused(
            &["up", "--cluster", &file, "--snmp", "--files", &own],
            "cluster.toml is there already",
        );
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), ring("linux-bridge", ""));
}

#[test]
fn down_says_what_it_ends_and_ends_no_other_users_lab() {
    use std::os::unix::fs::MetadataExt as _;
    let directory = tempfile::tempdir().unwrap();
    let begin = |place: &Path| {
        std::fs::create_dir_all(place).unwrap();
        std::fs::write(place.join("lab.json"), "").unwrap();
    };
    let place = directory.path().join("lab");
    begin(&place);
    let down = Lab(directory.path()).call(&["down"]);
    for word in ["ending what is left of a lab in", "ended; ", &place.display().to_string()] {
        assert!(text(&down).contains(word), "{word}: {}", text(&down));
    }
    if directory.path().metadata().unwrap().uid() != 0 {
        return;
    }
    // Root could, and is not asked for it: the place came from the environment of somebody else.
    let usual = directory.path().join("meikyo-lab");
    begin(&usual);
    std::os::unix::fs::chown(&usual, Some(65_534), None).unwrap();
    let mut command = meikyo();
    command.args(["lab", "down"]).env_remove("MEIKYO_LAB");
    let refused = command.env("XDG_RUNTIME_DIR", directory.path()).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("belongs to user 65534"), "{}", text(&refused));
    assert!(usual.join("lab.json").exists());
}

#[test]
fn what_an_up_that_was_killed_has_left_is_taken_away() {
    let directory = tempfile::tempdir().unwrap();
    let left = directory.path().join("lab");
    std::fs::create_dir_all(left.join("files")).unwrap();
    let lab = Lab(directory.path());
    let down = lab.call(&["down"]);
    assert!(down.status.success() && left.exists(), "what is no lab's stays");
    // The first file that a lab writes, as it is before anything else is known of it.
    std::fs::write(left.join("lab.json"), "").unwrap();
    assert!(lab.call(&["down"]).status.success());
    assert!(!left.exists());
}

/// Another lab of the same user is not ended in the place of the one in the default directory.
fn a_lab_that_is_not_named_is_not_ended(directory: &Path) {
    let mut command = meikyo();
    command.args(["lab", "down"]).env_remove("MEIKYO_LAB");
    let asked = command.env("XDG_RUNTIME_DIR", directory).output().expect("the binary runs");
    assert_eq!(asked.status.code(), Some(2), "{}", text(&asked));
    let place = directory.join("lab").display().to_string();
    for word in ["which lab?", "4 switches and 8 hosts", place.as_str()] {
        assert!(text(&asked).contains(word), "{word}: {}", text(&asked));
    }
}

#[test]
fn a_lab_comes_up_is_verified_is_measured_and_goes() {
    let directory = tempfile::tempdir().unwrap();
    let lab = Lab(directory.path());
    let none = lab.call(&["status"]);
    assert_eq!(
        (none.status.code(), none.stdout.as_slice()),
        (Some(1), b"no lab runs\n".as_slice())
    );
    let none: Value = serde_json::from_slice(&lab.call(&["status", "--json"]).stdout).unwrap();
    assert_eq!(none["running"], false);
    let Some(up) = lab.up(&ring("linux-bridge", ""), &["--snmp", "--json"]) else { return };
    // At once, against real agents, the recording on the writable mount: all of them answer.
    #[rustfmt::skip]
    let measured = lab.call(&[
        "exec", "manager", "--",
        "meikyo", "measure", "--json", "--cluster", "cluster.toml", "--out", "recording", "--for", "3s",
    ]);
    assert!(measured.status.success(), "{}", text(&measured));
    let measured: Value = serde_json::from_slice(&measured.stdout).unwrap();
    // On a busy machine an answer may take longer than an interval, the next one is skipped, and one
    // may be taken for lost; in an interval that the collector slept through all of them may. An agent that
    // does not listen yet would miss several.
    let [missed, errors, stalls, devices] =
        ["missed", "errors", "stalls", "devices"].map(|count| measured[count].as_u64().unwrap());
    assert!(missed <= 2 + stalls * devices && errors == 0, "{measured}");
    let said: Value = serde_json::from_slice(&up.stdout).unwrap();
    assert_eq!((&said["switches"], &said["hosts"]), (&4.into(), &8.into()));
    let code = lab.call(&["exec", "h3", "--", "sh", "-c", "hostname; exit 5"]);
    assert_eq!((code.status.code(), code.stdout.as_slice()), (Some(5), b"h3\n".as_slice()));
    let none = lab.call(&["exec", "h3", "--", "no-such-program"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none).contains("install `no-such-program` here"), "{}", text(&none));
    let nowhere = lab.call(&["exec", "h99", "--", "true"]);
    assert!(text(&nowhere).contains("hint: `meikyo lab status` lists"), "{}", text(&nowhere));
    a_lab_that_is_not_named_is_not_ended(directory.path());
    let mut endless = lab.command(&["exec", "h3", "--", "yes"]);
    let mut endless = endless.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(endless.stdout.take());
    let endless = endless.wait_with_output().unwrap();
    assert_eq!((endless.status.code(), text(&endless)), (Some(0), String::new()));
    // What is built does not change with the file.
    std::fs::write(directory.path().join("cluster.toml"), ring("linux-bridge", "spare = true"))
        .unwrap();
    // Two at a time wait for each other.
    let mut first = lab.command(&["verify"]).stdout(Stdio::null()).spawn().unwrap();
    let verified = lab.call(&["verify", "--json"]);
    assert!(first.wait().unwrap().success());
    assert!(
        verified.status.success(),
        "{}{}",
        text(&verified),
        String::from_utf8_lossy(&verified.stdout)
    );
    let found: Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!((&found["pairs"], &found["flooded_copies"]), (&56.into(), &0.into()));
    for (link, told) in [
        ("sw1:sw3", "hint: `sw1` is connected to sw2, sw4"),
        ("sw1:sw9", "there is no switch `sw9`"),
        ("sw1", "`sw1` is no link"),
    ] {
        let said = lab.call(&["cut", link]);
        assert_eq!(said.status.code(), Some(2), "{}", text(&said));
        assert!(text(&said).contains(told), "{}", text(&said));
    }
    // A link that is cut is told and missed, and is back when it is mended.
    let said = |arguments: &[&str]| String::from_utf8(lab.call(arguments).stdout).unwrap();
    assert_eq!(said(&["cut", "sw1:sw2"]), "sw1:sw2: 1 of 1 cables cut\n");
    assert!(said(&["status"]).ends_with("\nsw1:sw2: 1 of 1 cables cut\n"));
    assert_eq!(lab.call(&["verify"]).status.code(), Some(1));
    assert_eq!(said(&["mend", "sw2:sw1"]), "sw2:sw1: 1 of 1 cables mended\n");
    assert!(!said(&["status"]).contains("cut"));
    assert!(lab.call(&["prime"]).status.success());
    let recording = directory.path().join("lab/files/recording");
    let interfaces = rows(&recording, "interfaces");
    let of = |name: &str| interfaces.iter().filter(|row| row["device"] == name).count();
    assert!(of("h1") > 0 && of("sw4") > 0, "hosts and switches were measured");
    a_clock_that_is_set_ends_no_measurement(&lab);
}

/// The clock of a lab in user-mode Linux is its own, and can be set.
fn a_clock_that_is_set_ends_no_measurement(lab: &Lab<'_>) {
    const NOT_HERE: i32 = 77;
    let script = "
        meikyo measure --cluster cluster.toml --out stepped --for 4s >/dev/null &
        measure=$!
        until [ -s stepped/log/snmp/progress ] || ! kill -0 $measure; do sleep 0.1; done
        date -s '+1 hour' || { kill -INT $measure; wait $measure; exit 77; }
        sleep 1
        date -s '-2 hours'
        wait $measure";
    let begun = WallTime::now();
    let measured = lab.call(&["exec", "manager", "--", "sh", "-c", script]);
    if measured.status.code() == Some(NOT_HERE) {
        return meikyo_testing::skipped("the clock of this lab is the machine's");
    }
    assert!(measured.status.success(), "{}", text(&measured));
    let took = WallTime::now().since(begun);
    assert!(took > Nanos::from_millis(3_500) && took < PATIENCE, "--for 4s took {took}");
    let recording = lab.0.join("lab/files/stepped");
    let steps: Vec<_> = rows(&recording, "events")
        .into_iter()
        .filter(|row| row["event"] == "clock_step")
        .map(|row| row["text"].as_str().expect("a text").to_owned())
        .collect();
    // Rows are in the order of their times, which a clock that is set back turns around.
    let is_told = |words: &str| steps.iter().filter(|text| text.contains(words)).count() == 1;
    let are_told = steps.len() == 2 && is_told("forward by 3") && is_told("back by 7");
    assert!(are_told, "{steps:?}");
    let polls = rows(&recording, "polls");
    let one = |row: &Value| ["time", "device", "pdu"].map(|name| row[name].to_string());
    let different: BTreeSet<_> = polls.iter().map(one).collect();
    assert!(polls.len() > 12 * 25 && different.len() == polls.len(), "{} polls", polls.len());
    // Each step begins a segment, once.
    let files = files(&recording.join("polls"), "parquet");
    assert!((1..=4).contains(&files.len()), "{files:?}");
}
