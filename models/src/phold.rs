//! PHOLD: every LP begins with some events, and each event sends one on.
//!
//! The load that kernels are compared by (Fujimoto 1990), as ROSS has it: the time stamp of each
//! event is the lookahead and an exponentially distributed span after the one before, and a part of
//! the events goes to an LP drawn from all of them. The number of pending events never changes.

use std::sync::Arc;

use meikyo_sim::{
    Context, EventKey, Line, LineContent, Lp, LpId, Model, Observer, Options, Progress, RunError,
    Series, run_built,
};
use meikyo_undo::{Cell, fields};
use meikyo_units::{Nanos, SimTime};

use crate::parameters::{About, Contradiction, Parameters, ScenarioModel};
use crate::report::{Report, report};

/// What a PHOLD run is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phold {
    /// Number of LPs.
    pub lps: u32,
    /// Events that each LP starts with.
    pub events_per_lp: u32,
    /// The probability, from 0 to 1, that an event goes to an LP drawn from all.
    pub remote: f64,
    /// The least delay from an event to the one that it sends.
    pub lookahead: Nanos,
    /// The mean delay, including the lookahead.
    pub mean: Nanos,
    /// Steps of a dependent computation in each event.
    pub work: u32,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Whether [`Phold::SERIES`] is given out.
    pub series: bool,
}

/// An LP of the load.
#[derive(Clone, Debug, PartialEq)]
pub struct Holder {
    phold: Arc<Phold>,
    series: Option<Series>,
    events: Cell<u64>,
    digest: Cell<u64>,
}
fields!(Holder { events, digest });

impl Phold {
    /// The series of the LPs: how many events they handled in each span of the mean delay, at its begin.
    pub const SERIES: &'static str = "events";
    /// The group that all LPs are in.
    pub const GROUP: &'static str = "holders";

    /// The load as a model of the simulation kernel.
    pub fn model(&self) -> Model<Holder> {
        let mut model = Model::new(self.seed);
        let group = model.group(Self::GROUP, self.lps);
        model.link(group, group, self.lookahead);
        let phold = Arc::new(*self);
        let series = self.series.then(|| model.series(Self::SERIES));
        model.fill(group, |_| Holder {
            phold: Arc::clone(&phold),
            series,
            events: Cell::new(0),
            digest: Cell::new(0),
        });
        model
    }

    /// Runs the load. There is no end to it but the one that `options` sets.
    ///
    /// # Errors
    /// Where the kernel refuses; see [`RunError`].
    pub fn run(&self, options: &Options, observer: &mut dyn Observer) -> Result<Report, RunError> {
        let mut spans = Spans::new(observer, self.mean);
        let outcome = run_built(|| self.model(), options, &mut spans)?;
        spans.give_out();
        let report = report("phold", outcome, &[(Self::GROUP, self.lps)], |holder, digest| {
            digest.word(holder.events());
            digest.word(holder.digest());
        });
        Ok(Report { end: options.until, ..report })
    }

    fn delay(&self, context: &mut impl Context<u64>) -> Nanos {
        self.lookahead + context.exponential(self.mean.saturating_sub(self.lookahead))
    }
}

impl Holder {
    /// How many events it has handled.
    pub fn events(&self) -> u64 {
        self.events.get()
    }

    /// A digest of the time, the source and the sequence of every event, in their order.
    pub fn digest(&self) -> u64 {
        self.digest.get()
    }
}

impl Lp for Holder {
    /// The eight bytes that a PHOLD event carries.
    type Message = u64;

    fn start(&mut self, context: &mut impl Context<u64>) {
        for _ in 0..self.phold.events_per_lp {
            let delay = self.phold.delay(context);
            context.send(context.me(), delay, 0);
        }
    }

    fn handle(&mut self, message: u64, context: &mut impl Context<u64>) {
        let key = context.event();
        self.events.add(context, 1);
        if let Some(series) = self.series {
            context.record(series, 1.0);
        }
        let event =
            key.time.as_nanos() ^ key.sequence.rotate_left(40) ^ u64::from(key.source.get());
        self.digest.set(context, chained(self.digest.get(), event));
        let message = worked(message, self.phold.work);
        let destination = if context.uniform() < self.phold.remote {
            LpId::new(context.below(self.phold.lps))
        } else {
            context.me()
        };
        let delay = self.phold.delay(context);
        context.send(destination, delay, message);
    }
}

