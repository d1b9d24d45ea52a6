//! What a sender refuses, and why its sessions end.

use std::io;

use meikyo_recording::PackError;

use crate::limits::{BLOCK_BYTES_MAX, DECLARED_BYTES_MAX, FACTS_BYTES_MAX, SILENCE_MAX};
use crate::wire::{Code, VERSION, WireError};

/// Why a sender cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum OpenSenderError {
    /// The spool cannot be read.
    #[error("cannot read the spool")]
    Spool {
        /// What the system said.
        source: io::Error,
    },
    /// Its name, a stream or a table is none that a receiver takes.
    #[error("no receiver would take this sender: {text}")]
    Greeting {
        /// What a receiver would say.
        text: String,
    },
    /// Its tables do not fit a greeting.
    #[error(
        "the tables of a sender take {found} octets to tell, and {DECLARED_BYTES_MAX} are the most"
    )]
    Tables {
        /// How many they take.
        found: usize,
    },
}

/// Why rows were not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OfferError {
    /// The stream was not declared with that table.
    #[error("stream `{stream}` of the sender has no table `{table}`")]
    Undeclared {
        /// The stream that was named.
        stream: String,
        /// The table that it does not declare.
        table: String,
    },
    /// The block is too long.
    #[error("a block of {found} octets is longer than {BLOCK_BYTES_MAX}")]
    TooLarge {
        /// How long it is.
        found: usize,
    },
    /// The block cannot say where it comes from.
    #[error("a block cannot be numbered")]
    Origin {
        /// Why no origin could be written into the block.
        source: PackError,
    },
}

impl OfferError {
    /// Whether the block has a number nevertheless, which the receiver is told to be missing.
    pub const fn is_told(&self) -> bool {
        match self {
            Self::Undeclared { .. } => false,
            Self::TooLarge { .. } | Self::Origin { .. } => true,
        }
    }
}

/// Why a receiver cannot be told of devices.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FactsError {
    /// Only the recording of a cluster has devices.
    #[error("the sender measures no cluster")]
    NoCluster,
    /// They take more octets than a receiver takes.
    #[error("what is known of the devices takes {found} octets; {FACTS_BYTES_MAX} can be sent")]
    TooLarge {
        /// How many they take.
        found: usize,
    },
}

/// Why a session ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// What came is no message.
    #[error("the receiver sent something that cannot be understood")]
    Wire(#[from] WireError),
    /// The receiver ended the session.
    #[error("the receiver ended the session: {text}")]
    Refused {
        /// Why, for programs.
        code: Code,
        /// Why, in the receiver's words.
        text: String,
    },
    /// A message came that does not belong there.
    #[error("the receiver sent {0} where it does not belong")]
    Unexpected(&'static str),
    /// The receiver speaks another version.
    #[error("the receiver wants to speak version {found}, and this sender speaks {VERSION}")]
    Version {
        /// The version.
        found: u16,
    },
    /// Nothing came for too long.
    #[error("nothing came from the receiver for {SILENCE_MAX}")]
    Silent,
}
