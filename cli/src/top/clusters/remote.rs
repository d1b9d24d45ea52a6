//! Clusters at a receiver: what its API says of them.

use std::collections::BTreeMap;

use meikyo_transport::shell::{ConnectError, Target, ask};
use meikyo_units::{Nanos, in_one_line};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Cluster, Location, Sender};

/// Looks until the recordings are listed anew: the list names all devices.
const LIST_EVERY: u32 = 5;

/// What is asked of how recordings were measured: their last 10 s.
const HEALTH: &str = "health?from=-10s&width=1";

/// A receiver that is asked.
#[derive(Debug)]
pub(in crate::top) struct Remote {
    target: Target,
    looks: u32,
    recordings: Vec<RecordingSaid>,
}

#[derive(Debug, Clone, Deserialize)]
struct RecordingSaid {
    id: String,
    name: String,
    running: bool,
    devices: Vec<DeviceSaid>,
}

#[derive(Debug, Clone, Deserialize)]
struct DeviceSaid {
    name: String,
}

#[derive(Debug, Deserialize)]
struct SenderSaid {
    sender: String,
    cluster: Option<String>,
    recording: Option<String>,
    active: bool,
    connected: bool,
    lag_us: Option<i64>,
    clock_error_us: Option<u64>,
    gaps: u64,
    missing_rows: u64,
}

#[derive(Debug, Deserialize)]
struct HealthOfSaid {
    recording: String,
    health: Option<HealthSaid>,
}

#[derive(Debug, Deserialize)]
struct HealthSaid {
    totals: TotalsSaid,
    silent: Vec<String>,
    stalest: Option<StalestSaid>,
}

#[derive(Debug, Deserialize)]
struct TotalsSaid {
    ok: u64,
    late: u64,
    missed: u64,
    error: u64,
    skipped: u64,
}

#[derive(Debug, Deserialize)]
struct StalestSaid {
    age_us: u64,
}

/// Why nothing is known.
#[derive(Debug, thiserror::Error)]
pub(in crate::top) enum AskError {
    /// The receiver did not answer, or refused.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// What it said cannot be read.
    #[error("what the server says at `{path}` cannot be understood")]
    Answer {
        /// Where it was asked.
        path: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

impl Remote {
    pub(super) fn new(target: Target) -> Self {
        Self { target, looks: 0, recordings: Vec::new() }
    }

    /// What is known of all clusters now; an error is for people.
    pub(super) fn look(&mut self) -> Result<Vec<Cluster>, String> {
        self.try_look().map_err(|error| in_one_line(&error))
    }

    fn try_look(&mut self) -> Result<Vec<Cluster>, AskError> {
        let target = &self.target;
        if self.looks.is_multiple_of(LIST_EVERY) {
            self.recordings = said(target, "recordings")?;
        }
        let senders: Vec<SenderSaid> = said(target, "senders")?;
        let healths: Vec<HealthOfSaid> = said(target, HEALTH)?;
        self.looks += 1;
        let mut healths: BTreeMap<_, _> =
            healths.into_iter().map(|of| (of.recording, of.health)).collect();
        let clusters = self.recordings.iter();
        let clusters = clusters.filter_map(|of| {
            let mut cluster = cluster(of, &senders, healths.remove(&of.id))?;
            cluster.location =
                of.running.then(|| Location::There(self.target.clone(), of.id.clone()));
            Some(cluster)
        });
        let mut clusters: Vec<_> = clusters.collect();
        clusters.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(clusters)
    }
}

/// What the receiver says at a path of its API.
pub(in crate::top) fn said<T: DeserializeOwned>(
    target: &Target,
    path: &str,
) -> Result<T, AskError> {
    let answer = ask(target, path)?;
    serde_json::from_slice(&answer)
        .map_err(|source| AskError::Answer { path: path.to_owned(), source })
}

/// What is known of a recording; nothing if it is not one of devices, and nobody sends it. Its health is not
/// told if it is not written, and unknown if it cannot be read.
fn cluster(
    of: &RecordingSaid,
    senders: &[SenderSaid],
    health: Option<Option<HealthSaid>>,
) -> Option<Cluster> {
    let own = |sender: &&SenderSaid| {
        sender.cluster.is_some() && sender.recording.as_ref() == Some(&of.id)
    };
    let mut own: Vec<_> = senders.iter().filter(own).map(sender).collect();
    own.sort_by_key(|sender| !sender.active);
    if of.devices.is_empty() && own.is_empty() {
        return None;
    }
    let mut cluster = Cluster {
        name: of.name.clone(),
        running: of.running,
        devices: of.devices.iter().map(|device| device.name.clone()).collect(),
        senders: own,
        ..Cluster::default()
    };
    match health {
        None => {}
        Some(Some(HealthSaid { totals, silent, stalest })) => {
            let TotalsSaid { ok, late, missed, error, skipped } = totals;
            (cluster.ok, cluster.late) = (ok, late);
            cluster.missing = missed.saturating_add(error).saturating_add(skipped);
            cluster.silent = silent;
            cluster.oldest_value = stalest.map(|stalest| span(stalest.age_us));
        }
        Some(None) => cluster.trouble = Some("the server cannot read its recording".into()),
    }
    Some(cluster)
}

fn sender(said: &SenderSaid) -> Sender {
    Sender {
        name: said.sender.clone(),
        active: said.active,
        connected: Some(said.connected),
        // A clock that is not quite right makes rows newer than now.
        lag: said.lag_us.map(|lag| span(lag.max(0).unsigned_abs())),
        round_trip: said.clock_error_us.map(|error| span(error.saturating_mul(2))),
        gaps: said.gaps,
        missing_rows: said.missing_rows,
    }
}

fn span(micros: u64) -> Nanos {
    Nanos::new(micros.saturating_mul(1_000))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn health() -> &'static str {
        r#"{"totals": {"ok": 95, "late": 2, "missed": 1, "error": 1, "skipped": 1, "intervals": 10},
            "silent": ["node2"], "stalest": {"device": "node1", "object": "", "age_us": 1500000}, "bins": {}}"#
    }

