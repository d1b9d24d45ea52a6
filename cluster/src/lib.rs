//! The cluster file: hosts, switches, groups and what to measure.
//!
//! [`load()`] reads a `cluster.toml`, checks all of it, unfolds its ranges and applies its defaults.
//! What is wrong is told at once, each problem with its line, its key and what is allowed. The
//! reference of the file is `docs/cluster-file.md`.
//!
//! ```
//! let text = r#"
//! name = "presto"
//! measure = ["interface:eth0", "load", "disk:/ every 10s"]
//! snmp = { version = "2c", community = "env:MEIKYO_COMMUNITY" }
//!
//! [[hosts]]
//! name = "node[001-225]"
//! address = "10.0.0.[1-225]"
//! "#;
//! let cluster = meikyo_cluster::parse(text, "cluster.toml".as_ref())?;
//! assert_eq!(cluster.devices.len(), 225);
//! assert_eq!(cluster.devices[41].name, "node042");
//! assert_eq!(cluster.devices[41].address.to_string(), "10.0.0.42:161");
//! # Ok::<(), meikyo_cluster::LoadError>(())
//! ```
//!
//! This crate opens no socket and reads no clock. Secrets stay references ([`Secret`]) until
//! [`Secret::read`] is called.

mod address;
mod alert;
mod checkpoint;
mod diff;
mod fabric;
mod fold;
mod keys;
mod layer;
mod load;
mod load_error;
mod measure;
mod model;
mod origin;
mod protocol;
mod schema;
mod secret;
mod section;
mod snmpd_conf;

pub use alert::{
    ALERT_RULES_MAX, AlertRule, Condition, Level, LevelUnit, Side, Threshold, Watched,
};
pub use checkpoint::{Checkpoint, ParseProgramNetworkError, ProgramNetwork};
pub use diff::{Change, Difference, diff};
pub use fabric::{BundleProtocol, Fabric, Link, LinkEnd, Model, Routing, Stated, Tagging};
pub use fold::{UNFOLD_MAX, UnfoldError, fold, unfold};
pub use load::{
    DEVICES_MAX, ObjectCheck, Resolved, load, load_checked, load_resolved, parse, parse_resolved,
};
pub use load_error::LoadError;
pub use measure::ParseMeasureError;
pub use meikyo_places::{Origin, PROBLEMS_MAX, Problem, Problems};
pub use model::{
    Access, Cluster, Device, DeviceKind, MacAddress, Measure, ParseMacError, PartKind, Place,
    Secret, SnmpSettings, TableKeep, What,
};
pub use origin::Origins;
pub use protocol::{AuthProtocol, ParseProtocolError, PrivProtocol};
pub use schema::schema;
pub use secret::{ParseSecretError, SecretError};
pub use snmpd_conf::{AgentLines, agent_lines, device_agent_lines};
