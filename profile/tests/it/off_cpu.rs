//! Time off the CPU of a program that says itself how long it waited in which function.

use std::collections::BTreeMap;

use meikyo_profile::flame::{Counted, FlameError, FlameOptions, Grouped, Shape, flame};
use meikyo_profile::report::{By, Of, ReportOptions};
use meikyo_profile::sampler::{CallChains, SamplerOptions};
use meikyo_profile::symbols::Symbols;
use meikyo_profile::tables::off_cpu;
use meikyo_profile::wanted::Wanted;
use meikyo_recording::Selection;

use crate::programs::{Program, compiled};
use crate::recordings::{options, recorded};
use crate::{PLAIN, may_sample};

const TIMES: ReportOptions =
    ReportOptions { by: By::Function, wanted: Wanted::EVERYTHING, of: Of::OffCpu };

fn sampling() -> SamplerOptions {
    let stacks = Some(CallChains::EhFrame { copied: 8_192 });
    SamplerOptions { stacks, off_cpu: true, on_exec: true, ..PLAIN }
}

#[test]
fn functions_have_the_time_off_the_cpu_that_the_program_waited_in_them() {
    if !may_sample() {
        return;
    }
    let Some(program) = compiled(Program::Waits) else { return };
    let told = program.path().with_extension("told");
    let line = format!("exec {} > {}", program.path().display(), told.display());
    let recorded = recorded(&["sh", "-c", &line], &options(sampling(), None), |_| {});
    let told = std::fs::read_to_string(told).unwrap();
    let measured: Vec<u64> = told.split_whitespace().map(|ns| ns.parse().unwrap()).collect();
    let report = recorded.report(&TIMES);
    let preempted = report.off_cpu.unwrap().preempted_ns;
    for (name, measured) in ["short_nap", "long_nap", "for_pipe"].into_iter().zip(measured) {
        let line = report.lines.iter().find(|line| line.name == name);
        let found = line.unwrap_or_else(|| panic!("`{name}` in {:#?}", report.lines)).total;
        // The program also counts what it runs on the way into the kernel and out of it, and others may run in its place
        // before it looks at the clock and after that.
        let found_most = measured + preempted;
        assert!(found <= found_most, "{name}: {found} ns found, {measured} ns measured");
        assert!(
            measured.saturating_sub(found) < measured / 20,
            "{name}: {found} ns, {measured} ns measured"
        );
    }
    // Running is no time off the CPU, but for others that ran in its place.
    let of_work = report.lines.iter().find(|line| line.name == "work").map_or(0, |line| line.own);
    assert!(of_work <= preempted, "{of_work} of {preempted}");
    let counts = recorded.counts.off_cpu.unwrap();
    assert_eq!(counts.lost, 0);
    assert_eq!(report.samples, counts.waiting_ns + counts.preempted_ns);
    assert_eq!((report.off_cpu.unwrap().spans, preempted), (counts.spans, counts.preempted_ns));
    // Every function has the same in the tree of callers.
    let options = FlameOptions {
        of: Counted::OffCpu,
        wanted: Wanted::EVERYTHING,
        grouped: Grouped::Together,
        shape: Shape::Merged { than: None },
        samples_max: counts.rows,
        nodes_max: 100_000,
    };
    let tree = flame(&recorded.open(), &mut Symbols::of_this_host(), &options).unwrap();
    assert_eq!((tree.sides[0].samples, tree.sides[0].off_cpu), (report.samples, report.off_cpu));
    let mut own: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for node in &tree.nodes[1..] {
        let frame = &tree.frames[usize::try_from(node.frame).unwrap()];
        *own.entry((&frame.name, &frame.file)).or_default() += node.own[0];
    }
    let lines = report.lines.iter().map(|line| ((&*line.name, &*line.file), line.own));
    assert_eq!(own, lines.collect());
    let in_time = FlameOptions { shape: Shape::InTime, ..options.clone() };
    let fewer = FlameOptions { samples_max: counts.rows - 1, ..options };
    let refused = |options| flame(&recorded.open(), &mut Symbols::of_this_host(), options);
    assert!(matches!(refused(&in_time), Err(FlameError::NoOrder)));
    assert!(matches!(refused(&fewer), Err(FlameError::TooMany { .. })));
    // The samples are those of the CPU alone.
    let samples = recorded.report(&ReportOptions { of: Of::Samples, ..TIMES });
    assert_eq!((samples.samples, samples.off_cpu), (recorded.counts.samples, None));
}

#[test]
fn the_longest_span_and_their_number_are_those_of_the_naps() {
    if !may_sample() {
        return;
    }
    let Some(program) = compiled(Program::Waits) else { return };
    let path = program.path().to_str().unwrap();
    let recorded = recorded(&[path], &options(sampling(), None), |_| {});
    let (mut rows, mut naps) = (0, 0);
    for batch in recorded.open().scan(&Selection::all(off_cpu::NAME)).unwrap() {
        let batch = batch.unwrap();
        let [spans, total, longest] = [off_cpu::SPANS, off_cpu::OFF_NS, off_cpu::LONGEST_NS]
            .map(|column| column.values_in(&batch).unwrap());
        for row in 0..batch.num_rows() {
            let [spans, total, longest] = [&spans, &total, &longest].map(|of| of.get(row).unwrap());
            assert!(longest <= total && total <= longest * spans, "{spans} {total} {longest}");
            rows += 1;
            // 8 sleeps of 40 ms and 8 of 50 ms are from two places.
            naps += if longest >= 40_000_000 { spans } else { 0 };
        }
    }
    assert_eq!(rows, recorded.counts.off_cpu.unwrap().rows);
    // The sleeps of 40 ms, those of the threads that write, and the reads that wait for these.
    assert!((24..=32).contains(&naps), "{naps} spans of 40 ms and more");
}
