//! `meikyo config init`: a cluster file made of what answers at some addresses.
//!
//! Only the addresses that are given are asked, and only with the credentials that are given.

mod found;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use meikyo_cluster::{Access, AuthProtocol, LoadError, PrivProtocol, Secret, fold, unfold};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, counted};
use meikyo_recording::unfinished::{Durability, replace_file};
use meikyo_snmp::Credentials;
use meikyo_snmp::survey::{Job, SurveyError, SurveyOptions, walk_all};
use meikyo_units::{Nanos, in_one_line};
use serde_json::json;

use crate::verbs::agent::Keyed;
use found::Found;

/// Addresses that one command asks at most: a network of 16 bits.
const ADDRESSES_MAX: usize = 65_536;
/// Requests in flight: what the receive buffer of Linux holds.
const IN_FLIGHT_MAX: usize = 64;

/// Where is looked, with what, and where the file goes.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("credentials").required(true).multiple(true).args(["community", "user"])))]
pub(super) struct InitArgs {
    /// Addresses to ask, also folded (10.0.0.[1-225]) and with a port (10.0.0.1:1161)
    #[arg(required = true, value_name = "ADDRESSES")]
    addresses: Vec<String>,
    /// Ask with this community (SNMPv2c), a reference as it will be in the file. Can be repeated;
    /// the first that is answered is used
    #[arg(long = "community", id = "community", value_name = "env:NAME|file:PATH")]
    communities: Vec<Secret>,
    /// Ask with this user (SNMPv3), before any community
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Authentication protocol of the user and password
    #[arg(long, value_name = "PROTOCOL:REFERENCE", requires = "user")]
    auth: Option<Keyed<AuthProtocol>>,
    /// Privacy protocol of the user and password
    #[arg(long, value_name = "PROTOCOL:REFERENCE", requires = "auth")]
    privacy: Option<Keyed<PrivProtocol>>,
    /// UDP port of agents whose address names none
    #[arg(long, default_value_t = 161)]
    port: u16,
    /// How long to wait for an answer
    #[arg(long, value_name = "SPAN", default_value = "1s")]
    timeout: Nanos,
    /// Name of the cluster
    #[arg(long, value_name = "NAME", default_value = "cluster")]
    name: String,
    /// The cluster file to write
    #[arg(long, value_name = "FILE", default_value = "cluster.toml", env = "MEIKYO_CLUSTER")]
    out: PathBuf,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
    /// Print what was found as one JSON document
    #[arg(long)]
    json: bool,
}

/// Looks, and writes the file if anything answers.
pub(super) fn run(args: &InitArgs) -> Result<Answer, Failure> {
    if args.out.exists() && !args.force {
        return Err(Failure::new(format!("{} is there already", args.out.display()))
            .hint("name another file with `--out`, or overwrite it with `--force`"));
    }
    let addresses = addresses(args)?;
    let base = args.out.parent().unwrap_or_else(|| Path::new(""));
    let mut left: Vec<SocketAddr> = addresses;
    let mut found = Vec::new();
    let mut refused = BTreeMap::new();
    for access in args.accesses() {
        let credentials = Credentials::resolve(&access, base)?;
        refused.extend(ask(&mut left, &credentials, &access, args.timeout, &mut found)?);
    }
    refused.retain(|address, _| left.contains(address));
    found.sort_by_key(|device: &Found| device.address);
    found::name(&mut found);
    let silent = left.iter().filter(|address| !refused.contains_key(address));
    let silent: Vec<String> = silent.map(SocketAddr::to_string).collect();
    if !found.is_empty() {
        let text = text::file(&args.name, args.port, &found);
        check(&text, &args.out)?;
        replace_file(&args.out, text.as_bytes(), Durability::Disk).map_err(|error| {
            Failure::new(format!("cannot write `{}`: {error}", args.out.display()))
                .hint("name another file with `--out`")
        })?;
    }
    tell(args, &found, &silent, &refused)?;
    Ok(if found.is_empty() { Answer::No } else { Answer::Yes })
}

