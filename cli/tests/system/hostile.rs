//! Names that devices and files give, made to steer a terminal: no verb lets them through.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Output;

use meikyo_recording::{Kind, StreamOptions, StreamWriter, WhenFull};
use meikyo_snmp::tables::{self, Table};
use serde_json::Value;

use crate::running::{meikyo, rows};
use crate::snmpd::Snmpd;

/// Clears the screen, begins a line of its own, and turns the direction of writing round.
const HOSTILE: &str = "lo\u{1b}[2J\nroot: \u{202e}x";

/// How it is shown.
const SHOWN: &str = r"lo\u{1b}[2J\nroot: \u{202e}x";

/// 2026-11-21T20:00:00Z, ns since the epoch.
const BEGIN: i64 = 1_795_291_200_000_000_000;

/// Nothing of a text steers a terminal, and no line was begun by a name. This list is Unicode's, and
/// not that of the program: category `Cc`, and `Bidi_Control`.
fn is_fit(text: &str) -> bool {
    let steers = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}')
            || ('\u{202a}'..='\u{202e}').contains(&c)
            || ('\u{2066}'..='\u{2069}').contains(&c)
    };
    !text.contains(steers) && !text.lines().any(|line| line.starts_with("root:"))
}

fn texts(output: &Output) -> [String; 2] {
    [&output.stdout, &output.stderr].map(|octets| String::from_utf8(octets.clone()).unwrap())
}

/// A recording in which everything that can be named has the hostile name.
fn record(dir: &Path) {
    let options = StreamOptions { when_full: WhenFull::Wait, ..StreamOptions::COLLECTOR };
    let mut writer =
        StreamWriter::open(dir, Kind::Measured, "snmp", tables::schemas(), options).unwrap();
    let column = |table: Table, name: &str| tables::schema(table).column(name).unwrap();
    let [name, ok, raised] = [HOSTILE, "ok", "alert_raised"].map(|text| writer.symbol(text));
    for poll in 0..30 {
        let time = BEGIN + poll * 100_000_000;
        let mut polls = writer.batch(Table::Polls.index());
        polls.begin_row(time);
        polls.put_symbol(column(Table::Polls, "device"), name);
        polls.put_u64(column(Table::Polls, "pdu"), 0);
        polls.put_symbol(column(Table::Polls, "state"), ok);
        polls.put_i64(column(Table::Polls, "received_us"), 100);
        writer.submit(polls);
        let mut interfaces = writer.batch(Table::Interfaces.index());
        interfaces.begin_row(time);
        interfaces.put_symbol(column(Table::Interfaces, "device"), name);
        interfaces.put_symbol(column(Table::Interfaces, "interface"), name);
        interfaces.put_u64(column(Table::Interfaces, "in_octets"), poll.unsigned_abs() * 1_000);
        interfaces.put_u64(column(Table::Interfaces, "pdu"), 0);
        writer.submit(interfaces);
        let mut objects = writer.batch(Table::Objects.index());
        objects.begin_row(time);
        objects.put_symbol(column(Table::Objects, "device"), name);
        objects.put_symbol(column(Table::Objects, "object"), name);
        objects.put_text(column(Table::Objects, "text"), HOSTILE);
        writer.submit(objects);
    }
    let mut events = writer.batch(Table::Events.index());
    events.begin_row(BEGIN);
    events.put_symbol(column(Table::Events, "device"), name);
    events.put_symbol(column(Table::Events, "event"), raised);
    events.put_symbol(column(Table::Events, "object"), name);
    events.put_text(column(Table::Events, "text"), &format!("rule: {HOSTILE}"));
    writer.submit(events);
    writer.close().unwrap();
}

