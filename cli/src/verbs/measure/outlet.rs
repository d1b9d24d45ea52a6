//! Where the rows of a measurement go: into its recording, to a receiver from afar, or both.

use meikyo_recording::{Batch, CloseError, Incident, Kept, StreamWriter, Symbol, WriterCounters};
use meikyo_snmp::poll::{self, RowSink};
use meikyo_snmp::tables::{self, Table};
use meikyo_transport::shell::Forward;
use meikyo_units::WallTime;

/// Takes the collector's rows; never waits.
#[derive(Debug)]
pub(super) struct Outlet {
    /// The recording's stream; what is sent gets copies of its rows.
    writer: Option<StreamWriter>,
    forward: Option<Forward>,
    alone: Alone,
}

/// What a writer would know, where there is none.
#[derive(Debug, Default)]
struct Alone {
    free: Vec<Batch>,
    kept: Vec<Kept>,
    counters: WriterCounters,
    lost_rows: u64,
}

impl Outlet {
    pub(super) fn new(writer: Option<StreamWriter>, forward: Option<Forward>) -> Self {
        Self { writer, forward, alone: Alone::default() }
    }

    /// Closes the recording; its last counters, and what is left to be sent.
    pub(super) fn close(self) -> Result<(WriterCounters, Option<Forward>), CloseError> {
        let counters = match self.writer {
            Some(writer) => writer.close()?.counters,
            None => self.alone.counters,
        };
        Ok((counters, self.forward))
    }
}

impl RowSink for Outlet {
    fn define(&mut self, symbol: Symbol, text: &str) {
        if let Some(forward) = &mut self.forward {
            forward.define(symbol, text);
        }
        if let Some(writer) = &mut self.writer {
            RowSink::define(writer, symbol, text);
        }
    }

    fn batch(&mut self, table: Table) -> Batch {
        if let Some(writer) = &mut self.writer {
            return RowSink::batch(writer, table);
        }
        let free = &mut self.alone.free;
        let found = free.iter().position(|batch| batch.table() == table.index());
        found.map_or_else(
            || Batch::new(table.index(), tables::schema(table)),
            |at| free.swap_remove(at),
        )
    }

    fn submit(&mut self, mut batch: Batch) {
        let has_room = self.forward.as_ref().is_none_or(|forward| forward.submit(&batch));
        if let Some(writer) = &mut self.writer {
            return writer.submit(batch);
        }
        let rows = batch.rows() as u64;
        let counters = &mut self.alone.counters;
        if has_room {
            counters.rows_kept += rows;
        } else {
            counters.rows_dropped += rows;
            counters.batches_dropped += 1;
            self.alone.lost_rows += rows;
        }
        batch.clear();
        self.alone.free.push(batch);
    }

    fn mark(&mut self, token: u64) {
        match &mut self.writer {
            Some(writer) => writer.mark(token),
            None => {
                // Without a recording, rows are kept when they are on their way.
                let lost_rows = std::mem::take(&mut self.alone.lost_rows);
                let at = WallTime::now();
                self.alone.kept.push(Kept { token, at, sequence: 0, lost_rows });
            }
        }
    }

    fn take_kept(&mut self) -> impl Iterator<Item = Kept> {
        let of_writer = self.writer.iter_mut().flat_map(StreamWriter::take_kept);
        of_writer.chain(self.alone.kept.drain(..))
    }
}

impl poll::Outlet for Outlet {
    fn counters(&self) -> WriterCounters {
        self.writer.as_ref().map_or(self.alone.counters, StreamWriter::counters)
    }

    fn take_incidents(&mut self) -> Vec<Incident> {
        self.writer.as_mut().map(StreamWriter::take_incidents).unwrap_or_default()
    }
}
