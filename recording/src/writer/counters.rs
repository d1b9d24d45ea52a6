//! What a writer counts.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use meikyo_units::WallTime;

/// What a stream's writer did since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriterCounters {
    /// Rows handed to the kernel, and not in a file that was removed while it was written.
    pub rows_kept: u64,
    /// Octets handed to the kernel.
    pub bytes_kept: u64,
    /// Frames handed to the kernel.
    pub frames: u64,
    /// Writes to the log.
    pub writes: u64,
    /// Rows dropped, at the queue, because the system refused a write, or because the file that
    /// they were in was removed while it was written.
    pub rows_dropped: u64,
    /// Batches dropped at the full queue.
    pub batches_dropped: u64,
    /// Times the disk was asked for everything (`fdatasync`).
    pub syncs: u64,
    /// When the last of them returned.
    pub last_sync: Option<WallTime>,
    /// Octets that a sync has confirmed.
    pub bytes_synced: u64,
    /// Calls that the system refused.
    pub disk_errors: u64,
    /// Octets of torn tails cut when the stream was opened.
    pub torn_bytes_cut: u64,
    /// Segments compacted.
    pub compactions: u64,
    /// Rows in the Parquet files that compaction made, summaries apart.
    pub rows_compacted: u64,
    /// Octets of the Parquet files that compaction made, summaries apart.
    pub parquet_bytes: u64,
    /// Octets of the summaries that compaction made.
    pub summary_bytes: u64,
    /// CPU time of the writer thread in ns: encoding and the calls that hand rows to the kernel.
    pub write_cpu_ns: u64,
    /// CPU time of compaction in ns.
    pub compaction_cpu_ns: u64,
    /// Rows deleted because they were older than `keep`.
    pub rows_deleted: u64,
    /// Octets of the files deleted with them.
    pub bytes_deleted: u64,
    /// Incidents that nobody took in time.
    pub incidents_dropped: u64,
}

/// A counter that threads share.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, count: u64) {
        // Counters stand alone: no other memory is read on the strength of one.
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn set(&self, count: u64) {
        self.0.store(count, Ordering::Relaxed);
    }

    /// Takes back what turned out not to be.
    pub(super) fn subtract(&self, count: u64) {
        self.0.fetch_sub(count, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters where the threads of a writer keep them.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) rows_kept: Counter,
    pub(super) bytes_kept: Counter,
    pub(super) frames: Counter,
    pub(super) writes: Counter,
    pub(super) rows_dropped: Counter,
    pub(super) batches_dropped: Counter,
    pub(super) syncs: Counter,
    pub(super) last_sync: AtomicI64,
    pub(super) bytes_synced: Counter,
    pub(super) disk_errors: Counter,
    pub(super) torn_bytes_cut: Counter,
    pub(super) compactions: Counter,
    pub(super) rows_compacted: Counter,
    pub(super) parquet_bytes: Counter,
    pub(super) summary_bytes: Counter,
    pub(super) write_cpu_ns: Counter,
    pub(super) compaction_cpu_ns: Counter,
    pub(super) rows_deleted: Counter,
    pub(super) bytes_deleted: Counter,
    pub(super) incidents_dropped: Counter,
}

impl Counters {
    pub(super) fn snapshot(&self) -> WriterCounters {
        let last_sync = self.last_sync.load(Ordering::Relaxed);
        WriterCounters {
            rows_kept: self.rows_kept.get(),
            bytes_kept: self.bytes_kept.get(),
            frames: self.frames.get(),
            writes: self.writes.get(),
            rows_dropped: self.rows_dropped.get(),
            batches_dropped: self.batches_dropped.get(),
            syncs: self.syncs.get(),
            last_sync: (last_sync != 0).then(|| WallTime::from_nanos(last_sync)),
            bytes_synced: self.bytes_synced.get(),
            disk_errors: self.disk_errors.get(),
            torn_bytes_cut: self.torn_bytes_cut.get(),
            compactions: self.compactions.get(),
            rows_compacted: self.rows_compacted.get(),
            parquet_bytes: self.parquet_bytes.get(),
            summary_bytes: self.summary_bytes.get(),
            write_cpu_ns: self.write_cpu_ns.get(),
            compaction_cpu_ns: self.compaction_cpu_ns.get(),
            rows_deleted: self.rows_deleted.get(),
            bytes_deleted: self.bytes_deleted.get(),
            incidents_dropped: self.incidents_dropped.get(),
        }
    }
}
