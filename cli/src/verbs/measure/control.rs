//! The answering side of a running measurement's door, see [`meikyo_recording::control`].
//!
//! It takes marks, and what people say to alerts; what it does not know it refuses.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use meikyo_recording::control::{
    AlertRequest, AlertWord, LINE_MAX, PATIENCE, Reply, Request, SOCKET, short_path,
};
use meikyo_snmp::collector::Command;
use meikyo_snmp::poll::{AlertAction, AlertAnswer};
use meikyo_snmp::system::Waker;
use meikyo_units::Nanos;

/// The door could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen in {}", dir.display())]
pub(crate) struct ListenError {
    /// Recording in whose directory the socket was to be.
    dir: PathBuf,
    /// What the system says.
    source: io::Error,
}

/// Opens the door of the measurement that writes into `dir`; a thread serves it until the process
/// ends.
///
/// # Errors
/// [`ListenError`] when the socket cannot be made.
pub(super) fn open(
    dir: &Path,
    commands: Sender<Command>,
    waker: Arc<Waker>,
) -> Result<(), ListenError> {
    let fail = |source| ListenError { dir: dir.into(), source };
    let (handle, path) = short_path(dir).map_err(fail)?;
    // The stream's lock says that no other collector is at work here: a socket is a leftover.
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
        _ => {}
    }
    let listener = UnixListener::bind(&path).map_err(fail)?;
    std::thread::Builder::new()
        .name("control".into())
        .spawn(move || {
            let _handle = handle;
            for stream in listener.incoming().flatten() {
                if let Err(error) = serve(&stream, &commands, &waker) {
                    tracing::debug!(%error, "a conversation at the control socket broke");
                }
            }
        })
        .map_err(fail)?;
    Ok(())
}

/// Closes the door.
pub(super) fn close(dir: &Path) {
    if let Err(error) = std::fs::remove_file(dir.join(SOCKET)) {
        tracing::debug!(%error, "the control socket was gone already");
    }
}

fn serve(mut stream: &UnixStream, commands: &Sender<Command>, waker: &Waker) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(LINE_MAX)).read_line(&mut line)?;
    let reply = match carry_out(&line, commands, waker) {
        Ok(()) => Reply::Done,
        Err(why) => Reply::Refused(why),
    };
    let mut answer = serde_json::to_string(&reply)?;
    answer.push('\n');
    stream.write_all(answer.as_bytes())
}

/// Does what a line asks for, or says why not.
fn carry_out(line: &str, commands: &Sender<Command>, waker: &Waker) -> Result<(), String> {
    let request = serde_json::from_str(line)
        .map_err(|error| format!("the request is not understood: {error}"))?;
    match request {
        Request::Mark(text) => {
            let (done, answered) = channel();
            tell(commands, waker, Command::Mark { text, done }, &answered)
        }
        Request::Alert(request) => {
            let (done, answered) = channel();
            let answer = answer(request)?;
            tell(commands, waker, Command::Answer { answer, done }, &answered)?
                .map_err(|error| error.to_string())
        }
    }
}

/// What the collector is told of an alert, or why it is not.
fn answer(request: AlertRequest) -> Result<AlertAnswer, String> {
    let AlertRequest { action, rule, device, object, for_us, by } = request;
    let action = match (action, for_us) {
        (AlertWord::Acknowledge, None) => AlertAction::Acknowledge,
        (AlertWord::Silence, Some(us)) => {
            AlertAction::Silence(Nanos::new(us.saturating_mul(1_000)))
        }
        (AlertWord::Acknowledge, Some(_)) => return Err("`for_us` is for `silence` only".into()),
        (AlertWord::Silence, None) => return Err("`silence` needs `for_us`".into()),
    };
    Ok(AlertAnswer { rule, device, object, action, by })
}

/// Gives the collector a command and waits for what comes of it.
fn tell<T>(
    commands: &Sender<Command>,
    waker: &Waker,
    command: Command,
    answered: &Receiver<T>,
) -> Result<T, String> {
    let sent = commands.send(command);
    waker.wake();
    let outcome = sent.ok().and_then(|()| answered.recv_timeout(PATIENCE).ok());
    outcome.ok_or_else(|| "the collector has ended".into())
}
