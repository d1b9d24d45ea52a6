//! Predictions against closed forms: the flow method on small fabrics, and HPL where its time is known.

use meikyo_fabric::{Plan, PlanOptions, SwitchModel, Topology, Wiring, cable_uniform, plan};
use meikyo_models::prediction::flow::{self, Deadlock, FlowOptions, FlowRun};
use meikyo_models::prediction::{
    self, Actor, Congestion, Heard, LookAgain, Message, Messaging, Network, PredictError, Rates,
    Settings, Skeleton, Step, Stream, bounds, predict,
};
use meikyo_units::{BitsPerSecond, Bytes, Nanos};

/// 125 MB/s a cable, all of it for data.
const RATES: Rates = Rates { payload_share: 1.0, within_host: BitsPerSecond::new(8_000_000_000) };
const MB: u64 = 1_000_000;
/// What a megabyte takes on a cable.
const MB_NS: u64 = 8_000_000;
const LATENCY: u64 = 50_000;

fn fabric(topology: &str, hosts: usize) -> (Wiring, Plan) {
    let topology: Topology = topology.parse().expect("a topology");
    let model = SwitchModel::named("powerconnect-6248").expect("a model");
    let wiring = cable_uniform(&topology, &model, hosts).expect("enough ports");
    let plan = plan(&wiring, &PlanOptions::new(Some(topology))).expect("a plan");
    (wiring, plan)
}

/// Two switches with one cable between them; hosts 0.. on the first, then those on the second.
fn network(hosts: usize) -> Network {
    let (wiring, plan) = fabric("mesh 2", hosts);
    Network::new(&wiring, &plan, RATES, 1)
}

/// An actor that takes these steps.
#[derive(Debug, Clone)]
struct Script(std::vec::IntoIter<Step>);

impl Actor for Script {
    fn next(&mut self, _: &Heard<'_>) -> Step {
        self.0.next().unwrap_or(Step::Done)
    }
}

fn send(from: usize, to: usize, bytes: u64) -> Step {
    let stream = Stream { from, to, bytes: Bytes::new(bytes), label: 0, label_back: 0 };
    Step::Send(Message { to, tag: 0, streams: vec![stream] })
}

fn receive(from: usize) -> Step {
    Step::Receive { from, tag: 0 }
}

const WAIT: Step = Step::Wait { what: "wait" };

fn options(congestion: Congestion) -> FlowOptions {
    let (latency, look_again) = (Nanos::new(LATENCY), LookAgain::AT_ONCE);
    let messaging = Messaging { latency, eager_max: Bytes::new(1000), look_again };
    FlowOptions { messaging, congestion, patience: 0, courses: false }
}

/// Rank `n` runs on host `n`.
fn run(
    network: &Network,
    scripts: Vec<Vec<Step>>,
    congestion: Congestion,
) -> Result<FlowRun, Deadlock> {
    run_with(network, scripts, options(congestion))
}

fn run_with(
    network: &Network,
    scripts: Vec<Vec<Step>>,
    options: FlowOptions,
) -> Result<FlowRun, Deadlock> {
    let actors: Vec<Script> = scripts.into_iter().map(|steps| Script(steps.into_iter())).collect();
    let run = flow::run(network, actors.clone(), options)?;
    assert!(bounds(network, actors).least() <= run.time);
    Ok(run)
}

fn time(network: &Network, scripts: Vec<Vec<Step>>, congestion: Congestion) -> Nanos {
    run(network, scripts, congestion).expect("no deadlock").time
}

