//! What hosts and switches send each other, and themselves.

/// A message between two ranks: those of the same ranks and tag are numbered in the order of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "mpi", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Name {
    pub(super) to: u32,
    pub(super) from: u32,
    pub(super) tag: u32,
    pub(super) number: u32,
}

/// What a part of a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "mpi", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Kind {
    /// Data that nobody asked for.
    Eager,
    /// Says that there is a large message.
    Announcement,
    /// Asks for an announced message, and goes from its receiver to its sender.
    Request,
    /// Data that were asked for.
    Requested,
}

/// A frame on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "mpi", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Frame {
    pub(super) name: Name,
    /// What it is hashed onto cables by.
    pub(super) hash: u64,
    /// Data of the whole message.
    pub(super) total: u64,
    /// Data of this frame.
    pub(super) payload: u16,
    /// Lanes that it has gone along.
    pub(super) step: u8,
    pub(super) kind: Kind,
}

impl Frame {
    /// The rank that sends it, and the one that it is for.
    pub(super) fn ranks(&self) -> [u32; 2] {
        match self.kind {
            Kind::Request => [self.name.to, self.name.from],
            _ => [self.name.from, self.name.to],
        }
    }
}

/// What a device is told.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "mpi", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Signal {
    /// A frame has arrived whole over a lane.
    Frame { frame: Frame, lane: u32 },
    /// A port, by its place in the device, has sent a frame and has more.
    Free { port: u32 },
    /// Who receives from a lane stops its sender, or lets it go on.
    Pause { lane: u32, stop: bool },
    /// A frame of this host was lost, and its time-out has passed.
    Lost { frame: Frame },
    /// A rank of this host has computed.
    Computed { rank: u32 },
    /// The last data of a message have left.
    Left { rank: u32 },
    /// All of a message, or of what is said about it, is with the library of a rank.
    Told { name: Name, kind: Kind },
}
