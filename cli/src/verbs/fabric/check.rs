//! `meikyo fabric check`: whether a configuration does what it must, and if not, where it fails.

use std::path::PathBuf;

use clap::Args;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, counted};
use meikyo_fabric::check::{Hop, path};
use meikyo_fabric::dialect::Dialect;
use meikyo_fabric::{
    CheckOptions, Configuration, Described, Fault, HostId, Report, SwitchId, TrunkId, Verdict,
    Warning, Wiring, check, plan, plan_failover,
};
use serde_json::{Value, json};

use meikyo_units::in_one_line;

use super::{FileArgs, site};

/// Faults that are named in text.
const FAULTS_NAMED: usize = 20;

/// Arguments of `meikyo fabric check`.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    input: FileArgs,
    /// Check the switches' configurations in this directory, SWITCH.cfg or SWITCH.sh, instead of
    /// the plan
    #[arg(long, value_name = "DIR")]
    config: Option<PathBuf>,
    /// The dialect of switches whose model has none
    #[arg(long, value_name = "NAME", requires = "config")]
    dialect: Option<Dialect>,
    /// Also check the failure of every single trunk, after the changes of `meikyo fabric failover`
    #[arg(long)]
    each_failure: bool,
    /// Show the path of frames from one host to another, and back
    #[arg(long, num_args = 2, value_names = ["FROM", "TO"])]
    path: Option<Vec<String>>,
}

/// What was found out about one trunk's failure.
struct Failed {
    trunk: TrunkId,
    /// Hosts whose ports get another VLAN.
    moves: usize,
    /// Parts that lose each other; 0 if all stay connected.
    parts: usize,
    outcome: Result<Report, String>,
}

/// The way between two hosts, there and back.
struct Way {
    hosts: [HostId; 2],
    hops: [Option<Vec<Hop>>; 2],
}

/// Runs the check; the answer is no if anything is refused.
pub(super) fn run(args: &CheckArgs) -> Result<Answer, Failure> {
    let (_, Described { wiring, options }) = super::described(&args.input)?;
    let plan = plan(&wiring, &options).map_err(super::unplannable)?;
    let mut configuration = plan.configuration(&wiring);
    if let Some(dir) = &args.config {
        for (place, settings) in configuration.switches.iter_mut().enumerate() {
            let switch = SwitchId::new(place);
            *settings = site::read_one(&wiring, dir, args.dialect, switch)?.settings;
        }
    }
    let way = match args.path.as_deref() {
        Some([from, to]) => Some(way(&wiring, &configuration, [from, to])?),
        _ => None,
    };
    let report = check(&wiring, &configuration, &CheckOptions::INTACT);
    let trunks = (0..wiring.trunks.len()).map(TrunkId::new).filter(|_| args.each_failure);
    let failed: Vec<Failed> = trunks.map(|trunk| failed(&wiring, &configuration, trunk)).collect();
    let is_good = report.verdict() == Verdict::Good && failed.iter().all(Failed::is_good);
    if args.input.json {
        let mut document = document(&wiring, &report);
        document["good"] = json!(is_good);
        if args.each_failure {
            document["failures"] = failed.iter().map(|failed| failed.document(&wiring)).collect();
        }
        if let Some(way) = &way {
            document["path"] = way.document(&wiring);
        }
        output::print_json(&document)?;
    } else {
        let mut text = text(&wiring, &report);
        for warning in &report.warnings {
            text += &format!("warning: {}\n", warning.in_words(&wiring));
            if matches!(warning, Warning::HotSpot { .. }) {
                text += "  `meikyo fabric plan` says which other settings would carry less there\n";
            }
        }
        failed.iter().for_each(|failed| text += &failed.text(&wiring));
        text += &way.map_or_else(String::new, |way| way.text(&wiring));
        output::print(&text)?;
    }
    Ok(if is_good { Answer::Yes } else { Answer::No })
}

