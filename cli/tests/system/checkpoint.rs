//! `meikyo checkpoint`: what it predicts, and daemons that save, lose a host and give back.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::running::{meikyo, text};

fn checkpoint(directory: &Path, arguments: &[&str]) -> Output {
    meikyo().current_dir(directory).arg("checkpoint").args(arguments).output().unwrap()
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(output)))
}

#[test]
fn the_plan_says_what_the_papers_cluster_could_have_done() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = [
        "plan", "--hosts", "8", "--bytes", "400MB", "--link", "125MB/s", "--links", "2", "--disk",
        "40MB/s", "--xor", "1GB/s", "--memory", "2GB/s", "--block", "1MiB", "--json",
    ];
    let output = checkpoint(directory.path(), &arguments);
    assert!(output.status.success(), "{}", text(&output));
    let plan = json(&output);
    assert_eq!(plan["schema"], "meikyo.checkpoint.plan/1");
    let rows = plan["candidates"].as_array().unwrap();
    let ring = rows.iter().find(|row| row["scheme"] == "ring").unwrap();
    let seconds = |key: &str| ring[key].as_f64().unwrap();
    // 400 / 250; 8/7 * 400 / 40; 6/7 * 400 / 1000.
    assert!((seconds("network_s") - 1.6).abs() < 1e-6);
    assert!((seconds("disk_s") - 80.0 / 7.0).abs() < 1e-6);
    assert!((seconds("coding_s") - 2.4 / 7.0).abs() < 1e-4);
    assert!((seconds("serial_s") - (1.6 + 80.0 / 7.0 + 2.4 / 7.0)).abs() < 1e-3);
    assert_eq!(ring["bound"], "disk");
    assert!(seconds("checkpoint_s") < 11.6, "{ring}");
    // A group that cannot survive what is asked for is an answer, and the answer is no.
    let arguments = ["plan", "--hosts", "3", "--bytes", "1GB", "--survive", "4"];
    let output = checkpoint(directory.path(), &arguments);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(printed(&output).contains("No scheme survives the loss of 4 of 3 hosts"));
}

#[test]
fn the_plan_says_which_racks_may_be_lost_and_leaves_spares_out() {
    let directory = tempfile::tempdir().unwrap();
    let file = |racks: &str| {
        let text = format!(
            "name = \"c\"\nsnmp = {{ version = \"2c\", community = \"env:NONE\" }}\nmeasure = [\"load\"]\n\
             [[hosts]]\nname = \"n[1-6]\"\naddress = \"10.0.0.[1-6]\"\n{racks}\
             [checkpoint]\nspares = \"n[5-6]\"\n"
        );
        fs::write(directory.path().join("cluster.toml"), text).unwrap();
    };
    file("[groups.a]\nmembers = [\"n[1-2]\", \"n5\"]\n[groups.b]\nmembers = [\"n[3-4]\"]\n");
    let arguments = ["plan", "--cluster", "cluster.toml", "--bytes", "1GB"];
    let output = checkpoint(directory.path(), &[&arguments[..], &["--json"]].concat());
    assert!(output.status.success(), "{}", text(&output));
    let plan = json(&output);
    assert_eq!((&plan["hosts"], &plan["group"]), (&4.into(), &4.into()));
    // A copy is in the other rack; one host in three that are left cannot make up for two.
    assert_eq!(plan["lost_with"]["partner"], serde_json::json!([]));
    assert_eq!(
        plan["lost_with"]["ring"],
        serde_json::json!(["rack a (n[1-2])", "rack b (n[3-4])"])
    );
    assert_eq!(plan["lost_with"]["rs2"], serde_json::json!([]));
    let told = printed(&checkpoint(directory.path(), &arguments));
    assert!(told.contains("  partner: any one may be lost\n"), "{told}");
    assert!(
        told.contains("  ring: checkpoints are lost with rack a (n[1-2]), rack b (n[3-4])\n"),
        "{told}"
    );
    file("");
    let told = printed(&checkpoint(directory.path(), &arguments));
    assert!(!told.contains("Racks and switches"), "{told}");
}

/// Daemons of one job; they are killed when it is dropped.
struct Daemons {
    home: tempfile::TempDir,
    running: Vec<Option<Child>>,
}

impl Daemons {
    fn start(hosts: usize) -> Self {
        Self::start_with(hosts, &[])
    }

