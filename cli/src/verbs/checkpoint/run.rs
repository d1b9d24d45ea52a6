//! `meikyo checkpoint run` and `restart`: daemons and a program on all hosts of a job, from its begin to its end.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};

use clap::builder::NonEmptyStringValueParser;
use clap::{ArgGroup, Args};
use meikyo_checkpoint::drain::{self, Drained};
use meikyo_checkpoint::geometry::{BLOCK_MAX, BLOCK_MIN};
use meikyo_checkpoint::layout::{HOSTS_MAX, Layout, ParseSchemeError, Scheme};
use meikyo_cluster::{Cluster, DeviceKind, ProgramNetwork, load, unfold};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;
use meikyo_spaces::Lan;
use meikyo_units::{Bytes, Nanos};

use super::as_is::{self, Origin};
use super::criu;
use super::daemon::Limits;
use super::domains::Domains;
use super::recorded::RecordedArgs;
use super::site::{Afar, AsIs, Host, Site, Way};
use super::slurm;
use super::watch;
use crate::verbs::config;

/// Asks nothing, and notices within a quarter of a minute that a host has gone.
const SSH: &str = "ssh -o BatchMode=yes -o ServerAliveInterval=5 -o ServerAliveCountMax=3";

/// The size of a block where nothing else is said.
const BLOCK: Bytes = Bytes::new(256 << 10);

/// The TCP port at which daemons meet where nothing else is said.
const PORT: u16 = 7_272;

/// With fewer hosts, those that are left when one is lost are not most of the group.
const HOSTS_WITH_SPARES: usize = 3;

/// How long a host may be silent where nothing else is said.
const REPLACE_AFTER: Nanos = Nanos::from_secs(5);

