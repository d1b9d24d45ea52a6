//! Other programs: run in the workspace's root, shown before they start, judged by their exit code.
#![expect(clippy::disallowed_methods, reason = "the one place where automation starts programs")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;

/// A program about to be run.
pub(crate) struct Program {
    command: Command,
    shown: String,
}

/// The cargo that runs this very program, so that the toolchain stays the same.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Program {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut program = program(root, &cargo, arguments);
    program.shown = format!("cargo {}", arguments.join(" "));
    program
}

/// A program by name, run in `directory`.
pub(crate) fn program(directory: &Path, name: &str, arguments: &[&str]) -> Program {
    let mut command = Command::new(name);
    command.args(arguments).current_dir(directory);
    // What cargo says of this package must not reach the cargo that is started from here.
    for (variable, _) in std::env::vars() {
        if variable.starts_with("CARGO_PKG_") || variable == "CARGO_MANIFEST_DIR" {
            command.env_remove(variable);
        }
    }
    Program { command, shown: format!("{name} {}", arguments.join(" ")) }
}

impl Program {
    /// Sets a variable of its environment.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Shows it under another name, without its directory.
    pub(crate) fn shown_as(mut self, name: &str) -> Self {
        let arguments = self.command.get_args().map(|word| word.to_string_lossy());
        let words: Vec<_> = std::iter::once(name.into()).chain(arguments).collect();
        self.shown = words.join(" ");
        self
    }

    /// Starts it in the background; its standard error can be read, its standard output is dropped.
    pub(crate) fn spawn_with_log(mut self) -> anyhow::Result<Child> {
        self.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        self.command.spawn().with_context(|| format!("cannot run `{}`", self.shown))
    }

    /// Runs it with our own output; whether it ended well.
    pub(crate) fn run(self) -> anyhow::Result<bool> {
        eprintln!("$ {}", self.shown);
        self.quiet_run()
    }

    /// The same without saying that it runs.
    pub(crate) fn quiet_run(mut self) -> anyhow::Result<bool> {
        let status =
            self.command.status().with_context(|| format!("cannot run `{}`", self.shown))?;
        Ok(status.success())
    }

    /// Runs it quietly; its standard output, or an error with what it said.
    pub(crate) fn output(mut self) -> anyhow::Result<String> {
        let output =
            self.command.output().with_context(|| format!("cannot run `{}`", self.shown))?;
        anyhow::ensure!(
            output.status.success(),
            "`{}` failed: {}",
            self.shown,
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs it quietly; everything that it said, or an error with that.
    pub(crate) fn said(mut self) -> anyhow::Result<String> {
        let output =
            self.command.output().with_context(|| format!("cannot run `{}`", self.shown))?;
        let said = [&output.stdout, &output.stderr].map(|octets| String::from_utf8_lossy(octets));
        let said = said.concat().trim().to_owned();
        anyhow::ensure!(output.status.success(), "`{}` failed: {said}", self.shown);
        Ok(said)
    }

    /// Runs it and hands every piece of its standard error to `piece`: a line, or what a carriage return
    /// overwrites. Its standard output is dropped.
    pub(crate) fn pieces(mut self, mut piece: impl FnMut(&str)) -> anyhow::Result<bool> {
        let mut child = self
            .command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run `{}`", self.shown))?;
        let stderr = child.stderr.take().context("the child has no standard error")?;
        let mut said = Vec::new();
        for octet in BufReader::new(stderr).bytes() {
            let octet = octet.context("cannot read what the child says")?;
            if !matches!(octet, b'\n' | b'\r') {
                said.push(octet);
            } else if !said.is_empty() {
                piece(&String::from_utf8_lossy(&said));
                said.clear();
            }
        }
        Ok(child.wait().context("cannot wait for the child")?.success())
    }

    /// Runs it and hands every line of its standard output to `line`; its errors go to ours.
    pub(crate) fn lines(self, line: impl FnMut(&str)) -> anyhow::Result<bool> {
        eprintln!("$ {}", self.shown);
        self.quiet_lines(line)
    }

    /// The same without saying that it runs.
    pub(crate) fn quiet_lines(mut self, mut line: impl FnMut(&str)) -> anyhow::Result<bool> {
        let mut child = self
            .command
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run `{}`", self.shown))?;
        let stdout = child.stdout.take().context("the child has no standard output")?;
        for octets in BufReader::new(stdout).split(b'\n') {
            line(&String::from_utf8_lossy(&octets.context("cannot read the child's output")?));
        }
        Ok(child.wait().context("cannot wait for the child")?.success())
    }
}
