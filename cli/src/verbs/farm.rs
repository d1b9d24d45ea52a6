//! `meikyo farm`: a farm of simulated agents.

mod cluster_file;
mod virtual_day;

use std::net::Ipv4Addr;
use std::path::PathBuf;

use clap::Args;
use meikyo_console::arguments::interval;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, counted};
use meikyo_snmp::farm::truth::TruthWriter;
use meikyo_snmp::farm::{self, Cache, CounterStart, Event, Farm, FarmOptions, Stop};
use meikyo_units::{Nanos, WallTime};

/// Run simulated hosts and switches that answer SNMP, each on its own loopback address.
///
/// Values move as in real life and follow from the seed alone. Versions 1 and 2c read with the
/// community `public` and write with `private`; version 3 takes the user `meikyo` and those given
/// with --user, with the passwords `simulated-authentication` and `simulated-privacy`.
///
/// One socket listens at the port on all addresses of this machine (0.0.0.0), which is why two farms
/// need two ports; requests to an address that is no agent's get no answer.
#[derive(Debug, Args)]
pub(crate) struct FarmArgs {
    /// How many hosts.
    #[arg(long, default_value_t = 64, value_name = "N")]
    count: u32,
    /// How many switches of 48 ports; their addresses follow those of the hosts.
    #[arg(long, default_value_t = 0, value_name = "N")]
    switches: u32,
    /// UDP port of all agents; 0 takes a free one.
    #[arg(long, default_value_t = 16_100)]
    port: u16,
    /// Address of the first agent.
    #[arg(long, default_value_t = Ipv4Addr::new(127, 1, 0, 1), value_name = "ADDRESS")]
    first: Ipv4Addr,
    /// Interfaces of each host, lo included.
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=250))]
    interfaces: u32,
    /// Ports of each switch.
    #[arg(long, default_value_t = 48, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    ports: u32,
    /// Time between two changes of the counters.
    #[arg(long, default_value = "100ms", value_name = "SPAN", value_parser = interval)]
    step: Nanos,
    /// How often agents really read their values: none (at every request), 3s, 0.6s..1.2s.
    #[arg(long, default_value = "none", value_name = "SPAN")]
    cache: Cache,
    /// Start the counters shortly before they wrap at so many bits.
    #[arg(long, value_name = "BITS", value_parser = ["32", "64"])]
    wrap: Option<String>,
    /// Share of requests or answers to lose: short for --fault "loss=5%".
    #[arg(long, value_name = "SHARE")]
    loss: Option<String>,
    /// Faults of all agents or of some: "loss=5% delay=2ms", "late=5% node[001-010]". Of answers:
    /// delay, jitter, loss, `loss_each_way`, duplicate, reorder, late, `late_by`, truncate,
    /// `wrong_id`, error, status. Of requests to set something: `refuse_sets`, `refuse_set`,
    /// `lose_set`, `forget_set`, `reboot_at_set`, create.
    #[arg(long = "fault", value_name = "FAULT=VALUE ... [DEVICES]")]
    faults: Vec<String>,
    /// An action at a time: "at 5s restart node003". Actions: restart, reboot, replace, renumber,
    /// restart renumbered, reset, die, wake, set FAULT=VALUE, cache SPAN, hide OID, show OID,
    /// detach NAME, attach NAME of an interface or a disk.
    #[arg(long = "do", value_name = "LINE")]
    script_lines: Vec<String>,
    /// A file with one such action per line; # starts a comment.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// An additional user of version 3, for example "monitor:SHA-1:AES-256".
    #[arg(long = "user", value_name = "NAME[:AUTH[:PRIVACY]]")]
    users: Vec<String>,
    /// File in which to record the true values of every agent at every request.
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// Seed of all random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print the cluster file of exactly this farm and exit.
    #[arg(long)]
    print_cluster: bool,
    /// Write `cluster.toml` and its secrets to this directory before the farm starts.
    #[arg(long, value_name = "DIR", conflicts_with = "print_cluster")]
    write_cluster: Option<PathBuf>,
    /// Instead of serving, record this span of the farm's time as fast as the machine allows; needs
    /// --out.
    #[arg(long = "virtual", value_name = "SPAN", requires = "out")]
    virtual_span: Option<Nanos>,
    /// The recording that --virtual writes; it is marked as simulated.
    #[arg(long, value_name = "RECORDING", requires = "virtual_span")]
    out: Option<PathBuf>,
    /// What the cluster file measures on the hosts. Can be repeated
    #[arg(
        long,
        value_name = "WORDS",
        default_values = [
            "interface:eth0(in_octets,out_octets)",
            "disk:/(used_bytes,available_bytes)",
            "load(load_1min)",
        ],
    )]
    measure: Vec<String>,
    /// The SNMP version in the cluster file.
    #[arg(long, default_value = "2c", value_name = "VERSION", value_parser = ["1", "2c", "3"])]
    snmp_version: String,
    /// The interval of the cluster file.
    #[arg(long, default_value = "100ms", value_name = "SPAN", value_parser = interval)]
    interval: Nanos,
}

