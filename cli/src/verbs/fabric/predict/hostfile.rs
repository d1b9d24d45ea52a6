//! The hosts of ranks, as files for `mpirun` list them.

use std::path::Path;

use meikyo_console::failure::Failure;

const LINES: &str = "a hostfile has lines as `node01`, `node01 slots=2` or `node01:2`";

/// The host of each rank, as a hostfile of MPI lists them.
pub(super) fn read(path: &Path) -> Result<Vec<String>, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::new(format!("cannot read `{}`: {error}", path.display())))
        .map_err(|failure| failure.hint(LINES))?;
    let mut hosts = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let (name, slots) = host_and_slots(line).ok_or_else(|| {
            let wrong = format!("{}, line {}: `{line}` is no host", path.display(), at + 1);
            Failure::new(wrong).hint(LINES)
        })?;
        hosts.extend(std::iter::repeat_n(name.to_owned(), usize::from(slots)));
    }
    Ok(hosts)
}

fn host_and_slots(line: &str) -> Option<(&str, u16)> {
    let mut words = line.split_whitespace();
    let (first, more) = (words.next()?, words.next());
    if words.next().is_some() {
        return None;
    }
    let slots = |text: &str| text.parse().ok().filter(|slots| *slots > 0);
    match (first.split_once(':'), more) {
        (Some((name, count)), None) => Some((name, slots(count)?)),
        (None, Some(more)) => Some((first, slots(more.strip_prefix("slots=")?)?)),
        (None, None) => Some((first, 1)),
        (Some(_), Some(_)) => None,
    }
}
