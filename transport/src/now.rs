//! What time it is, as a core is told it.

use meikyo_units::{Nanos, WallTime};

/// An instant as a core is told it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// A clock that never goes back, for waits.
    pub monotonic: Nanos,
    /// The clock that people read, which may be set.
    pub wall: WallTime,
}
