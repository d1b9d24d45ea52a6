//! Every key that a cluster file may hold: the one list behind the parser's checks, the hints for
//! misspelt keys, the JSON schema and the reference page.

use crate::fabric::{BundleProtocol, Routing, Tagging};
use crate::protocol::{AuthProtocol, PrivProtocol};

/// One key of a section.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    /// As written in the file.
    pub(crate) name: &'static str,
    /// What values it takes.
    pub(crate) kind: Kind,
    /// What it is for, in one sentence.
    pub(crate) doc: &'static str,
}

/// What values a key takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// Any text of one line that is not empty.
    Text,
    /// A name, possibly folded, or a list of them.
    Names,
    /// A text, one of these.
    Word(&'static [&'static str]),
    /// A reference to a secret.
    Secret,
    /// A span of time with its unit.
    Span,
    /// A whole number in this range.
    Count(u32, u32),
    /// A number, with its unit in quotes where it has one.
    Level,
    /// A choice between true and false.
    Flag,
    /// A list of measurements, in the words of `measure`.
    Measures,
    /// A section with these keys.
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
        "How long an answer is waited for at most, 1ms to 60s; 1s unless written. It may be longer \
         than the interval: a lost packet is asked for again within its interval.",
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

const NAME_KEY: Key = key("name", Kind::Names, "Name or folded names: `node[001-225]`.");
const ADDRESS_KEY: Key = key(
    "address",
    Kind::Names,
    "IP address or folded addresses, as many as names: `10.0.0.[1-225]`, `10.0.0.7:1610`, \
     `[fd00::[1-9]]:161`.",
);
const GROUP_KEY: Key = key("group", Kind::Text, "The group (rack) that they belong to.");

const HOSTS: Keys = &[
    NAME_KEY,
    ADDRESS_KEY,
    GROUP_KEY,
    key(
        "mac",
        Kind::Names,
        "Ethernet address or folded addresses, as many as names: `02:00:00:00:00:[01-08]`; what \
         a host tags by.",
    ),
    SNMP_KEY,
    MEASURE_KEY,
];

const SWITCHES: Keys = &[
    NAME_KEY,
    ADDRESS_KEY,
    GROUP_KEY,
    key("model", Kind::Text, "The model, built in or from `fabric.models`."),
    SNMP_KEY,
    MEASURE_KEY,
];

const MODEL: Keys = &[
    key("like", Kind::Text, "The built-in model that it is like; what is not written is as there."),
    key("ports", Kind::Count(1, 4_096), "Its ports, 1 to this."),
    key("table_entries", Kind::Count(1, 16_777_216), "Addresses that its table holds."),
    key("vlans", Kind::Count(1, 4_094), "VLANs at the same time."),
    key("bundle_ports", Kind::Count(1, 64), "Most ports of one bundle."),
    key("multi_untagged", Kind::Flag, "Whether a port may be an untagged member of several VLANs."),
    key("shared_learning", Kind::Flag, "Whether an address has one entry for all VLANs (SVL)."),
    key("ageing_min", Kind::Span, "The shortest span after which an address can be forgotten."),
    key("ageing_max", Kind::Span, "The longest span after which an address is forgotten."),
    key("vlan_1_stays", Kind::Flag, "Whether ports stay in VLAN 1, whatever is set."),
];

