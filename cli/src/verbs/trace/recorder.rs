//! The recorder: a C library that is built for the MPI at hand.

use std::path::{Path, PathBuf};

use meikyo_console::failure::Failure;
use meikyo_mpi::compiler;

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

/// Builds it in a directory.
pub(super) fn build(mpicc: &Path, directory: &Path) -> Result<PathBuf, Failure> {
    compiler::shared_library(mpicc, &SOURCES, directory, "recorder.so").map_err(|error| {
        Failure::new(error)
            .hint("install the compiler of the MPI that the program uses, or name it with --mpicc")
    })
}
