//! What parts say of themselves while they run goes to standard error, a line each: warnings and errors,
//! or what the variable `MEIKYO_LOG` names.

use meikyo_console::failure::Failure;
use tracing_subscriber::filter::LevelFilter;

/// The variable that names the least level which is shown.
const VARIABLE: &str = "MEIKYO_LOG";

/// The variable names no level.
#[derive(Debug, thiserror::Error)]
#[error("`{VARIABLE}` is `{0}`; allowed are off, error, warn, info, debug and trace")]
struct UnknownLevel(String);

/// Shows log lines from now on.
///
/// # Errors
/// If [`VARIABLE`] names no level.
pub(crate) fn begin() -> Result<(), Failure> {
    let level = match std::env::var(VARIABLE) {
        Ok(text) => text.parse().map_err(|_| UnknownLevel(text))?,
        Err(_) => LevelFilter::WARN,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    Ok(())
}
