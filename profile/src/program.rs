//! A program that is started and held until sampling has begun.
//!
//! A shell stops itself and, once it is told to go on, becomes the program: what is sampled begins
//! with the execve(2) of the program, and its first instruction is not missed.

#![expect(
    clippy::disallowed_methods,
    reason = "starts the program that a person wants to have sampled"
)]

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// A program that waits to be released.
#[derive(Debug)]
pub struct HeldProgram {
    child: Child,
    is_released: bool,
}

/// Why a program could not be started or attended to.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} `{program}`")]
pub struct ProgramError {
    doing: &'static str,
    program: String,
    source: io::Error,
}

impl HeldProgram {
    /// Starts a program with its arguments, the first word being the program, and holds it.
    ///
    /// # Errors
    /// When the system starts no process.
    pub fn start(words: &[impl AsRef<OsStr>]) -> Result<Self, ProgramError> {
        let name = words.first().map(|word| word.as_ref().to_string_lossy().into_owned());
        let failed = |source| ProgramError {
            doing: "start",
            program: name.clone().unwrap_or_default(),
            source,
        };
        let held = "kill -STOP $$; exec \"$@\"";
        let child = Command::new("/bin/sh").args(["-c", held, "sh"]).args(words).spawn();
        let held = Self { child: child.map_err(failed)?, is_released: false };
        let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(held.process()), options).map_err(|error| failed(error.into()))?;
        Ok(held)
    }

    /// Process ID of the program.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// When it is gone.
    pub fn release(&mut self) -> Result<(), ProgramError> {
        let failed = |error: rustix::io::Errno| self.error("release", error.into());
        kill_process(self.process(), Signal::CONT).map_err(failed)?;
        self.is_released = true;
        Ok(())
    }

    /// How it ended, as a shell tells it; `None` while it runs.
    ///
    /// # Errors
    /// When the system does not tell.
    ///
    /// # Panics
    /// When the system tells of an end with neither code nor signal, which Linux does not.
    pub fn ended(&mut self) -> Result<Option<u8>, ProgramError> {
        const KILLED: i32 = 128;
        let status = self.child.try_wait().map_err(|source| self.error("wait for", source))?;
        Ok(status.map(|status| {
            let code = status.code().or_else(|| status.signal().map(|signal| KILLED + signal));
            // Who has ended has a code of 8 bits, or a signal of at most 64.
            u8::try_from(code.expect("it has ended")).expect("8 bits")
        }))
    }

    fn process(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn error(&self, doing: &'static str, source: io::Error) -> ProgramError {
        ProgramError { doing, program: format!("process {}", self.child.id()), source }
    }
}

impl Drop for HeldProgram {
    /// A program that was never released must not run without being sampled, nor wait for ever: it
    /// ends before its first instruction. One that was released goes on.
    fn drop(&mut self) {
        if !self.is_released {
            // Both fail only when it is gone already.
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    #[test]
    fn a_program_that_was_never_released_ends_without_having_run() {
        let directory = tempfile::tempdir().unwrap();
        let mark = directory.path().join("mark");
        let held = HeldProgram::start(&[OsStr::new("touch"), mark.as_os_str()]).unwrap();
        let process = format!("/proc/{}", held.pid());
        drop(held);
        // Nothing of it is left that could still run.
        assert!(!std::fs::exists(process).unwrap());
        assert!(!mark.exists());
    }

    #[test]
    fn a_program_gets_its_arguments_octet_by_octet() {
        let directory = tempfile::tempdir().unwrap();
        let mark = directory.path().join(OsString::from_vec(b"m\xff".to_vec()));
        let mut held = HeldProgram::start(&[OsStr::new("touch"), mark.as_os_str()]).unwrap();
        held.release().unwrap();
        while held.ended().unwrap().is_none() {
            std::thread::yield_now();
        }
        assert!(mark.exists());
    }
}
