//! Customers that think, and then queue at one of several stations.

use std::sync::Arc;

use meikyo_sim::{
    Context, Group, Lp, LpId, Model, Observer, Options, RunError, Series, Statistic, run_built,
};
use meikyo_undo::{Cell, fields, variants};
use meikyo_units::{Nanos, SimTime};

use crate::analysis::{self, ClosedNetwork};
use crate::completions::{Counting, Window, Working, count_f64};
use crate::parameters::{About, IdleSeed, Parameters, ScenarioModel};
use crate::queueing::Service;
use crate::report::{Figure, Report, report};
use crate::resource::Resource;
use crate::rpc::{Body, Call, Calls, Message};

/// A closed network: each customer thinks, goes to a station drawn evenly, and comes back served.
#[derive(Clone, Debug, PartialEq)]
pub struct Closed {
    /// Customers that go round for ever, or until their jobs are done.
    pub customers: u32,
    /// Stations, each with one server.
    pub stations: u32,
    /// How long a station works for one customer.
    pub service: Service,
    /// How long a customer thinks, in the mean; exponentially distributed.
    pub think: Nanos,
    /// How long each way to a station and back takes.
    pub hop: Nanos,
    /// How often each customer is served.
    pub jobs: u32,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// The parameters and statistics that all LPs share.
#[derive(Clone, Debug, PartialEq)]
struct Plan {
    closed: Closed,
    response_us: Statistic,
    responses: Series,
}

/// What customers and stations tell each other, and a station itself.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Job {
    /// A customer asks to be served, or a station says that it has.
    Travels(Message<(), ()>),
    /// The service at a station has ended.
    Served(Call),
}

/// An LP of the network.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the types say it")]
pub enum Member {
    Customer(Customer),
    Server(Server),
}
variants!(Member { Customer(Customer), Server(Server) });

/// A customer, who is thinking, waiting or being served.
#[derive(Clone, Debug, PartialEq)]
pub struct Customer {
    plan: Arc<Plan>,
    /// The calls in flight, each with the instant when it left.
    calls: Calls<SimTime>,
    left: Cell<u32>,
}
fields!(Customer { calls, left });

/// A station with one server and its queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    plan: Arc<Plan>,
    unit: Resource<Call>,
    last: Cell<SimTime>,
}
fields!(Server { unit, last });

impl Lp for Member {
    type Message = Job;

    fn start(&mut self, context: &mut impl Context<Job>) {
        if let Self::Customer(customer) = self {
            customer.begin_job(context);
        }
    }

    fn handle(&mut self, job: Job, context: &mut impl Context<Job>) {
        match (self, job) {
            (Self::Customer(customer), Job::Travels(message)) => {
                customer.end_job(message.call, context)
            }
            (Self::Server(server), Job::Travels(message)) => {
                server.accept_request(message, context)
            }
            (Self::Server(server), Job::Served(call)) => server.end_service(call, context),
            (Self::Customer(_), Job::Served(_)) => {}
        }
    }
}

impl Customer {
    /// Thinks, and goes to a station.
    fn begin_job(&mut self, context: &mut impl Context<Job>) {
        let Some(left) = self.left.get().checked_sub(1) else { return };
        self.left.set(context, left);
        let Closed { customers, stations, think, hop, .. } = self.plan.closed;
        let station = LpId::new(customers + context.below(stations));
        let think = context.exponential(think);
        let me = context.me();
        let begun = context.now() + think;
        let call = self.calls.begin(context, me, station, begun);
        context.send(station, think + hop, Job::Travels(call.request(())));
    }

    fn end_job(&mut self, call: Call, context: &mut impl Context<Job>) {
        if let Some(begun) = self.calls.end(context, call) {
            let response_us = context.now().since(begun).as_secs_f64() * 1e6;
            context.tally(self.plan.response_us, response_us);
            context.record(self.plan.responses, response_us);
            self.begin_job(context);
        }
    }
}

impl Server {
    fn accept_request(&mut self, message: Message<(), ()>, context: &mut impl Context<Job>) {
        let Message { call, body: Body::Request(()) } = message else { return };
        let now = context.now();
        if let Some(call) = self.unit.acquire(context, now, call) {
            self.serve(call, context);
        }
    }

    fn serve(&mut self, call: Call, context: &mut impl Context<Job>) {
        let service = self.plan.closed.service.draw(context);
        context.send(context.me(), service, Job::Served(call));
    }

    fn end_service(&mut self, call: Call, context: &mut impl Context<Job>) {
        let now = context.now();
        self.last.set(context, now);
        context.send(call.caller, self.plan.closed.hop, Job::Travels(call.reply(())));
        if let Some(next) = self.unit.release(context, now) {
            self.serve(next, context);
        }
    }
}

impl Closed {
    /// The series that a run records.
    pub const SERIES: &'static str = "response_us";

    /// The network as a model of the simulation kernel. What stations do before `from` does not count in
    /// their means.
    pub fn model(&self, from: SimTime) -> Model<Member> {
        let mut model = Model::new(self.seed);
        let customers = model.group("customers", self.customers);
        let stations = model.group("stations", self.stations);
        model.link(customers, stations, self.hop);
        model.link(stations, customers, self.hop);
        self.fill(&mut model, customers, stations, from);
        model
    }

    fn fill(&self, model: &mut Model<Member>, customers: Group, stations: Group, from: SimTime) {
        let plan = Arc::new(Plan {
            closed: self.clone(),
            response_us: model.statistic(customers, "response_us"),
            responses: model.series(Self::SERIES),
        });
        model.fill(customers, |_| {
            let left = Cell::new(self.jobs);
            Member::Customer(Customer { plan: Arc::clone(&plan), calls: Calls::default(), left })
        });
        model.fill(stations, |_| {
            let unit = Resource::new(1).accounted_from(from);
            let last = Cell::default();
            Member::Server(Server { plan: Arc::clone(&plan), unit, last })
        });
    }

