//! Planted faults: good configurations with random mistakes. The emulator says which of them do harm;
//! the checker refuses exactly those, and what breaks a rule.

use std::collections::{BTreeMap, BTreeSet};

use meikyo_fabric::emulator::{Harm, harm};
use meikyo_fabric::{
    Bundling, CheckOptions, Configuration, Fault, Host, Learning, PortNumber, PortSettings,
    Priming, SwitchId, SwitchSettings, Verdict, Vlan, Wiring, check,
};
use meikyo_units::Nanos;

use crate::random::Random;
use crate::shapes::{Style, good, planned, shapes, vlan};

/// A fabric and what was done to it.
struct Planted {
    wiring: Wiring,
    configuration: Configuration,
    story: Vec<String>,
}

#[test]
fn every_harmful_mistake_is_refused_and_every_harmless_one_accepted() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse().unwrap());
    let seeds: std::ops::RangeInclusive<usize> = match (number("SEED"), number("SEEDS")) {
        (Some(seed), _) => seed..=seed,
        (None, seeds) => 1..=seeds.unwrap_or(1_000),
    };
    let plans: Vec<_> = (1..=40).map(|seed| planned(&mut Random::new(seed))).collect();
    let is_whole = seeds.clone().count() > 1;
    let mut seen: BTreeMap<&'static str, usize> = BTreeMap::new();
    for seed in seeds {
        let planted = plant(u64::try_from(seed).unwrap(), &plans);
        for kind in judge(&planted, seed) {
            *seen.entry(kind).or_insert(0) += 1;
        }
    }
    let enough = |kind| seen.get(kind).copied().unwrap_or(0) >= 10;
    let kinds = ["none", "loop", "lost", "doubled", "flood", "moved", "table", "waiting", "rule"];
    for kind in kinds.into_iter().filter(|_| is_whole) {
        assert!(enough(kind), "too few mistakes of the kind `{kind}` to learn from: {seen:?}");
    }
}

/// Holds the checker against the emulator; says what kinds of harm there are.
fn judge(planted: &Planted, seed: usize) -> BTreeSet<&'static str> {
    let Planted { wiring, configuration, story } = planted;
    let harm = harm(wiring, configuration);
    let rule = breaks_a_rule(wiring, configuration);
    let report = check(wiring, configuration, &CheckOptions::INTACT);
    let said: Vec<_> = report.faults.iter().map(|f| f.in_words(wiring).to_string()).collect();
    let tell = || {
        let harm = &harm[..harm.len().min(5)];
        format!("SEED={seed}\n{story:#?}\nharm: {harm:#?}\nrule: {rule}\nfaults: {said:#?}")
    };
    let refused = report.verdict() == Verdict::Refused;
    assert_eq!(refused, rule || !harm.is_empty(), "{}", tell());
    let (rules, harms): (Vec<&Fault>, Vec<&Fault>) =
        report.faults.iter().partition(|fault| fault.is_rule());
    assert_eq!(!rules.is_empty(), rule, "{}", tell());
    // A switch that remembers nothing is refused for that; what it floods is not looked at.
    let forgets = |switch: &SwitchSettings| switch.ageing == Some(Nanos::ZERO);
    let forgets = configuration.switches.iter().any(forgets);
    if (report.followed || rules.is_empty()) && !forgets {
        assert_eq!(!harms.is_empty(), !harm.is_empty(), "{}", tell());
        // Beside a loop nothing else is looked for; table sizes are exact where nothing floods.
        let said_waiting = harms.iter().any(|fault| matches!(fault, Fault::Waiting { .. }));
        let waits = harm.iter().any(|harm| matches!(harm, Harm::Waiting(_)));
        let is_clean =
            harm.iter().all(|harm| matches!(harm, Harm::Waiting(_) | Harm::TableFull(_)));
        assert!(!is_clean || said_waiting == waits, "{}", tell());
        let full: BTreeSet<SwitchId> = harms
            .iter()
            .filter_map(|fault| match fault {
                Fault::TableFull { switch, .. } => Some(*switch),
                _ => None,
            })
            .collect();
        let overflows: BTreeSet<SwitchId> = harm
            .iter()
            .filter_map(|harm| match harm {
                Harm::TableFull(switch) => Some(*switch),
                _ => None,
            })
            .collect();
        assert!(!is_clean || full == overflows, "{}", tell());
    }
    kinds(&harm, rule)
}

