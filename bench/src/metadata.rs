//! `meikyo bench metadata`: figures 5 to 10 of the paper on the metadata service, with theory beside.
//!
//! Figures 5 to 8 are points of throughput: every one must lie between what exact mean value analysis
//! says (which takes service for exponential and is pessimistic) and the asymptotic bound, both with
//! half a percent of room. Figures 9 and 10 are run times of the parallel schedulers: each run must
//! end in the digest of the sequential one. Started by `mpirun`, these are runs over its ranks.

mod parallel;
mod picture;
mod throughput;

use meikyo_console::benches::metadata::MetadataArgs;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;
use meikyo_console::ranks;
use serde_json::{Value, json};

use crate::machine::Machine;

/// Draws the figures; the answer is whether every point is right.
pub(crate) fn run(args: &MetadataArgs) -> Result<Answer, Failure> {
    let machine = Machine::observe();
    let figures: Vec<u8> =
        if args.figure.is_empty() { (5..=10).collect() } else { args.figure.clone() };
    let ranks = ranks::joined();
    if ranks.count() > 1 && figures.iter().any(|figure| *figure <= 8) {
        return Err(Failure::new("the runs of figures 5 to 8 are not divided over ranks")
            .hint("mpirun -n 2 meikyo bench metadata --figure 9,10"));
    }
    let svg = args.svg.as_ref().filter(|_| ranks.is_first());
    if let Some(dir) = svg {
        std::fs::create_dir_all(dir).map_err(|error| {
            Failure::new(format!("cannot create `{}`: {error}", dir.display()))
                .hint("name a directory that you can write to: --svg figures")
        })?;
    }
    let mut rows: Vec<Value> = Vec::new();
    let mut right = true;
    if !args.json {
        output::print(&machine.to_string())?;
    }
    for figure in figures {
        let (text, figure_rows, all_right, lines) = if figure <= 8 {
            let points = throughput::run(args, figure)?;
            let right = points.iter().all(throughput::Point::is_right);
            let rows: Vec<Value> = points.iter().map(throughput::Point::row).collect();
            (throughput::table(&points), rows, right, throughput::lines(figure, &points))
        } else {
            let runs = parallel::run(args, figure)?;
            let right = runs.iter().all(|run| run.same_result);
            let rows: Vec<Value> = runs.iter().map(parallel::Run::row).collect();
            (parallel::table(&runs), rows, right, parallel::lines(&runs))
        };
        if !args.json {
            output::print(&format!("\nFigure {figure}: {}\n{text}", title(figure)))?;
        }
        if let Some(dir) = svg {
            picture::draw(&dir.join(format!("figure{figure}.svg")), title(figure), &lines)?;
        }
        right &= all_right;
        rows.extend(figure_rows);
    }
    if args.json {
        let document = json!({
            "schema": "meikyo.bench.metadata/1",
            "machine": machine,
            "all_right": right,
            "rows": rows,
        });
        output::print_json(&document)?;
    }
    Ok(if right { Answer::Yes } else { Answer::No })
}

fn title(figure: u8) -> &'static str {
    match figure {
        5 => "creates a second in one directory, up to 88 clients",
        6 => "creates a second in one directory, up to saturation",
        7 => "creates a second over the start-up of a transmission, 2 servers",
        8 => "creates a second over the latency of the store, 2 servers",
        9 => "run time of the optimistic scheduler, 128 servers",
        _ => "run time of the conservative scheduler, 128 servers",
    }
}
