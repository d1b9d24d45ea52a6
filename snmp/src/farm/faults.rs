//! What goes wrong with the answers of an agent.

use std::fmt;
use std::str::FromStr;

use meikyo_units::Nanos;
use meikyo_worlds::random::{below, draw};

use super::bridge::RowCreation;
use super::machine::SetFate;
use super::truth::flag;
use crate::ErrorStatus;

/// A share of all cases, from none to all, in steps of 2^-32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Share(u64);

impl Share {
    /// No case at all.
    pub const NONE: Self = Self(0);
    /// Every case.
    pub const ALL: Self = Self(1 << 32);

    /// Whether a case with these random bits is one of the share.
    #[inline]
    fn holds(self, bits: u64) -> bool {
        (bits >> 32) < self.0
    }
}

/// A text that is no share.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no share from `0%` to `100%`; write for example `5%` or `0.1%`")]
pub struct ParseShareError(String);

impl FromStr for Share {
    type Err = ParseShareError;

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and 2^32 by the check before"
    )]
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        match number {
            Some(percent) if (0.0..=100.0).contains(&percent) => {
                Ok(Self((percent / 100.0 * 4_294_967_296.0).round() as u64))
            }
            _ => Err(ParseShareError(text.into())),
        }
    }
}

impl fmt::Display for Share {
    #[expect(clippy::cast_precision_loss, reason = "at most 2^32, which f64 holds exactly")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = (self.0 as f64 / 4_294_967_296.0 * 1e8).round() / 1e6;
        write!(f, "{percent}%")
    }
}

/// Everything that can go wrong with the answers of an agent, by default nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Faults {
    /// Every answer leaves this long after its request came.
    pub delay: Nanos,
    /// An even random span up to this is added.
    pub jitter: Nanos,
    /// Requests or answers that get lost, one as often as the other.
    pub loss: Share,
    /// Requests that get lost, and as many of the answers to the others: loss on each way.
    pub loss_each_way: Share,
    /// Answers that come twice, the second up to 5 ms later.
    pub duplicate: Share,
    /// Answers that are held back for up to 20 ms, so that later ones overtake them.
    pub reorder: Share,
    /// Answers that come late by `late_by`.
    pub late: Share,
    /// How late.
    pub late_by: Nanos,
    /// Answers that are cut off somewhere.
    pub truncate: Share,
    /// Answers with another request id.
    pub wrong_id: Share,
    /// Requests that are answered with `error_status`.
    pub error: Share,
    /// The status in those answers.
    pub error_status: ErrorStatus,
    /// Requests to set something that are refused with `error_status`.
    pub refuse_sets: Share,
    /// The request of this number to set something is refused with `error_status`; 0: none is.
    pub refuse_set: u64,
    /// What the request of this number sets is set, and the answer gets lost; 0: none does.
    pub lose_set: u64,
    /// The request of this number to set something is answered as if it were done, and is not; 0: none is.
    pub forget_set: u64,
    /// The machine restarts at the request of this number to set something, and does not answer it; what
    /// a switch was told is not saved. 0: at none.
    pub reboot_at_set: u64,
    /// How rows of a switch's tables come to be.
    pub create: RowCreation,
    /// Never answers.
    pub dead: bool,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            delay: Nanos::ZERO,
            jitter: Nanos::ZERO,
            loss: Share::NONE,
            loss_each_way: Share::NONE,
            duplicate: Share::NONE,
            reorder: Share::NONE,
            late: Share::NONE,
            late_by: Nanos::from_millis(150),
            truncate: Share::NONE,
            wrong_id: Share::NONE,
            error: Share::NONE,
            error_status: ErrorStatus::GenErr,
            refuse_sets: Share::NONE,
            refuse_set: 0,
            lose_set: 0,
            forget_set: 0,
            reboot_at_set: 0,
            create: RowCreation::Both,
            dead: false,
        }
    }
}

