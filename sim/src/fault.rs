//! What a model may not do, and what is said then.

use meikyo_units::{Nanos, SimTime};

use crate::key::{EventKey, LpId};

/// What went wrong in one event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "mpi", derive(serde::Serialize, serde::Deserialize))]
pub enum Problem {
    /// An event for an LP that does not exist.
    #[error("it sends to LP {destination}, and the model has {count} LPs (0 to {})", count - 1)]
    UnknownLp {
        /// Where it should go.
        destination: LpId,
        /// How many LPs there are.
        count: u32,
    },
    /// An event outside the declared links.
    #[error(
        "it sends to LP {destination} of `{to}`, and no link from `{from}` to `{to}` is declared"
    )]
    NoLink {
        /// Where it should go.
        destination: LpId,
        /// The group of the sender.
        from: String,
        /// The group of the destination.
        to: String,
    },
    /// An event earlier than the link permits.
    #[error(
        "it sends to LP {destination} after {delay}, and the link from `{from}` to `{to}` has a least delay of {least}"
    )]
    TooSoon {
        /// Where it should go.
        destination: LpId,
        /// The delay asked for.
        delay: Nanos,
        /// The declared least delay.
        least: Nanos,
        /// The group of the sender.
        from: String,
        /// The group of the destination.
        to: String,
    },
    /// A chain of events without delay that does not end.
    #[error(
        "{steps} events without delay followed each other in this instant, the last of them sent by LP {source_lp} of `{from}` to LP {destination} of `{to}`"
    )]
    Endless {
        /// How long the chain is.
        steps: u32,
        /// Who sent the last one.
        source_lp: LpId,
        /// The group of the sender.
        from: String,
        /// Where it should go.
        destination: LpId,
        /// The group of the destination.
        to: String,
    },
    /// A statistic of another group.
    #[error("it tallies `{statistic}`, which belongs to the LPs of `{group}`")]
    ForeignStatistic {
        /// The statistic's name.
        statistic: String,
        /// Whose it is.
        group: String,
    },
    /// The handler panicked.
    #[error("its handler panicked: {message}")]
    Panicked {
        /// What it said.
        message: String,
    },
    /// Check mode: the state after taking the event back differs from the one before it.
    #[error("a change escapes the undo log: {difference}")]
    Escape {
        /// The first field that differs, before and after.
        difference: String,
    },
    /// Check mode: the same event on the same state did something else the second time.
    #[error("its handler is no function of state and message: {difference}")]
    Unrepeatable {
        /// What differs.
        difference: String,
    },
}

/// A run that was ended by its model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "mpi", derive(serde::Serialize, serde::Deserialize))]
#[error("LP {lp} of `{group}` at {time}, {event}: {problem}", event = described(.key))]
pub struct Fault {
    /// The instant.
    pub time: SimTime,
    /// The event whose handler did it; none while the LP was started.
    pub key: Option<EventKey>,
    /// The LP that handled it.
    pub lp: LpId,
    /// The LP's group.
    pub group: String,
    /// What it did.
    pub problem: Problem,
}

fn described(key: &Option<EventKey>) -> String {
    match key {
        Some(key) => format!("event {} of LP {}", key.sequence, key.source),
        None => "its start".to_owned(),
    }
}

/// Why a run gave no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The model did what it may not.
    #[error(transparent)]
    Fault(#[from] Box<Fault>),
    /// A group whose LPs were never made.
    #[error("group `{group}` was declared and never filled")]
    Unfilled {
        /// The group's name.
        group: String,
    },
    /// A group whose LPs take more memory than there is.
    #[error("{lps} LPs in the group `{group}`, {bytes} bytes each, do not fit into memory")]
    TooLarge {
        /// The group.
        group: String,
        /// How many LPs it has.
        lps: u32,
        /// What each of them takes.
        bytes: usize,
    },
    /// A model without LPs.
    #[error("the model has no LPs")]
    Empty,
    /// Ranks that should run the same model and do not.
    #[error("rank {rank} runs another model than rank 0, or runs it in another way")]
    Differs {
        /// The first one that does.
        rank: usize,
    },
    /// A rank that has left while others begin a run.
    #[error("rank {rank} ended before the run began")]
    Gone {
        /// The first one that has.
        rank: usize,
    },
    /// A run over several ranks on a thread that has not joined them.
    #[error("a run over several ranks was begun on another thread than the one that joined them")]
    OffThread,
}
