//! From the text of a cluster file to a [`Cluster`], with every problem told at once.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use meikyo_places::{Lines, Origin, hint, read_table};
use meikyo_units::Nanos;

use crate::address::{Unusable, parse_address};
use crate::alert::read_rules;
use crate::checkpoint::read_checkpoint;
use crate::fabric::read_fabric;
use crate::fold::{unfold, unfold_addresses};
use crate::keys;
use crate::layer::{PORT, Settled, SnmpLayer};
use crate::origin::origin_of;
use crate::section::{Reading, Section, Sourced, read_names};
use crate::{
    Access, Cluster, Device, DeviceKind, LoadError, MacAddress, Measure, Origins, Place, Secret,
    TableKeep, What,
};

/// Most devices of one cluster: what one collector's address table is made for.
pub const DEVICES_MAX: usize = 65_536;
/// Longest name of a device, in bytes: that of a host name (RFC 1035).
const NAME_BYTES_MAX: usize = 255;
/// Largest file that is read; 65,536 devices with a section each need less.
const FILE_BYTES_MAX: u64 = 32 << 20;
/// Readings are kept at least this long: a whole partition of the recording.
const KEEP_MIN: Nanos = Nanos::from_secs(3_600);

/// A cluster, and for each of its devices where the settings come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The cluster with every default applied.
    pub cluster: Cluster,
    /// One for each device, in the same order.
    pub origins: Vec<Origins>,
    /// Where `recording.keep` comes from.
    pub keep_origin: Origin,
}

/// Reads the cluster file at `path`.
///
/// # Errors
/// If it cannot be read, or with everything that is wrong with it.
pub fn load(path: &Path) -> Result<Cluster, LoadError> {
    load_resolved(path).map(|resolved| resolved.cluster)
}

/// Like [`load`], with the origin of every setting.
///
/// # Errors
/// If it cannot be read, or with everything that is wrong with it.
pub fn load_resolved(path: &Path) -> Result<Resolved, LoadError> {
    load_with(path, None)
}

/// Tells why an object of a measurement cannot be asked for, by its name and instance.
pub type ObjectCheck = fn(&str) -> Result<(), String>;

/// Like [`load_resolved`]; objects that `check` refuses are told together with everything else that
/// is wrong.
///
/// # Errors
/// If it cannot be read, or with everything that is wrong with it.
pub fn load_checked(path: &Path, check: ObjectCheck) -> Result<Resolved, LoadError> {
    load_with(path, Some(check))
}

fn load_with(path: &Path, check: Option<ObjectCheck>) -> Result<Resolved, LoadError> {
    let failed = |source| LoadError::Read { path: path.into(), source };
    let size_bytes = fs::metadata(path).map_err(failed)?.len();
    if size_bytes > FILE_BYTES_MAX {
        return Err(LoadError::TooLarge {
            path: path.into(),
            size_bytes,
            limit_bytes: FILE_BYTES_MAX,
        });
    }
    parse_with(&fs::read_to_string(path).map_err(failed)?, path, check)
}

/// Reads the text of a cluster file; `path` is for messages and for secrets beside the file.
///
/// # Errors
/// With everything that is wrong with it, each with its line and key.
pub fn parse(text: &str, path: &Path) -> Result<Cluster, LoadError> {
    parse_resolved(text, path).map(|resolved| resolved.cluster)
}

/// Like [`parse`], with the origin of every setting.
///
/// # Errors
/// With everything that is wrong with it, each with its line and key.
pub fn parse_resolved(text: &str, path: &Path) -> Result<Resolved, LoadError> {
    parse_with(text, path, None)
}

