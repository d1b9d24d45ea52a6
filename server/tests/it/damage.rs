//! A recording that is damaged in the middle: its gap is shown, it is named, the rest is served.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use meikyo_recording::StreamOptions;
use meikyo_snmp::farm::FarmOptions;
use meikyo_testing::files::copy_tree;
use meikyo_units::Nanos;

use crate::client::{Served, client, serve};
use crate::ranges::id;
use crate::recorded::{HOSTS, START, recording, twin, waiting};

/// The Parquet files of a table, in order of their sequence numbers.
fn files(dir: &Path, table: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for date in fs::read_dir(dir.join(table)).unwrap() {
        for hour in fs::read_dir(date.unwrap().path()).unwrap() {
            files.extend(
                fs::read_dir(hour.unwrap().path()).unwrap().map(|file| file.unwrap().path()),
            );
        }
    }
    let first = |path: &PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        name.split('-').nth(1).unwrap().parse::<u64>().unwrap()
    };
    files.sort_by_key(first);
    files
}

#[test]
fn a_damaged_file_is_a_gap_that_is_named_and_the_rest_is_served() {
    let dir = tempfile::tempdir().unwrap();
    copy_tree(recording(), dir.path()).unwrap();
    let whole = serve(recording());
    for (table, width) in [("load.summary", 600), ("load", 2_000)] {
        let damaged = files(dir.path(), table);
        assert!(damaged.len() >= 3, "{damaged:?}");
        let octets = fs::read(&damaged[1]).unwrap();
        // The footer stays whole: the damage shows when pages are read.
        let mut broken = octets.clone();
        let middle = broken.len() / 8;
        broken[4..4 + middle].fill(0xA5);
        fs::write(&damaged[1], &broken).unwrap();
        let served = serve(dir.path());
        let id = id(&served);
        let at = |seconds| (START + Nanos::from_secs(seconds)).as_nanos() / 1_000;
        let (from, to) = if width == 600 { (0, 1_260) } else { (580, 1_260) };
        let query = format!(
            "range?table=load&column=load_1min&from={}&to={}&width={width}",
            at(from),
            at(to)
        );
        let body = served.json(&format!("recordings/{id}/{query}"));
        let problems = body["problems"].as_array().unwrap();
        assert_eq!(problems.len(), 1, "{table}: {problems:?}");
        let named = problems[0]["file"].as_str().unwrap();
        assert!(damaged[1].ends_with(named), "{named}");
        let good = whole.json(&format!("recordings/{}/{query}", crate::ranges::id(&whole)));
        let pixels = |body: &serde_json::Value| {
            let rows = body["rows"].as_array().unwrap().iter();
            rows.map(|row| row["bins"].as_array().unwrap().len()).sum::<usize>()
        };
        let (some, all) = (pixels(&body), pixels(&good));
        assert!(some > 0 && some < all, "{table}: {some} of {all} pixels");
        let inventory = served.json(&format!("recordings/{id}/inventory"));
        assert_eq!(inventory["problems"][0]["file"], named);
        fs::write(&damaged[1], octets).unwrap();
    }
}

#[test]
fn who_lists_series_or_scrapes_learns_of_damage_too() {
    let dir = tempfile::tempdir().unwrap();
    copy_tree(recording(), dir.path()).unwrap();
    let told = |dir: &Path| {
        let served = serve(dir);
        let id = id(&served);
        let series = served.get(&format!("/api/v1/recordings/{id}/series?table=load"));
        assert_eq!(series.status, 200, "{}", series.text());
        let line = format!("meikyo_recording_problems{{recording=\"{id}\"}} ");
        let metrics = served.get("/metrics").text();
        let counted = metrics.lines().find_map(|of| of.strip_prefix(&line)).map(str::to_owned);
        (series.header("meikyo-problems").to_owned(), counted)
    };
    assert_eq!(told(dir.path()), ("0".into(), Some("0".into())));
    let file = files(dir.path(), "load.summary").remove(1);
    let mut broken = fs::read(&file).unwrap();
    let end = broken.len() - 8;
    broken[4..end].fill(0xA5);
    fs::write(&file, &broken).unwrap();
    assert_eq!(told(dir.path()), ("1".into(), Some("1".into())), "unreadable");
    fs::remove_file(&file).unwrap();
    assert_eq!(told(dir.path()), ("1".into(), Some("1".into())), "missing");
}

