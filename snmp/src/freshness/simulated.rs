//! The detector against agents whose refresh instants are known.

use meikyo_units::{Nanos, WallTime};

use super::{Activity, Class, Detector, Finding, Source};

const MS: i64 = 1_000_000;
const POLL: i64 = 100 * MS;

/// splitmix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `low..high`.
    fn within(&mut self, low: i64, high: i64) -> i64 {
        let width = u64::try_from(high - low).unwrap();
        low + i64::try_from(self.next() % width).unwrap()
    }

    fn percent(&mut self, percent: i64) -> bool {
        self.within(0, 100) < percent
    }
}

/// How the agent refreshes.
#[derive(Debug, Clone, Copy)]
enum Refresh {
    /// At multiples of this span.
    Timer(i64),
    /// At the first request after this span, as net-snmp does.
    OnDemand(i64),
    /// At spans uniform in this range.
    Between(i64, i64),
    /// At every request.
    Always,
    /// The value never changes in a run.
    Never,
}

struct Agent {
    random: Random,
    refresh: Refresh,
    /// Percent of refreshes at which the value moves.
    moves: i64,
    /// Percent of answers that are lost.
    lost: i64,
    poll: i64,
    due: i64,
    refreshed: i64,
    at: i64,
    counter: u64,
    shown: Option<u64>,
    detector: Detector,
    activity: Activity,
    findings: Vec<(i64, Finding)>,
}

impl Agent {
    fn new(seed: u64, refresh: Refresh) -> Self {
        let mut random = Random(seed);
        let at = 1_700_000_000 * 1_000 * MS;
        let due = at + random.within(0, 1_000 * MS);
        Self {
            random,
            refresh,
            moves: 100,
            lost: 0,
            poll: POLL,
            due,
            refreshed: at,
            at,
            counter: 0,
            shown: None,
            detector: Detector::new(),
            activity: Activity::default(),
            findings: Vec::new(),
        }
    }

    fn refresh_until(&mut self, now: i64) {
        let mut refreshes = 0;
        while self.due <= now {
            refreshes += 1;
            self.refreshed = self.due;
            self.due = match self.refresh {
                Refresh::Timer(period) => self.due + period,
                Refresh::OnDemand(period) => {
                    self.refreshed = now;
                    now + period
                }
                Refresh::Between(least, greatest) => self.due + self.random.within(least, greatest),
                Refresh::Always => {
                    self.refreshed = now;
                    now + 1
                }
                Refresh::Never => i64::MAX,
            };
        }
        for _ in 0..refreshes {
            if self.random.percent(self.moves) {
                self.counter += 1;
            }
        }
    }

    fn run(&mut self, seconds: i64) -> &mut Self {
        for _ in 0..seconds * 1_000 * MS / self.poll {
            self.at += self.poll;
            let now = self.at + self.random.within(0, 2 * MS);
            self.refresh_until(now);
            if self.random.percent(self.lost) {
                continue;
            }
            let changed = self.shown.is_some_and(|shown| shown != self.counter);
            self.shown = Some(self.counter);
            let received = WallTime::from_nanos(now);
            if changed {
                self.activity.moved(received);
            }
            self.activity.uptime_moved(received);
            if let Some(finding) = self.detector.observe(received, changed, &self.activity) {
                self.findings.push((now, finding));
            }
        }
        self
    }

    /// Polls until the finding satisfies `wanted`; seconds that it took.
    fn seconds_until(&mut self, most: i64, wanted: impl Fn(Class) -> bool) -> i64 {
        for second in 0..most {
            if self.class().is_some_and(&wanted) {
                return second;
            }
            self.run(1);
        }
        panic!("{:?} is taken for {:?} after {most} s", self.refresh, self.class());
    }

    fn class(&self) -> Option<Class> {
        self.detector.finding().map(|finding| finding.class)
    }
}

