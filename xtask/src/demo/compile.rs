//! Compiling for the demo: one line of progress instead of one a crate.

use std::collections::VecDeque;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

use crate::program::cargo;

/// Where the profile `light` puts the program, below the workspace's root.
pub(crate) const PROGRAM: &str = "target/light/meikyo";
/// What cargo said last is shown where it fails: a compiler's error with its surroundings.
const LINES_KEPT: usize = 60;

/// Builds the program for the demo; how many crates that took.
pub(crate) fn program(root: &Path) -> anyhow::Result<u32> {
    let build = ["build", "--profile", "light", "--locked", "--package", "meikyo-cli"];
    // Cargo counts for us, also where it writes into a pipe.
    let build = cargo(root, &build)
        .env("CARGO_TERM_PROGRESS_WHEN", "always")
        .env("CARGO_TERM_PROGRESS_WIDTH", "80")
        .env("CARGO_TERM_COLOR", "never");
    let mut line = Line::new();
    let (mut crates, mut said) = (0, VecDeque::new());
    let built = build.pieces(|piece| match counted(piece) {
        Some((done, all)) => {
            crates = all;
            line.show(done, all);
        }
        None => {
            said.push_back(piece.to_owned());
            if said.len() > LINES_KEPT {
                said.pop_front();
            }
        }
    });
    line.end();
    let said = said.make_contiguous().join("\n");
    anyhow::ensure!(built?, "the program cannot be built:\n{said}");
    Ok(crates)
}

/// The 12 and the 345 of `   Building [==>     ] 12/345: arrow-array, syn`.
fn counted(piece: &str) -> Option<(u32, u32)> {
    let (_, behind) = piece.trim_start().strip_prefix("Building [")?.split_once("] ")?;
    let (done, all) = behind.split_once(':').map_or(behind, |(count, _)| count).split_once('/')?;
    Some((done.trim().parse().ok()?, all.trim().parse().ok()?))
}

/// The line of progress: overwritten in a terminal, at each tenth elsewhere.
struct Line {
    terminal: bool,
    tenths: u32,
}

impl Line {
    fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal(), tenths: 0 }
    }

    fn show(&mut self, done: u32, all: u32) {
        let text = format!("compiling: {done} of {all} crates");
        if self.terminal {
            eprint!("\r\x1b[K{text}");
            // It is only progress: the next piece shows it if this one could not be shown.
            drop(std::io::stderr().flush());
        } else if done * 10 >= (self.tenths + 1) * all {
            self.tenths = done * 10 / all.max(1);
            eprintln!("{text}");
        }
    }

    fn end(&self) {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_of_crates_is_found_in_what_cargo_draws() {
        let drawn = "    Building [=======>         ] 123/356: parquet, meikyo-snmp(build)";
        assert_eq!(counted(drawn), Some((123, 356)));
        assert_eq!(counted("    Building [=======================>] 355/356"), Some((355, 356)));
        assert_eq!(counted("   Compiling syn v2.0.119"), None);
        assert_eq!(counted("error: [a] 1/2: no"), None);
    }
}
