//! A block of samples by host, CPU and second.

use meikyo_recording::{Column, ColumnKind, Meaning, PackedRows, TableSchema, UnpackError};

use super::{TILE_NS, TILES};

/// Columns of a table of samples that say where one was taken.
const HOST: &str = "host";
const CPU: &str = "cpu";

/// The samples of one CPU of one host in one second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CoreSecond {
    pub(super) host: String,
    pub(super) cpu: u32,
    /// Since the epoch.
    pub(super) second: i64,
    pub(super) samples: u32,
    /// Samples of each tile; 255 are 255 or more.
    pub(super) tiles: [u8; TILES],
}

/// What a block holds, in the order in which its samples begin. Of its columns only the times, the hosts
/// and the CPUs are decoded. A sample without a host or a CPU, which nobody makes, is in none.
///
/// # Errors
/// When the block's body is not what it says.
pub(super) fn of_block(rows: &PackedRows) -> Result<Vec<CoreSecond>, UnpackError> {
    let columns = vec![
        Column::new(HOST, ColumnKind::Symbol, Meaning::Label, ""),
        Column::new(CPU, ColumnKind::U64, Meaning::Gauge, ""),
    ];
    let (batch, words) = rows.unpack(&TableSchema::new(rows.table(), "", columns))?;
    let mut found: Vec<(u64, CoreSecond)> = Vec::new();
    for row in 0..batch.rows() {
        let (Some(host), Some(cpu)) = (batch.bits(1, row), batch.bits(2, row)) else { continue };
        let Ok(cpu) = u32::try_from(cpu) else { continue };
        let time = batch.bits(0, row).unwrap_or(0).cast_signed();
        let second = time.div_euclid(1_000_000_000);
        let is_it =
            |of: &&mut (u64, CoreSecond)| of.0 == host && of.1.cpu == cpu && of.1.second == second;
        // Most often it is the one of the sample before.
        let at = match found.iter_mut().rev().find(is_it) {
            Some((_, at)) => at,
            None => {
                let word = usize::try_from(host).ok().and_then(|at| words.get(at));
                let Some(word) = word.cloned() else { continue };
                let tiles = [0; TILES];
                found.push((host, CoreSecond { host: word, cpu, second, samples: 0, tiles }));
                &mut found.last_mut().expect("it was pushed").1
            }
        };
        let tile = time.rem_euclid(1_000_000_000) / TILE_NS;
        let tile = usize::try_from(tile).expect("it is below 50");
        at.samples = at.samples.saturating_add(1);
        at.tiles[tile] = at.tiles[tile].saturating_add(1);
    }
    Ok(found.into_iter().map(|(_, core_second)| core_second).collect())
}
