//! The socket of a viewer: he says what he sees, and gets what is new of it.
//!
//! He sends `{"subscribe": {...}}` whenever his view changes. He gets, as text, `subscribed`,
//! `health` once an interval, `event`, `dropped`, `ended` and `error`; and as binary messages one
//! Arrow IPC schema and then record batches. A viewer who takes his messages too slowly loses the
//! oldest, is told how many, and goes on with the newest; nobody waits for him.

pub(crate) mod audience;
mod encode;
mod encoded;
pub(crate) mod messages;
mod pace;
mod view;
pub(crate) mod viewer;

/// Octets that are read from a viewer at once. The library clears as many whenever a socket is
/// looked at; its own 128 KiB for each of ten viewers would be as much as a core's caches hold.
pub(crate) const READ_BUFFER_BYTES: usize = 4 << 10;