impl ScenarioModel for Phold {
    fn about() -> About {
        About {
            name: "phold",
            doc: "PHOLD, the standard benchmark of simulation kernels: every event sends another \
            one.",
            until: Some(Nanos::from_secs(100)),
        }
    }

    fn declare(parameters: &mut Parameters<'_>) -> Self {
        Self {
            lps: parameters.count("lps", 1..=1 << 31, 1024, "Number of LPs."),
            events_per_lp: parameters.count(
                "events_per_lp",
                1..=1_000_000,
                8,
                "Events that each LP starts with.",
            ),
            remote: parameters.share(
                "remote",
                0.1,
                "Share of events that go to an LP drawn from all LPs.",
            ),
            lookahead: parameters.span("lookahead", Nanos::from_millis(100), "The minimum delay."),
            mean: parameters.positive_span(
                "mean",
                Nanos::from_secs(1),
                "The mean delay, including the lookahead.",
            ),
            work: parameters.count(
                "work",
                0..=1_000_000_000,
                0,
                "Steps of a dependent computation in each event.",
            ),
            seed: parameters.seed(),
            series: parameters.all_series(),
        }
    }

    fn contradictions(&self) -> Vec<Contradiction> {
        if self.mean >= self.lookahead {
            return Vec::new();
        }
        let text = format!("{} is above the mean of {}", self.lookahead, self.mean);
        vec![Contradiction { key: "lookahead", text }]
    }

    fn series_names(&self) -> Vec<&'static str> {
        vec![Self::SERIES]
    }

    fn series_source(&self, _lp: LpId) -> String {
        Self::GROUP.to_owned()
    }

    fn lp_name(&self, lp: LpId) -> String {
        format!("holder {lp}")
    }

    fn run(&self, options: &Options, observer: &mut dyn Observer) -> Result<Report, RunError> {
        Self::run(self, options, observer)
    }
}

/// Sums the values of a series up to one a span, on their way to another observer.
struct Spans<'a> {
    inner: &'a mut dyn Observer,
    span: Nanos,
    /// The sum of the newest span, at the begin of that span.
    current: Option<Line>,
}

impl<'a> Spans<'a> {
    fn new(inner: &'a mut dyn Observer, span: Nanos) -> Self {
        Self { inner, span: span.max(Nanos::new(1)), current: None }
    }

    /// Hands on what is summed up so far.
    fn give_out(&mut self) {
        if let Some(line) = self.current.take() {
            self.inner.lines(&[line]);
        }
    }

    fn add(&mut self, line: &Line, value: f64) {
        let time = line.key.time.as_nanos();
        let begin = SimTime::from_nanos(time - time % self.span.get());
        if let Some(Line { key, content: LineContent::Value { value: sum, .. }, .. }) =
            &mut self.current
            && key.time == begin
        {
            *sum += value;
            return;
        }
        self.give_out();
        self.current = Some(Line { key: EventKey { time: begin, ..line.key }, ..line.clone() });
    }
}

impl Observer for Spans<'_> {
    fn lines(&mut self, lines: &[Line]) {
        for line in lines {
            match line.content {
                LineContent::Value { value, .. } => self.add(line, value),
                LineContent::Text(_) => self.inner.lines(std::slice::from_ref(line)),
            }
        }
    }

    fn progress(&mut self, progress: &Progress) {
        self.inner.progress(progress);
    }
}

/// `digest` and one more event.
pub fn chained(digest: u64, event: u64) -> u64 {
    (digest ^ event).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
}

/// `steps` dependent steps of xorshift64 (Marsaglia 2003) from `message`.
pub fn worked(message: u64, steps: u32) -> u64 {
    if steps == 0 {
        return message;
    }
    (0..steps).fold(message | 1, |bits, _| {
        let bits = bits ^ (bits << 13);
        let bits = bits ^ (bits >> 7);
        bits ^ (bits << 17)
    })
}
