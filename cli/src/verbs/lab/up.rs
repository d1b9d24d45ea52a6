//! `meikyo lab up`: from a cluster file to a running lab.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, counted};
use meikyo_fabric::{CheckOptions, Verdict, check};
use meikyo_lab::{
    Blueprint, BlueprintOptions, EngineChoice, EngineError, MANAGEMENT_INTERFACE, MANAGER, Ready,
    Service, Space, UpError, UpOptions,
};
use meikyo_units::{BitsPerSecond, Bytes, WallTime};
use serde_json::json;

use super::{Model, Which, model, roles};
use crate::row_arguments::ClusterArgument;

/// Rates that a link can be shaped to: a full frame takes 121 ms at the least, and 0.1 us at the most.
const RATES: [BitsPerSecond; 2] =
    [BitsPerSecond::new(100_000), BitsPerSecond::new(100_000_000_000)];
/// With less the kernel does not start, or has no room for files.
const MEMORY_MIB_MIN: u64 = 128;
/// A mebibyte.
const MIB: u64 = 1 << 20;
/// Where agents listen.
const AGENT_PORT: u16 = 161;

/// Arguments of `meikyo lab up`.
#[derive(Debug, Args)]
pub(super) struct UpArgs {
    #[command(flatten)]
    cluster: ClusterArgument,
    #[command(flatten)]
    which: Which,
    /// Shape every link to this rate, as `20Mbit/s` [default: as fast as the machine]
    #[arg(long, value_name = "RATE", value_parser = link_rate)]
    rate: Option<BitsPerSecond>,
    /// Run a real snmpd on every host and switch, reached by the manager over links of their own
    ///
    /// A cluster file with their addresses is put into the writable directory:
    /// `meikyo lab exec manager -- meikyo measure --cluster cluster.toml`.
    #[arg(long)]
    snmp: bool,
    /// The directory that can be written inside [default: one that is removed with the lab]
    #[arg(long, value_name = "DIR")]
    files: Option<PathBuf>,
    /// Make this directory or file readable inside, besides the system's directories. Can be
    /// repeated
    #[arg(long, value_name = "PATH")]
    read: Vec<PathBuf>,
    /// What the lab runs on
    #[arg(long, value_enum, default_value_t = On::Any)]
    on: On,
    /// Memory of user-mode Linux [default: by the number of hosts and switches]
    #[arg(long, value_name = "SIZE", value_parser = memory_mib)]
    memory: Option<u64>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum On {
    /// Namespaces if the kernel can, else user-mode Linux
    Any,
    /// Namespaces of the running kernel
    Namespaces,
    /// A kernel that runs as a process: user-mode Linux
    UserModeLinux,
}

pub(super) fn run(args: &UpArgs) -> Result<Answer, Failure> {
    let asked = WallTime::now();
    let Model { cluster, wiring, configuration, .. } = model(&args.cluster.file)?;
    let report = check(&wiring, &configuration, &CheckOptions::INTACT);
    if report.verdict() == Verdict::Refused {
        let faults: Vec<String> =
            report.faults.iter().map(|fault| fault.in_words(&wiring).to_string()).collect();
        return Err(Failure::new(format!("the plan is refused: {}", faults.join("; ")))
            .hint(format!("meikyo fabric check --cluster {}", args.cluster.file.display())));
    }
    let options = BlueprintOptions { rate: args.rate, management: args.snmp };
    let blueprint = Blueprint::new(&wiring, &configuration, &options)?;
    let engine = match args.on {
        On::Any => EngineChoice::Any,
        On::Namespaces => EngineChoice::Namespaces,
        On::UserModeLinux => EngineChoice::UserModeLinux,
    };
    let (services, contents) = if args.snmp { snmp(&blueprint)? } else { (Vec::new(), Vec::new()) };
    let options = UpOptions {
        directory: args.which.directory()?,
        files: args.files.clone(),
        read: args.read.clone(),
        engine,
        memory_mib: args.memory,
        name: cluster.name.clone(),
        cluster_text: std::fs::read_to_string(&args.cluster.file)?,
        services,
        contents,
    };
    let ready = meikyo_lab::up(&blueprint, &roles::roles()?, &options).map_err(hinted)?;
    let took_ms = WallTime::now().since(asked).as_micros() / 1_000;
    if args.json {
        output::print_json(&json!({
            "schema": "meikyo.lab.up/1",
            "name": cluster.name,
            "directory": options.directory.path(),
            "kernel": ready.kernel,
            "switches": wiring.switches.len(),
            "hosts": wiring.hosts.len(),
            "steps": ready.steps,
            "took_ms": took_ms,
        }))?;
    } else {
        output::print(&text(&cluster.name, &wiring, &ready, took_ms))?;
    }
    Ok(Answer::Yes)
}

/// An amount of memory as typed, in whole MiB.
fn memory_mib(text: &str) -> Result<u64, String> {
    let bytes: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    let mib = bytes.get() / MIB;
    if mib < MEMORY_MIB_MIN || !bytes.get().is_multiple_of(MIB) {
        return Err(format!("write whole mebibytes, at least {MEMORY_MIB_MIN}MiB"));
    }
    Ok(mib)
}

fn link_rate(text: &str) -> Result<BitsPerSecond, String> {
    let rate: BitsPerSecond = text.parse().map_err(|error| format!("{error}"))?;
    let [least, most] = RATES;
    if rate < least || rate > most {
        return Err(format!("links can be shaped to {least} up to {most}, not to {rate}"));
    }
    Ok(rate)
}

fn hinted(error: UpError) -> Failure {
    let hint = match &error {
        UpError::Directory(meikyo_lab::DirectoryError::NoFiles(files)) if !files.exists() => {
            let hint = format!("mkdir -p {}", files.display());
            return Failure::new(error).hint(hint);
        }
        UpError::Engine(EngineError::NoKernel { .. }) => {
            "apt-get install --no-install-recommends user-mode-linux"
        }
        UpError::Directory(meikyo_lab::DirectoryError::Running(_)) => "meikyo lab down",
        UpError::Directory(
            meikyo_lab::DirectoryError::Taken(_) | meikyo_lab::DirectoryError::Inside(_),
        ) => "name another directory with `--files`, or none",
        _ => return Failure::new(error),
    };
    Failure::new(error).hint(hint)
}

fn text(name: &str, wiring: &meikyo_fabric::Wiring, ready: &Ready, took_ms: u64) -> String {
    let mut text = format!(
        "{name}: {} and {} up after {took_ms} ms, on Linux {} (",
        counted(wiring.switches.len(), "switch"),
        counted(wiring.hosts.len(), "host"),
        ready.kernel
    );
    for (nth, step) in ready.steps.iter().enumerate() {
        let comma = if nth == 0 { "" } else { ", " };
        write!(text, "{comma}{} {} ms", step.step, step.took_ms)
            .expect("writing to a string cannot fail");
    }
    text.push_str(")\n");
    if let Some(host) = wiring.hosts.first() {
        writeln!(text, "try: meikyo lab exec {} -- ip address", host.name)
            .expect("writing to a string cannot fail");
    }
    text
}

/// Files by name.
type Contents = Vec<(String, String)>;

/// An agent for every host and switch, and the cluster file with their addresses.
fn snmp(blueprint: &Blueprint) -> Result<(Vec<Service>, Contents), Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    places.extend(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    let Some(snmpd) = places.iter().map(|place| place.join("snmpd")).find(|file| file.is_file())
    else {
        return Err(Failure::new("there is no snmpd here").hint("apt-get install snmpd"));
    };
    let mut services = Vec::new();
    let mut file = String::from(
        "# The cluster as the manager of the lab sees it.\nname = \"lab\"\n\
         snmp = { version = \"2c\", community = \"file:community\" }\n",
    );
    for (kind, measure) in [
        ("hosts", "\"load\", \"cpu\", \"memory\", \"interface:eth0\""),
        ("switches", "\"interfaces\""),
    ] {
        let spaces: Vec<&Space> = if kind == "hosts" {
            blueprint.hosts().map(|(_, space)| space).collect()
        } else {
            blueprint.switches().map(|(_, space)| space).collect()
        };
        for space in spaces {
            let Some(address) = space.management else { continue };
            write!(
                file,
                "\n[[{kind}]]\nname = \"{}\"\naddress = \"{address}\"\nmeasure = [{measure}]\n",
                space.name
            )
            .expect("writing to a string cannot fail");
            services.push(Service {
                space: space.name.clone(),
                command: agent(&snmpd, &address.to_string()),
                udp_port: AGENT_PORT,
            });
        }
    }
    let contents = [
        ("cluster.toml", file),
        ("community", "lab\n".into()),
        ("snmpd.conf", "rocommunity lab\n".into()),
    ];
    let contents = contents.map(|(name, content)| (name.to_owned(), content)).to_vec();
    if blueprint.space(MANAGER).is_none() {
        return Err(Failure::new(format!(
            "no manager reaches {MANAGEMENT_INTERFACE} of the hosts"
        )));
    }
    Ok((services, contents))
}

fn agent(snmpd: &std::path::Path, address: &str) -> Vec<String> {
    let snmpd = snmpd.to_string_lossy().into_owned();
    let run = "/tmp/snmpd-$0";
    // Each agent keeps its state in a directory of its own, which ends with the lab.
    let script = format!(
        "mkdir -p {run} && exec env SNMP_PERSISTENT_DIR={run} \"$1\" -f -C -c snmpd.conf -LS0-3d \
         -p {run}/pid \"udp:$0:{AGENT_PORT}\""
    );
    vec!["sh".into(), "-c".into(), script, address.into(), snmpd]
}
