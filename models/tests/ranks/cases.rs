//! Models of every kind, each small, and what a run of one says in a line.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use meikyo_models::scenario::Scenario;
use meikyo_sim::{
    Context, Effort, Line, Lp, LpId, Model, Observer, Options, Progress, Ranks, Scheduler,
    run_observed,
};
use meikyo_undo::{Cell, fields};
use meikyo_units::{Nanos, SimTime};

#[path = "../../../sim/tests/it/drawn.rs"]
mod drawn;

/// Seeds of the models that are drawn at random.
const DRAWN: std::ops::Range<u64> = 0..20;

const SCENARIOS: [(&str, &str); 9] = [
    ("phold", "model = \"phold\"\nlps = 96\nevents_per_lp = 4\nremote = 0.3\nuntil = \"20s\"\n"),
    ("queue", "model = \"queue\"\nqueues = 5\nservers = 2\ncustomers = 300\n"),
    ("closed", "model = \"closed\"\njobs = 60\n"),
    ("ring", "model = \"ring\"\nuntil = \"2ms\"\n"),
    ("chord", "model = \"chord\"\nnodes = 48\nlookups = 20\ninterarrival = \"60ms\"\n"),
    ("create", "model = \"metadata\"\nservers = 3\nclients = 20\noperations = 25\n"),
    (
        "mdtest",
        "model = \"metadata\"\nservers = 5\nclients = 12\noperations = 10\nworkload = \"mdtest\"\n\
         directories = \"own\"\ndirectory_servers = 3\nswitches = \"per-port\"\nstore = \"queue\"\n",
    ),
    (
        "mix",
        "model = \"metadata\"\nservers = 4\nclients = 9\noperations = 60\nworkload = \"mix\"\n\
         mix_list = 10\nload = \"open\"\ninterarrival = \"200us\"\nuntil = \"9ms\"\n",
    ),
    (
        "ethernet",
        "model = \"metadata\"\nnetwork = \"ethernet\"\nclients = 8\noperations = 10\nworkload = \"mix\"\n\
         mix_list = 30\nclient_switches = 2\nport_buffer = \"16kB\"\npause = \"off\"\ntcp = \"linux\"\n\
         time_out = \"1ms\"\n",
    ),
];

/// What one run resulted in.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) case: String,
    /// A digest of everything, or the text of an error.
    pub(crate) result: String,
    /// A digest of what was told on the way.
    pub(crate) lines: String,
    /// How it was run; it may differ from run to run.
    pub(crate) effort: Effort,
}

/// A digest of nothing.
pub(crate) fn silence() -> String {
    digest("")
}

/// Every case under `scheduler`.
pub(crate) fn run_all(scheduler: Scheduler, ranks: Ranks) -> Vec<Said> {
    let options = Options { ranks, ..Options::new(scheduler, 1).traced() };
    let drawn = DRAWN.map(|seed| {
        let until = if seed % 4 == 1 { SimTime::from_nanos(700) } else { SimTime::END };
        let options = options.until(until);
        let case = format!("drawn {seed}");
        // Every fourth keeps no log, and is copied before each event.
        if seed % 4 == 3 {
            said(case, drawn::model(seed, drawn::Copied), &options)
        } else {
            said(case, drawn::model(seed, |drawn| drawn), &options)
        }
    });
    let scenarios = SCENARIOS.map(|(name, text)| scenario(name, text, &options));
    let wrong = [Wrong::Panic, Wrong::NoSuchLp, Wrong::TooSoon].map(|wrong| {
        let options = options.until(SimTime::from_nanos(10_000));
        said(format!("{wrong:?}"), ring(wrong, 1), &options)
    });
    drawn.chain(scenarios).chain(wrong).collect()
}

fn said<L: Lp>(case: String, model: Model<L>, options: &Options) -> Said {
    let mut listener = Listener::default();
    let (result, effort) = match run_observed(model, options, &mut listener) {
        Ok(outcome) => {
            let text = format!(
                "{:?} {:?} {:?} {:?} {} {:?}",
                outcome.trace,
                outcome.events_per_lp,
                outcome.lps,
                outcome.statistics,
                outcome.events_left,
                outcome.waiting
            );
            (digest(&text), outcome.effort)
        }
        // The example and the test come to this file by different ways.
        Err(error) => (error.to_string().replace(file!(), "cases.rs"), Effort::default()),
    };
    Said { case, result, lines: listener.digest(), effort }
}

fn scenario(name: &str, text: &str, options: &Options) -> Said {
    let mut listener = Listener::default();
    let mut scenario = Scenario::parse(text, name).expect("the scenarios are right");
    scenario.give_series();
    let report = scenario.run(options, &mut listener).expect("they can be run");
    let result = digest(&format!(
        "{} {} {:?} {:?}",
        report.result_digest, report.events, report.statistics, report.waiting
    ));
    Said { case: name.to_owned(), result, lines: listener.digest(), effort: report.effort }
}

fn digest(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Keeps everything that a run says, in the order in which it says it.
#[derive(Default)]
struct Listener(Vec<Line>);

impl Listener {
    fn digest(&self) -> String {
        if self.0.is_empty() { silence() } else { digest(&format!("{:?}", self.0)) }
    }
}

impl Observer for Listener {
    fn lines(&mut self, lines: &[Line]) {
        self.0.extend_from_slice(lines);
    }
    fn progress(&mut self, _progress: &Progress) {}
}

/// What an LP does when it has seen enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wrong {
    Panic,
    NoSuchLp,
    TooSoon,
}

/// An LP of a ring that hands tokens on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Station {
    wrong: Wrong,
    seen: Cell<u64>,
}
fields!(Station { seen });

const STATIONS: u32 = 6;

impl Lp for Station {
    type Message = u32;

    fn start(&mut self, context: &mut impl Context<u32>) {
        context.send(context.me(), Nanos::new(u64::from(context.me().get())), 0);
    }

    fn handle(&mut self, hops: u32, context: &mut impl Context<u32>) {
        self.seen.add(context, 1);
        let me = context.me();
        let next = LpId::new((me.get() + 1) % STATIONS);
        // Only the last station goes wrong, which lives on the last rank.
        if hops < 40 || me.get() + 1 < STATIONS {
            context.send(next, Nanos::new(10), hops + 1);
            return;
        }
        match self.wrong {
            Wrong::Panic => panic!("hop {hops} is too far"),
            Wrong::NoSuchLp => context.send(LpId::new(77), Nanos::new(10), 0),
            Wrong::TooSoon => context.send(next, Nanos::new(9), 0),
        }
    }
}

/// A model that does something wrong after a while.
pub(crate) fn ring(wrong: Wrong, seed: u64) -> Model<Station> {
    let mut model = Model::new(seed);
    let ring = model.group("ring", STATIONS);
    model.link(ring, ring, Nanos::new(10));
    model.fill(ring, |_| Station { wrong, seen: Cell::new(0) });
    model
}