/// Where a program runs, and how it is protected.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("hosts").args(["cluster", "local", "slurm"]).required(true).multiple(true))]
pub(crate) struct RunArgs {
    /// Run on the hosts of this cluster file, and reach them by ssh; with --slurm, take racks, switches and `network` from it
    #[arg(long, value_name = "FILE", conflicts_with = "local")]
    cluster: Option<PathBuf>,
    /// Run on the hosts of the job of Slurm that this is started in. When Slurm says by SIGUSR1 that its time is nearly over, the
    /// job is put back into the queue, and goes on from its newest checkpoint when it is started again
    #[arg(long, requires = "as_is", conflicts_with_all = ["local", "on"])]
    slurm: bool,
    /// Run on N containers of this machine, node1 to nodeN, with processes, mounts, IPC and network of their own
    #[arg(long, value_name = "N")]
    local: Option<usize>,
    /// Take only these hosts of the cluster file, for example node[1-4]
    #[arg(long, value_name = "HOSTS", requires = "cluster", conflicts_with = "local")]
    on: Option<String>,
    /// Where the job is kept: a directory on a local disk, of the same name on every host
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// How hosts protect each other: partner, ring, rs2 to rs8 [default: ring; partner for two hosts]
    #[arg(long, value_name = "SCHEME")]
    scheme: Option<String>,
    /// The size of a block
    #[arg(long, value_name = "SIZE", default_value_t = BLOCK)]
    block: Bytes,
    /// The TCP port at which daemons meet
    #[arg(long, value_name = "PORT", default_value_t = PORT)]
    port: u16,
    /// The program by which hosts are reached, with its options
    #[arg(long, value_name = "COMMAND", default_value = SSH)]
    ssh: String,
    /// The time between two checkpoints, in memory or on disk, for programs that ask whether one is due and with
    /// --as-is [default: Daly's, from what they cost]
    #[arg(long, value_name = "SPAN")]
    every: Option<Nanos>,
    /// Begin with the newest checkpoint that an earlier job of as many hosts has copied to this directory of a shared file
    /// system (--drain)
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,
    /// Protect a program that knows nothing of checkpoints: CRIU captures its processes on all hosts at once. On hosts of a
    /// cluster file, --directory is on a file system that all of them share, and --disk is not
    #[arg(long)]
    as_is: bool,
    /// With --as-is on the hosts of a cluster file or of Slurm: a directory on a local disk of every one, of the same name, for
    /// checkpoints
    #[arg(long, value_name = "DIR", requires = "as_is", conflicts_with = "local")]
    disk: Option<PathBuf>,
    /// CRIU 4.2 or newer, for --as-is
    #[arg(long, value_name = "FILE", env = "MEIKYO_CRIU", default_value = "criu")]
    criu: PathBuf,
    /// Containers that stand ready, or the last hosts of Slurm's job: one takes the place of every host that is lost, and the
    /// program goes on there. A cluster file names its own
    #[arg(long, value_name = "N", default_value_t = 0)]
    spares: usize,
    /// A host that the others have not heard of for so long is replaced by a spare; one that answers before goes on
    #[arg(long, value_name = "SPAN", default_value_t = REPLACE_AFTER)]
    replace_after: Nanos,
    /// The command that switches a lost host off, run as `COMMAND HOST` before a spare takes its place: none does until it ends with
    /// 0, so that the host cannot go on writing beside it. For example 'ipmi-power.sh off'
    #[arg(long, value_name = "COMMAND", value_parser = NonEmptyStringValueParser::new())]
    fence_with: Option<String>,
    /// Make the files that match part of every checkpoint: those that are changed in place, or opened anew each time;
    /// as table or 'results/*.out', below this directory or absolute, may be given several times
    #[arg(long, value_name = "PATTERN", requires = "as_is")]
    save_files: Vec<PathBuf>,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    recorded: RecordedArgs,
    /// The program, as it is started on the first host: mpiexec finds the others
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Starts a job, and waits for its end.
pub(super) fn run(args: &RunArgs) -> Result<Answer, Failure> {
    check_options(args)?;
    let directory = std::path::absolute(&args.directory)?;
    if let Ok(mut site) = Site::read(&directory) {
        if args.slurm && site.as_is.is_some() && slurm::is_requeued() {
            return requeued(&mut site);
        }
        return Err(Failure::new(format!("`{}` has a job already", directory.display())).hint(
            format!(
                "meikyo checkpoint restart --directory {} goes on with it; name another directory to begin anew",
                directory.display()
            ),
        ));
    }
    let Places { way, hosts, spares, domains, network } = places_of(args, &directory)?;
    let scheme = scheme_of(args.scheme.as_deref(), hosts.len());
    let layout = check(hosts.len(), &scheme, args.block)?;
    tell_fatal(&domains, &layout, &hosts, &scheme);
    if !spares.is_empty() && hosts.len() < HOSTS_WITH_SPARES {
        return Err(too_few_for_spares(hosts.len(), args.local.is_some()));
    }
    let every = args
        .every
        .map(|every| ("MEIKYO_CHECKPOINT_EVERY".to_owned(), every.as_secs_f64().to_string()));
    let as_is = args.as_is.then(|| captured(args, &hosts, network)).transpose()?;
    let environment =
        every.into_iter().chain(as_is.as_ref().map(|_| Site::capturable()).unwrap_or_default());
    let mut site = Site {
        schema: Site::schema(),
        directory,
        way,
        scheme,
        block: args.block,
        port: args.port,
        hosts,
        spares,
        domains,
        replace_after: args.replace_after,
        fence: args.fence_with.clone(),
        limits: args.limits.arguments(),
        recorded: args.recorded.absolute()?,
        environment: environment.collect(),
        work: std::env::current_dir()?,
        command: args.command.clone(),
        as_is,
    };
    if site.is_local() {
        site.settle_addresses();
    }
    let drained = args.resume.as_deref().map(|path| resumed(path, site.hosts.len())).transpose()?;
    let first = ["--found".to_owned()];
    if site.as_is.is_none() {
        return watch::carry_out(&mut site, &first, drained.as_ref());
    }
    let variables = site.environment.iter().map(|(name, value)| format!("{name}={value}"));
    output::say(&format!("the program gets {}", variables.collect::<Vec<_>>().join(" ")));
    let origin = if drained.is_some() { Origin::From(None) } else { Origin::Afresh };
    as_is::carry_out(&mut site, &first, origin, drained.as_ref())
}

/// Refuses options that do not go together.
fn check_options(args: &RunArgs) -> Result<(), Failure> {
    if args.as_is && args.local.is_none() && args.disk.is_none() {
        return Err(Failure::new("--as-is on hosts of a cluster or of Slurm needs a place for checkpoints on each of them")
            .hint("--disk DIR on a local disk of every host; --directory DIR on a file system that they share"));
    }
    if args.local.is_some() && args.recorded.is_afar() {
        return Err(Failure::new("containers reach nothing but each other, and no server")
            .hint("--out DIR writes a recording here; `meikyo serve DIR` shows it"));
    }
    if args.spares > 0 && args.cluster.is_some() && !args.slurm {
        return Err(Failure::new("hosts that stand ready are named in the cluster file")
            .hint("leave --spares out, and write: [checkpoint] spares = \"node[8-9]\""));
    }
    if args.spares > 0 && args.local.is_some() && !args.as_is {
        return Err(Failure::new("--spares of containers is for programs as they are")
            .hint("--as-is; a program with libmeikyo_checkpoint goes on by `restart --on HOSTS`"));
    }
    Ok(())
}

/// Where a job runs that is begun.
struct Places {
    way: Way,
    hosts: Vec<Host>,
    /// Those that stand ready.
    spares: Vec<Host>,
    /// What of all of them fails together.
    domains: Domains,
    /// Where programs that are captured as they are have their addresses.
    network: ProgramNetwork,
}

fn places_of(args: &RunArgs, directory: &Path) -> Result<Places, Failure> {
    if args.slurm {
        return of_slurm(args);
    }
    let Some(path) = &args.cluster else {
        if directory.starts_with("/dev/shm") {
            return Err(Failure::new("every container has a `/dev/shm` of its own")
                .hint("name a directory elsewhere: --directory DIR"));
        }
        let names = (1..=args.local.unwrap_or(0)).map(|number| format!("node{number}"));
        let spares = (1..=args.spares).map(|number| format!("spare{number}"));
        return Ok(Places {
            way: Way::Local,
            hosts: containers(names.collect()),
            spares: containers(spares.collect()),
            domains: Domains::default(),
            network: ProgramNetwork::default(),
        });
    };
    let program = args.ssh.split_whitespace().map(str::to_owned).collect();
    let path = std::path::absolute(path)?;
    let cluster = read_cluster(&path)?;
    let domains = Domains::of(&cluster);
    let named = of_cluster(&cluster, args.on.as_deref())?;
    let (hosts, spares) = apart(&cluster, named, args.on.is_some())?;
    let hosts = domains.spread(hosts, |host| &host.name);
    let names: Vec<&str> = hosts.iter().chain(&spares).map(|host| host.name.as_str()).collect();
    let domains = domains.only(&names);
    let network = cluster.checkpoint.network;
    Ok(Places { way: Way::Ssh { program, cluster: path }, hosts, spares, domains, network })
}

/// The hosts of a job of Slurm, and the last of them as spares.
fn of_slurm(args: &RunArgs) -> Result<Places, Failure> {
    let mut hosts = allocated()?;
    let spares = hosts.split_off(hosts.len().saturating_sub(args.spares));
    let cluster = args.cluster.as_deref().map(read_cluster).transpose()?;
    let domains = cluster.as_ref().map(Domains::of).unwrap_or_default();
    let hosts = domains.spread(hosts, |host| &host.name);
    let names: Vec<&str> = hosts.iter().chain(&spares).map(|host| host.name.as_str()).collect();
    let domains = domains.only(&names);
    let network = cluster.map(|cluster| cluster.checkpoint.network).unwrap_or_default();
    Ok(Places { way: Way::Slurm, hosts, spares, domains, network })
}

fn allocated() -> Result<Vec<Host>, Failure> {
    let host = |node: slurm::Node| Host { name: node.name, address: node.address };
    Ok(slurm::allocation()?.into_iter().map(host).collect())
}

/// Goes on with a job that Slurm starts again, on the hosts that it has now.
fn requeued(site: &mut Site) -> Result<Answer, Failure> {
    let is_kept = |host: &Host| site.hosts.iter().any(|stood| stood.name == host.name);
    let (mut hosts, mut spares): (Vec<Host>, Vec<Host>) =
        allocated()?.into_iter().partition(is_kept);
    let missing = site.hosts.len() - hosts.len();
    if spares.len() < missing {
        let text = format!(
            "the job has {} hosts, and the program needs {}",
            hosts.len() + spares.len(),
            site.hosts.len()
        );
        return Err(Failure::new(text).hint("ask Slurm for as many as before: sbatch --nodes N"));
    }
    hosts.extend(spares.drain(..missing));
    site.hosts = replaced(&site.hosts, hosts)?;
    site.spares = spares;
    as_is::carry_out(site, &[], Origin::FromAny, None)
}

/// Hosts, and those of the cluster file's spares that are not among them; where hosts were not `chosen`, no spare is.
fn apart(
    cluster: &Cluster,
    hosts: Vec<Host>,
    is_chosen: bool,
) -> Result<(Vec<Host>, Vec<Host>), Failure> {
    let is_spare = |host: &Host| cluster.checkpoint.spares.contains(&host.name);
    let hosts: Vec<Host> = hosts.into_iter().filter(|host| is_chosen || !is_spare(host)).collect();
    let taken: BTreeSet<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    let spares = cluster.checkpoint.spares.iter();
    let spares: Vec<String> =
        spares.filter(|name| !taken.contains(name.as_str())).cloned().collect();
    if spares.is_empty() {
        return Ok((hosts, Vec::new()));
    }
    let spares = of_cluster(cluster, Some(&spares.join(",")))?;
    Ok((hosts, spares))
}

fn too_few_for_spares(hosts: usize, is_local: bool) -> Failure {
    let text = format!(
        "of {hosts} hosts, none can be replaced: the group admits another one by a majority of its hosts"
    );
    let option = if is_local { "--local " } else { "hosts, " };
    Failure::new(text).hint(format!(
        "take {option}{HOSTS_WITH_SPARES} or more; one may be left to keep parity alone: mpiexec -hosts node1,node2"
    ))
}

/// Says which racks and switches may not be lost.
fn tell_fatal(domains: &Domains, layout: &Layout, hosts: &[Host], scheme: &str) {
    let names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    let fatal = domains.fatal(layout, &names);
    if !fatal.is_empty() {
        output::say(&format!(
            "{scheme} does not survive the loss of {}: take --scheme partner or rs2 to rs8, or hosts of more racks",
            fatal.join(", ")
        ));
    }
}

/// A program that is only run to see what becomes of it.
pub(super) struct Trial<'a> {
    pub(super) criu: PathBuf,
    /// Containers that it runs on, and others that stand ready.
    pub(super) hosts: usize,
    pub(super) spares: usize,
    /// When it is captured.
    pub(super) after: Nanos,
    pub(super) command: &'a [String],
}

