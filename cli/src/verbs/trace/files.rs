//! The files of a trace.

use std::path::{Path, PathBuf};

use meikyo_console::failure::Failure;
use meikyo_models::prediction::trace::{Trace, TraceFile};

/// The list of the files in the directory of a trace, as SMPI wants it: one name a line.
pub(crate) const LIST: &str = "ranks.txt";

/// Reads a trace: a directory with a list, a list, or a file with the lines of all ranks.
pub(crate) fn read(path: &Path) -> Result<Trace, Failure> {
    let first = if path.is_dir() { path.join(LIST) } else { path.to_owned() };
    let text = text_of(&first)?;
    let begins = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let word = begins.and_then(|line| line.split_whitespace().next());
    let is_list = word.is_some_and(|word| word.trim_start_matches('p').parse::<u32>().is_err());
    let mut files = Vec::new();
    if is_list {
        let directory = first.parent().unwrap_or_else(|| Path::new(""));
        for name in text.lines().map(str::trim).filter(|name| !name.is_empty()) {
            let path = directory.join(name);
            files.push(TraceFile { name: path.display().to_string(), text: text_of(&path)? });
        }
    } else {
        files.push(TraceFile { name: first.display().to_string(), text });
    }
    Ok(Trace::parse(&files)?)
}

fn text_of(path: &Path) -> Result<String, Failure> {
    if path.extension().is_some_and(|ending| ending == "otf2") {
        let is = format!("`{}` is an archive of OTF2", path.display());
        return Err(Failure::new(is).hint(format!(
            "make a trace of it: meikyo trace --from-otf2 {} --out DIR",
            path.display()
        )));
    }
    std::fs::read_to_string(path).map_err(|error| {
        Failure::new(format!("cannot read `{}`: {error}", path.display())).hint(format!(
            "trace:DIR takes a directory of `meikyo trace` with its `{LIST}`, a list of the files of all \
             ranks, or one file with all their lines"
        ))
    })
}

/// Writes the list of what ranks wrote; gives their files.
pub(super) fn list_ranks(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut ranks = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let name = entry?.file_name();
        let rank = name.to_str().and_then(|name| name.strip_prefix("rank-")?.strip_suffix(".txt"));
        if let Some(rank) = rank.and_then(|rank| rank.parse::<u32>().ok()) {
            ranks.push(rank);
        }
    }
    ranks.sort_unstable();
    let written: Vec<PathBuf> =
        ranks.iter().map(|rank| directory.join(format!("rank-{rank}.txt"))).collect();
    if !written.is_empty() {
        list(directory, &written)?;
    }
    Ok(written)
}

/// Writes the list of these files, which lie in the directory.
pub(super) fn list(directory: &Path, written: &[PathBuf]) -> Result<(), Failure> {
    let names = written.iter().filter_map(|path| path.file_name()?.to_str());
    let lines: String = names.map(|name| format!("{name}\n")).collect();
    Ok(std::fs::write(directory.join(LIST), lines)?)
}
