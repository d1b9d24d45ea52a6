//! Exports of samples that are written by hand, read by rules of those who read them.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::process::Command;

use meikyo_profile::export::{ExportError, ExportOptions, Format, Hashing, Named, export};
use meikyo_profile::tables::{rates, samples};
use meikyo_profile::wanted::Wanted;
use meikyo_recording::Recording;

use crate::written::Written;

/// Functions from the outermost to a sample's own, by how many samples have them.
type Folded = BTreeMap<Vec<String>, u64>;

const PERIOD_NS: u64 = 1_000_000;

/// Threads of a process of each host, with calls that are known.
fn written(hosts: &[&str]) -> (Written, Recording, Folded) {
    let mut written = Written::new();
    let mut folded = Folded::new();
    for &host in hosts {
        let numbers = [("period_ns", PERIOD_NS), ("interrupt_ns", 1)];
        written.row(rates::NAME, 9, &[("host", host)], &numbers);
        for tid in [7, 8] {
            written.thread(host, 10, ("there", "my solver"), [7, tid]);
        }
        (0..4).for_each(|function| {
            written.made(host, 11, 7, (0x5000 + 16 * function, &format!("f{function}()")));
        });
        for at in 0..100_u64 {
            let stack: Vec<u64> = (0..=at % 3).map(|depth| (at / 7 + depth) % 4).collect();
            let (own, callers) = stack.split_last().unwrap();
            let callers: Vec<_> =
                callers.iter().map(|at| format!("{:x}", 0x5000 + 16 * at + 1)).collect();
            let words = [("host", host), ("stack", &callers.join(";"))];
            let numbers =
                [("cpu", at % 2), ("pid", 7), ("tid", 7 + at % 2), ("address", 0x5000 + 16 * own)];
            written.row(samples::NAME, 12 + at.cast_signed(), &words, &numbers);
            *folded.entry(stack.iter().map(|at| format!("f{at}()")).collect()).or_default() += 1;
        }
    }
    let recording = written.recording();
    (written, recording, folded)
}

fn plain(format: Format) -> ExportOptions {
    ExportOptions { wanted: Wanted::EVERYTHING, format, hashing: Hashing::default() }
}

fn exported(recording: &Recording, format: Format) -> Vec<u8> {
    let mut out = Vec::new();
    let told = export(recording, &plain(format), &mut out).unwrap();
    assert!(told.problems.is_empty(), "{:?}", told.problems);
    out
}

/// As `stackcollapse-perf.pl` reads: a line that begins with a word and has `pid/tid` begins
/// a sample, indented lines are an address, a function and a file in parentheses, an empty line ends it.
#[test]
fn the_text_of_perf_script_folds_to_the_stacks_that_were_sampled() {
    let (_written, recording, folded) = written(&["a"]);
    let text = String::from_utf8(exported(&recording, Format::PerfScript)).unwrap();
    let mut found = Folded::new();
    let mut times = Vec::new();
    for paragraph in text.split_terminator("\n\n") {
        let mut lines = paragraph.lines();
        let words: Vec<_> = lines.next().unwrap().split_whitespace().collect();
        assert_eq!(words[0], "my_solver");
        let (pid, tid) = words[1].split_once('/').unwrap();
        assert_eq!((pid, words[4]), ("7", PERIOD_NS.to_string().as_str()));
        assert_eq!(words[2], format!("[{:03}]", tid.parse::<u64>().unwrap() - 7));
        times.push(words[3].strip_suffix(".000000000:").unwrap().parse::<u64>().unwrap());
        let stack = lines.map(|line| {
            let (address, rest) = line.trim_start().split_once(' ').unwrap();
            u64::from_str_radix(address, 16).unwrap();
            let (name, file) = rest.split_once(" (").unwrap();
            assert!(line.starts_with('\t') && file.ends_with(')'), "{line}");
            name.to_owned()
        });
        let mut stack: Vec<String> = stack.collect();
        stack.reverse();
        *found.entry(stack).or_default() += 1;
    }
    assert_eq!(found, folded);
    times.sort_unstable();
    assert_eq!(times, (12..112).collect::<Vec<_>>());
}

#[test]
fn the_text_of_perf_script_is_of_one_host_and_a_host_can_be_chosen() {
    let (_written, recording, _) = written(&["a", "b"]);
    let all = export(&recording, &plain(Format::PerfScript), &mut Vec::new());
    let error = all.unwrap_err();
    assert!(matches!(&error, ExportError::ManyHosts { hosts } if *hosts == ["a", "b"]), "{error}");
    let wanted = Wanted { hosts: vec!["b".to_owned()], ..Wanted::EVERYTHING };
    let options = ExportOptions { wanted, ..plain(Format::PerfScript) };
    let told = export(&recording, &options, &mut Vec::new()).unwrap();
    assert_eq!(told.samples, 100);
}

