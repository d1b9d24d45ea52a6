//! What the tests of several crates need.
//!
//! A test that cannot run says why, and never passes in silence: `./x test` counts it, and a bare
//! `cargo test` repeats it in its last lines, where the target `what_was_skipped` of the command line
//! prints what the tests of the same run noted. [`http`] is what they ask servers with, [`influxd`] a
//! database that benches start, too, and [`certificate`] what servers beyond loopback show.

pub mod certificate;
pub mod files;
pub mod http;
pub mod influxd;

use std::io::Write as _;
use std::path::PathBuf;

/// Set where somebody else reads what tests print, and notes need not be kept.
pub const TALLIED: &str = "MEIKYO_TESTS_TALLIED";

/// Says that the calling test tests nothing here because the machine does not allow it: a right or an
/// ability of the kernel is missing.
pub fn skipped(reason: &str) {
    say(&format!("SKIPPED: {reason}"));
}

/// Says that the calling test tests nothing here for want of a program or library that can be
/// installed. Under continuous integration that is a failure.
pub fn lacking(reason: &str) {
    say(&format!("LACKING: {reason}"));
}

#[expect(clippy::print_stdout, reason = "the test run reads it")]
fn say(line: &str) {
    println!("{line}");
    if std::env::var_os(TALLIED).is_some() {
        return;
    }
    let Some(notes) = notes() else { return };
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let file = std::fs::File::options().append(true).create(true).open(&notes);
    // One write a line: tests of several threads note at once.
    if let Err(error) =
        file.and_then(|mut file| file.write_all(format!("{test}: {line}\n").as_bytes()))
    {
        println!("it cannot be noted in `{}`: {error}", notes.display());
    }
}

/// What the tests noted that the parent of this process started, `cargo test`; forgotten then.
///
/// # Errors
/// If there are notes and they cannot be read or removed.
pub fn noted() -> std::io::Result<Vec<String>> {
    let Some(notes) = notes().filter(|notes| notes.exists()) else { return Ok(Vec::new()) };
    let text = std::fs::read_to_string(&notes)?;
    std::fs::remove_file(&notes)?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// The file of this run's notes: in the target folder, named after the process that runs the tests.
fn notes() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let target = own.ancestors().nth(3)?;
    Some(target.join(format!("skipped-{}", std::os::unix::process::parent_id())))
}
