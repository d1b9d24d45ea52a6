//! Runs small models of every kind over the ranks that `mpirun` started; each rank writes what it got
//! into a file of its own in the directory given. The test `ranks` starts it and reads them.

use std::path::Path;
use std::process::ExitCode;

use meikyo_sim::{Membership, Options, Ranks, Scheduler, run};

#[path = "../tests/ranks/cases.rs"]
mod cases;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(directory), what) = (arguments.next(), arguments.next()) else {
        return ExitCode::FAILURE;
    };
    let membership = Membership::begin().expect("the MPI at hand can be called");
    let membership = membership.expect("nobody joined before");
    let ranks = membership.ranks();
    let text = match what.as_deref() {
        None => everything(ranks),
        Some("differ") => differ(ranks),
        Some("die") => die(ranks),
        Some("gone") if ranks.is_first() => run_ring(cases::Wrong::TooSoon, ranks, 1),
        Some("gone") => String::new(),
        Some("panic") => {
            assert!(ranks.is_first(), "the second rank panics");
            run_ring(cases::Wrong::TooSoon, ranks, 0)
        }
        Some(other) => format!("`{other}` is nothing to do\n"),
    };
    membership.leave(false);
    let file = Path::new(&directory).join(format!("rank-{}", ranks.own()));
    std::fs::write(file, text).map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}

/// Every case under every scheduler.
fn everything(ranks: Ranks) -> String {
    let schedulers = [
        Scheduler::Sequential,
        Scheduler::Conservative,
        Scheduler::Optimistic,
        Scheduler::Check,
        Scheduler::Auto,
    ];
    let mut text = String::new();
    for scheduler in schedulers {
        for said in cases::run_all(scheduler, ranks) {
            let cases::Said { case, result, lines, effort } = said;
            let (used, rollbacks) = (effort.ranks, effort.rollbacks);
            text += &format!("{scheduler:?}|{case}|{result}|{lines}|{used}|{rollbacks}\n");
        }
    }
    text
}

/// The first rank runs another model than the others.
fn differ(ranks: Ranks) -> String {
    run_ring(cases::Wrong::TooSoon, ranks, u64::from(ranks.is_first()))
}

/// The last rank dies in the middle of a run: the others must not wait for ever.
fn die(ranks: Ranks) -> String {
    std::panic::set_hook(Box::new(|_| std::process::abort()));
    run_ring(cases::Wrong::Panic, ranks, 0)
}

fn run_ring(wrong: cases::Wrong, ranks: Ranks, seed: u64) -> String {
    let options = Options { ranks, ..Options::new(Scheduler::Conservative, 1) };
    match run(cases::ring(wrong, seed), &options) {
        Ok(outcome) => format!("{} events", outcome.events),
        Err(error) => error.to_string(),
    }
}
