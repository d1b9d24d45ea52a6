//! Hosts in namespaces behind the switches of a network, and a program under Open MPI on them that plays what it is told.
//!
//! Namespaces, cables and ways are those of a [`Network`]: the plan's paths, and for every pair of hosts the cable of each bundle
//! that the prediction takes. Nothing but the program's messages goes over the cables while it plays: it is told by a file when to
//! begin, and when it is done.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use meikyo_console::failure::Failure;
use meikyo_models::prediction::{LaneEnd, LanePlace, Network, Op, RankProgram, Script, connection};
use meikyo_spaces::links::Shape;
use meikyo_spaces::switched::{DEVICE, Lane, Place, Sent, Way};
use meikyo_spaces::{Container, ContainerOptions, Switched, SwitchedPlan};
use meikyo_units::{Bytes, Nanos};
use rustix::time::{ClockId, clock_gettime};

use crate::collector::product;

/// The program that plays.
const PLAYER: &str = include_str!("player.c");
/// What builds it and what starts it, by their names in Debian.
const COMPILER: &str = "mpicc.openmpi";
pub(super) const LAUNCHER: &str = "mpirun.openmpi";
const INSTALL: &str = "`apt-get install openmpi-bin libopenmpi-dev`";

/// Where the sockets of the containers are.
const SOCKETS: &str = "hosts";

/// The role of the product that is a container, and the one that reaches into one.
const FIRST: [&str; 3] = ["checkpoint", "role", "first"];
const REACH: [&str; 3] = ["checkpoint", "role", "reach"];

/// A frame's Ethernet, Internet and TCP headers with time stamps: all of an acknowledgement.
const HEADER_BYTES: u64 = 66;

/// Where the slots of the ranks begin in the file that tells when to begin.
const SLOTS: u64 = 64;
const SLOT_BYTES: u64 = 16;
/// The number that the ranks have when they know each other, and the one that ends them.
const MET: u64 = 1;
const END: u64 = u64::MAX;

/// Between the order and the beginning of a run: windows that rested so long begin anew.
const LEAD: Nanos = Nanos::from_millis(300);
/// How long all ranks may take to be there.
const START_PATIENCE: Nanos = Nanos::from_secs(60);
/// Between two looks at what the ranks say.
const PAUSE: Duration = Duration::from_millis(5);

/// What one run came to, or several of the same program.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Played {
    /// Of each run, from the common beginning until the last rank was done.
    pub(super) times: Vec<Nanos>,
    /// For each lane of the network what data went over it.
    pub(super) carried: Vec<Bytes>,
    /// Segments that hosts sent again.
    pub(super) again: u64,
}

/// Hosts behind switches, on which programs can be started.
#[derive(Debug)]
pub(super) struct Hosts {
    pub(super) containers: Vec<Container>,
    pub(super) network: Switched,
    /// For each lane of the prediction's network, where it is here; nothing for those within hosts.
    lanes: Vec<Option<Lane>>,
    names: Vec<String>,
    home: tempfile::TempDir,
}

/// Hosts with a rank on each.
#[derive(Debug)]
pub(super) struct Site {
    launcher: Child,
    hosts: Hosts,
    control: File,
    ranks: usize,
    /// The last run.
    run: u64,
}

