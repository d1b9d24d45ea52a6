//! The server: recordings over HTTP, live values over WebSocket, and the page.
//!
//! [`start`] opens the recordings and the door, and serves until it is told to stop, on threads of
//! its own: an asynchronous runtime for the conversations, blocking threads for files, and one
//! thread a running recording that follows its log. It reads what the collector wrote and never
//! speaks to it, so that no viewer, however slow, can delay a measurement.
//!
//! `docs/server.md` says how to serve; the document at `api/v1/openapi.json` describes every
//! address.

mod access;
mod aging;
mod alerts;
mod column_units;
mod counts;
mod errors;
mod export;
mod fabric;
mod flame;
mod health;
mod heat;
mod ingest;
mod inventory;
mod limits;
mod listen;
mod metrics;
mod notify;
mod onward;
mod openapi;
mod page;
mod parameters;
mod range;
mod room;
mod routes;
mod rows;
mod serve;
mod socket;
mod state;
mod states;
mod turns;
mod watching;
mod wire;

pub use access::{HostError, REQUESTS_PER_S, TokenError, hash_token, make_token, patterns_of};
pub use aging::AgingOptions;
pub use fabric::{FabricBody, FabricEndBody, FabricSwitchBody, FabricTrunkBody, FabricVlanBody};
pub use ingest::clusters::found as clusters_below;
pub use ingest::{Debuginfod, KeeperError};
pub use limits::Limits;
pub use listen::{Door, Tls};
pub use notify::{MailError, MailTarget, NotifyOptions, Recipient};
pub use onward::{Form, HttpTarget, OnwardOptions, TargetError};
pub use openapi::document as openapi_document;
pub use serve::{Options, Reloaded, Running, StartError, start};