fn kinds(harm: &[Harm], rule: bool) -> BTreeSet<&'static str> {
    let mut kinds: BTreeSet<&'static str> = harm
        .iter()
        .map(|harm| match harm {
            Harm::Loop(_) => "loop",
            Harm::Broadcast { copies: 0, .. } | Harm::Unicast { copies: 0, .. } => "lost",
            Harm::Broadcast { .. } | Harm::Unicast { .. } => "doubled",
            Harm::Flood { .. } => "flood",
            Harm::Moved { .. } => "moved",
            Harm::TableFull(_) => "table",
            Harm::Waiting(_) => "waiting",
        })
        .collect();
    if rule {
        kinds.insert("rule");
    }
    if kinds.is_empty() {
        kinds.insert("none");
    }
    kinds
}

/// What is plugged into the ports of switches.
type Plugs = BTreeMap<(SwitchId, PortNumber), (SwitchId, PortNumber)>;

fn settings_at(
    configuration: &Configuration,
    switch: SwitchId,
    port: PortNumber,
) -> Option<&PortSettings> {
    let ports = &configuration.switches[switch.place()].ports;
    ports.iter().find(|settings| settings.ports.contains(&port))
}

fn is_lacp(settings: &PortSettings) -> bool {
    settings.bundle == Some(Bundling::Lacp)
}

/// Whether the ports of a host are set otherwise than it needs. With LACP it does without a port that
/// is shut.
fn is_plugged_badly(host: &Host, plugs: &Plugs, configuration: &Configuration) -> bool {
    let speaks_lacp = host.ports.len() > 1 && configuration.host_bundling == Bundling::Lacp;
    let set_at = |&port: &PortNumber| settings_at(configuration, host.switch, port);
    let sets: Vec<_> = host.ports.iter().map(set_at).collect();
    let Some(set) = sets.iter().flatten().next() else { return true };
    let is_trunk = set.ports.iter().any(|&port| plugs.contains_key(&(host.switch, port)));
    is_trunk
        || (sets.iter().any(Option::is_none) && !speaks_lacp)
        || sets.iter().flatten().any(|other| other.ports != set.ports)
        || is_lacp(set) != speaks_lacp
}

