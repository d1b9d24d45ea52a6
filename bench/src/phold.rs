//! `meikyo bench phold`: the synthetic load by which simulation kernels are compared.
//!
//! The truth that a run is checked against: the number of events follows from the parameters (the
//! population is constant, so it is lps × events × end / mean, within what chance allows), every
//! committed event is counted in the state of an LP, and a run under any other scheduler than the
//! sequential one ends in the states that the sequential one ends in.

mod bare;
mod hold;

use std::time::Instant;

use meikyo_console::benches::phold::PholdArgs;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable, real};
use meikyo_models::phold::{self, Holder, Phold};
use meikyo_sim::{Effort, Options, Outcome, Scheduler};
use meikyo_units::{Nanos, SimTime};
use serde::Serialize;

use crate::machine::Machine;
use crate::placement::own_usage;
use crate::progress;

/// Pending events at most.
const PENDING_MAX: u64 = 1 << 30;

#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    machine: Machine,
    lps: u32,
    events_per_lp: u32,
    remote: f64,
    lookahead_s: f64,
    mean_s: f64,
    end_s: f64,
    work: u32,
    seed: u64,
    scheduler: &'static str,
    events_committed: u64,
    wall_s: f64,
    cpu_s: f64,
    events_per_s: f64,
    cpu_ns_per_event: f64,
    /// The bare loop's, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    bare_cpu_ns_per_event: Option<f64>,
    /// That of the hold model on the standard library's heap, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    heap_cpu_ns_per_event: Option<f64>,
    rollbacks: u64,
    efficiency: f64,
    undo_records: u64,
    threads_used: usize,
    ranks: usize,
    meetings: u64,
    state_hash: String,
    peak_rss_bytes: u64,
    verified: bool,
}

/// Runs PHOLD; the answer is whether the result is right.
pub(crate) fn run(args: &PholdArgs) -> Result<Answer, Failure> {
    if args.lookahead > args.mean {
        return Err(Failure::new("the lookahead is part of the mean delay and cannot exceed it")
            .hint("meikyo bench phold --lookahead 0.1 --mean 1.0"));
    }
    let pending = u64::from(args.lps) * u64::from(args.events_per_lp);
    if pending > PENDING_MAX {
        let text = format!("{pending} pending events are more than the {PENDING_MAX} allowed");
        return Err(Failure::new(text).hint("meikyo bench phold --lps 65536 --events-per-lp 16"));
    }
    let machine = Machine::observe();
    let options = args.scheduling.options().until(SimTime::START + span(args.end));
    let usage_before = own_usage()?;
    let start = now();
    let outcome = meikyo_sim::run(model(args).model(), &options)?;
    let wall_s = start.elapsed().as_secs_f64();
    let usage = own_usage()?;
    let cpu_s = usage.cpu.saturating_sub(usage_before.cpu).as_secs_f64();
    let bare = args.bare.then(|| bare::run(&model(args), options.until)).transpose()?;
    let hold = hold::Hold { lps: args.lps, pending, events: outcome.events, mean: span(args.mean) };
    let heap_cpu_ns_per_event = args.bare.then(|| hold.cpu_ns_per_event()).transpose()?;
    let state_hash = hash(&outcome.lps);
    let mut verified = verify(args, &options, &outcome)?;
    if bare.is_some_and(|bare| bare.state_hash != state_hash) {
        progress("wrong: the bare loop ends in other states");
        verified = false;
    }
    let Effort {
        handled, rollbacks, undo_records, threads_used, ranks, windows, scheduler, ..
    } = outcome.effort;
    let events = outcome.events;
    let report = Report {
        schema: "meikyo.bench.phold/1",
        machine,
        lps: args.lps,
        events_per_lp: args.events_per_lp,
        remote: args.remote,
        lookahead_s: args.lookahead,
        mean_s: args.mean,
        end_s: args.end,
        work: args.work,
        seed: args.seed,
        scheduler,
        events_committed: events,
        wall_s,
        cpu_s,
        events_per_s: real(events) / wall_s,
        cpu_ns_per_event: cpu_s * 1e9 / real(events.max(1)),
        bare_cpu_ns_per_event: bare.map(|bare| bare.cpu_ns_per_event),
        heap_cpu_ns_per_event,
        rollbacks,
        efficiency: real(events) / real(handled.max(1)),
        undo_records,
        threads_used,
        ranks,
        meetings: windows,
        state_hash: format!("{state_hash:016x}"),
        peak_rss_bytes: usage.peak_rss.get(),
        verified,
    };
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(&text(&report))?;
    }
    Ok(if verified { Answer::Yes } else { Answer::No })
}

