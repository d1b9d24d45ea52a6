//! The recording that is damaged, and copies of it.

use std::path::Path;

use meikyo_recording::{
    Column, ColumnKind, Kind, Meaning, Packer, StreamOptions, StreamWriter, TableSchema, WhenFull,
};
use meikyo_units::Nanos;

/// 2026-11-21T20:50:00Z, ten minutes before the end of an hour.
const BEGIN: i64 = 1_795_294_200_000_000_000;
const SECOND: i64 = 1_000_000_000;

fn tables() -> Vec<TableSchema> {
    let device = || Column::new("device", ColumnKind::Symbol, Meaning::Label, "");
    let column = |name, kind, meaning| Column::new(name, kind, meaning, "");
    vec![
        TableSchema::new(
            "polls",
            "",
            vec![
                device(),
                column("pdu", ColumnKind::U64, Meaning::Label),
                column("received_us", ColumnKind::I64, Meaning::Gauge),
                column("uptime_cs", ColumnKind::U64, Meaning::Gauge),
                column("state", ColumnKind::Symbol, Meaning::State),
            ],
        ),
        TableSchema::new(
            "interfaces",
            "",
            vec![
                device(),
                column("pdu", ColumnKind::U64, Meaning::Gauge),
                column("in_octets", ColumnKind::U64, Meaning::Counter64),
                column("load", ColumnKind::F64, Meaning::Gauge),
                column("note", ColumnKind::Text, Meaning::Detail),
            ],
        ),
    ]
}

fn write(dir: &Path, stream: &str, seconds: std::ops::Range<i64>, compact: bool) {
    let options = StreamOptions {
        compact,
        segment_span: Nanos::from_secs(300),
        when_full: WhenFull::Wait,
        ..StreamOptions::COLLECTOR
    };
    let mut writer = StreamWriter::open(dir, Kind::Measured, stream, tables(), options).unwrap();
    let ok = writer.symbol("ok");
    for second in seconds.step_by(5) {
        let time = BEGIN + second * SECOND;
        let mut polls = writer.batch(0);
        // Every other time the values come as a block, as from another host.
        let mut packer = (second % 2 == 0).then(|| Packer::new(tables().remove(1)));
        let mut plain = writer.batch(1);
        for number in 1..=4_u64 {
            let device = writer.symbol(&format!("{stream}{number}"));
            polls.begin_row(time);
            polls.put_symbol(1, device);
            polls.put_u64(2, 0);
            polls.put_i64(3, 500);
            polls.put_u64(4, second.unsigned_abs() * 100);
            polls.put_symbol(5, ok);
            let of_block =
                packer.as_mut().map(|packer| packer.symbol(&format!("{stream}{number}")));
            let values = packer.as_mut().map_or(&mut plain, Packer::batch);
            values.begin_row(time);
            values.put_symbol(1, of_block.unwrap_or(device));
            values.put_u64(2, 0);
            values.put_u64(3, second.unsigned_abs() * number * 1_000);
            if second % 3 == 0 {
                values.put_f64(4, 0.25);
                values.put_text(5, &format!("at {second}"));
            }
        }
        writer.submit(polls);
        match packer {
            Some(mut packer) => writer.packed(packer.pack().unwrap()).unwrap(),
            None => writer.submit(plain),
        }
        writer.sync_now().unwrap();
    }
    writer.close().unwrap();
}

/// A recording of two streams: files of several segments and two hours, and segments in the log.
pub(crate) fn make(dir: &Path) {
    write(dir, "a", 0..1_200, true);
    write(dir, "a", 1_200..1_900, false);
    write(dir, "b", 0..700, true);
}

/// Writes more rows to a stream.
pub(crate) fn append(dir: &Path, stream: &str, compact: bool) {
    write(dir, stream, 2_000..2_400, compact);
}

/// What the device of [`names_in_turn`] with that number is called.
pub(crate) fn name_of(number: u64) -> String {
    format!("device{number}")
}

/// A log of one table, `numbers`, whose names come one after another, each in a frame of its own.
pub(crate) fn names_in_turn(dir: &Path) {
    let column = |name, kind, meaning| Column::new(name, kind, meaning, "");
    let columns = vec![
        column("device", ColumnKind::Symbol, Meaning::Label),
        column("number", ColumnKind::U64, Meaning::Gauge),
    ];
    let tables = vec![TableSchema::new("numbers", "", columns)];
    let options =
        StreamOptions { compact: false, when_full: WhenFull::Wait, ..StreamOptions::COLLECTOR };
    let mut writer = StreamWriter::open(dir, Kind::Measured, "a", tables, options).unwrap();
    for newest in 1..=6 {
        let mut batch = writer.batch(0);
        for number in 1..=newest {
            let device = writer.symbol(&name_of(number));
            batch.begin_row(BEGIN + newest.cast_signed() * SECOND);
            batch.put_symbol(1, device);
            batch.put_u64(2, number);
        }
        writer.submit(batch);
        writer.sync_now().unwrap();
    }
    writer.close().unwrap();
}

/// A log in which a device's clock is set twice within one frame: from the epoch to 2026, and from there
/// to 2250. Returns how many rows there are.
pub(crate) fn ages_apart(dir: &Path) -> u64 {
    let options =
        StreamOptions { compact: false, when_full: WhenFull::Wait, ..StreamOptions::COLLECTOR };
    let mut writer = StreamWriter::open(dir, Kind::Measured, "a", tables(), options).unwrap();
    let (device, ok) = (writer.symbol("a1"), writer.symbol("ok"));
    let [mut polls, mut interfaces] = [0, 1].map(|table| writer.batch(table));
    let mut rows = 0;
    // 2250-01-01T00:00:00Z.
    for begin in [0, BEGIN, 8_835_955_200 * SECOND] {
        for second in 0..30 {
            for batch in [&mut polls, &mut interfaces] {
                batch.begin_row(begin + second * SECOND);
                batch.put_symbol(1, device);
                batch.put_u64(2, 0);
                rows += 1;
            }
            // An answer that came half a century late, by the clock that was set meanwhile.
            let is_late = second == 29 && begin == 0;
            polls.put_i64(3, if is_late { BEGIN / 1_000 } else { 500 });
            if !is_late {
                // With it one would know when the agent read its counters.
                polls.put_u64(4, second.unsigned_abs() * 100);
            }
            polls.put_symbol(5, ok);
            interfaces.put_u64(3, second.unsigned_abs() * 1_000);
        }
    }
    writer.submit(polls);
    writer.submit(interfaces);
    writer.close().unwrap();
    rows
}
