//! Polls as they were kept against answers as they were given.
//!
//! Every kept poll must be one answer of its agent, whole: given after the interval was due and not
//! after the answer was received, with the same uptime and the same values. A value that another
//! agent, another interval or another object should have had is found, however plausible it is.

use std::collections::VecDeque;

use meikyo_units::WallTime;

/// Values in a fixed order of objects; `None` where there is none.
pub(crate) type Slots = [Option<i64>; 5];

/// What an agent answered once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) at: WallTime,
    pub(crate) uptime_cs: u32,
    pub(crate) values: Slots,
}

/// What was kept of one poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptPoll {
    pub(crate) agent: usize,
    pub(crate) due: WallTime,
    pub(crate) received: WallTime,
    pub(crate) uptime_cs: u32,
    pub(crate) values: Slots,
}

/// How many kept values are right.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Polls that were compared.
    pub(crate) polls: u64,
    pub(crate) values_equal: u64,
    pub(crate) values_wrong: u64,
    /// The first wrong ones, for people.
    pub(crate) examples: Vec<String>,
}

/// Wrong polls that are described.
const EXAMPLES_MAX: usize = 5;

impl Verdict {
    /// Counts values that are not the agent's, and describes the first of them.
    pub(crate) fn note_wrong(&mut self, values: u64, describe: impl FnOnce() -> String) {
        self.values_wrong += values;
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(describe());
        }
    }
}

/// Answers that were given and may still be asked for, by agent.
#[derive(Debug)]
pub(crate) struct Answers {
    given: Vec<VecDeque<Answer>>,
}

impl Answers {
    /// None, of so many agents.
    pub(crate) fn new(agents: usize) -> Self {
        Self { given: vec![VecDeque::new(); agents] }
    }

    /// Adds an answer; those of one agent come in the order of their time.
    pub(crate) fn add(&mut self, agent: usize, answer: Answer) {
        if let Some(given) = self.given.get_mut(agent) {
            given.push_back(answer);
        }
    }

    /// Forgets answers before `instant`: no later poll can be theirs.
    pub(crate) fn forget_before(&mut self, instant: WallTime) {
        for given in &mut self.given {
            while given.front().is_some_and(|answer| answer.at < instant) {
                given.pop_front();
            }
        }
    }

    /// Compares one poll and adds to the verdict.
    pub(crate) fn compare(&self, poll: &KeptPoll, verdict: &mut Verdict) {
        let kept = poll.values.iter().flatten().count() as u64;
        let given = self.given.get(poll.agent).into_iter().flatten();
        let possible = given.filter(|answer| answer.at >= poll.due && answer.at <= poll.received);
        let mut nearest = None;
        verdict.polls += 1;
        for answer in possible {
            if answer.uptime_cs == poll.uptime_cs && agrees(&poll.values, &answer.values) {
                verdict.values_equal += kept;
                return;
            }
            nearest = Some(answer);
        }
        verdict.note_wrong(kept.max(1), || {
            let held = nearest.map_or_else(
                || "its agent gave no answer in that span".to_owned(),
                |answer| format!("its agent gave {:?}, uptime {}", answer.values, answer.uptime_cs),
            );
            format!(
                "wrong: agent {}, due {}, received {}: kept {:?}, uptime {}, but {held}",
                poll.agent,
                poll.due.as_nanos(),
                poll.received.as_nanos(),
                poll.values,
                poll.uptime_cs
            )
        });
    }
}

/// Whether every kept value is the answer's.
fn agrees(kept: &Slots, given: &Slots) -> bool {
    kept.iter().zip(given).all(|(kept, given)| kept.is_none() || kept == given)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: i64) -> WallTime {
        WallTime::from_nanos(millis * 1_000_000)
    }

    const FIRST: Slots = [Some(1), Some(2), Some(3), Some(4), Some(5)];
    const SECOND: Slots = [Some(10), Some(20), Some(30), Some(40), Some(50)];

    fn answers() -> Answers {
        let mut answers = Answers::new(2);
        answers.add(0, Answer { at: at(101), uptime_cs: 7, values: FIRST });
        answers.add(0, Answer { at: at(201), uptime_cs: 17, values: SECOND });
        answers.add(1, Answer { at: at(101), uptime_cs: 9, values: SECOND });
        answers
    }

    fn poll(agent: usize, due: i64, uptime_cs: u32, values: Slots) -> KeptPoll {
        KeptPoll { agent, due: at(due), received: at(due + 5), uptime_cs, values }
    }

    fn verdict(poll: &KeptPoll) -> (u64, u64) {
        let mut verdict = Verdict::default();
        answers().compare(poll, &mut verdict);
        (verdict.values_equal, verdict.values_wrong)
    }

    #[test]
    fn the_answer_of_the_interval_is_right() {
        assert_eq!(verdict(&poll(0, 100, 7, FIRST)), (5, 0));
        assert_eq!(verdict(&poll(0, 200, 17, SECOND)), (5, 0));
        let two = [Some(1), None, None, None, Some(5)];
        assert_eq!(verdict(&poll(0, 100, 7, two)), (2, 0));
    }

    #[test]
    fn answers_of_others_and_of_other_intervals_are_wrong() {
        assert_eq!(verdict(&poll(1, 100, 7, FIRST)), (0, 5), "another agent's");
        assert_eq!(verdict(&poll(0, 200, 7, FIRST)), (0, 5), "another interval's");
        assert_eq!(verdict(&poll(0, 100, 8, FIRST)), (0, 5), "another uptime");
        let swapped = [Some(2), Some(1), Some(3), Some(4), Some(5)];
        assert_eq!(verdict(&poll(0, 100, 7, swapped)), (0, 5), "two objects swapped");
        assert_eq!(verdict(&poll(7, 100, 7, FIRST)), (0, 5), "no such agent");
    }

    #[test]
    fn an_answer_cannot_be_received_before_it_is_given() {
        let early = KeptPoll { received: at(100), ..poll(0, 100, 7, FIRST) };
        assert_eq!(verdict(&early), (0, 5));
    }

    #[test]
    fn what_is_forgotten_is_no_longer_found() {
        let mut answers = answers();
        answers.forget_before(at(150));
        let mut verdict = Verdict::default();
        answers.compare(&poll(0, 100, 7, FIRST), &mut verdict);
        answers.compare(&poll(0, 200, 17, SECOND), &mut verdict);
        assert_eq!((verdict.polls, verdict.values_equal, verdict.values_wrong), (2, 5, 5));
        assert_eq!(verdict.examples.len(), 1);
    }
}
