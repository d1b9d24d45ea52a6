//! `meikyo fabric prime`: this host sends what teaches the switches where it is.

use clap::Args;
use meikyo_cluster::MacAddress;
use meikyo_fabric::{
    Described, HostId, Priming, PrimingSocket, plan, primed_entries, priming_frame_bytes,
    priming_period,
};
use meikyo_units::{Nanos, WallTime};
use serde_json::json;

use super::FileArgs;
use crate::args::interval;
use crate::failure::{Answer, Failure};
use crate::output::{self, TextTable};

/// Arguments of `meikyo fabric prime`.
#[derive(Debug, Args)]
pub(super) struct PrimeArgs {
    #[command(flatten)]
    input: FileArgs,
    /// The host that this is
    #[arg(long, value_name = "NAME")]
    host: String,
    /// Its interface in the fabric
    #[arg(long, default_value = "eth0", value_name = "NAME")]
    interface: String,
    /// Go on, and prime again whenever half of the switches' ageing time is over
    #[arg(long)]
    timer: bool,
    /// For how long announcements of representatives are waited for and answered
    #[arg(long, value_name = "SPAN", default_value = "10s", value_parser = interval)]
    answer: Nanos,
    /// Say what would be sent, and send nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(args: &PrimeArgs) -> Result<Answer, Failure> {
    let (_, Described { wiring, options }) = super::described(&args.input)?;
    let configuration = plan(&wiring, &options).map_err(super::unplannable)?.configuration(&wiring);
    let host = wiring.hosts.iter().position(|host| host.name == args.host).ok_or_else(|| {
        Failure::new(format!("there is no host `{}`", args.host))
            .hint("the hosts of the fabric are those of the cluster file")
    })?;
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
    if args.dry_run || configuration.priming == Priming::None {
        return Ok(Answer::Yes);
    }
    let socket = PrimingSocket::open(&args.interface).map_err(|error| {
        Failure::new(error).hint("whole frames need root, or `setcap cap_net_raw+ep` on the binary")
    })?;
    loop {
        for frame in &own {
            socket.send(&priming_frame_bytes(socket.mac(), None, frame.vlan))?;
        }
        let again = WallTime::now() + period.unwrap_or(args.answer);
        let until = if args.timer { again } else { WallTime::now() + args.answer };
        if answers || args.timer {
            answer(&socket, until, answers)?;
        }
        if !args.timer {
            return Ok(Answer::Yes);
        }
    }
}

/// Answers the announcements of representatives until it is time.
fn answer(socket: &PrimingSocket, until: WallTime, answers: bool) -> Result<(), Failure> {
    loop {
        let now = WallTime::now();
        if now >= until {
            return Ok(());
        }
        let Some(notice) = socket.hear(until.since(now))? else { continue };
        let to: MacAddress = notice.from;
        if answers && notice.is_broadcast && to != socket.mac() {
            socket.send(&priming_frame_bytes(socket.mac(), Some(to), notice.vlan))?;
        }
    }
}