/// What is refused whatever frames do.
fn breaks_a_rule(wiring: &Wiring, configuration: &Configuration) -> bool {
    let mut plugs = Plugs::new();
    for trunk in &wiring.trunks {
        let [one, other] = &trunk.ends;
        for (&near, &far) in one.ports.iter().zip(&other.ports) {
            plugs.insert((one.switch, near), (other.switch, far));
            plugs.insert((other.switch, far), (one.switch, near));
        }
    }
    let set_at = |switch, port| settings_at(configuration, switch, port);
    let switches = configuration.switches.iter().enumerate();
    wiring.hosts.iter().any(|host| is_plugged_badly(host, &plugs, configuration))
        || switches.map(|(place, settings)| (SwitchId::new(place), settings)).any(
            |(id, settings)| {
                let model = &wiring.switches[id.place()].model;
                let bundles = settings.ports.iter().filter(|port| port.bundle.is_some()).count();
                let keeps_too_long =
                    settings.ageing.is_none_or(|span| Some(span) > model.ageing_max);
                let forgets_too_soon = settings.ageing.is_some_and(|span| span < model.ageing_min);
                settings.spanning_tree
                    || keeps_too_long
                    || forgets_too_soon
                    || settings.vlans.len() > usize::from(model.vlans)
                    || settings
                        .vlans
                        .iter()
                        .any(|v| v != Vlan::DEFAULT && !model.vlan_ids.contains(v))
                    || bundles > usize::from(model.bundles)
                    || settings.ports.iter().any(|port| {
                        let here = port.ports.iter().filter_map(|&at| plugs.get(&(id, at)));
                        let far: Vec<_> =
                            here.map(|&(switch, at)| (switch, set_at(switch, at))).collect();
                        let is_up = |&(_, set): &(SwitchId, Option<&PortSettings>)| {
                            set.is_some() || !is_lacp(port)
                        };
                        let far: Vec<_> = far.into_iter().filter(is_up).collect();
                        let fars =
                            far.iter().map(|(switch, set)| (*switch, set.map(|set| &set.ports)));
                        let fars: BTreeSet<_> = fars.collect();
                        let differs = far.first().is_some_and(|(switch, set)| {
                            set.is_some_and(|set| {
                                is_lacp(set) != is_lacp(port)
                                    || set.ports.iter().any(|&at| {
                                        let back = plugs.get(&(*switch, at));
                                        back.is_some_and(|&(near, at)| {
                                            let is_shut =
                                                is_lacp(set) && set_at(near, at).is_none();
                                            !is_shut && (near != id || !port.ports.contains(&at))
                                        })
                                    })
                            })
                        });
                        fars.len() > 1
                            || differs
                            || (!far.is_empty() && port.is_member(Vlan::DEFAULT))
                            || (port.ports.len() > 1 && port.bundle.is_none())
                            || port.ports.len() > usize::from(model.bundle_ports)
                            || (!model.multi_untagged && port.untagged.len() > 1)
                            || !port.untagged.intersection(&port.tagged).is_empty()
                    })
            },
        )
}

fn by_hand(random: &mut Random) -> (String, Wiring, Configuration) {
    let shapes = shapes(random);
    let shape = random.one_of(&shapes);
    let style = Style {
        cables: if random.once_in(3) { 2 } else { 1 },
        directed: random.once_in(2),
        host_tagged: random.once_in(6),
        host_bundling: *random.one_of(&[Bundling::Lacp, Bundling::Static]),
    };
    let (wiring, configuration) = good(shape, style);
    (format!("{} {style:?}", shape.name), wiring, configuration)
}

fn plant(seed: u64, plans: &[(String, Wiring, Configuration)]) -> Planted {
    let mut random = Random::new(seed);
    let (name, wiring, configuration) =
        if random.once_in(2) { random.one_of(plans).clone() } else { by_hand(&mut random) };
    let mut planted = Planted { wiring, configuration, story: vec![name] };
    if random.once_in(4) {
        tighten(&mut planted);
    }
    for _ in 0..if random.once_in(3) { 2 + random.below(3) } else { 1 } {
        let what = mistake(&mut planted, &mut random);
        planted.story.push(what);
    }
    planted
}

/// Tables have just the room that is needed.
fn tighten(planted: &mut Planted) {
    let report = check(&planted.wiring, &planted.configuration, &CheckOptions::INTACT);
    for (switch, entries) in planted.wiring.switches.iter_mut().zip(report.table_entries) {
        switch.model.table_entries = u32::try_from(entries).expect("a small fabric");
    }
    planted.story.push("tables have no room to spare".into());
}

/// Makes one mistake, and says which.
fn mistake(planted: &mut Planted, random: &mut Random) -> String {
    match random.below(30) {
        0..=8 => at_a_port(planted, random),
        24 | 25 => other_trees(planted, random),
        26 | 27 => changing_vlans(planted, random),
        28 | 29 => leak(planted, random),
        9..=12 => at_a_trunk(planted, random),
        13..=15 => another_tree(planted, random),
        16 | 17 => at_the_cables(planted, random),
        18 | 19 => at_a_model(planted, random),
        20 => at_a_switch(planted, random),
        21 => of_flow_control(planted, random),
        _ => of_priming(planted, random),
    }
}

