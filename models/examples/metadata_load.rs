//! How fast the metadata service is simulated.
//! `cargo run --release -p meikyo-models --example metadata_load [SERVERS] [CLIENTS] [CREATES]
//! [SCHEDULER] [THREADS]`, by default 128 servers, 4096 clients, 100 creates each, sequential.

use std::error::Error;

use meikyo_models::metadata_service::Metadata;
use meikyo_sim::{Options, Scheduler, Unobserved};

#[expect(clippy::print_stdout, reason = "an example's answer")]
#[expect(clippy::disallowed_methods, reason = "how long a run takes is what it shows")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |at: usize, otherwise: &'static str| {
        arguments.get(at).map_or(otherwise, String::as_str).to_owned()
    };
    let metadata = Metadata::paper(
        argument(0, "128").parse()?,
        argument(1, "4096").parse()?,
        argument(2, "100").parse()?,
    );
    let scheduler = match argument(3, "sequential").as_str() {
        "sequential" => Scheduler::Sequential,
        "conservative" => Scheduler::Conservative,
        "optimistic" => Scheduler::Optimistic,
        "auto" => Scheduler::Auto,
        other => return Err(format!("no such scheduler: `{other}`").into()),
    };
    let options = Options::new(scheduler, argument(4, "1").parse()?);
    let start = std::time::Instant::now();
    let report = metadata.run(&options, &mut Unobserved)?;
    let wall = start.elapsed().as_secs_f64();
    let events = report.events;
    println!("{events} events in {wall:.2} s, digest {:016x}", report.result_digest);
    println!("{:?}", report.effort);
    for figure in &report.figures {
        println!("{}: {}", figure.name, figure.value);
    }
    for (name, busy) in &report.busiest {
        println!("{:.2} % {name}", busy * 100.0);
    }
    Ok(())
}