fn way(
    wiring: &Wiring,
    configuration: &Configuration,
    names: [&String; 2],
) -> Result<Way, Failure> {
    let mut hosts = [HostId::new(0); 2];
    for (host, name) in hosts.iter_mut().zip(names) {
        let place = wiring.hosts.iter().position(|host| host.name == *name);
        *host = HostId::new(place.ok_or_else(|| {
            Failure::new(format!("the cluster file has no host `{name}` in its fabric"))
        })?);
    }
    let [one, other] = hosts;
    let hops = [(one, other), (other, one)].map(|(from, to)| path(wiring, configuration, from, to));
    Ok(Way { hosts, hops })
}

fn failed(wiring: &Wiring, configuration: &Configuration, trunk: TrunkId) -> Failed {
    match plan_failover(wiring, configuration, trunk, None) {
        Ok(failover) => {
            let after = failover.applied(wiring, configuration);
            let outcome = Ok(check(wiring, &after, &CheckOptions::failed(trunk)));
            let (moves, parts) = (failover.moves.len(), failover.parts.len());
            Failed { trunk, moves, parts, outcome }
        }
        Err(error) => Failed { trunk, moves: 0, parts: 0, outcome: Err(in_one_line(&error)) },
    }
}

impl Failed {
    fn is_good(&self) -> bool {
        self.outcome.as_ref().is_ok_and(|report| report.verdict() == Verdict::Good)
    }

    fn document(&self, wiring: &Wiring) -> Value {
        json!({
            "trunk": wiring.trunk_name(self.trunk),
            "good": self.is_good(),
            "moves": self.moves,
            "parts": self.parts,
            "no_plan": self.outcome.as_ref().err(),
            "faults": self.outcome.as_ref().map_or_else(|_| Vec::new(), |r| faults(wiring, r)),
        })
    }

    fn text(&self, wiring: &Wiring) -> String {
        let trunk = wiring.trunk_name(self.trunk);
        let apart = match self.parts {
            0 | 1 => String::new(),
            parts => format!("; {parts} parts are separated in any case"),
        };
        match &self.outcome {
            Err(error) => format!("without {trunk}: refused: {error}\n"),
            Ok(report) if self.is_good() => {
                let table = report.table_entries_max();
                let moves = self.moves;
                format!("without {trunk}: good, {moves} hosts move, {table} table entries{apart}\n")
            }
            Ok(report) => {
                format!("without {trunk}: {}{apart}\n", listed(wiring, report).trim_end())
            }
        }
    }
}

impl Way {
    fn document(&self, wiring: &Wiring) -> Value {
        let hops = |hops: &Option<Vec<Hop>>| {
            hops.as_ref().map(|hops| {
                let hop = |hop: &Hop| {
                    json!({
                        "from": wiring.switches[hop.from.place()].name,
                        "to": wiring.switches[hop.to.place()].name,
                        "trunk": wiring.trunk_name(hop.trunk),
                        "vlan": hop.vlan.id(),
                    })
                };
                hops.iter().map(hop).collect::<Vec<_>>()
            })
        };
        let [from, to] = self.hosts.map(|host| &wiring.hosts[host.place()].name);
        json!({"from": from, "to": to, "there": hops(&self.hops[0]), "back": hops(&self.hops[1])})
    }

    fn text(&self, wiring: &Wiring) -> String {
        let [from, to] = self.hosts;
        let one_way = |from: HostId, to: HostId, hops: &Option<Vec<Hop>>| {
            let host = |host: HostId| &wiring.hosts[host.place()];
            let Some(hops) = hops else {
                return format!("{} to {}: no way\n", host(from).name, host(to).name);
            };
            let mut text = format!("{} to {}: ", host(from).name, host(to).name);
            text += &wiring.switches[host(from).switch.place()].name;
            for hop in hops {
                let to = &wiring.switches[hop.to.place()].name;
                text += &format!(", in VLAN {} to {to}", hop.vlan);
            }
            text + "\n"
        };
        one_way(from, to, &self.hops[0]) + &one_way(to, from, &self.hops[1])
    }
}

