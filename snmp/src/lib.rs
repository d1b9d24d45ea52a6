//! The SNMP engine: codec, collector, agents, freshness.
