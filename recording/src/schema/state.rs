//! How the intervals of devices end.

/// The state in which a (device, interval) ended; the greater is the worse.
///
/// This is the one place where the order of states stands: summaries keep the worst by it, and
/// columns of states carry it in [`super::Column::order`] for readers without this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum State {
    /// Answered within the interval.
    Ok = 0,
    /// Answered after the interval and before the timeout; the values are kept.
    Late = 1,
    /// Not asked, see the reason.
    Skipped = 2,
    /// Answered with an error, or with a packet that could not be used.
    Error = 3,
    /// Not answered within the timeout, or before a request of a later interval was.
    Missed = 4,
}

impl State {
    /// Every state, from best to worst.
    pub const ALL: [Self; 5] = [Self::Ok, Self::Late, Self::Skipped, Self::Error, Self::Missed];

    /// The word that is recorded.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Late => "late",
            Self::Skipped => "skipped",
            Self::Error => "error",
            Self::Missed => "missed",
        }
    }

    /// Every word, from best to worst.
    pub fn words() -> Vec<String> {
        Self::ALL.iter().map(|state| state.word().to_owned()).collect()
    }

    /// The state of a rank from 0, as [`rank`](Self::rank) gives it; `None` for a word that no
    /// state has.
    pub fn of_rank(rank: u8) -> Option<Self> {
        Self::ALL.get(usize::from(rank)).copied()
    }

    /// The rank of a word, the greater the worse; one that is not known ranks worst.
    pub fn rank(word: &str) -> u8 {
        const UNKNOWN: u8 = State::Missed as u8 + 1;
        let known = Self::ALL.into_iter().find(|state| state.word() == word);
        known.map_or(UNKNOWN, |state| state as u8)
    }
}