fn parse_with(text: &str, path: &Path, check: Option<ObjectCheck>) -> Result<Resolved, LoadError> {
    let lines = Lines::new(text);
    let table = read_table(text, &lines);
    let mut reading = Reading::new(lines, check);
    let table = match table {
        Ok(table) => table,
        Err(problems) => {
            problems.into_iter().for_each(|problem| reading.add(problem));
            return Err(reading.into_error(path));
        }
    };
    let file = Section::open(&mut reading, String::new(), keys::FILE, &table, 1);
    let mut resolved = read_file(&mut reading, &file);
    resolved.cluster.path = path.into();
    if reading.has_problems() { Err(reading.into_error(path)) } else { Ok(resolved) }
}

/// What a section gives to the devices under it.
#[derive(Debug, Clone, Default)]
struct Defaults {
    snmp: SnmpLayer,
    measure: Option<Sourced<Vec<Measure>>>,
    /// Whether it is said what to measure, be it in a way that was noted.
    means_measure: bool,
}

impl Defaults {
    fn read(reading: &mut Reading, section: &Section<'_>, below: &Self) -> Self {
        Self {
            snmp: SnmpLayer::read(reading, section, &below.snmp),
            measure: read_measures(reading, section).or_else(|| below.measure.clone()),
            means_measure: below.means_measure || section.means("measure"),
        }
    }
}

/// The section of a group, and what its members take from it.
struct Group<'a> {
    section: Section<'a>,
    defaults: Defaults,
}

/// Everything that entries are read against, and what they have given so far.
struct Gathering<'a> {
    file: Defaults,
    /// Whether the file describes a fabric.
    has_fabric: bool,
    groups: BTreeMap<String, Group<'a>>,
    /// Group and line by member.
    members: BTreeMap<String, Sourced<String>>,
    devices: Vec<Device>,
    origins: Vec<Origins>,
    names: BTreeMap<String, usize>,
    /// The line of each, by address and by who is asked there.
    addresses: BTreeMap<(SocketAddr, Asked), usize>,
    macs: BTreeMap<MacAddress, usize>,
}

/// Who is asked at an address: proxies and switches with several routing tables answer for another
/// device by another community or user.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    Nobody,
    Community(Secret),
    User(String),
}

impl Asked {
    fn of_access(access: &Access) -> Self {
        match access {
            Access::Unstated => Self::Nobody,
            Access::V1 { community } | Access::V2c { community } => {
                Self::Community(community.clone())
            }
            Access::V3 { user, .. } => Self::User(user.clone()),
        }
    }
}

fn read_file(reading: &mut Reading, file: &Section<'_>) -> Resolved {
    let name = file.text(reading, "name");
    if !file.means("name") {
        file.note(
            reading,
            "name",
            "missing; give the cluster a name, for example name = \"presto\"",
        );
    }
    let recording = file.section(reading, "recording");
    let keep = recording.as_ref().and_then(|section| read_keep(reading, section));
    let keep_tables =
        recording.map(|section| read_keep_tables(reading, &section)).unwrap_or_default();
    let defaults = Defaults::read(reading, file, &Defaults::default());
    let mut gathering = Gathering {
        groups: BTreeMap::new(),
        members: BTreeMap::new(),
        file: defaults,
        has_fabric: file.means("fabric") || file.means("links"),
        devices: Vec::new(),
        origins: Vec::new(),
        names: BTreeMap::new(),
        addresses: BTreeMap::new(),
        macs: BTreeMap::new(),
    };
    gathering.read_groups(reading, file);
    let mut entries = Vec::new();
    for (key, kind) in [("hosts", DeviceKind::Host), ("switches", DeviceKind::Switch)] {
        entries.extend(file.sections(reading, key).into_iter().map(|entry| (entry, kind)));
    }
    if !file.means("hosts") && !file.means("switches") {
        file.note(
            reading,
            "hosts",
            "missing; a cluster has at least one `[[hosts]]` or `[[switches]]` with `name` and \
             `address`",
        );
    }
    entries.sort_by_key(|(entry, _)| entry.line);
    for (entry, kind) in &entries {
        gathering.read_entry(reading, entry, *kind);
    }
    gathering.note_strangers(reading);
    let alerts = read_rules(reading, file, &gathering.devices);
    let default_alerts = file.flag(reading, "default_alerts").is_none_or(|flag| flag.value);
    let fabric = read_fabric(reading, file, &gathering.devices);
    let checkpoint = read_checkpoint(reading, file, &gathering.devices);
    Resolved {
        cluster: Cluster {
            name: name.map(|name| name.value).unwrap_or_default(),
            path: Path::new("").into(),
            devices: gathering.devices,
            keep: keep.as_ref().map(|keep| keep.value),
            keep_tables,
            alerts,
            default_alerts,
            fabric,
            checkpoint,
        },
        origins: gathering.origins,
        keep_origin: origin_of(keep.as_ref()),
    }
}

