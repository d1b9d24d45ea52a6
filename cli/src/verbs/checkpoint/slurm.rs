//! Slurm: the hosts of an allocation, how a command is started on one, which of them Slurm holds failed, and the job's return to the
//! queue.
//!
//! It is asked by its own tools, `scontrol`, `sinfo` and `srun`, and nothing of it is linked.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use meikyo_console::failure::Failure;
use meikyo_console::output;
use signal_hook::consts::SIGUSR1;

use super::trouble::now;

/// Between two questions for the states of hosts.
const ASK_AGAIN: Duration = Duration::from_secs(2);

/// A host of the allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) address: IpAddr,
}

/// What Slurm says of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Told {
    name: String,
    /// An address, or a name that has one.
    address: String,
    state: String,
}

fn variable(name: &str) -> Result<String, Failure> {
    std::env::var(name).map_err(|_| {
        Failure::new(format!("`{name}` is not set: this is no job of Slurm"))
            .hint("start it in a batch script: sbatch --nodes=4 --no-kill --requeue --signal=B:USR1@60 SCRIPT")
    })
}

/// Whether Slurm has started this job before.
pub(super) fn is_requeued() -> bool {
    std::env::var("SLURM_RESTART_COUNT").is_ok_and(|count| count != "0")
}

/// The hosts of this job, in Slurm's order.
pub(super) fn allocation() -> Result<Vec<Node>, Failure> {
    let list = variable("SLURM_JOB_NODELIST")?;
    let names = answer(&mut scontrol(&["show", "hostnames", &list]))?;
    let told = answer(&mut scontrol(&["--oneliner", "show", "node", &list]))?;
    let told: BTreeMap<String, Told> =
        told.lines().filter_map(told_in).map(|told| (told.name.clone(), told)).collect();
    let node = |name: &str| {
        let address = told.get(name).map_or(name, |told| &told.address);
        let found = (address, 0).to_socket_addrs().ok().and_then(|mut all| all.next());
        let found = found.ok_or_else(|| {
            Failure::new(format!("`{address}`, which Slurm has as the address of {name}, has none"))
                .hint("`scontrol show node` names it; it has to be an address, or a name that is known here")
        })?;
        Ok(Node { name: name.to_owned(), address: found.ip() })
    };
    names.split_whitespace().map(node).collect()
}

/// The words that start a text for its shell on a host of this job, which is to follow. It may use all that the job has there.
pub(super) fn step(host: &str) -> Vec<String> {
    let words = ["srun", "--quiet", "--overlap", "--nodes=1", "--ntasks=1", "--cpu-bind=none"];
    let mut words = words.map(str::to_owned).to_vec();
    words.push(format!("--nodelist={host}"));
    words.extend(["/bin/sh", "-c"].map(str::to_owned));
    words
}

/// Puts this job back into the queue, to go on from this step; Slurm ends it meanwhile.
pub(super) fn requeue(step: u64) -> Result<(), Failure> {
    let job = variable("SLURM_JOB_ID")?;
    output::say(&format!(
        "job {job} goes back into the queue, and on from checkpoint {step} when its turn comes"
    ));
    answer(&mut scontrol(&["requeue", &job])).map(drop)
}

/// Whether a signal among these is the one by which Slurm says that the time of the job is nearly over (`--signal=B:USR1@60`).
pub(super) fn is_time_up(raised: &[u8]) -> bool {
    raised.iter().any(|&signal| i32::from(signal) == SIGUSR1)
}

/// The state of a host, if Slurm holds it failed.
pub(super) fn failure_of(host: &str) -> Option<String> {
    failed(&answer(&mut states(host)).ok()?).remove(host)
}

/// What asks for the states of hosts, a short line for each.
fn states(list: &str) -> Command {
    asking("sinfo", &["--noheader", "--Node", "--nodes", list, "--format", "NodeName=%N State=%T"])
}

fn scontrol(words: &[&str]) -> Command {
    asking("scontrol", words)
}

#[expect(clippy::disallowed_methods, reason = "Slurm is asked by its own tools")]
fn asking(tool: &str, words: &[&str]) -> Command {
    let mut command = Command::new(tool);
    command.args(words).stdin(Stdio::null());
    command
}

fn answer(command: &mut Command) -> Result<String, Failure> {
    let hint =
        "`scontrol` and `sinfo` (Debian: slurm-client) have to be there, and to reach slurmctld";
    let output = command
        .output()
        .map_err(|error| Failure::new(format!("cannot start Slurm's tools: {error}")).hint(hint))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Failure::new(format!("Slurm refuses: {said}")).hint(hint))
}

