//! How often a real agent refreshes its interface counters, found out at 100 ms polling; the truth
//! are the updates seen at 10 ms polling.

use meikyo_snmp::client::{Client, ClientOptions};
use meikyo_snmp::credentials::Credentials;
use meikyo_snmp::freshen::{self, Decision, FreshenError, timeout_object};
use meikyo_snmp::freshness::{Activity, Class, Detector};
use meikyo_snmp::{Oid, Value};
use meikyo_units::{Nanos, WallTime};

use crate::snmpd::Snmpd;

/// `ifHCInOctets` of the loopback interface, which the polling itself moves.
const LOOPBACK_OCTETS: &str = "1.3.6.1.2.1.31.1.1.1.6.1";

fn client(agent: &Snmpd, community: &str) -> Client {
    let credentials = Credentials::V2c { community: community.into() };
    let options = ClientOptions { timeout: Nanos::SECOND, retries: 2 };
    Client::connect(agent.address, credentials, options).unwrap()
}

fn wait_until(due: WallTime) {
    while WallTime::now() < due {
        std::thread::park_timeout(due.since(WallTime::now()).to_std());
    }
}

/// Polls every 10 ms for `span`; every tenth answer goes to the detector. Returns the spans between
/// updates as 10 ms polling shows them, from the least to the greatest, with what was found.
fn watch(client: &mut Client, span: Nanos) -> (Vec<Nanos>, Option<Class>) {
    let oids: [Oid; 1] = [LOOPBACK_OCTETS.parse().unwrap()];
    let (mut detector, mut activity) = (Detector::new(), Activity::default());
    let (mut last_fine, mut last_coarse): (Option<Value>, Option<Value>) = (None, None);
    let mut updates: Vec<WallTime> = Vec::new();
    let start = WallTime::now();
    for poll in 0..span.get() / 10_000_000 {
        wait_until(start + Nanos::from_millis(10) * poll);
        let (_, value) = client.get(&oids).unwrap().remove(0);
        let at = WallTime::now();
        if last_fine.replace(value.clone()).is_some_and(|last| last != value) {
            updates.push(at);
        }
        if poll % 10 == 0 {
            let changed = last_coarse.replace(value.clone()).is_some_and(|last| last != value);
            activity.uptime_moved(at);
            if changed {
                activity.moved(at);
            }
            detector.observe(at, changed, &activity);
        }
    }
    let mut spans: Vec<_> = updates.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    spans.sort_unstable();
    (spans, detector.finding().map(|finding| finding.class))
}

fn set_cache(agent: &Snmpd, seconds: i64) {
    // The row exists once the table was read.
    client(agent, "public").get(&[LOOPBACK_OCTETS.parse().unwrap()]).unwrap();
    client(agent, "private").set(&[(timeout_object(), Value::Integer(seconds))]).unwrap();
}

/// Windows that are watched at most until the agent kept to its period in one.
const WINDOWS: usize = 8;

/// An agent on a busy machine refreshes out of turn now and then. In a window in which it kept to its
/// period that period must be found; in one in which it did not, what is found must be among what
/// was seen, and nothing need be found.
fn assert_period(agent: &Snmpd, span: Nanos) {
    for _ in 0..WINDOWS {
        let (spans, found) = watch(&mut client(agent, "public"), span);
        let (least, greatest) = (spans[0], spans[spans.len() - 1]);
        let truth = spans[spans.len() / 2];
        if (greatest.get() - least.get()) * 5 <= least.get() {
            let Some(Class::Periodic { period, phase: Some(_) }) = found else {
                panic!("{found:?} where updates come every {truth}");
            };
            let off = (period.as_secs_f64() / truth.as_secs_f64() - 1.0).abs();
            assert!(off <= 0.05, "{period} where updates come every {truth}");
            return;
        }
        let told = match found {
            None => continue,
            Some(Class::Periodic { period, .. }) => period,
            Some(Class::Irregular { mean, .. }) => mean,
            Some(other) => panic!("{other:?} where updates come after {spans:?}"),
        };
        assert!(least <= told && told <= greatest, "{told} where updates come after {spans:?}");
    }
}

#[test]
fn a_cache_of_3_s_is_found() {
    let Some(agent) = Snmpd::start() else { return };
    set_cache(&agent, 3);
    assert_period(&agent, Nanos::from_secs(22));
}

#[test]
fn a_cache_of_1_s_is_found() {
    let Some(agent) = Snmpd::start() else { return };
    set_cache(&agent, 1);
    assert_period(&agent, Nanos::from_secs(12));
}

#[test]
fn no_cache_is_found() {
    let Some(agent) = Snmpd::start() else { return };
    set_cache(&agent, 0);
    let (_, found) = watch(&mut client(&agent, "public"), Nanos::from_secs(3));
    assert_eq!(found, Some(Class::EveryPoll));
}

#[test]
fn a_freshened_cache_is_restored_and_a_restarted_agent_has_its_own_again() {
    let Some(mut agent) = Snmpd::start() else { return };
    let timeout = |agent: &Snmpd| {
        let values = client(agent, "public").get(&[timeout_object()]).unwrap();
        values[0].1.as_u64()
    };
    let decided = |writer: &mut Client| freshen::decide(freshen::look(writer).unwrap());
    let mut writer = client(&agent, "private");
    assert_eq!(decided(&mut writer), Decision::Set { from: 3 });
    freshen::freshen(&mut writer).unwrap();
    assert_eq!(timeout(&agent), Some(0));
    assert_eq!(decided(&mut writer), Decision::AlreadyFresh);
    assert!(freshen::restore(&mut writer, 3).unwrap());
    assert_eq!(timeout(&agent), Some(3));

    freshen::freshen(&mut writer).unwrap();
    agent.restart();
    let mut writer = client(&agent, "private");
    assert_eq!(decided(&mut writer), Decision::Set { from: 3 });
    // What the agent came up with is its own affair.
    assert!(!freshen::restore(&mut writer, 30).unwrap());
    assert_eq!(timeout(&agent), Some(3));
}

#[test]
fn a_credential_that_may_only_read_is_told_what_is_missing() {
    let Some(agent) = Snmpd::start() else { return };
    let error = freshen::freshen(&mut client(&agent, "public")).unwrap_err();
    assert!(matches!(error, FreshenError::NotWritable { .. }), "{error:?}");
    assert!(error.remedy().unwrap().contains("rwcommunity"));
    let looked = freshen::look(&mut client(&agent, "public")).unwrap();
    assert_eq!(freshen::decide(looked), Decision::Set { from: 3 });
}