fn read_keep(reading: &mut Reading, section: &Section<'_>) -> Option<Sourced<Nanos>> {
    section.parsed(reading, "keep", |text| match text.parse::<Nanos>() {
        Ok(keep) if keep < KEEP_MIN => Err(format!("{keep} is too short; at least {KEEP_MIN}")),
        Ok(keep) => Ok(keep),
        Err(error) => Err(error.to_string()),
    })
}

fn read_keep_tables(reading: &mut Reading, recording: &Section<'_>) -> Vec<TableKeep> {
    let mut tables = Vec::new();
    for (table, section) in recording.named(reading, "tables") {
        if !section.means("keep") {
            let text = "missing; say how long the table is kept, for example keep = \"7d\"";
            section.note(reading, "keep", text);
        }
        if let Some(keep) = read_keep(reading, &section) {
            tables.push(TableKeep { table, keep: keep.value, place: Place { line: keep.line } });
        }
    }
    tables
}

impl<'a> Gathering<'a> {
    fn read_groups(&mut self, reading: &mut Reading, file: &Section<'a>) {
        for (name, section) in file.named(reading, "groups") {
            let defaults = Defaults::read(reading, &section, &self.file);
            for member in read_names(reading, &section, "members", unfold) {
                if let Some(other) = self.members.get(&member.value) {
                    let text = || {
                        format!(
                            "`{}` is a member of `{}` already (line {})",
                            member.value, other.value, other.line
                        )
                    };
                    let key = section.key("members");
                    reading.note_alike(member.line, key, ("member twice", &member.value), text);
                    continue;
                }
                let group = Sourced { value: name.clone(), line: member.line };
                self.members.insert(member.value, group);
            }
            self.groups.insert(name, Group { section, defaults });
        }
    }

    fn read_entry(&mut self, reading: &mut Reading, entry: &Section<'_>, kind: DeviceKind) {
        for key in ["name", "address"] {
            if !entry.means(key) {
                entry.note(reading, key, "missing; every entry has `name` and `address`");
            }
        }
        let names = read_names(reading, entry, "name", unfold);
        let addresses = read_names(reading, entry, "address", unfold_addresses);
        if !names.is_empty() && !addresses.is_empty() && names.len() != addresses.len() {
            let text = format!(
                "{} for {}; as many are needed",
                counted(addresses.len(), "address", "addresses"),
                counted(names.len(), "name", "names")
            );
            entry.note(reading, "address", text);
        }
        let macs = match kind {
            DeviceKind::Host => self.read_macs(reading, entry, names.len()),
            DeviceKind::Switch => Vec::new(),
        };
        let model = match kind {
            DeviceKind::Host => None,
            DeviceKind::Switch => entry.text(reading, "model").map(|model| model.value),
        };
        let own_group = self.read_group_of(reading, entry);
        if names.is_empty() {
            // The name is wrong; what is wrong beside it is told too.
            self.settings(reading, entry, own_group.as_ref().map(|group| group.value.as_str()));
        }
        // One set of settings for each group that the entry's devices belong to.
        let mut settings: BTreeMap<Option<String>, Option<Settings>> = BTreeMap::new();
        for (at, name) in names.iter().enumerate() {
            let group = self.group_of(reading, name, own_group.as_ref());
            let group_name = group.as_ref().map(|group| group.value.clone());
            let settings = settings
                .entry(group_name)
                .or_insert_with_key(|group| self.settings(reading, entry, group.as_deref()));
            let settled = settings.as_ref().map(|settings| &settings.settled);
            let address = addresses
                .get(at)
                .and_then(|address| self.read_address(reading, entry, address, name, settled));
            let known = self.note_name(reading, entry, name);
            if let (Some(settings), Some((address, own_port)), false) = (settings, address, known) {
                let origins = settings.origins(entry, reading, own_port, group.as_ref());
                self.origins.push(origins);
                self.devices.push(Device {
                    name: name.value.clone(),
                    kind,
                    group: group.map(|group| group.value),
                    address,
                    mac: macs.get(at).copied(),
                    model: model.clone(),
                    snmp: settings.settled.snmp.clone(),
                    measure: settings.measure.value.clone(),
                    place: Place { line: entry.line },
                });
            }
        }
    }

