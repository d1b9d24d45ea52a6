//! The cluster file: hosts, switches, groups and what to measure.

mod model;

pub use model::{
    Access, AuthProtocol, Cluster, Device, DeviceKind, Measure, Place, PrivProtocol, Secret,
    SnmpSettings, What,
};
