//! The compiler of the MPI at hand, and what compilers make.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::BuildError;

/// The variable that names the compiler where several are installed.
pub const CHOSEN_BY: &str = "MPICC";

/// Debian's names of them.
const MPICH: &str = "mpicc.mpich";
const OPEN_MPI: &str = "mpicc.openmpi";

/// The compiler of the MPI that a command belongs to: where several are installed, its name says which.
pub fn of_command(command: &OsStr) -> PathBuf {
    let found = found(command);
    let real = found.as_deref().and_then(|path| path.canonicalize().ok());
    let name = |path: &Option<PathBuf>| {
        let name = path.as_deref().and_then(Path::file_name);
        name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let names = name(&found) + " " + &name(&real);
    let is_any = |words: &[&str]| words.iter().any(|word| names.contains(word));
    let library = if is_any(&["mpich", "hydra"]) {
        Some(MPICH)
    } else if is_any(&["openmpi", "orte", "prte"]) {
        Some(OPEN_MPI)
    } else {
        None
    };
    let beside = found.as_deref().and_then(Path::parent).map(|directory| directory.join("mpicc"));
    let named = library.and_then(|name| self::found(OsStr::new(name)));
    named.or_else(|| beside.filter(|path| path.exists())).unwrap_or_else(|| PathBuf::from("mpicc"))
}

/// The compiler of the MPI that has started this process: the one that [`CHOSEN_BY`] names, or what the
/// environment tells.
pub fn of_this_rank() -> PathBuf {
    if let Some(chosen) = chosen() {
        return PathBuf::from(chosen);
    }
    let named = found(OsStr::new(if is_of_open_mpi() { OPEN_MPI } else { MPICH }));
    named.unwrap_or_else(|| PathBuf::from("mpicc"))
}

pub(crate) fn chosen() -> Option<OsString> {
    std::env::var_os(CHOSEN_BY).filter(|chosen| !chosen.is_empty())
}

/// Whether Open MPI has started this process; MPICH, its relatives and Slurm are not told apart.
pub(crate) fn is_of_open_mpi() -> bool {
    std::env::var_os("OMPI_COMM_WORLD_SIZE").is_some()
}

/// Where the shell would find a program.
pub(crate) fn found(program: &OsStr) -> Option<PathBuf> {
    if Path::new(program).components().count() > 1 {
        return Some(PathBuf::from(program));
    }
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|path| path.join(program)).find(|path| path.is_file())
}

/// Has `compiler` make the library `name` of `sources`, names and texts, the first of which includes the
/// others; all lies in `directory` then. Gives the library's path.
///
/// # Errors
/// If a source cannot be written, or the compiler is missing or refuses.
pub fn shared_library(
    compiler: &Path,
    sources: &[(&str, &str)],
    directory: &Path,
    name: &str,
) -> Result<PathBuf, BuildError> {
    compiled(compiler, sources, directory, name, &["-shared", "-fPIC"], &["-lpthread", "-ldl"])
}

/// Has `compiler` make the program `name` as [`shared_library`] makes a library, with `libraries` as `-lz` is one.
///
/// # Errors
/// If a source cannot be written, or the compiler is missing or refuses.
pub fn program(
    compiler: &Path,
    sources: &[(&str, &str)],
    directory: &Path,
    name: &str,
    libraries: &[&str],
) -> Result<PathBuf, BuildError> {
    compiled(compiler, sources, directory, name, &[], libraries)
}

#[expect(clippy::disallowed_methods, reason = "the compiler at hand")]
fn compiled(
    compiler: &Path,
    sources: &[(&str, &str)],
    directory: &Path,
    name: &str,
    options: &[&str],
    libraries: &[&str],
) -> Result<PathBuf, BuildError> {
    for (name, text) in sources {
        let path = directory.join(name);
        std::fs::write(&path, text).map_err(|source| BuildError::Unwritten { path, source })?;
    }
    let built = directory.join(name);
    let output = Command::new(compiler)
        .args(["-O2", "-std=gnu11", "-Wall"])
        .args(options)
        .arg("-o")
        .arg(&built)
        .args(sources.first().map(|(name, _)| directory.join(name)))
        .args(libraries)
        .output()
        .map_err(|source| BuildError::NotThere { compiler: compiler.to_owned(), source })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let (compiler, status) = (compiler.to_owned(), output.status);
        return Err(BuildError::Refused { compiler, status, said });
    }
    Ok(built)
}
