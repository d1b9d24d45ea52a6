//! The poll core against simulated agents under virtual time.

use std::path::Path;

use meikyo_cluster::Cluster;
use meikyo_recording::{Kind, StreamOptions, StreamWriter, WhenFull};
use meikyo_snmp::Credentials;
use meikyo_snmp::farm::{Farm, FarmOptions};
use meikyo_snmp::poll::{Pace, PollOptions, Poller, Rows};
use meikyo_snmp::tables::{State, schemas};
use meikyo_snmp::twin::Twin;
use meikyo_units::{Nanos, WallTime};

const START: WallTime = WallTime::from_nanos(1_767_225_600_000_000_000);

/// A cluster file for exactly the agents of a farm.
fn cluster(options: &FarmOptions, measure: &str) -> Cluster {
    let mut text = format!(
        "name = \"farm\"\nmeasure = [{measure}]\n[snmp]\nversion = \"2c\"\n\
         community = \"env:MEIKYO_TEST_COMMUNITY\"\nport = 16100\n"
    );
    for ordinal in 0..options.agents() {
        let kind = if ordinal < options.hosts { "hosts" } else { "switches" };
        text += &format!(
            "[[{kind}]]\nname = \"{}\"\naddress = \"{}\"\n",
            options.name(ordinal),
            options.address(ordinal)
        );
    }
    meikyo_cluster::parse(&text, Path::new("cluster.toml"))
        .unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn twin(dir: &Path, options: FarmOptions, measure: &str) -> Twin {
    let cluster = cluster(&options, measure);
    let stream_options = StreamOptions { when_full: WhenFull::Wait, ..StreamOptions::COLLECTOR };
    let writer = StreamWriter::open(dir, Kind::Measured, "snmp", schemas(), stream_options)
        .expect("a temporary directory can be written");
    let poll_options =
        PollOptions { pace: Pace::AtOnce, in_flight_max: usize::MAX, real_time: false };
    let poller = Poller::new(START, Rows::new(writer), poll_options);
    let community = Credentials::V2c { community: b"public".to_vec() };
    let devices = cluster.devices.into_iter().map(|device| (device, community.clone())).collect();
    Twin::new(START, poller, Farm::new(options, START), devices)
}

#[test]
fn a_healthy_cluster_is_ok_at_every_interval() {
    let dir = tempfile::tempdir().unwrap();
    let mut twin = twin(dir.path(), FarmOptions::new(16, 2), "\"interfaces\"");
    twin.run_until(START + Nanos::from_secs(20));
    let states = twin.poller().states();
    // The first interval of a device is its sign of life, and its names are resolved at once.
    assert_eq!(states[State::Ok as usize], 18 * 199, "{states:?}");
    assert_eq!(states.iter().sum::<u64>(), 18 * 199);
    assert_eq!(twin.poller().counts().strays, 0);
    let report = twin.finish().close().unwrap();
    assert!(report.counters.rows_kept > 0);
}