    #[test]
    fn a_cluster_is_what_its_recording_its_senders_and_its_health_say() {
        let recordings = r#"[{"id": "west-2", "name": "west", "running": true, "kind": "measured",
            "devices": [{"name": "node1"}, {"name": "node2"}], "tables": []}]"#;
        let recordings: Vec<RecordingSaid> = serde_json::from_str(recordings).unwrap();
        let said = |name: &str, recording: &str, active: bool, lag: &str| {
            format!(
                r#"{{"sender": "{name}", "cluster": "west", "recording": "{recording}", "active": {active},
                "connected": true, "lag_us": {lag}, "clock_error_us": 51000, "gaps": 1, "missing_rows": 7,
                "identity": null}}"#
            )
        };
        let senders = [
            said("west:measure@mon1", "west-2", false, "null"),
            said("west:measure@mon2", "west-2", true, "-20"),
            said("west:measure@mon3", "other", true, "5"),
        ];
        let senders = format!("[{}]", senders.join(","));
        let senders: Vec<SenderSaid> = serde_json::from_str(&senders).unwrap();
        let health: HealthSaid = serde_json::from_str(health()).unwrap();
        let found = cluster(&recordings[0], &senders, Some(Some(health))).unwrap();
        assert_eq!((found.ok, found.late, found.missing, found.all()), (95, 2, 3, 100));
        assert_eq!((&*found.name, &*found.silent), ("west", &["node2".to_owned()][..]));
        assert_eq!(found.oldest_value, Some(Nanos::from_millis(1_500)));
        let names: Vec<_> = found.senders.iter().map(|sender| &*sender.name).collect();
        assert_eq!(names, ["west:measure@mon2", "west:measure@mon1"], "the active one first");
        let active = found.active().unwrap();
        // A newest row of the future is of now.
        assert_eq!(
            (active.lag, active.round_trip),
            (Some(Nanos::ZERO), Some(Nanos::from_millis(102)))
        );
        let nobody = RecordingSaid { devices: Vec::new(), id: "x".into(), ..recordings[0].clone() };
        assert_eq!(cluster(&nobody, &senders, None), None);
    }

    proptest! {
        #[test]
        fn no_number_of_a_server_breaks_it(
            lag_us in any::<Option<i64>>(),
            clock_error_us in any::<Option<u64>>(),
            [missed, error, skipped, age_us] in any::<[u64; 4]>(),
        ) {
            let said = SenderSaid {
                sender: "x".into(), cluster: None, recording: None, active: true, connected: true,
                lag_us, clock_error_us, gaps: 0, missing_rows: 0,
            };
            let found = sender(&said);
            prop_assert_eq!(found.lag.is_some(), lag_us.is_some());
            let totals = TotalsSaid { ok: 0, late: 0, missed, error, skipped };
            let stalest = Some(StalestSaid { age_us });
            let health = HealthSaid { totals, silent: Vec::new(), stalest };
            let devices = vec![DeviceSaid { name: "node1".into() }];
            let of = RecordingSaid { id: "x".into(), name: "x".into(), running: true, devices };
            let found = cluster(&of, &[said], Some(Some(health))).unwrap();
            prop_assert!(found.missing >= missed.max(error).max(skipped));
            prop_assert!(found.all() >= found.missing);
        }

        #[test]
        fn what_is_no_answer_is_refused(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(serde_json::from_slice::<HealthSaid>(&octets).is_err());
        }
    }
}