/// A setting that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseFaultError {
    /// Not `KEY=VALUE` with a known key.
    #[error(
        "`{0}` is no fault; allowed are `delay=`, `jitter=`, `late_by=` with a span, `loss=`, \
         `loss_each_way=`, `duplicate=`, `reorder=`, `late=`, `truncate=`, `wrong_id=`, `error=`, \
         `refuse_sets=` with a share, `status=` with a number from 1 to 18, `refuse_set=`, \
         `lose_set=`, `forget_set=`, `reboot_at_set=` with a number, `create=` with `go`, `wait` or `both`"
    )]
    Key(String),
    /// A bad share.
    #[error("`{0}`: {1}")]
    Share(String, ParseShareError),
    /// A bad span.
    #[error("`{0}`: {1}")]
    Span(String, meikyo_units::ParseQuantityError),
}

impl Faults {
    /// Changes what `setting`, `KEY=VALUE`, names: for example `loss=5%` or `delay=2ms`.
    ///
    /// # Errors
    ///
    /// [`ParseFaultError`] with what is allowed.
    pub fn set(&mut self, setting: &str) -> Result<(), ParseFaultError> {
        let unknown = || ParseFaultError::Key(setting.into());
        let (key, value) = setting.split_once('=').ok_or_else(unknown)?;
        let share = match key {
            "loss" => &mut self.loss,
            "loss_each_way" => &mut self.loss_each_way,
            "duplicate" => &mut self.duplicate,
            "reorder" => &mut self.reorder,
            "late" => &mut self.late,
            "truncate" => &mut self.truncate,
            "wrong_id" => &mut self.wrong_id,
            "error" => &mut self.error,
            "refuse_sets" => &mut self.refuse_sets,
            "refuse_set" | "lose_set" | "forget_set" | "reboot_at_set" => {
                let number = value.parse().map_err(|_| unknown())?;
                match key {
                    "refuse_set" => self.refuse_set = number,
                    "lose_set" => self.lose_set = number,
                    "forget_set" => self.forget_set = number,
                    _ => self.reboot_at_set = number,
                }
                return Ok(());
            }
            "create" => {
                self.create = match value {
                    "go" => RowCreation::Go,
                    "wait" => RowCreation::Wait,
                    "both" => RowCreation::Both,
                    _ => return Err(unknown()),
                };
                return Ok(());
            }
            "delay" | "jitter" | "late_by" => {
                let span = value.parse().map_err(|e| ParseFaultError::Span(setting.into(), e))?;
                match key {
                    "delay" => self.delay = span,
                    "jitter" => self.jitter = span,
                    _ => self.late_by = span,
                }
                return Ok(());
            }
            "status" => {
                let code = value.parse().map_err(|_| unknown())?;
                self.error_status = ErrorStatus::from_code(code)
                    .filter(|status| status.code() > 0)
                    .ok_or_else(unknown)?;
                return Ok(());
            }
            _ => return Err(unknown()),
        };
        *share = value.parse().map_err(|e| ParseFaultError::Share(setting.into(), e))?;
        Ok(())
    }
}

/// What happens to one request, decided before it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Fate {
    pub(crate) request_lost: bool,
    pub(crate) answer_lost: bool,
    /// How long the answer waits.
    pub(crate) delay: Nanos,
    /// Whether part of the delay makes it late.
    pub(crate) late: bool,
    /// How long after the first a second copy leaves.
    pub(crate) duplicate: Option<Nanos>,
    /// Random bits that choose where the answer is cut.
    pub(crate) truncate: Option<u64>,
    pub(crate) wrong_id: bool,
    pub(crate) error: Option<ErrorStatus>,
}

impl Fate {
    /// As the truth file says it.
    pub(super) fn flags(&self) -> u8 {
        [
            (self.request_lost || self.answer_lost, flag::LOST),
            (self.request_lost, flag::REQUEST_LOST),
            (self.late, flag::LATE),
            (self.duplicate.is_some(), flag::DUPLICATED),
            (self.truncate.is_some(), flag::TRUNCATED),
            (self.wrong_id, flag::WRONG_ID),
        ]
        .into_iter()
        .filter_map(|(holds, flag)| holds.then_some(flag))
        .sum()
    }
}

