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
        "why: spool_full, queue_full, too_large, spool_damaged, restarted (number unknown), or ended (nothing was lost)";
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