    /// The `group` of an entry; it must be among the sections of `groups`, where there are any.
    fn read_group_of(&self, reading: &mut Reading, entry: &Section<'_>) -> Option<Sourced<String>> {
        let group = entry.text(reading, "group")?;
        if !self.groups.is_empty() && !self.groups.contains_key(&group.value) {
            let meant = hint(&group.value, self.groups.keys().map(String::as_str));
            let text = format!("no section `[groups.{}]`{meant}", group.value);
            reading.note(group.line, entry.key("group"), text);
        }
        Some(group)
    }

    fn group_of(
        &mut self,
        reading: &mut Reading,
        name: &Sourced<String>,
        own: Option<&Sourced<String>>,
    ) -> Option<Sourced<String>> {
        match (self.members.get(&name.value), own) {
            (Some(member), Some(own)) if member.value != own.value => {
                let text = || {
                    format!(
                        "`{}` is a member of `{}` already (line {})",
                        name.value, member.value, member.line
                    )
                };
                let kind = ("member twice", name.value.as_str());
                reading.note_alike(own.line, "group".to_owned(), kind, text);
                None
            }
            (Some(group), _) | (None, Some(group)) => Some(group.clone()),
            (None, None) => None,
        }
    }

    fn settings(
        &self,
        reading: &mut Reading,
        entry: &Section<'_>,
        group: Option<&str>,
    ) -> Option<Settings> {
        let group = group.and_then(|group| self.groups.get(group));
        let below = group.map_or(&self.file, |group| &group.defaults);
        let own = Defaults::read(reading, entry, below);
        let says_nothing = own.measure.is_none() && !own.means_measure;
        // A file that describes a fabric need not say what to measure, or how.
        let settled = if self.has_fabric && says_nothing && !own.snmp.is_stated() {
            Some(SnmpLayer::unstated())
        } else {
            own.snmp.settle(reading, entry.line)
        };
        if says_nothing && self.has_fabric {
            let measure = Sourced { value: Vec::new(), line: entry.line };
            return Some(Settings { settled: settled?, measure });
        }
        if says_nothing {
            let text = "missing; say what to measure here, in the group or at the top of the file, \
                        for example measure = [\"interfaces\", \"load\"]";
            entry.note(reading, "measure", text);
        }
        let settings = Settings { settled: settled?, measure: own.measure? };
        check_spans(reading, &settings, entry.line);
        Some(settings)
    }

