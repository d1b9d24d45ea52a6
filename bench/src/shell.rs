//! The paper's other side: one `snmpget` process a request, in the background from a shell.

use std::io;
use std::net::SocketAddrV4;
use std::process::{Command, Stdio};

use meikyo_console::output::real;
use meikyo_units::{Nanos, WallTime};

/// Every request starts a process; after 256, the paper's unit, the shell waits for all of them.
const SCRIPT: &str = r#"
count=$1 first=$2 second=$3
shift 3
sent=0
while [ "$sent" -lt "$count" ]; do
    snmpget -v2c -c public -Oqv "$first" "$@" 2>&1 &
    snmpget -v2c -c public -Oqv "$second" "$@" 2>&1 &
    sent=$((sent + 1))
    [ $((sent % 128)) -ne 0 ] || wait
done
wait
"#;

/// What the shell did.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShellRun {
    /// Requests to each of the two agents that were really made.
    pub(crate) each: u64,
    /// Values that came back.
    pub(crate) values: u64,
    /// From the first process to the end of the last.
    pub(crate) wall: Nanos,
}

impl ShellRun {
    /// The time that `each` requests would have taken, processes being equally slow.
    pub(crate) fn extrapolated_s(&self, each: u64) -> f64 {
        self.wall.as_secs_f64() * real(each) / real(self.each)
    }
}

/// Asks each of two agents `each` times for `objects`.
pub(crate) fn run(
    agents: [SocketAddrV4; 2],
    each: u64,
    objects: &[String],
) -> io::Result<ShellRun> {
    let mut command = Command::new("sh");
    command.args(["-c", SCRIPT, "sh", &each.to_string()]);
    command.args(agents.map(|agent| agent.to_string())).args(objects);
    let before = WallTime::now();
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    let wall = WallTime::now().since(before);
    if !output.status.success() {
        return Err(io::Error::other(format!("the shell ended with {}", output.status)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let values = text.lines().filter(|line| !line.contains("Timeout") && !line.is_empty()).count();
    Ok(ShellRun { each, values: values as u64, wall })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_extrapolated_by_the_count_really_run() {
        let run = ShellRun { each: 500, values: 1000, wall: Nanos::from_secs(12) };
        assert!((run.extrapolated_s(10_000) - 240.0).abs() < 1e-9);
    }
}
