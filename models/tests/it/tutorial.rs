//! The tutorial's program does what its page says, and is what stands there.

#[path = "../../examples/tutorial.rs"]
#[expect(dead_code, reason = "`main` is what `study` does, in a place that is not for tests")]
mod program;

use std::path::Path;

use meikyo_sim::prelude::*;

/// The program without what a page of prose does not need.
fn essence(code: &str) -> Vec<String> {
    let kept = |line: &&str| {
        let line = line.trim();
        let aside = ["//!", "#[expect("];
        !line.is_empty() && !aside.iter().any(|start| line.starts_with(start))
    };
    code.lines().filter(kept).map(|line| line.replace("pub(crate) ", "")).collect()
}

#[test]
fn the_page_shows_the_program_from_its_first_line_to_its_last() {
    let page = include_str!("../../../docs/simulation-tutorial.md");
    let blocks = page.split("```rust\n").skip(1);
    let shown: String = blocks.map(|block| block.split("```").next().unwrap_or_default()).collect();
    let program = essence(include_str!("../../examples/tutorial.rs"));
    for (shown, written) in essence(&shown).iter().zip(&program) {
        assert_eq!(shown, written, "docs/simulation-tutorial.md and models/examples/tutorial.rs");
    }
    assert_eq!(essence(&shown).len(), program.len());
}

/// Below saturation nearly all replies come in time: N clients ask N times in 50 ms, twice a hop and a
/// response each. Far beyond it the server works for nobody.
#[test]
fn replies_in_time_rise_with_clients_and_collapse_when_they_give_up() {
    let few = program::interval(10).unwrap();
    // Machine repair with 10 clients: mean value analysis gives 194.5 replies a second.
    assert!((few.mean / 194.5 - 1.0).abs() < 0.02 && few.half_width < 6.0, "{few:?}");
    let [many, too_many] = [70, 130].map(|clients| program::interval(clients).unwrap().mean);
    assert!((800.0..1010.0).contains(&many), "{many}");
    assert!(too_many < 200.0, "{too_many}");
}

#[test]
fn the_program_draws_its_figure_and_no_scheduler_changes_it() {
    let picture = Path::new(env!("CARGO_TARGET_TMPDIR")).join("goodput.svg");
    program::study(&picture).unwrap();
    let svg = std::fs::read_to_string(&picture).unwrap();
    assert_eq!(svg.matches("class=\"interval\"").count(), 7);
    let digest = |scheduler, threads| {
        let second = SimTime::from_nanos(3_000_000_000);
        let options = program::options(scheduler, threads).until(second);
        let outcome = run(program::model(70, 3), &options).unwrap();
        (outcome.events, outcome.lps, outcome.statistics)
    };
    let truth = digest(Scheduler::Sequential, 1);
    for scheduler in [Scheduler::Conservative, Scheduler::Optimistic] {
        assert!(digest(scheduler, 2) == truth, "{scheduler:?}");
    }
}
