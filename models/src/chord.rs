//! Look-ups in a ring of the peer-to-peer protocol Chord.
//!
//! "Chord: A Scalable Peer-to-peer Lookup Service for Internet Applications" (Stoica, Morris, Karger,
//! Kaashoek, Balakrishnan, SIGCOMM 2001). Every node has an identifier on a circle of 2^64, and a key
//! belongs to its successor, the first node at or after it. A node knows its own successor and,
//! as fingers, the successors of its identifier plus every power of two. A look-up goes from node to
//! node, each time to the finger that comes closest before the key, until it is at the node just
//! before the key, whose successor the key belongs to. Each such step at least halves the distance, and
//! the paper finds `(log2 N) / 2` steps in the mean; that is what a run is held against.
//!
//! The ring stands when a run begins, and no node joins or leaves. Each node begins look-ups of keys
//! drawn evenly from the circle at random instants (a Poisson process).
//!
//! # Events
//!
//! A look-up that takes `h` steps is, recursively, `h` messages from node to node and one with the
//! answer, iteratively `h` questions and `h` answers; one that its own node can answer is none. Beside
//! these, a node has an event for each look-up that it begins. The least delay of the links is what a
//! conservative scheduler can look ahead.

use std::collections::BTreeMap;
use std::sync::Arc;

use meikyo_sim::{
    Context, Group, Line, LineContent, Lp, LpId, Model, Observer, Options, Progress, RunError,
    Series, Statistic, run_built,
};
use meikyo_undo::{Cell, List, fields};
use meikyo_units::{Nanos, SimTime};

use crate::completions::count_f64;
use crate::parameters::{About, Contradiction, Parameters, ScenarioModel, choice};
use crate::phold::chained;
use crate::report::{Figure, Report, report};

/// What a Chord ring is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chord {
    /// Nodes, at least 2: a node has a successor other than itself.
    pub nodes: u32,
    /// Where on the circle they are.
    pub identifiers: Identifiers,
    /// Who asks the next node.
    pub routing: Routing,
    /// Look-ups that each node starts.
    pub lookups: u32,
    /// Mean time between two look-ups of a node.
    pub interarrival: Nanos,
    /// Minimum delay of a message.
    pub delay_min: Nanos,
    /// Mean delay of a message, exponentially distributed above the minimum.
    pub delay: Nanos,
    /// What random numbers follow from, and the identifiers if they are hashed.
    pub seed: u64,
    /// Whether nodes keep what they found ([`ChordNode::found`]), 24 bytes for each look-up.
    pub keeps_found: bool,
}

/// Where on the circle nodes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identifiers {
    /// Anywhere, by a hash of the node's number and the seed; no two nodes are at the same place.
    Hashed,
    /// At equal distances, rounded down, in the order of their numbers.
    Even,
}

/// Who asks the next node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// Each node on the way hands the look-up on, and the last one answers the first.
    Recursive,
    /// The node that began the look-up asks every other one by itself.
    Iterative,
}

choice!(Identifiers { Hashed = "hashed", Even = "even" });
choice!(Routing { Recursive = "recursive", Iterative = "iterative" });

/// A look-up on its way.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Lookup {
    /// The node that began it.
    from: LpId,
    /// The place on the circle that is looked up.
    key: u64,
    /// When its first node began it.
    since: SimTime,
    /// Steps from node to node so far.
    hops: u32,
}

/// What nodes tell each other and themselves.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum ChordMessage {
    /// It is time for a node to begin a look-up.
    Begin,
    /// A node is asked whom the key belongs to.
    Asked(Lookup),
    /// The asked node knows one that is closer to the key.
    Closer(Lookup, LpId),
    /// The asked node knows that the key belongs to this one.
    Belongs(Lookup, LpId),
}

/// What a look-up found, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Found {
    /// The place on the circle that was looked up.
    pub key: u64,
    /// The node that the key belongs to.
    pub node: LpId,
    /// Steps from node to node that it took.
    pub hops: u32,
}

/// A node that another one knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Neighbour {
    identifier: u64,
    lp: LpId,
}

/// What all nodes of a run have in common.
#[derive(Clone, Debug, PartialEq)]
struct Plan {
    chord: Chord,
    hops: Statistic,
    latency_us: Statistic,
    hops_series: Series,
    latency_series: Series,
}

