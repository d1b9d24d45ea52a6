//! What hosts and switches send each other, and themselves.

/// A message between two ranks: those of the same ranks and tag are numbered in the order of sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "mpi", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Name {
    pub(super) to: u32,
    pub(super) from: u32,
    pub(super) tag: u32,
    pub(super) number: u32,
}

/// What a frame is for.
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
    /// With TCP, a part of a message that is not its last one, which has the kind of the message.
    Part,
    /// With TCP, nothing but an acknowledgement.
    Acknowledgement,
}

/// A frame on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "mpi", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Frame {
    pub(super) name: Name,
    /// Data of the whole message.
    pub(super) total: u64,
    /// By which of the program's ways it goes.
    pub(super) way: u32,
    /// With TCP, which segment of its way it is.
    pub(super) segment: u32,
    /// With TCP, up to which segment everything of the other direction has arrived.
    pub(super) arrived: u32,
    /// With TCP, a run of segments that arrived beyond that one, from and to; empty if there is none.
    pub(super) run: [u32; 2],
    /// Data of this frame.
    pub(super) payload: u16,
    /// Lanes that it has gone along.
    pub(super) step: u8,
    pub(super) kind: Kind,
}

impl Frame {
    /// A frame at the beginning of its way, without data and acknowledgement.
    pub(super) fn without_data(name: Name, kind: Kind, way: u32) -> Self {
        Self { name, total: 0, way, segment: 0, arrived: 0, run: [0, 0], payload: 0, step: 0, kind }
    }
}

/// What one end of a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "mpi", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Awaited {
    /// Acknowledgements of what it sent.
    Acknowledgement,
    /// More to acknowledge at once.
    Company,
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
    /// An end of a connection, by its place in the host, may have waited long enough.
    Due { end: u32, awaited: Awaited },
    /// A rank of this host has computed.
    Computed { rank: u32 },
    /// The last data of a message have left.
    Left { name: Name },
    /// All of a message, or of what is said about it, is with the library of a rank.
    Told { name: Name, kind: Kind },
}
