//! What members say to each other.

use serde::{Deserialize, Serialize};

use crate::charter::{Charter, Generation, Incarnation, Reached};
use crate::recovery::Prepared;
use crate::register::Ballot;

/// Longest message: a charter of 64 hosts with its commits takes less than 8 KiB.
pub const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// Longest reason that a host gives.
pub const REASON_BYTES_MAX: usize = 500;

/// Octets that are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} octets are no message of a member")]
pub struct MessageError(usize);

/// What one host tells another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The sender's place.
    pub from: usize,
    /// Who stands there.
    pub incarnation: Incarnation,
    /// The life of its daemon.
    pub life: u64,
    /// The group that it stands in; zero as long as it stands in none.
    pub group: u64,
    /// The membership version that it knows.
    pub version: u64,
    /// The ballot of the newest charter that it knows to hold.
    pub decided: Ballot,
    /// What it says.
    pub body: Body,
}

impl Message {
    /// As octets.
    ///
    /// # Panics
    /// Never: what a message is made of can be written to memory.
    pub fn octets(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("numbers and lists of numbers can be written")
    }

    /// Reads a message.
    ///
    /// # Errors
    /// When the octets are none, or more than [`MESSAGE_BYTES_MAX`].
    pub fn read(octets: &[u8]) -> Result<Self, MessageError> {
        let refused = MessageError(octets.len());
        if octets.len() > MESSAGE_BYTES_MAX {
            return Err(refused);
        }
        let (message, rest) = postcard::take_from_bytes(octets).map_err(|_| refused)?;
        if rest.is_empty() { Ok(message) } else { Err(refused) }
    }
}

/// What is said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Body {
    /// Are you there? `by_way` is who wants to know, when that is not the sender.
    Ping {
        /// Who wants to know.
        by_way: Option<usize>,
    },
    /// I am.
    Pong {
        /// Who wanted to know.
        by_way: Option<usize>,
    },
    /// Ask `target` whether it is there.
    PingFor {
        /// Who is to be asked.
        target: usize,
    },
    /// `target` has answered me.
    Vouch {
        /// Who has answered.
        target: usize,
    },
    /// Promise to listen to no lower ballot than this.
    Promise(Ballot),
    /// I have, and accepted this last.
    Promised {
        /// What is promised.
        ballot: Ballot,
        /// The ballot of what was accepted.
        accepted: Ballot,
        /// What was accepted.
        charter: Charter,
    },
    /// Accept this charter, proposed with this ballot.
    Accept(Ballot, Charter),
    /// I have.
    Accepted(Ballot),
    /// I have promised a higher one.
    Refused {
        /// What was asked.
        ballot: Ballot,
        /// The ballot that it listens to instead.
        promised: Ballot,
    },
    /// This holds.
    Decided(Ballot, Charter),
    /// Take the snapshot of a generation.
    Snapshot {
        /// The generation that was agreed to begin.
        generation: Generation,
        /// How far the program has come.
        reached: Reached,
    },
    /// I have, and my image has so many octets.
    Snapped {
        /// The generation that the snapshot is for.
        generation: Generation,
        /// Octets.
        len: u64,
        /// The newest committed generation, if it is whole on my disk: I can tell what changed since.
        base: Option<Generation>,
    },
    /// Write your image and parity.
    Write {
        /// The generation whose snapshots are all taken.
        generation: Generation,
        /// Octets of the image of each host.
        lens: Vec<u64>,
        /// The generation that all make it of, by what changed since; else it is made of the images alone.
        base: Option<Generation>,
    },
    /// It is on my disk.
    Prepared {
        /// The generation that is whole on this disk.
        generation: Generation,
        /// The checksum of my manifest.
        manifest: u32,
    },
    /// I cannot write my part of it.
    Failed {
        /// The generation that this host cannot write.
        generation: Generation,
        /// Why, for a person: at most [`REASON_BYTES_MAX`].
        reason: String,
    },
    /// What have you of this generation?
    Ask(Generation),
    /// This is what I have of it.
    Have {
        /// The generation that was asked about.
        generation: Generation,
        /// What is on my disk, if it is whole.
        prepared: Option<Prepared>,
    },
    /// I was told to found the group, and have nothing yet.
    Found,
    /// It is founded, and this is what I voted for last.
    Founded(Charter),
    /// What do you remember, and what have you? The number tells one question from the next.
    Survey(u64),
    /// This is what I remember and have.
    Surveyed {
        /// The number of the question.
        number: u64,
        /// The charter that this host voted for last.
        charter: Option<Charter>,
        /// What is whole on its disk.
        prepared: Vec<(Generation, Prepared)>,
    },
}
