//! What a recording costs: CPU time a poll and octets a value, on synthetic readings.
//!
//! `cargo run --release -p meikyo-recording --example cost [DEVICES] [INTERVALS] [CACHE]`
//!
//! Each poll is a row in four tables with five values: two counters whose increments are log-normal
//! (median 100 kB, sigma 1), disk used and available (moving in 10 % of the polls), and load (moving
//! every 5 s); answers come 2 ms after the due instant, give or take 30 µs. CACHE is the number of
//! intervals between two updates of the counters, as an agent with a cache shows them.

#![expect(clippy::cast_possible_truncation, reason = "counts far below 2^53, and 64-bit machines")]

use std::error::Error;
use std::io::Write as _;

use meikyo_recording::{
    Column, ColumnKind, Kind, Meaning, StreamOptions, StreamWriter, Symbol, TableSchema, WhenFull,
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let devices = arguments.next().transpose()?.unwrap_or(241);
    let intervals = arguments.next().transpose()?.unwrap_or(6_000);
    let cache = arguments.next().transpose()?.unwrap_or(1);
    let dir = tempfile::tempdir()?;
    let options = StreamOptions { when_full: WhenFull::Wait, ..StreamOptions::COLLECTOR };
    let mut writer = StreamWriter::open(dir.path(), Kind::Simulated, "snmp", tables(), options)?;
    let words = Words {
        eth0: writer.symbol("eth0"),
        root: writer.symbol("/"),
        ok: writer.symbol("ok"),
        devices: (0..devices).map(|device| writer.symbol(&format!("node{device:04}"))).collect(),
    };
    let mut random = Random(42);
    let mut states: Vec<_> = (0..devices).map(|_| Device::new(&mut random)).collect();
    for interval in 0..intervals {
        poll(&mut writer, &words, &mut states, &mut random, interval, cache);
    }
    writer.sync_now()?;
    let kept = writer.counters();
    let counters = writer.close()?.counters;
    let polls = as_f64(devices * intervals);
    let mut out = std::io::stdout().lock();
    writeln!(out, "polls                  {polls}")?;
    writeln!(out, "log bytes a poll       {:.1}", as_f64(kept.bytes_kept as usize) / polls)?;
    writeln!(
        out,
        "write CPU us a poll    {:.3}",
        as_f64(kept.write_cpu_ns as usize) / polls / 1e3
    )?;
    let compaction = as_f64(counters.compaction_cpu_ns as usize) / polls / 1e3;
    writeln!(out, "compact CPU us a poll  {compaction:.3}")?;
    writeln!(
        out,
        "summary bytes a value  {:.3}",
        as_f64(counters.summary_bytes as usize) / polls / 5.0
    )?;
    writeln!(
        out,
        "bytes a value          {:.3}",
        as_f64(counters.parquet_bytes as usize) / polls / 5.0
    )?;
    for table in tables() {
        let bytes = bytes_under(&dir.path().join(&table.name))?;
        writeln!(out, "  {:<12} bytes a row {:.3}", table.name, as_f64(bytes) / polls)?;
    }
    writeln!(
        out,
        "{}",
        std::fs::read_to_string("/proc/self/status")?
            .lines()
            .filter(|line| line.starts_with("VmHWM"))
            .collect::<String>()
    )?;
    if let Ok(kept) = std::env::var("KEEP_AS") {
        std::fs::rename(dir.keep(), kept)?;
    }
    Ok(())
}

struct Words {
    eth0: Symbol,
    root: Symbol,
    ok: Symbol,
    devices: Vec<Symbol>,
}

struct Device {
    octets: [u64; 2],
    shown: [u64; 2],
    disk: u64,
    load: f64,
    uptime_cs: u64,
}

impl Device {
    fn new(random: &mut Random) -> Self {
        Self {
            octets: [random.next() >> 20, random.next() >> 20],
            shown: [0; 2],
            disk: 50_000_000_000,
            load: 0.5,
            uptime_cs: random.next() >> 40,
        }
    }
}

