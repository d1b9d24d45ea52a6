//! What a receiver asks its shell for.

use meikyo_recording::devices::Device;
use meikyo_recording::{PackedRows, TableSchema};

use super::place::Place;
use crate::wire::Code;

/// A session, by the number that the shell gave it.
pub type SessionId = u64;

/// A block that was handed to the shell to be stored.
pub type Ticket = u64;

/// What the shell is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Open a stream with these tables, anew if it is open; say so by [`Receiver::opened`](super::Receiver::opened).
    Open {
        /// Where it is.
        place: Place,
        /// Every table that a sender declared for it.
        tables: Vec<TableSchema>,
        /// The last block that was handed over before; later ones go to the stream as it is then.
        after: Ticket,
    },
    /// Store a block.
    Store {
        /// What it is called by when it is stored or lost.
        ticket: Ticket,
        /// The stream that it belongs to.
        place: Place,
        /// Rows with their origin, as they came.
        rows: PackedRows,
    },
    /// Put what is known of a cluster's devices beside its rows.
    Facts {
        /// Whose devices they are.
        cluster: String,
        /// Its devices, in place of those that were told before.
        devices: Vec<Device>,
    },
    /// Send octets.
    Send {
        /// The session that they are for.
        session: SessionId,
        /// What is sent.
        octets: Vec<u8>,
    },
    /// Close a session, once what is to be sent was sent.
    Close {
        /// The session that ends.
        session: SessionId,
        /// What its sender is told.
        code: Code,
    },
}
