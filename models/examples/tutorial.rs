//! The program of docs/simulation-tutorial.md: a server whose clients give up.

use std::path::Path;

use meikyo_models::plot::{Curve, Mark, Titles, curves};
use meikyo_sim::prelude::*;

/// What clients and the server send each other, and themselves.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Message {
    /// A client has thought enough.
    Ask,
    /// The `number`-th request of a client.
    Request { client: LpId, number: u64 },
    /// The server has worked enough for the first request of its queue.
    Served,
    /// The answer to a client's `number`-th request.
    Reply { number: u64 },
    /// A client has waited long enough.
    TimeOut,
}

/// How long a request or a reply travels.
const HOP: Nanos = Nanos::from_micros(100);
/// How long a client thinks, and how long the server works for a request, in the mean.
const THINK: Nanos = Nanos::from_millis(50);
const SERVICE: Nanos = Nanos::from_millis(1);
/// How long a client waits for a reply.
const PATIENCE: Nanos = Nanos::from_millis(40);

#[derive(Clone, Debug, PartialEq, State)]
pub(crate) struct Client {
    #[state(fixed)]
    server: LpId,
    #[state(fixed)]
    response_ms: Statistic,
    #[state(fixed)]
    gave_up: Statistic,
    /// How many requests it has sent.
    sent: Cell<u64>,
    asked_at: Cell<SimTime>,
    timer: Held<Option<Handle>>,
}

#[derive(Clone, Debug, PartialEq, State)]
pub(crate) struct Server {
    queue: Deque<(LpId, u64)>,
}

#[derive(Clone, Debug, PartialEq, State)]
pub(crate) enum Host {
    Client(Client),
    Server(Server),
}

impl Lp for Host {
    type Message = Message;

    fn start(&mut self, context: &mut impl Context<Message>) {
        if let Self::Client(_) = self {
            think(context);
        }
    }

    fn handle(&mut self, message: Message, context: &mut impl Context<Message>) {
        match (self, message) {
            (Self::Client(client), Message::Ask) => client.ask(context),
            (Self::Client(client), Message::Reply { number }) => client.take(number, context),
            (Self::Client(client), Message::TimeOut) => client.give_up(context),
            (Self::Server(server), Message::Request { client, number }) => {
                server.accept(client, number, context);
            }
            (Self::Server(server), Message::Served) => server.reply(context),
            (host, message) => unreachable!("{host:?} got {message:?}"),
        }
    }
}

fn think(context: &mut impl Context<Message>) {
    let pause = context.exponential(THINK);
    context.send(context.me(), pause, Message::Ask);
}

impl Client {
    fn ask(&mut self, context: &mut impl Context<Message>) {
        self.sent.add(context, 1);
        let now = context.now();
        self.asked_at.set(context, now);
        let request = Message::Request { client: context.me(), number: self.sent.get() };
        context.send(self.server, HOP, request);
        let timer = context.schedule(PATIENCE, Message::TimeOut);
        self.timer.set(context, Some(timer));
    }

    fn take(&mut self, number: u64, context: &mut impl Context<Message>) {
        let awaited = number == self.sent.get();
        let Some(timer) = self.timer.get().filter(|_| awaited) else {
            return; // The client has given up on this one.
        };
        context.cancel(timer);
        self.timer.set(context, None);
        let response = context.now().since(self.asked_at.get());
        context.tally(self.response_ms, response.as_secs_f64() * 1e3);
        context.tally(self.gave_up, 0.0);
        think(context);
    }

    fn give_up(&mut self, context: &mut impl Context<Message>) {
        self.timer.set(context, None);
        context.tally(self.gave_up, 1.0);
        think(context);
    }
}

impl Server {
    fn accept(&mut self, client: LpId, number: u64, context: &mut impl Context<Message>) {
        self.queue.push_back(context, (client, number));
        if self.queue.len() == 1 {
            work(context);
        }
    }

    fn reply(&mut self, context: &mut impl Context<Message>) {
        let (client, number) = self.queue.pop_front(context).expect("it worked for somebody");
        context.send(client, HOP, Message::Reply { number });
        if !self.queue.is_empty() {
            work(context);
        }
    }
}

fn work(context: &mut impl Context<Message>) {
    let service = context.exponential(SERVICE);
    context.send(context.me(), service, Message::Served);
}

pub(crate) fn model(clients: u32, seed: u64) -> Model<Host> {
    let mut model = Model::new(seed);
    let [client_group, server_group] = model.groups([("clients", clients), ("server", 1)]);
    model.link(client_group, server_group, HOP);
    model.link(server_group, client_group, HOP);
    // The server handles two events for each request, whichever client it comes from.
    model.weight(server_group, |_| clients);
    let response_ms = model.statistic(client_group, "response_ms");
    let gave_up = model.statistic(client_group, "gave_up");
    model.fill(client_group, |_| {
        Host::Client(Client {
            server: server_group.lp(0),
            response_ms,
            gave_up,
            sent: Cell::new(0),
            asked_at: Cell::new(SimTime::START),
            timer: Held::new(None),
        })
    });
    model.fill(server_group, |_| Host::Server(Server { queue: Deque::default() }));
    model
}

/// The run, and how much of its beginning statistics leave out.
const END: SimTime = SimTime::from_nanos(12_000_000_000);
const WARM_UP: SimTime = SimTime::from_nanos(2_000_000_000);

pub(crate) fn options(scheduler: Scheduler, threads: usize) -> Options {
    Options::new(scheduler, threads).until(END).statistics_from(WARM_UP)
}

/// Replies a second that came in time.
fn in_time_per_s(clients: u32, seed: u64) -> Result<f64, RunError> {
    let outcome = run(model(clients, seed), &options(Scheduler::Sequential, 1))?;
    let replies = outcome.statistics[0].total().count;
    Ok(f64::from(u32::try_from(replies).expect("thousands")) / END.since(WARM_UP).as_secs_f64())
}

pub(crate) fn interval(clients: u32) -> Result<Interval, RunError> {
    let mut tally = Tally::EMPTY;
    for seed in 0..10 {
        tally.add(in_time_per_s(clients, seed)?);
    }
    Ok(tally.interval(Confidence::USUAL).expect("ten values have an interval"))
}

fn figure() -> Result<String, RunError> {
    let mut curve = Curve::default();
    for clients in (10..=130).step_by(20) {
        let interval = interval(clients)?;
        let ends = Some((interval.low(), interval.high()));
        curve.marks.push(Mark { x: f64::from(clients), y: interval.mean, ends });
    }
    let titles = Titles {
        x: "clients",
        y: "replies in time a second",
        words: None,
        note: Some("95% confidence, 10 runs each"),
    };
    Ok(curves(&titles, &[curve]))
}

#[expect(clippy::print_stdout, reason = "an example's answer")]
pub(crate) fn study(picture: &Path) -> Result<(), Box<dyn std::error::Error>> {
    // Every event twice, and in a second model: does a change escape the undo log?
    let second = SimTime::from_nanos(1_000_000_000);
    run_built(|| model(20, 1), &options(Scheduler::Check, 1).until(second), &mut Unobserved)?;

    let outcome = run(model(20, 1), &options(Scheduler::Auto, 2))?;
    let responses = &outcome.statistics[0];
    let mean = responses.total().mean().ok_or("no replies came")?;
    let p99 = responses.quantile(0.99).ok_or("no replies came")?;
    println!("20 clients: {mean:.2} ms in the mean, 99 % within {p99:.2} ms");

    std::fs::write(picture, figure()?)?;
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    study(Path::new("goodput.svg"))
}
