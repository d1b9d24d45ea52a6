//! What the receiver writes beside the rows that it was sent.

use meikyo_recording::{Origin, PackError, PackedRows, Packer, Source, TableSchema};
use meikyo_units::WallTime;

use crate::wire::{Gap, Offset, Reason};

meikyo_recording::table! {
    /// Rows that were made and will never come, by sender. `time` is the least time of the rows.
    pub transport_gaps: Readings, "transport_gaps", "rows from other hosts that were lost, counted",
        titled("Lost on the way");
    SENDER: Symbol, Label, "sender", "who sent";
    STREAM: Symbol, Label, "stream", "the sender's stream";
    REASON: Symbol, Label, "reason",
        "spool_full, queue_full, too_large, spool_damaged, restarted (uncounted), ended (nothing)";
    BOOT: u64, Detail, "boot", "the sender's life";
    FIRST: u64, Detail, "first", "number of the first block";
    LAST: u64, Detail, "last", "number of the last block; 2^64 - 1: the life is over";
    UNTIL_NS: i64, Detail, "until_ns", "the greatest time of the rows, ns since the epoch";
    BLOCKS: u64, Gauge, "blocks",
        "blocks that are missing; null when nobody knows";
    ROWS: u64, Gauge, "rows",
        "rows in them, at most: some may have come before they were given up; null when nobody knows";
}

meikyo_recording::table! {
    /// How the clocks of senders stand against that of the receiver, which is `time`.
    pub transport_clocks: Readings, "transport_clocks", "clocks of senders against the receiver's",
        titled("Clocks of senders");
    SENDER: Symbol, Label, "sender", "whose clock";
    OFFSET_NS: i64, Gauge, "offset_ns", "by how much the receiver's clock is ahead";
    ERROR_NS: u64, Gauge, "error_ns", "how far the truth can be from that, either way";
}

/// The tables that the receiver adds to every stream.
pub fn tables() -> Vec<TableSchema> {
    vec![transport_gaps::schema(), transport_clocks::schema()]
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
