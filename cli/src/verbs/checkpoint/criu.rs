//! CRIU: where it is, and whether it works on this machine.

use std::path::{Path, PathBuf};

use meikyo_checkpoint::capture::criu::{Criu, CriuError};
use meikyo_console::failure::Failure;

/// CRIU as hosts have it: a path that means the same in every directory, or a name that is searched for.
pub(super) fn path_of(program: &Path) -> Result<PathBuf, Failure> {
    let is_path = program.components().count() > 1;
    Ok(if is_path { std::path::absolute(program)? } else { program.to_owned() })
}

/// A CRIU that works here.
pub(super) fn working(program: &Path) -> Result<PathBuf, Failure> {
    let program = path_of(program)?;
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::new("only root can capture unmodified programs")
            .hint("run it as root; a program with libmeikyo_checkpoint needs no privileges, and no --as-is"));
    }
    let criu = Criu::new(&program);
    let explained = |error: CriuError| {
        let hint = "install CRIU 4.2 or newer (Debian 14 has it; packaging/criu puts it into a folder), and say where it is: \
                    --criu FILE, or MEIKYO_CRIU";
        match &error {
            CriuError::Unable { .. } => Failure::new(error)
                .hint("`criu check` says what the kernel lacks; a program with libmeikyo_checkpoint needs none of it"),
            _ => Failure::new(error).hint(hint),
        }
    };
    criu.version().map_err(explained)?;
    criu.check().map_err(explained)?;
    Ok(program)
}
