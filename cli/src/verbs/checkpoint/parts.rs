//! The same work on all hosts of a job, in step: each says a word when it has come so far, and goes on when all have.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use meikyo_console::failure::Failure;
use meikyo_console::output;

use super::inside::{FAILED, LATER, NOTED, ON};
use super::site::Site;
use super::trouble::{CAUSE, Halt, LOOK_AGAIN, Stopped, Trouble, now, spawned};

/// Whoever gives up has so long for it.
const GIVING_UP: Duration = Duration::from_secs(10);

/// What one host does.
struct Part {
    child: Child,
    input: Option<ChildStdin>,
}

/// What all hosts do. Where this is dropped, they give it up.
pub(super) struct Parts {
    parts: Vec<Part>,
    /// How the hosts are called.
    names: Vec<String>,
    /// Lines by place; nothing at the end of one.
    said: Receiver<(usize, Option<String>)>,
    /// What stood behind the word that is waited for.
    got: Vec<Option<String>>,
}

impl Parts {
    /// Starts a role of this program on every host.
    pub(super) fn start(site: &Site, role: &str, arguments: &[String]) -> Result<Self, Failure> {
        let (sender, said) = channel();
        let names = site.hosts.iter().map(|host| host.name.clone()).collect();
        let mut parts = Self { parts: Vec::new(), names, said, got: vec![None; site.hosts.len()] };
        for (place, host) in site.hosts.iter().enumerate() {
            let mut words = Site::role_words(role);
            words.extend(arguments.iter().cloned());
            if place == 0 {
                words.push("--first".to_owned());
            }
            let mut command = site.part(host, &words)?;
            let log =
                OpenOptions::new().create(true).append(true).open(site.capture_log_of(host))?;
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
            let mut child = spawned(&mut command)?;
            let output = child.stdout.take();
            parts.parts.push(Part { input: child.stdin.take(), child });
            let sender = sender.clone();
            if let Some(output) = output {
                thread::spawn(move || pass_on(place, BufReader::new(output), &sender));
            }
        }
        Ok(parts)
    }

    /// Whether all have said a word, and what stood behind it.
    pub(super) fn poll(&mut self, word: &str) -> Option<Result<Vec<String>, Halt>> {
        while let Ok((place, line)) = self.said.try_recv() {
            let Some(line) = line else {
                // Who has said the last word ends while others are still at it.
                if self.got[place].is_some() {
                    continue;
                }
                return Some(Err(Halt::Ended(place)));
            };
            let (said, behind) = line.split_once(' ').unwrap_or((&line, ""));
            if said == word {
                self.got[place] = Some(behind.to_owned());
            } else if said == NOTED {
                output::say(&format!("{}: {behind}", self.names[place]));
            } else if said == FAILED {
                return Some(Err(Halt::Failed(place, behind.to_owned())));
            } else if said == LATER {
                return Some(Err(Halt::UnderWay(place, behind.to_owned())));
            }
        }
        let all: Option<Vec<String>> = self.got.iter().cloned().collect();
        let all = all?;
        self.got.iter_mut().for_each(|got| *got = None);
        Some(Ok(all))
    }

    /// Waits until all have said a word, and looks meanwhile whether hosts are there.
    pub(super) fn await_all(
        &mut self,
        word: &str,
        patience: Duration,
        mut look: impl FnMut() -> Result<(), Trouble>,
    ) -> Result<Vec<String>, Stopped> {
        let deadline: Instant = now() + patience;
        loop {
            if let Some(all) = self.poll(word) {
                // A host that is gone is the reason, and what is seen first is not always that.
                let cause = if let Err(Halt::Ended(_)) = all { CAUSE } else { Duration::ZERO };
                let deadline = now() + cause;
                while all.is_err() {
                    look()?;
                    if now() >= deadline {
                        break;
                    }
                    thread::park_timeout(LOOK_AGAIN / 10);
                }
                return Ok(all?);
            }
            look()?;
            if now() > deadline {
                let late = self.got.iter().enumerate().filter(|(_, got)| got.is_none());
                return Err(Halt::Late(late.map(|(place, _)| place).collect()).into());
            }
            thread::park_timeout(LOOK_AGAIN / 10);
        }
    }

    /// Tells all to go on.
    pub(super) fn go_on(&mut self) {
        for part in &mut self.parts {
            if let Some(input) = &mut part.input {
                // That it has ended is seen by what it says.
                drop(writeln!(input, "{ON}"));
            }
        }
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        // Whoever waits for a word gives up without one, and lets its processes go on.
        self.parts.iter_mut().for_each(|part| drop(part.input.take()));
        let deadline = now() + GIVING_UP;
        for part in &mut self.parts {
            while matches!(part.child.try_wait(), Ok(None)) && now() < deadline {
                thread::park_timeout(LOOK_AGAIN / 10);
            }
            // It may have ended; one that hangs is killed on its host, too.
            drop(part.child.kill());
            drop(part.child.wait());
        }
    }
}

fn pass_on(place: usize, output: impl BufRead, sender: &Sender<(usize, Option<String>)>) {
    for line in output.lines() {
        let Ok(line) = line else { break };
        if sender.send((place, Some(line))).is_err() {
            return;
        }
    }
    // Nobody may listen any more.
    drop(sender.send((place, None)));
}