impl FarmArgs {
    fn options(&self) -> Result<FarmOptions, Failure> {
        let mut options = FarmOptions {
            first: self.first,
            interfaces: self.interfaces,
            ports: self.ports,
            step: self.step,
            cache: self.cache,
            counters: match self.wrap.as_deref() {
                Some("32") => CounterStart::Before32BitWrap,
                Some(_) => CounterStart::Before64BitWrap,
                None => CounterStart::Random,
            },
            seed: self.seed,
            ..FarmOptions::new(self.count, self.switches)
        };
        for user in &self.users {
            options.access.users.push(farm::simulated_user(user)?);
        }
        if options.agents() == 0 {
            return Err(Failure::new("a farm without agents answers nobody")
                .hint("meikyo farm --count 64 --switches 4"));
        }
        let last = u64::from(u32::from(self.first)) + u64::from(options.agents());
        if !self.first.is_loopback() || last > u64::from(u32::from(Ipv4Addr::new(128, 0, 0, 0))) {
            let text =
                format!("{} agents from {} on leave 127.0.0.0/8", options.agents(), self.first);
            let hint = if self.first.is_loopback() {
                "lower --count, or begin at a lower address: --first 127.0.0.2"
            } else {
                "meikyo farm --first 127.1.0.1"
            };
            return Err(Failure::new(text).hint(hint));
        }
        Ok(options)
    }

    fn events(&self, options: &FarmOptions) -> Result<Vec<Event>, Failure> {
        let mut events = Vec::new();
        if let Some(share) = &self.loss {
            events.push(Event::faults(&format!("loss={share}"), options)?);
        }
        for faults in &self.faults {
            events.push(Event::faults(faults, options)?);
        }
        for line in &self.script_lines {
            events.push(Event::parse(line, options)?);
        }
        let Some(path) = &self.script else { return Ok(events) };
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::new(format!("cannot read `{}`: {error}", path.display())))?;
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or("").trim();
            if !line.is_empty() {
                let event = Event::parse(line, options).map_err(|error| {
                    Failure::new(format!("{}:{number}: {error}", path.display()))
                })?;
                events.push(event);
            }
        }
        Ok(events)
    }
}

/// Runs the farm until it is interrupted.
///
/// # Errors
/// If a setting is wrong, the port cannot be bound or a file cannot be written.
pub(crate) fn run(args: &FarmArgs) -> Result<Answer, Failure> {
    let options = args.options()?;
    let events = args.events(&options)?;
    if args.print_cluster {
        let text = cluster_file::text(args, &options, args.port, "env:MEIKYO_AGENTS_")?;
        output::print_document(&text)?;
        return Ok(Answer::Yes);
    }
    if let (Some(span), Some(out)) = (args.virtual_span, &args.out) {
        return virtual_day::run(args, span, out, |start| {
            let mut farm = Farm::new(options, start);
            farm.schedule(events);
            farm
        });
    }
    let (agents, first) = (options.agents(), options.first);
    let mut farm = Farm::new(options, WallTime::now());
    farm.schedule(events);
    let mut truth = None;
    if let Some(path) = &args.truth {
        farm.record_truth();
        truth = Some(TruthWriter::create(path).map_err(|error| {
            Failure::new(format!("cannot write the truth to `{}`: {error}", path.display()))
        })?);
    }
    let (stop, trigger) = Stop::pair()?;
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::low_level::pipe::register(signal, trigger.try_clone()?)?;
    }
    let socket = farm::FarmSocket::bind(args.port).map_err(|error| {
        let cause = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref());
        let is_denied =
            cause.map(std::io::Error::kind) == Some(std::io::ErrorKind::PermissionDenied);
        Failure::from(error).hint(if is_denied {
            "ports below 1024 need root; give this farm another `--port` (0 takes a free one)"
        } else {
            "another farm may run; give this one another `--port` (0 takes a free one); `ss -lunp` \
             shows who listens"
        })
    })?;
    let port = socket.port()?;
    if let Some(directory) = &args.write_cluster {
        cluster_file::write(args, farm.options(), port, directory)?;
    }
    let agents = counted(agents, "agent");
    say(&format!("ready: {agents} at {first}:{port} and the addresses after it"));
    if let Some(directory) = &args.write_cluster {
        let file = directory.join(cluster_file::NAME);
        say(&format!("next: meikyo measure --cluster {} --serve", file.display()));
    }
    let report = farm::run(&mut farm, &socket, &stop, truth.as_mut())?;
    if let (Some(writer), Some(bytes)) = (truth, farm.truth()) {
        writer.finish(bytes)?;
    }
    say(&format!(
        "{} requests, {} answers, {} lost on purpose, {} for addresses without an agent, {} \
         answers refused by the kernel",
        report.farm.requests,
        report.farm.answers,
        report.farm.lost,
        report.farm.strangers,
        report.refused
    ));
    Ok(Answer::Yes)
}

fn say(line: &str) {
    output::say(line);
}
