//! Why a job does not go on, and how whoever waits for what runs elsewhere looks at it.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use meikyo_console::failure::Failure;

/// Between two looks at what runs.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A program ends because a host has ended, and what is seen first is not always that.
pub(super) const CAUSE: Duration = Duration::from_secs(2);

/// Why a job does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// A host is gone.
    Lost(usize),
    /// Its daemon does not run, for this reason.
    Daemon(usize, String),
    /// Daemons do not meet on these hosts, for this reason.
    Apart(String, String),
}

/// Why the hosts have not come so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Halt {
    /// This one says why.
    Failed(usize, String),
    /// On this one something is under way that has to pass first.
    UnderWay(usize, String),
    /// This one has ended without a word.
    Ended(usize),
    /// These have said nothing in time.
    Late(Vec<usize>),
}

/// Why something that all hosts take part in was not done.
pub(super) enum Stopped {
    /// A host or a daemon is gone.
    Trouble(Trouble),
    /// Hosts have not come so far.
    Halt(Halt),
    /// Something else.
    Failure(Failure),
}

impl From<Trouble> for Stopped {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

impl From<Halt> for Stopped {
    fn from(halt: Halt) -> Self {
        Self::Halt(halt)
    }
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<std::io::Error> for Stopped {
    fn from(error: std::io::Error) -> Self {
        Self::Failure(error.into())
    }
}

/// Why a job is not there.
pub(super) enum NotStarted {
    /// The container of this place has ended already.
    Lost(usize),
    /// Something else.
    Failure(Failure),
}

impl From<Failure> for NotStarted {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

pub(super) fn spawned(command: &mut Command) -> Result<Child, Failure> {
    command.spawn().map_err(|error| {
        let program = command.get_program().to_string_lossy().into_owned();
        Failure::new(format!("cannot start `{program}`: {error}"))
            .hint("--ssh names another program")
    })
}

#[expect(clippy::disallowed_methods, reason = "what runs elsewhere is waited for by the clock")]
pub(super) fn now() -> Instant {
    Instant::now()
}
