//! When and where samples were taken, of those that somebody may see: what counting them needs.

use std::ops::ControlFlow;
use std::rc::Rc;

use meikyo_recording::{ReadError, Recording};

use crate::reading::{Goes, Reading};
use crate::symbols::Symbols;
use crate::wanted::Wanted;

/// A sample without what ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment<'a> {
    /// When, ns since the epoch.
    pub time: i64,
    /// The name that the host has in the recording.
    pub host: &'a str,
    /// The number of the CPU there.
    pub cpu: u64,
}

/// Goes through the wanted samples of a recording in no order, until `take` says that it has enough; names of
/// processes and threads cannot be wanted here, since none are read.
///
/// # Errors
/// When the recording has no samples or cannot be read.
///
/// # Panics
/// When names of processes or threads are wanted.
pub fn moments(
    recording: &Recording,
    wanted: &Wanted,
    mut take: impl FnMut(Moment<'_>) -> ControlFlow<()>,
) -> Result<(), ReadError> {
    assert!(wanted.processes.is_empty() && wanted.threads.is_empty(), "names are not read");
    let mut symbols = Symbols::of_this_host();
    let mut reading = Reading::of_cgroups(recording, &mut symbols, &wanted.hosts)?;
    let mut of: Option<(usize, Rc<str>)> = None;
    reading.samples(wanted, |reading, seen| {
        let host = match &mut of {
            Some((number, name)) if *number == seen.host => name,
            _ => &mut of.insert((seen.host, reading.host_name(seen.host))).1,
        };
        match take(Moment { time: seen.time, host, cpu: seen.cpu }) {
            ControlFlow::Continue(()) => Goes::On,
            ControlFlow::Break(()) => Goes::NoFurther,
        }
    })
}
