//! `meikyo bench`: starts `meikyo-bench`, which lies beside this program.
#![expect(clippy::disallowed_methods, reason = "becomes the program of the benches")]

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use meikyo_console::failure::{Answer, Failure};

/// Why the benches cannot be run.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the program of the benches, `{path}`")]
struct StartError {
    path: PathBuf,
    source: std::io::Error,
}

/// Becomes the program of the benches, with the arguments that stand behind `bench`: they were found
/// right, and are parsed there once more.
///
/// # Errors
/// If it cannot be started.
pub(crate) fn run() -> Result<Answer, Failure> {
    let path = std::env::current_exe()?.with_file_name("meikyo-bench");
    let arguments = std::env::args_os().skip(2);
    let source = Command::new(&path).args(arguments).exec();
    Err(Failure::new(StartError { path, source }).hint(
        "cargo build --release -p meikyo-bench; it has to be in the same directory as `meikyo`",
    ))
}
