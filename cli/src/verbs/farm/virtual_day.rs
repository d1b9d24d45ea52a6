//! `meikyo farm --virtual 24h`: the collector's core and the farm under virtual time.
//!
//! What a collector would have recorded in that span is written as fast as the machine allows, for
//! benches and tests of whatever reads recordings. The recording is of kind `simulated`, and an event
//! `virtual` at its start says how it was made.

use std::path::Path;

use meikyo_cluster::{AuthProtocol, PrivProtocol};
use meikyo_console::failure::{Answer, Failure};
use meikyo_recording::{Kind, StreamOptions, StreamWriter, WhenFull, format};
use meikyo_snmp::farm::truth::TruthWriter;
use meikyo_snmp::farm::{self, Farm};
use meikyo_snmp::poll::{Event, Pace, PollOptions, Poller};
use meikyo_snmp::tables::{self, State};
use meikyo_snmp::twin::Twin;
use meikyo_snmp::{Credentials, CredentialsError};
use meikyo_units::{Nanos, WallTime};

use super::{FarmArgs, cluster_file, say};

/// How often the truth is taken away and progress is told, in virtual time.
const STEP: Nanos = Nanos::from_secs(60);

/// What the farm's agents let in, in the version that the cluster file asks for.
fn credentials(version: &str) -> Result<Credentials, CredentialsError> {
    let community = b"public".to_vec();
    match version {
        "1" => Ok(Credentials::V1 { community }),
        "2c" => Ok(Credentials::V2c { community }),
        _ => Credentials::from_passwords(
            farm::USER,
            Some((AuthProtocol::Sha256, farm::AUTH_PASSWORD)),
            Some((PrivProtocol::Aes128, farm::PRIVACY_PASSWORD)),
        ),
    }
}

/// Records `span` of virtual time, which ends about now, in `out`.
pub(super) fn run(
    args: &FarmArgs,
    span: Nanos,
    out: &Path,
    make_farm: impl FnOnce(WallTime) -> Farm,
) -> Result<Answer, Failure> {
    let start = WallTime::now().before(span).floor(Nanos::SECOND);
    let mut farm = make_farm(start);
    let text = cluster_file::text(args, farm.options(), args.port, "env:MEIKYO_AGENTS_")?;
    let cluster = meikyo_cluster::parse(&text, Path::new("cluster.toml"))?;
    let mut truth = None;
    if let Some(path) = &args.truth {
        farm.record_truth();
        truth = Some(TruthWriter::create(path)?);
    }
    let options = StreamOptions { when_full: WhenFull::Wait, ..StreamOptions::COLLECTOR };
    format::create_simulated_by_dates(out)?;
    let writer = StreamWriter::open(out, Kind::Simulated, "snmp", tables::schemas(), options)?;
    crate::verbs::measure::devices::note(&cluster, out, false);
    let poll_options =
        PollOptions { pace: Pace::AtOnce, in_flight_max: usize::MAX, real_time: false };
    let mut poller = Poller::new(start, poll_options);
    let text = "recorded under virtual time from simulated agents";
    poller.rows().event(start, "virtual", Event { text, ..Event::default() });
    let credentials = credentials(&args.snmp_version)?;
    let devices = cluster.devices.into_iter().map(|device| (device, credentials.clone())).collect();
    let mut twin = Twin::new(start, poller, writer, farm, devices);
    let end = start + span;
    let mut told = start;
    while twin.now() < end {
        twin.run_until((twin.now() + STEP).min(end));
        if let (Some(truth), Some(octets)) = (&mut truth, twin.farm().truth()) {
            truth.append(octets);
        }
        if twin.now().since(told) >= Nanos::from_secs(3_600) || twin.now() >= end {
            told = twin.now();
            let states = twin.poller().states();
            say(&format!("{} of {span}: {} ok", told.since(start), states[State::Ok as usize]));
        }
    }
    if let (Some(truth), Some(octets)) = (truth, twin.farm().truth()) {
        truth.finish(octets)?;
    }
    twin.finish().close()?;
    Ok(Answer::Yes)
}
