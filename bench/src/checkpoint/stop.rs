//! How long a program stands still for a checkpoint: one with the library, whose arrays are this process's own, and the
//! daemons of two hosts, which are processes of `meikyo`.
//!
//! A tenth of the pages is written, spread evenly. Either a save follows at once, or half of them is written, cools until
//! the library has copied it ahead, and a save follows the other half. What the daemon has in the end is compared with
//! the array.

use std::ffi::CString;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::thread;
use std::time::{Duration, Instant};

use meikyo_console::failure::Failure;
use meikyo_console::output::real;
use meikyo_protect::{
    Checkpoint, meikyo_checkpoint_alloc, meikyo_checkpoint_cost, meikyo_checkpoint_finalize,
    meikyo_checkpoint_init, meikyo_checkpoint_restore, meikyo_checkpoint_save,
};
use meikyo_units::Bytes;
use serde::Serialize;

use super::daemons::Daemons;
use super::group::median;

/// Most that the program stands still beside the time in which what is left is copied.
const REACH_STOP_S: f64 = 0.002;
/// Most that it stands still for each GiB of its arrays, where half of what was written has cooled.
const REACH_COOLED_S_PER_GIB: f64 = 0.005;

/// One page of so many is written between two saves.
const DIRTY_ONE_IN: usize = 10;

const PAGE: usize = 4_096;

/// The library looks what was written every 100 ms at least, and every hundredfold of what a look has cost.
const COOLING: Duration = Duration::from_secs(6);

/// What was measured, medians of the rounds, and what it has to reach.
#[derive(Debug, Serialize)]
pub(super) struct Stop {
    pub(super) bytes: u64,
    /// Whether the kernel tells what is written, so that a copy is kept; otherwise the daemon reads while the program
    /// stands still, and nothing is judged.
    pub(super) copies_ahead: bool,
    pub(super) dirty_bytes: u64,
    pub(super) memory_bytes_per_s: f64,
    /// Of a save with all of it dirty.
    pub(super) dirty: Saved,
    /// Of a save for which half of it had cooled.
    pub(super) cooled: Saved,
    pub(super) reach_stop_ms: f64,
    pub(super) reach_cooled_stop_ms: f64,
    pub(super) reached: bool,
}

/// What a save cost the program.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Saved {
    /// How long all threads stood still.
    pub(super) stop_ms: f64,
    /// How long the thread waited that called `save`.
    pub(super) call_ms: f64,
    /// Octets that were copied before the stop since the save before, and in it.
    pub(super) ahead_bytes: u64,
    pub(super) residue_bytes: u64,
}

/// A rank that goes to another thread.
struct Rank(*mut Checkpoint);

// SAFETY: a handle may be used by any thread, by one at a time.
#[expect(unsafe_code, reason = "a handle of the library for C")]
unsafe impl Send for Rank {}

/// A program of two ranks, each with the daemon of another host; the first has the array.
struct Program {
    daemons: Daemons<'static>,
    ranks: [*mut Checkpoint; 2],
    array: &'static mut [u8],
    step: u64,
}

/// Measures how long a program with so much data stands still.
pub(super) fn measure(bytes: Bytes, directory: &Path, rounds: u32) -> Result<Stop, Failure> {
    let mut program = Program::start(usize::try_from(bytes.get())?, directory)?;
    let memory_bytes_per_s = memory_speed(program.array);
    // The first copies everything.
    program.save()?;
    let pages = program.array.len().div_ceil(PAGE);
    let (mut dirty, mut cooled) = (Vec::new(), Vec::new());
    let mut copies_ahead = true;
    for _ in 0..rounds {
        program.write(0..pages, DIRTY_ONE_IN);
        dirty.push(program.save()?);
        program.write(0..pages / 2, DIRTY_ONE_IN);
        cool();
        program.write(pages / 2..pages, DIRTY_ONE_IN);
        cooled.push(program.save()?);
        copies_ahead &= program.keeps_copy();
    }
    program.check()?;
    let (dirty, cooled) = (middle(&dirty), middle(&cooled));
    let residue_s = real(dirty.residue_bytes) / memory_bytes_per_s;
    let reach_stop_ms = (REACH_STOP_S + residue_s) * 1e3;
    let gib = real(bytes.get()) / real(1 << 30);
    let reach_cooled_stop_ms = REACH_COOLED_S_PER_GIB * gib * 1e3;
    let is_within = dirty.stop_ms <= reach_stop_ms && cooled.stop_ms <= reach_cooled_stop_ms;
    Ok(Stop {
        bytes: bytes.get(),
        copies_ahead,
        dirty_bytes: (pages.div_ceil(DIRTY_ONE_IN) * PAGE) as u64,
        memory_bytes_per_s,
        dirty,
        cooled,
        reach_stop_ms,
        reach_cooled_stop_ms,
        reached: is_within || !copies_ahead,
    })
}