#[test]
fn one_message_takes_its_announcement_its_request_its_data_and_its_way() {
    let network = network(2);
    let large = vec![vec![send(0, 1, MB), WAIT], vec![receive(0), WAIT]];
    let time = |scripts| time(&network, scripts, Congestion::NONE);
    assert_eq!(time(large), Nanos::new(3 * LATENCY + MB_NS));
    let small = vec![vec![send(0, 1, 1000), WAIT], vec![receive(0), WAIT]];
    assert_eq!(time(small), Nanos::new(LATENCY + 8_000));
    // A receiver that comes late is not announced to again; a small message is there before it.
    let late = Nanos::from_millis(10);
    let compute = || Step::Compute { span: late, what: "compute" };
    let large = vec![vec![send(0, 1, MB), WAIT], vec![compute(), receive(0), WAIT]];
    assert_eq!(time(large), late + Nanos::new(2 * LATENCY + MB_NS));
    let small = vec![vec![send(0, 1, 1000), WAIT], vec![compute(), receive(0), WAIT]];
    assert_eq!(time(small), late);
}

#[test]
fn an_exchange_to_which_one_comes_late_goes_one_way_after_the_other() {
    let network = network(2);
    let exchange = |other| [receive(other), send(1 - other, other, MB), WAIT];
    let both = vec![exchange(1).to_vec(), exchange(0).to_vec()];
    let time = |scripts| time(&network, scripts, Congestion::NONE);
    assert_eq!(time(both), Nanos::new(3 * LATENCY + MB_NS));
    // The late one asks for what is announced to it before it announces its own; what it is asked for comes
    // behind the data that it gets.
    let late = Nanos::from_millis(10);
    let compute = [Step::Compute { span: late, what: "compute" }];
    let one_late = vec![exchange(1).to_vec(), [&compute[..], &exchange(0)].concat()];
    assert_eq!(time(one_late), late + Nanos::new(3 * LATENCY + 2 * MB_NS));
    // If it announces its own first, both are asked for before any data are under way.
    let announces = [&compute[..], &[send(1, 0, MB), receive(0), WAIT]].concat();
    let one_late = vec![exchange(1).to_vec(), announces];
    assert_eq!(time(one_late), late + Nanos::new(3 * LATENCY + MB_NS));
}

#[test]
fn ranks_that_look_again_are_never_at_the_same_instant() {
    // Two exchanges in a row: both begin the first one together, and the second one when each has looked. Who is
    // later makes it go one way after the other.
    let network = network(2);
    let exchange = |other| [receive(other), send(1 - other, other, MB), WAIT];
    let scripts = || [1, 0].map(|other| [exchange(other), exchange(other)].concat()).into();
    let every = Nanos::from_micros(900);
    let exact = options(Congestion::NONE);
    let latency = Nanos::ZERO;
    let run = |look_again| {
        let messaging = Messaging { look_again, latency, ..exact.messaging };
        run_with(&network, scripts(), FlowOptions { messaging, ..exact }).unwrap().time
    };
    assert_eq!(run(LookAgain::AT_ONCE), Nanos::new(2 * MB_NS));
    // Each way is announced, asked for and done at looks; the second and the third wait for the one before them.
    let [least, most] = [0, 9 * 900_000].map(|late| Nanos::new(3 * MB_NS + late));
    let times: Vec<Nanos> = (0..4).map(|seed| run(LookAgain { every, seed })).collect();
    assert!(times.iter().all(|time| (least..most).contains(time)), "{times:?}");
    // Each seed is another chance, and always the same one.
    assert!(times.iter().enumerate().all(|(at, time)| !times[..at].contains(time)), "{times:?}");
    assert_eq!(run(LookAgain { every, seed: 3 }), times[3]);
}

#[test]
fn a_small_message_comes_behind_the_large_one_before_it_on_its_connection_only() {
    let network = network(3);
    let to = |to, tag, bytes| {
        let Step::Send(message) = send(0, to, bytes) else { unreachable!() };
        Step::Send(Message { tag, ..message })
    };
    let receive = |tag| Step::Receive { from: 0, tag };
    // The receiver has asked for the large one when the small ones are sent.
    let pause = Step::Compute { span: Nanos::new(3 * LATENCY), what: "compute" };
    let scripts = |other| {
        let mut scripts = vec![vec![to(1, 1, MB), pause.clone(), to(other, 2, 1000), WAIT]];
        scripts.push(vec![receive(1)]);
        scripts.push(Vec::new());
        scripts[other]
            .extend([receive(2), Step::WaitFor { begun: u64::from(other == 1), what: "small" }]);
        scripts.resize(6, Vec::new());
        scripts
    };
    let waited = |other| {
        let run = run(&network, scripts(other), Congestion::NONE).unwrap();
        run.spent.iter().find(|(what, _)| *what == "small").unwrap().1
    };
    assert_eq!(waited(1), Nanos::new(2 * LATENCY + MB_NS + 8_000 + LATENCY));
    // Both share the sender's cable as long as the small one takes.
    assert_eq!(waited(2), Nanos::new(3 * LATENCY + 16_000 + LATENCY));
}

