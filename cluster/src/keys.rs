//! Every key that a cluster file may hold: the one list behind the parser's checks, the hints for
//! misspelt keys, the JSON schema and the reference page.

use crate::protocol::{AuthProtocol, PrivProtocol};

/// One key of a section.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    /// As written in the file.
    pub(crate) name: &'static str,
    /// What its value is.
    pub(crate) kind: Kind,
    /// What it is for, in one sentence.
    pub(crate) doc: &'static str,
}

/// What a value is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// Any text.
    Text,
    /// A name, possibly folded, or a list of them.
    Names,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A reference to a secret.
    Secret,
    /// A span of time with its unit.
    Span,
    /// A whole number in this range.
    Count(u32, u32),
    /// A number, with its unit in quotes where it has one.
    Level,
    /// true or false.
    Flag,
    /// A list of measurements.
    Measures,
    /// A section.
    Section(Keys),
    /// A list of sections: `[[name]]`.
    Sections(Keys),
    /// Sections by name: `[groups.rack1]`.
    Named(Keys),
}

/// The keys of one section.
pub(crate) type Keys = &'static [Key];

const fn key(name: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key { name, kind, doc }
}

pub(crate) const VERSIONS: &[&str] = &["1", "2c", "3"];
pub(crate) const AUTH_PROTOCOLS: &[&str] = AuthProtocol::WORDS;
pub(crate) const PRIVACY_PROTOCOLS: &[&str] = PrivProtocol::WORDS;

const AUTH: Keys = &[
    key("protocol", Kind::Word(AUTH_PROTOCOLS), "The hash that signs (RFC 3414, RFC 7860)."),
    key("password", Kind::Secret, "Reference to the authentication password."),
];

const PRIVACY: Keys = &[
    key("protocol", Kind::Word(PRIVACY_PROTOCOLS), "The cipher (RFC 3826)."),
    key("password", Kind::Secret, "Reference to the privacy password."),
];

const VERSION: Key = key(
    "version",
    Kind::Word(VERSIONS),
    "SNMP version; 3 unless written. 1 and 2c send everything in the clear and must be asked for.",
);
const COMMUNITY: Key =
    key("community", Kind::Secret, "Reference to the community, for versions 1 and 2c.");
const USER: Key = key("user", Kind::Text, "Name of the user, for version 3.");
const AUTH_KEY: Key =
    key("auth", Kind::Section(AUTH), "How requests are signed, for version 3; absent: not at all.");
const PRIVACY_KEY: Key = key(
    "privacy",
    Kind::Section(PRIVACY),
    "How requests are encrypted, for version 3 with `auth`; absent: not at all.",
);

const WRITE: Keys = &[VERSION, COMMUNITY, USER, AUTH_KEY, PRIVACY_KEY];

pub(crate) const INTERVAL_DOC: &str = "Span between two readings, 1ms to 1h; 100ms unless written. Readings are taken at multiples of \
     it on the clock.";

const SNMP: Keys = &[
    VERSION,
    COMMUNITY,
    USER,
    AUTH_KEY,
    PRIVACY_KEY,
    key("port", Kind::Count(1, 65_535), "UDP port of the agent; 161 unless written."),
    key("interval", Kind::Span, INTERVAL_DOC),
    key(
        "timeout",
        Kind::Span,
        "How long an answer is waited for, 1ms to 60s; 1s unless written. Later ones are strays.",
    ),
    key(
        "rate_max",
        Kind::Count(1, 1_000_000),
        "Most requests per second that one device is sent; 1000 unless written.",
    ),
    key(
        "write",
        Kind::Section(WRITE),
        "Credentials for writing; used by `meikyo measure --freshen` only.",
    ),
];

const SNMP_KEY: Key =
    key("snmp", Kind::Section(SNMP), "How the agents are spoken to; the nearer section wins.");
const MEASURE_KEY: Key = key(
    "measure",
    Kind::Measures,
    "What is measured: `KIND[:NAME][(column,column)] [every DURATION]`; the nearer list replaces \
     the farther one.",
);

const DEVICES: Keys = &[
    key("name", Kind::Names, "Name or folded names: `node[001-225]`."),
    key(
        "address",
        Kind::Names,
        "IP address or folded addresses, as many as names: `10.0.0.[1-225]`, `10.0.0.7:1610`, \
         `[fd00::[1-9]]:161`.",
    ),
    key("group", Kind::Text, "The group (rack) that they belong to."),
    SNMP_KEY,
    MEASURE_KEY,
];

const GROUP: Keys = &[
    key("members", Kind::Names, "Names or folded names of the hosts and switches in the group."),
    SNMP_KEY,
    MEASURE_KEY,
];

const RECORDING: Keys = &[key(
    "keep",
    Kind::Span,
    "How long readings are kept, at least 1h; everything for ever unless written.",
)];

const ALERTS: Keys = &[
    key("name", Kind::Text, "Name of the rule."),
    key(
        "value",
        Kind::Text,
        "The value: `KIND[:NAME][(column,column)]` with `*` in the name, as \
         `interface:eth*(out_octets)`.",
    ),
    key(
        "above",
        Kind::Level,
        "Raised above this level: `900Mbit/s`, `4GiB`, 12. Counters are compared as rates a second.",
    ),
    key("below", Kind::Level, "Raised below this level."),
    key(
        "clear",
        Kind::Level,
        "The level at which the alert is cleared; a tenth back from the other unless written.",
    ),
    key(
        "for",
        Kind::Span,
        "How long every reading has to agree before the alert is raised or cleared; the first one \
         is enough unless written.",
    ),
    key("silent", Kind::Span, "Raised when a device has not answered for longer than this."),
    key(
        "frozen",
        Kind::Flag,
        "true: raised when nothing of an agent's table moves any more, though the agent's uptime \
         does.",
    ),
    key(
        "devices",
        Kind::Names,
        "The devices that the rule is for, folded or with `*`; all unless written.",
    ),
];

/// The keys at the top of the file.
pub(crate) const FILE: Keys = &[
    key("name", Kind::Text, "Name of the cluster."),
    SNMP_KEY,
    MEASURE_KEY,
    key("hosts", Kind::Sections(DEVICES), "Machines that run programs."),
    key("switches", Kind::Sections(DEVICES), "Ethernet switches."),
    key("groups", Kind::Named(GROUP), "Groups of hosts and switches, usually racks."),
    key("alerts", Kind::Sections(ALERTS), "What is alerted of while a measurement runs."),
    key("recording", Kind::Section(RECORDING), "How the recording is kept."),
];

/// Keys of later versions of this file, refused with a message of their own.
pub(crate) const RESERVED: &[&str] = &["links", "fabric", "checkpoint", "spares"];
