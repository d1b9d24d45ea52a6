//! From the death of a host until its data can be read again on the one that takes its place.
//!
//! The daemon of a host is killed and its directory deleted. When the others call it dead, another one takes its place and is asked
//! for the newest image until it has it. What moving the data takes at the line's rate, and writing the image as a bare copy of
//! the file does, is data time; the rest is what noticing, meeting and agreeing take.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

use meikyo_checkpoint::daemon::{Answer, Request, ask};
use meikyo_console::failure::Failure;
use meikyo_console::output::real;
use meikyo_spaces::Lan;
use meikyo_units::{BitsPerSecond, Bytes};
use serde::Serialize;

use super::daemons::Daemons;
use super::group::{image, median};
use super::line::{self, address};

/// The group: so many hosts with parity in a ring, and which of them is lost.
const HOSTS: usize = 4;
const LOST: usize = 1;
const RATE: BitsPerSecond = BitsPerSecond::new(1_000_000_000);
const PORT: u16 = 7_004;

/// The step that is saved.
const STEP: u64 = 7;

/// Most that passes beside the time for the data.
const REACH_BEYOND_DATA_S: f64 = 3.0;

/// What was measured, medians of the rounds.
#[derive(Debug, Serialize)]
pub(super) struct Loss {
    hosts: usize,
    bytes_per_host: u64,
    line_bytes_per_s: f64,
    /// From the death until all others called the host dead.
    noticed_s: f64,
    /// From the death until the image was there again.
    readable_s: f64,
    /// The lost image and the lost parity, and how long they take at the line's rate.
    moved_bytes: u64,
    moved_s: f64,
    /// How long a copy of the image's file takes.
    restored_s: f64,
    beyond_data_s: f64,
    reach_beyond_data_s: f64,
    pub(super) reached: bool,
}

/// Loses a host in each round.
pub(super) fn measure(bytes: Bytes, directory: &Path, rounds: u32) -> Result<Loss, Failure> {
    let network = Lan::make(HOSTS, 1, Some(RATE))
        .map_err(|error| Failure::new(error).hint("the kernel needs veth, bridge and tbf"))?;
    let len = usize::try_from(bytes.get())?;
    let images: Vec<Vec<u8>> = (0..HOSTS).map(|host| image(host, len)).collect();
    let (mut lines, mut noticed, mut readable) = (vec![], vec![], vec![]);
    let (mut copies, mut moved_bytes) = (vec![], 0);
    for _ in 0..rounds {
        lines.push(line::measure(&network, HOSTS, 1, len)?);
        let addresses: Vec<SocketAddr> = (0..HOSTS).map(|host| address(host, 0, PORT)).collect();
        let mut daemons = Daemons::found(directory, "ring", &addresses, Some(&network))?;
        let file = |host: usize| daemons.home().join(format!("image{host}"));
        for (host, image) in images.iter().enumerate() {
            fs::write(file(host), image)?;
            let request = Request::Save { run: 1, step: STEP, image: file(host), stopped_ns: None };
            ask(&daemons.directory(host), &request)?;
        }
        daemons.wait_for("save", |status| status.step == Some(STEP) && status.open.is_none())?;
        if let Answer::Status(status) = ask(&daemons.directory(LOST), &Request::Status)? {
            let part = status.stored.get(LOST).copied();
            moved_bytes = part.map_or(0, |part| part.image_bytes + part.parity_bytes);
        }
        let copy = daemons.home().join("copy");
        let begun = Instant::now();
        fs::copy(file(LOST), &copy)?;
        copies.push(begun.elapsed().as_secs_f64());
        let begun = Instant::now();
        daemons.kill(LOST)?;
        fs::remove_dir_all(daemons.directory(LOST))?;
        daemons.wait_for("notice a death", |status| {
            status.hosts.get(LOST).is_some_and(|word| word == "dead")
        })?;
        noticed.push(begun.elapsed().as_secs_f64());
        daemons.start(LOST, &[])?;
        let step = daemons.restore(LOST, &copy)?;
        readable.push(begun.elapsed().as_secs_f64());
        if step != STEP || fs::read(&copy)? != images[LOST] {
            return Err(Failure::new("what was rebuilt is not what the host had"));
        }
    }
    let line_bytes_per_s = median(lines);
    let (readable_s, restored_s) = (median(readable), median(copies));
    let moved_s = real(moved_bytes) / line_bytes_per_s;
    let beyond_data_s = readable_s - moved_s - restored_s;
    Ok(Loss {
        hosts: HOSTS,
        bytes_per_host: bytes.get(),
        line_bytes_per_s,
        noticed_s: median(noticed),
        readable_s,
        moved_bytes,
        moved_s,
        restored_s,
        beyond_data_s,
        reach_beyond_data_s: REACH_BEYOND_DATA_S,
        reached: beyond_data_s < REACH_BEYOND_DATA_S,
    })
}

/// The figures for people.
pub(super) fn text(loss: &Loss) -> String {
    let Loss { hosts, noticed_s, readable_s, moved_s, restored_s, beyond_data_s, .. } = loss;
    format!(
        "One of {hosts} hosts lost: noticed after {noticed_s:.2} s, its image readable again after {readable_s:.2} s, of which \
         {moved_s:.2} s are the data on the line and {restored_s:.2} s a copy of the image; the rest is {beyond_data_s:.2} s \
         (aim {REACH_BEYOND_DATA_S} s)\n\n"
    )
}
