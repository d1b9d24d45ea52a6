//! SNMP settings in layers: built in, the file's, the group's, the entry's. The nearer wins.

use meikyo_places::Origin;
use meikyo_units::Nanos;

use crate::origin::origin_of;
use crate::section::{Reading, Section, Sourced};
use crate::{Access, AuthProtocol, PrivProtocol, Secret, SnmpSettings};

/// Span between two readings unless the file says otherwise: the paper's.
const INTERVAL: Nanos = Nanos::from_millis(100);
const INTERVAL_RANGE: (Nanos, Nanos) = (Nanos::from_millis(1), Nanos::from_secs(3_600));
/// How long an answer is waited for unless the file says otherwise.
const TIMEOUT: Nanos = Nanos::from_secs(1);
const TIMEOUT_RANGE: (Nanos, Nanos) = (Nanos::from_millis(1), Nanos::from_secs(60));
/// Ten PDUs at an interval of 10 ms: enough for a switch, and a bound for one that was mistyped.
const RATE_MAX: u32 = 1_000;
/// RFC 3417, section 3.2.
pub(crate) const PORT: u16 = 161;

/// Version and credentials as far as one layer gives them.
#[derive(Debug, Clone, Default)]
pub(crate) struct AccessLayer {
    /// The line where the layer begins.
    line: usize,
    /// Something is wrong with it and was noted: what is missing is not noted on top of that.
    broken: bool,
    version: Option<Sourced<&'static str>>,
    community: Option<Sourced<Secret>>,
    user: Option<Sourced<String>>,
    auth: Option<Sourced<(AuthProtocol, Secret)>>,
    privacy: Option<Sourced<(PrivProtocol, Secret)>>,
}

/// All SNMP settings as far as one layer gives them.
#[derive(Debug, Clone, Default)]
pub(crate) struct SnmpLayer {
    access: AccessLayer,
    write: Option<AccessLayer>,
    port: Option<Sourced<u32>>,
    interval: Option<Sourced<Nanos>>,
    timeout: Option<Sourced<Nanos>>,
    rate_max: Option<Sourced<u32>>,
}

/// The settings of a device, and where each comes from.
#[derive(Debug, Clone)]
pub(crate) struct Settled {
    pub(crate) snmp: SnmpSettings,
    pub(crate) port: u16,
    pub(crate) version_origin: Origin,
    pub(crate) credentials_origin: Origin,
    pub(crate) write_origin: Origin,
    pub(crate) port_origin: Origin,
    pub(crate) interval_origin: Origin,
    pub(crate) timeout_origin: Origin,
    pub(crate) rate_max_origin: Origin,
}

impl AccessLayer {
    /// Reads one layer; `below` is what it lies on.
    fn read(reading: &mut Reading, section: &Section<'_>, below: &Self) -> Self {
        let own = Self {
            line: section.line,
            broken: false,
            version: section.word(reading, "version"),
            community: section.parsed(reading, "community", str::parse),
            user: section.parsed(reading, "user", check_user),
            auth: read_auth(reading, section),
            privacy: read_privacy(reading, section),
        };
        let unread_version = section.means("version") && own.version.is_none();
        let unread = unread_version
            || (section.means("community") && own.community.is_none())
            || (section.means("user") && own.user.is_none());
        let mut layer = own.over(below);
        layer.broken |= unread;
        let version = layer.version();
        let wrong = if version == "3" { &["community"][..] } else { &["user", "auth", "privacy"] };
        for name in wrong.iter().filter(|name| !unread_version && section.has(name)) {
            let text = if *name == "community" {
                "a community needs version = \"2c\" (or \"1\") beside it; without one the version \
                 is \"3\""
                    .to_owned()
            } else {
                format!("`{name}` is for version \"3\"; here the version is \"{version}\"")
            };
            section.note(reading, name, text);
            layer.broken = true;
        }
        if version == "3" && section.has("privacy") && !section.has("auth") && layer.auth.is_none()
        {
            section.note(reading, "privacy", "`privacy` needs `auth` beside it (RFC 3414)");
        }
        layer
    }

