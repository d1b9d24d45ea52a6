//! Queues with Poisson arrivals, each on its own.

use meikyo_sim::{
    Context, Lp, LpId, Model, Observer, Options, RunError, Series, Statistic, run_built,
};
use meikyo_undo::{Cell, fields};
use meikyo_units::{Nanos, SimTime};

use crate::analysis::{Limited, OpenQueue};
use crate::completions::count_f64;
use crate::parameters::{About, Contradiction, Parameters, ScenarioModel};
use crate::queueing::Service;
use crate::report::{Figure, Report, report};
use crate::resource::Resource;

/// Queues that customers come to at random instants: M/M/c, M/M/c/K or M/D/c, by Kendall's names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Open {
    /// Queues, independent of each other.
    pub queues: u32,
    /// The mean span between two arrivals at a queue.
    pub interarrival: Nanos,
    /// How long a server works for one customer.
    pub service: Service,
    /// Servers of each queue; a customer waits while all of them are busy.
    pub servers: u32,
    /// The most customers that a queue holds, those in service included; it turns others away. None:
    /// unlimited.
    pub capacity: Option<u32>,
    /// Customers that arrive at each queue.
    pub customers: u32,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Whether [`Open::SERIES`] are given out.
    pub series: bool,
}

/// A queue and its servers.
#[derive(Clone, Debug, PartialEq)]
pub struct Station {
    open: Open,
    wait_us: Statistic,
    /// 1 for a customer who is turned away, 0 for the others; only where that can happen.
    turned_away: Option<Statistic>,
    series: Option<[Series; Open::SERIES.len()]>,
    servers: Resource<SimTime>,
    /// Customers that are still to come.
    coming: Cell<u32>,
    /// When the last one left.
    left: Cell<SimTime>,
}
fields!(Station { servers, coming, left });

/// What happens at a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub enum QueueEvent {
    Arrival,
    Departure,
}

impl Lp for Station {
    type Message = QueueEvent;

    fn start(&mut self, context: &mut impl Context<QueueEvent>) {
        let first = context.exponential(self.open.interarrival);
        context.send(context.me(), first, QueueEvent::Arrival);
    }

    fn handle(&mut self, event: QueueEvent, context: &mut impl Context<QueueEvent>) {
        let now = context.now();
        let served = match event {
            QueueEvent::Arrival => {
                let coming = self.coming.get() - 1;
                self.coming.set(context, coming);
                if coming > 0 {
                    let next = context.exponential(self.open.interarrival);
                    context.send(context.me(), next, QueueEvent::Arrival);
                }
                let full = self.is_full();
                if let Some(turned_away) = self.turned_away {
                    context.tally(turned_away, if full { 1.0 } else { 0.0 });
                }
                if full { None } else { self.servers.acquire(context, now, now) }
            }
            QueueEvent::Departure => {
                self.left.set(context, now);
                self.servers.release(context, now)
            }
        };
        let wait_us = served.map(|arrived| now.since(arrived).as_secs_f64() * 1e6);
        self.give_out(wait_us, context);
        if let Some(wait_us) = wait_us {
            context.tally(self.wait_us, wait_us);
            let service = self.open.service.draw(context);
            context.send(context.me(), service, QueueEvent::Departure);
        }
    }
}

impl Station {
    /// Whether a customer who comes now is turned away.
    fn is_full(&self) -> bool {
        let present = self.servers.queued() + self.servers.used() as usize;
        self.open.capacity.is_some_and(|capacity| present >= capacity as usize)
    }

    /// Gives its series out as they are after an event, in which a customer's wait may have ended.
    fn give_out(&self, wait_us: Option<f64>, context: &mut impl Context<QueueEvent>) {
        let Some([queued, busy_share, waits_us]) = self.series else { return };
        let waiting = u64::try_from(self.servers.queued()).expect("a length fits into 64 bits");
        context.record(queued, count_f64(waiting));
        context.record(busy_share, f64::from(self.servers.used()) / f64::from(self.open.servers));
        if let Some(wait_us) = wait_us {
            context.record(waits_us, wait_us);
        }
    }
}

