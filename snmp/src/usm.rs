//! The user-based security model of SNMPv3 (RFC 3414, RFC 3826, RFC 7860).

/// The time of an SNMP engine (RFC 3414, 2.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineTime {
    /// The engine's id, 5 to 32 octets.
    pub engine_id: Vec<u8>,
    /// How often it was started.
    pub boots: u32,
    /// Seconds since it was started last.
    pub time: u32,
}