/// Each of the figures by itself.
fn middle(saves: &[Saved]) -> Saved {
    let of = |figure: fn(&Saved) -> f64| median(saves.iter().map(figure).collect());
    let octets = |figure: fn(&Saved) -> u64| {
        let mut all: Vec<u64> = saves.iter().map(figure).collect();
        all.sort_unstable();
        all[all.len() / 2]
    };
    Saved {
        stop_ms: of(|saved| saved.stop_ms),
        call_ms: of(|saved| saved.call_ms),
        ahead_bytes: octets(|saved| saved.ahead_bytes),
        residue_bytes: octets(|saved| saved.residue_bytes),
    }
}

/// Octets per second at which memory is copied, the best of three.
fn memory_speed(array: &[u8]) -> f64 {
    let mut copy = vec![1_u8; array.len()];
    let seconds = (0..3).map(|_| {
        let begun = Instant::now();
        copy.copy_from_slice(array);
        std::hint::black_box(&mut copy);
        begun.elapsed().as_secs_f64()
    });
    real(array.len() as u64) / seconds.fold(f64::INFINITY, f64::min)
}

/// Lets what was written cool: the library's thread works meanwhile.
fn cool() {
    let until = Instant::now() + COOLING;
    while Instant::now() < until {
        thread::park_timeout(COOLING / 8);
    }
}