fn some_vlan(planted: &Planted, random: &mut Random) -> Vlan {
    let all = planted.configuration.switches.iter().flat_map(|switch| switch.vlans.iter());
    let mut all: Vec<Vlan> = all.collect();
    all.push(vlan(999));
    *random.one_of(&all)
}

fn at_a_port(planted: &mut Planted, random: &mut Random) -> String {
    let vlan = some_vlan(planted, random);
    let place = random.below(planted.configuration.switches.len());
    let switch = &mut planted.configuration.switches[place];
    let slot = random.below(switch.ports.len());
    let port = &mut switch.ports[slot];
    let number = port.ports[0];
    let what = match random.below(10) {
        9 => {
            port.untagged.remove(port.pvid.unwrap_or(vlan));
            "no member of its PVID's VLAN".into()
        }
        0 | 1 => {
            port.untagged.remove(vlan);
            port.tagged.remove(vlan);
            format!("no VLAN {vlan}")
        }
        2 => {
            port.untagged.remove(vlan);
            port.tagged.insert(vlan);
            format!("VLAN {vlan} tagged")
        }
        3 => {
            port.tagged.remove(vlan);
            port.untagged.insert(vlan);
            format!("VLAN {vlan} untagged")
        }
        4 => {
            port.tagged.insert(vlan);
            format!("also VLAN {vlan} tagged")
        }
        5 => {
            port.pvid = Some(vlan);
            format!("PVID {vlan}")
        }
        6 if random.once_in(2) => {
            port.pvid = None;
            "no PVID".into()
        }
        6 | 7 => {
            port.accept_tagged = !port.accept_tagged;
            format!("takes tags: {}", port.accept_tagged)
        }
        _ => {
            if port.ports.len() > 1 && random.once_in(3) {
                port.ports.remove(random.below(2));
                return format!("s{place} port {number}: a port of the bundle is shut");
            }
            if port.bundle.is_some() && random.once_in(2) {
                let other = *random.one_of(&[Bundling::Lacp, Bundling::Static]);
                port.bundle = Some(other);
                return format!("s{place} port {number}: a bundle by {other:?}");
            }
            let removed = switch.ports.remove(slot);
            if random.once_in(2) || removed.ports.len() < 2 {
                "no settings".into()
            } else {
                let alone = |&port: &PortNumber| PortSettings {
                    ports: vec![port],
                    bundle: None,
                    ..removed.clone()
                };
                switch.ports.extend(removed.ports.iter().map(alone));
                "each port of the bundle alone".into()
            }
        }
    };
    format!("s{place} port {number}: {what}")
}

/// The places of the settings of both ends of a trunk; none if one has none.
fn ends(planted: &Planted, trunk: usize) -> Option<[(usize, usize); 2]> {
    let of_end = |end: &meikyo_fabric::TrunkEnd| {
        let switch = end.switch.place();
        let ports = &planted.configuration.switches[switch].ports;
        Some((switch, ports.iter().position(|port| port.ports.contains(&end.ports[0]))?))
    };
    let [one, other] = &planted.wiring.trunks[trunk].ends;
    Some([of_end(one)?, of_end(other)?])
}

