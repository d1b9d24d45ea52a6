//! What of the wanted an agent does not have, and what to do about it.

use std::fmt;

use meikyo_cluster::{Device, Measure};

use crate::objects::LookupError;

/// Names of what the agent has instead that a message lists at most.
const NAMES_MAX: usize = 12;

/// Something that is wanted of a device and cannot be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Name of the device.
    pub device: String,
    /// The measurement as it stands in the cluster file; `None` for what every request needs.
    pub measure: Option<String>,
    /// Its line in the cluster file; 1 for the first.
    pub line: usize,
    /// Why it cannot be measured.
    pub fault: Fault,
    /// What the agent has of the same kind.
    pub has: Vec<String>,
    /// The lines that net-snmp's `snmpd.conf` lacks.
    pub add: Vec<String>,
}

/// What is wrong with a measurement on a device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Nothing of the kind is visible.
    #[error("the agent shows no {what}")]
    Hidden {
        /// For example `interfaces`.
        what: String,
    },
    /// There is no interface of the name.
    #[error("the agent has no interface `{name}`")]
    NoInterface {
        /// The interface that the cluster file asks for.
        name: String,
    },
    /// Several interfaces have the name, and would be mixed up.
    #[error("{count} interfaces are called `{name}`, so none of them is measured by that name")]
    Ambiguous {
        /// The interface that the cluster file asks for.
        name: String,
        /// Interfaces that share the name.
        count: usize,
    },
    /// There is no disk of the path.
    #[error("the agent has no disk `{path}`")]
    NoDisk {
        /// The mount point that the cluster file asks for.
        path: String,
    },
    /// There is no such part of the name.
    #[error("the agent has no {noun} `{name}`")]
    NoPart {
        /// What it would be: `sensor`.
        noun: &'static str,
        /// The sensor that the cluster file asks for.
        name: String,
    },
    /// A column that was asked for by name is not there.
    #[error("the agent has no `{column}` among its {of}")]
    NoColumn {
        /// The column of which the agent has no object.
        column: String,
        /// What it would be of.
        of: String,
    },
    /// The object instance is not there.
    #[error("the agent has no object `{object}`")]
    NoObject {
        /// As written, or the OID.
        object: String,
    },
    /// What is written names no object instance.
    #[error("{source}")]
    UnknownObject {
        /// What about it is unknown, and what was probably meant.
        source: LookupError,
    },
}

impl Problem {
    pub(super) fn new(device: &Device, measure: &Measure, fault: Fault, has: Vec<String>) -> Self {
        Self {
            device: device.name.clone(),
            measure: Some(measure.text.clone()),
            line: measure.place.line,
            fault,
            has,
            add: Vec::new(),
        }
    }

    /// Nothing is visible below `subtrees`; the lines are added to the view of Debian's own
    /// `snmpd.conf`.
    pub(super) fn hidden(
        device: &Device,
        measure: Option<&Measure>,
        what: &str,
        subtrees: &[&[u32]],
    ) -> Self {
        Self {
            device: device.name.clone(),
            measure: measure.map(|measure| measure.text.clone()),
            line: measure.map_or(device.place.line, |measure| measure.place.line),
            fault: Fault::Hidden { what: what.to_owned() },
            has: Vec::new(),
            add: subtrees.iter().map(|subtree| view_line(subtree)).collect(),
        }
    }
}

/// A line that makes a subtree visible in the view `systemonly`, which Debian's `snmpd.conf` gives
/// to everybody.
pub(crate) fn view_line(subtree: &[u32]) -> String {
    let arcs: Vec<_> = subtree.iter().map(u32::to_string).collect();
    format!("view systemonly included .{}", arcs.join("."))
}

impl fmt::Display for Problem {
    /// One line: what is wrong, where it was wanted, and what the agent has instead.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.device, self.fault)?;
        if let Some(measure) = &self.measure {
            write!(f, " (`{measure}`, line {})", self.line)?;
        }
        if !self.has.is_empty() {
            let shown: Vec<_> =
                self.has.iter().take(NAMES_MAX).map(|name| format!("`{name}`")).collect();
            write!(f, "; it has {}", shown.join(", "))?;
            if self.has.len() > NAMES_MAX {
                write!(f, " and {} more", self.has.len() - NAMES_MAX)?;
            }
        }
        Ok(())
    }
}