impl Program {
    fn start(len: usize, directory: &Path) -> Result<Self, Failure> {
        // Ports that were free just now, and are not given to others so soon.
        let ports = [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
        let addresses = ports.each_ref().map(TcpListener::local_addr);
        drop(ports);
        let addresses = addresses.into_iter().collect::<Result<Vec<_>, _>>()?;
        let daemons = Daemons::found(directory, "partner", &addresses, None)?;
        let (ranks, array, step) = ([null_mut(); 2], &mut [][..], 0);
        let mut program = Self { daemons, ranks, array, step };
        for host in [0, 1] {
            program.ranks[host] = program.join(host)?;
            let len = if host == 0 { len } else { PAGE };
            let array = named(program.ranks[host], len)?;
            if host == 0 {
                program.array = array;
            }
        }
        program.begin()?;
        Ok(program)
    }

    #[expect(unsafe_code, reason = "a call of the library for C")]
    fn join(&self, host: usize) -> Result<*mut Checkpoint, Failure> {
        let directory = CString::new(self.daemons.directory(host).to_string_lossy().into_owned())?;
        let (rank, mut made) = (i32::try_from(host)?, null_mut());
        // SAFETY: the directory is a string of C, and `made` can be written to.
        let outcome =
            unsafe { meikyo_checkpoint_init(directory.as_ptr(), rank, 2, 1, &raw mut made) };
        if outcome == 0 { Ok(made) } else { Err(refused("join its daemon")) }
    }

    /// Both ranks begin; each waits for the other.
    fn begin(&self) -> Result<(), Failure> {
        thread::scope(|scope| {
            let begun = self.ranks.map(Rank).map(|rank| {
                scope.spawn(move || {
                    let Rank(rank) = { rank };
                    #[expect(unsafe_code, reason = "a call of the library for C")]
                    // SAFETY: the handle is one of `init`, and all arrays are there.
                    let outcome = unsafe { meikyo_checkpoint_restore(rank, null_mut()) };
                    outcome
                })
            });
            let outcomes = begun.map(|thread| thread.join().expect("no rank panics"));
            if outcomes == [0, 0] { Ok(()) } else { Err(refused("begin")) }
        })
    }

    /// Writes to one page of so many.
    fn write(&mut self, pages: std::ops::Range<usize>, one_in: usize) {
        for page in pages.step_by(one_in) {
            let octet = &mut self.array[page * PAGE];
            *octet = octet.wrapping_add(1);
        }
    }

    /// Saves on both ranks, and waits until it is committed.
    fn save(&mut self) -> Result<Saved, Failure> {
        self.step += 1;
        let step = self.step;
        let begun = Instant::now();
        saved(self.ranks[0], step)?;
        let call_ms = begun.elapsed().as_secs_f64() * 1e3;
        let (_, stop_s, ahead_bytes, residue_bytes) = cost(self.ranks[0]);
        saved(self.ranks[1], step)?;
        self.daemons
            .wait_for("save", |status| status.step == Some(step) && status.open.is_none())?;
        Ok(Saved { stop_ms: stop_s * 1e3, call_ms, ahead_bytes, residue_bytes })
    }

    fn keeps_copy(&self) -> bool {
        cost(self.ranks[0]).0
    }

    /// The image that the daemon has ends with the array.
    fn check(&self) -> Result<(), Failure> {
        let to = self.daemons.home().join("image");
        let step = self.daemons.restore(0, &to)?;
        if step != self.step {
            let text = format!("the daemon of the bench has step {step}, not {}", self.step);
            return Err(Failure::new(text));
        }
        let image = fs::read(to)?;
        let padded = self.array.len().next_multiple_of(64);
        let begin = image.len().checked_sub(padded);
        let has = begin.and_then(|begin| image.get(begin..begin + self.array.len()));
        if has == Some(&*self.array) {
            return Ok(());
        }
        Err(Failure::new("what was saved is not what the program had"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.array = &mut [];
        for rank in self.ranks.into_iter().filter(|rank| !rank.is_null()) {
            #[expect(unsafe_code, reason = "a call of the library for C")]
            // SAFETY: the handle is one of `init`, and not used any more.
            unsafe {
                meikyo_checkpoint_finalize(rank);
            };
        }
    }
}

/// The array of a rank, filled.
#[expect(unsafe_code, reason = "a call of the library for C")]
fn named(rank: *mut Checkpoint, len: usize) -> Result<&'static mut [u8], Failure> {
    let shape = [len as u64];
    let (name, element) = (c"array", c"u8");
    // SAFETY: the handle is one of `init`, and texts and lists are as long as is said.
    let data = unsafe {
        let (name, element) = (name.as_ptr(), element.as_ptr());
        meikyo_checkpoint_alloc(rank, name, element, 1, shape.as_ptr(), null(), null())
    };
    if data.is_null() {
        return Err(refused("get memory"));
    }
    // SAFETY: it is an array of so many octets, which nobody else writes, and is let go of before `finalize`.
    let array = unsafe { std::slice::from_raw_parts_mut(data.cast::<u8>(), len) };
    for (page, octets) in array.chunks_mut(PAGE).enumerate() {
        octets.fill(u8::try_from(page % 251).expect("it is below 251"));
    }
    Ok(array)
}

#[expect(unsafe_code, reason = "a call of the library for C")]
fn saved(rank: *mut Checkpoint, step: u64) -> Result<(), Failure> {
    // SAFETY: the handle is one of `init`, and all arrays are there.
    let outcome = unsafe { meikyo_checkpoint_save(rank, step) };
    if outcome == 0 { Ok(()) } else { Err(refused("save")) }
}

/// Whether a copy is kept, seconds of the stop, octets that were copied ahead and in it.
#[expect(unsafe_code, reason = "a call of the library for C")]
fn cost(rank: *mut Checkpoint) -> (bool, f64, u64, u64) {
    let (mut seconds, mut ahead, mut residue) = (0.0, 0, 0);
    // SAFETY: the handle is one of `init`, and all three can be written to.
    let keeps_copy =
        unsafe { meikyo_checkpoint_cost(rank, &raw mut seconds, &raw mut ahead, &raw mut residue) };
    (keeps_copy == 1, seconds, ahead, residue)
}

fn refused(what: &str) -> Failure {
    Failure::new(format!("the program of the bench cannot {what}")).hint(
        "`meikyo checkpoint daemon` must run here: name a directory with room, --directory DIR",
    )
}