#[test]
fn a_sender_goes_on_once_what_is_left_of_its_message_fits_into_windows() {
    let network = network(4);
    let sender = Step::Wait { what: "the sender" };
    let spent = |scripts: &[Vec<Step>], window| {
        let congestion = Congestion { window: Bytes::new(window), ..Congestion::NONE };
        let run = run(&network, scripts.to_vec(), congestion).unwrap();
        let sender = run.spent.iter().find(|(what, _)| *what == "the sender").unwrap().1;
        assert_eq!(run.spent.len(), 2);
        (sender, run.time)
    };
    let asked = Nanos::new(2 * LATENCY);
    let there = |bytes| Nanos::new(3 * LATENCY + bytes * MB_NS / MB);
    let sixteenth = MB / 16;
    let one =
        [vec![send(0, 4, MB), sender.clone()], vec![], vec![], vec![], vec![receive(0), WAIT]];
    assert_eq!(spent(&one, 0), (asked + Nanos::new(MB_NS), there(MB)));
    assert_eq!(spent(&one, sixteenth), (asked + Nanos::new(MB_NS * 15 / 16), there(MB)));
    // A message that is no larger than a window is gone once it is asked for.
    assert_eq!(spent(&one, 2 * MB), (asked, there(MB)));
    // Of several streams the last one counts, and within a host nothing goes on before the receiver.
    let stream = |from, to, bytes| Stream { from, to, bytes, label: 0, label_back: 0 };
    let sets = |last: Stream| {
        let streams = vec![stream(0, 4, Bytes::new(MB)), last];
        let all = Step::Send(Message { to: 1, tag: 0, streams });
        [vec![all, sender.clone()], vec![receive(0), WAIT]]
    };
    let other = sets(stream(1, 2, Bytes::new(MB / 2)));
    assert_eq!(spent(&other, sixteenth), (asked + Nanos::new(MB_NS * 15 / 16), there(MB)));
    // One that is no larger than a window is handed over at once, and one within a host at its end.
    for early in [stream(1, 2, Bytes::new(MB / 32)), stream(2, 2, Bytes::new(MB))] {
        assert_eq!(
            spent(&sets(early), sixteenth),
            (asked + Nanos::new(MB_NS * 15 / 16), there(MB))
        );
    }
    let within = sets(stream(2, 2, Bytes::new(16 * MB)));
    // Memory is eight times as fast as a cable here.
    assert_eq!(spent(&within, sixteenth), (asked + Nanos::new(2 * MB_NS), there(2 * MB)));
}

#[test]
fn handing_over_changes_neither_rates_nor_what_lanes_carry_over_time() {
    // Two streams share the cable between the switches; with patience the rest of the longer one goes on as slowly.
    let network = network(2);
    let scripts = || {
        let receivers = [0, 1].map(|from| vec![receive(from), WAIT]);
        let senders =
            [(0, 2, 4 * MB), (1, 3, MB)].map(|(from, to, bytes)| vec![send(from, to, bytes), WAIT]);
        senders.into_iter().chain(receivers).collect::<Vec<_>>()
    };
    for (patience, due) in [(0, 5 * MB_NS), (1, 8 * MB_NS)] {
        let of_window = |window| {
            let congestion = Congestion { window: Bytes::new(window), ..Congestion::NONE };
            let options = FlowOptions { patience, courses: true, ..options(congestion) };
            run_with(&network, scripts(), options).unwrap()
        };
        let (plain, handed_over) = (of_window(0), of_window(62_500));
        for run in [&plain, &handed_over] {
            assert!(run.time.get().abs_diff(3 * LATENCY + due) < 10, "{patience}: {}", run.time);
        }
        let [plain, handed_over] = [plain, handed_over].map(|run| run.courses.unwrap());
        assert_eq!(plain.until, handed_over.until);
        for (one, other) in plain.carried.iter().flatten().zip(handed_over.carried.iter().flatten())
        {
            assert!(one.get().abs_diff(other.get()) <= 2, "{patience}: {one} and {other}");
        }
    }
}