/// A line of `scontrol --oneliner show node` or of `sinfo`; nothing of one that is none.
fn told_in(line: &str) -> Option<Told> {
    let value = |name: &str| {
        let mut words = line.split_whitespace();
        words.find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
    };
    let (name, state) = (value("NodeName")?, value("State")?);
    let address = value("NodeAddr").unwrap_or_else(|| name.clone());
    Some(Told { name, address, state })
}

/// Hosts that are held failed, with their states.
fn failed(text: &str) -> BTreeMap<String, String> {
    let told = text.lines().filter_map(told_in).filter(|told| is_failed(&told.state));
    told.map(|told| (told.name, told.state)).collect()
}

/// Whether a state, as `ALLOCATED+FAIL`, `down*` or `failing`, is that of a host on which nothing runs any more, or is not to.
fn is_failed(state: &str) -> bool {
    state.split('+').any(|part| {
        let word = part.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric());
        let gone = ["DOWN", "FAIL", "FAILING", "ERROR", "POWERED_DOWN", "POWERING_DOWN"];
        gone.iter().any(|gone| word.eq_ignore_ascii_case(gone))
    })
}

/// Which hosts of a job Slurm holds failed; it is asked again and again, and nobody waits for its answers.
#[derive(Debug)]
pub(super) struct Watch {
    list: String,
    due: Instant,
    asked: Option<Child>,
}

impl Watch {
    pub(super) fn new<'a>(hosts: impl Iterator<Item = &'a str>) -> Self {
        let list = hosts.collect::<Vec<_>>().join(",");
        Self { list, due: now(), asked: None }
    }

    /// The hosts that it holds failed, with their states, when it has answered anew.
    pub(super) fn poll(&mut self) -> BTreeMap<String, String> {
        let Some(child) = &mut self.asked else {
            if now() >= self.due {
                self.due = now() + ASK_AGAIN;
                let mut command = states(&self.list);
                // Where it does not start, it is tried again.
                self.asked = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok();
            }
            return BTreeMap::new();
        };
        if matches!(child.try_wait(), Ok(None)) && now() < self.due + ASK_AGAIN {
            return BTreeMap::new();
        }
        let mut text = String::new();
        if let Some(mut child) = self.asked.take() {
            // It has ended, or hangs: a pipe has room for the lines of all hosts.
            drop(child.kill());
            if let Some(mut output) = child.stdout.take() {
                drop(output.read_to_string(&mut text));
            }
            drop(child.wait());
        }
        failed(&text)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(child) = &mut self.asked {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hosts_are_read_as_scontrol_shows_them() {
        // Of Slurm 22.05.8, shortened.
        let text = "NodeName=node1 Arch=x86_64 CoresPerSocket=1 NodeAddr=10.77.0.1 NodeHostName=node1 Version=22.05.8 State=ALLOCATED ThreadsPerCore=1\n\
                    NodeName=node2 Arch=x86_64 NodeAddr=10.77.0.2 State=ALLOCATED+FAIL Reason=a test\n\
                    NodeName=node3 NodeAddr=n3 State=DOWN* ThreadsPerCore=1\n\
                    NodeName=node4 State=IDLE+DRAIN+NOT_RESPONDING\n";
        let told: Vec<Told> = text.lines().filter_map(told_in).collect();
        assert_eq!(told.len(), 4);
        assert_eq!((told[2].address.as_str(), told[3].address.as_str()), ("n3", "node4"));
        let expected = [("node2", "ALLOCATED+FAIL"), ("node3", "DOWN*")];
        let expected = expected.map(|(name, state)| (name.to_owned(), state.to_owned()));
        assert_eq!(failed(text), BTreeMap::from(expected));
        for alive in [
            "IDLE",
            "MIXED+CLOUD",
            "ALLOCATED*",
            "ALLOCATED+DRAIN",
            "IDLE+PLANNED",
            "allocated",
            "draining",
        ] {
            assert!(!is_failed(alive), "{alive}");
        }
        for gone in
            ["DOWN", "DOWN*+DRAIN", "IDLE+FAIL", "IDLE+POWERED_DOWN", "DOWN$", "down*", "failing"]
        {
            assert!(is_failed(gone), "{gone}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(NodeName=|State=|NodeAddr=|[A-Z+*=\n ]){0,30}") {
            let all = failed(&text);
            prop_assert!(all.values().all(|state| is_failed(state)));
        }
    }
}
