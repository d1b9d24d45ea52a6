//! The SNMP engine against real agents.

mod client;
mod snmpd;
mod twin;