#[test]
fn announcements_wait_behind_the_windows_of_others() {
    // Hosts 0 to 2 send over the cable between two switches, host 3 does 10 ms later: its announcement and what asks
    // for its data go different ways, and only the first one is behind three windows.
    let network = network(4);
    let window = 62_500;
    let pause = Step::Compute { span: Nanos::from_millis(10), what: "compute" };
    let scripts = || {
        let mut scripts: Vec<Vec<Step>> =
            (0..3).map(|at| vec![send(at, at + 4, 10 * MB), WAIT]).collect();
        scripts.push(vec![pause.clone(), send(3, 7, 2 * MB)]);
        scripts.extend((0..3).map(|at| vec![receive(at), WAIT]));
        scripts.push(vec![receive(3), Step::Wait { what: "the last" }]);
        scripts
    };
    let waited = |streams_max, window| {
        let window = Bytes::new(window);
        let congestion = Congestion { streams_max, window, ..Congestion::NONE };
        let run = run(&network, scripts(), congestion).unwrap();
        run.spent.iter().find(|(what, _)| *what == "the last").unwrap().1
    };
    let alone = Nanos::from_millis(10) + Nanos::new(3 * LATENCY + 8 * MB_NS);
    assert_eq!(waited(usize::MAX, 0), alone);
    // A sixteenth of a megabyte takes a sixteenth of its time; no more windows wait than the queue has room for.
    assert_eq!(waited(usize::MAX, window), alone + Nanos::new(3 * MB_NS / 16));
    assert_eq!(waited(2, window), alone + Nanos::new(2 * MB_NS / 16));
}

#[test]
fn requests_wait_behind_what_each_connection_may_have_at_their_card() {
    // Host 0 sends to hosts 1 and 2, which only its card holds back, and asks for what host 3 announces 10 ms later.
    let network = network(4);
    let pause = Step::Compute { span: Nanos::from_millis(10), what: "compute" };
    let scripts = vec![
        vec![send(0, 1, 4 * MB), send(0, 2, 4 * MB), receive(3), WAIT],
        vec![receive(0), WAIT],
        vec![receive(0), WAIT],
        vec![pause, send(3, 0, 2 * MB), Step::Wait { what: "the last" }],
    ];
    let waited = |window| {
        let congestion = Congestion { window: Bytes::new(window), ..Congestion::NONE };
        let run = run(&network, scripts.clone(), congestion).unwrap();
        run.spent.iter().find(|(what, _)| *what == "the last").unwrap().1
    };
    let alone = Nanos::new(2 * LATENCY + 2 * MB_NS);
    assert_eq!(waited(0), alone);
    // Each has half of the card: in 1/1,024 s, a fifth faster than that, 46,031 octets, since 1,448 octets of data take
    // 2,304 of memory. A smaller window waits as a whole. The last window is the sender's no more.
    for (window, waits) in [(1_448, 1_448), (62_500, 46_031)] {
        let handed_over = Nanos::new(window * MB_NS / MB);
        let due = alone + Nanos::new(2 * waits * MB_NS / MB);
        assert!((waited(window) + handed_over).get().abs_diff(due.get()) < 10, "{window}");
    }
}