#[test]
fn no_verb_that_reads_a_recording_prints_what_steers_a_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("recording");
    record(&recording);
    let run = |arguments: &[&str]| {
        let output = meikyo().args(arguments).current_dir(dir.path()).output().unwrap();
        let [stdout, stderr] = texts(&output);
        assert!(is_fit(&stdout) && is_fit(&stderr), "{arguments:?}: {stdout:?} {stderr:?}");
        stdout + &stderr
    };
    let names: &[&[&str]] = &[
        &["query", "recording", "interfaces"],
        &["query", "recording", "interfaces", "--every", "1s"],
        &["query", "recording", "interfaces", "--rate"],
        &["query", "recording", "interfaces", "--received"],
        &["query", "recording", "objects"],
        &["query", "recording", "polls"],
        &["query", "recording", "events"],
        &["query", "recording", "polls", "--device", "nobody"],
        &["alerts", "--recording", "recording"],
        &["alerts", "--recording", "recording", "--all"],
        &["top", "recording", "--once"],
    ];
    for arguments in names {
        let printed = run(arguments);
        assert!(printed.contains(r"lo\u{1b}[2J"), "{arguments:?}: {printed}");
    }
    assert!(run(names[0]).contains(SHOWN));
    for arguments in [
        &["query", "recording"][..],
        &["recording", "info", "recording"],
        &["recording", "check", "recording"],
        &["recording", "compact", "recording"],
        &["export", "recording", "--format", "csv", "--out", "out"],
        &["mark", "--recording", "recording", HOSTILE],
        &["query", HOSTILE],
        &["query", "recording", HOSTILE],
        &["query", "recording", "polls", "--from", HOSTILE],
        &["config", "check", "--cluster", HOSTILE],
        &["alerts", "acknowledge", HOSTILE, HOSTILE, "--recording", "recording"],
    ] {
        run(arguments);
    }
    // Documents for programs are exact: JSON by its own escapes, CSV in quotes.
    for table in ["interfaces", "objects", "polls"] {
        let row = &rows(&recording, table)[0];
        assert_eq!(row["device"], HOSTILE);
    }
    for arguments in [
        &["query", "recording", "interfaces", "--json"][..],
        &["alerts", "--recording", "recording", "--json"],
        &["top", "recording", "--once", "--json"],
    ] {
        let printed = run(arguments);
        let document: Value = serde_json::from_str(printed.lines().next().unwrap()).unwrap();
        assert!(document.to_string().contains(r"lo\u001b[2J\nroot: "), "{document}");
    }
    let csv = fs::read_to_string(dir.path().join("out/interfaces.csv")).unwrap();
    assert!(csv.contains(&format!(",\"{HOSTILE}\",\"{HOSTILE}\",")), "{csv:?}");
    let output = meikyo()
        .args(["query", "recording", "interfaces", "--csv"])
        .current_dir(dir.path())
        .output();
    assert!(texts(&output.unwrap())[0].contains(&format!(",\"{HOSTILE}\",\"{HOSTILE}\",")));
}

#[test]
fn no_verb_that_asks_a_device_prints_what_steers_a_terminal() {
    let hex = |text: &str| text.bytes().map(|octet| format!("{octet:02x}")).collect::<String>();
    let name = hex(HOSTILE);
    // sysDescr, sysName, and ifName of the first interface.
    let lines = format!(
        "rocommunity public\n\
         override .1.3.6.1.2.1.1.1.0 octet_str 0x{name}\n\
         override .1.3.6.1.2.1.1.5.0 octet_str 0x{name}\n\
         override .1.3.6.1.2.1.31.1.1.1.1.1 octet_str 0x{name}\n"
    );
    let Some(agent) = Snmpd::start_with(&lines, Ipv4Addr::LOCALHOST) else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = |measure: &str| {
        format!(
            "name = \"test\"\nmeasure = [{measure}]\nsnmp = {{ version = \"2c\", community = \
             \"env:MEIKYO_TEST_COMMUNITY\" }}\nhosts = [{{ name = \"host\", address = \"{}\" }}]\n\
             [[alerts]]\nname = \"up\"\nvalue = \"interfaces(oper_status)\"\nabove = 0\n",
            agent.address
        )
    };
    let run = |measure: &str, arguments: &[&str]| {
        fs::write(dir.path().join("cluster.toml"), file(measure)).unwrap();
        let mut command = meikyo();
        command.args(arguments).current_dir(dir.path());
        let output = command.env("MEIKYO_TEST_COMMUNITY", "public").output().unwrap();
        let [stdout, stderr] = texts(&output);
        assert!(is_fit(&stdout) && is_fit(&stderr), "{arguments:?}: {stdout:?} {stderr:?}");
        stdout + &stderr
    };
    let absent = r#""interfaces", "interface:absent0", "sysName.0", "sysDescr.0""#;
    let probe = ["probe", "host", "--for", "1s"];
    for (measure, arguments) in [
        (r#""interfaces", "sysName.0""#, &probe[..]),
        (absent, &probe),
        (absent, &["probe"]),
        (absent, &["measure", "--for", "3s"]),
        (absent, &["alerts", "--all"]),
        (absent, &["query", "recording", "interfaces"]),
    ] {
        let printed = run(measure, arguments);
        assert!(printed.contains(r"lo\u{1b}[2J"), "{arguments:?}: {printed}");
    }
    // An object that is no text is shown in hexadecimal.
    assert!(run(absent, &["query", "recording", "objects"]).contains(&name));
    let recorded = rows(&dir.path().join("recording"), "interfaces");
    assert!(recorded.iter().any(|row| row["interface"] == HOSTILE), "it is recorded as it is");
}
