//! What a handler may do.

use meikyo_undo::{Log, Place, State, Wire};
use meikyo_units::{Nanos, SimTime};

use crate::fault::Problem;
use crate::key::{Event, EventKey, LpId};
use crate::random;
use crate::rules::Rules;
use crate::statistics::{Output, Series, Statistic};

/// A logical process: a state and one handler.
///
/// The handler is run sequentially, conservatively and optimistically as it is. It may depend on
/// nothing but the state, the message and the context, and it changes the state only through the
/// fields of [`meikyo_undo`], or anyhow if the type says [`meikyo_undo::copied!`].
pub trait Lp: State + Clone + std::fmt::Debug + PartialEq + Send {
    /// What LPs send each other. It goes to other ranks as bytes, so it must be `serde`'s.
    type Message: Clone + std::fmt::Debug + PartialEq + Send + Wire + 'static;

    /// Called once before the first event, at time 0.
    fn start(&mut self, context: &mut impl Context<Self::Message>) {
        let _ = context;
    }

    /// Called for every event, in the order of the keys.
    fn handle(&mut self, message: Self::Message, context: &mut impl Context<Self::Message>);

    /// What the LP waits for, if it does. Asked when no event is left before the end.
    fn waiting(&self) -> Option<String> {
        None
    }
}

/// An event that an LP has scheduled for itself: [`Context::cancel`] takes it back.
///
/// It can be kept in a field of the state ([`meikyo_undo::Held`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Handle(EventKey);

/// The world as an LP sees it while it handles an event.
///
/// It is also the [`Log`] for the changes of the LP's fields.
pub trait Context<M>: Log {
    /// The LP that handles the event.
    fn me(&self) -> LpId;

    /// The key of the event.
    fn event(&self) -> EventKey;

    /// The instant at which the event happens, the time of its key.
    fn now(&self) -> SimTime {
        self.event().time
    }

    /// Sends `message` so that it is handled `delay` from now. An LP may send itself anything; to
    /// another one, a link between their groups must be declared, and `delay` must not be below its
    /// least delay: the run ends with an error otherwise.
    ///
    /// [`SimTime::END`] is never: what is sent so far ahead that it would happen then or later (a
    /// time-out of `u64::MAX` ns, say) is forgotten. It is not handled, it is not left over when the
    /// run ends, and an LP that waits for it waits for ever.
    fn send(&mut self, destination: LpId, delay: Nanos, message: M) {
        self.send_with_priority(destination, delay, 0, message);
    }

    /// Like [`Context::send`]; of events of one instant, the smaller priority is handled first.
    fn send_with_priority(&mut self, destination: LpId, delay: Nanos, priority: u32, message: M);

    /// Sends `message` to the LP itself, as [`Context::send`] does, so that it can be taken back: the
    /// time-out of a request, say, whose answer may come first.
    fn schedule(&mut self, delay: Nanos, message: M) -> Handle;

    /// Takes back an event that this LP has scheduled: it is not handled and does not count. What has
    /// happened already, is happening now or was taken back before is left alone. A handle of another
    /// LP ends the run with an error.
    ///
    /// The event keeps its place in memory until its instant.
    fn cancel(&mut self, handle: Handle);

    /// 64 random bits of this LP's stream.
    fn bits(&mut self) -> u64;

    /// A random number in [0, 1).
    fn uniform(&mut self) -> f64 {
        random::unit(self.bits())
    }

    /// A random whole number below `limit`; 0 if that is 0.
    fn below(&mut self, limit: u32) -> u32 {
        random::below(self.bits(), limit)
    }

    /// A random span, exponentially distributed around `mean`.
    fn exponential(&mut self, mean: Nanos) -> Nanos {
        random::exponential(self.uniform(), mean)
    }

    /// Adds `value` to a statistic of this LP.
    fn tally(&mut self, statistic: Statistic, value: f64);

    /// Writes `value` into a series at this instant.
    fn record(&mut self, series: Series, value: f64);

    /// Prints a line, once it is certain that the event happens.
    fn print(&mut self, text: &str);
}

/// The kernel's own part of an LP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Counters {
    /// How many events the LP has sent: the next one's sequence.
    pub(crate) sent: u64,
    /// How many random numbers the LP has drawn.
    pub(crate) drawn: u64,
    /// How many events the LP has handled, rolled back ones not counted.
    pub(crate) handled: u64,
}

