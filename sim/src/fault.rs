//! What a model may not do, and what is said then.

use meikyo_units::{Nanos, SimTime};

use crate::key::{EventKey, LpId};

/// What went wrong in one event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
pub enum Problem {
    /// An event for an LP that does not exist.
    #[error("it sends to LP {destination}, and the model has {count} LPs (0 to {})", count - 1)]
    UnknownLp {
        /// The LP that the event should go to.
        destination: LpId,
        /// How many LPs there are.
        count: u32,
    },
    /// An event outside the declared links.
    #[error(
        "it sends to LP {destination} of `{to}`, and no link from `{from}` to `{to}` is declared"
    )]
    NoLink {
        /// The LP that the event should go to.
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
        /// The LP that the event should go to.
        destination: LpId,
        /// The delay that the handler asked for.
        delay: Nanos,
        /// The least delay that the model declares between the two.
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
        /// The LP that the event should go to.
        destination: LpId,
        /// The group of the destination.
        to: String,
    },
    /// The handle of an event that another LP has scheduled.
    #[error("it cancels an event that LP {owner} has scheduled; only that LP can")]
    ForeignHandle {
        /// Whose event it is.
        owner: LpId,
    },
    /// A statistic of another group.
    #[error("it tallies `{statistic}`, which belongs to the LPs of `{group}`")]
    ForeignStatistic {
        /// The name of the statistic, as declared.
        statistic: String,
        /// The group whose LPs may tally it.
        group: String,
    },
    /// A statistic of another model.
    #[error("it tallies a statistic that another model declared; this one has {count}")]
    UnknownStatistic {
        /// How many statistics the model has.
        count: usize,
    },
    /// A series of another model.
    #[error("it records into a series that another model declared; this one has {count}")]
    UnknownSeries {
        /// How many series the model has.
        count: usize,
    },
    /// The handler of a committed event panicked.
    #[error("its handler panicked{}: {message}", panic_place(.place))]
    Panicked {
        /// The file, line and column, where they are known.
        place: Option<String>,
        /// The panic's message, where it is a text.
        message: String,
    },
    /// Check mode: the state after taking the event back differs from the one before it.
    #[error("a change is missing from the undo log: {difference}")]
    Escape {
        /// The first field that differs, before and after.
        difference: String,
    },
    /// Check mode: a state or a message is not equal to its own copy, so that nothing can be compared.
    #[error("{what} is not equal to its own copy and cannot be checked: {place}")]
    Incomparable {
        /// Which value is not equal to its copy: the state or a message.
        what: String,
        /// The field that holds a NaN, or what else may be the reason.
        place: String,
    },
    /// Check mode: the same event in a second, freshly built model did something else.
    #[error(
        "in a second model, built anew, {difference}; does anything depend on the order of a `HashMap`, an address or a clock?"
    )]
    Rebuilt {
        /// The first difference that was found, with the way to its field.
        difference: String,
    },
    /// Check mode: the same event on the same state did something else the second time.
    #[error("its handler is not a function of state and message alone: {difference}")]
    Unrepeatable {
        /// The first difference that was found, with the way to its field.
        difference: String,
    },
}

fn panic_place(place: &Option<String>) -> String {
    place.as_ref().map(|place| format!(" at {place}")).unwrap_or_default()
}

/// A run that was ended by its model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[error("LP {lp} of `{group}` at {time}, {event}: {problem}", event = described(.key))]
pub struct Fault {
    /// The simulated instant of the event.
    pub time: SimTime,
    /// The event whose handler did it; none while the LP was started.
    pub key: Option<EventKey>,
    /// The LP that handled it.
    pub lp: LpId,
    /// The name of the group that the LP is in.
    pub group: String,
    /// What the LP did that it may not.
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
        /// The name of the first group without LPs.
        group: String,
    },
    /// A group whose LPs take more memory than there is.
    #[error("{lps} LPs in the group `{group}`, {bytes} bytes each, do not fit into memory")]
    TooLarge {
        /// The name of the group that is too large.
        group: String,
        /// How many LPs it has.
        lps: u32,
        /// What each of them takes.
        bytes: usize,
    },
    /// A link between LPs that the model does not have.
    #[error("a link of LP {lp} is declared, and the model has {count} LPs (numbered from 0)")]
    UnknownLp {
        /// The number that no LP of the model has.
        lp: LpId,
        /// How many LPs there are.
        count: u32,
    },
    /// A group that another model declared.
    #[error(
        "a group of {count} LPs from LP {first} on was declared by another model; use the groups that this model's `group` gives"
    )]
    ForeignGroup {
        /// The first LP of the group, in the model that declared it.
        first: LpId,
        /// How many LPs it has.
        count: u32,
    },
    /// An LP that panicked when it was asked what it waits for.
    #[error("LP {lp} of `{group}` at the end of the run, asked what it waits for: {problem}")]
    Waiting {
        /// The LP that panicked.
        lp: LpId,
        /// The name of the group that the LP is in.
        group: String,
        /// The panic, as a problem of the LP.
        problem: Problem,
    },
    /// Check mode: a model that is declared differently when it is built again.
    #[error(
        "the model that is built the second time has other groups, links, statistics or series than the first one"
    )]
    OtherModel,
    /// A model that declares no LP at all.
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
