//! The cluster as the file describes it, with every range unfolded and every default applied.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use meikyo_units::Nanos;
use thiserror::Error;

use crate::alert::default_rules;
use crate::protocol::{AuthProtocol, PrivProtocol};
use crate::{AlertRule, Checkpoint, Fabric};

/// Everything that the cluster file says, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// The name of the cluster, for people.
    pub name: String,
    /// The file that it was read from.
    pub path: PathBuf,
    /// Every host and switch, in the order of the file.
    pub devices: Vec<Device>,
    /// How long the recording keeps readings; `None` keeps everything.
    pub keep: Option<Nanos>,
    /// Tables of the recording that are kept for another time, in the order of the file.
    pub keep_tables: Vec<TableKeep>,
    /// What the file says is alerted of, in its order; [`Self::rules`] is all that is.
    pub alerts: Vec<AlertRule>,
    /// Whether what is not written is alerted of as well.
    pub default_alerts: bool,
    /// How the switches are wired, if the file says it.
    pub fabric: Option<Fabric>,
    /// How programs are protected.
    pub checkpoint: Checkpoint,
}

impl Cluster {
    /// The directory that paths in the file are relative to.
    pub fn base(&self) -> &Path {
        self.path.parent().unwrap_or_else(|| Path::new(""))
    }

    /// Everything that is alerted of: the rules of the file, and behind them those that hold unwritten,
    /// as far as no rule of the file has the name.
    pub fn rules(&self) -> Vec<AlertRule> {
        let mut rules = self.alerts.clone();
        let is_written = |name: &str| self.alerts.iter().any(|own| own.name == name);
        let unwritten = default_rules().into_iter().filter(|rule| !is_written(&rule.name));
        rules.extend(unwritten.filter(|_| self.default_alerts));
        rules
    }
}

/// A host or a switch that answers SNMP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// The name, which no other device of the cluster has.
    pub name: String,
    /// Whether it is a host or a switch.
    pub kind: DeviceKind,
    /// The group (rack) that it belongs to.
    pub group: Option<String>,
    /// The address and UDP port where its agent listens.
    pub address: SocketAddr,
    /// Its Ethernet address, if the file gives it; of hosts only.
    pub mac: Option<MacAddress>,
    /// The name of its model, if the file gives it; of switches only.
    pub model: Option<String>,
    /// How its agent is spoken to.
    pub snmp: SnmpSettings,
    /// What is measured on it, in the order of the file.
    pub measure: Vec<Measure>,
    /// Where the device stands in the file.
    pub place: Place,
}

/// An Ethernet address (EUI-48).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress(pub [u8; 6]);

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// A text is no Ethernet address of one interface.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{0}` is not the Ethernet address of an interface; allowed are texts such as `02:00:00:00:00:07`"
)]
pub struct ParseMacError(String);

impl FromStr for MacAddress {
    type Err = ParseMacError;

    fn from_str(text: &str) -> Result<Self, ParseMacError> {
        let wrong = || ParseMacError(text.into());
        let mut octets = [0; 6];
        let mut parts = text.split(':');
        for octet in &mut octets {
            let part = parts.next().filter(|part| part.len() == 2).ok_or_else(wrong)?;
            *octet = u8::from_str_radix(part, 16).map_err(|_| wrong())?;
        }
        let group = octets[0] & 1 == 1;
        if parts.next().is_some() || group || octets == [0; 6] {
            Err(wrong())
        } else {
            Ok(Self(octets))
        }
    }
}

/// What a device is in the machine room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    /// A machine that runs programs.
    Host,
    /// An Ethernet switch, managed by SNMP.
    Switch,
}

/// A line of the cluster file, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// 1 for the first line.
    pub line: usize,
}

