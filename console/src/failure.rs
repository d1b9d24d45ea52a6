//! How a command ends: exit codes, the chain of causes, and the hint.

use std::error::Error;
use std::fmt::Write as _;
use std::process::ExitCode;

use meikyo_cluster::LoadError;
use meikyo_models::scenario::{RunError, ScenarioError};

use crate::output::{self, PrintError};
use crate::printable;

/// What a command answers when it was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Done, and the answer is yes: exit code 0.
    Yes,
    /// Done, and the answer is no (loss found, device silent): exit code 1.
    No,
    /// As another program ended that was run for the person: its exit code.
    Exit(u8),
}

/// Why a command could not be carried out (exit code 2), and what to type next.
#[derive(Debug)]
pub struct Failure {
    error: Box<dyn Error + Send + Sync>,
    hint: Option<String>,
}

impl Failure {
    /// A failure without a hint.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { error: error.into(), hint: None }
    }

    /// Adds what the person can do next, with a command that can be typed.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl Failure {
    /// A failure that was told already, here or by the first rank.
    pub(crate) fn said() -> Self {
        Self::new(Said)
    }

    /// Tells the failure now, and not when the process ends.
    pub(crate) fn say(self) -> Self {
        if self.is_closed_output() || self.error.is::<Said>() {
            return self;
        }
        output::tell(render(&self).trim_end());
        Self::said()
    }

    /// Whether the reader of our standard output has gone, which is no failure.
    fn is_closed_output(&self) -> bool {
        matches!(self.error.downcast_ref(), Some(PrintError::Closed))
    }
}

/// What stands for a failure that was told.
#[derive(Debug, thiserror::Error)]
#[error("it was said why")]
struct Said;

impl<E: Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

impl From<Answer> for ExitCode {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Yes => Self::SUCCESS,
            Answer::No => Self::from(1),
            Answer::Exit(code) => Self::from(code),
        }
    }
}

/// How the process ends; a failure is told on standard error before.
pub fn exit_code(result: Result<Answer, Failure>) -> ExitCode {
    match result {
        Ok(answer) => answer.into(),
        Err(failure) if failure.is_closed_output() => ExitCode::SUCCESS,
        Err(failure) => {
            failure.say();
            ExitCode::from(2)
        }
    }
}

/// The failure as lines for people: the error, its causes once each, the hint.
pub fn render(failure: &Failure) -> String {
    let mut text = format!("error: {}\n", shown(&*failure.error));
    let mut cause = failure.error.source();
    while let Some(error) = cause {
        writeln!(text, "  cause: {}", shown(error)).expect("writing to a string cannot fail");
        cause = error.source();
    }
    if let Some(hint) = &failure.hint {
        let hint = printable::line(hint);
        writeln!(text, "hint: {hint}").expect("writing to a string cannot fail");
    }
    text
}

/// An error's text without its causes. Lines after the first are indented, so that no name in it begins
/// a line; but for lists of problems, whose parts hold no line break.
fn shown(error: &(dyn Error + 'static)) -> String {
    let text = error.to_string();
    let text = printable::lines(&text);
    let is_list = matches!(error.downcast_ref(), Some(LoadError::Invalid(_)))
        || matches!(error.downcast_ref(), Some(ScenarioError::Invalid { .. }))
        || matches!(error.downcast_ref(), Some(RunError::Scenario(ScenarioError::Invalid { .. })));
    if is_list { text.into_owned() } else { text.replace('\n', "\n    ") }
}
