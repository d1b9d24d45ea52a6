//! From the sections `fabric` and `links` to a [`Fabric`].

use std::collections::BTreeMap;

use meikyo_places::hint;
use meikyo_units::{BitsPerSecond, ParseQuantityError};

use super::{BundleProtocol, Fabric, Link, LinkEnd, Model, Routing, Stated, Tagging};
use crate::fold::unfold;
use crate::section::{Reading, Section, Sourced};
use crate::{Device, DeviceKind, Place};

/// Reads what the file says of the fabric; `None` if it says nothing.
pub(crate) fn read_fabric(
    reading: &mut Reading,
    file: &Section<'_>,
    devices: &[Device],
) -> Option<Fabric> {
    let section = file.section(reading, "fabric");
    if section.is_none() && !file.has("links") {
        return None;
    }
    let Some(section) = section else {
        file.note(reading, "links", "without a section `[fabric]`; it may be empty");
        return None;
    };
    let fabric = Fabric {
        place: Place { line: section.line },
        topology: section.text(reading, "topology").map(stated),
        links: read_links(reading, file, devices),
        cables: count(reading, &section, "cables"),
        hosts_per_switch: section.count(reading, "hosts_per_switch").map(stated),
        ports_per_host: count(reading, &section, "ports_per_host"),
        routing: word(reading, &section, "routing", Routing::Auto),
        tagging: word(reading, &section, "tagging", Tagging::Switch),
        vlans: section.text(reading, "vlans").map(stated),
        management_vlan: section.count(reading, "management_vlan").map(stated),
        manager: read_manager(reading, &section, devices),
        spare: flag(reading, &section, "spare", false),
        bundling: word(reading, &section, "bundling", BundleProtocol::Lacp),
        flow_control: flag(reading, &section, "flow_control", true),
        ageing: section.parsed(reading, "ageing", str::parse).map(stated),
        rate: read_rate(reading, &section),
        model: section.text(reading, "model").map(stated),
        models: read_models(reading, &section),
    };
    check_source(reading, &section, &fabric, file.means("links"));
    Some(fabric)
}

/// Either a topology by name or links between switches say what is plugged into what.
///
/// Links that could not be read were noted, each with its mistake: `has_links` says that there are some.
fn check_source(reading: &mut Reading, section: &Section<'_>, fabric: &Fabric, has_links: bool) {
    if let Some(topology) = &fabric.topology {
        if let Some(link) = fabric.links.first() {
            let text = format!(
                "`topology` (line {}) and `[[links]]` both say what is plugged into what; use one",
                topology.place.line
            );
            reading.note(link.place.line, "links", text);
        }
    } else if !has_links {
        let text = "missing; name one such as \"torus 4x2\", or write `[[links]]`";
        section.note(reading, "topology", text);
    } else {
        for key in ["hosts_per_switch", "ports_per_host"] {
            if section.has(key) {
                section.note(reading, key, "only with `topology`; the links say it");
            }
        }
    }
}

fn stated<T>(value: Sourced<T>) -> Stated<T> {
    Stated { value: value.value, place: Place { line: value.line } }
}

fn built_in<T>(section: &Section<'_>, value: T) -> Stated<T> {
    Stated { value, place: Place { line: section.line } }
}

/// 1 unless written.
fn count(reading: &mut Reading, section: &Section<'_>, key: &str) -> Stated<u32> {
    section.count(reading, key).map_or_else(|| built_in(section, 1), stated)
}

fn flag(reading: &mut Reading, section: &Section<'_>, key: &str, otherwise: bool) -> Stated<bool> {
    section.flag(reading, key).map_or_else(|| built_in(section, otherwise), stated)
}

/// A value that is written as a word.
trait Worded: Copy + 'static {
    const ALL: &[(&str, Self)];
}

