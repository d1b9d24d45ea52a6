//! `meikyo fabric prime`: this host sends what teaches the switches where it is.

use std::io;
use std::net::UdpSocket;
use std::path::Path;

use clap::Args;
use meikyo_cluster::{Cluster, MacAddress};
use meikyo_console::arguments::interval;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable};
use meikyo_fabric::{
    Described, HostId, Priming, PrimingFrame, PrimingSocket, PrimingSocketError, Vlan, plan,
    primed_entries, priming_frame_bytes, priming_period,
};
use meikyo_units::{Nanos, WallTime};
use serde_json::json;

use super::FileArgs;

/// How often representatives announce themselves to those that come up late, and the link is looked at.
const TURN: Nanos = Nanos::from_secs(1);

/// Arguments of `meikyo fabric prime`.
#[derive(Debug, Args)]
pub(super) struct PrimeArgs {
    #[command(flatten)]
    input: FileArgs,
    /// The name of this host in the cluster file
    #[arg(long, value_name = "NAME")]
    host: String,
    /// Its interface in the fabric
    #[arg(long, default_value = "eth0", value_name = "NAME")]
    interface: String,
    /// Keep running, and prime again after half of the switches' ageing time and whenever the link
    /// comes back
    #[arg(long)]
    timer: bool,
    /// How long representatives announce themselves and are answered
    #[arg(long, value_name = "SPAN", default_value = "10s", value_parser = interval)]
    answer: Nanos,
    /// Print what would be sent, and send nothing
    #[arg(long)]
    dry_run: bool,
    /// Send even if this machine does not have the address that the cluster file gives the host
    #[arg(long)]
    any_address: bool,
}

pub(super) fn run(args: &PrimeArgs) -> Result<Answer, Failure> {
    let (cluster, Described { wiring, options }) = super::described(&args.input)?;
    let configuration = plan(&wiring, &options).map_err(super::unplannable)?.configuration(&wiring);
    let host = wiring.hosts.iter().position(|host| host.name == args.host).ok_or_else(|| {
        Failure::new(format!("there is no host `{}`", args.host))
            .hint("the hosts of the fabric are those of the cluster file")
    })?;
    let sends = !args.dry_run && configuration.priming != Priming::None;
    if sends && !args.any_address {
        check_is_own(&cluster, &args.host)?;
    }
    let own = meikyo_fabric::own_priming_frames(&configuration, HostId::new(host));
    let period = priming_period(&configuration);
    let entries = primed_entries(&wiring, &configuration);
    let answers = matches!(configuration.priming, Priming::Directed(_));
    if args.input.json {
        let switches: Vec<_> = wiring
            .switches
            .iter()
            .zip(&entries)
            .map(|(switch, vlans)| {
                let vlans: Vec<_> = vlans
                    .iter()
                    .map(|(vlan, hosts)| json!({ "vlan": vlan.id(), "table_entries": hosts }))
                    .collect();
                json!({ "switch": switch.name, "vlans": vlans })
            })
            .collect();
        output::print_json(&json!({
            "schema": "meikyo.fabric.prime/1",
            "host": args.host,
            "broadcasts": own.iter().map(|frame| frame.vlan.id()).collect::<Vec<_>>(),
            "answers": answers,
            "period_s": period.map(Nanos::as_secs_f64),
            "switches": switches,
        }))?;
    } else {
        let mut table = TextTable::new(&["switch", "table entries from priming"]);
        for (switch, vlans) in wiring.switches.iter().zip(&entries) {
            table.row([switch.name.clone(), vlans.values().sum::<usize>().to_string()]);
        }
        let again = period.map_or_else(|| "once".into(), |period| format!("every {period}"));
        let also = if answers { ", and answers to representatives" } else { "" };
        output::print(&format!(
            "{}: {} tagged broadcasts{also}; {again}\nWhen all hosts have primed:\n{table}",
            args.host,
            own.len()
        ))?;
    }
    if !sends {
        return Ok(Answer::Yes);
    }
    let socket = PrimingSocket::open(&args.interface).map_err(|error| {
        let hint = match error {
            PrimingSocketError::NoInterface(_) => "`--interface` names it; `ip link` lists them",
            PrimingSocketError::Socket { .. } => {
                "whole frames need root, or `setcap cap_net_raw+ep` on the binary"
            }
        };
        Failure::new(error).hint(hint)
    })?;
    let primer = Primer { socket, args, own, answers };
    loop {
        primer.round(period.filter(|_| args.timer))?;
        if !args.timer {
            return Ok(Answer::Yes);
        }
    }
}