    fn start_with(hosts: usize, more: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        assert!(checkpoint(home.path(), &["key", "--out", "job.key"]).status.success());
        let free: Vec<TcpListener> =
            (0..hosts).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let mut job = "scheme = \"ring\"\nblock = \"4KiB\"\nkey = \"job.key\"\n".to_owned();
        for (host, listener) in free.iter().enumerate() {
            let address = listener.local_addr().unwrap();
            job += &format!("[[hosts]]\nname = \"node{host}\"\naddresses = [\"{address}\"]\n");
        }
        fs::write(home.path().join("job.toml"), job).unwrap();
        drop(free);
        let mut daemons = Self { home, running: (0..hosts).map(|_| None).collect() };
        for host in 0..hosts {
            daemons.run(host, &[&["--found"], more].concat());
        }
        daemons
    }

    fn run(&mut self, host: usize, more: &[&str]) {
        let (name, directory) = (format!("node{host}"), format!("disk{host}"));
        let mut daemon = meikyo();
        daemon.current_dir(self.home.path()).args(["checkpoint", "daemon", "--job", "job.toml"]);
        daemon.args(["--host", &name, "--directory", &directory]).args(more);
        self.running[host] = Some(daemon.spawn().unwrap());
    }

    fn kill(&mut self, host: usize) {
        if let Some(mut daemon) = self.running[host].take() {
            daemon.kill().unwrap();
            daemon.wait().unwrap();
        }
    }

    fn on(&self, host: usize, arguments: &[&str]) -> Output {
        let directory = format!("disk{host}");
        let (verb, rest) = arguments.split_first().unwrap();
        let mut all = vec![*verb, "--directory", &directory];
        all.extend(rest);
        checkpoint(self.home.path(), &all)
    }

    fn wait_for(&self, what: &str, holds: impl Fn(&Value) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        for host in 0..self.running.len() {
            loop {
                let output = self.on(host, &["status", "--json"]);
                let status = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
                if holds(&status["status"]) {
                    break;
                }
                assert!(Instant::now() < deadline, "{what}: {status} {}", text(&output));
            }
        }
    }

    fn image(&self, host: usize) -> Vec<u8> {
        let octets = (0..100_000 + 7 * host).map(|at| (at * 31 + host * 7) % 251);
        octets.map(|octet| u8::try_from(octet).unwrap()).collect()
    }
}

impl Drop for Daemons {
    fn drop(&mut self) {
        for host in 0..self.running.len() {
            self.kill(host);
        }
    }
}

#[test]
fn a_host_is_lost_with_its_disk_and_its_image_is_given_back() {
    let mut daemons = Daemons::start(3);
    daemons.wait_for("all are members", |status| status["is_member"] == true);
    for host in 0..3 {
        fs::write(daemons.home.path().join("image"), daemons.image(host)).unwrap();
        let saved = daemons.on(host, &["save", "--step", "42", "--image", "image"]);
        assert!(saved.status.success(), "{}", text(&saved));
    }
    daemons.wait_for("it is committed", |status| status["step"] == 42);
    daemons.kill(1);
    fs::remove_dir_all(daemons.home.path().join("disk1")).unwrap();
    daemons.run(1, &[]);
    daemons.wait_for("it is rebuilt", |status| {
        status["is_member"] == true && status["whole"] == serde_json::json!([1])
    });
    for host in 0..3 {
        let restarted = daemons.on(host, &["restart", "--out", "back", "--json"]);
        assert_eq!(json(&restarted)["step"], 42, "{}", text(&restarted));
        let back = fs::read(daemons.home.path().join("back")).unwrap();
        assert!(back == daemons.image(host), "host {host} has other octets");
    }
    let verified = daemons.on(2, &["verify"]);
    assert_eq!(
        (verified.status.code(), printed(&verified)),
        (Some(0), "generation 1: 0 damaged blocks\n".into())
    );
    // A changed octet is found, and the answer is no.
    let image = daemons.home.path().join("disk2/generations/000000000001/image");
    let mut octets = fs::read(&image).unwrap();
    octets[5_000] ^= 1;
    fs::write(&image, octets).unwrap();
    let verified = daemons.on(2, &["verify"]);
    assert_eq!(
        (verified.status.code(), printed(&verified)),
        (Some(1), "generation 1: 1 damaged blocks\n".into())
    );
}

