//! Rates of the metadata service: against bounds that nothing can pass, against a simulation of its own
//! in this file, and what is said where there is no steady state.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use meikyo_models::Report;
use meikyo_models::metadata_service::{Load, Metadata, Mix, RootList, Workload};
use meikyo_models::scenario::Scenario;
use meikyo_sim::{Line, LineContent, Observer, Options, Progress, Scheduler, Unobserved};
use meikyo_units::{Nanos, SimTime};

fn run(metadata: &Metadata) -> Report {
    let options = Options::new(Scheduler::Sequential, 1);
    metadata.run(&options, &mut Unobserved).expect("the service keeps its own rules")
}

#[track_caller]
fn figure(report: &Report, name: &str) -> f64 {
    report.figure(name).unwrap_or_else(|| panic!("{name} is in {:?}", report.figures))
}

#[test]
fn no_rate_is_above_the_bound_however_few_the_operations_are() {
    for servers in [1, 2, 5] {
        for clients in [1, 4, 11, 60] {
            for operations in [1, 2, 3, 10, 40] {
                for stagger in [None, Some(Nanos::ZERO)] {
                    let paper = Metadata::paper(servers, clients, operations);
                    let report = run(&Metadata { stagger, ..paper });
                    let [found, bound] =
                        ["creates_per_s", "bound_per_s"].map(|name| figure(&report, name));
                    assert!(
                        found <= bound * (1.0 + 1e-9),
                        "{found} > {bound}: {servers} servers, {clients} clients, {operations} \
                         operations, {stagger:?}"
                    );
                }
            }
        }
    }
    // Eleven clients of one server find their turns, and then nobody is in the way of anybody.
    let report = run(&Metadata::paper(1, 11, 10));
    let share = figure(&report, "creates_per_s") / figure(&report, "bound_per_s");
    assert!((0.99..=1.0 + 1e-9).contains(&share), "{share}");
}

/// Numbers that are drawn for the simulation in this file.
struct Dice(u64);

impl Dice {
    /// Marsaglia's xorshift64, and the upper bits of a product.
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let share = u128::from(self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)) * u128::from(limit);
        u64::try_from(share >> 64).expect("a share is below the limit")
    }
}

/// Creates a second of clients that never end, by a simulation that shares nothing with the kernel: a
/// heap of instants, every time as the paper's table 2 has it, servers drawn at random.
fn creates_per_s(servers: usize, clients: u64, rounds: u64) -> f64 {
    const START_UP: u64 = 32_000;
    const SLOW: u64 = 11_444;
    const FAST: u64 = 1_144;
    const STORE: u64 = 500_000;
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let (mut receives, mut sends) = (vec![0; servers], vec![0; servers]);
    // The instant, whether an answer is ready (else a request begins to arrive), and the server.
    let mut heap = BinaryHeap::new();
    let draw = |dice: &mut Dice| {
        let server = dice.below(u64::try_from(servers).expect("servers are few"));
        usize::try_from(server).expect("servers are few")
    };
    for _ in 0..clients {
        let begins = dice.below(719_464);
        heap.push(Reverse((begins, false, draw(&mut dice))));
    }
    let mut instants = Vec::new();
    let wanted = usize::try_from(clients * rounds).expect("they fit into memory");
    while instants.len() < wanted {
        let Reverse((now, ready, server)) = heap.pop().expect("clients never end");
        if ready {
            let begins = now.max(sends[server]) + START_UP;
            sends[server] = begins + FAST;
            let answered = begins + FAST + START_UP + FAST + START_UP + SLOW;
            instants.push(answered);
            let next = answered + START_UP + SLOW + START_UP + FAST + START_UP;
            heap.push(Reverse((next, false, draw(&mut dice))));
        } else {
            receives[server] = now.max(receives[server]) + FAST;
            heap.push(Reverse((receives[server] + STORE, true, server)));
        }
    }
    instants.sort_unstable();
    let [from, to] = [wanted / 4, wanted - wanted / 10];
    let span = Nanos::new(instants[to] - instants[from]).as_secs_f64();
    f64::from(u32::try_from(to - from).expect("a few million")) / span
}

#[test]
fn rates_are_those_of_an_independent_simulation() {
    for (servers, clients, operations) in
        [(14, 704, 250), (14, 88, 300), (4, 120, 300), (3, 33, 1000)]
    {
        let paper = Metadata::paper(servers, clients, operations);
        let report = run(&Metadata { root_list: RootList::Known, ..paper });
        let found = figure(&report, "creates_per_s");
        let expected = creates_per_s(usize::from(servers), u64::from(clients), 600);
        assert!(
            (found / expected - 1.0).abs() < 0.006,
            "{found} instead of {expected}: {servers} servers, {clients} clients"
        );
    }
}

#[test]
fn an_open_loop_above_capacity_is_called_saturated_with_what_is_offered() {
    // Two servers whose interfaces take 33.144 us for an answer do 60,343 operations a second.
    for (interarrival_us, factor) in [(2_000, None), (800, Some(88.0 / 800e-6 / 60_343.0))] {
        let interarrival = Nanos::from_micros(interarrival_us);
        let load = Load::Open { interarrival, in_flight_max: 1_000_000 };
        let report = run(&Metadata { load, ..Metadata::paper(2, 88, 200) });
        let offered = figure(&report, "offered_per_s");
        assert!((offered * interarrival.as_secs_f64() / 88.0 - 1.0).abs() < 1e-9);
        assert!((figure(&report, "capacity_per_s") / 60_343.0 - 1.0).abs() < 1e-4);
        let found = figure(&report, "creates_per_s");
        match factor {
            None => {
                assert_eq!(report.figure("overloaded_by_factor"), None);
                assert!(report.notes.is_empty(), "{:?}", report.notes);
                assert!((found / offered - 1.0).abs() < 0.05, "{found} of {offered}");
            }
            Some(factor) => {
                let told = figure(&report, "overloaded_by_factor");
                assert!((told / factor - 1.0).abs() < 1e-4, "{told}");
                assert_eq!(
                    report.notes,
                    ["saturated: 110000 operations a second are offered, and the service can do \
                      60343; queues grow for as long as clients begin operations"]
                );
                assert!((0.97..1.001).contains(&(found / 60_343.0)), "{found}");
            }
        }
    }
}

