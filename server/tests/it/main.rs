//! The server as programs see it: real recordings, real HTTP over loopback, values compared with
//! what a scan of the recording gives.
#![expect(clippy::disallowed_methods, reason = "tests start real programs")]
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod access;
mod aging;
mod client;
mod damage;
mod debuginfod;
mod document;
mod influx;
mod limits;
mod live;
mod live_limits;
mod notify;
mod profiles;
mod prometheus;
mod ranges;
mod recorded;
mod reload;
mod rows;
mod senders;
mod siege;
mod siege_of_ingest;
mod tls;