impl Faults {
    /// What happens to the request of this number to set something.
    pub(crate) fn set_fate(&self, key: u64, set: u64) -> SetFate {
        if self.refuse_sets.holds(draw(key ^ 0x5E7, set)) || self.refuse_set == set {
            SetFate::Refused(self.error_status)
        } else if self.forget_set == set {
            SetFate::Forgotten
        } else {
            SetFate::Done
        }
    }

    /// The fate of request number `count` of the agent with this key.
    pub(crate) fn fate(&self, key: u64, count: u64) -> Fate {
        if *self == Self::default() {
            return Fate::default();
        }
        let bits = |purpose: u64| draw(key ^ 0xFA7E, count * 16 + purpose);
        let up_to = |purpose, span: Nanos| Nanos::new(below(bits(purpose), span.get() + 1));
        let lost = self.loss.holds(bits(0));
        let lost_there = self.loss_each_way.holds(bits(11));
        let lost_back = self.loss_each_way.holds(bits(12));
        let request_lost = self.dead || lost_there || (lost && bits(0) & 1 == 0);
        let late = self.late.holds(bits(1));
        let mut delay = self.delay + up_to(2, self.jitter);
        if late {
            delay += self.late_by;
        }
        if self.reorder.holds(bits(3)) {
            delay += up_to(4, Nanos::from_millis(20));
        }
        let duplicate = self.duplicate.holds(bits(5)).then(|| up_to(6, Nanos::from_millis(5)));
        Fate {
            request_lost,
            answer_lost: (lost || lost_back) && !request_lost,
            delay,
            late,
            duplicate,
            truncate: self.truncate.holds(bits(7)).then(|| bits(8)),
            wrong_id: self.wrong_id.holds(bits(9)),
            error: self.error.holds(bits(10)).then_some(self.error_status),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_met() {
        let mut faults = Faults::default();
        for setting in ["loss=5%", "duplicate=5%", "late=0.5%", "late_by=200ms"] {
            faults.set(setting).unwrap();
        }
        let fates: Vec<Fate> = (0..100_000).map(|count| faults.fate(4, count)).collect();
        let count = |holds: fn(&Fate) -> bool| fates.iter().filter(|fate| holds(fate)).count();
        assert!((2_250..2_750).contains(&count(|fate| fate.request_lost)));
        assert!((2_250..2_750).contains(&count(|fate| fate.answer_lost)));
        assert!((4_600..5_400).contains(&count(|fate| fate.duplicate.is_some())));
        assert!((400..600).contains(&count(|fate| fate.late)));
        assert!(fates.iter().all(|fate| !fate.late || fate.delay == Nanos::from_millis(200)));
    }

    #[test]
    fn each_way_loses_its_share() {
        let mut faults = Faults::default();
        faults.set("loss_each_way=5%").unwrap();
        let fates: Vec<Fate> = (0..100_000).map(|count| faults.fate(4, count)).collect();
        let count = |holds: fn(&Fate) -> bool| fates.iter().filter(|fate| holds(fate)).count();
        // 5 % of 100,000, and 5 % of the 95,000 that arrive, with six standard deviations.
        assert!((4_600..5_400).contains(&count(|fate| fate.request_lost)));
        assert!((4_350..5_150).contains(&count(|fate| fate.answer_lost)));
    }

    #[test]
    fn settings_say_what_is_allowed() {
        let mut faults = Faults::default();
        assert_eq!(
            faults.set("loss=5").unwrap_err().to_string(),
            "`loss=5`: `5` is no share from `0%` to `100%`; write for example `5%` or `0.1%`"
        );
        assert!(
            faults.set("lost=5%").unwrap_err().to_string().starts_with("`lost=5%` is no fault")
        );
        faults.set("loss=100%").unwrap();
        assert_eq!(faults.loss, Share::ALL);
        assert_eq!(faults.loss.to_string(), "100%");
        faults.set("loss=0.1%").unwrap();
        assert_eq!(faults.loss.to_string(), "0.1%");
    }
}
