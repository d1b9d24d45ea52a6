//! The door of a running agent: where `meikyo profile grab` asks it for samples that stayed on its host.
//!
//! It is an abstract Unix socket named after the agent, at which root and the agent's own user are heard. One
//! JSON line in, one JSON line out.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use meikyo_console::failure::Failure;
use meikyo_profile::flight::Grabbed;
use meikyo_units::Nanos;
use serde::{Deserialize, Serialize};

/// Octets of a line at most.
const LINE_MAX: u64 = 1_024;

/// How long either side waits for the other: the agent looks for questions twice a second.
const PATIENCE: Duration = Duration::from_secs(10);

/// Questions that wait for the agent at most; more are refused.
const WAITING_MAX: usize = 4;

/// What is asked.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    last_ns: u64,
}

/// What is answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    /// What is sent to the server now.
    Grabbed {
        /// How many blocks that is.
        blocks: u64,
        /// Samples in them.
        samples: u64,
        /// Samples of the same span that had been sent before.
        sent_before: u64,
    },
    /// Nothing is, and why.
    Refused(String),
}

impl From<Grabbed> for Reply {
    fn from(grabbed: Grabbed) -> Self {
        let Grabbed { blocks, samples, released_before } = grabbed;
        Self::Grabbed { blocks, samples, sent_before: released_before }
    }
}

/// A question, whose asker waits.
#[derive(Debug)]
pub(super) struct Asked {
    /// How far back samples are wanted.
    pub(super) last: Nanos,
    stream: UnixStream,
}

impl Asked {
    /// Answers; who has gone is not told.
    pub(super) fn answer(mut self, reply: &Reply) {
        drop(say(&mut self.stream, reply));
    }
}

/// Who is heard at the door.
#[derive(Debug)]
pub(super) struct Door {
    asked: Receiver<Asked>,
}

impl Door {
    /// Opens the door of an agent of some name, which a thread attends to until the program ends.
    pub(super) fn open(name: &str) -> Result<Self, Failure> {
        let listener = address(name).and_then(|address| UnixListener::bind_addr(&address));
        let listener = listener.map_err(|error| {
            let failure = Failure::new(format!("cannot be asked as `{name}`: {error}"));
            if error.kind() == io::ErrorKind::AddrInUse {
                failure.hint("another agent of that name runs here; name this one: `--name NAME`")
            } else {
                failure
            }
        })?;
        let (tell, asked) = sync_channel(WAITING_MAX);
        std::thread::Builder::new().name("door".into()).spawn(move || {
            listener.incoming().for_each(|stream| drop(stream.and_then(|of| hear(of, &tell))));
        })?;
        Ok(Self { asked })
    }

    /// The next question, if there is one.
    pub(super) fn next(&self) -> Option<Asked> {
        self.asked.try_recv().ok()
    }
}

/// Hears one question.
fn hear(mut stream: UnixStream, tell: &SyncSender<Asked>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    if !meikyo_sockets::options::is_of_own_user(&stream)? {
        return say(
            &mut stream,
            &Reply::Refused("only root and the agent's user are heard".into()),
        );
    }
    let question: Question = read(&stream)?;
    let asked = Asked { last: Nanos::new(question.last_ns), stream };
    match tell.try_send(asked) {
        Ok(()) => Ok(()),
        Err(error) => {
            let (std::sync::mpsc::TrySendError::Full(mut asked)
            | std::sync::mpsc::TrySendError::Disconnected(mut asked)) = error;
            say(&mut asked.stream, &Reply::Refused("others are asking; ask again".into()))
        }
    }
}

/// Asks the agent of some name.
pub(super) fn ask(name: &str, last: Nanos) -> io::Result<Reply> {
    let mut stream = UnixStream::connect_addr(&address(name)?)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    say(&mut stream, &Question { last_ns: last.get() })?;
    read(&stream)
}

fn address(name: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("meikyo-profile-agent/{name}"))
}

fn say(stream: &mut UnixStream, what: &impl Serialize) -> io::Result<()> {
    let line = serde_json::to_string(what)? + "\n";
    stream.write_all(line.as_bytes())
}

fn read<T: for<'a> Deserialize<'a>>(stream: &UnixStream) -> io::Result<T> {
    let mut line = String::new();
    BufReader::new(stream).take(LINE_MAX).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_answered_in_turn_and_what_is_none_is_not() {
        let name = format!("test {}", std::process::id());
        let door = Door::open(&name).unwrap();
        assert!(Door::open(&name).is_err(), "the name is taken");
        let asker = {
            let name = name.clone();
            std::thread::spawn(move || ask(&name, Nanos::from_secs(30)).unwrap())
        };
        let mut stream = UnixStream::connect_addr(&address(&name).unwrap()).unwrap();
        stream.write_all(b"{\"last_ns\":-1}\n").unwrap();
        let asked = door.asked.recv_timeout(PATIENCE).unwrap();
        assert_eq!(asked.last, Nanos::from_secs(30));
        asked.answer(&Grabbed { blocks: 2, samples: 7, released_before: 1 }.into());
        let Reply::Grabbed { blocks: 2, samples: 7, sent_before: 1 } = asker.join().unwrap() else {
            panic!("another answer");
        };
        // Whoever asks for nothing that there is gets no answer.
        let mut said = String::new();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        BufReader::new(stream).read_to_string(&mut said).unwrap();
        assert_eq!(said, "");
        assert!(door.next().is_none());
    }
}