fn at_a_trunk(planted: &mut Planted, random: &mut Random) -> String {
    let trunk = random.below(planted.wiring.trunks.len());
    let Some(ends) = ends(planted, trunk) else { return "nothing".into() };
    let vlan = some_vlan(planted, random);
    let kind = random.below(10);
    let is_at_both = random.once_in(2);
    let mut what = String::new();
    for (nth, (switch, slot)) in ends.into_iter().enumerate() {
        let port = &mut planted.configuration.switches[switch].ports[slot];
        what = match kind {
            0 | 1 => {
                port.tagged.insert(vlan);
                format!("VLAN {vlan} at both ends")
            }
            2 | 3 => {
                port.tagged.remove(vlan);
                format!("VLAN {vlan} at no end")
            }
            4 => {
                port.tagged.remove(vlan);
                port.untagged.insert(vlan);
                port.pvid = Some(vlan);
                format!("VLAN {vlan} untagged at both ends")
            }
            5 | 6 => {
                let other = self::vlan(101 + random.below(6));
                port.tagged.remove(other);
                port.untagged.insert(other);
                port.pvid = Some(other);
                format!("{what} untagged from VLAN {other}")
            }
            7 => {
                port.bundle =
                    if nth == 0 || is_at_both { Some(Bundling::Static) } else { port.bundle };
                format!("static, at both ends: {is_at_both}")
            }
            8 => {
                if nth == 0 || is_at_both {
                    port.tagged.insert(Vlan::DEFAULT);
                }
                format!("VLAN 1, at both ends: {is_at_both}")
            }
            _ => {
                if nth == 0 || is_at_both {
                    port.ports.truncate(1);
                }
                format!("one cable left, at both ends: {is_at_both}")
            }
        };
    }
    format!("trunk {trunk}: {what}")
}

/// A VLAN takes another trunk instead of one that was on the circle that it closes.
fn another_tree(planted: &mut Planted, random: &mut Random) -> String {
    let vlan = vlan(101 + random.below(planted.wiring.switches.len()));
    let ends_of = |trunk: usize| {
        let [one, other] = &planted.wiring.trunks[trunk].ends;
        (one.switch.place(), other.switch.place())
    };
    let has = |planted: &Planted, trunk: usize| {
        ends(planted, trunk).is_some_and(|ends| {
            ends.iter().all(|&(switch, slot)| {
                planted.configuration.switches[switch].ports[slot].tagged.contains(vlan)
            })
        })
    };
    let trunks = || 0..planted.wiring.trunks.len();
    let out: Vec<usize> = trunks().filter(|&trunk| !has(planted, trunk)).collect();
    let inside: Vec<usize> = trunks().filter(|&trunk| has(planted, trunk)).collect();
    if out.is_empty() || inside.is_empty() {
        return "nothing".into();
    }
    let add = *random.one_of(&out);
    // The way in the tree between the ends of the new trunk, by taking leaves away.
    let mut left: Vec<usize> = inside.iter().copied().chain([add]).collect();
    loop {
        let degree = |switch: usize| {
            let touches = |&trunk: &usize| {
                let (a, b) = ends_of(trunk);
                usize::from(a == switch) + usize::from(b == switch)
            };
            left.iter().map(touches).sum::<usize>()
        };
        let leaf = left.iter().position(|&trunk| {
            let (a, b) = ends_of(trunk);
            degree(a) == 1 || degree(b) == 1
        });
        match leaf {
            Some(place) => left.remove(place),
            None => break,
        };
    }
    left.retain(|&trunk| trunk != add);
    let Some(&drop) = (!left.is_empty()).then(|| random.one_of(&left)) else {
        return "nothing".into();
    };
    for (trunk, adds) in [(add, true), (drop, false)] {
        for (switch, slot) in ends(planted, trunk).into_iter().flatten() {
            let tagged = &mut planted.configuration.switches[switch].ports[slot].tagged;
            let _changed = if adds { tagged.insert(vlan) } else { tagged.remove(vlan) };
        }
    }
    format!("VLAN {vlan} over trunk {add} instead of {drop}")
}

