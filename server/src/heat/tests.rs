//! Sums are compared with a count of the samples themselves.

use std::collections::{BTreeMap, BTreeSet};

use meikyo_recording::schema::Role;
use meikyo_recording::{
    Column, ColumnKind, Kind, Meaning, PackedRows, Packer, StreamOptions, StreamWriter, TableSchema,
};

use super::follow::Follower;
use super::*;

/// 2026-11-21T20:59:59Z.
const START_S: i64 = 1_795_294_799;

fn table() -> TableSchema {
    let columns = vec![
        Column::new("host", ColumnKind::Symbol, Meaning::Label, ""),
        Column::new("cpu", ColumnKind::U64, Meaning::Gauge, ""),
        Column::new("address", ColumnKind::U64, Meaning::Gauge, ""),
    ];
    TableSchema::new("samples", "", columns).for_role(Role::Samples)
}

/// A sample: host, CPU, time.
type Sample = (&'static str, u32, i64);

/// Samples of two hosts and three CPUs, whose blocks begin in the middle of seconds.
fn blocks(count: i64) -> Vec<Vec<Sample>> {
    let block = |number: i64| {
        let host = if number % 3 == 0 { "node001" } else { "node002" };
        let begin = START_S * 1_000_000_000 + number * 400_000_000;
        let sample = |at: i64| (host, u32::try_from(number % 4).unwrap(), begin + at * 7_654_321);
        (0..100).map(sample).collect()
    };
    (0..count).map(block).collect()
}

fn packed(samples: &[Sample]) -> PackedRows {
    let mut packer = Packer::new(table());
    for (host, cpu, time) in samples {
        let host = packer.symbol(host);
        packer.batch().begin_row(*time);
        packer.batch().put_symbol(1, host);
        packer.batch().put_u64(2, (*cpu).into());
        packer.batch().put_u64(3, time.unsigned_abs());
    }
    packer.pack().unwrap()
}

fn open(dir: &Path) -> StreamWriter {
    let options = StreamOptions { compact: false, ..StreamOptions::COLLECTOR };
    StreamWriter::open(dir, Kind::Measured, "profile", vec![table()], options).unwrap()
}

fn write(writer: &mut StreamWriter, blocks: &[Vec<Sample>]) {
    for block in blocks {
        writer.packed(packed(block)).unwrap();
    }
    writer.sync_now().unwrap();
}

fn all() -> Selection {
    let (hosts, cpus) = (Vec::new(), BTreeSet::new());
    Selection { from_s: START_S, until_s: START_S + 20, hosts, cpus, by_core: true }
}

/// What the selection must give, sample by sample.
fn counted(blocks: &[Vec<Sample>], selection: &Selection, is_host: impl Fn(&str) -> bool) -> Sums {
    let span = usize::try_from(selection.until_s - selection.from_s).unwrap();
    let mut sums = Sums { seconds: vec![0; span], tiles: vec![0; span * 50], cores: Vec::new() };
    let mut cores: BTreeMap<(&str, u32), Vec<u32>> = BTreeMap::new();
    for &(host, cpu, time) in blocks.iter().flatten() {
        let since = time - selection.from_s * 1_000_000_000;
        let is_cpu = selection.cpus.is_empty() || selection.cpus.contains(&cpu);
        let Ok(tile) = usize::try_from(since.div_euclid(20_000_000)) else { continue };
        if tile < span * 50 && is_cpu && is_host(host) {
            sums.tiles[tile] += 1;
            sums.seconds[tile / 50] += 1;
            cores.entry((host, cpu)).or_insert_with(|| vec![0; span])[tile / 50] += 1;
        }
    }
    let core = |((host, cpu), seconds): ((&str, u32), Vec<u32>)| CoreSums {
        host: host.into(),
        cpu,
        samples: seconds.iter().map(|count| u64::from(*count)).sum(),
        seconds: if selection.by_core { seconds } else { Vec::new() },
    };
    sums.cores = cores.into_iter().map(core).collect();
    sums
}

fn follower(dir: &Path) -> (Follower, Heat) {
    let heat = Heat::default();
    (Follower::new(dir.into(), heat.clone()), heat)
}

#[test]
fn sums_are_those_of_the_samples_however_they_are_selected() {
    let dir = tempfile::tempdir().unwrap();
    let blocks = blocks(40);
    let mut writer = open(dir.path());
    let (mut follower, heat) = follower(dir.path());
    for part in blocks.chunks(7) {
        write(&mut writer, part);
        follower.look().unwrap();
    }
    assert_eq!(heat.span(), Some((START_S, START_S + 16)));
    let selection = all();
    assert_eq!(heat.sums(&selection).unwrap(), counted(&blocks, &selection, |_| true));
    let of_one = Selection { hosts: vec!["node*1".into()], by_core: false, ..all() };
    let expected = counted(&blocks, &of_one, |host| host == "node001");
    assert_eq!(heat.sums(&of_one).unwrap(), expected);
    let middle =
        Selection { from_s: START_S + 5, until_s: START_S + 8, cpus: [1, 2].into(), ..all() };
    assert_eq!(heat.sums(&middle).unwrap(), counted(&blocks, &middle, |_| true));
    assert!(counted(&blocks, &middle, |_| true).cores.len() >= 2, "the test shows something");
}

#[test]
fn rows_are_made_anew_where_they_are_missing_damaged_or_of_other_frames() {
    let dir = tempfile::tempdir().unwrap();
    let blocks = blocks(30);
    let mut writer = open(dir.path());
    let selection = all();
    let expected = counted(&blocks, &selection, |_| true);
    for part in blocks.chunks(10) {
        write(&mut writer, part);
        // A server that comes anew goes on behind what there is.
        follower(dir.path()).0.look().unwrap();
    }
    let path = std::fs::read_dir(dir.path().join("log/profile")).unwrap();
    let path = path.map(|entry| entry.unwrap().path());
    let path =
        path.into_iter().find(|path| path.extension().is_some_and(|of| of == "heat")).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let sums_of_new = || {
        let (mut follower, heat) = follower(dir.path());
        follower.look().unwrap();
        heat.sums(&selection).unwrap()
    };
    assert_eq!(sums_of_new(), expected);
    assert_eq!(std::fs::read(&path).unwrap(), whole, "what is there is not written again");
    // Cut off anywhere, damaged anywhere, or gone.
    for cut in [0, 10, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..cut]).unwrap();
        assert_eq!(sums_of_new(), expected, "cut at {cut}");
    }
    for at in (0..whole.len()).step_by(23) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        std::fs::write(&path, &damaged).unwrap();
        assert_eq!(sums_of_new(), expected, "damaged at {at}");
    }
    // Rows of a log whose end a power cut took, in whose place other blocks were written.
    let other = tempfile::tempdir().unwrap();
    let mut shifted = blocks.clone();
    shifted.iter_mut().skip(20).flatten().for_each(|sample| sample.2 += 1_000_000_000);
    let mut writer = open(other.path());
    write(&mut writer, &shifted);
    let beside = other.path().join("log/profile").join(path.file_name().unwrap());
    std::fs::write(&beside, &whole).unwrap();
    let (mut follower, heat) = follower(other.path());
    follower.look().unwrap();
    assert_eq!(heat.sums(&selection).unwrap(), counted(&shifted, &selection, |_| true));
}

