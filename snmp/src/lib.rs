//! The SNMP engine: codec, collector, agents, freshness.

pub mod tables;
