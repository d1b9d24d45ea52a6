//! Small programs whose hot functions are known, compiled by `cc`.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// Two functions, one of which takes three times as long, called through another. It runs for as
    /// many milliseconds of its CPU time as it is told, and prints the share of the longer one that
    /// it measured itself, in millionths.
    Calls,
    /// Products of matrices, for as many milliseconds of its CPU time as it is told.
    Matrix,
    /// Threads that live for some milliseconds and begin the next one, four at a time.
    Threads,
    /// Recursion of known depth below a function of libc, and a handler of a signal, without frame
    /// pointers.
    Frames,
    /// Sleeps and waits whose length it tells, by function.
    Waits,
}

/// Where a compiled program lies.
#[derive(Debug)]
pub(crate) struct Compiled {
    _directory: TempDir,
    path: PathBuf,
}

impl Compiled {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Compiles a program; `None`, which is told, where there is no compiler.
pub(crate) fn compiled(program: Program) -> Option<Compiled> {
    let directory = tempfile::tempdir().unwrap();
    let (name, text) = match program {
        Program::Calls => ("calls", include_str!("calls.c")),
        Program::Matrix => ("matrix", include_str!("matrix.c")),
        Program::Threads => ("threads", include_str!("threads.c")),
        Program::Frames => ("frames", include_str!("frames.c")),
        Program::Waits => ("waits", include_str!("waits.c")),
    };
    let (path, source) = (directory.path().join(name), directory.path().join("program.c"));
    std::fs::write(&source, text).unwrap();
    let mut cc = Command::new("cc");
    cc.args(match program {
        Program::Frames => ["-O2", "-fomit-frame-pointer"],
        // Optimised, a function that calls nothing sets up no frame and hides the one that called it.
        _ => ["-O0", "-fno-omit-frame-pointer"],
    });
    cc.args(["-g", "-pthread", "-Wl,--build-id", "-o"]).arg(&path).arg(&source);
    match cc.output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(Compiled { _directory: directory, path })
        }
        Err(_) => {
            meikyo_testing::lacking("cc, which Debian has in gcc and libc6-dev");
            None
        }
    }
}
