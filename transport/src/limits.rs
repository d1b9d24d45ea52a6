//! Every limit of the transport, and what happens beyond it.

use meikyo_units::{Bytes, Nanos};

/// The longest block; the sender refuses a longer one when it is offered.
pub const BLOCK_BYTES_MAX: usize = 1 << 20;

/// The longest that is told of a block by its changes: what changes in no foreseeable way takes more
/// octets than the block itself.
pub const CHANGES_BYTES_MAX: usize = 2 * BLOCK_BYTES_MAX;

/// The longest other message; a session that announces a longer one is ended.
pub const CONTROL_BYTES_MAX: usize = 256 << 10;

/// Octets that a sender's name, streams and tables take in its greeting; the rest of the message is
/// for what the sender holds. A sender that declares more does not begin.
pub const DECLARED_BYTES_MAX: usize = CONTROL_BYTES_MAX - HOLDS_MAX * HELD_BYTES_MAX;

/// Octets that one life of one stream takes in a greeting: a name of 100 octets, three numbers of 20
/// digits, and what JSON puts around them.
const HELD_BYTES_MAX: usize = 256;

/// Streams of one sender; a session that declares more is refused.
pub const STREAMS_MAX: usize = 16;

/// Streams of a recording that rows are taken for; each has threads of its own. A session that
/// declares one more is refused.
pub const STREAMS_OF_RECORDING_MAX: usize = 64;

/// Tables of a stream, of all senders together; a session that declares more is refused.
pub const TABLES_MAX: usize = 64;

/// Clusters whose recordings a receiver writes; a sender of one more is refused.
pub const CLUSTERS_MAX: usize = 256;

/// Senders that a receiver tells people of, those among them that are gone.
pub const SENDERS_KNOWN_MAX: usize = 4_096;

/// Streams that the product writes by itself into the recording that senders without a cluster share;
/// a session that declares one for it is refused.
pub const OWN_STREAMS: [&str; 2] = ["snmp", "simulate"];

/// Lives and streams whose blocks a sender tells of when it greets; more are told of the next time.
pub const HOLDS_MAX: usize = 256;

/// Ranges of numbers in one answer, of all lives and streams together. What a welcome leaves out is
/// sent again and recognised; acknowledgements are split.
pub const RANGES_MAX: usize = 1_024;

/// Octets of what a sender says of its devices; of about 30,000 devices.
pub const FACTS_BYTES_MAX: usize = 4 << 20;

/// Octets of blocks of one sender that may be under way without an acknowledgement. The receiver
/// ends a session that sends more than twice that.
pub const WINDOW_BYTES: u64 = 8 << 20;

/// Gaps that are under way at once; more wait, and neighbours among them become one.
pub const GAPS_UNDER_WAY_MAX: usize = 8;

/// A block that was not sent for that long is caught up with beside newer ones.
pub const LATE_AFTER: Nanos = Nanos::from_secs(2);

/// How often a sender asks for the receiver's time: three times before silence ends a session.
pub const PING_EVERY: Nanos = Nanos::from_secs(4);

/// How often a collector that stands by for others makes blocks, whether anybody watches or not: an interval of one
/// that is killed is taken from another one within a second.
pub const STANDBY_PACE: Nanos = Nanos::from_millis(100);

/// How long a sender leaves unread what the receiver says, where nothing depends on it: a sender of blocks that come
/// more often than that does not wake up for each acknowledgement.
pub const ANSWERS_WITHIN: Nanos = Nanos::from_millis(1_500);

/// How long either side waits for anything to come before it ends the session.
pub const SILENCE_MAX: Nanos = Nanos::from_secs(15);

/// How long a sender waits before it connects again: the first time, and at most. The wait doubles
/// with each failure, and a random half of it is left out, so that a thousand senders do not come
/// back at once.
pub const RECONNECT_AFTER: (Nanos, Nanos) = (Nanos::from_millis(250), Nanos::from_secs(30));

/// Blocks that wait for the sender's thread; of more the numbers are lost, which is told as a gap.
pub const QUEUE_BLOCKS_MAX: usize = 1_024;

/// Rows that wait to be made blocks of; what finds no room is told as a gap.
pub const QUEUE_ROWS_MAX: usize = 1 << 19;

/// Octets that the sender's thread hands to its socket ahead of what the system takes.
pub const UNWRITTEN_BYTES_MAX: usize = 64 << 10;

/// How long a connection may take to be had, the answer to its upgrade included.
pub const CONNECT_MAX: Nanos = Nanos::from_secs(10);

/// Octets of the answer to an upgrade.
pub const ANSWER_BYTES_MAX: usize = 16 << 10;

/// Things that a receiver asked a sender for and nobody has looked at; who asks for more asks again.
pub const ASKED_MAX: usize = 1_024;

/// What a spool holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpoolLimits {
    /// Octets at most; the oldest whole blocks go first.
    pub bytes: Bytes,
    /// Blocks at most: each takes about 150 octets of memory, also where it lies on a disk.
    pub blocks: usize,
}

impl SpoolLimits {
    /// 256 MiB and 100,000 blocks.
    pub const STANDARD: Self = Self { bytes: Bytes::new(256 << 20), blocks: 100_000 };
}

/// The longest name of a sender, in octets.
pub const SENDER_BYTES_MAX: usize = 128;
