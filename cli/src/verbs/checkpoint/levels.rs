//! Rules of levels on the command line, and levels as `status` shows them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use meikyo_checkpoint::daemon::{DiskRules, LevelStatus, MemoryRules, Rules, Status};
use meikyo_console::output::{TextTable, bytes_text, span_text};
use meikyo_units::{Bytes, Nanos};

/// Where generations are kept, how many, and for how long.
#[derive(Debug, Clone, Args)]
pub(super) struct LevelArgs {
    /// Keep most checkpoints in the memory of the hosts, in at most so much of each, the one that is being written
    /// included
    #[arg(long, value_name = "SIZE")]
    memory: Option<Bytes>,
    /// Where that memory is: a directory on a tmpfs [default: /dev/shm]
    #[arg(long, value_name = "DIR")]
    memory_directory: Option<PathBuf>,
    /// Number of checkpoints that are kept in memory, 1 to 8 [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=8))]
    memory_keep: Option<u8>,
    /// Free checkpoints in memory that are older, but not the newest
    #[arg(long, value_name = "SPAN")]
    memory_keep_for: Option<Nanos>,
    /// With --memory: the time between two checkpoints on disk [default: Daly's, from what one costs]
    #[arg(long, value_name = "SPAN")]
    disk_every: Option<Nanos>,
    /// Number of checkpoints that are kept on disk, 1 to 8 [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=8))]
    keep: Option<u8>,
    /// Free checkpoints on disk that are older, but not the newest
    #[arg(long, value_name = "SPAN")]
    keep_for: Option<Nanos>,
    /// Free the oldest checkpoints on disk when all take more on a host, but not the newest
    #[arg(long, value_name = "SIZE")]
    keep_within: Option<Bytes>,
}

impl LevelArgs {
    /// As they are given to a daemon.
    pub(super) fn named(&self) -> [(&'static str, Option<String>); 8] {
        let directory = self.memory_directory.as_deref().map(absolute);
        [
            ("--memory", self.memory.map(|room| room.to_string())),
            ("--memory-directory", directory),
            ("--memory-keep", self.memory_keep.map(|keep| keep.to_string())),
            ("--memory-keep-for", self.memory_keep_for.map(|span| span.to_string())),
            ("--disk-every", self.disk_every.map(|span| span.to_string())),
            ("--keep", self.keep.map(|keep| keep.to_string())),
            ("--keep-for", self.keep_for.map(|span| span.to_string())),
            ("--keep-within", self.keep_within.map(|room| room.to_string())),
        ]
    }

    /// The same for a daemon in this process; those of the job's file are beside.
    pub(super) fn rules(&self) -> Rules {
        Rules {
            memory: MemoryRules {
                room: self.memory,
                directory: self.memory_directory.clone(),
                keep: self.memory_keep,
                keep_for: self.memory_keep_for,
            },
            disk: DiskRules {
                every: self.disk_every,
                keep: self.keep,
                keep_for: self.keep_for,
                keep_within: self.keep_within,
            },
        }
    }
}

/// A path that means the same in another directory.
pub(super) fn absolute(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.to_string_lossy().into_owned()
}

/// The levels of a daemon's group, and what was freed last.
pub(super) fn text(status: &Status) -> String {
    let mut text = String::new();
    if !status.levels.is_empty() {
        let mut table = TextTable::new(&[
            "level",
            "generations",
            "step",
            "on a host",
            "at most",
            "took",
            "every",
        ]);
        status.levels.iter().for_each(|level| table.row(row(level)));
        write!(text, "{table}").expect("strings take everything");
    }
    if let Some(freed) = &status.freed {
        writeln!(text, "{freed}").expect("strings take everything");
    }
    text
}

fn row(status: &LevelStatus) -> [String; 7] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let span = |seconds: Option<f64>| or_dash(seconds.map(Nanos::from_secs_f64).map(span_text));
    let kept: Vec<String> = status.kept.iter().map(u64::to_string).collect();
    [
        status.level.word().to_owned(),
        or_dash((!kept.is_empty()).then(|| kept.join(", "))),
        or_dash(status.step.map(|step| step.to_string())),
        bytes_text(status.bytes),
        or_dash(status.room_bytes.map(bytes_text)),
        span(status.took_seconds),
        span(status.every_seconds),
    ]
}

#[cfg(test)]
mod tests {
    use meikyo_checkpoint::level::Level;

    use super::*;

    #[test]
    fn a_level_is_a_row_with_what_is_kept_on_it() {
        let memory = LevelStatus {
            level: Level::Memory,
            kept: vec![9, 8],
            step: Some(90),
            bytes: 3_000_000,
            room_bytes: Some(8_000_000),
            took_seconds: Some(0.5),
            every_seconds: Some(120.0),
        };
        let expected = ["memory", "9, 8", "90", "3.0 MB", "8.0 MB", "500.0 ms", "2.0 min"];
        assert_eq!(row(&memory), expected);
        let disk = LevelStatus {
            level: Level::Disk,
            kept: Vec::new(),
            step: None,
            bytes: 0,
            room_bytes: None,
            took_seconds: None,
            every_seconds: None,
        };
        assert_eq!(row(&disk), ["disk", "-", "-", "0 bytes", "-", "-", "-"]);
    }
}