/// A job of containers in a directory for a while.
pub(super) fn on_trial(directory: &Path, trial: Trial<'_>) -> Result<Site, Failure> {
    let hosts = containers((1..=trial.hosts).map(|number| format!("node{number}")).collect());
    let as_is = AsIs {
        criu: trial.criu,
        every: Some(trial.after),
        between_failures: trial.after,
        names: hosts.iter().map(|host| host.name.clone()).collect(),
        starts: 0,
        save_files: Vec::new(),
        afar: None,
    };
    let scheme = scheme_of(None, hosts.len());
    check(hosts.len(), &scheme, BLOCK)?;
    let mut site = Site {
        schema: Site::schema(),
        directory: directory.to_owned(),
        way: Way::Local,
        scheme,
        block: BLOCK,
        port: PORT,
        hosts,
        spares: containers((1..=trial.spares).map(|number| format!("spare{number}")).collect()),
        domains: Domains::default(),
        replace_after: REPLACE_AFTER,
        fence: None,
        limits: Vec::new(),
        recorded: RecordedArgs::default(),
        environment: Site::capturable(),
        work: std::env::current_dir()?,
        command: trial.command.to_vec(),
        as_is: Some(as_is),
    };
    site.settle_addresses();
    Ok(site)
}

/// How a program is captured that knows nothing of it.
fn captured(args: &RunArgs, hosts: &[Host], network: ProgramNetwork) -> Result<AsIs, Failure> {
    let afar = |disk: &PathBuf| -> Result<Afar, Failure> {
        let addresses = (0..hosts.len()).filter_map(|place| network.address(place));
        Ok(Afar { disk: std::path::absolute(disk)?, addresses: addresses.collect() })
    };
    Ok(AsIs {
        criu: if args.disk.is_some() {
            criu::path_of(&args.criu)?
        } else {
            criu::working(&args.criu)?
        },
        every: args.every,
        between_failures: args.limits.between_failures(),
        names: hosts.iter().map(|host| host.name.clone()).collect(),
        starts: 0,
        save_files: args.save_files.iter().map(|path| pattern(path)).collect::<Result<_, _>>()?,
        afar: args.disk.as_ref().map(afar).transpose()?,
    })
}

