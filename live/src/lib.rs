//! Recordings as somebody looks at them, whoever that is: the page, a terminal, a script.
//!
//! The crate answers five questions about recordings and knows neither HTTP nor a runtime: a caller
//! brings the thread that may wait for files.
//!
//! - **What is there?** A [`Catalog`] opens recordings; an [`Opened`] one knows its tables by what
//!   they are for, its devices, and the numbers of its series, which stay the same as long as it is
//!   open.
//! - **What is new?** A [`Follower`] reads the end of a running recording's log on one thread, for
//!   all its viewers together. Each of them has a bounded [`Queue`] of [`Step`]s, in which counters
//!   have become rates. The follower waits for nobody: a viewer who is too slow loses the oldest
//!   steps, and how many is told.
//! - **What was?** [`range`] condenses a column to pixels, [`health`] and [`states`] say how well was
//!   measured, and [`replay`] hands the past out as steps again, at its own pace or faster.
//! - **How do others get it?** [`export`] writes rows as CSV or Parquet, [`values`] are what such
//!   formats are made of.
//! - **All of that in one hand:** a [`Watch`], for a face that draws by itself.
//!
//! ```
//! use meikyo_live::{Wanted, Watch};
//! use meikyo_recording::{Kind, StreamOptions, StreamWriter};
//! use meikyo_units::WallTime;
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
//! writer.close()?;
//!
//! let watch = Watch::open(dir.path(), &[Wanted { table: "load", columns: &["load_1min"] }])?;
//! let begin = WallTime::from_nanos(1_700_000_000_000_000_000);
//! let steps = watch.past(begin)?.read(begin + meikyo_units::Nanos::SECOND)?;
//! assert_eq!(steps[0].frames[0].values, [[0.25]]);
//! assert_eq!(watch.labels("load", 0), [["node001"]]);
//! # Ok(())
//! # }
//! ```

mod bins;
mod catalog;
pub mod columns;
mod csv;
mod drawable;
pub mod export;
mod follow;
mod frames;
mod freshness;
pub mod health;
pub mod line_protocol;
mod opened;
mod past;
mod queue;
pub mod range;
mod rates;
mod readings;
pub mod replay;
pub mod rules;
mod series;
pub mod staleness;
pub mod states;
mod stored;
pub mod values;
mod watch;
mod wish;

pub use bins::Bins;
pub use catalog::Catalog;
pub use csv::csv;
pub use drawable::{NoQuantity, drawable, label_names};
pub use follow::Follower;
pub use frames::{Event, Frame, Interval, Step};
pub use opened::{Device, FileProblem, Opened, Span};
pub use queue::Queue;
pub use series::{Labels, SeriesOfTable};
pub use stored::events_of;
pub use watch::{Live, Other, OtherColumn, Past, Wanted, Watch};
pub use wish::Wish;
