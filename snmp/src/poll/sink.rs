//! Where the rows of a measurement go.

use meikyo_recording::{Batch, Incident, Kept, StreamWriter, Symbol, WriterCounters};

use crate::tables::Table;

/// Takes the rows of one poll core from [`super::Poller::flush`].
///
/// The core fills batches by itself and calls this once a batch, never once a row or value.
pub trait RowSink {
    /// Learns the text of a symbol. All symbols are defined before rows that hold them are
    /// submitted, in their order, without gaps.
    fn define(&mut self, symbol: Symbol, text: &str);

    /// An empty batch for `table`, with the buffers of an earlier one where there is one.
    fn batch(&mut self, table: Table) -> Batch;

    /// Takes rows.
    fn submit(&mut self, batch: Batch);

    /// Asks to be told when everything submitted before is kept, see [`RowSink::take_kept`].
    fn mark(&mut self, token: u64);

    /// The marks that came back since the last call, in their order.
    fn take_kept(&mut self) -> impl Iterator<Item = Kept>;
}

/// Where a collector's rows go: a sink that tells what became of them.
pub trait Outlet: RowSink + Send + 'static {
    /// What was kept and dropped so far.
    fn counters(&self) -> WriterCounters;

    /// What happened since the last call that a person should know.
    fn take_incidents(&mut self) -> Vec<Incident>;
}

/// A stream of a recording whose tables are [`crate::tables::schemas`], and which nobody else
/// writes to.
impl RowSink for StreamWriter {
    fn define(&mut self, symbol: Symbol, text: &str) {
        let own = self.symbol(text);
        assert_eq!(own, symbol, "`{text}`: only the poll core may intern texts of its stream");
    }

    fn batch(&mut self, table: Table) -> Batch {
        Self::batch(self, table.index())
    }

    fn submit(&mut self, batch: Batch) {
        Self::submit(self, batch);
    }

    fn mark(&mut self, token: u64) {
        Self::mark(self, token);
    }

    fn take_kept(&mut self) -> impl Iterator<Item = Kept> {
        Self::take_kept(self)
    }
}

impl Outlet for StreamWriter {
    fn counters(&self) -> WriterCounters {
        Self::counters(self)
    }

    fn take_incidents(&mut self) -> Vec<Incident> {
        Self::take_incidents(self)
    }
}
