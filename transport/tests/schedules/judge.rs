//! What must hold when a history is over.

use std::collections::{BTreeMap, BTreeSet};

use meikyo_recording::{PackedRows, schema::TableSchema};
use meikyo_transport::gaps;

use super::parties::{Machine, table};
use super::world::World;

/// What histories went through, so that they are not too tame.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    blocks: u64,
    missing_blocks: u64,
    counted_gaps: u64,
    restarts: u64,
    repeated: u64,
    cuts: u64,
    sender_kills: u64,
    power_cuts: u64,
    receiver_kills: u64,
    lives_on_disk: u64,
}

impl Seen {
    pub(crate) fn is_rich(&self) -> bool {
        let Self { blocks, missing_blocks, counted_gaps, restarts, repeated, cuts, .. } = self;
        let Self { sender_kills, power_cuts, receiver_kills, lives_on_disk, .. } = self;
        [blocks, missing_blocks, counted_gaps, restarts, repeated, cuts]
            .into_iter()
            .chain([sender_kills, power_cuts, receiver_kills, lives_on_disk])
            .all(|count| *count > 20)
    }
}

/// A row of the table of gaps.
#[derive(Debug)]
struct Told {
    boot: u64,
    first: u64,
    last: u64,
    /// Blocks and rows; `None` when nobody knows.
    counted: Option<(u64, u64)>,
    reason: String,
}

pub(crate) fn judge(world: &World, seen: &mut Seen) -> Result<(), String> {
    if let Some(text) = &world.too_early {
        return Err(text.clone());
    }
    if !world.is_delivered {
        let statuses = world
            .machines
            .iter()
            .map(|machine| machine.sender.as_ref().map(meikyo_transport::Sender::status));
        let statuses: Vec<_> = statuses.collect();
        return Err(format!("not everything was delivered once nothing went wrong: {statuses:?}"));
    }
    for machine in &world.machines {
        judge_machine(world, machine, seen).map_err(|text| format!("{}: {text}", machine.name))?;
        judge_clock(world, machine)?;
        seen.sender_kills += machine.kills;
        seen.power_cuts += machine.power_cuts;
    }
    seen.cuts += world.cuts;
    seen.receiver_kills += world.receiver_kills;
    seen.repeated += world.repeated;
    Ok(())
}

/// What histories of collectors that stand by for each other went through.
#[derive(Debug, Default)]
pub(crate) struct StoodBy {
    turns: u64,
    spare_blocks: u64,
    intervals: u64,
    kills: u64,
    receiver_kills: u64,
    lost_intervals: u64,
    torn_intervals: u64,
    forgotten_intervals: u64,
}

impl StoodBy {
    pub(crate) fn is_rich(&self) -> bool {
        let Self { turns, spare_blocks, intervals, kills, receiver_kills, .. } = self;
        [turns, spare_blocks, intervals, kills, receiver_kills]
            .into_iter()
            .all(|count| *count > 100)
    }

    /// Whether no more was lost than what a killed receiver had not decided.
    pub(crate) fn is_kept(&self) -> bool {
        self.lost_intervals <= self.receiver_kills
    }
}

