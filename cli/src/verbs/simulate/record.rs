//! A model's series as rows of a recording, in the tables of measured data.
//!
//! A value is a row of `objects`: the LP is the device, the series the object, and the value stands in
//! `real` as the model gave it. The recording's epoch is the start of the simulation.

use std::collections::BTreeMap;
use std::path::Path;

use meikyo_console::failure::Failure;
use meikyo_models::scenario::Scenario;
use meikyo_recording::format::FILE_NAME;
use meikyo_recording::{Batch, Kind, StreamOptions, StreamWriter, Symbol, WhenFull};
use meikyo_sim::{Line, LpId, Series};
use meikyo_snmp::tables::{self, Table};

/// Rows that are handed over at once.
const ROWS: usize = 4096;

/// Writes series into a recording.
pub(super) struct Recorder<'a> {
    scenario: &'a Scenario,
    names: Vec<String>,
    /// The LPs that gave something out, by their names.
    devices: BTreeMap<LpId, Symbol>,
    writer: StreamWriter,
    batch: Batch,
    columns: Columns,
}

/// Positions in the table `objects`.
struct Columns {
    device: usize,
    object: usize,
    real: usize,
}

impl<'a> Recorder<'a> {
    /// Opens the recording in `dir`.
    ///
    /// # Errors
    /// If it cannot be written, or holds data already.
    pub(super) fn open(dir: &Path, scenario: &'a Scenario) -> Result<Self, Failure> {
        // Simulated time begins at 0 in every run: two in one recording could not be told apart.
        if dir.join(FILE_NAME).exists() {
            let text = format!("`{}` holds a recording already", dir.display());
            return Err(Failure::new(text).hint("name another directory: --out run-2"));
        }
        let names = scenario.series_names();
        let options = StreamOptions { when_full: WhenFull::Wait, ..StreamOptions::COLLECTOR };
        let mut writer =
            StreamWriter::open(dir, Kind::Simulated, "simulate", tables::schemas(), options)?;
        let schema = tables::schema(Table::Objects);
        let at = |name| schema.column(name).expect("a column of `objects`");
        let columns = Columns { device: at("device"), object: at("object"), real: at("real") };
        let batch = writer.batch(Table::Objects.index());
        Ok(Self { scenario, names, devices: BTreeMap::new(), writer, batch, columns })
    }

    /// Keeps one value.
    pub(super) fn value(&mut self, line: &Line, series: Series, value: f64) {
        let (scenario, writer) = (self.scenario, &mut self.writer);
        let named = || writer.symbol(&scenario.series_source(line.lp));
        let device = *self.devices.entry(line.lp).or_insert_with(named);
        let object = self.writer.symbol(&self.names[series.index()]);
        // Saturates after 292 years: simulated time goes on for twice as long as a recording's.
        let time = i64::try_from(line.key.time.as_nanos()).unwrap_or(i64::MAX);
        self.batch.begin_row(time);
        self.batch.put_symbol(self.columns.device, device);
        self.batch.put_symbol(self.columns.object, object);
        self.batch.put_f64(self.columns.real, value);
        if self.batch.rows() >= ROWS {
            self.submit();
        }
    }

    fn submit(&mut self) {
        let fresh = self.writer.batch(Table::Objects.index());
        self.writer.submit(std::mem::replace(&mut self.batch, fresh));
    }

    /// Writes what is left, and makes the files that other programs read.
    ///
    /// # Errors
    /// If the system refused a write.
    pub(super) fn close(mut self) -> Result<(), Failure> {
        self.submit();
        let report = self.writer.close()?;
        let dropped = report.counters.rows_dropped;
        if dropped > 0 {
            return Err(Failure::new(format!("{dropped} rows could not be written")));
        }
        Ok(())
    }
}
