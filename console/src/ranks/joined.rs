//! The ranks that this process has joined: a fact of the process, as its arguments are.

use std::sync::OnceLock;

use meikyo_sim::Ranks;

static JOINED: OnceLock<Ranks> = OnceLock::new();

/// The ranks that simulations run over.
pub fn joined() -> Ranks {
    JOINED.get().copied().unwrap_or(Ranks::ONE)
}

/// Notes the ranks that this process has joined; those that it joined first count.
pub(super) fn join(ranks: Ranks) -> Ranks {
    *JOINED.get_or_init(|| ranks)
}