impl Open {
    /// The series of each queue: how many wait and which share of the servers is used, from each event
    /// to the next; and each wait when it ends.
    pub const SERIES: [&'static str; 3] = ["queued", "busy_share", "wait_us"];

    /// The queues as a model of the simulation kernel. What they are before `from` does not count in
    /// their means.
    pub fn model(&self, from: SimTime) -> Model<Station> {
        let mut model = Model::new(self.seed);
        let queues = model.group("queues", self.queues);
        let wait_us = model.statistic(queues, "wait_us");
        let turned_away = self.capacity.map(|_| model.statistic(queues, "turned_away"));
        let series = self.series.then(|| Self::SERIES.map(|name| model.series(name)));
        model.fill(queues, |_| Station {
            open: *self,
            wait_us,
            turned_away,
            series,
            servers: Resource::new(self.servers).accounted_from(from),
            coming: Cell::new(self.customers),
            left: Cell::default(),
        });
        model
    }

    /// Runs the queues until the last customer has left, or to the end of `options`.
    ///
    /// # Errors
    /// Where the kernel refuses; see [`RunError`].
    pub fn run(&self, options: &Options, observer: &mut dyn Observer) -> Result<Report, RunError> {
        let outcome = run_built(|| self.model(options.statistics_from), options, observer)?;
        let stations = &outcome.lps;
        let left = stations.iter().map(|station| station.left.get()).max();
        let mean = |of: fn(&Resource<SimTime>) -> f64| {
            stations.iter().map(|station| of(&station.servers)).sum::<f64>()
                / f64::from(self.queues)
        };
        let offered = self.theory().busy_share(self.servers);
        let limited = self.limited();
        let mut figures = Vec::new();
        let mut add = |name, value: Option<f64>| {
            figures.extend(value.map(|value| Figure { name, value }));
        };
        add("busy_share", Some(mean(Resource::busy_share)));
        let unlimited = self.capacity.is_none().then(|| offered.min(1.0));
        let busy_share = limited.map(|limited| limited.busy_share);
        add("busy_share_expected", unlimited.or(busy_share));
        add("queued_mean", Some(mean(Resource::queued_mean)));
        add("queued_mean_expected", limited.map(|limited| limited.queued));
        add("overloaded_by_factor", unlimited.filter(|_| offered > 1.0).map(|_| offered));
        add("wait_us_mean", outcome.statistics[0].total().mean());
        add("wait_us_expected", self.wait_expected_s().map(|wait| wait * 1e6));
        let turned_away = outcome.statistics.get(1).and_then(|all| all.total().mean());
        add("turned_away_share", turned_away);
        add("turned_away_share_expected", limited.map(|limited| limited.turned_away_share));
        let mut busiest: Vec<_> = (0_u32..)
            .zip(stations)
            .map(|(place, station)| {
                (format!("servers of queue {place}"), station.servers.busy_share())
            })
            .collect();
        busiest.sort_by(|a, b| b.1.total_cmp(&a.1));
        busiest.truncate(Report::BUSIEST_MAX);
        let bottleneck = busiest.first().cloned();
        let end = left.unwrap_or(SimTime::START);
        let report = report("queue", outcome, &[("queues", self.queues)], |station, digest| {
            digest.word(u64::from(station.coming.get()));
            digest.word(station.left.get().as_nanos());
            digest.word(station.servers.busy_share().to_bits());
        });
        Ok(Report { end, figures, bottleneck, busiest, ..report })
    }

    fn theory(&self) -> OpenQueue {
        OpenQueue { interarrival: self.interarrival, service: self.service.mean() }
    }

    /// What theory says where customers are turned away.
    fn limited(&self) -> Option<Limited> {
        let exponential = matches!(self.service, Service::Exponential(_));
        let capacity = self.capacity.filter(|_| exponential)?;
        Some(self.theory().exponential_with_capacity(self.servers, capacity))
    }

    /// The mean wait where theory knows it and the queue does not grow without end, in seconds.
    fn wait_expected_s(&self) -> Option<f64> {
        match self.service {
            _ if self.capacity.is_some() => self.limited().map(|limited| limited.wait_s),
            Service::Exponential(_) => self.theory().exponential_wait_s(self.servers),
            Service::Constant(_) if self.servers == 1 => self.theory().constant_wait_s(),
            Service::Constant(_) => None,
        }
    }
}

impl ScenarioModel for Open {
    fn about() -> About {
        About {
            name: "queue",
            doc: "Queues at which customers arrive at random instants: M/M/c, M/M/c/K or M/D/c in \
            Kendall's notation.",
            until: None,
        }
    }

    fn declare(parameters: &mut Parameters<'_>) -> Self {
        Self {
            queues: parameters.count(
                "queues",
                1..=1_000_000,
                1,
                "Queues, independent of each other.",
            ),
            interarrival: parameters.positive_span(
                "interarrival",
                Nanos::from_micros(2),
                "Mean time between two arrivals.",
            ),
            service: Service::declare(parameters),
            servers: parameters.count("servers", 1..=1_000_000, 1, "Servers of each queue."),
            capacity: parameters.count_if_written(
                "capacity",
                1..=1_000_000,
                "Most customers of a queue, those in service included; the queue turns others away. \
                 Unlimited by default.",
            ),
            customers: parameters.count(
                "customers",
                1..=4_000_000_000,
                1_000_000,
                "Customers that arrive at each queue.",
            ),
            seed: parameters.seed(),
            series: parameters.all_series(),
        }
    }

    fn contradictions(&self) -> Vec<Contradiction> {
        let few = self.capacity.filter(|capacity| *capacity < self.servers);
        let text = |few| format!("{few} is less than the {} servers", self.servers);
        few.map(|few| Contradiction { key: "capacity", text: text(few) }).into_iter().collect()
    }

    fn series_names(&self) -> Vec<&'static str> {
        Self::SERIES.to_vec()
    }

    fn lp_name(&self, lp: LpId) -> String {
        format!("queue {lp}")
    }

    fn run(&self, options: &Options, observer: &mut dyn Observer) -> Result<Report, RunError> {
        Self::run(self, options, observer)
    }
}
