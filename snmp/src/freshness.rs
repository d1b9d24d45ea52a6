//! How often an agent really updates a value, found out from polling it.
//!
//! Agents cache: net-snmp keeps interface counters for 3 s, switches for 1 to 30 s, and nothing in
//! the protocol says so. A [`Detector`] follows one value series and states what polling shows: that
//! the value is fresh at every poll, that it is refreshed periodically (with period and phase), at
//! irregular spans, or that it does not move. It is pure: it reads no clock, and knows neither
//! the value nor the agent.
//!
//! What it costs: a poll without a change is two comparisons; so is a change where every poll
//! brings one. An update of a cached value costs some ten ns, and a decision up to some
//! microseconds, taken at most once in several updates, and ever more seldom where it decides nothing.

mod edges;
mod series;
#[cfg(test)]
mod simulated;

use std::fmt;

use meikyo_units::{Nanos, WallTime};

use series::Series;

/// Silence after which a value whose period is not known counts as not moving: five refreshes of
/// the slowest caches that are common (5 s), and a reserve.
const QUIET_UNKNOWN: i64 = 30_000_000_000;

/// The least silence after which any value counts as not moving.
const QUIET_LEAST: i64 = 10_000_000_000;

/// The least span between two judgements of a value that does not move while its table does.
const JUDGED_AGAIN_LEAST: i64 = 100_000_000;

/// How often the silence that counts is doubled at most, for values that move now and then.
const QUIET_DOUBLED_MAX: u8 = 7;

/// What is known of a value's updates, and from where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding {
    /// How the value is updated.
    pub class: Class,
    /// Where that is known from.
    pub source: Source,
}

/// How a value is updated, as far as polling can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// At least about as often as it is polled.
    EveryPoll,
    /// At fixed spans.
    Periodic {
        /// Span between two refreshes.
        period: Nanos,
        /// The instant of a refresh, within one poll; `None` while it is only declared.
        phase: Option<WallTime>,
    },
    /// At changing spans.
    Irregular {
        /// The least span seen lately.
        least: Nanos,
        /// The mean span.
        mean: Nanos,
        /// The greatest span seen lately.
        greatest: Nanos,
    },
    /// The value does not move; its agent table does, or the agent itself stands still.
    Unchanged,
    /// Nothing of the same agent table moves, though the agent's uptime does.
    Frozen,
}

/// Where a finding comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Polling showed it.
    Observed,
    /// The agent says so (NET-SNMP-AGENT-MIB nsCacheTimeout); polling has not shown it yet.
    Declared,
}

impl Class {
    /// The word that is recorded.
    pub const fn word(self) -> &'static str {
        match self {
            Self::EveryPoll => "every_poll",
            Self::Periodic { .. } => "periodic",
            Self::Irregular { .. } => "irregular",
            Self::Unchanged => "unchanged",
            Self::Frozen => "frozen",
        }
    }
}

impl Source {
    /// The word that is recorded.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Observed => "observed",
            Self::Declared => "declared",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |span: &Nanos| format!("{:.3} s", span.as_secs_f64());
        match self {
            Self::EveryPoll => write!(f, "fresh at every poll"),
            Self::Periodic { period, .. } => write!(f, "every {}", seconds(period)),
            Self::Irregular { least, mean, greatest } => {
                write!(
                    f,
                    "irregular, {} to {}, mean {}",
                    seconds(least),
                    seconds(greatest),
                    seconds(mean)
                )
            }
            Self::Unchanged => write!(f, "unchanged"),
            Self::Frozen => write!(f, "frozen"),
        }
    }
}

/// What moved last in one agent table (`ifTable`, `dskTable`) of one device: what tells a frozen
/// cache from an idle value. All series of the agent table share one.
#[derive(Debug, Clone, Copy)]
pub struct Activity {
    moved: i64,
    uptime_moved: i64,
}

impl Default for Activity {
    fn default() -> Self {
        Self { moved: i64::MIN, uptime_moved: i64::MIN }
    }
}

impl Activity {
    /// A value of the agent table changed in the answer received at `at`.
    pub fn moved(&mut self, at: WallTime) {
        self.moved = at.as_nanos();
    }

    /// When a value of the agent table changed last, in ns; the least instant before it did.
    pub(crate) fn newest(&self) -> i64 {
        self.moved
    }