#[test]
fn rows_of_a_deleted_segment_go_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(dir.path());
    write(&mut writer, &blocks(10));
    let (mut follower, heat) = follower(dir.path());
    follower.look().unwrap();
    drop(writer);
    let log = dir.path().join("log/profile");
    let files = || std::fs::read_dir(&log).unwrap().map(|entry| entry.unwrap().path());
    let ending = |of: &'static str| {
        move |path: &PathBuf| path.extension().is_some_and(|extension| extension == of)
    };
    files().filter(ending("log")).for_each(|path| std::fs::remove_file(path).unwrap());
    let rows = files().find(ending("heat")).unwrap();
    let copy = std::fs::read(&rows).unwrap();
    follower.look().unwrap();
    assert_eq!(heat.span(), None);
    assert_eq!(files().filter(ending("heat")).count(), 0);
    // Also when it was deleted while no server ran.
    std::fs::write(&rows, copy).unwrap();
    self::follower(dir.path()).0.look().unwrap();
    assert_eq!(files().filter(ending("heat")).count(), 0);
}

#[test]
fn more_numbers_than_an_answer_takes_are_not_added_up() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(dir.path());
    let sample = |at: u32| ("node001", at, START_S * 1_000_000_000 + i64::from(at));
    let many: Vec<Sample> = (0..1_000).map(sample).collect();
    write(&mut writer, &[many]);
    let (mut follower, heat) = follower(dir.path());
    follower.look().unwrap();
    let hours = Selection { until_s: START_S + 7_200, ..all() };
    let error = heat.sums(&hours).unwrap_err().to_string();
    assert!(error.contains("4000000"), "{error}");
    let map = Selection { by_core: false, ..hours };
    assert_eq!(heat.sums(&map).unwrap().cores.len(), 1_000);
}
