//! The recording: an append log, Parquet tables, and reading both.
//!
//! An engine declares its tables ([`table!`]) and hands rows ([`Batch`]) to a [`StreamWriter`],
//! which appends them to a log at once and compacts the log to Parquet files in the background.
//! The crate knows no measurement: what columns mean is data.
//!
//! ```
//! use meikyo_recording::{Kind, StreamOptions, StreamWriter};
//!
//! meikyo_recording::table! {
//!     /// Load averages.
//!     pub load: Readings, "load", "load averages";
//!     DEVICE: Symbol, Label, "device", "name";
//!     LOAD_1MIN: f64, Gauge, "load_1min", "runnable tasks";
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let dir = tempfile::tempdir()?;
//! let (tables, options) = (vec![load::schema()], StreamOptions::COLLECTOR);
//! let mut writer = StreamWriter::open(dir.path(), Kind::Measured, "snmp", tables, options)?;
//! let device = writer.symbol("node001");
//! let mut batch = writer.batch(0);
//! batch.begin_row(1_700_000_000_000_000_000);
//! batch.put(load::DEVICE, device);
//! batch.put(load::LOAD_1MIN, 0.25);
//! writer.submit(batch);
//! let report = writer.close()?;
//! assert_eq!(report.counters.rows_kept, 1);
//! # Ok(())
//! # }
//! ```

pub mod alerts;
mod batch;
pub mod check;
pub mod compact;
pub mod control;
pub mod counter;
pub mod declared;
pub mod devices;
pub mod files;
pub mod format;
pub mod inventory;
pub mod layout;
pub mod log;
mod manifest;
pub mod origin;
mod packed;
pub mod parquet_file;
mod problem;
mod progress;
pub mod query;
pub mod rate;
pub mod read;
mod remembered;
pub mod retention;
pub mod schema;
pub mod segment;
pub mod series;
pub mod summary;
mod symbols;
mod system_calls;
pub mod tables;
pub mod unfinished;
mod unsynced;
pub mod views;
mod writer;

pub use batch::{Batch, Symbol};
pub use format::Kind;
pub use log::packed::delta::{DeltaDecoder, DeltaEncoder};
pub use origin::{Arrived, Origin, Received, Source};
pub use packed::{CodedReader, CodedRows, Gather, PackError, PackedRows, Packer, UnpackError};
pub use read::{ReadCost, ReadError, Recording, Scan, Selection};
pub use retention::Keep;
pub use schema::{Column, ColumnKind, Meaning, SchemaError, TableSchema};
pub use symbols::Symbols;
pub use system_calls::{lower_priority, room_bytes};
pub use writer::{
    CloseError, CloseReport, Incident, IncidentKind, Kept, OpenStreamError, SegmentsBy,
    StreamOptions, StreamWriter, Synced, UnknownTableError, Watermark, WhenFull, WhenRemoved,
    WriterCounters,
};
