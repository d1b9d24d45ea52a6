//! Processes of the tests: simulated agents in one, a measurement in another.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use meikyo_units::{Nanos, WallTime};
use serde_json::Value;

/// How long a test waits for anything.
pub(crate) const PATIENCE: Nanos = Nanos::from_secs(60);

pub(crate) fn meikyo() -> Command {
    Command::new(env!("CARGO_BIN_EXE_meikyo"))
}

/// The text of a cluster file: a ring of four switches with two hosts each.
pub(crate) fn ring(model: &str, more: &str) -> String {
    format!(
        r#"name = "ring"
measure = ["interfaces"]
snmp = {{ version = "2c", community = "env:MEIKYO_COMMUNITY" }}

[fabric]
topology = "ring 4"
model = "{model}"
{more}

[[hosts]]
name = "h[1-8]"
address = "10.0.0.[1-8]"

[[switches]]
name = "sw[1-4]"
address = "10.0.1.[1-4]"
"#
    )
}

/// A process that ends with the test.
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().expect("our own child can be killed");
        self.0.wait().expect("our own child can be waited for");
    }
}

/// Simulated agents, and the directory with their cluster file.
pub(crate) struct Farm {
    pub(crate) directory: tempfile::TempDir,
    process: Process,
}

impl Farm {
    /// Healthy hosts.
    pub(crate) fn start(hosts: u32) -> Self {
        Self::start_with(hosts, &[])
    }

    /// Hosts, with further arguments of `meikyo farm`.
    pub(crate) fn start_with(hosts: u32, arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut child = meikyo()
            .args(["farm", "--port", "0", "--count", &hosts.to_string(), "--write-cluster"])
            .arg(directory.path())
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().starts_with("ready: ")));
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self { directory, process: Process(child) }
    }

    /// Ends the agents and waits until their files are whole.
    pub(crate) fn end(&mut self) {
        interrupt(&self.process.0);
        assert!(self.process.0.wait().unwrap().success());
    }

    pub(crate) fn cluster(&self) -> PathBuf {
        self.directory.path().join("cluster.toml")
    }

    pub(crate) fn recording(&self) -> PathBuf {
        self.directory.path().join("recording")
    }

    pub(crate) fn measure(&self, arguments: &[&str]) -> Command {
        let mut command = meikyo();
        command.args(["measure", "--quiet", "--cluster"]).arg(self.cluster());
        command.arg("--out").arg(self.recording()).args(arguments);
        command
    }

    /// The rows of a table, whatever is there by now; none while the table is not.
    pub(crate) fn rows(&self, table: &str) -> Vec<Value> {
        rows(&self.recording(), table)
    }

    /// Rows of a table for which something holds, once there are `least` of them.
    pub(crate) fn wait_for(
        &self,
        table: &str,
        least: usize,
        holds: impl Fn(&Value) -> bool,
    ) -> Vec<Value> {
        let deadline = WallTime::now() + PATIENCE;
        loop {
            let rows: Vec<Value> = self.rows(table).into_iter().filter(&holds).collect();
            if rows.len() >= least {
                return rows;
            }
            assert!(WallTime::now() < deadline, "{table} never had {least} such rows");
        }
    }
}

/// The rows of a table of a recording; none while the table is not there.
pub(crate) fn rows(recording: &Path, table: &str) -> Vec<Value> {
    let output = meikyo().arg("query").arg(recording).args([table, "--json"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) fn is_ok(row: &Value) -> bool {
    row["state"] == "ok"
}

pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn interrupt(process: &Child) {
    let done = Command::new("kill").args(["-INT", &process.id().to_string()]).status().unwrap();
    assert!(done.success());
}

/// An instant as `query` prints it.
pub(crate) fn instant(value: &Value) -> WallTime {
    let time: jiff::Timestamp = value.as_str().unwrap().parse().unwrap();
    WallTime::from_nanos(i64::try_from(time.as_nanosecond()).unwrap())
}