    /// The address with the port that it has or is given, and whether it is its own port.
    fn read_address(
        &mut self,
        reading: &mut Reading,
        entry: &Section<'_>,
        text: &Sourced<String>,
        name: &Sourced<String>,
        settled: Option<&Settled>,
    ) -> Option<(SocketAddr, bool)> {
        let line = text_line(entry, reading, "address");
        let mut note = |kind: &'static str, subject: &str, text: String| {
            reading.note_alike(line, entry.key("address"), (kind, subject), || text);
        };
        let Some((ip, own_port)) = parse_address(&text.value) else {
            let problem = format!(
                "`{}` is not an IP address; allowed are `10.0.0.7`, `10.0.0.7:1610`, `fd00::7`, \
                 `[fd00::7]:1610`, with ranges such as `10.0.0.[1-225]`",
                text.value
            );
            note("not an address", &text.value, problem);
            return None;
        };
        if let Some(unusable) = Unusable::of_address(ip) {
            note("not an agent's", &text.value, format!("`{ip}` is {}", unusable.text()));
            return None;
        }
        let port = own_port.or_else(|| settled.map(|settled| settled.port)).unwrap_or(PORT);
        let address = SocketAddr::new(ip, port);
        // Without settings it is not known who is asked there.
        let Some(settled) = settled else { return Some((address, own_port.is_some())) };
        let asked = (address, Asked::of_access(&settled.snmp.access));
        if let Some(&other) = self.addresses.get(&asked) {
            let problem = format!(
                "`{}` has the address {address} of a device in line {other}, and the same \
                 credentials; devices behind one address differ in `community` or `user`",
                name.value
            );
            note("address twice", &name.value, problem);
            return None;
        }
        self.addresses.insert(asked, text.line);
        Some((address, own_port.is_some()))
    }

    /// The Ethernet addresses of an entry's hosts: as many as names, or none.
    fn read_macs(
        &mut self,
        reading: &mut Reading,
        entry: &Section<'_>,
        names: usize,
    ) -> Vec<MacAddress> {
        let texts = read_names(reading, entry, "mac", unfold);
        if !texts.is_empty() && texts.len() != names {
            let addresses = counted(texts.len(), "address", "addresses");
            let text =
                format!("{addresses} for {}; as many are needed", counted(names, "name", "names"));
            entry.note(reading, "mac", text);
            return Vec::new();
        }
        let mut macs = Vec::with_capacity(texts.len());
        for text in texts {
            let mac = match text.value.parse::<MacAddress>() {
                Ok(mac) => mac,
                Err(error) => {
                    let kind = ("not an address", text.value.as_str());
                    reading.note_alike(text.line, entry.key("mac"), kind, || error.to_string());
                    continue;
                }
            };
            if let Some(other) = self.macs.insert(mac, text.line) {
                let problem =
                    || format!("`{mac}` is the address of a host in line {other} already");
                let kind = ("address twice", text.value.as_str());
                reading.note_alike(text.line, entry.key("mac"), kind, problem);
            }
            macs.push(mac);
        }
        macs
    }

    /// Notes what is wrong with a name; true if the name is taken or cannot be used.
    fn note_name(
        &mut self,
        reading: &mut Reading,
        entry: &Section<'_>,
        name: &Sourced<String>,
    ) -> bool {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.value.len() > NAME_BYTES_MAX || !name.value.chars().all(allowed) {
            let text = || {
                format!(
                    "`{}` is not a name; allowed are at most {NAME_BYTES_MAX} letters, digits, \
                     `-`, `_` and `.`",
                    name.value
                )
            };
            let kind = ("not a name", name.value.as_str());
            reading.note_alike(name.line, entry.key("name"), kind, text);
            return true;
        }
        if let Some(&other) = self.names.get(&name.value) {
            let text = || format!("`{}` is named already in line {other}", name.value);
            let kind = ("named twice", name.value.as_str());
            reading.note_alike(name.line, entry.key("name"), kind, text);
            return true;
        }
        if self.names.len() == DEVICES_MAX {
            let text = format!("more than {DEVICES_MAX} devices");
            reading.note(name.line, entry.key("name"), text);
            return true;
        }
        self.names.insert(name.value.clone(), name.line);
        false
    }

    /// Notes members of groups that are no devices.
    fn note_strangers(&self, reading: &mut Reading) {
        // Every hint compares with every name: for a few strangers a help, for thousands a stall.
        const HINTS_MAX: usize = 8;
        let strangers = self.members.iter().filter(|(name, _)| !self.names.contains_key(*name));
        for (at, (member, group)) in strangers.enumerate() {
            let names = self.names.keys().map(String::as_str);
            let meant = hint(member, names.take(if at < HINTS_MAX { DEVICES_MAX } else { 0 }));
            let key = self
                .groups
                .get(&group.value)
                .map_or_else(String::new, |group| group.section.key("members"));
            let text = || format!("no host or switch is named `{member}`{meant}");
            reading.note_alike(group.line, key, ("stranger", member), text);
        }
    }
}