/// Where a scheduler takes what a handler does.
pub(crate) trait Port<M>: Log {
    fn post(&mut self, event: Event<M>);
    fn output(&mut self, output: Output);
    fn problem(&mut self, problem: Box<Problem>);
    /// Takes back the pending event that `lp`, which is handled, has sent itself with this `sequence`.
    fn withdraw(&mut self, lp: LpId, sequence: u64);
}

/// One call of a handler.
pub(crate) struct Turn<'a, P> {
    pub(crate) rules: &'a Rules,
    pub(crate) key: EventKey,
    pub(crate) me: LpId,
    pub(crate) group: usize,
    pub(crate) counters: &'a mut Counters,
    pub(crate) port: &'a mut P,
}

impl<P: Log> Log for Turn<'_, P> {
    const KEEPS: bool = P::KEEPS;

    fn word(&mut self, place: Place, word: u64) {
        self.port.word(place, word);
    }

    fn value<T: Send + 'static>(&mut self, place: Place, word: u64, value: T) {
        self.port.value(place, word, value);
    }
}

impl<P> Turn<'_, P> {
    /// Sends `message`; gives its key, or none if it may not be sent.
    #[inline]
    fn post<M>(
        &mut self,
        destination: LpId,
        delay: Nanos,
        priority: u32,
        message: M,
    ) -> Option<EventKey>
    where
        P: Port<M>,
    {
        if destination != self.me
            && let Err(problem) = self.rules.permits(self.me, self.group, destination, delay)
        {
            self.port.problem(problem);
            return None;
        }
        let depth = if delay == Nanos::ZERO { self.key.depth + 1 } else { 0 };
        if depth > self.rules.steps_max {
            self.port.problem(endless(self, destination));
            return None;
        }
        let key = EventKey {
            time: self.key.time + delay,
            depth,
            priority,
            source: self.me,
            sequence: self.counters.sent,
        };
        self.counters.sent += 1;
        if key.time < SimTime::END {
            self.port.post(Event::new(key, destination, message));
        }
        Some(key)
    }
}

impl<M, P: Port<M>> Context<M> for Turn<'_, P> {
    fn me(&self) -> LpId {
        self.me
    }

    fn event(&self) -> EventKey {
        self.key
    }

    fn send_with_priority(&mut self, destination: LpId, delay: Nanos, priority: u32, message: M) {
        self.post(destination, delay, priority, message);
    }

    fn schedule(&mut self, delay: Nanos, message: M) -> Handle {
        // What may not be sent ends the run: its handle stands for this event, which is not to come.
        Handle(self.post(self.me, delay, 0, message).unwrap_or(self.key))
    }

    fn cancel(&mut self, handle: Handle) {
        let Handle(key) = handle;
        if key.source != self.me {
            self.port.problem(Box::new(Problem::ForeignHandle { owner: key.source }));
        } else if key > self.key && key.time < SimTime::END {
            self.port.withdraw(self.me, key.sequence);
        }
    }

    fn bits(&mut self) -> u64 {
        let counter = self.counters.drawn;
        self.counters.drawn += 1;
        random::draw(random::stream(self.rules.seed, self.me.get()), counter)
    }

    fn tally(&mut self, statistic: Statistic, value: f64) {
        let statistics = &self.rules.statistics;
        let Some(declared) = statistics.get(usize::from(statistic.0)) else {
            let count = statistics.len();
            self.port.problem(Box::new(Problem::UnknownStatistic { count }));
            return;
        };
        if declared.group == self.group {
            if self.key.time < self.rules.statistics_from {
                return;
            }
            self.port.output(Output::Tally { statistic: statistic.0, value });
        } else {
            self.port.problem(Box::new(Problem::ForeignStatistic {
                statistic: declared.name.clone(),
                group: self.rules.group_name(declared.group).to_owned(),
            }));
        }
    }

    fn record(&mut self, series: Series, value: f64) {
        let count = self.rules.series.len();
        if usize::from(series.0) < count {
            self.port.output(Output::Record { series: series.0, value });
        } else {
            self.port.problem(Box::new(Problem::UnknownSeries { count }));
        }
    }

    fn print(&mut self, text: &str) {
        self.port.output(Output::Print(text.into()));
    }
}

#[cold]
fn endless<P>(turn: &Turn<'_, P>, destination: LpId) -> Box<Problem> {
    let rules = turn.rules;
    Box::new(Problem::Endless {
        steps: rules.steps_max,
        source_lp: turn.me,
        from: rules.group_name(turn.group).to_owned(),
        destination,
        to: rules.group_name(rules.group_of(destination)).to_owned(),
    })
}
