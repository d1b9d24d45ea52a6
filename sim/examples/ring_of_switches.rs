//! A ring of switches that store and forward: contention, statistics, series, and every scheduler.
//!
//! Hosts hang on the switches. Each sends frames to hosts drawn at random; a frame goes round the ring
//! the shorter way, waits for the port at every switch, and is answered by nobody. Nothing may be lost,
//! no frame may be faster than an empty ring allows, and what every scheduler on any number of threads
//! says must be the same.

use meikyo_sim::{Context, Lp, LpId, Model, Options, RunError, Scheduler, Statistic, run};
use meikyo_undo::{Cell, Map, fields};
use meikyo_units::{BitsPerSecond, Bytes, Nanos, SimTime};

const SWITCHES: u32 = 24;
/// Frames that each switch's hosts send.
const FRAMES: u32 = 400;
const FRAME: Bytes = Bytes::new(1500);
const RATE: BitsPerSecond = BitsPerSecond::GIGABIT;
/// The cable and the switch.
const LATENCY: Nanos = Nanos::from_micros(2);
/// The mean span between two frames of a switch's hosts: links of the ring are about 75 % busy.
const GAP: Nanos = Nanos::from_micros(48);

#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
enum Event {
    /// The hosts here send a frame.
    Sends,
    /// A frame is here as a whole.
    Frame { to: LpId, hops: u32, sent: SimTime },
}

#[derive(Clone, Debug, PartialEq)]
struct Switch {
    delay_us: Statistic,
    hops: Statistic,
    /// When the port to the next switch is free again, and the one to the switch before.
    free: [Cell<SimTime>; 2],
    left: Cell<u32>,
    received: Cell<u32>,
    /// Frames that passed, by their destination.
    passed: Map<u32, u32>,
}
fields!(Switch { free, left, received, passed });

impl Switch {
    fn forward(&mut self, frame: Event, context: &mut impl Context<Event>) {
        let Event::Frame { to, hops, sent } = frame else { return };
        let me = context.me().get();
        let ahead = (to.get() + SWITCHES - me) % SWITCHES;
        let (port, next) = if 2 * ahead <= SWITCHES { (0, 1) } else { (1, SWITCHES - 1) };
        let begins = context.now().max(self.free[port].get());
        let gone = begins + RATE.serialization_delay(FRAME);
        self.free[port].set(context, gone);
        let neighbour = LpId::new((me + next) % SWITCHES);
        let delay = gone.since(context.now()) + LATENCY;
        context.send(neighbour, delay, Event::Frame { to, hops: hops + 1, sent });
    }
}

impl Lp for Switch {
    type Message = Event;

    fn start(&mut self, context: &mut impl Context<Event>) {
        let gap = context.exponential(GAP);
        context.send(context.me(), gap, Event::Sends);
    }

    fn handle(&mut self, event: Event, context: &mut impl Context<Event>) {
        match event {
            Event::Sends => {
                let away = 1 + context.below(SWITCHES - 1);
                let to = LpId::new((context.me().get() + away) % SWITCHES);
                let sent = context.now();
                self.forward(Event::Frame { to, hops: 0, sent }, context);
                let left = self.left.get() - 1;
                self.left.set(context, left);
                if left > 0 {
                    self.start(context);
                }
            }
            Event::Frame { to, hops, sent } if to == context.me() => {
                self.received.add(context, 1);
                let delay = context.now().since(sent);
                assert!(delay >= (RATE.serialization_delay(FRAME) + LATENCY) * u64::from(hops));
                context.tally(self.delay_us, delay.as_secs_f64() * 1e6);
                context.tally(self.hops, f64::from(hops));
            }
            Event::Frame { to, .. } => {
                let passed = self.passed.get(&to.get()).copied().unwrap_or(0);
                self.passed.insert(context, to.get(), passed + 1);
                self.forward(event, context);
            }
        }
    }

    fn waiting(&self) -> Option<String> {
        (self.left.get() > 0).then(|| format!("{} frames to send", self.left.get()))
    }
}

fn ring() -> Model<Switch> {
    let mut model = Model::new(7);
    let switches = model.group("switches", SWITCHES);
    // What a frame takes at least: that is all a scheduler needs to know.
    model.link(switches, switches, RATE.serialization_delay(FRAME) + LATENCY);
    let delay_us = model.statistic(switches, "delay_us");
    let hops = model.statistic(switches, "hops");
    model.fill(switches, |_| Switch {
        delay_us,
        hops,
        free: [Cell::default(), Cell::default()],
        left: Cell::new(FRAMES),
        received: Cell::default(),
        passed: Map::default(),
    });
    model
}

pub(crate) fn main() -> Result<(), RunError> {
    let truth = run(ring(), &Options::new(Scheduler::Sequential, 1).traced())?;
    let received: u32 = truth.lps.iter().map(|switch| switch.received.get()).sum();
    assert_eq!(received, SWITCHES * FRAMES);
    assert!(truth.waiting.is_empty());
    // To a switch drawn from the 23 others it is (2 (1 + ... + 11) + 12) / 23 hops in the mean.
    let hops = truth.statistics[1].total();
    let expected = 144.0 / 23.0;
    assert!((hops.sum / f64::from(received) / expected - 1.0).abs() < 0.01);

    for scheduler in [Scheduler::Conservative, Scheduler::Optimistic, Scheduler::Auto] {
        for threads in [1, 2, 4] {
            let outcome = run(ring(), &Options::new(scheduler, threads).traced())?;
            assert_eq!(outcome.trace_digest(), truth.trace_digest());
            assert_eq!(outcome.statistics, truth.statistics);
            assert_eq!(outcome.lps, truth.lps);
        }
    }
    Ok(())
}