/// A pattern for files, as it is compared with absolute paths.
fn pattern(path: &Path) -> Result<PathBuf, Failure> {
    let has_steps = path.components().any(|part| part == Component::ParentDir);
    if has_steps || path.to_str().is_none() {
        return Err(Failure::new(format!("`{}` is no pattern for files", path.display()))
            .hint("write it without `..`: --save-files 'results/*.out', or an absolute path"));
    }
    Ok(std::env::current_dir()?.join(path))
}

/// What an earlier job has drained.
fn resumed(directory: &Path, hosts: usize) -> Result<Drained, Failure> {
    let directory = std::path::absolute(directory)?;
    let drained = drain::newest(&directory).map_err(|error| {
        Failure::new(error).hint("name the directory that was given to the earlier job as --drain")
    })?;
    if drained.files.len() != hosts {
        let text =
            format!("the checkpoint is of {} hosts, and this job has {hosts}", drained.files.len());
        return Err(Failure::new(text).hint("take as many hosts: --on HOSTS, or --local N"));
    }
    Ok(drained)
}

/// What goes on, and where.
#[derive(Debug)]
pub(super) struct Again<'a> {
    pub(super) directory: &'a Path,
    pub(super) generation: Option<u64>,
    pub(super) on: Option<&'a str>,
    pub(super) command: &'a [String],
}

