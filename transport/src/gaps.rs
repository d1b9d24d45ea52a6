//! What the receiver writes beside the rows that it was sent.

use meikyo_recording::{Origin, PackError, PackedRows, Packer, Source, TableSchema};
use meikyo_units::WallTime;

use crate::wire::{Gap, Offset, Reason};

meikyo_recording::table! {
    /// Rows that were made and will never come, by sender. `time` is the least time of the rows.
    pub transport_gaps: Readings, "transport_gaps", "rows that other hosts recorded and that were lost before they arrived",
        titled("Lost in transit");
    SENDER: Symbol, Label, "sender", "host that recorded the rows";
    STREAM: Symbol, Label, "stream", "stream of the sender";
    REASON: Symbol, Label, "reason",
        "why: spool_full, queue_full, too_large, spool_damaged, restarted (number unknown), ended or spare (nothing was lost)";
    BOOT: u64, Detail, "boot", "run of the sender, which numbers its blocks anew";
    FIRST: u64, Detail, "first", "number of the first missing block";
    LAST: u64, Detail, "last", "number of the last missing block; 2^64 - 1 if the run is over";
    UNTIL_NS: i64, Detail, "until_ns", "latest time of the rows, since the epoch";
    BLOCKS: u64, Gauge, "blocks", "number of missing blocks; null if unknown";
    ROWS: u64, Gauge, "rows",
        "upper bound of the rows in them; null if unknown";
}

meikyo_recording::table! {
    /// How the clocks of senders stand against that of the receiver, which is `time`.
    pub transport_clocks: Readings, "transport_clocks", "offsets between the clocks of senders and of the receiver",
        titled("Clocks of senders");
    SENDER: Symbol, Label, "sender", "host whose clock it is";
    OFFSET_NS: i64, Gauge, "offset_ns", "how far the clock of the receiver is ahead";
    ERROR_NS: u64, Gauge, "error_ns", "bound of the error of the offset, in either direction";
}

meikyo_recording::table! {
    /// Of collectors that stand by for each other, whose rows were taken from when on. `time` is when that was
    /// decided, or told once more, by the receiver's clock.
    pub transport_turns: Readings, "transport_turns", "which of several collectors of the same devices the rows were taken from",
        titled("Active collectors");
    IDENTITY: Symbol, Label, "identity", "what the collectors are called together";
    ACTIVE: Symbol, Label, "active", "collector whose rows were taken";
    FROM_NS: i64, Detail, "from_ns", "least time of these rows, since the epoch; -2^63 for the first collector";
    UNTIL_NS: i64, Detail, "until_ns", "greatest time of these rows; 2^63 - 1 until the next row";
}

/// A span of time that was given to one of several collectors of the same devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// What the collectors are called together.
    pub identity: String,
    /// Whose rows are taken.
    pub sender: String,
    /// The least `time` of the rows, ns since the epoch; `i64::MIN` for everything before.
    pub from_ns: i64,
    /// The greatest one; `i64::MAX` until further notice.
    pub until_ns: i64,
}

/// The tables that the receiver adds to every stream.
pub fn tables() -> Vec<TableSchema> {
    vec![transport_gaps::schema(), transport_clocks::schema(), transport_turns::schema()]
}

/// A turn as a block.
pub(crate) fn turn_block(now: WallTime, turn: &Turn) -> Result<PackedRows, PackError> {
    let mut packer = Packer::new(transport_turns::schema());
    let [identity, active] = [&turn.identity, &turn.sender].map(|text| packer.symbol(text));
    let batch = packer.batch();
    batch.begin_row(now.as_nanos());
    batch.put(transport_turns::IDENTITY, identity);
    batch.put(transport_turns::ACTIVE, active);
    batch.put(transport_turns::FROM_NS, turn.from_ns);
    batch.put(transport_turns::UNTIL_NS, turn.until_ns);
    packer.pack()
}

/// A gap as a block that accounts for its numbers; `missing` of them were not there before.
pub(crate) fn gap_block(sender: &str, gap: &Gap, missing: u64) -> Result<PackedRows, PackError> {
    let mut packer = Packer::new(transport_gaps::schema());
    let [of, stream, reason] =
        [sender, &gap.stream, gap.reason.word()].map(|text| packer.symbol(text));
    let batch = packer.batch();
    batch.begin_row(gap.from_ns);
    batch.put(transport_gaps::SENDER, of);
    batch.put(transport_gaps::STREAM, stream);
    batch.put(transport_gaps::REASON, reason);
    batch.put(transport_gaps::BOOT, gap.boot);
    batch.put(transport_gaps::FIRST, gap.first);
    batch.put(transport_gaps::LAST, gap.last);
    batch.put(transport_gaps::UNTIL_NS, gap.until_ns);
    // Behind the end of a life there are no blocks that anybody could count.
    match (gap.last, gap.rows) {
        (u64::MAX, None) => {}
        (u64::MAX, Some(_)) => batch.put(transport_gaps::BLOCKS, 0),
        _ if gap.reason == Reason::Spare => batch.put(transport_gaps::BLOCKS, 0),
        _ => batch.put(transport_gaps::BLOCKS, missing),
    }
    if let Some(rows) = gap.rows {
        batch.put(transport_gaps::ROWS, rows);
    }
    packer.pack()?.with_origin(&origin_of(sender, gap))
}

/// What stands behind the name of a stream in the origin of a gap `restarted`; no stream's own name
/// has it. Nobody knows whether blocks with these numbers were made, so that they are not taken for
/// blocks that were received.
const GIVEN_UP: char = '?';

/// The numbers that a gap accounts for, and whose they are.
pub(crate) fn origin_of(sender: &str, gap: &Gap) -> Origin {
    let source = Source { sender: sender.into(), boot: gap.boot, stream: gap.stream.clone() };
    let source = if gap.reason == Reason::Restarted { given_up(&source) } else { source };
    Origin { source, first: gap.first, last: gap.last }
}

/// Under which source the numbers of a source are noted that only a gap `restarted` accounts for.
pub(crate) fn given_up(source: &Source) -> Source {
    Source { stream: format!("{}{GIVEN_UP}", source.stream), ..source.clone() }
}

/// Whether it is a source of [`given_up`].
pub(crate) fn is_given_up(source: &Source) -> bool {
    source.stream.ends_with(GIVEN_UP)
}

/// The source itself, also of one that is noted by [`given_up`].
pub(crate) fn plain(source: &Source) -> Source {
    Source { stream: source.stream.trim_end_matches(GIVEN_UP).into(), ..source.clone() }
}

/// A sender's clock as a block.
pub(crate) fn clock_block(
    sender: &str,
    now: WallTime,
    offset: Offset,
) -> Result<PackedRows, PackError> {
    let mut packer = Packer::new(transport_clocks::schema());
    let of = packer.symbol(sender);
    let batch = packer.batch();
    batch.begin_row(now.as_nanos());
    batch.put(transport_clocks::SENDER, of);
    batch.put(transport_clocks::OFFSET_NS, offset.offset_ns);
    batch.put(transport_clocks::ERROR_NS, offset.error_ns);
    packer.pack()
}
