//! The library of the ranks on disk: built once for each compiler, and kept with what users' programs keep.

use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use rustix::fs::Access;

use crate::compiler;
use crate::failure::{BuildError, JoinError};
use crate::loaded::Loaded;

const SOURCES: [(&str, &str); 1] = [("ranks.c", include_str!("ranks.c"))];

/// Loads the library that `compiler` has made or makes. Where nothing can be kept, it is made for this
/// process alone.
pub(crate) fn load(compiler: &Path) -> Result<Loaded, JoinError> {
    let directory = directory();
    // One that cannot be loaded any more was made for an MPI that is gone.
    let mine = compiler::found(compiler.as_os_str()).map(|path| name(&path));
    let candidates = match (&directory, &mine) {
        (Some(directory), Some(mine)) => vec![directory.join(mine)],
        (Some(directory), None) if compiler::chosen().is_none() => of_other_hosts(directory),
        _ => Vec::new(),
    };
    let mut ours = candidates.iter().filter(|candidate| is_ours(candidate));
    if let Some(loaded) = ours.find_map(|candidate| Loaded::open(candidate).ok()) {
        return Ok(loaded);
    }
    let writable = directory.filter(|directory| {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.is_ok() && rustix::fs::access(directory, Access::WRITE_OK).is_ok()
    });
    let passing = temporary(writable.as_deref().unwrap_or(&std::env::temp_dir()))?;
    let built = build(compiler, passing.path())?;
    let Some(directory) = writable else { return Loaded::open(&built) };
    let kept = directory.join(mine.unwrap_or_else(|| name(compiler)));
    // Other ranks do the same at the same time; each finds a whole file there.
    std::fs::rename(&built, &kept)
        .map_err(|source| BuildError::Unwritten { path: kept.clone(), source })?;
    Loaded::open(&kept)
}

fn build(compiler: &Path, directory: &Path) -> Result<PathBuf, BuildError> {
    compiler::shared_library(compiler, &SOURCES, directory, "ranks.so")
}

fn temporary(within: &Path) -> Result<tempfile::TempDir, BuildError> {
    let unwritten = |source| BuildError::Unwritten { path: within.to_owned(), source };
    tempfile::Builder::new().prefix("meikyo-ranks-").tempdir_in(within).map_err(unwritten)
}

/// Where users' programs keep what they can make again (XDG base directories).
fn directory() -> Option<PathBuf> {
    let named =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")))?;
    Some(caches.join("meikyo"))
}

/// What the names of all libraries begin with that are of this source and of the kind of MPI that started
/// this process.
fn beginning() -> String {
    let source = crc32fast::hash(format!("{SOURCES:?}").as_bytes());
    let kind = if compiler::is_of_open_mpi() { "openmpi" } else { "mpich" };
    format!("ranks-{source:08x}-{kind}-")
}

/// A name that another compiler does not get, nor this one once it was replaced.
fn name(compiler: &Path) -> String {
    let changed = compiler.metadata().and_then(|metadata| metadata.modified()).ok();
    let changed = changed.and_then(|changed| changed.duration_since(UNIX_EPOCH).ok());
    let facts = format!("{} {changed:?}", compiler.display());
    format!("{}{:08x}.so", beginning(), crc32fast::hash(facts.as_bytes()))
}

/// What hosts with a compiler have built in the same home directory, the newest first.
fn of_other_hosts(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let named =
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&beginning()));
    let mut found: Vec<_> = named
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    found.sort_unstable();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

/// Whether nobody else can have written a file, whose code is about to be run.
fn is_ours(path: &Path) -> bool {
    let Ok(metadata) = path.metadata() else { return false };
    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0
}