    /// What theory knows of it.
    pub fn network(&self) -> ClosedNetwork {
        ClosedNetwork {
            delay: self.think + self.hop * 2,
            stations: vec![analysis::Station {
                name: "stations".to_owned(),
                demand: self.service.mean(),
                count: self.stations,
            }],
        }
    }

    /// The rate while all customers go round, `from` an instant on; that of the whole run where they never did.
    fn jobs_per_s(
        &self,
        counting: &Counting<'_>,
        members: &[Member],
        from: SimTime,
    ) -> Option<f64> {
        let all = &counting.all;
        let round = self.hop * 2;
        let (mut from, mut to) = (from, all.last()?);
        for (member, lp) in members.iter().zip(0..) {
            let Member::Customer(customer) = member else { break };
            let working = counting.working(None, LpId::new(lp));
            from = from.max(working.first);
            if customer.left.get() == 0 && customer.calls.is_empty() && working != Working::NEVER {
                to = to.min(working.last);
            }
        }
        let window = Window { from, to, round, service: self.service.mean() };
        let steady = (from < to).then(|| all.steady(window)).flatten();
        steady.map(|steady| steady.per_s).or_else(|| all.mean_per_s(round))
    }

    /// Runs the network until all jobs are done, or to the end of `options`.
    ///
    /// # Errors
    /// Where the kernel refuses; see [`RunError`].
    pub fn run(&self, options: &Options, observer: &mut dyn Observer) -> Result<Report, RunError> {
        let mut counting = Counting::new(observer, vec![0]);
        let outcome = run_built(|| self.model(options.statistics_from), options, &mut counting)?;
        let servers = || {
            outcome.lps.iter().filter_map(|member| match member {
                Member::Server(server) => Some(server),
                Member::Customer(_) => None,
            })
        };
        let last = servers().map(|server| server.last.get()).max();
        let end = last.map_or(SimTime::START, |last| last + self.hop).min(options.until);
        let mut busiest: Vec<_> = (0_u32..)
            .zip(servers())
            .map(|(place, server)| (format!("station {place}"), server.unit.busy_share()))
            .collect();
        busiest.sort_by(|a, b| b.1.total_cmp(&a.1));
        busiest.truncate(Report::BUSIEST_MAX);
        let mut figures = Vec::new();
        let mut add = |name, value: Option<f64>| {
            figures.extend(value.map(|value| Figure { name, value }));
        };
        let (network, values) = (self.network(), self.network().mean_values(self.customers));
        let total = outcome.statistics[0].total();
        add("jobs_per_s", self.jobs_per_s(&counting, &outcome.lps, options.statistics_from));
        add("bound_per_s", Some(network.bound_per_s(self.customers)));
        let exact = matches!(self.service, Service::Exponential(_));
        add("mva_per_s", Some(values.per_s));
        add("response_us_mean", (total.count > 0).then(|| total.sum / count_f64(total.count)));
        let hops = (self.hop * 2).as_secs_f64();
        add("response_us_expected", exact.then_some((values.response_s + hops) * 1e6));
        let groups = [("customers", self.customers), ("stations", self.stations)];
        let bottleneck = busiest.first().cloned();
        let report = report("closed", outcome, &groups, |member, digest| match member {
            Member::Customer(customer) => digest.word(u64::from(customer.left.get())),
            Member::Server(server) => {
                digest.word(server.last.get().as_nanos());
                digest.word(server.unit.busy_share().to_bits());
            }
        });
        Ok(Report { end, figures, bottleneck, busiest, ..report })
    }
}

impl ScenarioModel for Closed {
    fn about() -> About {
        About {
            name: "closed",
            doc: "Customers that think, queue at one of several stations, and return after their \
            service.",
            until: None,
        }
    }

    fn declare(parameters: &mut Parameters<'_>) -> Self {
        Self {
            customers: parameters.count("customers", 1..=1 << 31, 20, "Number of customers."),
            stations: parameters.count(
                "stations",
                1..=1_000_000,
                4,
                "Stations, each with one server.",
            ),
            service: Service::declare(parameters),
            think: parameters.span(
                "think",
                Nanos::from_micros(5),
                "Mean thinking time of a customer.",
            ),
            hop: parameters.span(
                "hop",
                Nanos::from_micros(1),
                "Travel time between a customer and a station, each way.",
            ),
            jobs: parameters.count(
                "jobs",
                1..=4_000_000_000,
                10_000,
                "How often each customer is served.",
            ),
            seed: parameters.seed(),
        }
    }

    fn idle_seed(&self) -> Option<IdleSeed> {
        let constant = matches!(self.service, Service::Constant(_));
        let drawn = self.stations > 1 || self.think > Nanos::ZERO || !constant;
        let idle = IdleSeed {
            needs: "more stations, think above 0s or service_times = \"exponential\"",
            keys: &["stations", "think", "service_times"],
        };
        (!drawn).then_some(idle)
    }

    fn series_names(&self) -> Vec<&'static str> {
        vec![Self::SERIES]
    }

    fn lp_name(&self, lp: LpId) -> String {
        match lp.get().checked_sub(self.customers) {
            Some(station) => format!("station {station}"),
            None => format!("customer {lp}"),
        }
    }

    fn run(&self, options: &Options, observer: &mut dyn Observer) -> Result<Report, RunError> {
        Self::run(self, options, observer)
    }
}