/// A node of the ring.
#[derive(Clone, Debug, PartialEq)]
pub struct ChordNode {
    plan: Arc<Plan>,
    identifier: u64,
    /// The different fingers in the order of the circle; the first is the successor.
    fingers: Arc<[Neighbour]>,
    /// Look-ups that it has begun so far.
    begun: Cell<u32>,
    /// Look-ups that it has the answer of.
    ended: Cell<u32>,
    /// Messages that it sent to other nodes.
    sent: Cell<u64>,
    /// A digest of all answers, in the order in which they came.
    answers: Cell<u64>,
    /// When the last answer came.
    last: Cell<SimTime>,
    found: List<Found>,
}
fields!(ChordNode { begun, ended, sent, answers, last, found });

/// What a node knows of a key.
enum Step {
    /// This node is closer to the key.
    Closer(LpId),
    /// The key belongs to this node.
    Belongs(LpId),
}

impl ChordNode {
    /// Its place on the circle.
    pub fn identifier(&self) -> u64 {
        self.identifier
    }

    /// What its look-ups found, in the order in which they ended, if [`Chord::keeps_found`].
    pub fn found(&self) -> &[Found] {
        self.found.as_slice()
    }

    /// `find_successor` of the paper, as far as this node can say.
    fn next_step(&self, key: u64) -> Step {
        // How far after this node something is on the circle; the node itself comes last.
        let after = |identifier: u64| identifier.wrapping_sub(self.identifier).wrapping_sub(1);
        let before_key = |finger: &Neighbour| after(finger.identifier) < after(key);
        match self.fingers.partition_point(before_key).checked_sub(1) {
            None => Step::Belongs(self.fingers[0].lp),
            Some(closest) => Step::Closer(self.fingers[closest].lp),
        }
    }

    fn begin_lookup(&mut self, context: &mut impl Context<ChordMessage>) {
        let begun = self.begun.get() + 1;
        self.begun.set(context, begun);
        if begun < self.plan.chord.lookups {
            let pause = context.exponential(self.plan.chord.interarrival);
            context.send(context.me(), pause, ChordMessage::Begin);
        }
        let (from, key, since) = (context.me(), context.bits(), context.now());
        let lookup = Lookup { from, key, since, hops: 0 };
        match self.next_step(key) {
            Step::Closer(next) => self.ask_next(lookup, next, context),
            Step::Belongs(node) => self.end_lookup(lookup, node, context),
        }
    }

    fn ask_next(&mut self, lookup: Lookup, next: LpId, context: &mut impl Context<ChordMessage>) {
        let lookup = Lookup { hops: lookup.hops + 1, ..lookup };
        self.send_message(next, ChordMessage::Asked(lookup), context);
    }

    fn answer_lookup(&mut self, lookup: Lookup, context: &mut impl Context<ChordMessage>) {
        match (self.next_step(lookup.key), self.plan.chord.routing) {
            (Step::Belongs(node), Routing::Recursive | Routing::Iterative) => {
                self.send_message(lookup.from, ChordMessage::Belongs(lookup, node), context);
            }
            (Step::Closer(next), Routing::Recursive) => self.ask_next(lookup, next, context),
            (Step::Closer(next), Routing::Iterative) => {
                self.send_message(lookup.from, ChordMessage::Closer(lookup, next), context);
            }
        }
    }

    fn end_lookup(&mut self, lookup: Lookup, node: LpId, context: &mut impl Context<ChordMessage>) {
        let Lookup { key, since, hops, .. } = lookup;
        let now = context.now();
        self.ended.add(context, 1);
        self.last.set(context, now);
        let answers = chained(self.answers.get(), key ^ u64::from(node.get()));
        self.answers.set(context, answers);
        if self.plan.chord.keeps_found {
            self.found.push(context, Found { key, node, hops });
        }
        let latency_us = now.since(since).as_secs_f64() * 1e6;
        context.tally(self.plan.hops, f64::from(hops));
        context.tally(self.plan.latency_us, latency_us);
        context.record(self.plan.hops_series, f64::from(hops));
        context.record(self.plan.latency_series, latency_us);
    }

    fn send_message(
        &mut self,
        to: LpId,
        message: ChordMessage,
        context: &mut impl Context<ChordMessage>,
    ) {
        self.sent.add(context, 1);
        let Chord { delay_min, delay, .. } = self.plan.chord;
        let above = delay.saturating_sub(delay_min);
        let waits = if above > Nanos::ZERO { context.exponential(above) } else { Nanos::ZERO };
        context.send(to, delay_min + waits, message);
    }
}

impl Lp for ChordNode {
    type Message = ChordMessage;

    fn start(&mut self, context: &mut impl Context<ChordMessage>) {
        let first = context.exponential(self.plan.chord.interarrival);
        context.send(context.me(), first, ChordMessage::Begin);
    }

