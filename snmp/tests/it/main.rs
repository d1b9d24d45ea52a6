//! The SNMP engine against real agents.
#![expect(clippy::disallowed_methods, reason = "tests start real programs")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

mod agent;
mod alerts;
mod bridge;
mod client;
mod codec;
mod farm;
mod freshness;
mod memory;
mod probe;
mod snmpd;
mod snmpd_names;
mod tables;
mod twin;
mod users;