/// Deviation of the found period from `truth`, or `None` if none was found.
fn deviation(class: Option<Class>, truth: i64) -> Option<f64> {
    let Some(Class::Periodic { period, .. }) = class else { return None };
    let truth = Nanos::new(u64::try_from(truth).unwrap()).as_secs_f64();
    Some((period.as_secs_f64() / truth - 1.0).abs())
}

fn is_period(class: Class, truth: i64) -> bool {
    deviation(Some(class), truth).is_some_and(|off| off < 0.05)
}

fn seeds() -> std::ops::Range<u64> {
    let first = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    first..first + 20
}

#[test]
fn periods_from_two_polls_to_five_seconds_are_found_within_five_percent_in_ten_refreshes() {
    let mut runs = 0;
    for seed in seeds() {
        for millis in (200..5_000).step_by(37) {
            let period = millis * MS;
            let mut agent =
                Agent::new(seed * 10_000 + millis.unsigned_abs(), Refresh::Timer(period));
            agent.run(11 * millis / 1_000 + 2);
            let off = deviation(agent.class(), period);
            assert!(off.is_some_and(|off| off < 0.05), "{seed} {millis} ms: {:?}", agent.class());
            runs += 1;
        }
    }
    assert!(runs > 2_000);
}

#[test]
fn the_phase_lies_within_a_poll_of_a_true_refresh() {
    for seed in seeds() {
        for millis in [200, 330, 500, 1_000, 2_300, 5_000] {
            let mut agent = Agent::new(seed, Refresh::Timer(millis * MS));
            agent.run(20 * millis / 1_000 + 2);
            let Some(Class::Periodic { phase: Some(phase), .. }) = agent.class() else {
                panic!("{seed} {millis}: {:?}", agent.class());
            };
            let off = (agent.refreshed - phase.as_nanos()).rem_euclid(millis * MS);
            let off = off.min(millis * MS - off);
            assert!(off <= POLL + 2 * MS, "{seed} {millis} ms: {} ms off", off / MS);
        }
    }
}

#[test]
fn idle_values_do_not_lengthen_the_period() {
    let (mut wrong, mut runs) = (Vec::new(), 0);
    for seed in seeds() {
        for millis in [200, 250, 500, 700, 1_000, 3_000, 5_000] {
            for moves in [80, 50, 30] {
                let mut agent = Agent::new(seed, Refresh::Timer(millis * MS));
                agent.moves = moves;
                agent.run(120 * millis / 1_000 * 30 / moves + 5);
                runs += 1;
                if deviation(agent.class(), millis * MS).is_none_or(|off| off > 0.05) {
                    wrong.push((seed, millis, moves, agent.class()));
                }
            }
        }
    }
    // By chance a few may show only every second refresh for as long as the window is.
    assert!(wrong.len() * 50 < runs, "{} of {runs}: {wrong:?}", wrong.len());
}

#[test]
fn lost_answers_do_not_lengthen_the_period() {
    let (mut unknown, mut runs) = (0, 0);
    for seed in seeds() {
        for millis in [300, 500, 1_000, 3_000, 5_000] {
            let mut agent = Agent::new(seed, Refresh::Timer(millis * MS));
            agent.lost = 10;
            agent.run(40 * millis / 1_000);
            runs += 1;
            match deviation(agent.class(), millis * MS) {
                Some(off) => assert!(off < 0.05, "{seed} {millis} ms: {:?}", agent.class()),
                None => unknown += 1,
            }
        }
    }
    assert!(unknown * 20 <= runs, "{unknown} of {runs}");
}

#[test]
fn a_cache_that_is_filled_on_demand_is_periodic() {
    for seed in seeds() {
        for millis in [250, 1_000, 3_000, 5_000] {
            let mut agent = Agent::new(seed, Refresh::OnDemand(millis * MS));
            agent.run(15 * millis / 1_000 + 2);
            let Some(Class::Periodic { period, .. }) = agent.class() else {
                panic!("{seed} {millis} ms: {:?}", agent.class());
            };
            let truth = Nanos::from_millis(millis.unsigned_abs()).as_secs_f64();
            let excess = period.as_secs_f64() - truth;
            assert!((-0.01..0.11).contains(&excess), "{seed} {millis} ms: {excess}");
        }
    }
}