fn at_the_cables(planted: &mut Planted, random: &mut Random) -> String {
    let count = planted.wiring.trunks.len();
    let (one, other) = (random.below(count), random.below(count));
    match random.below(4) {
        0 => {
            // The far ends of two cables change places.
            let cable = random.below(planted.wiring.trunks[one].cables());
            let [first, second] = [one, other].map(|at| planted.wiring.trunks[at].ends[1].clone());
            if second.ports.len() <= cable || one == other || first.switch != second.switch {
                planted.wiring.trunks[one].ends[1] = second;
                planted.wiring.trunks[other].ends[1] = first;
                return format!("far ends of trunks {one} and {other} swapped");
            }
            planted.wiring.trunks[one].ends[1].ports[cable] = second.ports[cable];
            planted.wiring.trunks[other].ends[1].ports[cable] = first.ports[cable];
            format!("cables {cable} of trunks {one} and {other} swapped")
        }
        1 => {
            let host = random.below(planted.wiring.hosts.len());
            let other = random.below(planted.wiring.hosts.len());
            let hosts = &mut planted.wiring.hosts;
            if host != other && hosts[host].ports.len() == hosts[other].ports.len() {
                let (one, two) = (hosts[host].clone(), hosts[other].clone());
                (hosts[host].switch, hosts[host].ports) = (two.switch, two.ports);
                (hosts[other].switch, hosts[other].ports) = (one.switch, one.ports);
            }
            format!("hosts {host} and {other} swapped")
        }
        2 => {
            let host = random.below(planted.wiring.hosts.len());
            let end = &mut planted.wiring.trunks[one].ends[random.below(2)];
            let hosts = &mut planted.wiring.hosts;
            (hosts[host].switch, end.switch) = (end.switch, hosts[host].switch);
            (hosts[host].ports[0], end.ports[0]) = (end.ports[0], hosts[host].ports[0]);
            if hosts[host].ports.len() == 1 && end.ports.len() == 1 {
                return format!("host {host} swapped with an end of trunk {one}");
            }
            // Only whole ones can be swapped: back again.
            (hosts[host].switch, end.switch) = (end.switch, hosts[host].switch);
            (hosts[host].ports[0], end.ports[0]) = (end.ports[0], hosts[host].ports[0]);
            "nothing".into()
        }
        _ => {
            let trunk = &mut planted.wiring.trunks[one];
            if trunk.cables() > 1 && random.once_in(2) {
                // The same cables, crossed within the bundle.
                trunk.ends[1].ports.swap(0, 1);
                return format!("cables of trunk {one} crossed");
            }
            trunk.ends.iter_mut().for_each(|end| {
                end.ports.truncate(1);
            });
            format!("one cable of trunk {one} left")
        }
    }
}

fn at_a_model(planted: &mut Planted, random: &mut Random) -> String {
    let place = random.below(planted.wiring.switches.len());
    let entries =
        check(&planted.wiring, &planted.configuration, &CheckOptions::INTACT).table_entries;
    let model = &mut planted.wiring.switches[place].model;
    let what = match random.below(8) {
        0 | 1 => {
            let needed =
                entries.get(place).map_or(8, |&entries| u32::try_from(entries).unwrap_or(8));
            model.table_entries = needed.saturating_sub(1);
            "a table too small by one"
        }
        2..=4 => {
            model.learning = Learning::Shared;
            "shared learning"
        }
        5 => {
            model.multi_untagged = false;
            "one untagged VLAN a port"
        }
        6 => {
            model.vlans = 5;
            "5 VLANs"
        }
        _ => {
            model.vlan_ids.remove(vlan(103));
            "not VLAN 103"
        }
    };
    format!("s{place}: {what}")
}

fn at_a_switch(planted: &mut Planted, random: &mut Random) -> String {
    let vlan = some_vlan(planted, random);
    let place = random.below(planted.configuration.switches.len());
    let switch = &mut planted.configuration.switches[place];
    let what = match random.below(6) {
        0..=2 => {
            switch.vlans.remove(vlan);
            format!("VLAN {vlan} is not defined")
        }
        3 => {
            switch.spanning_tree = true;
            "spanning tree".into()
        }
        4 => {
            let spans = [None, Some(Nanos::ZERO), Some(Nanos::from_secs(200_000))];
            switch.ageing = *random.one_of(&spans);
            format!("ageing {:?}", switch.ageing)
        }
        _ => {
            switch.vlans.insert(vlan);
            format!("VLAN {vlan} is defined")
        }
    };
    format!("s{place}: {what}")
}