/// Refuses to speak for a host that is another machine: switches would look for it here.
fn check_is_own(cluster: &Cluster, host: &str) -> Result<(), Failure> {
    let device = cluster.devices.iter().find(|device| device.name == host);
    let Some(address) = device.map(|device| device.address.ip()) else { return Ok(()) };
    let fault = match UdpSocket::bind((address, 0)) {
        Ok(_) if !address.is_loopback() => return Ok(()),
        Ok(_) => "that every machine has",
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => "that no interface has",
        Err(error) => return Err(error.into()),
    };
    Err(Failure::new(format!(
        "this machine is not known to be `{host}`: the cluster file gives it {address}, {fault} here; \
         nothing was sent"
    ))
    .hint(format!(
        "run it on `{host}` itself, or in a lab (`meikyo lab exec {host} -- meikyo fabric prime ..`); \
         `--dry-run` only says what would be sent, `--any-address` with `--interface` sends it from here"
    )))
}

/// A host that primes.
struct Primer<'a> {
    socket: PrimingSocket,
    args: &'a PrimeArgs,
    /// What it sends by itself.
    own: Vec<PrimingFrame>,
    /// Whether it answers representatives.
    answers: bool,
}

impl Primer<'_> {
    /// Primes; then answers others, and announces itself to those that come up a little later. Goes on
    /// for the period if there is one, unless the link goes and comes: its switch may have forgotten.
    fn round(&self, period: Option<Nanos>) -> Result<(), Failure> {
        let link = self.link_changes();
        let begin = WallTime::now();
        let mut turn = begin;
        self.announce()?;
        if period.is_none() && !self.answers {
            return Ok(());
        }
        let span = period.unwrap_or(self.args.answer);
        loop {
            let now = WallTime::now();
            // A clock that was set back would make it wait for longer.
            if now < begin || now.since(begin) >= span {
                return Ok(());
            }
            if now.since(turn) >= TURN {
                turn = now;
                if period.is_some() && self.link_changes() != link {
                    return Ok(());
                }
                if self.answers && now.since(begin) < self.args.answer {
                    self.announce()?;
                }
            }
            self.answer(TURN.min(span.saturating_sub(now.since(begin))))?;
        }
    }

    fn announce(&self) -> Result<(), Failure> {
        self.own.iter().try_for_each(|frame| self.send(None, frame.vlan))
    }

    /// Answers the announcement of a representative if one comes in this time.
    fn answer(&self, span: Nanos) -> Result<(), Failure> {
        let heard = self.despite_link(self.socket.hear(span))?.flatten();
        match heard {
            Some(notice)
                if self.answers && notice.is_broadcast && notice.from != self.socket.mac() =>
            {
                self.send(Some(notice.from), notice.vlan)
            }
            _ => Ok(()),
        }
    }

    fn send(&self, to: Option<MacAddress>, vlan: Vlan) -> Result<(), Failure> {
        let sent = self.socket.send(&priming_frame_bytes(self.socket.mac(), to, vlan));
        self.despite_link(sent).map(drop)
    }

    /// `None` if the interface is down, which a timer waits out.
    fn despite_link<T>(&self, done: io::Result<T>) -> Result<Option<T>, Failure> {
        match done {
            Ok(done) => Ok(Some(done)),
            Err(error) if self.args.timer && error.kind() == io::ErrorKind::NetworkDown => {
                std::thread::park_timeout(TURN.to_std());
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// How often the interface's link came and went; `None` if the system does not count it.
    fn link_changes(&self) -> Option<String> {
        let interface = Path::new("/sys/class/net").join(&self.args.interface);
        std::fs::read_to_string(interface.join("carrier_changes")).ok()
    }
}