/// What the devices of one entry and one group share.
struct Settings {
    settled: Settled,
    measure: Sourced<Vec<Measure>>,
}

impl Settings {
    fn origins(
        &self,
        entry: &Section<'_>,
        reading: &Reading,
        own_port: bool,
        group: Option<&Sourced<String>>,
    ) -> Origins {
        let address = Origin::Line(text_line(entry, reading, "address"));
        Origins {
            entry: Origin::Line(entry.line),
            address,
            port: if own_port { address } else { self.settled.port_origin },
            group: origin_of(group),
            version: self.settled.version_origin,
            credentials: self.settled.credentials_origin,
            write: self.settled.write_origin,
            interval: self.settled.interval_origin,
            timeout: self.settled.timeout_origin,
            rate_max: self.settled.rate_max_origin,
            measure: Origin::Line(self.measure.line),
        }
    }
}

fn text_line(entry: &Section<'_>, reading: &Reading, name: &str) -> usize {
    entry.line_of(reading, name)
}

/// A measurement's own interval is a multiple of the device's, so that it falls on its instants; and
/// what is measured every so often is not forbidden by `rate_max`.
fn check_spans(reading: &mut Reading, settings: &Settings, entry_line: usize) {
    let interval = settings.settled.snmp.interval;
    let wanted = settings.measure.value.iter().map(|measure| measure.every.unwrap_or(interval));
    let shortest = wanted.min().unwrap_or(interval);
    let (second, rate_max) = (Nanos::SECOND.get(), settings.settled.snmp.rate_max);
    let needed = second.div_ceil(shortest.get().max(1));
    if u64::from(rate_max) < needed {
        let line = settings.settled.rate_max_origin.line().unwrap_or(entry_line);
        let text = format!(
            "{rate_max} requests a second are fewer than one every {shortest}, as is wanted; \
             allowed is at least {needed}, or a longer interval"
        );
        reading.note(line, "snmp.rate_max", text);
    }
    for measure in &settings.measure.value {
        if let Some(every) = measure.every
            && (every < interval || !every.get().is_multiple_of(interval.get()))
        {
            let text = format!(
                "`{}`: {every} is not a multiple of the device's interval of {interval}",
                measure.text
            );
            reading.note(measure.place.line, "measure", text);
        }
    }
}

fn read_measures(reading: &mut Reading, section: &Section<'_>) -> Option<Sourced<Vec<Measure>>> {
    let texts = section.texts(reading, "measure")?;
    let mut measures: Vec<Measure> = Vec::new();
    for text in texts.value {
        match Measure::parse(&text.value, Place { line: text.line }) {
            Ok(measure) => {
                if let Some(other) = measures.iter().find(|other| other.what == measure.what) {
                    let problem = format!(
                        "`{}` and `{}` (line {}) measure the same",
                        measure.text, other.text, other.place.line
                    );
                    reading.note(text.line, section.key("measure"), problem);
                }
                if let What::Object(name) = &measure.what
                    && let Err(problem) = reading.check_object(name)
                {
                    let problem = format!("`{}`: {problem}", measure.text);
                    reading.note(text.line, section.key("measure"), problem);
                }
                measures.push(measure);
            }
            Err(error) => reading.note(text.line, section.key("measure"), error.to_string()),
        }
    }
    Some(Sourced { value: measures, line: texts.line })
}

/// The unfolded texts of a key, each with its line.
fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
