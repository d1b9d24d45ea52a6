//! The SNMP engine: codec, collector, agents, freshness.

pub mod agent;
pub mod ber;
pub mod client;
pub mod collector;
pub mod credentials;
pub mod farm;
pub mod freshen;
pub mod freshness;
pub mod message;
pub mod objects;
pub mod oid;
pub mod pdu;
pub mod plan;
pub mod poll;
pub mod probe;
pub mod resolve;
pub mod resolver;
mod socket;
pub mod survey;
#[expect(unsafe_code, reason = "priority and the discipline of the clock are system calls")]
pub mod system;
pub mod tables;
pub mod template;
pub mod twin;
pub mod usm;
pub mod value;

pub use ber::DecodeError;
pub use client::{Client, ClientOptions, RequestError};
pub use credentials::{Credentials, CredentialsError};
pub use message::Version;
pub use oid::{Oid, ParseOidError};
pub use pdu::{ErrorStatus, Pdu, PduType, VarbindIter};
pub use template::{RequestTemplate, Response, Security, peek_request_id, read_response};
pub use value::{Value, ValueRef};

/// The name of the stream that a collector writes into a recording.
pub const STREAM: &str = "snmp";
