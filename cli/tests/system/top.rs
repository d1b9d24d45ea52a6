//! `meikyo top` as a process: its values are those of the recording, and the terminal is given back.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{ChildStdin, Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use meikyo_units::WallTime;
use serde_json::Value;

use crate::alerts::Server;
use crate::running::{Farm, PATIENCE, Process, instant, interrupt, is_ok, meikyo, text};
use crate::terminal::Screen;

/// A value that went through 24 bits for drawing, against the exact one.
fn close(shown: &Value, exact: f64) -> bool {
    shown.as_f64().is_some_and(|shown| (shown - exact).abs() <= 1e-6 * exact.abs().max(1.0))
}

fn once(farm: &Farm, arguments: &[&str]) -> Output {
    meikyo().arg("top").arg(farm.recording()).arg("--once").args(arguments).output().unwrap()
}

/// The rows of a table with some arguments of `meikyo query`.
fn query(farm: &Farm, arguments: &[&str]) -> Vec<Value> {
    let output =
        meikyo().arg("query").arg(farm.recording()).args(arguments).arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn us(row: &Value) -> i64 {
    instant(&row["time"]).as_nanos().div_euclid(1_000)
}

#[test]
fn what_is_shown_of_a_running_measurement_is_what_the_recording_holds() {
    let farm = Farm::start(3);
    let mut measure = Process(farm.measure(&[]).spawn().unwrap());
    // Rates are known once the counters have been read for some seconds.
    farm.wait_for("polls", 3 * 40, is_ok);
    let shown = once(&farm, &["--json"]);
    assert!(shown.status.success(), "{}", text(&shown));
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!((&shown["schema"], &shown["running"]), (&"meikyo.top/1".into(), &true.into()));
    let devices = shown["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 3);
    let (polls, loads) = (query(&farm, &["polls"]), query(&farm, &["load"]));
    let rates = query(&farm, &["interfaces", "--rate"]);
    for device in devices {
        let name = &device["name"];
        let of =
            |row: &&Value, time: &Value| row["device"] == *name && Some(us(row)) == time.as_i64();
        let poll = polls.iter().find(|row| of(row, &device["time_us"])).unwrap();
        assert_eq!(poll["state"], device["state"]);
        let received = us(poll) + poll["received_us"].as_i64().unwrap();
        assert_eq!(device["received_us"], received);
        // Load may be measured more seldom: the newest row by then.
        let by_then =
            |row: &&Value| row["device"] == *name && Some(us(row)) <= device["time_us"].as_i64();
        let load = loads.iter().filter(by_then).max_by_key(|row| us(row)).unwrap();
        assert!(
            close(&device["load_1min"], load["load_1min"].as_f64().unwrap()),
            "{device} {load}"
        );
        let mut sum = 0.0;
        for interface in device["interfaces"].as_array().unwrap() {
            let named = |row: &&Value| row["interface"] == interface["interface"];
            let row =
                rates.iter().filter(named).find(|row| of(row, &interface["time_us"])).unwrap();
            for rate in ["in_octets_per_s", "out_octets_per_s"] {
                assert!(close(&interface[rate], row[rate].as_f64().unwrap()), "{interface} {row}");
            }
            sum += interface["out_octets_per_s"].as_f64().unwrap();
        }
        assert!(sum > 0.0 && close(&device["out_octets_per_s"], sum), "{device}");
        assert!(device["round_trip_us"].as_f64().unwrap() > 0.0);
    }
    interrupt(&measure.0);
    assert!(measure.0.wait().unwrap().success());
}

#[test]
fn one_screen_is_plain_text_of_the_size_that_is_asked_for() {
    let farm = Farm::start(2);
    assert!(farm.measure(&["--for", "2s"]).status().unwrap().success());
    let screen = |arguments: &[&str]| screen(&farm, arguments);
    let whole = screen(&[]);
    assert_eq!(whole.lines().count(), 30);
    assert!(whole.lines().all(|line| line.chars().count() <= 100), "{whole}");
    assert!(!whole.contains(|c: char| c.is_control() && c != '\n'), "{whole}");
    assert!(whole.contains("node001") && whole.contains("node002"), "{whole}");
    assert!(whole.contains("at the end") && whole.contains("on time "), "{whole}");
    let one = screen(&["--device", "*2", "--metric", "load"]);
    assert!(!one.contains("node001") && one.contains("node002"), "{one}");
    assert!(one.lines().any(|line| line.starts_with("load  0 ")), "{one}");
}

/// One screen of 100 columns and 30 lines.
fn screen(farm: &Farm, arguments: &[&str]) -> String {
    let mut command = meikyo();
    command.args(["top", "--once"]).arg(farm.recording()).args(arguments);
    let output = command.env("COLUMNS", "100").env("LINES", "30").output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// What of two seconds was on time is on the screen; on a busy machine it takes more than one attempt
/// until all of it was.
#[test]
fn a_measurement_without_a_late_answer_is_on_time_to_100_percent() {
    let deadline = WallTime::now() + PATIENCE;
    loop {
        let farm = Farm::start(2);
        assert!(farm.measure(&["--for", "2s"]).status().unwrap().code().is_some());
        let polls = farm.rows("polls");
        assert!(polls.len() >= 20, "{polls:?}");
        let all_on_time = polls.iter().all(is_ok);
        let screen = screen(&farm, &[]);
        assert_eq!(screen.contains("on time 100 %"), all_on_time, "{screen}");
        if all_on_time {
            return;
        }
        assert!(WallTime::now() < deadline, "an answer was late in every attempt");
    }
}

#[test]
fn what_is_no_recording_or_no_terminal_is_said_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let none = meikyo().args(["top", "--once"]).arg(directory.path()).output().unwrap();
    assert_eq!(none.status.code(), Some(2));
    assert!(
        text(&none).contains("hint: name the directory that `meikyo measure"),
        "{}",
        text(&none)
    );
    let pipe = meikyo().arg("top").arg(directory.path()).stdin(Stdio::null()).output().unwrap();
    assert_eq!(pipe.status.code(), Some(2));
    assert!(text(&pipe).contains("hint: print one screen with"), "{}", text(&pipe));
}

/// `meikyo top` in a terminal of its own, which `script` of util-linux makes.
struct InTerminal {
    _script: Process,
    keys: ChildStdin,
    screen: Arc<Mutex<Screen>>,
}

impl InTerminal {
    fn start(farm: &Farm) -> Self {
        Self::at(&farm.recording())
    }

    fn at(recording: &Path) -> Self {
        let command = format!(
            "stty rows 40 cols 120; echo before=$(stty -g),; \
             sh -c 'echo pid=$$,; exec {} top {}'; echo code=$?,; echo after=$(stty -g),",
            env!("CARGO_BIN_EXE_meikyo"),
            recording.display(),
        );
        let mut script = Command::new("script")
            .args(["--quiet", "--command", &command, "/dev/null"])
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = script.stdout.take().unwrap();
        let screen = Arc::new(Mutex::new(Screen::new(40, 120)));
        let shown = Arc::clone(&screen);
        std::thread::spawn(move || {
            let (mut octets, mut waiting) = ([0; 65_536], Vec::new());
            while let Ok(read @ 1..) = output.read(&mut octets) {
                waiting.extend_from_slice(&octets[..read]);
                // A character that was cut in two waits for its other half.
                let whole = match std::str::from_utf8(&waiting) {
                    Ok(text) => text.len(),
                    Err(error) => error.valid_up_to(),
                };
                let rest = waiting.split_off(whole);
                shown.lock().unwrap().write(std::str::from_utf8(&waiting).unwrap());
                waiting = rest;
            }
        });
        let keys = script.stdin.take().unwrap();
        Self { _script: Process(script), keys, screen }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits until something is true of the terminal; what is then seen, and all that was written.
    fn wait_until(&self, wanted: &str, holds: impl Fn(&Screen) -> bool) -> (String, String) {
        let deadline = WallTime::now() + PATIENCE;
        loop {
            {
                let screen = self.screen.lock().unwrap();
                if holds(&screen) {
                    return (screen.text(), screen.written.clone());
                }
                assert!(WallTime::now() < deadline, "`{wanted}` is not seen in\n{}", screen.text());
            }
            std::thread::yield_now();
        }
    }

    /// Waits until a text is seen.
    fn see(&self, wanted: &str) -> String {
        self.wait_until(wanted, |screen| screen.text().contains(wanted)).0
    }

    /// Waits until a text is seen no more.
    fn see_gone(&self, unwanted: &str) {
        self.wait_until(unwanted, |screen| !screen.text().contains(unwanted));
    }

    /// What the terminal's shell says after `name=`, once it has.
    fn said(&self, name: &str) -> String {
        let name = format!("{name}=");
        let value = |screen: &Screen| {
            let (_, rest) = screen.written.split_once(&name)?;
            rest.split_once(',').map(|(value, _)| value.to_owned())
        };
        self.wait_until(&name, |screen| value(screen).is_some());
        value(&self.screen.lock().unwrap()).unwrap()
    }

    /// The id of the process that draws.
    fn process(&self) -> u32 {
        self.said("pid").parse().unwrap()
    }

    fn signal(&self, name: &str) {
        let pid = self.process().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// The settings of the terminal, as `stty` prints them.
    fn settings(&self, format: &str) -> String {
        let terminal = format!("/proc/{}/fd/0", self.process());
        let output = Command::new("stty").args([format, "-F", &terminal]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Waits until the terminal is as the shell had it, or raw.
    fn wait_for_mode(&self, of_shell: bool) {
        let deadline = WallTime::now() + PATIENCE;
        loop {
            let holds = if of_shell {
                self.settings("-g").trim() == self.said("before")
            } else {
                let settings = self.settings("-a");
                let set = |wanted| settings.split_whitespace().any(|word| word == wanted);
                ["-icanon", "-echo", "-isig"].into_iter().all(set)
            };
            if holds {
                return;
            }
            let settings = self.settings("-a");
            assert!(WallTime::now() < deadline, "of the shell, {of_shell}, is not: {settings}");
        }
    }

    /// Waits until the process has stopped as a job, or goes on.
    fn wait_for_stopped(&self, stopped: bool) {
        let status = format!("/proc/{}/status", self.process());
        let deadline = WallTime::now() + PATIENCE;
        while std::fs::read_to_string(&status).unwrap().contains("State:\tT") != stopped {
            assert!(WallTime::now() < deadline, "stopped, {stopped}, never was");
        }
    }

    /// Waits for the end: how the terminal was left, and the code.
    fn end(self) {
        assert_eq!(self.said("code"), "0");
        assert_eq!(self.said("after"), self.said("before"));
        let written = self.screen.lock().unwrap().written.clone();
        was_left(written.split_once("code=").unwrap().0);
    }
}

/// That the other screen was left, the mouse let go of, the cursor shown, and nothing drawn since.
fn was_left(written: &str) {
    let last = written.rsplit("\u{1b}[?1049h").next().unwrap();
    for restored in ["\u{1b}[?1000l", "\u{1b}[?25h"] {
        assert!(last.contains(restored), "{restored:?} is missing in {last:?}");
    }
    let (_, since) = last.split_once("\u{1b}[?1049l").expect(last);
    let mut screen = Screen::new(40, 120);
    screen.write(since);
    assert_eq!(screen.text().trim(), "");
}

#[test]
fn keys_are_answered_in_a_terminal_and_it_is_given_back() {
    let farm = Farm::start(4);
    let mut measure = Process(farm.measure(&[]).spawn().unwrap());
    farm.wait_for("polls", 4 * 10, is_ok);
    let mut top = InTerminal::start(&farm);
    top.see("● live");
    let first = top.see("node004");
    top.wait_until("another instant", |screen| {
        screen.text().lines().next() != first.lines().next()
    });
    top.press("?");
    top.see("this help");
    top.press("x");
    top.see_gone("this help");
    top.press("m");
    top.see("colour by");
    top.press("\u{1b}[B\r");
    top.see("received  0 ");
    top.press("/node003\r");
    top.see("1 of 4 devices");
    top.press("\r");
    top.see("packets out");
    top.press("\r");
    top.see_gone("packets out");
    top.press(" ");
    top.see("‖ paused");
    // Into the past, which is read from the log, and back.
    top.press("[");
    top.see("‖ past");
    top.press(" ");
    top.see("▸ replayed");
    top.see("bit/s");
    top.press("n");
    top.see("● live");
    top.press("q");
    top.end();
    interrupt(&measure.0);
    assert!(measure.0.wait().unwrap().success());
}

#[test]
fn of_several_clusters_one_is_opened_and_left_again() {
    let farm = Farm::start(3);
    assert!(farm.measure(&["--for", "2s"]).status().unwrap().code().is_some());
    let received = tempfile::tempdir().unwrap();
    for name in ["east", "west"] {
        let of = received.path().join("clusters").join(name);
        meikyo_testing::files::copy_tree(&farm.recording(), &of).unwrap();
    }
    let mut top = InTerminal::at(received.path());
    let all = top.see("clusters 2");
    let row = |name: &str| {
        all.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{all}"))
    };
    for name in ["east", "west"] {
        assert!(row(name).split_whitespace().nth(1) == Some("3"), "its devices are counted: {all}");
    }
    top.press("\u{1b}[B\r");
    top.see("at the end");
    let west = top.see("node003");
    assert!(west.lines().next().is_some_and(|line| line.contains("west")), "{west}");
    // Esc closes what is open, then goes back.
    top.press("\r");
    top.see("packets out");
    top.press("\u{1b}");
    top.see_gone("packets out");
    top.press("\u{1b}");
    top.see("clusters 2");
    top.press("/nobody\r");
    top.see("no cluster and no device is called `nobody`");
    top.press("\u{1b}");
    top.see("clusters 2");
    top.press("q");
    top.end();
    let once = |more: &[&str]| {
        let printed = meikyo().arg("top").arg(received.path()).arg("--once").args(more).output();
        printed.unwrap()
    };
    let said: Value = serde_json::from_slice(&once(&["--json"]).stdout).unwrap();
    let polls = query(&farm, &["polls"]);
    let of = |state: &str| polls.iter().filter(|row| row["state"] == state).count();
    for cluster in said["clusters"].as_array().unwrap() {
        assert_eq!((&cluster["ok"], &cluster["late"]), (&of("ok").into(), &of("late").into()));
        assert_eq!(cluster["devices"].as_array().unwrap().len(), 3, "{cluster}");
    }
    let refused = once(&["--device", "node001"]);
    assert!(text(&refused).contains("hint: name its recording"), "{}", text(&refused));
}

#[test]
fn a_cluster_at_a_server_is_opened_live_and_says_how_far_it_is_behind_when_the_server_is_gone() {
    let mut farm = Farm::start(3);
    let mut measure = Process(farm.measure(&[]).spawn().unwrap());
    farm.wait_for("polls", 3 * 10, is_ok);
    let server = Server::start(&farm);
    let mut top = InTerminal::at(Path::new(&format!("http://{}", server.address)));
    top.see("clusters 1");
    top.press("d");
    top.see("devices node001 node002 node003");
    top.press("d\r");
    top.see("● live");
    // Rates of counters, which two readings make.
    top.see("bit/s");
    let first = top.see("node003");
    assert!(first.lines().next().is_some_and(|line| line.contains("recording")), "{first}");
    top.wait_until("another instant", |screen| {
        screen.text().lines().next() != first.lines().next()
    });
    top.press("/node002\r");
    top.see("1 of 3 devices");
    top.press("\r");
    top.see("packets out");
    top.press("[");
    top.see("the past of a cluster at a server is on its page");
    // Who stops answering is silent, as by the recording itself.
    farm.end();
    top.see("silent 3");
    drop(server);
    top.see("○ this view is ");
    top.see("cannot connect to");
    // Esc closes what is open, then the filter, then goes back.
    top.press("\u{1b}");
    top.see_gone("packets out");
    top.press("\u{1b}");
    top.see_gone("1 of 3 devices");
    top.press("\u{1b}");
    top.see("clusters 1");
    top.press("q");
    top.end();
    interrupt(&measure.0);
    assert!(measure.0.wait().unwrap().code().is_some());
}

#[test]
fn a_signal_gives_the_terminal_back_too() {
    let farm = Farm::start(1);
    assert!(farm.measure(&["--for", "4s"]).status().unwrap().success());
    let mut top = InTerminal::start(&farm);
    // A finished recording is shown at its end, and replayed from its begin.
    top.see("at the end");
    top.press(" ");
    top.see("▸ replayed");
    top.see("bit/s");
    top.signal("-TERM");
    top.end();
}

#[test]
fn it_ends_with_its_terminal() {
    let farm = Farm::start(1);
    assert!(farm.measure(&["--for", "2s"]).status().unwrap().success());
    let top = InTerminal::start(&farm);
    top.see("at the end");
    let status = format!("/proc/{}/status", top.process());
    drop(top);
    let deadline = WallTime::now() + PATIENCE;
    // Whoever takes it over may not have waited for it yet.
    while std::fs::read_to_string(&status).is_ok_and(|status| !status.contains("State:\tZ")) {
        assert!(WallTime::now() < deadline, "it goes on without a terminal");
        std::thread::yield_now();
    }
}

#[test]
fn while_it_is_suspended_the_terminal_is_the_shells_and_it_goes_on_afterwards() {
    let farm = Farm::start(2);
    let mut measure = Process(farm.measure(&[]).spawn().unwrap());
    farm.wait_for("polls", 2 * 10, is_ok);
    let mut top = InTerminal::start(&farm);
    let entered = |screen: &Screen| screen.written.matches("\u{1b}[?1049h").count();
    let left = |screen: &Screen| screen.written.matches("\u{1b}[?1049l").count();
    // What was drawn before it stopped does not count.
    let is_drawn = |screen: &Screen| {
        let (_, since) = screen.written.rsplit_once("\u{1b}[?1049h").unwrap();
        let mut anew = Screen::new(40, 120);
        anew.write(since);
        anew.text().contains("● live") && anew.text().contains("node002")
    };
    for times in 1..=2 {
        top.wait_until("the view", |screen| entered(screen) == times && is_drawn(screen));
        top.wait_for_mode(false);
        // By the key the first time, by a signal the second.
        if times == 1 {
            top.press("\u{1a}")
        } else {
            top.signal("-TSTP")
        }
        top.wait_for_stopped(true);
        let (_, written) = top.wait_until("the shell's screen", |screen| left(screen) == times);
        was_left(&written);
        top.wait_for_mode(true);
        top.signal("-CONT");
        top.wait_for_stopped(false);
    }
    top.wait_until("the view", |screen| entered(screen) == 3 && is_drawn(screen));
    top.wait_for_mode(false);
    top.press("?");
    top.see("this help");
    top.press("xq");
    top.end();
    interrupt(&measure.0);
    assert!(measure.0.wait().unwrap().success());
}