fn model(args: &PholdArgs) -> Phold {
    Phold {
        lps: args.lps,
        events_per_lp: args.events_per_lp,
        remote: args.remote,
        lookahead: span(args.lookahead),
        mean: span(args.mean),
        work: args.work,
        seed: args.seed,
        series: false,
    }
}

/// Whether the result is what the parameters and the sequential scheduler say.
fn verify(args: &PholdArgs, options: &Options, outcome: &Outcome<Holder>) -> Result<bool, Failure> {
    let counted: u64 = outcome.lps.iter().map(Holder::events).sum();
    if counted != outcome.events {
        progress(&format!(
            "wrong: the LPs counted {counted} events, the kernel {}",
            outcome.events
        ));
        return Ok(false);
    }
    let chains = f64::from(args.lps) * f64::from(args.events_per_lp);
    let expected = chains * args.end / args.mean;
    // A chain of delays with a variance of (mean - lookahead)^2 is a renewal process: its count has a
    // variance of end (mean - lookahead)^2 / mean^3. Six standard deviations, and an event a chain
    // for the beginning.
    let spread = (args.mean - args.lookahead) / args.mean;
    let allowed = 6.0 * (expected * spread * spread).sqrt() + chains;
    if (real(counted) - expected).abs() > allowed {
        progress(&format!(
            "wrong: {counted} events, and {expected:.0} ± {allowed:.0} are expected"
        ));
        return Ok(false);
    }
    if options.scheduler == Scheduler::Sequential {
        return Ok(true);
    }
    let sequential = Options { scheduler: Scheduler::Sequential, threads: 1, ..*options };
    let truth = meikyo_sim::run(model(args).model(), &sequential)?;
    let same = truth.lps == outcome.lps && truth.events_per_lp == outcome.events_per_lp;
    if !same {
        progress("wrong: the sequential run ends in other states");
    }
    Ok(same)
}

fn hash(lps: &[Holder]) -> u64 {
    lps.iter().fold(0, |hash, lp| phold::chained(hash, lp.digest()))
}

fn span(seconds: f64) -> Nanos {
    Nanos::from_secs_f64(seconds)
}

fn text(report: &Report) -> String {
    let mut table = TextTable::default();
    let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
    row("scheduler", format!("{} on {} threads", report.scheduler, report.threads_used));
    row("events committed", report.events_committed.to_string());
    row("wall, s", format!("{:.3}", report.wall_s));
    row("CPU, s", format!("{:.3}", report.cpu_s));
    row("million events a second", format!("{:.2}", report.events_per_s / 1e6));
    row("CPU per event, ns", format!("{:.1}", report.cpu_ns_per_event));
    if let Some(bare) = report.bare_cpu_ns_per_event {
        let ratio = report.cpu_ns_per_event / bare;
        row("the same in a bare loop, ns", format!("{bare:.1} ({ratio:.2} x)"));
    }
    if let Some(heap) = report.heap_cpu_ns_per_event {
        let ratio = report.cpu_ns_per_event / heap;
        row("the hold model on a heap, ns", format!("{heap:.1} ({ratio:.2} x)"));
    }
    row("rollbacks", report.rollbacks.to_string());
    row("efficiency", format!("{:.4}", report.efficiency));
    row("changes logged", report.undo_records.to_string());
    row("state hash", report.state_hash.clone());
    row("peak memory, MB", format!("{:.1}", real(report.peak_rss_bytes) / 1e6));
    row("result", if report.verified { "as expected" } else { "WRONG" }.to_owned());
    format!("{}{table}", report.machine)
}

#[expect(clippy::disallowed_methods, reason = "a bench measures the time that passes")]
fn now() -> Instant {
    Instant::now()
}
