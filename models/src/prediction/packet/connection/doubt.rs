//! Whether a time-out was false: nothing was lost, and the acknowledgement only came late.

use meikyo_undo::{Cell, Log, fields};

/// What is tried and watched for after a time-out, until it is known.
///
/// Time stamps tell it when an acknowledgement comes that is of what was sent before the time-out (Eifel, RFC
/// 3522). Even where the first segment was lost, the others may not be: so after it is acknowledged new data are
/// sent in place of the next ones, and whatever comes of these before anything else is sent again tells that
/// they are not lost (F-RTO, RFC 5682, section 3.1, as Linux does it in `tcp_process_loss`).
#[derive(Clone, Debug, PartialEq, Default)]
pub(super) struct Doubt {
    /// Whether the window before the time-out is known, to be restored by time stamps.
    restorable: Cell<bool>,
    /// Whether new data are tried, or were.
    tries: Cell<bool>,
    /// Whether new data are to be sent now.
    sends_new: Cell<bool>,
    /// Whether nothing is sent before the next acknowledgement.
    holds: Cell<bool>,
}
fields!(Doubt { restorable, tries, sends_new, holds });

/// Of what an acknowledgement is beyond those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advance {
    Nothing,
    /// Of more, the first segment of which arrived after it had been sent again.
    OfSentAgain,
    /// Of more, the first segment of which arrived as it was sent first.
    OfSentFirst,
}

/// What an acknowledgement says after a time-out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    pub(super) advance: Advance,
    /// It tells of something for the first time that was sent before the time-out, and not again.
    pub(super) of_others: bool,
    /// It tells of segments beyond others that are missing.
    pub(super) beyond: bool,
}

impl Doubt {
    /// A time-out has passed: whether it made the window smaller, and whether new data are tried.
    pub(super) fn begin(&mut self, restorable: bool, tries: bool, log: &mut impl Log) {
        // A second time-out does not change what the first one has made smaller.
        self.restorable.set(log, self.restorable.get() || restorable);
        self.tries.set(log, tries);
        self.sends_new.set(log, false);
        self.holds.set(log, false);
    }

    /// Whether it is known, one way or the other.
    pub(super) fn is_over(&self) -> bool {
        !self.restorable.get() && !self.tries.get()
    }

    /// Takes an acknowledgement into account; `new_sent` is whether new data were sent since the time-out,
    /// `lasting` whether something is missing yet. Gives whether the time-out was false.
    pub(super) fn hear(
        &mut self,
        heard: Heard,
        [new_sent, lasting]: [bool; 2],
        log: &mut impl Log,
    ) -> bool {
        self.holds.set(log, false);
        let by_stamps = self.restorable.get() && heard.advance == Advance::OfSentFirst;
        if by_stamps || (self.tries.get() && heard.of_others) {
            self.end(log);
            return true;
        }
        if self.tries.get() && new_sent {
            self.tries.set(log, !heard.beyond);
        } else if self.tries.get() && heard.advance != Advance::Nothing && lasting {
            self.sends_new.set(log, true);
        }
        false
    }

    /// Nothing is in doubt any more.
    pub(super) fn end(&mut self, log: &mut impl Log) {
        self.restorable.set(log, false);
        self.tries.set(log, false);
        self.sends_new.set(log, false);
        self.holds.set(log, false);
    }

    /// Whether new data come before what was lost.
    pub(super) fn sends_new(&self) -> bool {
        self.sends_new.get()
    }

    /// No more new data may be sent; whether any were.
    pub(super) fn sent_new(&mut self, any: bool, log: &mut impl Log) {
        self.sends_new.set(log, false);
        self.tries.set(log, any);
        self.holds.set(log, any);
    }

    /// Whether nothing is sent before the next acknowledgement.
    pub(super) fn holds(&self) -> bool {
        self.holds.get()
    }
}

#[cfg(test)]
mod tests {
    use meikyo_undo::Forget;

    use super::*;

    const NOTHING: Heard = Heard { advance: Advance::Nothing, of_others: false, beyond: false };
    const AGAIN: Heard = Heard { advance: Advance::OfSentAgain, ..NOTHING };

    fn begun(restorable: bool) -> Doubt {
        let mut doubt = Doubt::default();
        doubt.begin(restorable, true, &mut Forget);
        doubt
    }

    #[test]
    fn a_stamp_of_before_takes_a_time_out_back() {
        let first = Heard { advance: Advance::OfSentFirst, ..NOTHING };
        let mut doubt = begun(true);
        // An acknowledgement of nothing new says nothing, whatever its stamp is.
        assert!(!doubt.hear(NOTHING, [false, true], &mut Forget));
        assert!(doubt.hear(first, [false, false], &mut Forget));
        assert!(doubt.is_over());
        // One of what was sent again says nothing, nor any where there is nothing to be restored.
        assert!(!begun(true).hear(AGAIN, [false, false], &mut Forget));
        assert!(!begun(false).hear(first, [false, false], &mut Forget));
    }

    #[test]
    fn new_data_show_that_the_others_were_not_lost() {
        let mut doubt = begun(true);
        assert!(!doubt.sends_new());
        assert!(!doubt.hear(AGAIN, [false, true], &mut Forget));
        assert!(doubt.sends_new() && !doubt.holds());
        doubt.sent_new(true, &mut Forget);
        assert!(!doubt.sends_new() && doubt.holds());
        assert!(doubt.hear(Heard { of_others: true, ..AGAIN }, [true, true], &mut Forget));
        assert!(doubt.is_over() && !doubt.holds());
    }

    #[test]
    fn new_data_beyond_a_gap_show_that_the_others_were_lost() {
        let mut doubt = begun(false);
        assert!(!doubt.hear(AGAIN, [false, true], &mut Forget));
        doubt.sent_new(true, &mut Forget);
        assert!(!doubt.hear(Heard { beyond: true, ..NOTHING }, [true, true], &mut Forget));
        assert!(doubt.is_over() && !doubt.holds());
        // Where no new data may be sent, the lost ones are sent again at once.
        let mut doubt = begun(false);
        assert!(!doubt.hear(AGAIN, [false, true], &mut Forget));
        doubt.sent_new(false, &mut Forget);
        assert!(doubt.is_over() && !doubt.holds());
    }
}