    fn handle(&mut self, message: ChordMessage, context: &mut impl Context<ChordMessage>) {
        match message {
            ChordMessage::Begin => self.begin_lookup(context),
            ChordMessage::Asked(lookup) => self.answer_lookup(lookup, context),
            ChordMessage::Closer(lookup, next) => self.ask_next(lookup, next, context),
            ChordMessage::Belongs(lookup, node) => self.end_lookup(lookup, node, context),
        }
    }

    fn waiting(&self) -> Option<String> {
        let open = self.begun.get() - self.ended.get();
        (open > 0).then(|| format!("the answers of {open} look-ups"))
    }
}

impl Chord {
    /// The series that a run records, one value for each look-up when it ends.
    pub const SERIES: [&'static str; 2] = ["hops", "latency_us"];
    /// The group that all nodes are in.
    pub const GROUP: &'static str = "nodes";

    /// The ring as a model of the simulation kernel.
    pub fn model(&self) -> Model<ChordNode> {
        let mut model = Model::new(self.seed);
        let nodes = model.group(Self::GROUP, self.nodes);
        model.link(nodes, nodes, self.delay_min);
        let plan = Arc::new(Plan {
            chord: *self,
            hops: model.statistic(nodes, "hops"),
            latency_us: model.statistic(nodes, "latency_us"),
            hops_series: model.series(Self::SERIES[0]),
            latency_series: model.series(Self::SERIES[1]),
        });
        let ring = self.ring(nodes);
        model.fill(nodes, |me| {
            let identifier = self.identifier(me.get());
            ChordNode {
                plan: Arc::clone(&plan),
                identifier,
                fingers: fingers(&ring, identifier),
                begun: Cell::default(),
                ended: Cell::default(),
                sent: Cell::default(),
                answers: Cell::default(),
                last: Cell::default(),
                found: List::default(),
            }
        });
        model
    }

    /// All nodes in the order of the circle; their group is the only one, so that their LPs have their
    /// numbers.
    fn ring(&self, nodes: Group) -> Vec<Neighbour> {
        let mut ring: Vec<_> =
            nodes.lps().map(|lp| Neighbour { identifier: self.identifier(lp.get()), lp }).collect();
        ring.sort_unstable_by_key(|node| node.identifier);
        ring
    }

    /// Where on the circle a node is.
    fn identifier(&self, number: u32) -> u64 {
        match self.identifiers {
            // Both steps are one to one, so that no two nodes share a place.
            Identifiers::Hashed => {
                scattered(scattered(self.seed ^ u64::from(u32::MAX)) ^ u64::from(number))
            }
            Identifiers::Even => {
                let place = (u128::from(number) << u64::BITS) / u128::from(self.nodes);
                u64::try_from(place).expect("a node's number is below the number of nodes")
            }
        }
    }

    /// What the paper finds for the mean number of steps of a look-up.
    pub fn hops_mean_expected(&self) -> f64 {
        f64::from(self.nodes).log2() / 2.0
    }

    /// Runs the look-ups until the last one has ended, or to the end of `options`.
    ///
    /// # Errors
    /// Where the kernel refuses; see [`RunError`].
    pub fn run(&self, options: &Options, observer: &mut dyn Observer) -> Result<Report, RunError> {
        let mut ended = Ended::new(observer, options.statistics_from);
        let outcome = run_built(|| self.model(), options, &mut ended)?;
        let nodes = &outcome.lps;
        let end = nodes.iter().map(|node| node.last.get()).max().unwrap_or(SimTime::START);
        let messages: u64 = nodes.iter().map(|node| node.sent.get()).sum();
        let [hops, latency_us] = [0, 1].map(|at: usize| outcome.statistics[at].total());
        let mut figures = Vec::new();
        let mut add = |name, value: Option<f64>| {
            figures.extend(value.map(|value| Figure { name, value }));
        };
        add("lookups_total", Some(count_f64(hops.count)));
        add("hops_mean", hops.mean());
        add("hops_mean_expected", Some(self.hops_mean_expected()));
        add("hops_p99", ended.hops_p99());
        add("latency_us_mean", latency_us.mean());
        add("latency_us_p99", outcome.statistics[1].quantile(0.99));
        add("messages_total", Some(count_f64(messages)));
        let report = report("chord", outcome, &[(Self::GROUP, self.nodes)], |node, digest| {
            digest.word(u64::from(node.begun.get()));
            digest.word(u64::from(node.ended.get()));
            digest.word(node.sent.get());
            digest.word(node.answers.get());
            digest.word(node.last.get().as_nanos());
        });
        Ok(Report { end, figures, ..report })
    }
}

impl ScenarioModel for Chord {
    fn about() -> About {
        About {
            name: "chord",
            doc: "Look-ups in a ring of the peer-to-peer protocol Chord (Stoica et al. 2001).",
            until: None,
        }
    }