    /// `sysUpTime` in the answer received at `at` differs from the one before.
    pub fn uptime_moved(&mut self, at: WallTime) {
        self.uptime_moved = at.as_nanos();
    }
}

/// What a detector stands at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Nothing is known.
    Unknown,
    /// The series says what.
    Moving,
    /// Every poll brings a change.
    EveryPoll,
    Unchanged,
    Frozen,
}

/// Finds out how one value series is updated.
///
/// ```
/// use meikyo_snmp::freshness::{Activity, Class, Detector};
/// use meikyo_units::WallTime;
///
/// let (mut detector, mut activity) = (Detector::new(), Activity::default());
/// let mut found = None;
/// for poll in 0..200 {
///     let at = WallTime::from_nanos(poll * 100_000_000);
///     let changed = poll % 10 == 3;
///     if changed {
///         activity.moved(at);
///     }
///     found = detector.observe(at, changed, &activity).or(found);
/// }
/// let Some(Class::Periodic { period, .. }) = found.map(|finding| finding.class) else { panic!() };
/// assert!((0.95..1.05).contains(&period.as_secs_f64()));
/// ```
#[derive(Debug, Clone)]
pub struct Detector {
    /// The newest poll.
    polled: i64,
    /// The poll that showed the newest update.
    updated: i64,
    /// When silence is to be judged.
    quiet_at: i64,
    /// When the agent table had moved last as silence was judged.
    table_moved: i64,
    /// What is only said of moving values; nothing is spent on values that never move.
    series: Option<Box<Series>>,
    /// Declared period; `u32::MAX` ms if there is none.
    declared_ms: u32,
    standing: Standing,
    /// Changes at consecutive polls.
    run: u8,
    /// How often the silence that counts was doubled.
    quiet_doubled: u8,
}

const _: () = assert!(size_of::<Detector>() <= 64, "a detector is one cache line");

impl Default for Detector {
    fn default() -> Self {
        Self::new()
    }
}

impl Detector {
    /// A detector that knows nothing.
    pub const fn new() -> Self {
        Self {
            polled: i64::MIN,
            updated: i64::MIN,
            quiet_at: i64::MIN,
            table_moved: i64::MIN,
            series: None,
            declared_ms: u32::MAX,
            standing: Standing::Unknown,
            run: 0,
            quiet_doubled: 0,
        }
    }

    /// When the newest poll was, in ns; the least instant before the first.
    pub(crate) fn polled(&self) -> i64 {
        self.polled
    }