#[test]
fn acknowledgements_take_room_on_the_way_back_unless_data_carry_them() {
    // Nine tenths of a cable are left for data, so that two full frames are acknowledged in a tenth of a frame.
    let (wiring, plan) = fabric("mesh 2", 4);
    let network = Network::new(&wiring, &plan, Rates { payload_share: 0.9, ..RATES }, 1);
    let slower = |time: Nanos, share: f64| {
        let data = time.as_secs_f64() - 3.0 * Nanos::new(LATENCY).as_secs_f64();
        let alone = Nanos::new(MB_NS).as_secs_f64() / 0.9;
        assert!((data * share / alone - 1.0).abs() < 1e-6, "{time:?}, {share}");
    };
    let alone = vec![
        vec![send(0, 4, MB), WAIT],
        Vec::new(),
        Vec::new(),
        Vec::new(),
        vec![receive(0), WAIT],
    ];
    slower(time(&network, alone, Congestion::NONE), 1.0);
    let both = |own, other| vec![receive(other), send(own, other, MB), WAIT];
    let mut pair = vec![Vec::new(); 5];
    pair[0] = both(0, 4);
    pair[4] = both(4, 0);
    slower(time(&network, pair, Congestion::NONE), 1.0);
    // In a ring, what a host sends to the one after it shares the cable with what acknowledges the one before.
    let ring = (0..8_usize)
        .map(|at| vec![receive((at + 7) % 8), send(at, (at + 1) % 8, MB), WAIT])
        .collect();
    slower(time(&network, ring, Congestion::NONE), 0.95);
    // The longer of two streams that meet has the whole cable once the other one is gone, which begins last.
    let mut meeting = vec![Vec::new(); 6];
    meeting[0] = vec![send(0, 4, 2 * MB), WAIT];
    meeting[1] = vec![receive(5), WAIT];
    meeting[4] = vec![receive(0), WAIT];
    meeting[5] = vec![send(5, 1, MB), WAIT];
    slower(time(&network, meeting, Congestion::NONE), 1.0 / (1.0 / 0.95 + 1.0));
}

#[test]
fn streams_on_one_cable_take_turns() {
    // Hosts 0 to 2 on one switch, 3 to 5 on the other: three streams on one cable.
    let network = network(3);
    let mut scripts: Vec<Vec<Step>> = (0..3).map(|at| vec![send(at, at + 3, MB), WAIT]).collect();
    scripts.extend((0..3).map(|at| vec![receive(at), WAIT]));
    let three = run(&network, scripts, Congestion::NONE).unwrap();
    assert_eq!(three.time, Nanos::new(3 * LATENCY + 3 * MB_NS));
    let cable: Vec<u64> =
        three.carried.iter().map(|bytes| bytes.get()).filter(|&bytes| bytes > MB).collect();
    assert_eq!(cable, [3 * MB]);
    // One of 1 MB and one of 3 MB: half each until the small one is gone, then all for the other.
    let mut scripts: Vec<Vec<Step>> = [MB, 3 * MB]
        .into_iter()
        .enumerate()
        .map(|(at, bytes)| vec![send(at, at + 3, bytes), WAIT])
        .collect();
    scripts.push(Vec::new());
    scripts.extend((0..2).map(|at| vec![receive(at), WAIT]));
    scripts.push(Vec::new());
    assert_eq!(time(&network, scripts, Congestion::NONE), Nanos::new(3 * LATENCY + 4 * MB_NS));
}

#[test]
fn a_ring_shift_is_as_fast_as_one_message_and_an_incast_as_slow_as_all() {
    let network = network(4);
    let shift = (0..8_usize)
        .map(|at| vec![receive((at + 7) % 8), send(at, (at + 1) % 8, MB), WAIT])
        .collect();
    assert_eq!(time(&network, shift, Congestion::NONE), Nanos::new(3 * LATENCY + MB_NS));
    let mut incast: Vec<Vec<Step>> = vec![(1..4).map(receive).chain([WAIT]).collect()];
    incast.extend((1..4).map(|at| vec![send(at, 0, MB), WAIT]));
    incast.resize(8, Vec::new());
    assert_eq!(time(&network, incast, Congestion::NONE), Nanos::new(3 * LATENCY + 3 * MB_NS));
}