/// Why no lab can be here, if that is so.
pub(super) fn lacking() -> Option<Failure> {
    if !rustix::process::geteuid().is_root() {
        let failure = Failure::new("hosts are network namespaces, which only root can make");
        return Some(failure.hint("run `meikyo bench predict --lab` as root"));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there =
        |program: &str| std::env::split_paths(&path).any(|place| place.join(program).is_file());
    let missing = [COMPILER, LAUNCHER].into_iter().find(|program| !there(program))?;
    Some(Failure::new(format!("there is no `{missing}` here")).hint(INSTALL))
}

/// Compiles the program that plays, for all sites; its ranks look every `look_again`.
pub(super) fn build(directory: &Path, look_again: Nanos) -> Result<PathBuf, Failure> {
    let look_again = format!("-DLOOK_AGAIN_NS={}", look_again.get());
    compile(directory, "player", PLAYER, &[&look_again])
}

/// Compiles a program for Open MPI, or a library.
pub(super) fn compile(
    directory: &Path,
    name: &str,
    text: &str,
    options: &[&str],
) -> Result<PathBuf, Failure> {
    let (source, made) = (directory.join(format!("{name}.c")), directory.join(name));
    fs::write(&source, text)?;
    let compiler = &mut Command::new(COMPILER);
    let built = compiler.arg("-O1").args(options).arg("-o").args([&made, &source]).output();
    let built = built.map_err(|error| {
        Failure::new(format!("cannot start `{COMPILER}`: {error}")).hint(INSTALL)
    })?;
    if built.status.success() {
        return Ok(made);
    }
    let said = String::from_utf8_lossy(&built.stderr).trim().to_owned();
    Err(Failure::new(format!("`{COMPILER}` does not compile `{name}.c`: {said}")).hint(INSTALL))
}

impl Hosts {
    /// Sets hosts and switches up. The thread that calls it has to live as long as this.
    pub(super) fn start(network: &Network, shape: Shape, window: Bytes) -> Result<Self, Failure> {
        let (plan, lanes) = planned(network, shape, window);
        let made = Switched::make(&plan).map_err(|error| {
            Failure::new(error)
                .hint("the kernel needs veth, tbf, cls_u32, act_mirred and tcp_cubic")
        })?;
        let home = tempfile::tempdir()?;
        let sockets = home.path().join(SOCKETS);
        fs::create_dir(&sockets)?;
        let listed = home.path().join("names");
        let name = |host: usize| network.host_name(host).to_owned();
        let names: Vec<String> = (0..network.hosts()).map(name).collect();
        let lines = names.iter().enumerate();
        let lines = lines.map(|(host, name)| format!("{} {name}\n", Switched::address(host)));
        fs::write(&listed, format!("127.0.0.1 localhost\n{}", lines.collect::<String>()))?;
        let program = PathBuf::from(product()?.get_program());
        let start = |(host, name): (usize, &String)| {
            let options = ContainerOptions {
                name: name.clone(),
                hosts: listed.clone(),
                socket: sockets.join(name),
                binds: Vec::new(),
            };
            Container::start(&program, &FIRST, made.space(host), &options)
        };
        let containers = names.iter().enumerate().map(start).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { containers, network: made, lanes, names, home })
    }

    /// What these hosts and their programs write is below.
    pub(super) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Starts a rank of a program on each of the first hosts, as many as there are ranks. `command` is what the launcher is
    /// told beyond that, the program and its arguments at last.
    pub(super) fn launch(&self, ranks: usize, command: &str) -> Result<Child, Failure> {
        let home = self.home();
        let agent = home.join("agent");
        let program = PathBuf::from(product()?.get_program());
        let sockets = home.join(SOCKETS);
        let [product, there] = [&program, &sockets].map(|path| path.display().to_string());
        let reach = REACH.join(" ");
        fs::write(&agent, format!("#!/bin/sh\nexec '{product}' {reach} '{there}' \"$@\"\n"))?;
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755))?;
        let said = File::create(home.join("said"))?;
        let command = format!(
            "exec {LAUNCHER} --allow-run-as-root --bind-to none --map-by node --mca plm_rsh_agent '{}' \
             --mca plm_rsh_no_tree_spawn 1 --mca orte_tmpdir_base /dev/shm --mca pml ob1 --mca btl tcp,self \
             --mca btl_tcp_if_include {DEVICE} --mca oob_tcp_if_include {DEVICE} -H {} -np {ranks} {command}",
            agent.display(),
            self.names.join(","),
        );
        let started = Command::new(&program)
            .args(REACH)
            .arg(sockets)
            .args([&self.names[0], &command])
            .stdin(Stdio::null())
            .stdout(said.try_clone()?)
            .stderr(said)
            .spawn();
        started
            .map_err(|error| Failure::new(format!("cannot start `{}`: {error}", program.display())))
    }

    /// The last of what the ranks and their launcher have said.
    pub(super) fn said(&self) -> String {
        const LINES_MAX: usize = 12;
        let text = fs::read_to_string(self.home().join("said")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(LINES_MAX)..];
        if last.is_empty() { "they have said nothing".to_owned() } else { last.join("; ") }
    }
}

impl Site {
    /// Sets hosts and switches up, and starts a rank on each host. The thread that calls it has to live as long as this.
    pub(super) fn start(
        network: &Network,
        shape: Shape,
        window: Bytes,
        player: &Path,
    ) -> Result<Self, Failure> {
        let hosts = Hosts::start(network, shape, window)?;
        let control = hosts.home().join("control");
        let slots = SLOT_BYTES * network.hosts() as u64;
        fs::write(&control, vec![0; usize::try_from(SLOTS + slots)?])?;
        let control = File::options().read(true).write(true).open(&control)?;
        let command = format!("'{}' '{}'", player.display(), hosts.home().display());
        let launcher = hosts.launch(network.hosts(), &command)?;
        let mut site = Self { launcher, hosts, control, ranks: network.hosts(), run: MET };
        site.wait(START_PATIENCE)?;
        Ok(site)
    }