fn poll(
    writer: &mut StreamWriter,
    words: &Words,
    states: &mut [Device],
    random: &mut Random,
    interval: usize,
    cache: usize,
) {
    let time = 1_795_292_400_000_000_000 + i64::try_from(interval).unwrap_or(0) * 100_000_000;
    let mut batches = [0, 1, 2, 3].map(|table| writer.batch(table));
    // Answers come in about the order of the requests.
    let mut order: Vec<_> = (0..states.len()).collect();
    for pair in order.chunks_exact_mut(2).filter(|_| random.next().is_multiple_of(4)) {
        pair.swap(0, 1);
    }
    for at in order {
        let (state, device) = (&mut states[at], words.devices[at]);
        state.advance(random, interval + at, cache);
        let [polls, interfaces, storage, load] = &mut batches;
        for batch in [&mut *polls, &mut *interfaces, &mut *storage, &mut *load] {
            batch.begin_row(time);
            batch.put_symbol(1, device);
        }
        polls.put_u64(2, 0);
        polls.put_symbol(3, words.ok);
        polls.put_u64(5, (at / 64) as u64);
        let received = 2_000.0 + 5.0 * as_f64(at) + 30.0 * random.normal();
        polls.put_i64(6, rounded(received).cast_signed());
        polls.put_u64(7, state.uptime_cs);
        interfaces.put_symbol(2, words.eth0);
        interfaces.put_u64(3, state.shown[0]);
        interfaces.put_u64(4, state.shown[1]);
        storage.put_symbol(2, words.root);
        storage.put_u64(4, state.disk);
        storage.put_u64(5, 100_000_000_000 - state.disk);
        load.put_f64(2, state.load);
    }
    for batch in batches {
        writer.submit(batch);
    }
}

impl Device {
    fn advance(&mut self, random: &mut Random, tick: usize, cache: usize) {
        for octets in &mut self.octets {
            *octets += rounded(100_000.0 * random.normal().exp());
        }
        if tick.is_multiple_of(cache) {
            self.shown = self.octets;
        }
        if random.next().is_multiple_of(10) {
            self.disk += 4_096 * (random.next() % 1_000);
        }
        if tick.is_multiple_of(50) {
            self.load = as_f64(usize::try_from(random.next() % 400).unwrap_or(0)) / 100.0;
        }
        self.uptime_cs += 10 + u64::from(random.next().is_multiple_of(10))
            - u64::from(random.next().is_multiple_of(10));
    }
}

/// xorshift64*, seeded: every run writes the same readings.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
    }

    /// Box and Muller (1958).
    fn normal(&mut self) -> f64 {
        let unit =
            |random: &mut Self| (as_f64((random.next() >> 8) as usize) + 0.5) / as_f64(1 << 48);
        let (a, b) = (unit(self), unit(self));
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
fn as_f64(count: usize) -> f64 {
    count as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, below 2^53")]
fn rounded(value: f64) -> u64 {
    value.round() as u64
}

fn bytes_under(dir: &std::path::Path) -> Result<usize, std::io::Error> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        bytes += if entry.file_type()?.is_dir() {
            bytes_under(&entry.path())?
        } else {
            usize::try_from(entry.metadata()?.len()).unwrap_or(0)
        };
    }
    Ok(bytes)
}

fn tables() -> Vec<TableSchema> {
    let symbol = |name: &str| Column::new(name, ColumnKind::Symbol, Meaning::Label, "");
    let gauge = |name: &str| Column::new(name, ColumnKind::U64, Meaning::Gauge, "");
    let counter = |name: &str| Column::new(name, ColumnKind::U64, Meaning::Counter64, "");
    let real = |name: &str| Column::new(name, ColumnKind::F64, Meaning::Gauge, "");
    vec![
        TableSchema::new(
            "polls",
            "",
            vec![
                symbol("device"),
                gauge("pdu"),
                Column::new("state", ColumnKind::Symbol, Meaning::State, ""),
                Column::new("reason", ColumnKind::Symbol, Meaning::Gauge, ""),
                gauge("batch"),
                Column::new("received_us", ColumnKind::I64, Meaning::Gauge, ""),
                gauge("uptime_cs"),
            ],
        ),
        TableSchema::new(
            "interfaces",
            "",
            vec![
                symbol("device"),
                symbol("interface"),
                counter("in_octets"),
                counter("out_octets"),
                counter("in_packets"),
                counter("out_packets"),
                counter("in_errors"),
                counter("out_errors"),
                counter("in_discards"),
                counter("out_discards"),
                gauge("speed_mbps"),
                gauge("oper_status"),
                gauge("counter_bits"),
                gauge("discontinuity_cs"),
            ],
        ),
        TableSchema::new(
            "storage",
            "",
            vec![
                symbol("device"),
                symbol("path"),
                gauge("total_bytes"),
                gauge("used_bytes"),
                gauge("available_bytes"),
            ],
        ),
        TableSchema::new(
            "load",
            "",
            vec![symbol("device"), real("load_1min"), real("load_5min"), real("load_15min")],
        ),
    ]
}
