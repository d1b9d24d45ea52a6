//! The flows do in a real `ovs-vswitchd` what the settings say: its own trace is the oracle.
//!
//! The daemons run without privileges, in a directory of their own, over ports that are dummies.

mod deployment;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use meikyo_fabric::dialect::{SwitchState, Templates};
use meikyo_fabric::{PortNumber, PortSettings, SwitchId, SwitchSettings, Vlan, VlanSet};
use meikyo_units::Nanos;

use crate::built::{self, open_vswitch};
use crate::shapes::vlan;

const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";
const DETACHED: [&str; 4] = ["--detach", "--no-chdir", "--pidfile", "--log-file"];

/// Both daemons; they end with it.
struct Switch {
    directory: tempfile::TempDir,
}

impl Switch {
    /// Started; `None` where Open vSwitch is not installed.
    fn start() -> Option<Self> {
        if !Path::new(SCHEMA).exists() {
            meikyo_testing::lacking(
                "Open vSwitch is not installed (Debian package openvswitch-switch)",
            );
            return None;
        }
        let switch = Self { directory: tempfile::tempdir().expect("a directory") };
        let remote = switch.remote();
        switch.run("ovsdb-tool", &["create", "conf.db", SCHEMA], "");
        let listen = format!("--remote=p{remote}");
        switch.run("ovsdb-server", &[&DETACHED[..], &[&listen, "conf.db"]].concat(), "");
        switch.run("ovs-vsctl", &["--no-wait", "init"], "");
        switch.start_forwarding();
        Some(switch)
    }

    fn remote(&self) -> String {
        format!("unix:{}", self.directory.path().join("db.sock").display())
    }

    fn start_forwarding(&self) {
        let dummy = ["--enable-dummy=override", "--disable-system", &self.remote()];
        self.run("ovs-vswitchd", &[&DETACHED[..], &dummy].concat(), "");
    }

    /// Ends the one that forwards, and returns when it has: it answers before it does.
    fn stop_forwarding(&self) {
        self.run("ovs-appctl", &["exit"], "");
        let of_process = self.directory.path().join("ovs-vswitchd.pid");
        let deadline = Instant::now() + Duration::from_secs(60);
        while of_process.exists() {
            assert!(Instant::now() < deadline, "ovs-vswitchd goes on");
            std::thread::yield_now();
        }
    }

    /// Runs a program of Open vSwitch in its directory; it must succeed.
    fn run(&self, program: &str, arguments: &[&str], input: &str) -> String {
        let Output { status, stdout, stderr } = self.output(program, arguments, input);
        let error = String::from_utf8_lossy(&stderr);
        assert!(status.success(), "{program} {arguments:?}: {error}");
        String::from_utf8_lossy(&stdout).into_owned()
    }

    fn output(&self, program: &str, arguments: &[&str], input: &str) -> Output {
        let path = self.directory.path();
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(path)
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .envs(
                ["OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVS_SYSCONFDIR"]
                    .map(|name| (name, path)),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("Open vSwitch is installed");
        let mut stdin = child.stdin.take().expect("its input is a pipe");
        stdin.write_all(input.as_bytes()).expect("a program that reads");
        drop(stdin);
        child.wait_with_output().expect("a program that ends")
    }

    /// Carries out a script.
    fn carry_out(&self, script: &str) {
        self.run("sh", &["-e"], &without_pause_frames(script));
    }

    /// Sends a frame and gives the ports that it leaves by, each with the tag that it has there.
    fn send(&self, port: u16, tag: Option<Vlan>, from: u8, to: u8) -> BTreeSet<(u16, Option<u16>)> {
        let tag = tag.map_or_else(String::new, |vlan| format!(",dl_vlan={vlan}"));
        let flow = format!(
            "in_port={port}{tag},dl_src=02:00:00:00:00:{from:02x},dl_dst=02:00:00:00:00:{to:02x}"
        );
        let trace = self.run("ovs-appctl", &["ofproto/trace", "br0", &flow, "-generate"], "");
        let actions = trace.lines().find_map(|line| line.strip_prefix("Datapath actions: "));
        let mut tag: Option<u16> = tag.strip_prefix(",dl_vlan=").and_then(|id| id.parse().ok());
        let mut out = BTreeSet::new();
        for action in split(actions.expect("a trace ends with actions")) {
            if let Some(push) = action.strip_prefix("push_vlan(vid=") {
                tag = push.split(',').next().and_then(|id| id.parse().ok());
            } else if action == "pop_vlan" {
                tag = None;
            } else if action != "drop" {
                out.insert((action.parse().expect("a port"), tag));
            }
        }
        out
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        for daemon in ["ovs-vswitchd", "ovsdb-server"] {
            self.output("ovs-appctl", &["-t", daemon, "exit"], "");
        }
    }
}

/// Dummies do not have pause frames.
fn without_pause_frames(script: &str) -> String {
    script
        .lines()
        .filter(|line| !line.starts_with("ethtool"))
        .flat_map(|line| [line, "\n"])
        .collect()
}

/// Actions between commas that stand in no parentheses.
fn split(actions: &str) -> Vec<String> {
    let mut depth = 0;
    let mut parts = vec![String::new()];
    for letter in actions.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        match letter {
            ',' if depth == 0 => parts.push(String::new()),
            _ => parts.last_mut().expect("one at least").push(letter),
        }
    }
    parts
}

