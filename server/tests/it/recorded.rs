//! Recordings to serve: the poll core against simulated agents under virtual time, so that a test
//! has minutes of real rows in a moment.

use std::path::Path;
use std::sync::LazyLock;

use meikyo_cluster::Cluster;
use meikyo_recording::{Kind, StreamOptions, StreamWriter, WhenFull};
use meikyo_snmp::Credentials;
use meikyo_snmp::farm::{Event, Farm, FarmOptions};
use meikyo_snmp::poll::{Pace, PollOptions, Poller};
use meikyo_snmp::tables::schemas;
use meikyo_snmp::twin::Twin;
use meikyo_units::{Nanos, WallTime};

/// A multiple of 10 minutes, so that the first segment is whole.
pub(crate) const START: WallTime = WallTime::from_nanos(1_767_225_600_000_000_000);

/// Hosts of the recording; one switch more.
pub(crate) const HOSTS: u32 = 5;

/// Recorded time: two segments that are compacted on the way, and a third at the end.
pub(crate) const SPAN: Nanos = Nanos::from_secs(1_260);

/// The cluster file of a farm.
pub(crate) fn cluster(options: &FarmOptions) -> Cluster {
    let mut text = String::from(
        "name = \"farm\"\nmeasure = [\"interface:eth0(in_octets,out_octets,in_errors)\", \
         \"load\", \"disk:/\"]\n[snmp]\nversion = \"2c\"\ninterval = \"100ms\"\n\
         community = \"env:MEIKYO_TEST_COMMUNITY\"\nport = 16100\n",
    );
    for ordinal in 0..options.agents() {
        let kind = if ordinal < options.hosts { "hosts" } else { "switches" };
        let (name, address) = (options.name(ordinal), options.address(ordinal));
        text += &format!("[[{kind}]]\nname = \"{name}\"\naddress = \"{address}\"\n");
    }
    meikyo_cluster::parse(&text, Path::new("cluster.toml")).unwrap()
}

/// A measurement that stands at [`START`].
pub(crate) fn twin(
    dir: &Path,
    options: FarmOptions,
    events: &[&str],
    stream: StreamOptions,
) -> Twin<StreamWriter> {
    let cluster = cluster(&options);
    let writer = StreamWriter::open(dir, Kind::Measured, "snmp", schemas(), stream).unwrap();
    let pace = PollOptions { pace: Pace::AtOnce, in_flight_max: usize::MAX, real_time: false };
    let poller = Poller::new(START, pace);
    let community = Credentials::V2c { community: b"public".to_vec() };
    let devices = cluster.devices.into_iter().map(|device| (device, community.clone())).collect();
    let events: Vec<_> = events.iter().map(|line| Event::parse(line, &options).unwrap()).collect();
    let mut farm = Farm::new(options, START);
    farm.schedule(events);
    Twin::new(START, poller, writer, farm, devices)
}

/// How the rows of a virtual measurement are written: none is dropped.
pub(crate) fn waiting() -> StreamOptions {
    StreamOptions { when_full: WhenFull::Wait, ..StreamOptions::COLLECTOR }
}

/// 21 minutes of five hosts and a switch; `node003` is silent for 30 s from minute 5 on.
pub(crate) fn recording() -> &'static Path {
    static MADE: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
        let dir = tempfile::tempdir().unwrap();
        let options = FarmOptions::new(HOSTS, 1);
        let events = ["at 300s die node003", "at 330s wake node003"];
        let mut twin = twin(dir.path(), options, &events, waiting());
        twin.run_until(START + SPAN);
        twin.finish().close().unwrap();
        dir
    });
    MADE.path()
}
