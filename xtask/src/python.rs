//! The Python environment of the examples: `target/venv` with what `examples/requirements.txt` pins.

use std::path::Path;

use anyhow::Context as _;

use crate::program::program;

/// The interpreter of the environment, made or brought up to date where needed.
///
/// # Errors
/// The reason, for people, why there is none here.
pub(crate) fn environment(root: &Path) -> Result<String, String> {
    prepare(root).map_err(|error| format!("no Python environment: {error:#}"))
}

fn prepare(root: &Path) -> anyhow::Result<String> {
    let requirements = root.join("examples/requirements.txt");
    let wanted = std::fs::read_to_string(&requirements)
        .with_context(|| format!("cannot read `{}`", requirements.display()))?;
    let directory = root.join("target/venv");
    let interpreter = directory.join("bin/python");
    let stamp = directory.join("requirements.txt");
    let interpreter_text = interpreter.to_string_lossy().into_owned();
    // Written last, so that an interrupted installation is taken up again.
    if interpreter.exists() && std::fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) {
        return Ok(interpreter_text);
    }
    program(root, "python3", &["-m", "venv", "--clear", "target/venv"]).output()?;
    if wanted.lines().any(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        eprintln!("installing examples/requirements.txt into target/venv");
        let install = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "-r",
            "examples/requirements.txt",
        ];
        program(root, &interpreter_text, &install).output()?;
    }
    std::fs::write(&stamp, wanted)
        .with_context(|| format!("cannot write `{}`", stamp.display()))?;
    Ok(interpreter_text)
}
