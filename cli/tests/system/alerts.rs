//! `meikyo alerts` and the control socket of a running measurement.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Output, Stdio};

use meikyo_testing::http;
use meikyo_units::{Nanos, WallTime};
use serde_json::Value;

use crate::running::{Farm, PATIENCE, Process, instant, interrupt, meikyo, text};

/// A rule that every device breaks at its first reading, and never stops to break.
const LOADED: &str = "\n[[alerts]]\nname = \"loaded\"\nvalue = \"load(load_1min)\"\nabove = -1\n";

/// A measurement of two devices that have broken [`LOADED`], and the cluster file without that rule.
fn loaded() -> (Farm, String, Process) {
    let farm = Farm::start(2);
    let plain = fs::read_to_string(farm.cluster()).unwrap();
    fs::write(farm.cluster(), plain.clone() + LOADED).unwrap();
    let measure = Process(farm.measure(&[]).spawn().unwrap());
    farm.wait_for("events", 2, |row| row["event"] == "alert_raised");
    (farm, plain, measure)
}

/// `meikyo alerts` on the measurement's recording, typed by Anna.
fn alerts_of(farm: &Farm, arguments: &[&str]) -> Output {
    let mut command = meikyo();
    command.arg("alerts").args(arguments).env("MEIKYO_RECORDING", farm.recording());
    command.env("USER", "anna").output().unwrap()
}