/// Starts a job again: the program goes on from the newest checkpoint, or the one that is named.
pub(super) fn restart(again: &Again<'_>) -> Result<Answer, Failure> {
    let mut site = Site::read(again.directory)?;
    if let Some(on) = again.on {
        let hosts = match &site.way {
            Way::Local => containers(named(on)?),
            Way::Ssh { cluster, .. } => of_cluster(&read_cluster(cluster)?, Some(on))?,
            Way::Slurm => {
                let names = named(on)?;
                allocated()?.into_iter().filter(|host| names.contains(&host.name)).collect()
            }
        };
        site.hosts = replaced(&site.hosts, hosts)?;
        let hosts = &site.hosts;
        site.spares.retain(|spare| hosts.iter().all(|host| host.name != spare.name));
    }
    if site.is_local() {
        site.settle_addresses();
    }
    if let Some(captured) = &site.as_is {
        if !again.command.is_empty() {
            return Err(Failure::new("a program that was captured as it is goes on as it was")
                .hint("leave the command out; `run` with another directory begins a new job"));
        }
        if site.is_local() {
            criu::working(&captured.criu)?;
        }
        let origin = Origin::From(again.generation);
        return as_is::carry_out(&mut site, &[], origin, None);
    }
    if !again.command.is_empty() {
        site.command = again.command.to_vec();
        site.work = std::env::current_dir()?;
    }
    let from = again.generation.map(|number| ["--generation".to_owned(), number.to_string()]);
    watch::carry_out(&mut site, &from.into_iter().flatten().collect::<Vec<_>>(), None)
}

fn named(on: &str) -> Result<Vec<String>, Failure> {
    unfold(on).map_err(|error| Failure::new(error).hint("write for example --on node[1-3],node5"))
}

fn read_cluster(path: &Path) -> Result<Cluster, Failure> {
    let check = format!("meikyo config check --cluster {}", path.display());
    load(path).map_err(|error| config::explained(error, check))
}