/// Every row of an interval is there once, whoever measured it. Where nothing but processes and connections
/// broke, none is missing that any of the collectors has put into a block, but those of a block that was told to be
/// lost: the interval's other rows may have been taken from the same collector by then.
pub(crate) fn judge_standby(world: &World, seen: &mut StoodBy) -> Result<(), String> {
    if let Some(text) = &world.too_early {
        return Err(text.clone());
    }
    if !world.is_delivered {
        return Err("not everything was accounted for once nothing went wrong".to_owned());
    }
    let mut there: BTreeMap<(i64, u64), usize> = BTreeMap::new();
    let mut lost: BTreeSet<(&str, u64)> = BTreeSet::new();
    for rows in world.store.blocks() {
        if rows.table() == gaps::transport_turns::NAME {
            seen.turns += 1;
        }
        if rows.table() == gaps::transport_gaps::NAME {
            let (gap, origin) = (told(rows)?, rows.origin().ok_or("a gap without an origin")?);
            match &*gap.reason {
                "spare" => seen.spare_blocks += origin.last - origin.first + 1,
                "ended" => {}
                _ => lost.extend(rows_of(world, &origin.source.sender, &gap)),
            }
        }
        if rows.table() != table().name {
            continue;
        }
        let (batch, _) = rows.unpack(&table()).map_err(|error| error.to_string())?;
        for row in 0..batch.rows() {
            let bits = |column| batch.bits(column, row).ok_or("a row without a value");
            *there.entry((bits(0)?.cast_signed(), bits(1)?)).or_default() += 1;
        }
    }
    if let Some((row, count)) = there.iter().find(|(_, count)| **count > 1) {
        return Err(format!("row {row:?} is there {count} times"));
    }
    let measured: BTreeSet<_> = world.machines.iter().flat_map(|of| &of.measured).collect();
    for at in measured.iter().filter(|_| world.character.is_kind()) {
        let (time, rows) = (super::world::wall(**at, 0).as_nanos(), world.rows_at(**at));
        let is_missing = |row: &&u64| !there.contains_key(&(time, **row));
        let missing: Vec<u64> = rows.iter().filter(is_missing).copied().collect();
        if missing.is_empty() {
            continue;
        }
        let is_told = missing.iter().all(|row| lost.iter().any(|(_, of)| of == row));
        // The newest blocks of a life that only the memory of a sender had, since its spool's disk was full, are gone
        // with its process: the receiver cannot tell how many there were.
        let made = world.machines.iter().flat_map(|of| {
            let has = |rows: &Vec<u64>| missing.iter().any(|row| rows.contains(row));
            let with = of.made.iter().filter(move |(_, rows)| has(rows));
            with.map(|_| of.disk_was_full)
        });
        let in_memory: Vec<bool> = made.collect();
        let is_in_memory =
            !is_told && !in_memory.is_empty() && in_memory.iter().all(|is_so| *is_so);
        let is_whole = missing.len() == rows.len();
        let is_had = |row: &u64| world.machines.iter().any(|of| had(of, &lost, *row));
        if is_told && (!is_whole || !missing.iter().any(is_had)) {
            seen.torn_intervals += 1;
        } else if is_in_memory {
            seen.forgotten_intervals += 1;
        } else if world.receiver_kills > 0 {
            // What was undecided when a receiver was killed is left to who had told of later intervals.
            seen.lost_intervals += 1;
        } else {
            return Err(format!("rows {missing:?} of {at:?} are not there"));
        }
    }
    seen.intervals += measured.len() as u64;
    seen.kills += world.machines.iter().map(|machine| machine.kills).sum::<u64>();
    seen.receiver_kills += world.receiver_kills;
    Ok(())
}