#[test]
fn alerts_are_raised_answered_and_cleared_while_the_file_changes() {
    let (farm, plain, mut measure) = loaded();
    let alerts = |arguments: &[&str]| alerts_of(&farm, arguments);
    let listed = alerts(&["--json"]);
    assert_eq!(listed.status.code(), Some(1), "two alerts wait for an answer");
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed["alerts"].as_array().unwrap().len(), 2);
    assert_eq!(listed["alerts"][0]["state"], "raised");
    assert_eq!(listed["alerts"][0]["object"], "load.load_1min");
    let object = "load.load_1min";
    for (arguments, done) in [
        (&["acknowledge", "loaded", "node001", object][..], "acknowledged: `loaded` of `node001`"),
        (
            &["silence", "loaded", "node002", object, "--for", "1h"],
            "silenced for 1h: `loaded` of `node002`",
        ),
    ] {
        let said = alerts(arguments);
        assert!(said.status.success(), "{}", text(&said));
        let expected = format!("{done}, `load.load_1min`\n");
        assert_eq!(String::from_utf8_lossy(&said.stdout), expected);
    }
    let unknown = alerts(&["acknowledge", "loaded", "node003", object]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown).contains("no device is named `node003`"), "{}", text(&unknown));
    let other = alerts(&["silence", "loded", "node001", object]);
    assert!(text(&other).contains("`loaded` of `load.load_1min`"), "{}", text(&other));
    let refused = converse(&farm, r#"{"alert":{"action":"silence","rule":"a","device":"b"}}"#);
    assert_eq!(refused, r#"{"refused":"`silence` needs `for_us`"}"#);
    assert!(converse(&farm, r#"{"alert":{"rule":"a"}}"#).contains("not understood"));
    let silenced = farm.wait_for("events", 1, |row| row["event"] == "alert_silenced");
    assert_eq!(silenced[0]["count"], 3_600_000_000_u64);
    assert_eq!(silenced[0]["text"], "loaded: silenced for 1h by anna");
    let answered = alerts(&[]);
    assert!(answered.status.success(), "every alert has its answer");
    let answered = String::from_utf8(answered.stdout).unwrap();
    assert!(answered.contains("acknowledged") && answered.contains("silenced until"), "{answered}");
    fs::write(farm.cluster(), &plain).unwrap();
    farm.wait_for("events", 2, |row| row["text"] == "loaded: the rule was removed");
    let none = alerts(&[]);
    assert_eq!(String::from_utf8(none.stdout).unwrap(), "no alert is raised\n");
    interrupt(&measure.0);
    assert!(measure.0.wait().unwrap().success());
    let polls = farm.rows("polls");
    let times = polls.iter().filter(|row| row["device"] == "node001");
    let times: Vec<WallTime> = times.map(|row| instant(&row["time"])).collect();
    for pair in times.windows(2) {
        assert_eq!(pair[1].since(pair[0]), Nanos::from_millis(100), "a gap after {pair:?}");
    }
}

#[test]
fn all_are_acknowledged_at_once_and_a_file_without_rules_is_told() {
    let (farm, plain, mut measure) = loaded();
    let alerts = |arguments: &[&str]| alerts_of(&farm, arguments);
    // Of the rules that hold unwritten, none is broken.
    let unknown = alerts(&["acknowledge", "silent"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown).contains("no alert of rule `silent` is raised"), "{}", text(&unknown));
    let said = alerts(&["acknowledge", "loaded"]);
    assert!(said.status.success(), "{}", text(&said));
    let said = String::from_utf8(said.stdout).unwrap();
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(
        lines,
        ["node001", "node002"]
            .map(|device| { format!("acknowledged: `loaded` of `{device}`, `load.load_1min`") })
    );
    farm.wait_for("events", 2, |row| row["event"] == "alert_acknowledged");
    let said = alerts(&["acknowledge", "--all", "--by", "ada"]);
    assert_eq!(String::from_utf8(said.stdout).unwrap().lines().count(), 2);
    farm.wait_for("events", 4, |row| row["event"] == "alert_acknowledged");
    let told = alerts(&["--json"]);
    let listed: Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!((told.status.code(), &listed["rules_set"]), (Some(0), &Value::Bool(true)));

    fs::write(farm.cluster(), format!("default_alerts = false\n{plain}")).unwrap();
    farm.wait_for("events", 1, |row| row["event"] == "no_alert_rules");
    let told = alerts(&["--json"]);
    let listed: Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!(listed["rules_set"], false);
    assert!(text(&alerts(&[])).contains("no alert rules are set"), "{}", text(&alerts(&[])));
    let mut top = meikyo();
    let top = top.args(["top", "--once"]).arg(farm.recording()).output().unwrap();
    let shown = String::from_utf8(top.stdout).unwrap();
    assert!(shown.contains("no alert rules are set"), "{shown}");
    fs::write(farm.cluster(), &plain).unwrap();
    farm.wait_for("events", 1, |row| row["event"] == "alert_rules");
    assert!(!text(&alerts(&[])).contains("no alert rules are set"));
    interrupt(&measure.0);
    assert!(measure.0.wait().unwrap().success());
}

/// One line to the control socket, and the line that comes back.
fn converse(farm: &Farm, line: &str) -> String {
    let socket = farm.recording().join("control.sock");
    let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
    std::io::Write::write_all(&mut stream, format!("{line}\n").as_bytes()).unwrap();
    BufReader::new(stream).lines().next().unwrap().unwrap()
}

#[test]
fn an_alert_that_a_killed_measurement_left_is_cleared_by_the_next() {
    let farm = Farm::start(1);
    let plain = fs::read_to_string(farm.cluster()).unwrap();
    fs::write(farm.cluster(), plain.clone() + LOADED).unwrap();
    let mut first = farm.measure(&[]).spawn().unwrap();
    farm.wait_for("events", 1, |row| row["event"] == "alert_raised");
    first.kill().unwrap();
    first.wait().unwrap();
    fs::write(farm.cluster(), plain).unwrap();
    assert!(farm.measure(&["--for", "1s"]).output().unwrap().status.success());
    let cleared = farm.rows("events");
    let cleared = cleared.iter().filter(|row| row["event"] == "alert_cleared");
    let texts: Vec<_> = cleared.map(|row| row["text"].as_str().unwrap().to_owned()).collect();
    assert_eq!(texts, ["loaded: the measurement began anew"]);
}

/// A server over the recording of a farm.
pub(crate) struct Server {
    _process: Process,
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start(farm: &Farm) -> Self {
        let mut command = meikyo();
        command.arg("serve").arg(farm.recording()).args(["--listen", "127.0.0.1:0"]);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let told = lines.find(|line| line.as_ref().unwrap().starts_with("serving at "));
        let address = told.unwrap().unwrap().split('/').nth(2).unwrap().to_owned();
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self { _process: Process(child), address }
    }

    /// Status and body of an answer.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let answer = http::ask(&self.address, method, &format!("/api/v1/{path}"), body).unwrap();
        (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
    }

    /// The alert of a device once something is true of it.
    fn wait_for(&self, device: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let deadline = WallTime::now() + PATIENCE;
        loop {
            let (status, alerts) = self.ask("GET", "alerts", "");
            assert_eq!(status, 200, "{alerts}");
            let mut alerts = alerts.as_array().unwrap().iter();
            if let Some(alert) = alerts.find(|alert| alert["device"] == device && holds(alert)) {
                return alert.clone();
            }
            assert!(WallTime::now() < deadline, "no such alert of {device}");
        }
    }
}

#[test]
fn alerts_are_acknowledged_and_silenced_over_http_while_the_measurement_runs() {
    let farm = Farm::start(2);
    let plain = fs::read_to_string(farm.cluster()).unwrap();
    fs::write(farm.cluster(), plain + LOADED).unwrap();
    let mut measure = Process(farm.measure(&[]).spawn().unwrap());
    farm.wait_for("events", 2, |row| row["event"] == "alert_raised");
    let server = Server::start(&farm);
    let first = server.wait_for("node001", |alert| alert["state"] == "raised");
    assert_eq!((&first["rule"], &first["object"]), (&"loaded".into(), &"load.load_1min".into()));
    assert_eq!(
        (&first["acknowledged_us"], &first["silenced_until_us"]),
        (&Value::Null, &Value::Null)
    );
    let say = |alert: &Value, what: &str, body: &str| {
        server.ask("POST", &format!("alerts/{}/{what}", alert["id"].as_str().unwrap()), body)
    };
    assert_eq!(say(&first, "acknowledge", "").0, 204);
    let seen = server.wait_for("node001", |alert| !alert["acknowledged_us"].is_null());
    assert_eq!((&seen["id"], &seen["state"]), (&first["id"], &"raised".into()));
    assert!(seen["acknowledged_us"].as_i64() > first["raised_us"].as_i64());
    let second = server.wait_for("node002", |alert| alert["acknowledged_us"].is_null());
    for (body, status) in [
        (r#"{"for_us":0}"#, 400),
        (r#"{"for_us":2592000000001}"#, 400),
        (r#"{"for_us":1000,"by":"x"}"#, 422),
        ("{", 400),
    ] {
        let (refused, told) = say(&second, "silence", body);
        assert_eq!(refused, status, "{body}: {told}");
    }
    assert_eq!(say(&second, "silence", r#"{"for_us":60000000}"#).0, 204);
    let quiet = server.wait_for("node002", |alert| !alert["silenced_until_us"].is_null());
    let noted = farm.wait_for("events", 1, |row| row["event"] == "alert_silenced");
    let until = instant(&noted[0]["time"]) + Nanos::from_secs(60);
    assert_eq!(quiet["silenced_until_us"], until.as_nanos().div_euclid(1_000));
    assert_eq!(noted[0]["device"], "node002");
    assert_eq!(server.ask("POST", "alerts/0123456789abcdef/acknowledge", "").0, 404);
    interrupt(&measure.0);
    assert!(measure.0.wait().unwrap().success());
    let (status, told) = say(&second, "acknowledge", "");
    assert_eq!(status, 409, "{told}");
    assert!(told["error"].as_str().unwrap().contains("only a running measurement"), "{told}");
}