fn of_cluster(cluster: &Cluster, on: Option<&str>) -> Result<Vec<Host>, Failure> {
    let hosts = cluster.devices.iter().filter(|device| device.kind == DeviceKind::Host);
    let all: Vec<Host> = hosts
        .map(|device| Host { name: device.name.clone(), address: device.address.ip() })
        .collect();
    let Some(on) = on else { return Ok(all) };
    let of_name = |name: String| {
        let found = all.iter().find(|host| host.name == name).cloned();
        found.ok_or_else(|| {
            Failure::new(format!("`{name}` is no host of {}", cluster.path.display()))
                .hint("`meikyo config show` lists them")
        })
    };
    named(on)?.into_iter().map(of_name).collect()
}

/// Containers by name; those that are called `nodeN` have the same address in every run.
fn containers(names: Vec<String>) -> Vec<Host> {
    let host = |(place, name)| Host { name, address: IpAddr::V4(Lan::address(place, 0)) };
    names.into_iter().take(HOSTS_MAX + 1).enumerate().map(host).collect()
}

/// The hosts by place: those that stay keep theirs, and others take what is left.
fn replaced(before: &[Host], hosts: Vec<Host>) -> Result<Vec<Host>, Failure> {
    let names: BTreeSet<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    if names.len() != before.len() || hosts.len() != before.len() {
        let text =
            format!("the group has {} places, and --on names {} hosts", before.len(), names.len());
        let stood = before.iter().map(|host| host.name.clone()).collect::<Vec<_>>();
        return Err(Failure::new(text).hint(format!(
            "name {} hosts, each once; until now it had {}",
            before.len(),
            meikyo_cluster::fold(&stood)
        )));
    }
    let stays = |host: &&Host| before.iter().any(|stood| stood.name == host.name);
    let mut new = hosts.iter().filter(|host| !stays(host));
    let at = |stood: &Host| {
        let same = hosts.iter().find(|host| host.name == stood.name);
        same.or_else(|| new.next()).cloned()
    };
    before.iter().map(at).collect::<Option<Vec<_>>>().ok_or_else(|| Failure::new("a place is left"))
}

/// How hosts protect each other, where it is not said.
fn scheme_of(named: Option<&str>, hosts: usize) -> String {
    named.unwrap_or(if hosts == 2 { "partner" } else { "ring" }).to_owned()
}

fn check(hosts: usize, scheme: &str, block: Bytes) -> Result<Layout, Failure> {
    if !(2..=HOSTS_MAX).contains(&hosts) {
        return Err(Failure::new(format!("a group of {hosts} hosts is not possible"))
            .hint(format!("name 2 to {HOSTS_MAX} of them: --on node[1-8], or --local 4")));
    }
    let possible = |error: &dyn std::error::Error| {
        Failure::new(error.to_string())
            .hint("take another scheme, as --scheme ring, or other hosts")
    };
    let scheme: Scheme = scheme.parse().map_err(|error: ParseSchemeError| possible(&error))?;
    let layout = Layout::new(scheme, hosts).map_err(|error| possible(&error))?;
    let (least, most) = (u64::from(BLOCK_MIN), u64::from(BLOCK_MAX));
    if !(least..=most).contains(&block.get()) || !block.get().is_multiple_of(least) {
        return Err(Failure::new(format!("blocks of {block} are not possible"))
            .hint("give a multiple of 64B, up to 4MiB: --block 256KiB"));
    }
    Ok(layout)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(hosts: &[Host]) -> String {
        hosts.iter().map(|host| host.name.clone()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn hosts_that_stay_keep_their_places_and_others_take_what_is_left() {
        let before = containers(named("node[1-4]").unwrap());
        let after = |on: &str| replaced(&before, containers(named(on).unwrap()));
        assert_eq!(names(&after("spare,node[3-4],node1").unwrap()), "node1 spare node3 node4");
        assert_eq!(names(&after("a,b,c,node2").unwrap()), "a node2 b c");
        for on in ["node[1-3]", "node[1-5]", "node[1-3],node1"] {
            assert!(after(on).is_err(), "{on}");
        }
    }
}
