//! Thousands of histories of senders and a receiver that are cut, killed and fill up.
//!
//! Each seed makes a history in a virtual world: lines that stall and break, parties that are killed,
//! machines whose power goes, a receiver whose disk is full. When it is over, what the receiver has
//! is compared with what was made: every block once, or in a gap that was told; and at every moment,
//! nothing is acknowledged that a power cut could take.
//!
//! The short form runs with the other tests. `./x soak schedules --for 60min` goes on for longer; the
//! seed is printed when something is wrong, and `MEIKYO_SOAK_SEED` repeats it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod schedules {
    pub(crate) mod judge;
    pub(crate) mod parties;
    pub(crate) mod store;
    pub(crate) mod world;
}

use std::time::{Duration, Instant};

use schedules::judge::{Seen, StoodBy, judge, judge_standby};
use schedules::world::{Character, World};

/// Histories of the short form.
const SHORT: u64 = 600;

/// Histories of collectors that stand by for each other.
const SHORT_STANDBY: u64 = 700;

#[test]
fn what_was_sent_is_there_once_or_told_missing_whatever_happens() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let (seconds, only) = (number("MEIKYO_SOAK_SECONDS"), number("MEIKYO_SOAK_SEED"));
    let begin = now();
    let goes_on = |histories: u64| match seconds {
        Some(seconds) => begin.elapsed() < Duration::from_secs(seconds),
        None => histories < SHORT,
    };
    let (mut seen, mut histories) = (Seen::default(), 0);
    let mut seed = only.unwrap_or(1);
    while goes_on(histories) {
        let mut world = World::new(seed, Character::of_seed(seed));
        world.run();
        judge(&world, &mut seen).unwrap_or_else(|error| {
            panic!("MEIKYO_SOAK_SEED={seed}: {error}\n{:?}", Character::of_seed(seed))
        });
        histories += 1;
        if only.is_some() {
            break;
        }
        seed += 1;
    }
    tell(&format!("{histories} histories: {seen:?}"));
    if only.is_none() {
        assert!(seen.is_rich(), "the histories are too tame to show anything: {seen:?}");
    }
}

#[test]
fn of_collectors_that_stand_by_for_each_other_every_interval_is_taken_once() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let (seconds, only) = (number("MEIKYO_SOAK_SECONDS"), number("MEIKYO_SOAK_SEED"));
    let (begin, mut seen, mut wrong) = (now(), StoodBy::default(), Vec::new());
    for seed in only.unwrap_or(1).. {
        let character = Character::standing_by(seed);
        let mut world = World::new(seed, character.clone());
        world.run();
        if let Err(error) = judge_standby(&world, &mut seen) {
            wrong.push(format!("MEIKYO_SOAK_SEED={seed}: {error}\n{character:?}"));
        }
        let is_long = seconds.is_some_and(|most| begin.elapsed() < Duration::from_secs(most));
        if only.is_some() || wrong.len() > 5 || (seed >= SHORT_STANDBY && !is_long) {
            break;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    tell(&format!("{seen:?}"));
    assert!(seen.is_kept(), "{seen:?}");
    assert!(only.is_some() || seen.is_rich(), "the histories are too tame: {seen:?}");
}

#[test]
fn the_same_seed_makes_the_same_history() {
    for seed in [3, 8, 21] {
        let told = |_| {
            let mut world = World::new(seed, Character::of_seed(seed));
            world.run();
            world.digest()
        };
        let [first, second] = [0, 1].map(told);
        assert_eq!(first, second, "seed {seed}");
    }
}

#[test]
fn catching_up_delays_no_new_block() {
    let delays = |backlog_s: u64| {
        let mut world = World::new(5, Character::slow_line(backlog_s));
        world.run();
        judge(&world, &mut Seen::default()).unwrap();
        world.live_delays_ms()
    };
    let (mut without, mut with) = (delays(0), delays(120));
    without.sort_unstable();
    with.sort_unstable();
    assert!(without.len() > 500 && with.len() > 500, "{} {}", without.len(), with.len());
    let p99 = |sorted: &[u64]| sorted[sorted.len() * 99 / 100];
    // What the socket holds, 8 ms of the line, and one block of the backlog behind that.
    assert!(p99(&with) <= p99(&without) + 16, "{} ms, {} ms", p99(&with), p99(&without));
}

#[expect(clippy::print_stdout, reason = "what a long run has shown")]
fn tell(text: &str) {
    println!("{text}");
}

#[expect(clippy::disallowed_methods, reason = "the run ends after a time of the clock on the wall")]
fn now() -> Instant {
    Instant::now()
}
