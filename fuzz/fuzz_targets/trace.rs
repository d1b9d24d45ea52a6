//! Traces of programs, as `fabric predict --program trace:FILE` reads them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use meikyo_models::prediction::collective::{AllReduce, AllToAll, Collectives, Library};
use meikyo_models::prediction::trace::{Trace, TraceFile};

fuzz_target!(|text: &str| {
    let files = [TraceFile { name: "trace".to_owned(), text: text.to_owned() }];
    let Ok(trace) = Trace::parse(&files) else { return };
    let collectives = Collectives {
        library: Library::Mpich12,
        all_to_all: AllToAll::Library,
        all_reduce: AllReduce::Library,
    };
    let program = trace.program(1e9, &collectives);
    assert_eq!(program.ranks(), trace.ranks());
});
