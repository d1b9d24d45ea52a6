//! Intervals against what they are to cover, warm-ups against runs that have one or none.

use meikyo_models::replications::{figures, replication, statistics, warm_up};
use meikyo_models::scenario::{Scenario, ScenarioError};
use meikyo_models::{Report, analysis};
use meikyo_sim::{
    Confidence, Line, LineContent, Observer, Options, Progress, Scheduler, Tally, Unobserved,
};
use meikyo_units::{Nanos, SimTime};

fn options() -> Options {
    Options::new(Scheduler::Sequential, 1)
}

fn scenario(text: &str) -> Scenario {
    Scenario::parse(text, "test.toml").expect("a scenario")
}

fn reports(scenario: &Scenario, count: u32, options: &Options) -> Vec<Report> {
    let report = |index| {
        let scenario = replication(scenario, index).expect("the seed has an effect");
        scenario.run(options, &mut Unobserved).expect("the model keeps the rules")
    };
    (0..count).map(report).collect()
}

/// 200 intervals from 10 runs each, of the share that a queue without room turns away, which theory
/// knows: 0.5. Of a count of 200 the standard deviation is 3.1 at 95 %, and 5.7 at 80 %.
#[test]
fn intervals_cover_the_true_mean_as_often_as_they_say() {
    let text = "model = \"queue\"\ninterarrival = \"2us\"\nservice = \"2us\"\ncapacity = 1\n\
                customers = 500\n";
    let theory =
        analysis::OpenQueue { interarrival: Nanos::from_micros(2), service: Nanos::from_micros(2) };
    let truth = theory.exponential_with_capacity(1, 1).turned_away_share;
    let levels = [0.8, 0.95].map(|share| Confidence::new(share).expect("a share"));
    let mut covered = [0_u32; 2];
    for study in 0..200 {
        let mut scenario = scenario(text);
        scenario.set("seed", &(study * 10).to_string()).expect("a seed");
        let reports = reports(&scenario, 10, &options());
        for (covered, level) in covered.iter_mut().zip(levels) {
            let figures = figures(&reports, level);
            let share = figures.iter().find(|figure| figure.name == "turned_away_share");
            let interval = share.and_then(|share| share.estimate.interval).expect("10 values");
            *covered += u32::from(interval.covers(truth));
        }
    }
    assert!((138..=182).contains(&covered[0]), "{covered:?}");
    assert!((178..=199).contains(&covered[1]), "{covered:?}");
}

/// Keeps the values of the first series.
#[derive(Default)]
struct Values(Vec<(SimTime, f64)>);

impl Observer for Values {
    fn lines(&mut self, lines: &[Line]) {
        for line in lines {
            if let LineContent::Value { value, .. } = line.content {
                self.0.push((line.key.time, value));
            }
        }
    }
    fn progress(&mut self, _progress: &Progress) {}
}

/// The model `closed` tallies what it records, at the same instants.
#[test]
fn statistics_leave_out_what_comes_before_and_know_the_rest_by_size() {
    let scenario = scenario("model = \"closed\"\njobs = 200\ncustomers = 10\n");
    let from = SimTime::START + Nanos::from_micros(300);
    let mut values = Values::default();
    let options = options().statistics_from(from);
    let report = scenario.run(&options, &mut values).expect("the model keeps the rules");
    let all = values.0.len();
    let mut kept: Vec<f64> =
        values.0.into_iter().filter(|(at, _)| *at >= from).map(|(_, value)| value).collect();
    assert!(kept.len() > 500 && kept.len() < all - 100, "{} of {all}", kept.len());
    let statistic = &report.statistics[0];
    let total = statistic.total();
    let count = u64::try_from(kept.len()).expect("a count");
    assert_eq!((total.count, statistic.histogram.count()), (count, count));
    let mut tally = Tally::EMPTY;
    kept.iter().for_each(|value| tally.add(*value));
    let near = |one: Option<f64>, other: Option<f64>| {
        let (one, other) = (one.expect("a value"), other.expect("a value"));
        (one / other - 1.0).abs() < 1e-9
    };
    assert!(near(total.mean(), tally.mean()) && near(total.variance(), tally.variance()));
    kept.sort_by(f64::total_cmp);
    for (share, per_cent) in [(0.5, 50), (0.9, 90), (0.99, 99)] {
        // A product that is rounded up may have the next rank.
        let rank = (kept.len() * per_cent).div_ceil(100);
        let (least, greatest) = (kept[rank - 1], kept[rank.min(kept.len() - 1)]);
        let found = statistic.quantile(share).expect("there are values");
        let within = least * (1.0 - 1.0 / 256.0)..=greatest * (1.0 + 1.0 / 256.0);
        assert!(within.contains(&found), "{share}: {found}, not in {within:?}");
    }
    let whole = Scenario::run(&scenario, &options.statistics_from(SimTime::START), &mut Unobserved);
    let whole = whole.expect("the model keeps the rules");
    assert_eq!(whole.events, report.events);
    assert_eq!(whole.statistics[0].total().count, 2000);
}

#[test]
fn a_queue_that_fills_up_has_a_warm_up_and_one_that_never_does_has_none() {
    // Nearly as many customers come as are served: it takes long until the queue is as long as it is
    // in the mean.
    let mut full = scenario(
        "model = \"queue\"\ninterarrival = \"1us\"\nservice = \"900ns\"\ncustomers = 5_000\n",
    );
    let timed = reports(&full, 20, &options().timelines());
    let found = warm_up(&timed);
    let end = Nanos::from_millis(5);
    assert!(found.span > Nanos::ZERO && found.span <= end, "{found:?}");
    assert_eq!(found.statistic.as_deref(), Some("wait_us"));
    let waits = |reports: &[Report]| statistics(reports, Confidence::USUAL)[0].total;
    let rest = reports(&full, 20, &options().statistics_from(SimTime::START + found.span));
    assert_eq!(waits(&timed).count, 20 * 5_000);
    assert!(waits(&rest).count < 20 * 5_000);
    assert!(waits(&rest).count > 20 * 2_000, "at most half of a run is left out");

    full.set("servers", "40").expect("a key");
    let none = warm_up(&reports(&full, 5, &options().timelines()));
    assert_eq!((none.span, none.statistic, none.settles), (Nanos::ZERO, None, true));
}

#[test]
fn replications_have_the_next_seeds_and_need_something_to_draw() {
    let base = scenario("model = \"queue\"\ncustomers = 50\nseed = 41\n");
    let mut same = base.clone();
    same.set("seed", "43").expect("a seed");
    let digest = |scenario: &Scenario| {
        scenario.run(&options(), &mut Unobserved).expect("it keeps the rules").result_digest
    };
    assert_eq!(digest(&replication(&base, 2).expect("drawn")), digest(&same));
    assert_ne!(digest(&base), digest(&same));
    let idle = scenario(
        "model = \"closed\"\nstations = 1\nthink = \"0s\"\nservice_times = \"constant\"\n",
    );
    let error = replication(&idle, 1).unwrap_err();
    assert!(matches!(error, ScenarioError::Alike { .. }), "{error}");
}
