//! The share of a core that a receiver of many senders needs.

use meikyo_console::benches::afar::AfarBenchArgs;
use meikyo_console::failure::Failure;
use meikyo_console::output::real;
use meikyo_units::{Nanos, WallTime};

use super::made::Made;
use crate::live::http;
use crate::live::server_process::ServerProcess;
use crate::placement::{Placement, wait_until};

/// How often rows come.
const EVERY: Nanos = Nanos::from_millis(100);

/// How long senders run before anything is measured: their first blocks tell every name.
const WARM_UP: Nanos = Nanos::from_secs(3);

/// How long the end may take.
const PATIENCE: Nanos = Nanos::from_secs(60);

/// What was found.
pub(super) struct Found {
    pub(super) percent_of_core: f64,
    pub(super) polls_per_s: f64,
    pub(super) lag_s_max: f64,
}

/// Lets many senders send to a server for a while.
pub(super) fn run(args: &AfarBenchArgs) -> Result<Found, Failure> {
    let scratch = tempfile::tempdir()?;
    let recording = scratch.path().join("rec");
    let server = ServerProcess::start_ingesting(&recording, Placement::elsewhere(false))?;
    let authority = server.authority().to_owned();
    let start = |number: u32| Made::start(&authority, &format!("c{number}"), args.devices);
    let mut senders = (0..args.senders).map(start).collect::<Result<Vec<_>, _>>()?;
    let (mut cpu_begun, mut lag_s_max) = (Nanos::ZERO, 0.0_f64);
    let begin = WallTime::now().floor(EVERY) + EVERY;
    let (warm, end) = (begin + WARM_UP, begin + WARM_UP + args.span);
    let (mut due, mut intervals, mut is_warm) = (begin, 0_u64, false);
    while due < end {
        wait_until(due)?;
        if !is_warm && due >= warm {
            (is_warm, cpu_begun) = (true, server.cpu()?);
        }
        senders.iter_mut().for_each(|sender| sender.interval(due));
        intervals += u64::from(is_warm);
        // Asked for once a second, since that is the server's work, too: somebody watches, and blocks come often.
        if due.since(begin).get() % Nanos::SECOND.get() == 0 {
            let lag_s = lag_s(&server)?;
            lag_s_max = if is_warm { lag_s_max.max(lag_s) } else { 0.0 };
        }
        due = due + EVERY;
    }
    let cpu = server.cpu()?.saturating_sub(cpu_begun);
    for sender in senders {
        sender.finish(PATIENCE)?;
    }
    let polls = real(intervals) * f64::from(args.senders) * f64::from(args.devices);
    Ok(Found {
        percent_of_core: cpu.as_secs_f64() / args.span.as_secs_f64() * 100.0,
        polls_per_s: polls / args.span.as_secs_f64(),
        lag_s_max,
    })
}

/// The greatest lag of a sender.
pub(super) fn lag_s(server: &ServerProcess) -> Result<f64, Failure> {
    let senders: serde_json::Value = serde_json::from_slice(&http::get(server, "api/v1/senders")?)
        .map_err(|error| Failure::new(format!("`/api/v1/senders`: {error}")))?;
    let all = senders.as_array().into_iter().flatten();
    let lags = all.map(|sender| sender["lag_us"].as_f64().unwrap_or(f64::INFINITY) / 1e6);
    Ok(lags.fold(0.0, f64::max))
}
