//! Fencing: a host that was lost is made sure to do nothing more before a spare takes its place.
//!
//! A container of this machine is known to have ended, and one on another host ends by itself when it hears nothing of the job. But a
//! host whose processes stand still while its kernel answers ends nothing: once they run again, they could write to a file that
//! all hosts share for a moment, beside the spare. Whoever can switch hosts off (IPMI, the hypervisor, a power strip) is asked to.

use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use meikyo_console::failure::Failure;
use meikyo_console::output;
use signal_hook::consts::{SIGUSR1, SIGUSR2};

use super::site::Site;
use super::trouble::{LOOK_AGAIN, now};
use crate::signals;

/// A command that ends a host has so long for it.
const ENDING: Duration = Duration::from_secs(60);

/// Between two tries.
const TRY_AGAIN: Duration = Duration::from_secs(2);

/// Has a lost host ended by the command of the job, if it has one and a spare stands ready; tries again until that succeeds.
///
/// # Errors
/// When whoever runs the job ends it meanwhile.
pub(super) fn fence(site: &Site, host: &str) -> Result<(), Failure> {
    let Some(command) = site.fence.as_deref().filter(|_| !site.spares.is_empty()) else {
        return Ok(());
    };
    let signals = signals::stream()?;
    signals.set_nonblocking(true)?;
    let directory = site.directory.display();
    let given_up = || {
        Failure::new(format!("the host {host} may still write to files: `{command} {host}` has not ended it"))
            .hint(format!("switch it off; then `meikyo checkpoint restart --directory {directory} --on HOSTS` goes on"))
    };
    let mut told = String::new();
    loop {
        let why = match ended(command, host, &signals)? {
            Tried::Ended => break,
            Tried::GivenUp => return Err(given_up()),
            Tried::Failed(why) => why,
        };
        if told != why {
            output::say(&format!(
                "`{command} {host}` {why}; no spare takes the place of {host} before it succeeds, and it is tried again"
            ));
            told = why;
        }
        let again = now() + TRY_AGAIN;
        while now() < again {
            if is_told_to_end(&signals) {
                return Err(given_up());
            }
            thread::park_timeout(LOOK_AGAIN);
        }
    }
    output::say(&format!("the host {host} is fenced"));
    Ok(())
}

/// How a try ended.
enum Tried {
    Ended,
    /// Why it did not.
    Failed(String),
    /// Whoever runs the job does not want to wait.
    GivenUp,
}

fn ended(command: &str, host: &str, signals: &UnixStream) -> Result<Tried, Failure> {
    let deadline = now() + ENDING;
    let mut child = started(command, host)?;
    let tried = awaited(&mut child, deadline, signals)?;
    if !matches!(tried, Tried::Ended) {
        // It may have ended by itself.
        drop(child.kill());
        child.wait()?;
    }
    Ok(tried)
}

#[expect(clippy::disallowed_methods, reason = "a command of whoever runs the job")]
fn started(command: &str, host: &str) -> Result<Child, Failure> {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{command} \"$1\""), "sh", host]).stdin(Stdio::null());
    // Standard output is the program's.
    shell.stdout(io::stderr().as_fd().try_clone_to_owned()?);
    Ok(shell.spawn()?)
}

fn awaited(child: &mut Child, deadline: Instant, signals: &UnixStream) -> io::Result<Tried> {
    loop {
        if let Some(status) = child.try_wait()? {
            let failed = || Tried::Failed(format!("ended with {status}"));
            return Ok(if status.success() { Tried::Ended } else { failed() });
        }
        if is_told_to_end(signals) {
            return Ok(Tried::GivenUp);
        }
        if now() > deadline {
            return Ok(Tried::Failed(format!("did not end within {} s", ENDING.as_secs())));
        }
        thread::park_timeout(LOOK_AGAIN);
    }
}

/// Whether a signal came that ends programs.
fn is_told_to_end(signals: &UnixStream) -> bool {
    let mut raised = [0; 16];
    let count = (&mut &*signals).read(&mut raised).unwrap_or(0);
    let others = [SIGUSR1, SIGUSR2].map(|signal| u8::try_from(signal).expect("signals are small"));
    raised[..count].iter().any(|signal| !others.contains(signal))
}