#[test]
fn pause_frames_stop_what_else_a_card_sends() {
    // Hosts 0 to 2 send 1 MB each over the cable; host 0 also sends 1 MB to host 3, on its own switch.
    let network = network(4);
    let scripts = || {
        let mut scripts: Vec<Vec<Step>> = vec![vec![send(0, 4, MB), send(0, 3, MB), WAIT]];
        scripts.extend((1..3).map(|at| vec![send(at, at + 4, MB), WAIT]));
        scripts.push(vec![receive(0), WAIT]);
        scripts.extend((0..3).map(|at| vec![receive(at), WAIT]));
        scripts.push(Vec::new());
        scripts
    };
    let spent = |congestion| {
        let run = run(&network, scripts(), congestion).unwrap();
        (run.time, run.spent.iter().map(|(_, span)| span.get()).sum::<u64>())
    };
    let (plain, waited) = spent(Congestion::NONE);
    let paused = Congestion { streams_max: 2, pause: true, ..Congestion::NONE };
    let (with_pause, waited_more) = spent(paused);
    // The cable is the bottleneck of both; the other receiver waits as long as it with pause frames,
    // and without has its megabyte at two thirds of the rate of a card: 4 ms longer than by itself.
    assert_eq!(plain, Nanos::new(3 * LATENCY + 3 * MB_NS));
    assert_eq!(with_pause, plain);
    assert_eq!(waited_more - waited, 3 * MB_NS - MB_NS * 3 / 2);
}

#[test]
fn ranks_that_wait_for_each_other_are_a_deadlock_that_names_them() {
    let network = network(2);
    let cross = vec![
        vec![send(0, 1, MB), WAIT, receive(1), WAIT],
        vec![send(1, 0, MB), WAIT, receive(0), WAIT],
    ];
    let error = run(&network, cross, Congestion::NONE).unwrap_err();
    assert_eq!(
        error.to_string(),
        "deadlock after 50us: 2 of 2 actors wait, 0 to send to 1 (tag 0), 1 to send to 0 (tag 0)"
    );
    // Small messages are under way before anybody asks.
    let cross = vec![
        vec![send(0, 1, 1000), WAIT, receive(1), WAIT],
        vec![send(1, 0, 1000), WAIT, receive(0), WAIT],
    ];
    assert!(run(&network, cross, Congestion::NONE).is_ok());
}

fn settings(text: &str) -> Settings {
    Settings::parse(Skeleton::Hpl, text, "machine.toml").expect("settings")
}

/// One process has nobody to talk to: it takes what its flops take, counted block by block.
#[test]
fn hpl_on_one_process_takes_its_operations() {
    let (wiring, plan) = fabric("mesh 2", 1);
    let input =
        settings("n = 2000\nnb = 100\nmflop_per_s = 1000\npanel_share = 1.0\nseed = 3").input();
    let predicted = predict(&wiring, &plan, &input).unwrap();
    // Sum over panels j of n_j nb^2 (panel) + (nb^2 + 2 nb r_j) (r_j + 1) (triangle and product, the
    // right-hand side being one more column), r_j = n_j - nb.
    let (n, nb) = (2000.0, 100.0);
    let flop: f64 = (0..20)
        .map(|panel| n - nb * f64::from(panel))
        .map(|left| left * nb * nb + (nb * nb + 2.0 * nb * (left - nb)) * (left - nb + 1.0))
        .sum();
    let wrong = predicted.time.as_secs_f64() / (flop / 1e9) - 1.0;
    assert!(wrong.abs() < 0.01, "{predicted:?}, {flop}");
}

