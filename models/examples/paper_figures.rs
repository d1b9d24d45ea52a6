//! The points of the paper's figures 5 to 8 beside what theory says of them, and how many lie outside.
//! `cargo run --release -p meikyo-models --example paper_figures [CREATES_PER_CLIENT]`.

use std::error::Error;

use meikyo_models::metadata_service::Metadata;
use meikyo_models::storage::Medium;
use meikyo_sim::{Options, Scheduler, Unobserved};
use meikyo_units::Nanos;

/// A figure and its points: servers, clients, start-up, store latency.
type Point = (u8, u16, u32, Nanos, Nanos);

fn points() -> Vec<Point> {
    let micros = Nanos::from_micros;
    let (start_up, store) = (micros(32), micros(500));
    let mut points = Vec::new();
    for servers in [1, 2, 3, 4, 8, 14] {
        points.extend((1..=8).map(|times| (5, servers, 11 * times, start_up, store)));
        let many = [88, 176, 352, 704];
        points.extend(many.map(|clients| (6, servers, clients, start_up, store)));
    }
    for start_up in [10, 20, 32, 50, 100].map(micros) {
        points
            .extend([11, 22, 44, 66, 88, 176, 352].map(|clients| (7, 2, clients, start_up, store)));
    }
    for store in [0, 250, 500, 1000].map(micros) {
        points
            .extend([11, 22, 44, 66, 88, 176, 352].map(|clients| (8, 2, clients, start_up, store)));
    }
    points
}

#[expect(clippy::print_stdout, reason = "an example's answer")]
fn main() -> Result<(), Box<dyn Error>> {
    let operations = std::env::args().nth(1).map_or(Ok(1000), |text| text.parse())?;
    let mut outside = 0;
    for (figure, servers, clients, net_startup, store) in points() {
        let mut metadata = Metadata::paper(servers, clients, operations);
        metadata.net_startup = net_startup;
        metadata.store = Medium::Delay(store);
        let report = metadata.run(&Options::new(Scheduler::Sequential, 1), &mut Unobserved)?;
        let figure_of = |name| report.figure(name).ok_or("no such figure");
        let (found, mva, bound) =
            (figure_of("creates_per_s")?, figure_of("mva_per_s")?, figure_of("bound_per_s")?);
        let inside = (0.995 * mva..=1.005 * bound).contains(&found);
        outside += u32::from(!inside);
        let (name, busy) = report.bottleneck.ok_or("nothing was busy")?;
        let mark = if inside { ' ' } else { '!' };
        println!(
            "{mark} figure {figure}: {servers:2} servers {clients:4} clients start-up {net_startup:>5} \
             store {store:>5}: {mva:9.0} <= {found:9.0} <= {bound:9.0}  {name} {:.1} %",
            busy * 100.0
        );
    }
    println!("{outside} outside");
    Ok(())
}