#[test]
fn irregular_refreshes_are_told_with_their_range() {
    for seed in seeds() {
        let mut agent = Agent::new(seed, Refresh::Between(600 * MS, 1_200 * MS));
        agent.run(60);
        let Some(Class::Irregular { least, mean, greatest }) = agent.class() else {
            panic!("{seed}: {:?}", agent.class());
        };
        let (least, mean, greatest) =
            (least.as_secs_f64(), mean.as_secs_f64(), greatest.as_secs_f64());
        assert!((0.5..0.75).contains(&least), "{seed}: {least}");
        assert!((0.75..1.05).contains(&mean), "{seed}: {mean}");
        assert!((1.05..1.31).contains(&greatest), "{seed}: {greatest}");
        let told = agent.findings.len();
        assert!(told < 12, "{seed}: {told} findings in a minute");
        agent.findings.clear();
        agent.run(3_600);
        let periodic =
            agent.findings.iter().filter(|(_, f)| matches!(f.class, Class::Periodic { .. }));
        assert!(periodic.count() <= 1, "{seed}: {:?}", agent.findings);
    }
}

#[test]
fn fresh_values_are_told_so_also_when_they_move_seldom() {
    for seed in seeds() {
        for moves in [100, 90, 60, 30] {
            let mut agent = Agent::new(seed, Refresh::Always);
            agent.moves = moves;
            agent.run(60);
            assert_eq!(agent.class(), Some(Class::EveryPoll), "{seed} {moves} %");
            agent.findings.clear();
            agent.run(600);
            assert!(agent.findings.len() < 10, "{seed} {moves} %: {:?}", agent.findings);
        }
    }
}

#[test]
fn a_value_that_hardly_moves_is_seldom_taken_for_periodic() {
    let mut agents: Vec<_> = seeds().map(|seed| Agent::new(seed, Refresh::Always)).collect();
    for agent in &mut agents {
        agent.moves = 10;
        agent.run(600);
    }
    let periodic = |(_, found): &(i64, Finding)| matches!(found.class, Class::Periodic { .. });
    let taken = agents.iter().filter(|agent| agent.findings.iter().any(periodic)).count();
    assert!(taken * 5 <= agents.len(), "{taken} of {}", agents.len());
}

#[test]
fn a_changed_period_is_found_in_about_five_refreshes() {
    for seed in seeds() {
        for (from, to) in
            [(3_000, 1_000), (1_000, 3_000), (1_000, 2_000), (500, 1_300), (2_000, 1_700)]
        {
            let mut agent = Agent::new(seed, Refresh::Timer(from * MS));
            agent.run(30 * from / 1_000);
            assert!(is_period(agent.class().unwrap(), from * MS), "{seed} {from}");
            agent.refresh = Refresh::Timer(to * MS);
            let took = agent.seconds_until(100, |class| is_period(class, to * MS));
            assert!(took * 1_000 <= 8 * to + from, "{seed} {from} -> {to} ms took {took} s");
        }
    }
}

#[test]
fn a_freshened_cache_is_found_and_so_is_its_end() {
    for seed in seeds() {
        let mut agent = Agent::new(seed, Refresh::OnDemand(3_000 * MS));
        agent.run(60);
        agent.refresh = Refresh::Always;
        assert!(agent.seconds_until(10, |class| class == Class::EveryPoll) <= 4);
        agent.refresh = Refresh::OnDemand(1_000 * MS);
        let took = agent.seconds_until(30, |class| matches!(class, Class::Periodic { .. }));
        assert!(took <= 8, "{seed}: {took} s");
        agent.refresh = Refresh::Between(600 * MS, 1_200 * MS);
        let took = agent.seconds_until(60, |class| matches!(class, Class::Irregular { .. }));
        assert!(took <= 30, "{seed}: {took} s");
    }
}