    /// Plays a program with a rank on each host, which is given up after some time.
    pub(super) fn play(
        &mut self,
        program: &RankProgram,
        patience: Nanos,
    ) -> Result<Played, Failure> {
        self.run += 1;
        let most = largest(program);
        for rank in 0..self.ranks {
            let steps = steps(program.script(rank), most);
            fs::write(self.hosts.home().join(format!("{}.{rank}", self.run)), steps)?;
        }
        let (again, before) = (self.sent_again()?, self.hosts.network.sent()?);
        let begin = monotonic() + LEAD.get();
        self.control.write_all_at(&begin.to_ne_bytes(), 8)?;
        self.control.write_all_at(&self.run.to_ne_bytes(), 0)?;
        let ends = self.wait(patience + LEAD)?;
        let end = ends.into_iter().max().unwrap_or(begin);
        let after = self.hosts.network.sent()?;
        let data = |lane: &Option<Lane>| {
            let Some(Lane { cable, back }) = *lane else { return Bytes::default() };
            let [before, after] = [&before, &after].map(|sent| sent[cable][usize::from(back)]);
            Bytes::new(data(before, after))
        };
        Ok(Played {
            times: vec![Nanos::new(end.saturating_sub(begin))],
            carried: self.hosts.lanes.iter().map(data).collect(),
            again: self.sent_again()? - again,
        })
    }

    /// Waits until all ranks have finished the last run; when each did.
    fn wait(&mut self, patience: Nanos) -> Result<Vec<u64>, Failure> {
        let deadline = monotonic() + patience.get();
        loop {
            let slots = (0..self.ranks).map(|rank| SLOTS + SLOT_BYTES * rank as u64);
            let slots = slots.map(|slot| Ok([self.number(slot)?, self.number(slot + 8)?]));
            let slots = slots.collect::<std::io::Result<Vec<[u64; 2]>>>()?;
            if slots.iter().all(|[run, _]| *run == self.run) {
                return Ok(slots.into_iter().map(|[_, at]| at).collect());
            }
            if let Some(status) = self.launcher.try_wait()? {
                return Err(Failure::new(format!(
                    "`{LAUNCHER}` ended with {status}: {}",
                    self.hosts.said()
                )));
            }
            if monotonic() > deadline {
                return Err(Failure::new(format!(
                    "the ranks did not finish within {patience}: {}",
                    self.hosts.said()
                )));
            }
            thread::park_timeout(PAUSE);
        }
    }

    fn number(&self, place: u64) -> std::io::Result<u64> {
        let mut octets = [0; 8];
        self.control.read_exact_at(&mut octets, place)?;
        Ok(u64::from_ne_bytes(octets))
    }

    /// Segments that all hosts have sent again so far (RFC 4022, `tcpRetransSegs`).
    fn sent_again(&self) -> Result<u64, Failure> {
        let of_host = |container: &Container| {
            let text = fs::read_to_string(format!("/proc/{}/net/snmp", container.id()))?;
            retransmitted(&text).ok_or_else(|| Failure::new("the kernel counts no retransmissions"))
        };
        self.hosts.containers.iter().map(of_host).sum()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // Its ranks end by themselves, or with their containers.
        drop(self.control.write_all_at(&END.to_ne_bytes(), 0));
        drop(self.launcher.kill());
        drop(self.launcher.wait());
    }
}

