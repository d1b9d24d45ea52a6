//! What looking on holds in memory beside 1,000 devices at 10 Hz: a server with ten viewers, and `top`.

use std::fs::File;
use std::io::{self, Read as _};
use std::thread::JoinHandle;

use meikyo_console::failure::Failure;
use meikyo_units::{Bytes, Nanos, WallTime};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::collector::product;
use crate::live::measurement::Measurement;
use crate::live::server_process::ServerProcess;
use crate::live::viewers::{Onlookers, VIEWERS};
use crate::placement::{Placement, spawn, wait_until};

const DEVICES: u32 = 1_000;
/// How long the collector runs.
const SPAN: Nanos = Nanos::from_secs(60);
/// How long everybody looks on: what a minute of readings fills is full by then.
const LOOKING: Nanos = Nanos::from_secs(50);
const SIZE: Winsize = Winsize { ws_row: 60, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };
/// The least that viewers see a second, who are at low priority beside the agents.
const FRAMES_A_SECOND: u64 = 3;

/// The most that each has held.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) server: Bytes,
    pub(super) top: Bytes,
}

/// Has everybody look on at once.
pub(super) fn run() -> Result<Held, Failure> {
    let begin = WallTime::now();
    let measurement = Measurement::start(DEVICES, SPAN, false)?;
    let server = ServerProcess::start(&measurement.recording)?;
    let onlookers = Onlookers::of(&server)?;
    let (controller, terminal) = open_terminal()?;
    let mut command = product()?;
    command.arg("top").arg(&measurement.recording);
    command.stdin(terminal.try_clone()?).stdout(terminal.try_clone()?).stderr(terminal);
    let top = spawn(command, Placement::default())?;
    let drawn = read_all(controller);
    wait_until(begin + LOOKING)?;
    let held = Held { server: server.rss_peak()?, top: top.memory("VmHWM:")? };
    let frames = onlookers.end()?;
    top.terminate()?;
    top.wait(Nanos::from_secs(5))?;
    let drawn = drawn.join().map_err(|_| Failure::new("who reads the terminal has panicked"))??;
    measurement.finish()?;
    let least = FRAMES_A_SECOND * (VIEWERS as u64 - 1) * LOOKING.get() / Nanos::SECOND.get();
    if frames < least {
        return Err(Failure::new(format!("{VIEWERS} viewers saw only {frames} frames")));
    }
    let drawn = String::from_utf8_lossy(&drawn);
    if !drawn.contains(&DEVICES.to_string()) && !drawn.contains("1,000") {
        return Err(Failure::new(format!("`top` showed no {DEVICES} devices: {drawn}")));
    }
    Ok(held)
}

/// A terminal, and the end from which it is driven.
fn open_terminal() -> io::Result<(File, File)> {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&controller)?;
    unlockpt(&controller)?;
    let name = ptsname(&controller, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let terminal = open(name.as_c_str(), flags, Mode::empty())?;
    tcsetwinsize(&terminal, SIZE)?;
    Ok((controller.into(), terminal.into()))
}

/// Reads what is drawn, until nobody has the terminal open any more.
fn read_all(mut controller: File) -> JoinHandle<io::Result<Vec<u8>>> {
    std::thread::spawn(move || {
        let (mut drawn, mut piece) = (Vec::new(), [0; 4_096]);
        loop {
            match controller.read(&mut piece) {
                Ok(0) => return Ok(drawn),
                Ok(length) => drawn.extend_from_slice(&piece[..length]),
                // That is how Linux says it.
                Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
                    return Ok(drawn);
                }
                Err(error) => return Err(error),
            }
        }
    })
}