impl InitArgs {
    /// What is asked with, in order.
    fn accesses(&self) -> Vec<Access> {
        let user = self.user.as_ref().map(|user| Access::V3 {
            user: user.clone(),
            auth: self.auth.clone().map(|keyed| (keyed.protocol, keyed.password)),
            privacy: self.privacy.clone().map(|keyed| (keyed.protocol, keyed.password)),
        });
        let communities = self.communities.iter().cloned();
        user.into_iter().chain(communities.map(|community| Access::V2c { community })).collect()
    }
}

/// Every address that is meant, once, in order.
fn addresses(args: &InitArgs) -> Result<Vec<SocketAddr>, Failure> {
    let mut all = BTreeSet::new();
    for text in &args.addresses {
        for one in unfold(text)? {
            let address = one.parse::<SocketAddr>().ok();
            let alone = || one.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, args.port));
            let address = address.or_else(alone).ok_or_else(|| {
                Failure::new(format!("`{one}` is no address"))
                    .hint("write `10.0.0.1`, `10.0.0.[1-225]` or `10.0.0.1:1161`")
            })?;
            all.insert(address);
            if all.len() > ADDRESSES_MAX {
                return Err(Failure::new(format!("more than {ADDRESSES_MAX} addresses")));
            }
        }
    }
    Ok(all.into_iter().collect())
}

/// Asks all addresses that are left; those that answer leave. What others said that did not accept it.
fn ask(
    left: &mut Vec<SocketAddr>,
    credentials: &Credentials,
    access: &Access,
    timeout: Nanos,
    found: &mut Vec<Found>,
) -> Result<BTreeMap<SocketAddr, String>, Failure> {
    let jobs = left.iter().enumerate().map(|(device, &address)| Job {
        device,
        address,
        credentials: credentials.clone(),
        subtrees: found::subtrees(),
    });
    let options = SurveyOptions { in_flight_max: IN_FLIGHT_MAX, timeout, retries: 1 };
    let (mut answered, mut refused) = (BTreeSet::new(), BTreeMap::new());
    for finished in walk_all(jobs.collect(), options)? {
        let walked = match finished.result {
            Ok(walked) => walked,
            Err(SurveyError::Refused(why)) => {
                refused.insert(left[finished.device], in_one_line(&why));
                continue;
            }
            Err(_) => continue,
        };
        // An agent that shows nothing to these credentials may show something to others.
        let Some(device) = Found::new(left[finished.device], access.clone(), &walked) else {
            continue;
        };
        answered.insert(device.address);
        found.push(device);
    }
    left.retain(|address| !answered.contains(address));
    Ok(refused)
}

/// What is written is what `meikyo config check` finds right.
fn check(text: &str, path: &Path) -> Result<(), Failure> {
    let resolved = meikyo_cluster::parse_resolved(text, path)?;
    match super::problems::of_file(&resolved) {
        Some(problems) => Err(Failure::new(LoadError::Invalid(problems))),
        None => Ok(()),
    }
}

fn tell(
    args: &InitArgs,
    found: &[Found],
    silent: &[String],
    refused: &BTreeMap<SocketAddr, String>,
) -> Result<(), Failure> {
    let switches = found.iter().filter(|device| device.is_switch).count();
    let hosts = found.len() - switches;
    let file = args.out.display();
    if args.json {
        let devices = found.iter().map(|device| {
            json!({
                "name": device.name, "address": device.address.to_string(),
                "role": if device.is_switch { "switch" } else { "host" },
                "measure": device.measure,
            })
        });
        output::print_json(&json!({
            "schema": "meikyo.config.init/1", "file": args.out,
            "written": !found.is_empty(), "devices": devices.collect::<Vec<_>>(), "silent": silent,
            "refused": refused.keys().map(SocketAddr::to_string).collect::<Vec<_>>(),
        }))?;
        return Ok(());
    }
    let mut text = if found.is_empty() {
        "nothing answers as asked; no file was written\n".to_owned()
    } else {
        format!("{file}: {}, {}\n", counted(hosts, "host"), counted(switches, "switch"))
    };
    if !silent.is_empty() {
        text += &format!("no answer from {} of them: {}\n", silent.len(), fold(silent));
    }
    for (address, why) in refused {
        text += &format!("{address} answers, but {why}\n");
    }
    if !found.is_empty() {
        text += &format!("next: meikyo probe --cluster {file}\n");
    }
    output::print(&text)?;
    Ok(())
}
