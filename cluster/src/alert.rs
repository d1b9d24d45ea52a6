//! Alerts: rules about values, silent devices and frozen values.
//!
//! A rule says what is not as it should be. Whether it is so at a moment is the engine's to find
//! out; this module holds what the file says, with every level in one unit.

mod defaults;
mod level;
mod read;

use std::fmt;

use meikyo_units::Nanos;
use meikyo_units::glob::matches;

use crate::{Device, Place, What};

pub(crate) use defaults::default_rules;
pub use level::{Level, LevelUnit};
pub(crate) use read::read_rules;

/// Most rules of one cluster file: every one is compared with every device.
pub const ALERT_RULES_MAX: usize = 1_000;

/// The column that shares of a disk's size are of.
pub(crate) const DISK_SIZE: &str = "total_bytes";

/// A rule under which an alert is raised: one entry of `[[alerts]]`, or one that holds unwritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertRule {
    /// Unique name; it begins the text of the rule's events.
    pub name: String,
    /// What raises the alert, and what clears it.
    pub condition: Condition,
    /// Names of devices that it is for, or patterns ([`meikyo_units::glob`]); all devices when empty.
    pub devices: Vec<String>,
    /// Where it stands in the file; line 0 for a rule that holds unwritten.
    pub place: Place,
}

/// What a rule alerts of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// A value beyond a level.
    Threshold(Threshold),
    /// A device that has not answered for longer than this.
    Silent {
        /// How long it has not answered when the alert is raised.
        span: Nanos,
    },
    /// Values of which nothing moves any more, though the agent does.
    Frozen {
        /// Only these values; `None` for those that polling itself moves: interfaces, CPU time.
        watched: Option<Watched>,
    },
}

/// A level with hysteresis: raised beyond one, cleared at another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Threshold {
    /// The values that are held against the level.
    pub watched: Watched,
    /// On which side of the level values are not as they should be.
    pub side: Side,
    /// Beyond it the alert is raised.
    pub raise: Level,
    /// At it, or farther back, the alert is cleared.
    pub clear: Level,
    /// Whether a whole number that does not count is cleared at [`Self::raise`] instead: only the
    /// agent tells the type of an object, and a tenth back lies between two states.
    pub whole_at_raise: bool,
    /// How long every reading has to agree before the alert is raised or cleared.
    pub lasting: Nanos,
}

/// A side of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Values above the level are alerted of.
    Above,
    /// Values below the level are alerted of.
    Below,
}

impl Side {
    /// The word for it, which is also the key.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Above => "above",
            Self::Below => "below",
        }
    }
}

/// Values by the words of a measurement; its name may be a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    /// What is measured; the name of an interface, disk or object is a pattern.
    pub what: What,
    /// The columns; empty means all.
    pub columns: Vec<String>,
    /// The words as they stand in the file.
    pub text: String,
}

impl fmt::Display for Condition {
    /// For people: `load(load_1min) above 64, cleared at 57.6`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threshold(threshold) => {
                let Threshold { watched, side, raise, clear, whole_at_raise, lasting } = threshold;
                write!(f, "{} {} {raise}, cleared at {clear}", watched.text, side.word())?;
                if *whole_at_raise {
                    write!(f, ", or at {raise} if it does not count")?;
                }
                if *lasting > Nanos::ZERO { write!(f, ", for {lasting}") } else { Ok(()) }
            }
            Self::Silent { span } => write!(f, "no answer for more than {span}"),
            Self::Frozen { watched: None } => write!(f, "interfaces or CPU time frozen"),
            Self::Frozen { watched: Some(watched) } => write!(f, "{} frozen", watched.text),
        }
    }
}

impl Threshold {
    /// The level at which a value is cleared; `whole` says that it is a whole number that does not
    /// count.
    pub fn cleared_at(&self, whole: bool) -> &Level {
        if whole && self.whole_at_raise { &self.raise } else { &self.clear }
    }
}

impl Watched {
    /// The pattern for the name of an interface, disk or object; `None` where there are no names.
    pub fn pattern(&self) -> Option<&str> {
        match &self.what {
            What::Interface(name) | What::Disk(name) | What::Object(name) => Some(name),
            What::Parts { name: Some(name), .. } => Some(name),
            What::Interfaces | What::Parts { name: None, .. } => Some("*"),
            What::Load | What::Cpu | What::Memory | What::Uptime => None,
        }
    }

    /// Whether a column is among the watched.
    pub fn has_column(&self, column: &str) -> bool {
        self.columns.is_empty() || self.columns.iter().any(|own| own == column)
    }

    /// Whether something that is measured may give a watched value. Which interfaces there are is
    /// known only to the agent.
    fn may_be_in(&self, device: &Device) -> bool {
        self.may_give(device, |columns| {
            columns.is_empty() || columns.iter().any(|column| self.has_column(column))
        })
    }

    /// The same of a watched value together with the size of its disk.
    fn may_have_size_in(&self, device: &Device) -> bool {
        self.may_give(device, |columns| {
            columns.is_empty() || columns.iter().any(|column| column == DISK_SIZE)
        })
    }

    /// Whether the watched names are measured with columns that are as wanted.
    fn may_give(&self, device: &Device, wanted: impl Fn(&[String]) -> bool) -> bool {
        let pattern = self.pattern().unwrap_or("*");
        device.measure.iter().any(|measure| {
            let same = match (&measure.what, &self.what) {
                (What::Interface(name), What::Interface(_) | What::Interfaces)
                | (What::Disk(name), What::Disk(_))
                | (What::Object(name), What::Object(_)) => matches(pattern, name),
                (What::Interfaces, What::Interface(_) | What::Interfaces) => true,
                (What::Parts { kind, name }, What::Parts { kind: watched, .. }) => {
                    kind == watched && name.as_ref().is_none_or(|name| matches(pattern, name))
                }
                (measured, watched) => measured == watched,
            };
            same && wanted(&measure.columns)
        })
    }
}

impl AlertRule {
    /// Whether the rule is for a device of this name.
    pub fn is_for(&self, device: &str) -> bool {
        self.devices.is_empty() || self.devices.iter().any(|pattern| matches(pattern, device))
    }

    /// Whether it holds without standing in the file.
    pub fn is_default(&self) -> bool {
        self.place.line == 0
    }

    /// Equal except for the place in the file.
    pub fn means_the_same(&self, other: &Self) -> bool {
        self.name == other.name
            && self.condition == other.condition
            && self.devices == other.devices
    }
}
