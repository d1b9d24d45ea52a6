//! `meikyo checkpoint plan`: the time model's terms, the choice of a scheme, the interval.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use meikyo_checkpoint::layout::{HOSTS_MAX, Layout, Scheme};
use meikyo_checkpoint::model::{Load, Machine};
use meikyo_checkpoint::plan::{Candidate, LevelPlan, LevelsPlan, Plan, Wishes, plan};
use meikyo_cluster::{Cluster, DeviceKind, load};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable, bytes_text, counted, span_text};
use meikyo_units::{BitsPerSecond, Bytes, Nanos};
use serde_json::{Value, json};

use super::domains::Domains;
use crate::verbs::config;

/// A host fails once in this time, where nobody knows better.
pub(super) const MTBF: &str = "365d";

/// From a host's failure until another stands ready.
pub(super) const DETECTION: Nanos = Nanos::from_secs(2);

/// How many per cent of its speed a program loses while its checkpoint is written behind it.
pub(super) const INTERFERENCE_PERCENT: u8 = 5;

/// Hosts of a group when there are as many and nothing else is asked for: the size of the paper's
/// cluster, where parity takes a seventh of the image.
const GROUP: usize = 8;

/// The size of a cluster, its machines, and what may happen to it.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Take the hosts of this cluster file, without its spares, and say what the loss of a rack or switch does
    #[arg(long, value_name = "FILE", conflicts_with = "hosts")]
    cluster: Option<PathBuf>,
    /// Hosts that the program runs on
    #[arg(long, value_name = "N", required_unless_present = "cluster")]
    hosts: Option<usize>,
    /// Hosts of a parity group [default: 8, or all if there are fewer]
    #[arg(long, value_name = "N")]
    group: Option<usize>,
    /// Data of one host
    #[arg(long, value_name = "SIZE")]
    bytes: Bytes,
    /// The percentage of it that changes between two checkpoints
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u8).range(0..=100))]
    changed: u8,
    /// Rate at which one link of a host carries payload
    #[arg(long, value_name = "RATE", default_value = "118MB/s")]
    link: BitsPerSecond,
    /// Links per host
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=16))]
    links: u64,
    /// Rate at which a host's disk writes and reads
    #[arg(long, value_name = "RATE", default_value = "500MB/s")]
    disk: BitsPerSecond,
    /// Rate at which a host copies memory
    #[arg(long, value_name = "RATE", default_value = "8GB/s")]
    memory: BitsPerSecond,
    /// Rate at which a host combines blocks by XOR
    #[arg(long, value_name = "RATE", default_value = "10GB/s")]
    xor: BitsPerSecond,
    /// Rate at which a host computes Reed-Solomon parity
    #[arg(long, value_name = "RATE", default_value = "5GB/s")]
    code: BitsPerSecond,
    /// The size of a block
    #[arg(long, value_name = "SIZE", default_value = "256KiB")]
    block: Bytes,
    /// Time that a block takes at each hop, in addition to its transmission
    #[arg(long, value_name = "SPAN", default_value = "100us")]
    step: Nanos,
    /// Time until the program has stopped on all hosts
    #[arg(long, value_name = "SPAN", default_value = "1ms")]
    quiesce: Nanos,
    /// Time until all hosts know that all have written
    #[arg(long, value_name = "SPAN", default_value = "10ms")]
    commit: Nanos,
    /// Mean time between failures of one host
    #[arg(long, value_name = "SPAN", default_value = MTBF)]
    mtbf: Nanos,
    /// Time from a host's failure until it is detected and a replacement is ready
    #[arg(long, value_name = "SPAN", default_value_t = DETECTION)]
    detection: Nanos,
    /// Number of hosts of a group that may be lost at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    survive: u8,
    /// The percentage by which a program slows down while its checkpoint is written in the
    /// background
    #[arg(long, value_name = "PERCENT", default_value_t = INTERFERENCE_PERCENT, value_parser = clap::value_parser!(u8).range(0..=100))]
    interference: u8,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Prints the plan; the answer is no when no scheme survives the losses that it must, or no interval helps.
pub(super) fn run(args: &PlanArgs) -> Result<Answer, Failure> {
    let room = args.cluster.as_deref().map(Room::read).transpose()?;
    let hosts = args.hosts.or_else(|| room.as_ref().map(|room| room.names.len())).unwrap_or(0);
    let group = args.group.unwrap_or_else(|| hosts.min(GROUP));
    check(args, hosts, group)?;
    let machine = args.machine();
    let load = Load {
        image: args.bytes,
        changed: Bytes::new(args.bytes.get() / 100 * u64::from(args.changed)),
        block: args.block,
    };
    let wishes = Wishes {
        hosts,
        group,
        losses: usize::from(args.survive),
        between_failures: args.mtbf,
        detection: args.detection,
        interference: f64::from(args.interference) / 100.0,
    };
    let plan = plan(&wishes, &machine, &load);
    let room = room.filter(|room| !room.domains.is_empty());
    let fatal: Vec<(Scheme, Vec<String>)> = room.map_or_else(Vec::new, |room| {
        let schemes = plan.candidates.iter().map(|candidate| candidate.scheme);
        schemes.map(|scheme| (scheme, room.fatal(scheme, group))).collect()
    });
    if args.json {
        output::print_json(&document(&wishes, &load, &plan, &fatal))?;
    } else {
        output::print(&format!("{}{}", text(&wishes, &load, &plan), lost_with(&fatal)))?;
    }
    let advised = plan.chosen.and_then(|at| plan.candidates.get(at));
    Ok(if advised.is_some_and(pays) { Answer::Yes } else { Answer::No })
}