/// The words of `T`, for the list of keys.
macro_rules! worded {
    ($name:ident, $($word:literal => $value:ident),+) => {
        impl Worded for $name {
            const ALL: &[(&str, Self)] = &[$(($word, Self::$value)),+];
        }

        impl $name {
            /// The words that stand for it in the cluster file.
            pub const WORDS: &[&str] = &[$($word),+];

            /// As the cluster file writes it.
            pub fn word(self) -> &'static str {
                match self { $(Self::$value => $word),+ }
            }
        }
    };
}

worded!(Routing, "auto" => Auto, "dimension-order" => DimensionOrder, "minimal" => Minimal, "up-down" => UpDown, "acyclic" => Acyclic);
worded!(Tagging, "switch" => Switch, "host" => Host);
worded!(BundleProtocol, "lacp" => Lacp, "static" => Static);

fn word<T: Worded>(
    reading: &mut Reading,
    section: &Section<'_>,
    key: &str,
    otherwise: T,
) -> Stated<T> {
    let Some(found) = section.word(reading, key) else { return built_in(section, otherwise) };
    let value = T::ALL.iter().find(|(word, _)| *word == found.value);
    let value = value.map_or(otherwise, |(_, value)| *value);
    Stated { value, place: Place { line: found.line } }
}

fn read_manager(
    reading: &mut Reading,
    section: &Section<'_>,
    devices: &[Device],
) -> Option<Stated<String>> {
    let manager = section.text(reading, "manager")?;
    let hosts = || devices.iter().filter(|device| device.kind == DeviceKind::Host);
    if !hosts().any(|host| host.name == manager.value) {
        let meant = hint(&manager.value, hosts().map(|host| host.name.as_str()));
        section.note(reading, "manager", format!("no host is named `{}`{meant}", manager.value));
    }
    if !section.has("management_vlan") {
        section.note(reading, "manager", "without `management_vlan`, in which it would manage");
    }
    Some(stated(manager))
}

fn read_rate(reading: &mut Reading, section: &Section<'_>) -> Stated<BitsPerSecond> {
    let read = |text: &str| match text.parse::<BitsPerSecond>() {
        Ok(rate) if rate.get() == 0 => Err("a link has a rate above 0".to_owned()),
        Ok(rate) => Ok(rate),
        Err(error) => Err(ParseQuantityError::to_string(&error)),
    };
    section
        .parsed(reading, "rate", read)
        .map_or_else(|| built_in(section, BitsPerSecond::GIGABIT), stated)
}

fn read_models(reading: &mut Reading, section: &Section<'_>) -> Vec<Model> {
    let sections = section.named(reading, "models");
    sections.into_iter().map(|(name, model)| read_model(reading, name, &model)).collect()
}

fn read_model(reading: &mut Reading, name: String, model: &Section<'_>) -> Model {
    let mut count = |key| model.count(reading, key).map(|count| count.value);
    let ports = count("ports");
    let table_entries = count("table_entries");
    let vlans = count("vlans");
    let bundle_ports = count("bundle_ports");
    let mut flag = |key| model.flag(reading, key).map(|flag| flag.value);
    let multi_untagged = flag("multi_untagged");
    let shared_learning = flag("shared_learning");
    let vlan_1_stays = flag("vlan_1_stays");
    let mut span = |key| model.parsed(reading, key, str::parse).map(|span| span.value);
    let (ageing_min, ageing_max) = (span("ageing_min"), span("ageing_max"));
    Model {
        name,
        place: Place { line: model.line },
        like: model.text(reading, "like").map(stated),
        ports,
        table_entries,
        vlans,
        bundle_ports,
        multi_untagged,
        shared_learning,
        ageing_min,
        ageing_max,
        vlan_1_stays,
    }
}