    /// Reads what an update will need beyond the detector itself, and makes nothing of it.
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        let moving = self.series.as_ref().filter(|_| self.standing != Standing::EveryPoll);
        moving.map_or(0, |series| series.touch())
    }

    /// When the newest update was seen, ns since the epoch; `None` before the first one.
    pub(crate) fn updated(&self) -> Option<i64> {
        (self.updated != i64::MIN).then_some(self.updated)
    }

    /// A detector whose agent declares that it refreshes the value every `period`, zero for at
    /// every request. [`Detector::finding`] says so until polling shows something.
    pub fn declared(period: Nanos) -> Self {
        let millis = period.get() / 1_000_000;
        // Saturates: a value that is refreshed after more than seven weeks never moves here.
        let declared_ms = u32::try_from(millis).unwrap_or(u32::MAX).min(u32::MAX - 1);
        Self { declared_ms, ..Self::new() }
    }

    /// What is known now.
    pub fn finding(&self) -> Option<Finding> {
        let class = match self.standing {
            Standing::Unknown => return self.declaration(),
            Standing::Moving => self.series.as_ref()?.class(self.updated)?,
            Standing::EveryPoll => Class::EveryPoll,
            Standing::Unchanged => Class::Unchanged,
            Standing::Frozen => Class::Frozen,
        };
        Some(Finding { class, source: Source::Observed })
    }

    /// Takes one poll, answered at `at` (the receive time); `changed` says whether the value differs
    /// from the one in the answer before, which is `false` at the first. Answers that did not come
    /// are left out. Returns what was found out by it, if that is new.
    ///
    /// `activity` must hold what moved up to the answer before; what moved in this one may be in it
    /// or not.
    #[inline]
    pub fn observe(&mut self, at: WallTime, changed: bool, activity: &Activity) -> Option<Finding> {
        let at = at.as_nanos();
        let before = std::mem::replace(&mut self.polled, at);
        if !changed {
            self.run = 0;
            if at < self.quiet_at && at > before {
                return None;
            }
            return self.silence(at, before, activity);
        }
        if self.standing == Standing::EveryPoll && before == self.updated && at > before {
            self.updated = at;
            self.quiet_at = self.quiet_at.max(at.saturating_add(QUIET_LEAST));
            return None;
        }
        self.update(at, before)
    }

    /// The agent was restarted, or the series now comes from another row: what is known stays until
    /// polling shows otherwise, but spans across this instant mean nothing.
    pub fn interrupt(&mut self) {
        self.polled = i64::MIN;
        self.updated = i64::MIN;
        self.quiet_at = i64::MIN;
        self.table_moved = i64::MIN;
        self.run = 0;
        if let Some(series) = &mut self.series {
            series.interrupt();
        }
    }

    fn declaration(&self) -> Option<Finding> {
        let class = match self.declared_ms {
            u32::MAX => return None,
            0 => Class::EveryPoll,
            millis => Class::Periodic { period: Nanos::from_millis(millis.into()), phase: None },
        };
        Some(Finding { class, source: Source::Declared })
    }

    /// How long silence lasts before it is judged, in ns.
    fn patience(&self) -> i64 {
        let known = match self.standing {
            Standing::EveryPoll => 0,
            _ => self.series.as_ref().map_or(0, |series| series.longest_ns()),
        };
        let declared = match self.declared_ms {
            u32::MAX => 0,
            millis => i64::from(millis) * 1_000_000,
        };
        let least = match self.standing {
            Standing::Moving | Standing::EveryPoll => (known * 5).max(QUIET_LEAST),
            _ => (known.max(declared) * 5).max(QUIET_UNKNOWN),
        };
        least.saturating_mul(1 << self.quiet_doubled)
    }

    /// A poll that is the first, came out of order, or lies at the end of a long silence.
    #[cold]
    fn silence(&mut self, at: i64, before: i64, activity: &Activity) -> Option<Finding> {
        if before == i64::MIN || at <= before {
            // The first poll, or the clock was set back: spans from here on.
            self.interrupt();
            self.polled = at;
            self.quiet_at = at.saturating_add(self.patience());
            return None;
        }
        let patience = self.patience();
        let has_moved = self.updated != i64::MIN;
        let quiet_since = if has_moved { self.updated } else { self.quiet_at - patience };
        let silent_since = quiet_since.max(self.table_moved);
        let standing = if activity.moved <= silent_since && activity.uptime_moved > silent_since {
            // The rest of the table is judged at the next poll too: one cache moves as a whole.
            self.quiet_at = at;
            Standing::Frozen
        } else {
            // The table may fall silent later. A value that never moved is no evidence of that.
            let silent_by = activity.moved.saturating_add(patience);
            let again_at = silent_by.max(at.saturating_add(JUDGED_AGAIN_LEAST));
            self.quiet_at = if has_moved { again_at } else { i64::MAX };
            self.table_moved = activity.moved;
            Standing::Unchanged
        };
        if standing == self.standing {
            return None;
        }
        self.standing = standing;
        self.finding()
    }

    /// The value changed between the polls at `before` and `at`.
    fn update(&mut self, at: i64, before: i64) -> Option<Finding> {
        let updated = std::mem::replace(&mut self.updated, at);
        if before == i64::MIN || at <= before {
            return None;
        }
        let adjacent = updated == before;
        self.run = if adjacent { self.run.saturating_add(1) } else { 1 };
        let series = self.series.get_or_insert_with(Box::default);
        let was_quiet = matches!(self.standing, Standing::Unchanged | Standing::Frozen);
        let declared_us = match self.declared_ms {
            u32::MAX => None,
            millis => Some(f64::from(millis) * 1e3),
        };
        let news = series.update(updated, before, at, declared_us);
        if was_quiet {
            self.quiet_doubled = (self.quiet_doubled + 1).min(QUIET_DOUBLED_MAX);
        }
        let standing = match series.is_known() {
            true if series.is_every_poll() => Standing::EveryPoll,
            true => Standing::Moving,
            false if was_quiet => self.standing,
            false => Standing::Unknown,
        };
        let changed = standing != self.standing || news;
        self.standing = standing;
        self.quiet_at = at.saturating_add(self.patience());
        if changed && standing != Standing::Unknown { self.finding() } else { None }
    }
}