fn check(args: &PlanArgs, hosts: usize, group: usize) -> Result<(), Failure> {
    let failure = |text: String, hint: &str| Err(Failure::new(text).hint(hint));
    if hosts < 2 {
        return failure(
            format!("hosts protect each other, and `--hosts {hosts}` is too few"),
            "a copy needs 2 hosts, a ring 3: --hosts 3",
        );
    }
    if group < 2 || group > hosts || group > HOSTS_MAX {
        let text = format!("a group of {group} hosts is not possible");
        return failure(text, &format!("--group takes 2 to {}", hosts.min(HOSTS_MAX)));
    }
    let rates = [
        ("--link", args.link),
        ("--disk", args.disk),
        ("--memory", args.memory),
        ("--xor", args.xor),
        ("--code", args.code),
    ];
    if let Some((name, _)) = rates.into_iter().find(|(_, rate)| rate.get() == 0) {
        return failure(format!("{name} must be greater than 0"), "for example 118MB/s or 1Gbit/s");
    }
    if args.mtbf == Nanos::ZERO {
        return failure("--mtbf is no time at all".to_owned(), "for example --mtbf 365d");
    }
    if args.block == Bytes::ZERO {
        return failure("--block is of no size".to_owned(), "for example --block 256KiB");
    }
    Ok(())
}

/// The hosts of a cluster file without its spares, in the order in which they are dealt out to groups.
struct Room {
    names: Vec<String>,
    domains: Domains,
}

impl Room {
    fn read(path: &Path) -> Result<Self, Failure> {
        let cluster: Cluster = load(path).map_err(|error| {
            config::explained(error, format!("meikyo config check --cluster {}", path.display()))
        })?;
        let hosts = cluster.devices.iter().filter(|device| device.kind == DeviceKind::Host);
        let is_spare = |name: &String| cluster.checkpoint.spares.contains(name);
        let names = hosts.map(|host| host.name.clone()).filter(|name| !is_spare(name)).collect();
        let domains = Domains::of(&cluster);
        Ok(Self { names: domains.spread(names, |name| name), domains })
    }

    /// Racks and switches whose loss one of the groups does not survive.
    fn fatal(&self, scheme: Scheme, group: usize) -> Vec<String> {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let groups = names.chunks(group).filter_map(|own| {
            // The last may have too few hosts for the scheme, as a program that is started on them would be told.
            Some(self.domains.fatal(&Layout::new(scheme, own.len()).ok()?, own))
        });
        groups.flatten().collect()
    }
}

/// What the loss of a rack or switch does, where a cluster file tells of any.
fn lost_with(fatal: &[(Scheme, Vec<String>)]) -> String {
    let line = |(scheme, fatal): &(Scheme, Vec<String>)| match fatal.as_slice() {
        [] => format!("  {scheme}: any one may be lost\n"),
        fatal => format!("  {scheme}: checkpoints are lost with {}\n", fatal.join(", ")),
    };
    if fatal.is_empty() {
        return String::new();
    }
    let lines: String = fatal.iter().map(line).collect();
    format!("\nRacks and switches, with hosts of a rack set apart in their groups:\n{lines}")
}