/// The rows that a sender put into the blocks of a gap, with its name.
fn rows_of<'a>(
    world: &'a World,
    sender: &str,
    gap: &Told,
) -> impl Iterator<Item = (&'a str, u64)> + use<'a> {
    let machine = world.machines.iter().find(|machine| machine.name == sender);
    let numbers = (gap.boot, gap.first)..=(gap.boot, gap.last);
    machine.into_iter().flat_map(move |of| {
        let rows = of.made.range(numbers.clone()).flat_map(|(_, rows)| rows);
        rows.map(|row| (&*of.name, *row))
    })
}

/// Whether a sender put a row into a block that was not lost.
fn had(machine: &Machine, lost: &BTreeSet<(&str, u64)>, row: u64) -> bool {
    machine.made.values().any(|rows| rows.contains(&row)) && !lost.contains(&(&*machine.name, row))
}

fn judge_machine(world: &World, machine: &Machine, seen: &mut Seen) -> Result<(), String> {
    let own = |rows: &&PackedRows| {
        rows.origin().is_some_and(|origin| origin.source.sender == machine.name)
    };
    let (mut there, mut gaps) = (BTreeMap::new(), Vec::new());
    for rows in world.store.blocks().filter(own) {
        let origin = rows.origin().ok_or("a block without an origin")?;
        if rows.table() != table().name {
            gaps.push(told(rows)?);
            continue;
        }
        let (batch, _) = rows.unpack(&table()).map_err(|error| error.to_string())?;
        let values: Option<Vec<u64>> = (0..batch.rows()).map(|row| batch.bits(1, row)).collect();
        let number = (origin.source.boot, origin.first);
        if machine.made.get(&number) != values.as_ref() {
            return Err(format!("block {number:?} has rows that nobody made"));
        }
        if there.insert(number, batch.rows()).is_some() {
            return Err(format!("block {number:?} is there twice"));
        }
    }
    // A life without room on a disk that never reached the receiver: nobody is left who knows of it.
    let is_known = |boot: u64| {
        machine.disk.is_some() && !machine.disk_was_full
            || boot == machine.boot
            || world
                .store
                .blocks()
                .filter(own)
                .any(|rows| rows.origin().is_some_and(|origin| origin.source.boot == boot))
    };
    let missing: BTreeSet<_> = machine
        .made
        .keys()
        .filter(|number| !there.contains_key(number) && is_known(number.0))
        .copied()
        .collect();
    for (boot, number) in &missing {
        let is_it = |gap: &&Told| {
            gap.boot == *boot && (gap.first..=gap.last).contains(number) && gap.reason != "ended"
        };
        if !gaps.iter().any(|gap| is_it(&gap)) {
            let of_life: Vec<_> = gaps.iter().filter(|gap| gap.boot == *boot).collect();
            return Err(format!("block {boot} {number} is missing, and nobody told: {of_life:?}"));
        }
    }
    for gap in &gaps {
        judge_gap(machine, gap, &missing, &gaps)?;
        seen.counted_gaps += u64::from(gap.counted.is_some_and(|counted| counted.0 > 0));
        seen.restarts += u64::from(gap.reason == "restarted");
    }
    // A spool on a disk that never was full nor lost its power loses nothing.
    let dropped = machine.dropped
        + machine.sender.as_ref().map_or(0, |sender| sender.status().spool.dropped_blocks);
    if machine.disk.is_some() && machine.power_cuts == 0 && !machine.disk_was_full {
        seen.lives_on_disk += machine.boot;
        if missing.len() as u64 > dropped {
            return Err(format!("{} blocks are missing, {dropped} were dropped", missing.len()));
        }
    }
    if missing.len() as u64 > dropped && machine.kills == 0 {
        return Err(format!("{} blocks are missing, {dropped} were dropped", missing.len()));
    }
    seen.blocks += there.len() as u64;
    seen.missing_blocks += missing.len() as u64;
    Ok(())
}

/// What a gap says is counted right.
fn judge_gap(
    machine: &Machine,
    gap: &Told,
    missing: &BTreeSet<(u64, u64)>,
    all: &[Told],
) -> Result<(), String> {
    let overlaps = all.iter().filter(|other| {
        other.boot == gap.boot && other.first <= gap.last && gap.first <= other.last
    });
    let alone = overlaps.count() == 1;
    let Some((blocks, rows)) = gap.counted else { return Ok(()) };
    let inside: Vec<_> =
        missing.range((gap.boot, gap.first)..=(gap.boot, gap.last)).copied().collect();
    if alone && blocks != inside.len() as u64 {
        return Err(format!("{gap:?}, and {} blocks are missing there", inside.len()));
    }
    let missing_rows: usize = inside.iter().map(|number| machine.made[number].len()).sum();
    if rows < missing_rows as u64 && alone {
        return Err(format!("{gap:?}, and {missing_rows} rows are missing there"));
    }
    Ok(())
}

fn told(rows: &PackedRows) -> Result<Told, String> {
    let schema: TableSchema = gaps::transport_gaps::schema();
    let (batch, texts) = rows.unpack(&schema).map_err(|error| error.to_string())?;
    let column = |name: &str| {
        let column = schema.column(name).expect("the table has it");
        batch.bits(column, 0)
    };
    let must = |name: &str| column(name).ok_or_else(|| format!("a gap without `{name}`"));
    let reason = usize::try_from(must("reason")?).map_err(|error| error.to_string())?;
    Ok(Told {
        boot: must("boot")?,
        first: must("first")?,
        last: must("last")?,
        counted: column("blocks").zip(column("rows")),
        reason: texts[reason].clone(),
    })
}

/// The offset that was measured is within its error.
fn judge_clock(world: &World, machine: &Machine) -> Result<(), String> {
    let clock = machine.sender.as_ref().and_then(|sender| sender.status().clock);
    let Some(clock) = clock.filter(|_| world.has_steady_clocks()) else { return Ok(()) };
    // The receiver's clock is the world's.
    let wrong = (clock.offset_ns + machine.skew_ns).unsigned_abs();
    if wrong > clock.error_ns {
        return Err(format!("{clock:?} is wrong by {wrong} ns"));
    }
    Ok(())
}
