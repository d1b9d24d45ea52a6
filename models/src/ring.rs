//! A ring of switches on [`crate::simplenet`]: messages that never end their travels.
//!
//! Each message goes the shorter way round to a switch drawn from the others (clockwise where both are
//! as long), is stored and forwarded at every switch, and then goes on to another one. Nothing is
//! lost, so the number of messages never changes; how many hops a message takes has a closed form.

use meikyo_sim::{
    Context, Lp, LpId, Model, Observer, Options, RunError, Series, Statistic, run_built,
};
use meikyo_undo::{Cell, fields};
use meikyo_units::{BitsPerSecond, Bytes, Nanos, SimTime};

use crate::completions::{Completions, Counting, Window, count_f64};
use crate::parameters::{About, IdleSeed, Parameters, ScenarioModel};
use crate::report::{Figure, Report, Resource, busiest, report};
use crate::simplenet::{Interface, Link, Passage};

/// What a ring is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ring {
    /// Switches, at least 2, each joined to the ones before and after it.
    pub switches: u32,
    /// Messages that start at each switch.
    pub messages_per_switch: u32,
    /// How often each message is sent on to another switch.
    pub journeys: u32,
    /// The size of each message.
    pub size: Bytes,
    /// What the links between neighbours are like.
    pub link: Link,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// A message on its way.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Traveller {
    to: LpId,
    since: SimTime,
    hops: u32,
    journeys_left: u32,
}

/// What happens at a switch.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum RingEvent {
    /// A message begins to arrive at a port.
    Begins(usize, Traveller),
    /// A message is there as a whole.
    Whole(Traveller),
}

/// A switch of the ring.
#[derive(Clone, Debug, PartialEq)]
pub struct RingSwitch {
    ring: Ring,
    passage: Passage,
    hops: Statistic,
    travels: Series,
    /// Clockwise, and the other way.
    ports: [Interface; 2],
    arrived: Cell<u64>,
}
fields!(RingSwitch { ports, arrived });

impl RingSwitch {
    /// Sends a message to a switch drawn from the others.
    fn depart(&mut self, at: SimTime, journeys_left: u32, context: &mut impl Context<RingEvent>) {
        let away = 1 + context.below(self.ring.switches - 1);
        let to = LpId::new((context.me().get() + away) % self.ring.switches);
        self.forward(Traveller { to, since: at, hops: 0, journeys_left }, context);
    }

    fn forward(&mut self, traveller: Traveller, context: &mut impl Context<RingEvent>) {
        let (switches, me) = (self.ring.switches, context.me().get());
        let ahead = (traveller.to.get() + switches - me) % switches;
        let (port, step) = if ahead <= switches / 2 { (0, 1) } else { (1, switches - 1) };
        let now = context.now();
        let begins = self.ports[port].send(context, now, self.passage);
        let neighbour = LpId::new((me + step) % switches);
        let traveller = Traveller { hops: traveller.hops + 1, ..traveller };
        // What leaves clockwise comes in at the other port.
        context.send(neighbour, begins.since(now), RingEvent::Begins(1 - port, traveller));
    }
}

impl Lp for RingSwitch {
    type Message = RingEvent;

    fn start(&mut self, context: &mut impl Context<RingEvent>) {
        for _ in 0..self.ring.messages_per_switch {
            self.depart(SimTime::START, self.ring.journeys - 1, context);
        }
    }

    fn handle(&mut self, event: RingEvent, context: &mut impl Context<RingEvent>) {
        let now = context.now();
        match event {
            RingEvent::Begins(port, traveller) => {
                let whole = self.ports[port].receive(context, now, self.passage.transmission);
                context.send(context.me(), whole.since(now), RingEvent::Whole(traveller));
            }
            RingEvent::Whole(traveller) if traveller.to == context.me() => {
                self.arrived.add(context, 1);
                context.tally(self.hops, f64::from(traveller.hops));
                context.record(self.travels, now.since(traveller.since).as_secs_f64() * 1e6);
                if let Some(left) = traveller.journeys_left.checked_sub(1) {
                    self.depart(now, left, context);
                }
            }
            RingEvent::Whole(traveller) => self.forward(traveller, context),
        }
    }
}

impl Ring {
    /// The series that a run records.
    pub const SERIES: &'static str = "travel_us";

    /// The ring as a model of the simulation kernel.
    pub fn model(&self) -> Model<RingSwitch> {
        let mut model = Model::new(self.seed);
        let switches = model.group("switches", self.switches);
        model.link(switches, switches, self.link.start_up);
        let hops = model.statistic(switches, "hops");
        let travels = model.series(Self::SERIES);
        let passage = self.link.passage(self.size);
        model.fill(switches, |_| RingSwitch {
            ring: *self,
            passage,
            hops,
            travels,
            ports: [Interface::default(), Interface::default()],
            arrived: Cell::default(),
        });
        model
    }