fn port(number: u16, pvid: Option<usize>, untagged: &str, tagged: &str) -> PortSettings {
    let set = |text: &str| text.parse().expect("a set of VLANs");
    PortSettings {
        ports: vec![PortNumber(number)],
        bundle: None,
        pvid: pvid.map(vlan),
        untagged: set(untagged),
        tagged: set(tagged),
        accept_tagged: true,
        flow_control: true,
    }
}

/// Where a flooded frame of a VLAN goes, by the settings.
fn flooded(settings: &SwitchSettings, vlan: Vlan, from: u16) -> BTreeSet<(u16, Option<u16>)> {
    let ports = settings.ports.iter().filter(|own| own.is_member(vlan) && own.ports[0].0 != from);
    ports.map(|own| (own.ports[0].0, own.tagged.contains(vlan).then(|| vlan.id()))).collect()
}

#[test]
fn a_real_open_vswitch_does_what_the_settings_say() {
    let Some(switch) = Switch::start() else { return };
    let wiring = built::wiring("open-vswitch", 1, &[]);
    let mut settings = SwitchSettings {
        vlans: VlanSet::EMPTY,
        ports: vec![
            port(1, Some(101), "101-104", "4000"),
            port(2, Some(102), "101-104", ""),
            port(7, None, "", "101,102,4000"),
            port(8, None, "", "103,104"),
        ],
        ageing: Some(Nanos::from_secs(1_000)),
        spanning_tree: false,
    };
    settings.vlans = "101-104,4000".parse().unwrap();
    let templates = Templates::built_in();
    let render = |before: Option<&SwitchState>, after: &SwitchState| {
        let (dialect, one) = (open_vswitch(), SwitchId::new(0));
        match before {
            None => templates.render(dialect, &wiring, one, after),
            Some(before) => templates.render_change(dialect, &wiring, one, before, after),
        }
    };
    let first = SwitchState::unmanaged(settings.clone());
    switch.carry_out(&render(None, &first).unwrap());

    // To an address that nobody has: to every port of the VLAN, tagged there as it is set.
    for own in &settings.ports {
        let number = own.ports[0].0;
        for id in [101, 102, 103, 104, 4_000, 105] {
            let expected = match own.is_member(vlan(id)) {
                true => flooded(&settings, vlan(id), number),
                false => BTreeSet::new(),
            };
            assert_eq!(switch.send(number, Some(vlan(id)), 0x10, 0x77), expected, "{number}, {id}");
        }
        let expected = own.pvid.map_or_else(BTreeSet::new, |pvid| flooded(&settings, pvid, number));
        assert_eq!(switch.send(number, None, 0x10, 0x77), expected, "{number}");
    }

    // A host that sent in 101 is known there, and in no other VLAN: learning is independent.
    switch.send(1, None, 1, 0xff);
    assert_eq!(switch.send(7, Some(vlan(101)), 2, 1), BTreeSet::from([(1, None)]));
    assert_eq!(switch.send(7, Some(vlan(102)), 2, 1), flooded(&settings, vlan(102), 7));
    // Primed in 102 it is known there, too, behind the same port.
    switch.send(1, Some(vlan(102)), 1, 0xff);
    assert_eq!(switch.send(2, None, 3, 1), BTreeSet::from([(1, None)]));
    // The manager's frames keep their tag.
    switch.send(1, Some(vlan(4_000)), 1, 0xff);
    assert_eq!(switch.send(7, Some(vlan(4_000)), 9, 1), BTreeSet::from([(1, Some(4_000))]));

    // Another PVID, as after a failure: what was learned stays.
    let mut moved = first.clone();
    moved.settings.ports[0].pvid = Some(vlan(103));
    switch.carry_out(&render(Some(&first), &moved).unwrap());
    assert_eq!(switch.send(1, None, 1, 0x77), flooded(&settings, vlan(103), 1));
    assert_eq!(switch.send(2, None, 3, 1), BTreeSet::from([(1, None)]));
}