/// Several VLANs take other trunks; somewhere there may be no pause frames.
fn other_trees(planted: &mut Planted, random: &mut Random) -> String {
    let moves: Vec<String> =
        (0..2 + random.below(5)).map(|_| another_tree(planted, random)).collect();
    let mut what = moves.join("; ");
    for _ in 0..random.below(4) {
        let trunk = random.below(planted.wiring.trunks.len());
        let Some(ends) = ends(planted, trunk) else { continue };
        let (switch, slot) = ends[random.below(2)];
        planted.configuration.switches[switch].ports[slot].flow_control = false;
        what += &format!("; no pause frames at s{switch} on trunk {trunk}");
    }
    what
}

/// Frames change from one VLAN to another one and back on trunks.
fn changing_vlans(planted: &mut Planted, random: &mut Random) -> String {
    let both = [some_vlan(planted, random), some_vlan(planted, random)];
    let mut what = format!("VLANs {} and {} change on trunks", both[0], both[1]);
    for _ in 0..1 + random.below(3) {
        let trunk = random.below(planted.wiring.trunks.len());
        let Some(ends) = ends(planted, trunk) else { continue };
        let first = random.below(2);
        for (nth, (switch, slot)) in ends.into_iter().enumerate() {
            let port = &mut planted.configuration.switches[switch].ports[slot];
            let vlan = both[(nth + first) % 2];
            both.iter().for_each(|&vlan| {
                port.tagged.remove(vlan);
            });
            port.untagged.insert(vlan);
            port.pvid = Some(vlan);
        }
        what += &format!(" {trunk}");
    }
    what
}

/// Frames of a VLAN get into another one on a trunk, and none of that come back.
fn leak(planted: &mut Planted, random: &mut Random) -> String {
    let (from, into) = (some_vlan(planted, random), some_vlan(planted, random));
    let trunk = random.below(planted.wiring.trunks.len());
    let Some(mut ends) = ends(planted, trunk) else { return "nothing".into() };
    if random.once_in(2) {
        ends.reverse();
    }
    let [near, far] = ends;
    let port = &mut planted.configuration.switches[near.0].ports[near.1];
    port.tagged.remove(from);
    port.untagged.insert(from);
    let port = &mut planted.configuration.switches[far.0].ports[far.1];
    port.pvid = Some(into);
    if !port.is_member(into) {
        port.untagged.insert(into);
    }
    format!("VLAN {from} leaks into {into} on trunk {trunk} to s{}", far.0)
}

/// Pause frames alone are never wrong, but where a tree was changed they may be.
fn of_flow_control(planted: &mut Planted, random: &mut Random) -> String {
    let place = random.below(planted.configuration.switches.len());
    for port in &mut planted.configuration.switches[place].ports {
        port.flow_control = !port.flow_control;
    }
    format!("s{place}: pause frames the other way")
}

fn of_priming(planted: &mut Planted, random: &mut Random) -> String {
    let vlan = some_vlan(planted, random);
    let hosts = planted.wiring.hosts.len();
    match &mut planted.configuration.priming {
        Priming::Broadcast(vlans) if random.once_in(2) => {
            vlans.remove(vlan);
            format!("VLAN {vlan} is not primed")
        }
        Priming::Directed(representatives) if !representatives.is_empty() => {
            let place = random.below(representatives.len());
            match random.below(3) {
                0 => {
                    representatives.remove(place);
                    format!("representative {place} is gone")
                }
                1 => {
                    let host = meikyo_fabric::HostId::new(random.below(hosts));
                    representatives[place].host = host;
                    format!("representative {place} is {host:?}")
                }
                _ => {
                    let mut another = representatives[place];
                    another.host = meikyo_fabric::HostId::new(random.below(hosts));
                    representatives.push(another);
                    format!("another representative like {place}: {another:?}")
                }
            }
        }
        priming => {
            *priming = Priming::None;
            "nothing is primed".into()
        }
    }
}