/// The octets of all pages are changed, the footer stays whole.
fn spoil(file: &Path) {
    let mut octets = fs::read(file).unwrap();
    let behind = octets.len() - 8;
    let footer = u32::from_le_bytes(octets[behind..behind + 4].try_into().unwrap());
    octets[4..behind - usize::try_from(footer).unwrap()].fill(0xA5);
    fs::write(file, octets).unwrap();
}

/// What is done to a file.
type Harm = fn(&Path);

/// What an answer that lists files in `problems` names.
fn named(served: &Served, path: &str) -> Vec<String> {
    let body = served.json(path);
    let problems = body["problems"].as_array().unwrap_or_else(|| panic!("{path}: {body}")).iter();
    problems.map(|problem| problem["file"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn whoever_reads_rows_or_states_learns_of_damage() {
    let dir = tempfile::tempdir().unwrap();
    copy_tree(recording(), dir.path()).unwrap();
    let remove: Harm = |file| fs::remove_file(file).unwrap();
    let paths = [
        ("readings?table=load&limit=1", "load"),
        ("readings?table=load&limit=1", "polls"),
        ("events", "events"),
        ("freshness", "freshness"),
    ];
    for (path, table) in paths {
        // Damage shows when pages are read, a missing file when files are listed.
        for harm in [spoil as Harm, remove] {
            let file = files(dir.path(), table).remove(0);
            let whole = fs::read(&file).unwrap();
            let served = serve(dir.path());
            let path = format!("recordings/{}/{path}", id(&served));
            assert_eq!(named(&served, &path), Vec::<String>::new(), "{path}");
            drop(served);
            harm(&file);
            let told = named(&serve(dir.path()), &path);
            assert!(told.iter().any(|named| file.ends_with(named)), "{path} {table}: {told:?}");
            fs::write(&file, whole).unwrap();
        }
    }
    spoil(&files(dir.path(), "events").remove(0));
    let served = serve(dir.path());
    assert_eq!(served.get("/api/v1/alerts").header("meikyo-problems"), "1");
}

#[test]
fn a_segment_without_a_readable_head_keeps_no_inventory_from_being_answered() {
    let dir = tempfile::tempdir().unwrap();
    copy_tree(recording(), dir.path()).unwrap();
    let segment = dir.path().join("log/snmp/0009999999.log");
    fs::write(&segment, [0x5A; 4_096]).unwrap();
    let served = serve(dir.path());
    let inventory = served.json(&format!("recordings/{}/inventory", id(&served)));
    assert!(!inventory["tables"].as_array().unwrap().is_empty(), "{inventory}");
}

/// Asks for an export: how many problems its header tells, its rows, and whether the body came whole.
fn exported(served: &Served, table: &str) -> (String, usize, bool) {
    let path = format!("/api/v1/recordings/{}/export?table={table}&format=csv", id(served));
    let mut stream = served.connect_from(client(1));
    let head = "Host: localhost\r\nConnection: close\r\n";
    write!(stream, "GET {path} HTTP/1.1\r\n{head}\r\n").unwrap();
    let mut octets = Vec::new();
    // A body that is broken off may end in a reset.
    drop(stream.read_to_end(&mut octets));
    let answer = String::from_utf8(octets).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let problems = head.lines().find_map(|line| line.strip_prefix("meikyo-problems: "));
    // The last line ends, its chunk ends, and the empty chunk says that there are no more.
    let rows = body.lines().filter(|line| line.contains("node0")).count();
    (problems.unwrap().to_owned(), rows, body.ends_with("\r\n\r\n0\r\n\r\n"))
}

#[test]
fn an_export_that_lacks_rows_says_so_or_does_not_end() {
    let dir = tempfile::tempdir().unwrap();
    copy_tree(recording(), dir.path()).unwrap();
    let (none, all, is_whole) = exported(&serve(dir.path()), "load");
    assert_eq!((&*none, is_whole), ("0", true));
    let file = files(dir.path(), "load").remove(1);
    let whole = fs::read(&file).unwrap();
    spoil(&file);
    let served = serve(dir.path());
    let (unknown, some, is_whole) = exported(&served, "load");
    assert_eq!((&*unknown, is_whole), ("0", false), "{some} of {all} rows");
    // From then on it is known, and what can be read comes whole.
    let (known, some, is_whole) = exported(&served, "load");
    assert_eq!((&*known, is_whole), ("1", true));
    assert!(some > 0 && some < all, "{some} of {all} rows");
    fs::remove_file(&file).unwrap();
    let (known, some, is_whole) = exported(&serve(dir.path()), "load");
    assert!((&*known, is_whole) == ("1", true) && some > 0 && some < all, "{some} of {all} rows");
    fs::write(&file, whole).unwrap();
}

/// A request, and the tables whose newest file it needs.
type Reader = (&'static str, &'static [&'static str]);

/// Every request that reads rows, over the whole recording.
const READERS: [Reader; 11] = [
    // Of wide pixels from summaries, of narrow ones from readings; who is drawn is known from summaries.
    ("range?table=load&column=load_1min&width=100", &["load.summary"]),
    // Rates need to know when values were updated, and when answers came.
    (
        "range?table=load&column=load_1min&width=10000",
        &["freshness", "load", "load.summary", "polls"],
    ),
    (
        "range?table=interfaces&column=in_octets&width=10000",
        &["freshness", "interfaces", "interfaces.summary", "polls"],
    ),
    ("states?width=100", &["polls.summary"]),
    ("states?width=10000", &["freshness", "polls", "polls.summary"]),
    ("health?width=100", &["intervals", "polls", "freshness"]),
    ("readings?table=load&limit=10", &["load", "polls"]),
    ("readings?table=polls&limit=10", &["polls"]),
    ("events", &["events"]),
    ("freshness", &["freshness"]),
    // Last: it tells what the requests before it have met, too.
    ("inventory", &TABLES),
];

/// The tables whose files are damaged.
const TABLES: [&str; 9] = [
    "events",
    "freshness",
    "interfaces",
    "interfaces.summary",
    "intervals",
    "load",
    "load.summary",
    "polls",
    "polls.summary",
];

fn truncate(file: &Path) {
    let octets = fs::read(file).unwrap();
    fs::write(file, &octets[..octets.len() / 2]).unwrap();
}

fn dangle(file: &Path) {
    fs::remove_file(file).unwrap();
    std::os::unix::fs::symlink("nowhere", file).unwrap();
}

#[test]
fn every_request_tells_of_every_damage_that_concerns_it_and_of_no_other() {
    let dir = tempfile::tempdir().unwrap();
    copy_tree(recording(), dir.path()).unwrap();
    let remove: Harm = |file| fs::remove_file(file).unwrap();
    let harms: [(&str, Harm); 4] =
        [("removed", remove), ("spoiled", spoil), ("truncated", truncate), ("dangling", dangle)];
    for table in TABLES {
        let file = files(dir.path(), table).pop().unwrap();
        let whole = fs::read(&file).unwrap();
        for (harm_name, harm) in harms {
            harm(&file);
            let served = serve(dir.path());
            for (reader, needs) in READERS {
                let told = named(&served, &format!("recordings/{}/{reader}", id(&served)));
                let is_named = told.iter().any(|named| file.ends_with(named));
                let is_met = needs.contains(&table);
                assert_eq!(is_named, is_met, "{reader}: {table} {harm_name}: {told:?}");
            }
            drop(fs::remove_file(&file));
            fs::write(&file, &whole).unwrap();
        }
    }
}

#[test]
fn every_request_tells_of_a_log_that_lacks_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let log_only = StreamOptions { compact: false, ..waiting() };
    let mut twin = twin(dir.path(), FarmOptions::new(HOSTS, 1), &[], log_only);
    twin.run_until(START + Nanos::from_secs(30));
    twin.finish().close().unwrap();
    let log = dir.path().join("log/snmp");
    let segment = log.join("0000000001.log");
    for harm in [truncate as Harm, |file| fs::remove_file(file).unwrap()] {
        let whole = fs::read(&segment).unwrap();
        harm(&segment);
        let served = serve(dir.path());
        for (reader, _) in READERS {
            let path = format!("/api/v1/recordings/{}/{reader}", id(&served));
            let answer = served.get(&path);
            let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
            let problems = body["problems"].as_array();
            let told = problems.is_some_and(|problems| {
                problems.iter().any(|of| segment.ends_with(of["file"].as_str().unwrap()))
            });
            // Without any row there is no time to be asked for, and nobody knows some tables.
            let is_refused = answer.status != 200 && !segment.exists();
            assert!(told || is_refused, "{reader}: {}", answer.text());
        }
        fs::write(&segment, whole).unwrap();
    }
}
