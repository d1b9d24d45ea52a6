//! Packed rows from afar: whatever table a host measures into reaches one recording, nothing twice,
//! and nothing that is missing untold.
//!
//! A [`Sender`] numbers blocks of packed rows and keeps each in its spool until the receiver says
//! that it is on its disk. A [`Receiver`] stores every number once, whatever is sent again after a
//! cut or a kill of either side. When the spool is full the oldest blocks go, and their numbers, rows
//! and span of time stand in the table [`transport_gaps`](gaps::transport_gaps) of the recording.
//!
//! Both are cores without IO: [`shell`] gives the sender a socket, and a thread where it is to have one, the crate
//! `server` the receiver an HTTP connection and a recording. `docs/transport.md` describes the octets,
//! and what is lost when.

mod clock;
pub mod gaps;
pub mod limits;
mod now;
mod receiver;
mod sender;
pub mod shell;
mod spool;
pub mod wire;

pub use gaps::Turn;
pub use now::Now;
pub use receiver::{
    OnDisk, Output, Permit, Place, Receiver, ReceiverCounts, SenderState, SessionId, Ticket,
};
pub use sender::{
    FactsError, OfferError, OpenSenderError, Sender, SenderOptions, SenderStatus, SessionError,
    Skipped,
};
pub use spool::{Directory, Files, SpoolCounts};
