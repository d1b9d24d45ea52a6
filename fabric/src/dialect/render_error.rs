//! Why a text cannot be made.

use thiserror::Error;

use super::reading::ParseError;

/// Why a text cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RenderError {
    /// The dialect cannot say what is to be set.
    #[error("`{switch}`{port}: {problem}")]
    Unsupported {
        /// The name of the switch that the text is for.
        switch: String,
        /// The port, as `, port 7`, or nothing.
        port: String,
        /// What cannot be said, and why.
        problem: String,
    },
    /// A template is wrong, or asks for a variable that does not exist.
    #[error("template `{template}`{}: {problem}", at_line(*.line))]
    Template {
        /// The file name of the template: `DIALECT.j2`.
        template: String,
        /// The line; `None` if the whole is wrong.
        line: Option<usize>,
        /// What is wrong with the template, in the words of its engine.
        problem: String,
    },
    /// The text that a template made is not understood when it is read back.
    #[error("template `{template}` makes a text for `{switch}` that is not understood")]
    NotUnderstood {
        /// The file name of the template: `DIALECT.j2`.
        template: String,
        /// The name of the switch that the text is for.
        switch: String,
        /// The line of the text, and why it is not understood.
        source: ParseError,
    },
    /// The text that a template made says something else than was meant.
    #[error(
        "template `{template}` makes a text for `{switch}` that says something else: {difference}"
    )]
    SaysOther {
        /// The file name of the template: `DIALECT.j2`.
        template: String,
        /// The name of the switch that the text is for.
        switch: String,
        /// The first difference: meant against said.
        difference: String,
    },
}

fn at_line(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!(", line {line}"))
}