#[test]
fn silence_is_frozen_only_if_the_whole_agent_table_is_silent() {
    let mut agent = Agent::new(7, Refresh::Timer(1_000 * MS));
    agent.run(30);
    agent.refresh = Refresh::Never;
    agent.due = i64::MAX;
    agent.run(12);
    assert_eq!(agent.class(), Some(Class::Frozen));
    // Another value of the table moves: the cache lives.
    agent.activity.moved(WallTime::from_nanos(agent.at));
    agent.run(1);
    assert_eq!(agent.class(), Some(Class::Unchanged));
    // It moves again.
    agent.refresh = Refresh::Timer(1_000 * MS);
    agent.due = agent.at;
    agent.run(2);
    assert!(is_period(agent.class().unwrap(), 1_000 * MS), "{:?}", agent.class());
}

#[test]
fn a_table_that_falls_silent_after_its_counters_is_frozen_too() {
    let mut agent = Agent::new(7, Refresh::Always);
    agent.run(8);
    assert_eq!(agent.class(), Some(Class::EveryPoll));
    agent.refresh = Refresh::Never;
    agent.due = i64::MAX;
    agent.run(1);
    // One status changes a second after the counters have stopped, and nothing from then on.
    agent.activity.moved(WallTime::from_nanos(agent.at));
    let took = agent.seconds_until(25, |class| class == Class::Frozen);
    assert!((9..=12).contains(&took), "frozen after {took} s");
}

#[test]
fn a_value_that_rests_in_a_table_that_moves_is_unchanged_for_as_long() {
    let mut agent = Agent::new(7, Refresh::Always);
    agent.run(8);
    agent.refresh = Refresh::Never;
    agent.due = i64::MAX;
    for _ in 0..120 {
        agent.run(1);
        agent.activity.moved(WallTime::from_nanos(agent.at));
        assert_ne!(agent.class(), Some(Class::Frozen));
    }
    assert_eq!(agent.class(), Some(Class::Unchanged));
}

#[test]
fn an_agent_that_stands_still_is_not_frozen_but_unchanged() {
    let (mut detector, activity) = (Detector::new(), Activity::default());
    let found = (0..400)
        .find_map(|poll| detector.observe(WallTime::from_nanos(poll * POLL), false, &activity));
    assert_eq!(found.map(|finding| finding.class), Some(Class::Unchanged));
}

#[test]
fn a_declared_cache_is_told_as_declared_until_polling_shows_it() {
    let mut agent = Agent::new(3, Refresh::OnDemand(3_000 * MS));
    agent.detector = Detector::declared(Nanos::from_secs(3));
    let period = Nanos::from_secs(3);
    assert_eq!(
        agent.detector.finding(),
        Some(Finding { class: Class::Periodic { period, phase: None }, source: Source::Declared })
    );
    agent.run(12);
    assert_eq!(agent.detector.finding().map(|finding| finding.source), Some(Source::Observed));
    assert_eq!(
        Detector::declared(Nanos::ZERO).finding().map(|finding| finding.class),
        Some(Class::EveryPoll)
    );
}

#[test]
fn clock_steps_do_not_disturb_the_period() {
    let mut agent = Agent::new(5, Refresh::Timer(1_000 * MS));
    agent.run(30);
    for step in [-3_600_000 * MS, 7_200_000 * MS] {
        agent.at += step;
        agent.due += step;
        agent.run(30);
        assert!(is_period(agent.class().unwrap(), 1_000 * MS), "{:?}", agent.class());
    }
}

#[test]
fn a_long_run_tells_little() {
    for (seed, refresh) in [
        (1, Refresh::Timer(3_000 * MS)),
        (2, Refresh::OnDemand(3_000 * MS)),
        (3, Refresh::Timer(250 * MS)),
    ] {
        let mut agent = Agent::new(seed, refresh);
        agent.run(7_200);
        assert!(agent.findings.len() <= 8, "{refresh:?}: {:?}", agent.findings);
    }
}