/// Theory knows no capacity where directories are listed, but a server that is never idle is seen.
#[test]
fn an_open_loop_of_unknown_capacity_is_called_saturated_by_what_is_never_idle() {
    let mix = Mix { create: 5, stat: 1, lookup: 1, unlink: 1, list: 1 };
    for (interarrival_us, is_saturated) in [(8_000, false), (200, true)] {
        let load = Load::Open {
            interarrival: Nanos::from_micros(interarrival_us),
            in_flight_max: 1_000_000,
        };
        let workload = Workload::Mix(mix);
        let report = run(&Metadata { load, workload, ..Metadata::paper(2, 88, 200) });
        assert_eq!(report.figure("capacity_per_s"), None);
        let told = report.notes.iter().any(|note| {
            note.starts_with("saturated: ") && note.contains("is never idle; 440000 operations")
        });
        assert_eq!(told, is_saturated, "{:?}", report.notes);
    }
}

#[test]
fn the_first_look_ups_of_many_clients_are_told_and_can_be_left_out() {
    let paper = Metadata::paper(4, 20_000, 4);
    let asked = run(&paper);
    let notes = asked.notes.join("\n");
    assert!(notes.contains("answering 20000 of them takes 0.663 s of the "), "{notes}");
    assert!(notes.contains("root_list = \"known\""), "{notes}");
    assert!(notes.contains("rates are means of the whole run"), "{notes}");
    let known = run(&Metadata { root_list: RootList::Known, ..paper });
    assert!(known.notes.is_empty(), "{:?}", known.notes);
    let share = figure(&known, "creates_per_s") / figure(&known, "bound_per_s");
    assert!((0.95..=1.001).contains(&share), "{share}");
    assert!(figure(&asked, "creates_per_s") < 0.8 * figure(&known, "creates_per_s"));
    assert_eq!(asked.events - known.events, 20_000 * 7);
}

/// The response times that a run tells from an instant on.
struct Responses(SimTime, Vec<f64>);

impl Observer for Responses {
    fn lines(&mut self, lines: &[Line]) {
        for line in lines.iter().filter(|line| line.key.time >= self.0) {
            if let LineContent::Value { value, .. } = line.content {
                self.1.push(value);
            }
        }
    }
    fn progress(&mut self, _progress: &Progress) {}
}

#[test]
fn a_warm_up_that_is_given_is_left_out_of_rates_and_response_times() {
    let warm_up = Nanos::from_millis(40);
    let metadata = Metadata { warm_up: Some(warm_up), ..Metadata::paper(2, 200, 60) };
    let mut responses = Responses(SimTime::START + warm_up, Vec::new());
    let options = Options::new(Scheduler::Sequential, 1);
    let report = metadata.run(&options, &mut responses).expect("it keeps the rules");
    assert!((figure(&report, "steady_from_s") - 0.04).abs() < 1e-12);
    let count = f64::from(u32::try_from(responses.1.len()).expect("a few"));
    let mean = responses.1.iter().sum::<f64>() / count;
    assert!((figure(&report, "response_us_mean") / mean - 1.0).abs() < 1e-12);
    let all = run(&Metadata { warm_up: None, ..metadata });
    assert!(count < figure(&all, "operations_total"));
    assert_eq!(report.result_digest, all.result_digest);
}

#[test]
fn a_seed_has_an_effect_or_is_refused() {
    let digest = |seed: &str| {
        let mut scenario = Scenario::parse("model = \"metadata\"\noperations = 20\n", "s.toml")
            .expect("it is a scenario");
        scenario.set("seed", seed).expect("it is a seed");
        let options = Options::new(Scheduler::Sequential, 1);
        scenario.run(&options, &mut Unobserved).expect("it keeps the rules").result_digest
    };
    assert_eq!(digest("1"), digest("1"));
    assert_ne!(digest("1"), digest("2"));
    let refused = |text: &str| match Scenario::parse(text, "s.toml") {
        Ok(scenario) => panic!("{scenario:?} is a scenario"),
        Err(error) => error.to_string(),
    };
    assert_eq!(
        refused("model = \"metadata\"\nstagger = \"0s\"\nseed = 2\n"),
        "s.toml:3: seed: has no effect, since nothing is drawn; it needs stagger above 0s, load = \
         \"open\" or workload = \"mix\""
    );
    assert!(
        refused("model = \"ring\"\nswitches = 2\nseed = 2\n").contains("3: seed: has no effect")
    );
    let constant =
        "model = \"closed\"\nstations = 1\nthink = \"0s\"\nservice_times = \"constant\"\n";
    assert!(refused(&format!("{constant}seed = 2\n")).contains("5: seed: has no effect"));
    // Nobody gave these a seed, or a setting took its effect away.
    assert!(Scenario::parse(constant, "s.toml").is_ok());
    let mut scenario =
        Scenario::parse("model = \"metadata\"\nseed = 2\n", "s.toml").expect("it is");
    scenario.set("stagger", "0s").expect("it is a span");
    assert_eq!(scenario.check(), Ok(()));
}
