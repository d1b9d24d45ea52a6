//! Thousands of histories of groups whose hosts are killed, stopped, cut off, filled up and replaced.
//!
//! Each seed makes a history in a virtual world: messages that are late or lost, daemons that are killed
//! between any two writes, machines whose power goes, disks that are full or gone. At every moment the
//! newest generation that was agreed on can be had back, and nobody ever disagrees about what that is;
//! when the faults are over, every host has it octet for octet, and another can be saved.
//!
//! `MEIKYO_SOAK_SECONDS` goes on for longer; the seed is printed when something is wrong, and
//! `MEIKYO_SOAK_SEED` repeats it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod schedules {
    pub(crate) mod hosts;
    mod levels;
    mod programs;
    pub(crate) mod seen;
    pub(crate) mod world;
}

use std::time::{Duration, Instant};

use schedules::seen::Seen;
use schedules::world::World;

/// Histories of the short form.
const SHORT: u64 = 10_000;

/// Seeds of longer forms that found something: what lacked two generations, neither of which could be rebuilt at first,
/// tried only the newer one again.
const FOUND: [u64; 1] = [13_937];

/// Threads that play them.
const THREADS: u64 = 2;

#[test]
fn whatever_happens_the_newest_generation_is_whole_and_agreed_on() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let (seconds, only) = (number("MEIKYO_SOAK_SECONDS"), number("MEIKYO_SOAK_SEED"));
    if let Some(seed) = only {
        let mut world = World::new(seed);
        tell(&format!("{:?} {:?}", world.run(), world.seen()));
        return;
    }
    let begin = now();
    let play = |first: u64| {
        let (mut seen, mut histories) = (Seen::default(), 0);
        for seed in (first..).step_by(usize::try_from(THREADS).unwrap()) {
            let goes_on = match seconds {
                Some(seconds) => begin.elapsed() < Duration::from_secs(seconds),
                None => seed < SHORT,
            };
            if !goes_on {
                break;
            }
            let mut world = World::new(seed);
            if let Err(error) = world.run() {
                panic!("MEIKYO_SOAK_SEED={seed}: {error}\n{}", world.described());
            }
            seen.add(world.seen());
            histories += 1;
        }
        (seen, histories)
    };
    let (seen, histories) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|first| scope.spawn(move || play(first))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).fold(
            (Seen::default(), 0_u64),
            |(mut all, histories), (seen, more)| {
                all.add(&seen);
                (all, histories + more)
            },
        )
    });
    tell(&format!("{histories} histories in {:?}: {seen:?}", begin.elapsed()));
    assert!(seen.is_rich(histories), "the histories are too tame to show anything: {seen:?}");
}

#[test]
fn histories_that_once_went_wrong_end_well() {
    for seed in FOUND {
        World::new(seed).run().unwrap();
    }
}

#[test]
fn the_same_seed_makes_the_same_history() {
    for seed in [3, 8, 21] {
        let [first, second] = [(); 2].map(|()| {
            let mut world = World::new(seed);
            world.run().unwrap();
            world.digest()
        });
        assert_eq!(first, second, "seed {seed}");
    }
}

#[expect(clippy::print_stdout, reason = "what a long run has shown")]
fn tell(text: &str) {
    println!("{text}");
}

#[expect(clippy::disallowed_methods, reason = "the run ends after a time of the clock on the wall")]
fn now() -> Instant {
    Instant::now()
}