/// What `file-format-schema.json` of speedscope asks for, and that nothing is lost.
#[test]
fn speedscope_has_a_profile_for_each_thread_with_all_its_samples() {
    let (_written, recording, folded) = written(&["a", "b"]);
    let text = exported(&recording, Format::Speedscope);
    let file: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let frames = file["shared"]["frames"].as_array().unwrap();
    let profiles = file["profiles"].as_array().unwrap();
    assert_eq!(profiles.len(), 4);
    let mut found = Folded::new();
    for profile in profiles {
        assert_eq!(
            (&profile["type"], &profile["unit"]),
            (&"sampled".into(), &"nanoseconds".into())
        );
        assert!(profile["name"].as_str().unwrap().starts_with("my solver "), "{profile}");
        let [samples, weights] =
            ["samples", "weights"].map(|name| profile[name].as_array().unwrap());
        assert_eq!((samples.len(), weights.len()), (50, 50));
        let sum: u64 = weights.iter().map(|weight| weight.as_u64().unwrap()).sum();
        assert_eq!(
            (profile["startValue"].as_u64(), profile["endValue"].as_u64()),
            (Some(0), Some(sum))
        );
        assert_eq!(sum, 50 * PERIOD_NS);
        for sample in samples {
            let frame = |at: &serde_json::Value| {
                let at = usize::try_from(at.as_u64().unwrap()).unwrap();
                frames[at]["name"].as_str().unwrap().to_owned()
            };
            let stack = sample.as_array().unwrap().iter().map(frame).collect();
            *found.entry(stack).or_default() += 1;
        }
    }
    assert_eq!(found, folded);
}

/// Go's own tool reads the file; `-raw` prints its samples as values and numbers of locations.
#[test]
fn pprof_of_go_reads_the_samples_that_were_taken() {
    let (_written, recording, folded) = written(&["a", "b"]);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.pb.gz");
    let octets = exported(&recording, Format::Pprof);
    assert_eq!(octets[..2], [0x1f, 0x8b]);
    std::fs::write(&path, octets).unwrap();
    let output = Command::new("go").args(["tool", "pprof", "-raw"]).arg(&path).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        meikyo_testing::lacking("go tool pprof, which Debian has in golang-go");
        return;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let section = |from: &str, to: &str| {
        let (_, rest) = text.split_once(from).unwrap();
        rest.split_once(to).map_or(rest, |(section, _)| section).to_owned()
    };
    // A location: `     1: 0x0 M=1 f0() [made at run time]:0:0 s=0`.
    let functions: BTreeMap<String, String> = section("Locations\n", "Mappings\n")
        .lines()
        .filter_map(|line| {
            let (number, rest) = line.trim().split_once(": ")?;
            Some((number.to_owned(), rest.split_whitespace().nth(2)?.to_owned()))
        })
        .collect();
    let mut found = Folded::new();
    let mut time_ns = 0;
    for line in section("Samples:\n", "Locations\n").lines() {
        // A sample: `         9    9000000: 1 2 3`, and behind it a line with its labels.
        let Some((values, places)) = line.split_once(": ") else { continue };
        let values: Vec<u64> =
            values.split_whitespace().filter_map(|value| value.parse().ok()).collect();
        let [samples, ns] = values[..] else { continue };
        let stack = places.split_whitespace().rev().map(|place| functions[place].clone());
        *found.entry(stack.collect()).or_default() += samples;
        time_ns += ns;
    }
    assert_eq!(found, folded);
    assert_eq!(time_ns, 200 * PERIOD_NS);
}

#[test]
fn hashed_names_are_nowhere_in_the_file_and_stacks_stay_as_different_as_they_were() {
    let (mut written, ..) = written(&["hostess"]);
    written.mapping("hostess", 10, 7, "/srv/anna/secret");
    written.sample("hostess", 12, [7, 7, 0x1001]);
    let recording = written.recording();
    let hashing = Hashing::new(&Named::ALL, b"key");
    let names = ["hostess", "solver", "f0()", "f3()", "anna", "secret"];
    for format in Format::ALL {
        let text = |hashing: &Hashing| {
            let options = ExportOptions { hashing: hashing.clone(), ..plain(format) };
            let mut out = Vec::new();
            export(&recording, &options, &mut out).unwrap();
            if format == Format::Pprof {
                let mut text = Vec::new();
                flate2::read::GzDecoder::new(&*out).read_to_end(&mut text).unwrap();
                out = text;
            }
            String::from_utf8_lossy(&out).into_owned()
        };
        let (as_it_is, hashed) = (text(&Hashing::default()), text(&hashing));
        let has = |text: &str, name: &str| text.contains(name);
        // The text is of one host and does not name it; only pprof names build IDs (here `ab`).
        for name in names.iter().skip(usize::from(format == Format::PerfScript)) {
            assert!(has(&as_it_is, name), "{format:?}: {name}");
            assert!(!has(&hashed, name), "{format:?}: {name}");
        }
        let functions = |text: &str, begin: &str| {
            let parts = text.split(begin).skip(1);
            let digits = parts.map(|rest| rest.chars().take(16).collect::<String>());
            // The schema of speedscope is called `file-format-schema`.
            digits
                .filter(|digits| digits.chars().all(|digit| digit.is_ascii_hexdigit()))
                .collect::<std::collections::BTreeSet<_>>()
                .len()
        };
        assert_eq!(functions(&hashed, "function-"), 4, "{format:?}");
        assert_eq!(functions(&hashed, "process-"), 1, "{format:?}");
        assert_eq!(functions(&hashed, "file-"), 1, "{format:?}");
        assert!(has(&hashed, "[made at run time]"), "{format:?}");
    }
}