impl PlanArgs {
    const fn machine(&self) -> Machine {
        Machine {
            link: self.link,
            links: self.links,
            disk: self.disk,
            xor: self.xor,
            code: self.code,
            memory: self.memory,
            step: self.step,
            quiesce: self.quiesce,
            commit: self.commit,
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

fn rarely(per_year: f64) -> String {
    if per_year > 0.0 && 1.0 / per_year >= 10.0 {
        format!("1 in {:.0} years", 1.0 / per_year)
    } else {
        format!("{per_year:.2} a year")
    }
}

fn text(wishes: &Wishes, load: &Load, plan: &Plan) -> String {
    let mut text = format!(
        "{} hosts in groups of {}, {} on each, of which {} change between checkpoints\n\n",
        wishes.hosts,
        wishes.group,
        bytes_text(load.image.get()),
        bytes_text(load.changed.get()),
    );
    let mut table = TextTable::new(&[
        "scheme",
        "survives",
        "network",
        "disk",
        "coding",
        "memory",
        "fill",
        "checkpoint",
        "stop",
        "rebuild",
        "every",
        "time lost",
        "unrecoverable",
    ]);
    for candidate in &plan.candidates {
        let terms = &candidate.terms;
        let spans = [
            terms.network,
            terms.disk,
            terms.coding,
            terms.memory,
            terms.fill,
            terms.total,
            terms.stop,
            candidate.rebuild,
            candidate.interval,
        ];
        let hosts = if candidate.losses == 1 { "host" } else { "hosts" };
        let first = [candidate.scheme.to_string(), format!("{} {hosts}", candidate.losses)];
        let last = [percent(candidate.lost_share), rarely(candidate.unrecoverable_per_year)];
        table.row(first.into_iter().chain(spans.map(span_text)).chain(last));
    }
    write!(text, "{table}\n{}", explained(wishes, plan)).expect("strings take everything");
    text
}

fn explained(wishes: &Wishes, plan: &Plan) -> String {
    let Some(candidate) = plan.chosen.map(|at| &plan.candidates[at]) else {
        let needed = wishes.losses + 1;
        return format!(
            "No scheme survives the loss of {} of {} hosts; a group of {needed} can: --hosts {needed} or more, \
             --group {needed}\n",
            wishes.losses, wishes.group,
        );
    };
    let Candidate { scheme, terms, .. } = candidate;
    if !pays(candidate) {
        return format!(
            "No interval helps: {scheme} takes {} for a checkpoint, and a host fails every {}\n",
            span_text(terms.total),
            span_text(Nanos::new(wishes.between_failures.get() / wishes.hosts as u64)),
        );
    }
    format!(
        "Take {scheme}: among the schemes that survive {}, it costs the least time; ties go to the \
         fewest writes.\n\
         A checkpoint takes {}, bound by {}; the program stands still for {} of it.\n\
         With nothing overlapped, as in the SCore paper's formula, it would take {}.\n\
         Checkpoint every {} (Young: {}); {} of the time is lost, restarts included.\n{}",
        counted(wishes.losses, "lost host"),
        span_text(terms.total),
        terms.bound.word(),
        span_text(terms.stop),
        span_text(candidate.serial),
        span_text(candidate.interval),
        span_text(candidate.interval_young),
        percent(candidate.lost_share),
        plan.levels.as_ref().map_or_else(String::new, levels_text),
    )
}

/// Whether a checkpoint is done before the next one would be due.
fn pays(candidate: &Candidate) -> bool {
    candidate.interval > candidate.terms.total
}

fn levels_text(levels: &LevelsPlan) -> String {
    let LevelsPlan { memory, disk, memory_bytes } = levels;
    format!(
        "With most of them in memory (run --memory {}) one takes {}: checkpoint every {}, and to the disk every {}.\n",
        bytes_text(memory_bytes.get()).replace(' ', ""),
        span_text(memory.total),
        span_text(memory.interval),
        span_text(disk.interval),
    )
}

fn document(wishes: &Wishes, load: &Load, plan: &Plan, fatal: &[(Scheme, Vec<String>)]) -> Value {
    let seconds = |span: Nanos| span.as_secs_f64();
    let candidates: Vec<Value> = plan
        .candidates
        .iter()
        .map(|candidate| {
            let terms = &candidate.terms;
            json!({
                "scheme": candidate.scheme.to_string(),
                "survived_losses": candidate.losses,
                "sent_bytes": terms.sent.get(),
                "written_bytes": terms.written.get(),
                "quiesce_s": seconds(terms.quiesce),
                "network_s": seconds(terms.network),
                "disk_s": seconds(terms.disk),
                "coding_s": seconds(terms.coding),
                "memory_s": seconds(terms.memory),
                "fill_s": seconds(terms.fill),
                "commit_s": seconds(terms.commit),
                "checkpoint_s": seconds(terms.total),
                "bound": terms.bound.word(),
                "serial_s": seconds(candidate.serial),
                "stop_s": seconds(terms.stop),
                "rebuild_s": seconds(candidate.rebuild),
                "interval_s": seconds(candidate.interval),
                "interval_young_s": seconds(candidate.interval_young),
                "lost_share": candidate.lost_share,
                "unrecoverable_per_year": candidate.unrecoverable_per_year,
            })
        })
        .collect();
    json!({
        "schema": "meikyo.checkpoint.plan/1",
        "hosts": wishes.hosts,
        "group": wishes.group,
        "image_bytes": load.image.get(),
        "changed_bytes": load.changed.get(),
        "block_bytes": load.block.get(),
        "candidates": candidates,
        "levels": plan.levels.map(|levels| {
            let level = |level: LevelPlan| {
                json!({
                    "checkpoint_s": seconds(level.total),
                    "interval_s": seconds(level.interval),
                    "between_failures_s": seconds(level.between_failures),
                })
            };
            json!({
                "memory": level(levels.memory),
                "disk": level(levels.disk),
                "memory_bytes": levels.memory_bytes.get(),
            })
        }),
        "lost_with": fatal.iter().map(|(scheme, fatal)| (scheme.to_string(), json!(fatal)))
            .collect::<serde_json::Map<_, _>>(),
        "chosen": plan.chosen.map(|at| plan.candidates[at].scheme.to_string()),
    })
}
