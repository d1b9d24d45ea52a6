//! Rows as a collector makes them, without a collector: an interval of many devices at a time.

use std::io;

use meikyo_recording::{Batch, Symbol, Symbols};
use meikyo_snmp::tables::{Table, schema};
use meikyo_transport::SenderOptions;
use meikyo_transport::limits::SpoolLimits;
use meikyo_transport::shell::{Forward, Target, Uplink};
use meikyo_transport::wire::Declared;
use meikyo_units::{Bytes, Nanos, WallTime};

use meikyo_console::failure::Failure;

use crate::placement::thread_cpu;

/// Of so many devices a collector takes the answers at once.
const ANSWERS_AT_ONCE: usize = 64;

/// The texts of a sender before its devices.
const WORDS: [&str; 3] = ["ok", "eth0", "/"];

/// A cluster that seems to be measured: its rows, and whoever forwards them.
#[derive(Debug)]
pub(super) struct Made {
    random: u64,
    octets: Vec<[u64; 2]>,
    symbols: Vec<Symbol>,
    forward: Forward,
}

impl Made {
    /// Sends as cluster `name` of so many devices to a server.
    pub(super) fn start(authority: &str, name: &str, devices: u32) -> Result<Self, Failure> {
        let target = Target {
            authority: authority.to_owned(),
            prefix: String::new(),
            roots: None,
            token: None,
        };
        let tables = meikyo_snmp::tables::schemas();
        let stream = meikyo_snmp::STREAM.to_owned();
        let options = SenderOptions {
            name: format!("{name}:bench"),
            cluster: Some(name.to_owned()),
            identity: None,
            boot: WallTime::now().as_nanos().cast_unsigned(),
            machine: String::new(),
            streams: vec![Declared { stream, tables: tables.clone() }],
            spool: SpoolLimits { bytes: Bytes::new(4 << 30), blocks: 1_000_000 },
            catch_up: None,
        };
        let uplink = Uplink::start(target, options, None)?;
        let mut forward = Forward::start(uplink, meikyo_snmp::STREAM, tables)?;
        let names = (0..devices).map(|device| format!("node{device:04}"));
        let words = WORDS.iter().map(|word| (*word).to_owned()).chain(names);
        let (mut known, mut symbols) = (Symbols::default(), Vec::new());
        for word in words {
            let symbol = known.intern(&word);
            forward.define(symbol, &word);
            symbols.push(symbol);
        }
        let octets = vec![[0; 2]; devices as usize];
        Ok(Self { random: 88_172_645_463_325_252, octets, symbols, forward })
    }

    /// Hands over the rows of the interval that was due then.
    pub(super) fn interval(&mut self, due: WallTime) {
        for from in (0..self.octets.len()).step_by(ANSWERS_AT_ONCE) {
            let batches = self.rows_of(due, from);
            self.hand_over(&batches);
        }
    }

    /// The same; the CPU time that handing them over took.
    pub(super) fn timed_interval(&mut self, due: WallTime) -> io::Result<Nanos> {
        let pieces = (0..self.octets.len()).step_by(ANSWERS_AT_ONCE);
        pieces.into_iter().try_fold(Nanos::ZERO, |taken, from| {
            let batches = self.rows_of(due, from);
            let before = thread_cpu()?;
            self.hand_over(&batches);
            Ok(taken + thread_cpu()?.saturating_sub(before))
        })
    }

    fn hand_over(&self, batches: &[Batch]) {
        for batch in batches {
            self.forward.submit(batch);
        }
    }

    /// The rows of devices from one on, as many as answer at once.
    fn rows_of(&mut self, due: WallTime, from: usize) -> [Batch; 4] {
        let mut batches = [Table::Polls, Table::Interfaces, Table::Storage, Table::Load]
            .map(|table| Batch::new(table.index(), schema(table)));
        let column = |table: Table, name: &str| {
            schema(table).column(name).expect("the table has that column")
        };
        let [ok, eth0, root] = [0, 1, 2].map(|word: usize| self.symbols[word]);
        for device in from..self.octets.len().min(from + ANSWERS_AT_ONCE) {
            let symbol = self.symbols[WORDS.len() + device];
            let [polls, interfaces, storage, load] = &mut batches;
            for batch in [&mut *polls, interfaces, storage, load] {
                batch.begin_row(due.as_nanos());
                batch.put_symbol(1, symbol);
            }
            let noise = [self.noise(), self.noise(), self.noise()];
            polls.put_u64(column(Table::Polls, "pdu"), 0);
            polls.put_symbol(column(Table::Polls, "state"), ok);
            let received = (device as u64 * 5 + noise[0] % 64).cast_signed();
            polls.put_i64(column(Table::Polls, "received_us"), received);
            interfaces.put_symbol(2, eth0);
            // Some 50 MB/s, which vary by a tenth.
            let octets = &mut self.octets[device];
            for ((octets, noise), name) in
                octets.iter_mut().zip(&noise[1..]).zip(["in_octets", "out_octets"])
            {
                *octets += 5_000_000 + noise % 500_000;
                interfaces.put_u64(column(Table::Interfaces, name), *octets);
            }
            storage.put_symbol(2, root);
            storage.put_u64(column(Table::Storage, "used_bytes"), 1 << 35);
            storage.put_u64(column(Table::Storage, "available_bytes"), 1 << 36);
            load.put_f64(column(Table::Load, "load_1min"), 0.25);
        }
        batches
    }

    fn noise(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 20
    }

    /// Who forwards the rows.
    pub(super) fn forward(&self) -> &Forward {
        &self.forward
    }

    /// Ends it, with everything delivered.
    pub(super) fn finish(self, patience: Nanos) -> Result<(), Failure> {
        let dropped = self.forward.rows_dropped();
        let status = self.forward.end()?.finish(patience);
        if dropped > 0 || !status.is_delivered() {
            return Err(Failure::new(format!(
                "{dropped} rows were dropped, and {} blocks are not delivered: {}",
                status.sender.spool.blocks,
                status.trouble.unwrap_or_default()
            )));
        }
        Ok(())
    }
}
