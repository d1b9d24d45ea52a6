//! The parser as the tests of the grammar walk it.

use clap::{Command, CommandFactory as _};

use super::without_help;
use crate::args::Args;

/// The parser of the whole program, without the verb `help` that every command has.
pub(super) fn program() -> Command {
    let mut program = without_help(Args::command());
    program.build();
    program
}
