//! Signals that are passed on to a command that runs elsewhere.

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;

use meikyo_console::failure::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

/// A stream on which every signal that a command could want comes as a byte.
pub(crate) fn stream() -> Result<UnixStream, Failure> {
    let (read, write) = UnixStream::pair()?;
    write.set_nonblocking(true)?;
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2] {
        let byte = [u8::try_from(signal)?];
        let pipe = write.try_clone()?;
        let (said, own) = UnixStream::pair()?;
        signal_hook::low_level::pipe::register(signal, own)?;
        std::thread::Builder::new()
            .name(format!("signal-{signal}"))
            .spawn(move || pass_on(&said, &pipe, byte))?;
    }
    Ok(read)
}

/// Passes every wake-up of a signal on as that signal's byte, as long as there is a reader.
fn pass_on(mut said: &UnixStream, mut pipe: &UnixStream, byte: [u8; 1]) {
    let mut wake = [0];
    while matches!(io::Read::read(&mut said, &mut wake), Ok(1)) {
        if pipe.write_all(&byte).is_err() {
            return;
        }
    }
}
