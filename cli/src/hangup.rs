//! What SIGHUP means to a program that serves or measures.
//!
//! It is sent for two reasons. When a terminal is closed, it tells the programs that were started
//! from there: they end as they do at SIGTERM. Sent by a person or a service manager to a program
//! whose terminal is there, or that never had one, it asks to read files anew. A program started
//! with `nohup` stays when its terminal goes.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGHUP;

/// Hears SIGHUP.
#[derive(Debug)]
pub(crate) struct Hangup {
    raised: Arc<AtomicBool>,
    /// Whether the end of the terminal is the end of the program.
    ends_with_terminal: bool,
}

/// Why a SIGHUP came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The terminal that the program was started from is gone.
    TerminalGone,
    /// Files are to be read anew.
    Reload,
}

impl Hangup {
    /// Hears SIGHUP from now on, which no longer ends the process by itself.
    pub(crate) fn hear() -> io::Result<Self> {
        let ends_with_terminal = has_terminal() && !is_ignored(SIGHUP);
        let raised = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGHUP, Arc::clone(&raised))?;
        Ok(Self { raised, ends_with_terminal })
    }

    /// Why a SIGHUP came since this was asked last; `None` when none came.
    pub(crate) fn take_reason(&self) -> Option<Reason> {
        let raised = self.raised.swap(false, Ordering::Relaxed);
        let gone = self.ends_with_terminal && !has_terminal();
        raised.then_some(if gone { Reason::TerminalGone } else { Reason::Reload })
    }
}

/// Whether the process has a controlling terminal: the kernel takes it away from the whole session
/// before it sends SIGHUP (tty(4), setsid(2)).
fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}

/// Whether the process was started with a signal ignored.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