    /// The mean number of hops clockwise and the other way, each over all journeys.
    fn hops_expected(&self) -> [f64; 2] {
        let others = f64::from(self.switches - 1);
        // The sum of 1 to the longest way.
        let sum = |longest: u32| f64::from(longest) * f64::from(longest + 1) / 2.0 / others;
        [sum(self.switches / 2), sum((self.switches - 1) / 2)]
    }

    /// Journeys a second that are possible: no more than without waiting, and no more than the links
    /// of the busier direction carry.
    fn bound_per_s(&self) -> f64 {
        let passage = self.link.passage(self.size);
        let hop = passage.occupancy().as_secs_f64();
        let [clockwise, back] = self.hops_expected();
        let messages = f64::from(self.switches) * f64::from(self.messages_per_switch);
        let carried = f64::from(self.switches) / (clockwise.max(back) * hop);
        carried.min(messages / ((clockwise + back) * hop))
    }

    /// The rate over the middle of all journeys, which leaves out how a run begins and how its messages
    /// end one after another; that of the whole run where there are too few.
    fn journeys_per_s(&self, all: &Completions) -> Option<f64> {
        let hop = self.link.passage(self.size).occupancy();
        let (from, to) = all.middle()?;
        let steady = all.steady_as_given(Window { from, to, round: hop, service: hop });
        steady.map(|steady| steady.per_s).or_else(|| all.mean_per_s(hop))
    }

    /// Runs the ring until all journeys have ended, or to the end of `options`.
    ///
    /// # Errors
    /// Where the kernel refuses; see [`RunError`].
    pub fn run(&self, options: &Options, observer: &mut dyn Observer) -> Result<Report, RunError> {
        let mut counting = Counting::new(observer, vec![0]).values_from(options.statistics_from);
        let outcome = run_built(|| self.model(), options, &mut counting)?;
        let ports = || outcome.lps.iter().flat_map(|switch| &switch.ports);
        let end = ports().map(Interface::idle).max().unwrap_or(SimTime::START).min(options.until);
        let busy = (0_u32..).zip(&outcome.lps).flat_map(|(place, switch)| {
            let kinds = ["clockwise port of switch", "other port of switch"];
            let times = switch.ports.each_ref().map(|port| port.sending(end));
            let place = Some(place);
            std::array::from_fn::<(Nanos, Resource), 2, _>(|at| {
                (times[at], Resource { kind: kinds[at], place })
            })
        });
        let busiest = busiest(busy, end);
        let mut figures = Vec::new();
        let mut add = |name, value: Option<f64>| {
            figures.extend(value.map(|value| Figure { name, value }));
        };
        let hops = outcome.statistics[0].total();
        let mean = (hops.count > 0).then(|| hops.sum / count_f64(hops.count));
        add("journeys_per_s", self.journeys_per_s(&counting.all));
        add("bound_per_s", Some(self.bound_per_s()));
        add("journeys_total", Some(count_f64(hops.count)));
        add("hops_mean", mean);
        add("hops_mean_expected", Some(self.hops_expected().iter().sum()));
        add("travel_us_p50", counting.values.quantile(0.5));
        add("travel_us_p99", counting.values.quantile(0.99));
        let bottleneck = busiest.first().cloned();
        let report = report("ring", outcome, &[("switches", self.switches)], |switch, digest| {
            switch.ports.iter().for_each(|port| port.add_to(digest));
            digest.word(switch.arrived.get());
        });
        Ok(Report { end, figures, bottleneck, busiest, ..report })
    }
}

impl ScenarioModel for Ring {
    fn about() -> About {
        About {
            name: "ring",
            doc: "Switches in a ring that repeatedly send messages to each other.",
            until: None,
        }
    }

    fn declare(parameters: &mut Parameters<'_>) -> Self {
        Self {
            switches: parameters.count("switches", 2..=10_000_000, 24, "Number of switches."),
            messages_per_switch: parameters.count(
                "messages_per_switch",
                1..=1_000_000,
                4,
                "Messages that start at each switch.",
            ),
            journeys: parameters.count(
                "journeys",
                1..=4_000_000_000,
                100,
                "How often each message is sent on to another switch.",
            ),
            size: parameters.size("message_size", Bytes::new(1500), "The size of each message."),
            link: Link {
                start_up: parameters.span(
                    "net_startup",
                    Nanos::from_micros(2),
                    "Start-up time of every transmission.",
                ),
                rate: parameters.rate(
                    "bandwidth",
                    BitsPerSecond::GIGABIT,
                    "Rate of the links between neighbours.",
                ),
            },
            seed: parameters.seed(),
        }
    }

    fn idle_seed(&self) -> Option<IdleSeed> {
        let idle = IdleSeed { needs: "more than two switches", keys: &["switches"] };
        (self.switches <= 2).then_some(idle)
    }

    fn series_names(&self) -> Vec<&'static str> {
        vec![Self::SERIES]
    }

    fn lp_name(&self, lp: LpId) -> String {
        format!("switch {lp}")
    }

    fn run(&self, options: &Options, observer: &mut dyn Observer) -> Result<Report, RunError> {
        Self::run(self, options, observer)
    }
}