#[test]
fn hpl_is_never_faster_than_its_bounds_and_the_same_again() {
    let (wiring, plan) = fabric("tree 8", 4);
    for extra in [
        "look_ahead = 0",
        "broadcast = \"2ring-modified\"",
        "grid_order = \"column-major\"",
        "placement = \"random\"",
        "broadcast = \"1ring-modified\"",
        "broadcast = \"2ring\"",
        "patience = 0",
    ] {
        let text = format!("n = 12_000\nnb = 200\np = 4\nq = 8\n{extra}");
        let input = settings(&text).input();
        let one = predict(&wiring, &plan, &input).unwrap();
        assert!(one.time >= one.bounds.least(), "{extra}: {one:?}");
        assert_eq!(one, predict(&wiring, &plan, &input).unwrap(), "{extra}");
        assert!(one.breakdown.iter().map(|(_, share)| share).sum::<f64>() <= 1.0 + 1e-9, "{extra}");
    }
}

/// Rank by rank all processes do what their columns do, and little more: the same matrix products, and
/// panels and swaps of the same sizes.
#[test]
fn hpl_by_packets_takes_about_as_long_as_by_flow() {
    let (wiring, plan) = fabric("complete 4", 4);
    for extra in ["", "look_ahead = 0", "broadcast = \"2ring\"", "grid_order = \"column-major\""] {
        let text = format!("n = 3_000\nnb = 100\np = 4\nq = 4\nmflop_per_s = 500\n{extra}\n");
        let of = |method: &str| {
            let text = format!("{text}method = \"{method}\"");
            predict(&wiring, &plan, &settings(&text).input()).unwrap()
        };
        let [flow, packet] = ["flow", "packet"].map(of);
        let ratio = packet.time.as_secs_f64() / flow.time.as_secs_f64();
        assert!((0.9..1.3).contains(&ratio), "{extra}: {ratio}\n{flow:?}\n{packet:?}");
        assert!(packet.time >= packet.bounds.least(), "{extra}");
        let octets = |predicted: &prediction::Prediction| {
            predicted.carried.iter().map(|(_, bytes)| bytes.get()).sum::<u64>()
        };
        // Pivots are exchanged, pieces made equal, and the solution found, which the other leaves out.
        let [flow, packet] = [octets(&flow), octets(&packet)];
        assert!(flow < packet && packet < flow * 3 / 2, "{extra}: {flow}, {packet}");
    }
}

/// On links without delay and with much more room than is wanted, 32 processes take what the one with
/// the most to compute takes, but for the panels, which the look-ahead hides.
#[test]
fn hpl_on_fast_cables_takes_what_it_computes() {
    let (mut wiring, plan) = fabric("tree 8", 4);
    wiring.rate = BitsPerSecond::new(1_000_000_000_000_000);
    let text = "n = 24_000\nnb = 100\np = 4\nq = 8\nlatency = \"0s\"\nwithin_host = \"1000Gbit/s\"";
    let predicted = predict(&wiring, &plan, &settings(text).input()).unwrap();
    let wrong = predicted.time.as_secs_f64() / predicted.bounds.compute.as_secs_f64() - 1.0;
    assert!((0.0..0.05).contains(&wrong), "{wrong}: {predicted:?}");
}

#[test]
fn what_does_not_fit_is_refused_with_the_numbers() {
    let (wiring, plan) = fabric("mesh 2", 2);
    let refused = |text: &str| predict(&wiring, &plan, &settings(text).input()).unwrap_err();
    let PredictError::Placement(ranks) = refused("p = 3\nq = 3\nslots = 2") else { unreachable!() };
    assert_eq!(
        ranks.to_string(),
        "9 ranks do not fit into slots: 8 are there, 2 on each of 4 hosts"
    );
    let memory = refused("p = 2\nq = 2\nn = 100_000\nmemory = \"16GB\"").to_string();
    assert_eq!(
        memory,
        "the matrix of 80000800kB is larger than the memory of 4 hosts with 16GB each"
    );
    let messages =
        refused("p = 2\nq = 2\nn = 20_000_000\nnb = 200\nmethod = \"packet\"").to_string();
    assert!(messages.contains("more than 20 million"), "{messages}");
    let error =
        Settings::parse(Skeleton::Hpl, "nn = 3\np = 0\n", "machine.toml").unwrap_err().to_string();
    assert!(error.contains("machine.toml:1: nn: unknown key"), "{error}");
    assert!(error.contains("machine.toml:2: p: "), "{error}");
}
