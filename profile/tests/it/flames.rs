//! Trees of samples that are written by hand, compared with a count of every path.

use std::collections::BTreeMap;

use meikyo_profile::flame::{
    Counted, Flame, FlameError, FlameOptions, FrameKind, Grouped, Node, Shape, flame,
};
use meikyo_profile::symbols::Symbols;
use meikyo_profile::tables::{samples, threads};
use meikyo_profile::wanted::Wanted;
use meikyo_recording::Recording;
use meikyo_units::WallTime;

use crate::written::{SECOND, Written};

const ALL: FlameOptions = FlameOptions {
    of: Counted::Samples,
    wanted: Wanted::EVERYTHING,
    grouped: Grouped::Together,
    shape: Shape::Merged { than: None },
    samples_max: 1_000_000,
    nodes_max: 100_000,
};

/// A sample: host, second, thread, functions from the outermost to its own.
type Sample = (&'static str, i64, u64, Vec<u64>);

/// Where a function lies: each of them has two addresses in use.
fn address(function: u64, second: i64) -> u64 {
    0x5000 + 16 * function + second.unsigned_abs() % 2
}

/// Threads of two processes on two hosts, which call the same functions in ever other ways.
fn samples() -> Vec<Sample> {
    let mut random = 7_u64;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let sample = |second| {
        let host = if next(3) == 0 { "b" } else { "a" };
        let stack = (0..1 + next(5)).map(|_| next(4)).collect();
        (host, second, 7 + next(2), stack)
    };
    (100..400).map(sample).collect()
}

/// What the processes of both hosts have: four functions that were made at run time.
fn programs() -> Written {
    let mut written = Written::new();
    for host in ["a", "b"] {
        for pid in [7, 8] {
            written.thread(host, 10, ("there", "solver"), [pid, pid]);
            (0..4).for_each(|function| {
                let name = format!("f{function}");
                written.made(host, 11, pid, (0x5000 + 16 * function, &name));
            });
        }
    }
    written
}

/// The stack of a sample as it is written down, and the sample's own address.
fn written_stack(second: i64, stack: &[u64]) -> (String, u64) {
    let (own, callers) = stack.split_last().unwrap();
    // What a caller goes on with lies behind its call.
    let callers = callers.iter().map(|at| format!("{:x}", address(*at, second) + 1));
    (callers.collect::<Vec<_>>().join(";"), address(*own, second))
}

fn recording(samples: &[Sample]) -> (Written, Recording) {
    let mut written = programs();
    for (host, second, tid, stack) in samples {
        let (callers, own) = written_stack(*second, stack);
        let words = [("host", *host), ("stack", &callers)];
        let numbers = [("cpu", 0), ("pid", *tid), ("tid", *tid), ("address", own)];
        written.row(samples::NAME, *second, &words, &numbers);
    }
    let recording = written.recording();
    (written, recording)
}

fn tree(recording: &Recording, options: &FlameOptions) -> Flame {
    let flame = flame(recording, &mut Symbols::of_this_host(), options).unwrap();
    assert!(flame.problems.is_empty(), "{:?}", flame.problems);
    flame
}

/// Names from the outermost function to a node.
fn path(flame: &Flame, node: &Node) -> Vec<String> {
    let frame = &flame.frames[usize::try_from(node.frame).unwrap()];
    let parent = usize::try_from(node.parent).unwrap();
    let mut names = if parent == 0 { vec![] } else { path(flame, &flame.nodes[parent]) };
    names.push(format!("{}{}", frame.name, if frame.kind == FrameKind::Group { "!" } else { "" }));
    names
}

type Totals = BTreeMap<Vec<String>, ([u64; 2], [u64; 2])>;

fn totals(flame: &Flame) -> Totals {
    let nodes = flame.nodes.iter().skip(1);
    let found: Vec<_> = nodes.map(|node| (path(flame, node), (node.own, node.total))).collect();
    let count = found.len();
    let totals: Totals = found.into_iter().collect();
    assert_eq!(totals.len(), count, "a path is there twice");
    totals
}

/// Every path of every sample, counted one by one.
fn counted(samples: &[Sample], side: impl Fn(&Sample) -> [u64; 2], by_thread: bool) -> Totals {
    let mut totals = Totals::new();
    for sample in samples.iter().filter(|sample| side(sample) != [0, 0]) {
        let mut names: Vec<String> = sample.3.iter().map(|at| format!("f{at}")).collect();
        if by_thread {
            // On each host a process has the number.
            names.insert(0, format!("solver {}!", sample.2));
        }
        for length in 1..=names.len() {
            let (own, total) = totals.entry(names[..length].to_vec()).or_default();
            for at in 0..2 {
                total[at] += side(sample)[at];
                own[at] += if length == names.len() { side(sample)[at] } else { 0 };
            }
        }
    }
    totals
}

#[test]
fn every_path_has_the_samples_that_went_through_it() {
    let samples = samples();
    let (_written, recording) = recording(&samples);
    let all = tree(&recording, &ALL);
    assert_eq!(totals(&all), counted(&samples, |_| [1, 0], false));
    assert_eq!((all.nodes[0].total, all.left_out), ([300, 0], 0));
    assert_eq!(all.sides[0].samples, 300);
    let span = (100 * SECOND, 399 * SECOND);
    assert_eq!(all.sides[0].span.map(|(a, b)| (a.as_nanos(), b.as_nanos())), Some(span));
    // Callees with most samples come first.
    for (at, node) in all.nodes.iter().enumerate().skip(2) {
        let before = all.nodes[1..at].iter().rev().find(|before| before.parent == node.parent);
        assert!(before.is_none_or(|before| before.total[0] >= node.total[0]));
    }
}

/// Blocks as hosts send them, each of one CPU and less than a second; within one of them a process executes another program,
/// whose functions have no names.
#[test]
fn blocks_that_are_counted_as_a_whole_have_what_their_samples_have_one_by_one() {
    const EXECUTED: i64 = 205;
    let mut samples = samples();
    samples.extend((400..460).map(|second| ("a", second, 7, vec![1])));
    let mut written = programs();
    // All of it within one second, as a block is.
    let at = |moment: i64| 20 * SECOND + moment * 1_000_000;
    let words = [("host", "b"), ("event", "exec"), ("name", "other")];
    written.row_at(threads::NAME, at(EXECUTED), &words, &[("pid", 8), ("tid", 8)]);
    written.end_block();
    // Process 7 has two threads more, on a CPU of their own.
    let cpu_of = |second: i64| u64::from(second % 4 == 0);
    for of_block in samples.chunks(150) {
        for (host, cpu) in [("a", 0), ("a", 1), ("b", 0), ("b", 1)] {
            for (of, second, pid, stack) in of_block {
                if *of != host || cpu_of(*second) != cpu {
                    continue;
                }
                let (callers, own) = written_stack(*second, stack);
                let words = [("host", host), ("stack", &callers)];
                let tid = if *pid == 7 { 7 + second.unsigned_abs() % 3 * 100 } else { *pid };
                let numbers = [("cpu", cpu), ("pid", *pid), ("tid", tid), ("address", own)];
                written.row_at(samples::NAME, at(*second), &words, &numbers);
            }
            written.end_block();
        }
    }
    let recording = written.recording();
    let named = |side: &dyn Fn(&Sample) -> bool| {
        let nameless =
            |(host, second, pid, _): &Sample| *host == "b" && *pid == 8 && *second >= EXECUTED;
        let mut totals = counted(&samples, |of| [u64::from(side(of) && !nameless(of)), 0], false);
        for (_, _, _, stack) in samples.iter().filter(|of| side(of) && nameless(of)) {
            for length in 1..=stack.len() {
                let path = vec!["[unknown]".to_owned(); length];
                let (own, total) = totals.entry(path).or_default();
                total[0] += 1;
                own[0] += u64::from(length == stack.len());
            }
        }
        totals
    };
    let ask = |wanted: Wanted| totals(&tree(&recording, &FlameOptions { wanted, ..ALL }));
    let second = |second: i64| Some(WallTime::from_nanos(at(second)));
    assert_eq!(ask(Wanted::EVERYTHING), named(&|_| true));
    let wanted = Wanted { from: second(109), until: second(311), ..Wanted::EVERYTHING };
    assert_eq!(ask(wanted), named(&|of| (109..311).contains(&of.1)));
    let wanted = Wanted { cpus: [1].into(), hosts: vec!["b".to_owned()], ..Wanted::EVERYTHING };
    assert_eq!(ask(wanted), named(&|of| cpu_of(of.1) == 1 && of.0 == "b"));
    let wanted = Wanted { pids: [7].into(), ..Wanted::EVERYTHING };
    assert_eq!(ask(wanted), named(&|of| of.2 == 7));
    let options = FlameOptions { samples_max: 359, ..ALL };
    let refused = flame(&recording, &mut Symbols::of_this_host(), &options);
    assert!(matches!(refused, Err(FlameError::TooMany { limit: 359 })), "{refused:?}");
}

#[test]
fn samples_of_a_host_are_a_tree_for_each_thread_where_that_is_wanted() {
    let samples = samples();
    let (_written, recording) = recording(&samples);
    let wanted = Wanted { hosts: vec!["a".to_owned()], ..Wanted::EVERYTHING };
    let options = FlameOptions { wanted, grouped: Grouped::Thread, ..ALL };
    let of_a = |sample: &Sample| [u64::from(sample.0 == "a"), 0];
    assert_eq!(totals(&tree(&recording, &options)), counted(&samples, of_a, true));
}

#[test]
fn two_spans_of_two_hosts_stand_in_one_tree() {
    let samples = samples();
    let (_written, recording) = recording(&samples);
    let within = |host: &str, from: i64, until: i64| Wanted {
        from: Some(WallTime::from_nanos(from * SECOND)),
        until: Some(WallTime::from_nanos(until * SECOND)),
        hosts: vec![host.to_owned()],
        ..Wanted::EVERYTHING
    };
    let than = Some(within("b", 200, 400));
    let options =
        FlameOptions { wanted: within("a", 100, 250), shape: Shape::Merged { than }, ..ALL };
    let flame = tree(&recording, &options);
    let side = |(host, second, ..): &Sample| {
        [*host == "a" && *second < 250, *host == "b" && *second >= 200].map(u64::from)
    };
    assert_eq!(totals(&flame), counted(&samples, side, false));
    let count = |at: usize| samples.iter().map(|sample| side(sample)[at]).sum::<u64>();
    assert_eq!([flame.sides[0].samples, flame.sides[1].samples], [count(0), count(1)]);
}

#[test]
fn in_time_stacks_follow_each_other_and_only_equal_neighbours_are_one() {
    let samples = samples();
    let (_written, recording) = recording(&samples);
    let options = FlameOptions { grouped: Grouped::Host, shape: Shape::InTime, ..ALL };
    let flame = tree(&recording, &options);
    // Each node in itself, as often as it has samples in itself, in the order in which nodes end.
    let mut found: Vec<Vec<String>> = Vec::new();
    for host in ["a", "b"] {
        for sample in samples.iter().filter(|sample| sample.0 == host) {
            let names = sample.3.iter().map(|at| format!("f{at}"));
            found.push(std::iter::once(format!("{host}!")).chain(names).collect());
        }
    }
    let mut neighbours = 0;
    let mut open: Vec<String> = Vec::new();
    for stack in &found {
        let same = open.iter().zip(stack).take_while(|(one, other)| one == other).count();
        neighbours += stack.len() - same;
        open.clone_from(stack);
    }
    assert_eq!(flame.nodes.len() - 1, neighbours);
    let mut in_tree = Totals::new();
    for node in flame.nodes.iter().skip(1) {
        let sums = in_tree.entry(path(&flame, node)).or_default();
        sums.0[0] += node.own[0];
        sums.1[0] += node.total[0];
    }
    let mut expected = Totals::new();
    for stack in &found {
        for length in 1..=stack.len() {
            let sums = expected.entry(stack[..length].to_vec()).or_default();
            sums.0[0] += u64::from(length == stack.len());
            sums.1[0] += 1;
        }
    }
    assert_eq!(in_tree, expected);
}

#[test]
fn what_has_no_room_is_left_out_with_the_fewest_samples_first_and_counted() {
    let samples = samples();
    let (_written, recording) = recording(&samples);
    let all = totals(&tree(&recording, &ALL));
    let some = tree(&recording, &FlameOptions { nodes_max: 20, ..ALL });
    assert!(some.nodes.len() <= 20 && some.nodes.len() > 5, "{}", some.nodes.len());
    assert_eq!(some.left_out, all.len() + 1 - some.nodes.len());
    let kept = totals(&some);
    let least = kept.values().map(|(_, total)| total[0]).min().unwrap();
    assert!(kept.iter().all(|(path, sums)| all[path] == *sums));
    let lost = all.iter().filter(|(path, _)| !kept.contains_key(*path));
    assert!(lost.map(|(_, sums)| sums.1[0]).max().unwrap() < least);
}

#[test]
fn more_samples_than_are_read_at_once_are_refused() {
    let samples = samples();
    let (_written, recording) = recording(&samples);
    let options = |samples_max| FlameOptions { samples_max, ..ALL };
    let error = flame(&recording, &mut Symbols::of_this_host(), &options(299)).unwrap_err();
    assert!(matches!(error, FlameError::TooMany { limit: 299 }), "{error}");
    assert_eq!(tree(&recording, &options(300)).sides[0].samples, 300);
}
