//! Probing a real agent.

use std::path::Path;

use meikyo_cluster::Device;
use meikyo_snmp::credentials::Credentials;
use meikyo_snmp::freshness::{Class, Source};
use meikyo_snmp::probe::{ProbeError, ProbeOptions, probe};
use meikyo_units::Nanos;

use crate::snmpd::Snmpd;

fn device(address: &str, measure: &str) -> Device {
    let text = format!(
        "name = \"test\"\n[snmp]\nversion = \"2c\"\ncommunity = \"env:COMMUNITY\"\n\
         timeout = \"300ms\"\n[[hosts]]\nname = \"node1\"\naddress = \"{address}\"\n\
         measure = [{measure}]\n"
    );
    meikyo_cluster::parse(&text, Path::new("cluster.toml")).unwrap().devices.remove(0)
}

fn public() -> Credentials {
    Credentials::V2c { community: b"public".to_vec() }
}

#[test]
fn a_probe_tells_what_is_there_how_fast_how_fresh_and_at_what_cost() {
    let Some(agent) = Snmpd::start() else { return };
    let device = device(
        &agent.address.to_string(),
        "\"interface:lo(in_octets)\", \"interface:eth77\", \"load\"",
    );
    let options = ProbeOptions {
        every: Nanos::from_millis(20),
        watch: Nanos::from_secs(10),
        agent_pid: Some(agent.pid()),
    };
    let report = probe(&device, public(), &options).unwrap();
    assert!(report.identity.description.unwrap().starts_with("Linux"));
    assert_eq!(report.problems.len(), 1);
    assert!(report.problems[0].to_string().contains("`eth77`"), "{}", report.problems[0]);
    assert!(report.latency.answers > 300, "{:?}", report.latency);
    assert!(report.latency.least <= report.latency.median);
    assert!(report.latency.median <= report.latency.p99);

    let octets = &report.values[0];
    assert_eq!(octets.column, "in_octets");
    assert_eq!(octets.declared, Some(Nanos::from_secs(3)));
    let found = octets.found.unwrap();
    assert_eq!(found.source, Source::Observed, "{octets:?}");
    let Class::Periodic { period, .. } = found.class else { panic!("{octets:?}") };
    assert!((2.8..3.2).contains(&period.as_secs_f64()), "{period}");
    assert!(report.values.iter().any(|value| value.column == "load_15min"));

    let cost = report.cost.measured.unwrap();
    assert!(cost.used > Nanos::ZERO);
    assert!(cost.share < 0.5, "{cost:?}");
    assert!(report.cost.share_max > 0.0);
}

#[test]
fn a_silent_agent_and_a_wrong_community_do_not_answer() {
    let options =
        ProbeOptions { every: Nanos::from_millis(20), watch: Nanos::SECOND, agent_pid: None };
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let device_silent = device(&silent.local_addr().unwrap().to_string(), "\"load\"");
    let error = probe(&device_silent, public(), &options).unwrap_err();
    assert!(matches!(error, ProbeError::Request(_)), "{error:?}");

    let Some(agent) = Snmpd::start() else { return };
    let device = device(&agent.address.to_string(), "\"load\"");
    let wrong = Credentials::V2c { community: b"wrong".to_vec() };
    let error = probe(&device, wrong, &options).unwrap_err();
    assert!(matches!(error, ProbeError::Request(_)), "{error:?}");
}
