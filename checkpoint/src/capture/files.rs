//! Files outside of a capture that are saved with it by choice: those that a program changes in place, or opens anew each
//! time that it appends to them.
//!
//! A pattern is a path whose parts are matched one by one, as shells do it: `*` stands for any text without `/`, `?` for one
//! octet ([`meikyo_units::glob`]). What is brought back is the set as it was: a file that matches and came later is gone
//! then.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use meikyo_units::glob;

use super::bundle::{BundleError, copy_file};

/// Whether a file is among the chosen.
pub fn is_chosen(patterns: &[PathBuf], path: &Path) -> bool {
    patterns.iter().any(|pattern| {
        let (mut of_pattern, mut of_path) = (pattern.components(), path.components());
        loop {
            match (of_pattern.next(), of_path.next()) {
                (None, None) => return true,
                (Some(one), Some(other)) if is_matched(one, other) => {}
                _ => return false,
            }
        }
    })
}

fn is_matched(pattern: Component<'_>, part: Component<'_>) -> bool {
    let (of_pattern, of_path) = (pattern.as_os_str().to_str(), part.as_os_str().to_str());
    match (of_pattern, of_path) {
        (Some(of_pattern), Some(of_path)) => glob::matches(of_pattern, of_path),
        _ => pattern == part,
    }
}

/// The regular files that are among the chosen now, in order. Directories that a pattern does not name are not read.
///
/// # Errors
/// When a directory cannot be read.
fn chosen(patterns: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for pattern in patterns {
        let mut found = vec![PathBuf::new()];
        for part in pattern.components() {
            let is_pattern = part.as_os_str().to_str().is_some_and(glob::is_pattern);
            if !is_pattern {
                found.iter_mut().for_each(|path| path.push(part));
                continue;
            }
            let mut deeper = Vec::new();
            for directory in found {
                deeper.extend(matching(&directory, part)?);
            }
            found = deeper;
        }
        all.extend(found.into_iter().filter(|path| path.is_file()));
    }
    all.sort();
    all.dedup();
    Ok(all)
}

/// What of a directory matches; nothing of what is no directory.
fn matching(directory: &Path, pattern: Component<'_>) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(directory) {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return Ok(Vec::new());
        }
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        if is_matched(pattern, Component::Normal(&name)) {
            found.push(directory.join(name));
        }
    }
    Ok(found)
}

/// Where a file lies in a directory of copies.
fn copy_of(path: &Path, copies: &Path) -> PathBuf {
    let below: PathBuf =
        path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
    copies.join(below)
}

/// Copies the chosen files, of absolute patterns, into a directory.
///
/// # Errors
/// When one cannot be read, or not be written there.
pub fn save(patterns: &[PathBuf], copies: &Path) -> Result<(), BundleError> {
    let failed = |source| BundleError::File { path: copies.to_owned(), source };
    fs::create_dir_all(copies).map_err(failed)?;
    for path in chosen(patterns).map_err(failed)? {
        let copy = copy_of(&path, copies);
        fs::create_dir_all(copy.parent().unwrap_or(copies)).map_err(failed)?;
        copy_file(&path, &copy)?;
    }
    Ok(())
}

/// Makes the chosen files what they were when they were copied into a directory; those that came later are gone. Where there
/// is no such directory, none were chosen then, and all stay.
///
/// # Errors
/// When one cannot be written.
pub fn bring_back(patterns: &[PathBuf], copies: &Path) -> Result<(), BundleError> {
    let failed = |path: &Path, source| BundleError::File { path: path.to_owned(), source };
    if !copies.is_dir() {
        return Ok(());
    }
    for path in chosen(patterns).map_err(|error| failed(copies, error))? {
        if !copy_of(&path, copies).is_file() {
            fs::remove_file(&path).map_err(|error| failed(&path, error))?;
        }
    }
    put_back(patterns, copies, Path::new("/"))
}

/// Copies the chosen files of one directory into another, and below.
fn put_back(patterns: &[PathBuf], from: &Path, to: &Path) -> Result<(), BundleError> {
    let failed = |path: &Path, source| BundleError::File { path: path.to_owned(), source };
    for entry in fs::read_dir(from).map_err(|error| failed(from, error))? {
        let entry = entry.map_err(|error| failed(from, error))?;
        let (copy, path) = (entry.path(), to.join(entry.file_name()));
        if copy.is_dir() {
            put_back(patterns, &copy, &path)?;
        } else if is_chosen(patterns, &path) {
            fs::create_dir_all(to).map_err(|error| failed(to, error))?;
            copy_file(&copy, &path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn the_set_of_files_is_as_it_was_and_files_stay_themselves() {
        let home = tempfile::tempdir().expect("a directory");
        let path = |name: &str| home.path().join(name);
        let write = |name: &str, text: &str| fs::write(path(name), text).expect("room");
        fs::create_dir_all(path("deep/er")).expect("a directory");
        for name in ["one.out", "two.out", "three.log", "deep/four.out", "deep/er/five.out"] {
            write(name, name);
        }
        let patterns = [path("*.out"), path("d*/*.out"), path("nowhere/*/x")];
        save(&patterns, &path("copies")).expect("it is saved");
        let number = fs::metadata(path("one.out")).expect("it is there").ino();
        write("one.out", "another text that is longer");
        write("three.log", "changed");
        write("later.out", "later");
        write("deep/er/five.out", "changed");
        fs::remove_file(path("deep/four.out")).expect("it is there");
        bring_back(&patterns, &path("copies")).expect("it is brought back");
        let text = |name: &str| fs::read_to_string(path(name)).ok();
        assert_eq!(text("one.out").as_deref(), Some("one.out"));
        assert_eq!(text("deep/four.out").as_deref(), Some("deep/four.out"));
        assert_eq!(text("later.out"), None);
        // They match no pattern.
        assert_eq!(text("three.log").as_deref(), Some("changed"));
        assert_eq!(text("deep/er/five.out").as_deref(), Some("changed"));
        assert_eq!(fs::metadata(path("one.out")).expect("it is there").ino(), number);
        bring_back(&patterns, &path("nowhere")).expect("nothing is to be done");
        assert_eq!(text("one.out").as_deref(), Some("one.out"));
        assert!(is_chosen(&patterns, &path("deep/four.out")));
        assert!(!is_chosen(&patterns, &path("deep/er/five.out")));
        assert!(!is_chosen(&patterns, &path("deep")));
    }
}