/// How long rows of one table of the recording are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableKeep {
    /// The table's name, or that of a summary: `interfaces`, `interfaces.summary`. Whether there is
    /// such a table is known to the engines that fill it.
    pub table: String,
    /// How long its rows are kept, at least an hour.
    pub keep: Nanos,
    /// Where the file says it.
    pub place: Place,
}

/// How an agent is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnmpSettings {
    /// The version of SNMP, and the credentials for reading.
    pub access: Access,
    /// Credentials for writing, used by `--freshen` only.
    pub write_access: Option<Access>,
    /// The span between two readings, unless a measure has its own.
    pub interval: Nanos,
    /// How long an answer is waited for.
    pub timeout: Nanos,
    /// Most requests per second that the device is sent.
    pub rate_max: u32,
}

/// A version of SNMP with the credentials that it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// The file says nothing: it only describes a fabric, and nobody asks the device.
    Unstated,
    /// SNMPv1 (RFC 1157).
    V1 {
        /// Reference to the community, which is sent in the clear.
        community: Secret,
    },
    /// SNMPv2c (RFC 1901).
    V2c {
        /// Reference to the community, which is sent in the clear.
        community: Secret,
    },
    /// SNMPv3 with the user-based security model (RFC 3414).
    V3 {
        /// The name of the user (`usmUserName`).
        user: String,
        /// Authentication; `None` is noAuthNoPriv.
        auth: Option<(AuthProtocol, Secret)>,
        /// How requests are encrypted, which needs authentication.
        privacy: Option<(PrivProtocol, Secret)>,
    },
}

impl Access {
    /// The version of SNMP as the cluster file writes it: `1`, `2c` or `3`; `none` where it says nothing.
    pub fn version(&self) -> &'static str {
        match self {
            Self::Unstated => "none",
            Self::V1 { .. } => "1",
            Self::V2c { .. } => "2c",
            Self::V3 { .. } => "3",
        }
    }
}

/// A reference to a secret; the secret itself never enters the model, a log or a recording.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Secret {
    /// The value of an environment variable: `env:NAME`.
    Env(String),
    /// The first line of a file: `file:PATH`, relative to the cluster file.
    File(PathBuf),
}

/// One thing to measure on a device, in a person's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// The table, interface, disk or object that is asked for.
    pub what: What,
    /// Only these columns of its table; empty means all.
    pub columns: Vec<String>,
    /// Own interval; `None` means the device's.
    pub every: Option<Nanos>,
    /// The words as they stand in the file.
    pub text: String,
    /// Where the words stand in the file.
    pub place: Place,
}

/// What can be measured on a device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// `interface:NAME`.
    Interface(String),
    /// `interfaces`: all of them, by name.
    Interfaces,
    /// `disk:PATH`.
    Disk(String),
    /// Load averages of one, five and fifteen minutes.
    Load,
    /// Time that processors spent, by kind of work.
    Cpu,
    /// Memory and swap space, used and free.
    Memory,
    /// `uptime`: `sysUpTime.0`, which every request carries anyway; alone it is the cheapest poll.
    Uptime,
    /// Parts of a device whose kind is declared as data, all of them or one by its name.
    Parts {
        /// What the device has several of.
        kind: &'static PartKind,
        /// The name of the one; `None` for all.
        name: Option<String>,
    },
    /// An OID in digits or a known object name with its instance; checked by the engine.
    Object(String),
}

/// What a device has several of, measured by name or all together. Adding a kind to
/// [`PartKind::ALL`] is all that the cluster file needs for a new table.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartKind {
    /// The word for all of them: `interfaces`.
    pub all: &'static str,
    /// The word for one: `interface`.
    pub one: &'static str,
    /// How one is written: `interface:NAME`.
    pub form: &'static str,
    /// The table of the recording.
    pub table: &'static str,
    /// The columns that can be chosen in parentheses, by the names of that table.
    pub columns: &'static [&'static str],
    /// The subtrees that an agent has to show for it, with their names.
    pub subtrees: &'static [(&'static str, &'static str)],
}