fn faults(wiring: &Wiring, report: &Report) -> Vec<Value> {
    let fault = |fault: &Fault| {
        json!({
            "kind": fault.kind(),
            "is_rule": fault.is_rule(),
            "text": fault.in_words(wiring).to_string(),
        })
    };
    report.faults.iter().map(fault).collect()
}

fn document(wiring: &Wiring, report: &Report) -> Value {
    let switch = |switch: SwitchId| &wiring.switches[switch.place()].name;
    let tables = report.table_entries.iter().zip(&wiring.switches).map(|(entries, switch)| {
        json!({
            "switch": switch.name,
            "entries": entries,
            "limit": switch.model.table_entries,
        })
    });
    let links = report.loads.iter().map(|load| {
        json!({
            "trunk": wiring.trunk_name(load.trunk),
            "from": switch(load.from),
            "to": switch(load.to),
            "cables": load.cables,
            "pairs": load.pairs,
        })
    });
    json!({
        "schema": "meikyo.fabric.check/1",
        "verdict": verdict(report),
        "hosts": wiring.hosts.len(),
        "switches": wiring.switches.len(),
        "trunks": wiring.trunks.len(),
        "followed": report.followed,
        "vlans": report.vlans,
        "deadlock_free": report.followed.then_some(report.deadlock_free),
        "table_entries_max": report.followed.then(|| report.table_entries_max()),
        "link_load_pairs_max": report.followed.then(|| report.link_load_max()),
        "prime_every_s": report.prime_every.map(|span| span.as_secs_f64()),
        "faults": faults(wiring, report),
        "faults_unlisted": report.faults_unlisted,
        "warnings": super::shown_warnings(wiring, &report.warnings),
        "tables": tables.collect::<Vec<_>>(),
        "links": links.collect::<Vec<_>>(),
    })
}

fn verdict(report: &Report) -> &'static str {
    match report.verdict() {
        Verdict::Good => "good",
        Verdict::Refused => "refused",
    }
}

/// `refused: `, how much is wrong, and what.
fn listed(wiring: &Wiring, report: &Report) -> String {
    let faults = report.faults.iter().take(FAULTS_NAMED);
    let count = report.faults_unlisted + report.faults.len() as u64;
    let plural = if count == 1 { "" } else { "s" };
    let mut text = format!("refused: {count} fault{plural}\n");
    text.extend(faults.map(|fault| format!("  {}\n", fault.in_words(wiring))));
    let named = report.faults.len().min(FAULTS_NAMED) as u64;
    if count > named {
        text += &format!("  and {} more\n", count - named);
    }
    text
}

fn text(wiring: &Wiring, report: &Report) -> String {
    let (hosts, switches) = (wiring.hosts.len(), wiring.switches.len());
    let trunks = wiring.trunks.len();
    let size =
        [counted(hosts, "host"), counted(switches, "switch"), counted(trunks, "trunk")].join(", ");
    if report.verdict() == Verdict::Refused {
        return format!("{size}\n{}", listed(wiring, report));
    }
    let most = report.table_entries_max();
    let fullest = report.table_entries.iter().position(|&entries| entries == most);
    let fullest = fullest.map_or_else(String::new, |place| {
        let switch = &wiring.switches[place];
        format!(" of {} (`{}`)", switch.model.table_entries, switch.name)
    });
    let loop_free = if report.vlans == 1 { "VLAN without a loop" } else { "VLANs without loops" };
    let prime = report.prime_every.map_or_else(
        || "switches never forget".to_owned(),
        |span| format!("if primed at least every {span}, no switch forgets"),
    );
    format!(
        "{size}\ngood: {} {loop_free}; every host reaches every other one over one way, and \
         nothing floods\nno trunks can wait for each other under pause frames\nat most {most} table \
         entries{fullest}; {prime}\nat most {} pairs of hosts share a cable\n",
        report.vlans,
        report.link_load_max(),
    )
}