/// What is set up for a network: every lane that is a cable, and the ways of all pairs.
fn planned(network: &Network, shape: Shape, window: Bytes) -> (SwitchedPlan, Vec<Option<Lane>>) {
    let place = |end: LaneEnd| match end {
        LaneEnd::Host(host) => Place::Host(host),
        LaneEnd::Switch(switch) => Place::Switch(switch),
    };
    let mut cables = Vec::new();
    let mut known: Vec<LanePlace> = Vec::new();
    let mut lanes = Vec::new();
    for (at, lane) in network.lanes().iter().enumerate() {
        let (there, back) = match lane.place {
            LanePlace::Within { .. } => {
                lanes.push(None);
                continue;
            }
            LanePlace::ToHost { host, card } => (LanePlace::FromHost { host, card }, true),
            LanePlace::Cable { trunk, forward, cable } => {
                (LanePlace::Cable { trunk, forward: true, cable }, !forward)
            }
            there @ LanePlace::FromHost { .. } => (there, false),
        };
        let cable = known.iter().position(|other| *other == there).unwrap_or_else(|| {
            let ends = network.ends(at).map(place);
            cables.push(if back { [ends[1], ends[0]] } else { ends });
            known.push(there);
            known.len() - 1
        });
        lanes.push(Some(Lane { cable, back }));
    }
    let mut ways = Vec::new();
    for from in 0..network.hosts() {
        for to in (0..network.hosts()).filter(|to| *to != from) {
            let mut route = Vec::new();
            network.route(from, to, connection(from, to), &mut route);
            let lanes = route.into_iter().filter_map(|lane| lanes[lane]).collect();
            ways.push(Way { from, to, lanes });
        }
    }
    let (hosts, switches) = (network.hosts(), network.switches());
    (SwitchedPlan { hosts, switches, cables, ways, shape, window }, lanes)
}

/// Octets of the largest message.
fn largest(program: &RankProgram) -> u64 {
    let size = |op: Op| if let Op::Send { bytes, .. } = op { bytes } else { 0 };
    let ops = (0..program.ranks()).flat_map(|rank| program.script(rank).ops());
    ops.map(size).max().unwrap_or(0)
}

/// The steps of a rank as the program that plays reads them.
fn steps(script: &Script, most: u64) -> String {
    let line = |op: Op| match op {
        Op::Compute { span, .. } => format!("c {}\n", span.get()),
        Op::Send { to, tag, bytes } => format!("s {to} {tag} {bytes}\n"),
        Op::Receive { from, tag } => format!("r {from} {tag}\n"),
        Op::Wait { .. } => "w\n".to_owned(),
        Op::WaitFor { begun, .. } => format!("f {begun}\n"),
    };
    format!("{most}\n{}", script.ops().map(line).collect::<String>())
}

/// Data between two readings of a port.
fn data(before: Sent, after: Sent) -> u64 {
    let frames = after.frames - before.frames;
    (after.bytes - before.bytes).saturating_sub(HEADER_BYTES * frames)
}

/// `RetransSegs` of `/proc/net/snmp`.
fn retransmitted(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = names.split(' ').position(|name| name == "RetransSegs")?;
    values.split(' ').nth(at)?.parse().ok()
}

/// The clock that all ranks have, too.
fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let nanos = i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    u64::try_from(nanos).expect("a machine does not run for centuries")
}

#[cfg(test)]
mod tests {
    use meikyo_models::prediction::Steps;

    use super::*;

    #[test]
    fn a_rank_reads_its_steps_and_the_size_of_the_largest_message_of_all() {
        let mut own = Steps::of(0);
        own.receive(2, 7);
        own.send(1, 3, 4_000);
        own.compute(Nanos::from_micros(2), "work");
        own.wait("messages");
        let mut other = Steps::of(1);
        other.send(0, 7, 5_000);
        let mut ops = other.finish();
        ops.push(Op::WaitFor { begun: 0, what: "messages" });
        let scripts = [own.finish(), ops].map(|ops| {
            let mut script = Script::default();
            script.repeat(1, ops);
            script
        });
        let program = RankProgram::new(scripts.into());
        let most = largest(&program);
        assert_eq!(steps(program.script(0), most), "5000\nr 2 7\ns 1 3 4000\nc 2000\nw\n");
        assert_eq!(steps(program.script(1), most), "5000\ns 0 7 5000\nf 0\n");
    }

    #[test]
    fn retransmissions_are_found_by_name_and_headers_are_no_data() {
        let text = "Ip: Forwarding\nIp: 2\nTcp: RtoMin OutSegs RetransSegs InErrs\nTcp: 200 99 17 0\nUdp: x\n";
        assert_eq!(retransmitted(text), Some(17));
        assert_eq!(retransmitted("Tcp: RtoMin\nTcp: 200\n"), None);
        assert_eq!(retransmitted(""), None);
        let before = Sent { frames: 10, bytes: 1_000 };
        // A full frame, and an acknowledgement.
        let after = Sent { frames: 12, bytes: 1_000 + 1_514 + 66 };
        assert_eq!(data(before, after), 1_448);
    }
}