fn read_links(reading: &mut Reading, file: &Section<'_>, devices: &[Device]) -> Vec<Link> {
    let kinds: BTreeMap<&str, DeviceKind> =
        devices.iter().map(|device| (device.name.as_str(), device.kind)).collect();
    let mut links = Vec::new();
    for section in file.sections(reading, "links") {
        let cables = count(reading, &section, "cables").value;
        let Some(ends) = section.texts(reading, "between") else {
            if !section.has("between") {
                section.note(reading, "between", "missing; a link is between two devices");
            }
            continue;
        };
        let [one, other] = ends.value.as_slice() else {
            let text = "a link has two ends, such as [\"node[1-8]\", \"sw1:[1-8]\"]";
            section.note(reading, "between", text);
            continue;
        };
        let mut read = |end: &Sourced<String>| read_ends(reading, &section, end, &kinds);
        let (Some(ones), Some(others)) = (read(one), read(other)) else { continue };
        let count = ones.len().max(others.len());
        if [&ones, &others].iter().any(|ends| ends.len() != count && ends.len() != 1) {
            let text =
                format!("{} ends for {}; as many are needed, or one", ones.len(), others.len());
            section.note(reading, "between", text);
            continue;
        }
        for (one, other) in ones.iter().cycle().zip(others.iter().cycle()).take(count) {
            let ends = [one.clone(), other.clone()];
            if let Some(link) = link_of(reading, &section, ends, cables, &kinds) {
                links.push(link);
            }
        }
    }
    links
}

/// The link, if its ends fit each other.
fn link_of(
    reading: &mut Reading,
    section: &Section<'_>,
    ends: [LinkEnd; 2],
    cables: u32,
    kinds: &BTreeMap<&str, DeviceKind>,
) -> Option<Link> {
    let is_host = |end: &LinkEnd| kinds.get(end.device.as_str()) == Some(&DeviceKind::Host);
    if ends[0].device == ends[1].device {
        section.note(reading, "between", format!("`{}` is linked to itself", ends[0].device));
        return None;
    }
    if ends.iter().all(is_host) {
        let text = format!("`{}` and `{}` are both hosts", ends[0].device, ends[1].device);
        section.note(reading, "between", text);
        return None;
    }
    for end in &ends {
        if is_host(end) && !end.ports.is_empty() {
            let text = format!("`{}` is a host; only ports of switches are named", end.device);
            section.note(reading, "between", text);
            return None;
        }
        if !end.ports.is_empty() && u32::try_from(end.ports.len()) != Ok(cables) {
            let text = format!(
                "`{}` names {} of {cables} ports; write `cables` and one port for each, as \
                 `sw1:45+46`",
                end.device,
                end.ports.len()
            );
            section.note(reading, "between", text);
            return None;
        }
    }
    Some(Link { ends, cables, place: Place { line: section.line } })
}

/// `NAME` or `NAME:PORT` or `NAME:PORT+PORT`, folded.
fn read_ends(
    reading: &mut Reading,
    section: &Section<'_>,
    text: &Sourced<String>,
    kinds: &BTreeMap<&str, DeviceKind>,
) -> Option<Vec<LinkEnd>> {
    let key = section.key("between");
    let names = match unfold(&text.value) {
        Ok(names) => names,
        Err(error) => {
            reading.note(text.line, key, error.to_string());
            return None;
        }
    };
    let mut ends = Vec::with_capacity(names.len());
    for name in names {
        let (device, ports) = match name.split_once(':') {
            None => (name.as_str(), Some(Vec::new())),
            Some((device, ports)) => (device, read_ports(ports)),
        };
        if !kinds.contains_key(device) {
            let meant = hint(device, kinds.keys().copied().take(1_000));
            reading.note(text.line, key, format!("no host or switch is named `{device}`{meant}"));
            return None;
        }
        let Some(ports) = ports else {
            let text_of =
                format!("`{name}` names no ports; allowed are `{device}:45` or `{device}:45+46`");
            reading.note(text.line, key, text_of);
            return None;
        };
        ends.push(LinkEnd { device: device.to_owned(), ports });
    }
    Some(ends)
}

fn read_ports(text: &str) -> Option<Vec<u16>> {
    let port = |text: &str| text.parse().ok().filter(|&port: &u16| port > 0);
    text.split('+').map(port).collect()
}