/// Rows of a table of a host's recording that are there by now.
fn recorded(home: &Path, recording: &str, table: &str) -> Vec<Value> {
    let mut query = meikyo();
    let output = query.current_dir(home).args(["query", recording, table, "--json"]).output();
    let output = output.unwrap();
    // The file is made when the first row comes.
    let lines = printed(&output);
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn what_happens_to_checkpoints_stands_in_a_recording_with_what_it_cost() {
    let mut daemons = Daemons::start_with(3, &["--out", "recording"]);
    let home = daemons.home.path().to_owned();
    daemons.wait_for("all are members", |status| status["is_member"] == true);
    for step in [42, 43] {
        for host in 0..3 {
            let mut image = daemons.image(host);
            image[5_000] = u8::try_from(step).unwrap();
            fs::write(home.join("image"), image).unwrap();
            let step = step.to_string();
            let saved = daemons.on(host, &["save", "--step", &step, "--image", "image"]);
            assert!(saved.status.success(), "{}", text(&saved));
        }
        daemons.wait_for("it is committed", |status| status["step"] == step);
    }
    daemons.kill(1);
    fs::remove_dir_all(home.join("disk1")).unwrap();
    daemons.run(1, &["--out", "recording"]);
    daemons.wait_for("it is rebuilt", |status| {
        status["is_member"] == true && status["whole"] == serde_json::json!([1, 2])
    });
    let of = |rows: &[Value], event: &str, host: &str| -> Vec<Value> {
        let is_it = |row: &&Value| {
            row["event"] == format!("checkpoint_{event}")
                && (row["host"] == host || row["device"] == host)
        };
        rows.iter().filter(is_it).cloned().collect()
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    let rows = loop {
        let rows = recorded(&home, "recording", "checkpoints");
        if of(&rows, "rebuilt", "node1").len() == 2 && of(&rows, "committed", "node0").len() == 2 {
            break rows;
        }
        assert!(Instant::now() < deadline, "{rows:#?}");
    };
    let numbers = |rows: Vec<Value>, column: &str| -> Vec<Value> {
        rows.into_iter().map(|row| row[column].clone()).collect()
    };
    // The first host coordinates while it lives, and says what concerns all.
    for event in ["opened", "committed"] {
        assert_eq!(numbers(of(&rows, event, "node0"), "step"), [42, 43], "{rows:#?}");
        assert_eq!(of(&rows, event, "node2").len(), 0);
    }
    let prepared = of(&rows, "prepared", "node2");
    let bytes = daemons.image(2).len() as u64;
    assert_eq!(numbers(prepared.clone(), "bytes"), [bytes, bytes]);
    // All of it, with the padding of the last stripe left out; then a page and its mask.
    assert!(prepared[0]["sent_bytes"].as_u64() >= Some(bytes), "{prepared:#?}");
    assert_eq!((&prepared[1]["sent_bytes"], &prepared[1]["made_of"]), (&4_097.into(), &1.into()));
    assert!(prepared[1]["duration_ns"].as_u64() > Some(0));
    // The bar of time has what concerns all, in words.
    let events = recorded(&home, "recording", "events");
    let committed = of(&events, "committed", "node0");
    let said = committed[1]["text"].as_str().unwrap();
    assert!(said.starts_with("checkpoint 2: step 43 is safe; "), "{said}");
    assert_eq!(of(&events, "prepared", "node2").len(), 0);
}

#[test]
fn what_is_wrong_with_a_job_is_said_with_its_remedy() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    let job = "scheme = \"partner\"\nkey = \"job.key\"\n\
               [[hosts]]\nname = \"a\"\naddresses = [\"127.0.0.1:1\"]\n\
               [[hosts]]\nname = \"b\"\naddresses = [\"127.0.0.1:2\"]\n";
    fs::write(dir.join("job.toml"), job).unwrap();
    let daemon = ["daemon", "--job", "job.toml", "--directory", "disk", "--host"];
    let refused = |host: &str, parts: &[&str]| {
        let output = checkpoint(dir, &[&daemon[..], &[host]].concat());
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        for part in parts {
            assert!(text(&output).contains(part), "{part}: {}", text(&output));
        }
    };
    refused("a", &["cannot read `job.key`", "hint: `meikyo checkpoint key --out job.key`"]);
    assert!(checkpoint(dir, &["key", "--out", "job.key"]).status.success());
    let again = checkpoint(dir, &["key", "--out", "job.key"]);
    assert!(text(&again).contains("a key is never replaced"), "{}", text(&again));
    refused("c", &["`c` is no host of the job", "hint: its hosts are a, b"]);
    fs::set_permissions(dir.join("job.key"), fs::Permissions::from_mode(0o640)).unwrap();
    refused("a", &["can be read by others: `chmod 600` it"]);
    let status = checkpoint(dir, &["status", "--directory", "disk"]);
    assert!(text(&status).contains("no daemon answers at `disk/control`"), "{}", text(&status));
}
