//! The real collector as a child process: `meikyo measure`, its CPU time and memory its own.

use std::io::{self, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};

use meikyo_console::failure::Failure;
use meikyo_units::Nanos;

use crate::placement::{Placed, Placement, Usage, spawn};

/// How long names may be resolved before, and the recording compacted after a run.
const PATIENCE: Nanos = Nanos::from_secs(300);

/// What it is told.
#[derive(Debug)]
pub(crate) struct CollectorPlan<'a> {
    pub(crate) cluster_file: &'a Path,
    pub(crate) recording: &'a Path,
    pub(crate) span: Nanos,
    pub(crate) placement: Placement,
    pub(crate) realtime: bool,
    pub(crate) freshen: bool,
}

/// To whom a collector sends what it measures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sending<'a> {
    pub(crate) to: &'a str,
    pub(crate) spool: &'a Path,
    /// The file of its token, and the certificate that vouches for the server: for one on another machine.
    pub(crate) trust: Option<(&'a Path, &'a Path)>,
}

/// A running collector.
#[derive(Debug)]
pub(crate) struct Collector {
    process: Placed,
    span: Nanos,
}

/// Why a collector did not do what it was told.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CollectorError {
    /// The system refused.
    #[error("cannot run `meikyo measure`")]
    Run(#[source] io::Error),
    /// It ended with an error of its own, which it has printed.
    #[error("`meikyo measure` ended with {status}")]
    Ended {
        /// Exit status of the process.
        status: std::process::ExitStatus,
    },
}

impl Collector {
    /// Starts `meikyo measure` by a plan.
    pub(crate) fn start(plan: &CollectorPlan<'_>) -> Result<Self, CollectorError> {
        Self::start_as(plan, |command| {
            command.stdout(Stdio::null());
        })
    }

    /// Starts one that prints its summary, and sends if that is said. What it measured stays in the log.
    pub(crate) fn start_sending(
        plan: &CollectorPlan<'_>,
        sending: Option<Sending<'_>>,
    ) -> Result<Self, CollectorError> {
        Self::start_as(plan, |command| {
            command.args(["--json", "--no-compact"]).stdout(Stdio::piped());
            if let Some(Sending { to, spool, trust }) = sending {
                command.args(["--to", to, "--spool"]).arg(spool);
                if let Some((token, roots)) = trust {
                    command.arg("--token-file").arg(token).arg("--tls-roots").arg(roots);
                }
            }
        })
    }

    fn start_as(
        plan: &CollectorPlan<'_>,
        more: impl FnOnce(&mut Command),
    ) -> Result<Self, CollectorError> {
        let mut command = product().map_err(CollectorError::Run)?;
        command.args(["measure", "--quiet", "--cluster"]).arg(plan.cluster_file);
        command.arg("--out").arg(plan.recording).args(["--for", &plan.span.to_string()]);
        if plan.realtime {
            command.arg("--realtime");
        }
        if plan.freshen {
            command.arg("--freshen");
        }
        command.stdin(Stdio::null());
        more(&mut command);
        let process = spawn(command, plan.placement).map_err(CollectorError::Run)?;
        Ok(Self { process, span: plan.span })
    }

    /// Process ID of the collector.
    pub(crate) fn pid(&mut self) -> u32 {
        self.process.child().id()
    }

    /// Looks at its process now and then until it ends.
    pub(crate) fn watch(
        &self,
        every: Nanos,
        mut look: impl FnMut(&Placed) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        while !self.process.ends_within(every)? {
            look(&self.process)?;
        }
        Ok(())
    }

    /// Waits for the end of one that prints its summary; what the whole process used, and the summary.
    pub(crate) fn finish_with_summary(
        mut self,
    ) -> Result<(Usage, serde_json::Value), CollectorError> {
        let mut text = String::new();
        if let Some(mut stdout) = self.process.child().stdout.take() {
            // It prints when it ends, and nothing before.
            stdout.read_to_string(&mut text).map_err(CollectorError::Run)?;
        }
        let usage = self.finish()?;
        let said = serde_json::from_str(&text);
        Ok((usage, said.map_err(|error| CollectorError::Run(error.into()))?))
    }

    /// Waits for its end; what the whole process used.
    ///
    /// Its answer may be no (a device was silent): the bench counts states itself.
    pub(crate) fn finish(self) -> Result<Usage, CollectorError> {
        let waited = self.process.wait(self.span + PATIENCE);
        let (status, usage) = waited.map_err(CollectorError::Run)?;
        match status.code() {
            Some(0 | 1) => Ok(usage),
            _ => Err(CollectorError::Ended { status }),
        }
    }
}

/// The `meikyo` that lies beside this program, so that farm, collector and bench are of one build.
pub(crate) fn product() -> io::Result<Command> {
    let program = std::env::current_exe()?.with_file_name("meikyo");
    if !program.is_file() {
        let text = format!("`{}` is missing; build it with `cargo build`", program.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, text));
    }
    Ok(Command::new(program))
}
