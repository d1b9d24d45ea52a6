//! Names of devices that a person types, held against those that there are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use meikyo_console::failure::Failure;
use meikyo_live::Watch;
use meikyo_recording::{ReadError, Recording, Selection, series};
use meikyo_units::glob::matches;

/// Parts of a folded list of names that a hint shows at most.
const PARTS_MAX: usize = 8;

#[derive(Debug, thiserror::Error)]
#[error("`{}` has no device `{name}`", place.display())]
struct UnknownDevice {
    place: PathBuf,
    name: String,
}

/// The failure of naming a device that `place`, a cluster file or a recording, does not have.
pub(crate) fn unknown(place: &Path, name: &str, names: &[String]) -> Failure {
    let folded = meikyo_cluster::fold(names);
    let mut parts = folded.split(',');
    let mut known = parts.by_ref().take(PARTS_MAX).collect::<Vec<_>>().join(",");
    if parts.next().is_some() {
        known += ",...";
    }
    Failure::new(UnknownDevice { place: place.to_owned(), name: name.to_owned() })
        .hint(format!("it has {known}"))
}

/// Refuses names and patterns that stand for no device of the recording. One without any device, as a
/// measurement that has just begun, takes every name.
pub(crate) fn check(recording: &Recording, patterns: &[String]) -> Result<(), Failure> {
    let devices = Watch::open(recording.dir(), &[])?.devices()?;
    let mut names: Vec<String> = devices.into_iter().map(|device| device.name).collect();
    let is_unknown =
        |names: &[String], pattern: &String| !names.iter().any(|name| matches(pattern, name));
    if patterns.iter().any(|pattern| is_unknown(&names, pattern)) {
        let known: BTreeSet<String> = names.iter().cloned().collect();
        let others = of_rows(recording)?;
        names.extend(others.into_iter().filter(|name| !known.contains(name)));
    }
    match patterns.iter().find(|pattern| !names.is_empty() && is_unknown(&names, pattern)) {
        Some(pattern) => Err(unknown(recording.dir(), pattern, &names)),
        None => Ok(()),
    }
}

/// The devices that rows of any table name: a simulation keeps no list of them.
fn of_rows(recording: &Recording) -> Result<BTreeSet<String>, ReadError> {
    let mut names = BTreeSet::new();
    for (name, table) in recording.tables()? {
        if name.ends_with(".summary") || table.column("device").is_none() {
            continue;
        }
        let columns = Some(vec!["device".to_owned()]);
        for rows in recording.scan(&Selection { columns, ..Selection::all(&name) })? {
            let rows = rows?;
            let Some(texts) = series::texts(&rows, "device") else { continue };
            names.extend((0..rows.num_rows()).filter_map(|row| texts.get(row)).map(str::to_owned));
        }
    }
    Ok(names)
}
