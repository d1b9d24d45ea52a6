//! The recorder: a C library that is built for the MPI at hand.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use meikyo_console::failure::Failure;

/// What it is built from; the first includes the others.
const SOURCES: [(&str, &str); 10] = [
    ("recorder.c", include_str!("recorder/recorder.c")),
    ("text.h", include_str!("recorder/text.h")),
    ("calls.h", include_str!("recorder/calls.h")),
    ("communicators.h", include_str!("recorder/communicators.h")),
    ("requests.h", include_str!("recorder/requests.h")),
    ("messages.h", include_str!("recorder/messages.h")),
    ("persistent.h", include_str!("recorder/persistent.h")),
    ("waiting.h", include_str!("recorder/waiting.h")),
    ("collectives.h", include_str!("recorder/collectives.h")),
    ("groups.h", include_str!("recorder/groups.h")),
];

/// The compiler of the MPI that a command belongs to: where several are installed, its name says which.
pub(super) fn compiler_of(command: &OsStr) -> PathBuf {
    let found = found(command);
    let real = found.as_deref().and_then(|path| path.canonicalize().ok());
    let name = |path: &Option<PathBuf>| {
        let name = path.as_deref().and_then(Path::file_name);
        name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let names = name(&found) + " " + &name(&real);
    let is_any = |words: &[&str]| words.iter().any(|word| names.contains(word));
    let library = if is_any(&["mpich", "hydra"]) {
        Some("mpicc.mpich")
    } else if is_any(&["openmpi", "orte", "prte"]) {
        Some("mpicc.openmpi")
    } else {
        None
    };
    let beside = found.as_deref().and_then(Path::parent).map(|directory| directory.join("mpicc"));
    let named = library.and_then(|name| self::found(OsStr::new(name)));
    named.or_else(|| beside.filter(|path| path.exists())).unwrap_or_else(|| PathBuf::from("mpicc"))
}

/// Where the shell would find a program.
fn found(program: &OsStr) -> Option<PathBuf> {
    if Path::new(program).components().count() > 1 {
        return Some(PathBuf::from(program));
    }
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|path| path.join(program)).find(|path| path.is_file())
}

/// Builds it in a directory.
#[expect(clippy::disallowed_methods, reason = "the compiler of the MPI at hand")]
pub(super) fn build(mpicc: &Path, directory: &Path) -> Result<PathBuf, Failure> {
    let source = directory.join("recorder.c");
    let library = directory.join("recorder.so");
    for (name, text) in SOURCES {
        std::fs::write(directory.join(name), text)?;
    }
    let output = Command::new(mpicc)
        .args(["-O2", "-shared", "-fPIC", "-std=gnu11", "-Wall", "-o"])
        .args([library.as_path(), source.as_path()])
        .args(["-lpthread", "-ldl"])
        .output()
        .map_err(|error| {
            Failure::new(format!("cannot run `{}`: {error}", mpicc.display())).hint(
                "install the compiler of the MPI that the program uses, or name it with --mpicc",
            )
        })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::new(format!("`{}` fails:\n{}", mpicc.display(), said.trim()))
            .hint("name the compiler of the MPI that the program uses with --mpicc"));
    }
    Ok(library)
}
