//! What a host that tags its frames is told.

use std::collections::BTreeMap;

use meikyo_fabric::dialect::host_text;
use meikyo_fabric::{HostId, HostSettings, Vlan};

#[test]
fn a_host_that_tags_has_a_rule_for_each_receiver() {
    let mut wiring = crate::built::wiring("linux-bridge", 2, &[(0, 1)]);
    for (place, host) in wiring.hosts.iter_mut().enumerate() {
        host.mac = format!("02:00:00:00:00:{place:02x}").parse().ok();
    }
    let mut configuration = crate::built::configuration(&wiring, &[vec![0]], &[0, 0]);
    assert_eq!(host_text(&wiring, &configuration, HostId::new(0), "eth0"), Ok(None));
    let tags: BTreeMap<HostId, Vlan> = [(1, 101), (2, 102), (3, 101)]
        .map(|(host, id)| (HostId::new(host), Vlan::new(id).expect("a VLAN")))
        .into();
    configuration.hosts[0] = HostSettings::Tagged(tags.clone());
    let text = host_text(&wiring, &configuration, HostId::new(0), "eth0").unwrap().unwrap();
    let told: BTreeMap<HostId, Vlan> = text
        .lines()
        .filter_map(|line| line.strip_prefix("filter add dev eth0 egress protocol all "))
        .map(|rule| {
            let words: Vec<&str> = rule.split(' ').collect();
            let ["pref", "2", "flower", "dst_mac", mac, "action", "vlan", "push", "id", id] =
                words[..]
            else {
                panic!("{rule}");
            };
            let host = usize::from_str_radix(&mac[15..], 16).unwrap();
            (HostId::new(host), id.parse().unwrap())
        })
        .collect();
    assert_eq!(told, tags);
    let kept = "filter add dev eth0 egress protocol 802.1Q pref 1 flower\n";
    assert!(text.contains(kept), "what has a tag comes first: {text}");
    wiring.hosts[2].mac = None;
    let error = host_text(&wiring, &configuration, HostId::new(0), "eth0").unwrap_err();
    insta::assert_snapshot!(error, @"the Ethernet address of `h2` is not known; `mac` of section `hosts` says it");
}
