//! What hosts and switches send each other, and themselves.

/// A message between two ranks: those of the same ranks and tag are numbered in the order of sending.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
)]
pub(crate) struct Name {
    pub(crate) to: u32,
    pub(crate) from: u32,
    pub(crate) tag: u32,
    pub(crate) number: u32,
}

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Kind {
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

/// A frame on its way. Of whom it is follows from where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Frame {
    /// The hop that it is on, or that it takes next while it waits ([`Ways`](super::ways::Ways)).
    pub(crate) hop: u32,
    pub(crate) tag: u32,
    pub(crate) number: u32,
    /// Frames of its message; the largest number for as many and more.
    pub(crate) frames: u32,
    /// With TCP, which segment of its way it is; without, how many full frames of its message follow it
    /// without a gap (module `train`).
    pub(crate) segment: u32,
    /// With TCP, up to which segment everything of the other direction has arrived.
    pub(crate) arrived: u32,
    /// With TCP, a run of segments that arrived beyond that one: how far beyond it begins, and how many
    /// they are; none if there is no run, and no more than the numbers can say.
    pub(crate) run: [u16; 2],
    /// Data of this frame.
    pub(crate) payload: u16,
    /// With TCP, what its time stamps tell: [`SENT_AGAIN`], [`OF_SENT_AGAIN`], both or neither.
    pub(crate) stamps: u8,
    pub(crate) kind: Kind,
}

/// The segment was sent before.
pub(crate) const SENT_AGAIN: u8 = 1;
/// The first segment that is acknowledged had been sent before when it arrived.
pub(crate) const OF_SENT_AGAIN: u8 = 2;

impl Frame {
    /// A frame before the first hop of its way, without data and acknowledgement.
    pub(crate) fn without_data(hop: u32, [tag, number]: [u32; 2], kind: Kind) -> Self {
        Self {
            hop,
            tag,
            number,
            frames: 1,
            segment: 0,
            arrived: 0,
            run: [0, 0],
            payload: 0,
            stamps: 0,
            kind,
        }
    }

    /// Without TCP, the same with so many frames behind it.
    pub(crate) fn followed_by(self, frames: u32) -> Self {
        Self { segment: frames, ..self }
    }

    /// The run that arrived out of its turn, from and to; empty if there is none.
    pub(crate) fn run(&self) -> [u32; 2] {
        let [beyond, count] = self.run.map(u32::from);
        [self.arrived + beyond, self.arrived + beyond + count]
    }
}

/// What one end of a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Awaited {
    /// Acknowledgements of what it sent.
    Acknowledgement,
    /// More to acknowledge at once.
    Company,
}

/// What a device is told.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Signal {
    /// A frame has arrived whole.
    Frame { frame: Frame },
    /// The next frame of a train may have arrived by an input.
    Next { input: u32 },
    /// Of the train that comes by an input, or is about to, the last frame arrives at this instant.
    Cut { input: u32, last: u64 },
    /// Frames may have begun to leave; see [`Agenda`](super::agenda::Agenda).
    Look,
    /// Who receives from a port, by its place in the device, stops it, or lets it go on.
    Pause { port: u32, stop: bool },
    /// A frame of this host was lost, and its time-out has passed. Without TCP.
    Lost { hop: u32, tag: u32, number: u32, frames: u32, payload: u16, kind: Kind },
    /// An end of a connection, by its place in the host, may have waited long enough.
    Due { end: u32, awaited: Awaited },
    /// A rank of this host has computed.
    Computed { rank: u32 },
    /// The last data of a message have left.
    Left { name: Name },
    /// All of a message, or of what is said about it, is with the library of a rank.
    Told { name: Name, kind: Kind },
}

/// Of what happens to a device at one instant, frames count first, in the order of their inputs, whoever told
/// of them first; then pause frames, then what leaves, and at last ranks go on that waited for their look.
pub(crate) const TURN_OF_PAUSE: u32 = 1 << 16;
pub(crate) const TURN_OF_LEAVING: u32 = 1 << 17;
pub(crate) const TURN_OF_GOING_ON: u32 = 1 << 18;

/// With the kernel's own 32 bytes, an event of frames is a line of the cache.
const _: () = assert!(size_of::<Signal>() <= 32);