const FABRIC: Keys = &[
    key(
        "topology",
        Kind::Text,
        "The topology by name, as `torus 4x2`; where it is missing, `[[links]]` say it.",
    ),
    key(
        "cables",
        Kind::Count(1, 64),
        "Cables of each trunk of a named topology; 1 unless written.",
    ),
    key(
        "hosts_per_switch",
        Kind::Count(1, 65_536),
        "Hosts on each switch of a named topology; all, dealt out evenly, unless written.",
    ),
    key("ports_per_host", Kind::Count(1, 16), "Ports of each host, bundled; 1 unless written."),
    key("routing", Kind::Word(Routing::WORDS), "How paths are chosen; auto unless written."),
    key(
        "tagging",
        Kind::Word(Tagging::WORDS),
        "Who chooses the VLAN of a frame: the switch port, unless written, or the sending host.",
    ),
    key("vlans", Kind::Text, "The VLANs that may be used, as `101-4093`."),
    key("management_vlan", Kind::Count(2, 4_094), "The VLAN in which the switches are managed."),
    key("manager", Kind::Text, "The host that manages the switches."),
    key(
        "spare",
        Kind::Flag,
        "true: VLANs for the failure of any one link are planned, too; false unless written.",
    ),
    key(
        "bundling",
        Kind::Word(BundleProtocol::WORDS),
        "How the ends of a bundle agree; lacp unless written.",
    ),
    key("flow_control", Kind::Flag, "Whether pause frames are used (802.3x); true unless written."),
    key(
        "ageing",
        Kind::Span,
        "After which span switches forget an address; as late as they can unless written.",
    ),
    key("rate", Kind::Text, "Rate of a port: `1Gbit/s`, which it is unless written."),
    key("model", Kind::Text, "The model of switches that name none."),
    key("models", Kind::Named(MODEL), "Models of switches that are not built in."),
];

const LINKS: Keys = &[
    key(
        "between",
        Kind::Names,
        "Both ends: [\"sw1\", \"sw2\"], [\"node[1-8]\", \"sw1:[1-8]\"], [\"sw1:45+46\", \
         \"sw2:45+46\"]; ports are given out where none are named.",
    ),
    key("cables", Kind::Count(1, 64), "Cables that are aggregated; 1 unless written."),
];

const GROUP: Keys = &[
    key("members", Kind::Names, "Names or folded names of the hosts and switches in the group."),
    SNMP_KEY,
    MEASURE_KEY,
];

const RECORDING: Keys = &[
    key(
        "keep",
        Kind::Span,
        "How long readings are kept, at least 1h; everything for ever unless written.",
    ),
    key(
        "tables",
        Kind::Named(RECORDING_TABLE),
        "What is kept otherwise, by table: `[recording.tables.interfaces]`; a summary is a table of \
         its own, `[recording.tables.\"interfaces.summary\"]`, and kept as long as its table unless \
         written.",
    ),
];

const CHECKPOINT: Keys = &[
    key(
        "spares",
        Kind::Names,
        "Hosts that stand ready, in the order in which they are used: `node[8-9]`; those that keep racks \
         apart go before others.",
    ),
    key(
        "network",
        Kind::Text,
        "A network of 256 addresses that nothing else uses, `10.77.0.0/24` unless written: programs \
         that are captured as they are have one of them on each host.",
    ),
];

const RECORDING_TABLE: Keys =
    &[key("keep", Kind::Span, "How long rows of the table are kept, at least 1h.")];

const ALERTS: Keys = &[
    key("name", Kind::Text, "Name of the rule."),
    key(
        "value",
        Kind::Text,
        "The value: `KIND[:NAME][(column,column)]` with `*` and `?` in the name, as \
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
        "The level at which the alert is cleared; a tenth back from the other unless written, for \
         states and other whole numbers the other itself.",
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
        "The devices that the rule is for, folded or with `*` and `?`; all unless written.",
    ),
];

/// The keys at the top of the file.
pub(crate) const FILE: Keys = &[
    key("name", Kind::Text, "Name of the cluster."),
    SNMP_KEY,
    MEASURE_KEY,
    key("hosts", Kind::Sections(HOSTS), "Machines that run programs."),
    key("switches", Kind::Sections(SWITCHES), "Ethernet switches."),
    key("groups", Kind::Named(GROUP), "Groups of hosts and switches, usually racks."),
    key("alerts", Kind::Sections(ALERTS), "What is alerted of while a measurement runs."),
    key(
        "default_alerts",
        Kind::Flag,
        "false: only what `[[alerts]]` says is alerted of. Else also silent devices, frozen values, disks \
         that are nearly full and interfaces with errors; a rule of the same name takes the place of one.",
    ),
    key("recording", Kind::Section(RECORDING), "How the recording is kept."),
    key(
        "checkpoint",
        Kind::Section(CHECKPOINT),
        "How programs are protected from the loss of hosts.",
    ),
    key("fabric", Kind::Section(FABRIC), "How the switches are wired and their VLANs are planned."),
    key("links", Kind::Sections(LINKS), "What is plugged into what."),
];