    fn declare(parameters: &mut Parameters<'_>) -> Self {
        Self {
            nodes: parameters.count("nodes", 2..=1_000_000, 1024, "Number of nodes."),
            identifiers: parameters
                .choice(
                    "identifiers",
                    Identifiers::Hashed,
                    "Positions of the nodes on the circle: hashed, or at equal distances.",
                )
                .get(),
            routing: parameters
                .choice(
                    "routing",
                    Routing::Recursive,
                    "Who asks the next node: the node that was asked last, or the one that \
                     started the look-up.",
                )
                .get(),
            lookups: parameters.count(
                "lookups",
                1..=1_000_000_000,
                50,
                "Look-ups that each node starts.",
            ),
            interarrival: parameters.positive_span(
                "interarrival",
                Nanos::from_secs(1),
                "Mean time between two look-ups of a node.",
            ),
            delay_min: parameters.span(
                "delay_min",
                Nanos::from_millis(10),
                "Minimum delay of a message.",
            ),
            delay: parameters.positive_span(
                "delay",
                Nanos::from_millis(50),
                "Mean delay of a message, exponentially distributed above the minimum.",
            ),
            seed: parameters.seed(),
            keeps_found: false,
        }
    }

    fn contradictions(&self) -> Vec<Contradiction> {
        if self.delay >= self.delay_min {
            return Vec::new();
        }
        let text = format!("{} is above the mean of {}", self.delay_min, self.delay);
        vec![Contradiction { key: "delay_min", text }]
    }

    fn series_names(&self) -> Vec<&'static str> {
        Self::SERIES.to_vec()
    }

    fn lp_name(&self, lp: LpId) -> String {
        format!("node {lp}")
    }

    fn run(&self, options: &Options, observer: &mut dyn Observer) -> Result<Report, RunError> {
        Self::run(self, options, observer)
    }
}

/// The fingers of the node at `identifier`, each once, in the order of the circle from there.
///
/// Powers of two that lead to the same node are skipped at once: of `N` nodes, about `log2 N` remain.
fn fingers(ring: &[Neighbour], identifier: u64) -> Arc<[Neighbour]> {
    let mut fingers = Vec::new();
    let mut power = 0;
    while let Some(distance) = 1_u64.checked_shl(power) {
        let finger = successor(ring, identifier.wrapping_add(distance));
        let reached = finger.identifier.wrapping_sub(identifier);
        if reached == 0 {
            // Nobody is farther away: the circle leads back to the node itself.
            break;
        }
        fingers.push(finger);
        power = u64::BITS - reached.leading_zeros();
    }
    fingers.into()
}

/// The first node at or after a place on the circle.
fn successor(ring: &[Neighbour], place: u64) -> Neighbour {
    let at = ring.partition_point(|node| node.identifier < place);
    ring[at % ring.len()]
}

/// Bits of a number, well mixed and one to one: the finaliser of `MurmurHash3` (Appleby).
fn scattered(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    let bits = (bits ^ (bits >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    bits ^ (bits >> 33)
}

/// Counts look-ups that ended by their hops, on their way to another observer.
struct Ended<'a> {
    inner: &'a mut dyn Observer,
    /// Look-ups by their hops, as bits: numbers that are not negative have the order of their bits.
    hops: BTreeMap<u64, u64>,
    /// Before this instant none are counted.
    from: SimTime,
}

impl<'a> Ended<'a> {
    fn new(inner: &'a mut dyn Observer, from: SimTime) -> Self {
        Self { inner, hops: BTreeMap::new(), from }
    }

    /// The least number of hops that 99 of 100 look-ups do not exceed; none without look-ups.
    fn hops_p99(&self) -> Option<f64> {
        let all: u64 = self.hops.values().sum();
        let mut within = 0;
        let (bits, _) = self.hops.iter().find(|(_, count)| {
            within += **count;
            within * 100 >= all * 99
        })?;
        Some(f64::from_bits(*bits))
    }
}

impl Observer for Ended<'_> {
    fn lines(&mut self, lines: &[Line]) {
        for line in lines {
            if let LineContent::Value { series, value } = &line.content
                && series.index() == 0
                && line.key.time >= self.from
            {
                *self.hops.entry(value.to_bits()).or_default() += 1;
            }
        }
        self.inner.lines(lines);
    }

    fn progress(&mut self, progress: &Progress) {
        self.inner.progress(progress);
    }
}