    /// This layer on another. A user brings its own keys: the keys of the user below are not mixed in.
    fn over(self, below: &Self) -> Self {
        let keys_below = if self.user.is_some() { &Self::default() } else { below };
        Self {
            line: self.line,
            broken: self.broken || below.broken,
            version: self.version.or_else(|| below.version.clone()),
            community: self.community.or_else(|| below.community.clone()),
            user: self.user.or_else(|| below.user.clone()),
            auth: self.auth.or_else(|| keys_below.auth.clone()),
            privacy: self.privacy.or_else(|| keys_below.privacy.clone()),
        }
    }

    /// The version; where none is written, the safe one.
    fn version(&self) -> &'static str {
        self.version.as_ref().map_or("3", |version| version.value)
    }

    /// The credentials, or the name of the key that is missing.
    fn settle(&self) -> Result<(Access, Origin), &'static str> {
        if self.version() == "3" {
            let user = self.user.clone().ok_or("user")?;
            let auth = self.auth.clone().map(|auth| auth.value);
            let privacy = self.privacy.clone().map(|privacy| privacy.value);
            return Ok((Access::V3 { user: user.value, auth, privacy }, Origin::Line(user.line)));
        }
        let community = self.community.clone().ok_or("community")?;
        let origin = Origin::Line(community.line);
        let community = community.value;
        let version_1 = self.version() == "1";
        let access = if version_1 { Access::V1 { community } } else { Access::V2c { community } };
        Ok((access, origin))
    }

    /// The line to blame for a missing credential: where the version was asked for, else the layer.
    fn line_to_blame(&self, otherwise: usize) -> usize {
        let layer = if self.line > 0 { self.line } else { otherwise };
        self.version.as_ref().map_or(layer, |version| version.line)
    }
}

/// RFC 3414, section 5: `usmUserName` has 1 to 32 octets. Quotes and line feeds would spoil the lines
/// of `snmpd.conf`.
fn check_user(name: &str) -> Result<String, &'static str> {
    let fits = name.len() <= 32 && !name.contains(|c: char| c.is_control() || c == '"');
    fits.then(|| name.to_owned()).ok_or("not a user; allowed are 1 to 32 bytes without quotes")
}

fn read_auth(
    reading: &mut Reading,
    section: &Section<'_>,
) -> Option<Sourced<(AuthProtocol, Secret)>> {
    let (protocol, password) = read_keys(reading, section, "auth")?;
    let protocol = protocol.value.parse().expect("the word was checked against the key's");
    Some(Sourced { value: (protocol, password.value), line: password.line })
}

fn read_privacy(
    reading: &mut Reading,
    section: &Section<'_>,
) -> Option<Sourced<(PrivProtocol, Secret)>> {
    let (protocol, password) = read_keys(reading, section, "privacy")?;
    let protocol = protocol.value.parse().expect("the word was checked against the key's");
    Some(Sourced { value: (protocol, password.value), line: password.line })
}

fn read_keys(
    reading: &mut Reading,
    section: &Section<'_>,
    name: &str,
) -> Option<(Sourced<&'static str>, Sourced<Secret>)> {
    let keys = section.section(reading, name)?;
    for key in ["protocol", "password"] {
        if !keys.has(key) {
            keys.note(reading, key, format!("missing; `{name}` has `protocol` and `password`"));
        }
    }
    Some((keys.word(reading, "protocol")?, keys.parsed(reading, "password", str::parse)?))
}

