//! The real `influxd` from Debian, on files and a port of its own.

use std::path::Path;
use std::process::{Command, Stdio};

/// A command that starts the database with all its files below `directory`, answering over HTTP on that
/// port of loopback; it prints nothing and reports to nobody.
#[expect(clippy::disallowed_methods, reason = "the database is a program")]
pub fn command(directory: &Path, port: u16) -> Command {
    let mut command = Command::new("influxd");
    command.args(["run", "-config", "/dev/null"]);
    for (name, below) in [("DATA_DIR", "data"), ("DATA_WAL_DIR", "wal"), ("META_DIR", "meta")] {
        command.env(format!("INFLUXDB_{name}"), directory.join(below));
    }
    command.env("INFLUXDB_HTTP_BIND_ADDRESS", format!("127.0.0.1:{port}"));
    command.env("INFLUXDB_BIND_ADDRESS", "127.0.0.1:0");
    command.env("INFLUXDB_REPORTING_DISABLED", "true");
    command.env("INFLUXDB_MONITOR_STORE_ENABLED", "false");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}
