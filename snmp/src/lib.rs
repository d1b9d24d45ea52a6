//! The SNMP engine: codec, collector, agents, freshness.

pub mod ber;
pub mod message;
pub mod oid;
pub mod pdu;
pub mod plan;
pub mod tables;
pub mod value;

pub use ber::DecodeError;
pub use message::Version;
pub use oid::{Oid, ParseOidError};
pub use pdu::{ErrorStatus, Pdu, PduType, VarbindIter};
pub use value::{Value, ValueRef};