impl SnmpLayer {
    /// Reads the `snmp` section of `parent`, if it has one, as a layer on `below`.
    pub(crate) fn read(reading: &mut Reading, parent: &Section<'_>, below: &Self) -> Self {
        let Some(section) = parent.section(reading, "snmp") else {
            let mut layer = below.clone();
            layer.access.broken |= parent.means("snmp");
            return layer;
        };
        let access = AccessLayer::read(reading, &section, &below.access);
        let write = section.section(reading, "write").map(|write| {
            let plain = AccessLayer { version: access.version.clone(), ..AccessLayer::default() };
            AccessLayer::read(reading, &write, below.write.as_ref().unwrap_or(&plain))
        });
        Self {
            access,
            write: write.or_else(|| below.write.clone()),
            port: section.count(reading, "port").or_else(|| below.port.clone()),
            interval: read_span(reading, &section, "interval", INTERVAL_RANGE)
                .or_else(|| below.interval.clone()),
            timeout: read_span(reading, &section, "timeout", TIMEOUT_RANGE)
                .or_else(|| below.timeout.clone()),
            rate_max: section.count(reading, "rate_max").or_else(|| below.rate_max.clone()),
        }
    }

    /// Whether any layer has a section `snmp`.
    pub(crate) const fn is_stated(&self) -> bool {
        self.access.line > 0 || self.access.broken
    }

    /// The settings of a device that nobody asks.
    pub(crate) const fn unstated() -> Settled {
        Settled {
            snmp: SnmpSettings {
                access: Access::Unstated,
                write_access: None,
                interval: INTERVAL,
                timeout: TIMEOUT,
                rate_max: RATE_MAX,
            },
            port: PORT,
            version_origin: Origin::Default,
            credentials_origin: Origin::Default,
            write_origin: Origin::Default,
            port_origin: Origin::Default,
            interval_origin: Origin::Default,
            timeout_origin: Origin::Default,
            rate_max_origin: Origin::Default,
        }
    }

    /// The settings of a device whose entry begins at `line`; what is missing is noted.
    pub(crate) fn settle(&self, reading: &mut Reading, line: usize) -> Option<Settled> {
        let mut missing = |layer: &AccessLayer, section: &str, key: &str| {
            let version = layer.version();
            if layer.broken {
                return;
            }
            let how = if key == "user" {
                "give `user` with `auth` and `privacy`, or ask for version = \"2c\" with a \
                 `community`"
            } else {
                "give `community` as \"env:NAME\" or \"file:PATH\""
            };
            let text = format!("missing; version \"{version}\" needs it: {how}");
            reading.note(layer.line_to_blame(line), format!("{section}.{key}"), text);
        };
        let access = self.access.settle().map_err(|key| missing(&self.access, "snmp", key));
        let write = self
            .write
            .as_ref()
            .map(|layer| layer.settle().map_err(|key| missing(layer, "snmp.write", key)));
        let (access, credentials_origin) = access.ok()?;
        let (write_access, write_origin) = match write.transpose().ok()? {
            Some((access, origin)) => (Some(access), origin),
            None => (None, Origin::Default),
        };
        let port = self
            .port
            .as_ref()
            .map(|port| u16::try_from(port.value).expect("the list of keys limits it to 65,535"));
        Some(Settled {
            snmp: SnmpSettings {
                access,
                write_access,
                interval: self.interval.as_ref().map_or(INTERVAL, |interval| interval.value),
                timeout: self.timeout.as_ref().map_or(TIMEOUT, |timeout| timeout.value),
                rate_max: self.rate_max.as_ref().map_or(RATE_MAX, |rate| rate.value),
            },
            port: port.unwrap_or(PORT),
            version_origin: origin_of(self.access.version.as_ref()),
            credentials_origin,
            write_origin,
            port_origin: origin_of(self.port.as_ref()),
            interval_origin: origin_of(self.interval.as_ref()),
            timeout_origin: origin_of(self.timeout.as_ref()),
            rate_max_origin: origin_of(self.rate_max.as_ref()),
        })
    }
}

pub(crate) fn read_span(
    reading: &mut Reading,
    section: &Section<'_>,
    name: &str,
    (least, greatest): (Nanos, Nanos),
) -> Option<Sourced<Nanos>> {
    section.parsed(reading, name, |text| {
        let span: Nanos = text.parse().map_err(|error| format!("{error}"))?;
        if span < least || span > greatest {
            return Err(format!("{span} is out of range; allowed are {least} to {greatest}"));
        }
        Ok(span)
    })
}
