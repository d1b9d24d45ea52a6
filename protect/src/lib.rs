//! `libmeikyo_checkpoint`: what a program calls to have its arrays protected by the checkpoint daemon of its host.
//!
//! The functions are those of `include/meikyo_checkpoint.h`, which says what they do. A rank keeps one connection to
//! its host's daemon, tells it where its arrays are, and waits while they are read: by way of the kernel out of its
//! memory, or out of memory files that both have. Nothing here needs MPI; the daemons agree on what is whole.
//!
//! Every function of the header returns a negative number where it fails, and keeps the reason for
//! `meikyo_checkpoint_error`. No function may be called from two threads with the same handle at once.

mod arrays;
mod client;
mod error;
mod schedule;
mod shadow;
mod standstill;
mod written;

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use arrays::{Arrays, Described};
use client::Client;
use error::ClientError;
use schedule::Schedule;

/// The environment's name of the daemon's directory.
const DIRECTORY: &str = "MEIKYO_CHECKPOINT_DIRECTORY";

/// The environment's name of how many ranks are on this host.
const RANKS_HERE: &str = "MEIKYO_CHECKPOINT_RANKS_HERE";

thread_local! {
    static ERROR: RefCell<CString> = RefCell::new(CString::default());
}

/// A program's rank as its daemon knows it.
#[derive(Debug)]
pub struct Checkpoint {
    client: Client,
    arrays: Arrays,
    schedule: Schedule,
}

/// Why a call fails.
#[derive(Debug, thiserror::Error)]
enum CallError {
    #[error("a pointer that must not be null is")]
    Null,
    #[error("a text is not UTF-8")]
    Text,
    #[error("`{0}` is no type of an element: f32, f64, i8 to i64, u8 to u64, c64 and c128 are")]
    Element(String),
    #[error("an array has {0} dimensions, and can have 1 to 8")]
    Dimensions(c_int),
    #[error("`{DIRECTORY}` does not say where the daemon's directory is, and the program does not")]
    NoDirectory,
    #[error("rank {rank} of {ranks} cannot be")]
    Rank { rank: c_int, ranks: c_int },
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("this is a fault of meikyo")]
    Panic,
}

/// Runs a call; what fails is kept for `meikyo_checkpoint_error`.
fn called(call: impl FnOnce() -> Result<c_int, CallError>) -> c_int {
    let outcome = catch_unwind(AssertUnwindSafe(call)).unwrap_or(Err(CallError::Panic));
    outcome.unwrap_or_else(|error| {
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        // A text of the system has no zeros.
        let text = CString::new(text).unwrap_or_default();
        ERROR.with(|kept| *kept.borrow_mut() = text);
        -1
    })
}

fn number(name: &str) -> Option<c_int> {
    std::env::var(name).ok()?.trim().parse().ok()
}

/// The first of these numbers that the launcher has put into the environment.
fn first_number(names: &[&str]) -> Option<c_int> {
    names.iter().find_map(|name| number(name))
}

/// # Safety
/// `text` is null or a string that ends with a zero.
#[expect(unsafe_code, reason = "strings of C")]
unsafe fn text_of(text: *const c_char) -> Result<Option<String>, CallError> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller says so.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(|text| Some(text.to_owned())).map_err(|_| CallError::Text)
}

/// Begins; see the header.
///
/// # Safety
/// `directory` is null or a string of C; `out` points to where a pointer can be written.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "a function for C")]
pub unsafe extern "C" fn meikyo_checkpoint_init(
    directory: *const c_char,
    rank: c_int,
    ranks: c_int,
    ranks_here: c_int,
    out: *mut *mut Checkpoint,
) -> c_int {
    called(|| {
        if out.is_null() {
            return Err(CallError::Null);
        }
        // SAFETY: the caller says so.
        let directory = unsafe { text_of(directory)? };
        let directory = directory.or_else(|| std::env::var(DIRECTORY).ok());
        let directory = PathBuf::from(directory.ok_or(CallError::NoDirectory)?);
        let of_launcher = |given: c_int, names: &[&str], otherwise: c_int| {
            if given >= 0 { given } else { first_number(names).unwrap_or(otherwise) }
        };
        let rank_names = ["PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"];
        let ranks_names = ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"];
        let here_names = [RANKS_HERE, "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"];
        let rank = of_launcher(rank, &rank_names, 0);
        let ranks = of_launcher(ranks, &ranks_names, 1);
        let here = of_launcher(ranks_here, &here_names, ranks);
        let numbers = [rank, ranks, here].map(u32::try_from);
        let [Ok(rank), Ok(ranks), Ok(here)] = numbers else {
            return Err(CallError::Rank { rank, ranks });
        };
        let client = Client::join(&directory, rank, ranks, here)?;
        let schedule = Schedule::new(client.group());
        let made = Box::new(Checkpoint { client, arrays: Arrays::default(), schedule });
        // SAFETY: the caller says that it can be written to.
        unsafe { *out = Box::into_raw(made) };
        Ok(0)
    })
}

/// What an array is, out of what C says of it.
///
/// # Safety
/// Strings are strings of C, and lists have as many numbers as there are dimensions.
#[expect(unsafe_code, reason = "strings and lists of C")]
unsafe fn described(
    name: *const c_char,
    element: *const c_char,
    dimensions: c_int,
    lists: [*const u64; 3],
) -> Result<Described, CallError> {
    // SAFETY: the caller says so.
    let name = unsafe { text_of(name)? }.ok_or(CallError::Null)?;
    // SAFETY: the caller says so.
    let element = unsafe { text_of(element)? }.ok_or(CallError::Null)?;
    let count = usize::try_from(dimensions).ok().filter(|count| (1..=8).contains(count));
    let count = count.ok_or(CallError::Dimensions(dimensions))?;
    let [shape, whole, first] = lists.map(|list| {
        if list.is_null() {
            Vec::new()
        } else {
            // SAFETY: the caller says that it has so many numbers.
            unsafe { std::slice::from_raw_parts(list, count) }.to_vec()
        }
    });
    if shape.is_empty() || whole.is_empty() != first.is_empty() {
        return Err(CallError::Null);
    }
    let bytes = arrays::element_bytes(&element);
    let bytes = bytes.ok_or_else(|| CallError::Element(element.clone()))?;
    Ok(Described { name, element, element_bytes: bytes, shape, whole, first })
}

/// Names an array of the program's own; see the header.
///
/// # Safety
/// The handle is one of `meikyo_checkpoint_init`, the memory is the program's and as large as is said, and stays so.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "a function for C")]
pub unsafe extern "C" fn meikyo_checkpoint_protect(
    checkpoint: *mut Checkpoint,
    name: *const c_char,
    data: *mut c_void,
    element: *const c_char,
    dimensions: c_int,
    shape: *const u64,
    whole: *const u64,
    first: *const u64,
) -> c_int {
    called(|| {
        // SAFETY: the caller says that it is one of ours, which nobody else uses now.
        let checkpoint = unsafe { checkpoint.as_mut() }.ok_or(CallError::Null)?;
        // SAFETY: the caller says so.
        let described = unsafe { described(name, element, dimensions, [shape, whole, first])? };
        if data.is_null() && described.bytes() != Some(0) {
            return Err(CallError::Null);
        }
        checkpoint.arrays.protect(described, data.cast())?;
        Ok(0)
    })
}

/// Makes an array in memory that the daemon reads without a copy of the kernel's; see the header.
///
/// # Safety
/// The handle is one of `meikyo_checkpoint_init`; strings and lists are as the header says.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "a function for C")]
pub unsafe extern "C" fn meikyo_checkpoint_alloc(
    checkpoint: *mut Checkpoint,
    name: *const c_char,
    element: *const c_char,
    dimensions: c_int,
    shape: *const u64,
    whole: *const u64,
    first: *const u64,
) -> *mut c_void {
    let mut made = std::ptr::null_mut();
    called(|| {
        // SAFETY: the caller says that it is one of ours, which nobody else uses now.
        let checkpoint = unsafe { checkpoint.as_mut() }.ok_or(CallError::Null)?;
        // SAFETY: the caller says so.
        let described = unsafe { described(name, element, dimensions, [shape, whole, first])? };
        made = checkpoint.arrays.allocate(described)?;
        Ok(0)
    });
    made.cast()
}

/// Has an output file cut back to the checkpoint's length; see the header.
///
/// # Safety
/// The handle is one of `meikyo_checkpoint_init`, and the path a string of C.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "a function for C")]
pub unsafe extern "C" fn meikyo_checkpoint_file(
    checkpoint: *mut Checkpoint,
    path: *const c_char,
) -> c_int {
    called(|| {
        // SAFETY: the caller says that it is one of ours, which nobody else uses now.
        let checkpoint = unsafe { checkpoint.as_mut() }.ok_or(CallError::Null)?;
        // SAFETY: the caller says so.
        let path = unsafe { text_of(path)? }.ok_or(CallError::Null)?;
        checkpoint.arrays.file(path);
        Ok(0)
    })
}

/// Whether a checkpoint pays now; see the header.
///
/// # Safety
/// The handle is one of `meikyo_checkpoint_init`.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "a function for C")]
pub unsafe extern "C" fn meikyo_checkpoint_due(checkpoint: *mut Checkpoint) -> c_int {
    called(|| {
        // SAFETY: the caller says that it is one of ours, which nobody else uses now.
        let checkpoint = unsafe { checkpoint.as_ref() }.ok_or(CallError::Null)?;
        Ok(c_int::from(checkpoint.schedule.is_due()))
    })
}

/// Saves a step; see the header.
///
/// # Safety
/// The handle is one of `meikyo_checkpoint_init`, and the memory of all arrays is still there.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "a function for C")]
pub unsafe extern "C" fn meikyo_checkpoint_save(checkpoint: *mut Checkpoint, step: u64) -> c_int {
    called(|| {
        // SAFETY: the caller says that it is one of ours, which nobody else uses now.
        let checkpoint = unsafe { checkpoint.as_mut() }.ok_or(CallError::Null)?;
        let took = checkpoint.client.save(step, &mut checkpoint.arrays)?;
        checkpoint.schedule.saved(took);
        Ok(0)
    })
}

/// Fills all arrays with what they were at the newest checkpoint; see the header.
///
/// # Safety
/// The handle is one of `meikyo_checkpoint_init`, the memory of all arrays is still there, and `step` is null or can
/// be written to.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "a function for C")]
pub unsafe extern "C" fn meikyo_checkpoint_restore(
    checkpoint: *mut Checkpoint,
    step: *mut u64,
) -> c_int {
    called(|| {
        // SAFETY: the caller says that it is one of ours, which nobody else uses now.
        let checkpoint = unsafe { checkpoint.as_mut() }.ok_or(CallError::Null)?;
        let Some(found) = checkpoint.client.restore(&mut checkpoint.arrays)? else { return Ok(0) };
        if !step.is_null() {
            // SAFETY: the caller says that it can be written to.
            unsafe { *step = found };
        }
        Ok(1)
    })
}

/// Whether the program should save and end; see the header.
///
/// # Safety
/// The handle is one of `meikyo_checkpoint_init`.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "a function for C")]
pub unsafe extern "C" fn meikyo_checkpoint_should_exit(checkpoint: *mut Checkpoint) -> c_int {
    called(|| {
        // SAFETY: the caller says that it is one of ours, which nobody else uses now.
        let checkpoint = unsafe { checkpoint.as_ref() }.ok_or(CallError::Null)?;
        Ok(c_int::from(checkpoint.schedule.should_exit()))
    })
}

/// What the last save cost the program; see the header.
///
/// # Safety
/// The handle is one of `meikyo_checkpoint_init`, and every pointer is null or can be written to.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "a function for C")]
pub unsafe extern "C" fn meikyo_checkpoint_cost(
    checkpoint: *const Checkpoint,
    stop_seconds: *mut f64,
    ahead_bytes: *mut u64,
    residue_bytes: *mut u64,
) -> c_int {
    called(|| {
        // SAFETY: the caller says that it is one of ours, which nobody else uses now.
        let checkpoint = unsafe { checkpoint.as_ref() }.ok_or(CallError::Null)?;
        let last = checkpoint.client.last();
        let copied = last.copied.unwrap_or_default();
        // SAFETY: the caller says that it is null or can be written to.
        if let Some(seconds) = unsafe { stop_seconds.as_mut() } {
            *seconds = last.stopped.as_secs_f64();
        }
        for (bytes, copied) in [(ahead_bytes, copied.ahead), (residue_bytes, copied.residue)] {
            // SAFETY: as above.
            if let Some(bytes) = unsafe { bytes.as_mut() } {
                *bytes = copied;
            }
        }
        Ok(c_int::from(last.copied.is_some()))
    })
}

/// Ends; see the header.
///
/// # Safety
/// The handle is null or one of `meikyo_checkpoint_init`, which is not used any more.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "a function for C")]
pub unsafe extern "C" fn meikyo_checkpoint_finalize(checkpoint: *mut Checkpoint) {
    if !checkpoint.is_null() {
        // SAFETY: it was made by `Box::into_raw`, and the caller gives it back.
        let mut checkpoint = unsafe { Box::from_raw(checkpoint) };
        // What was handed over last stays the daemon's; a refusal has nobody to be told to any more.
        drop(checkpoint.client.await_answer());
        drop(checkpoint);
    }
}

/// Why the last call of this thread that failed did; see the header.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "a function for C")]
pub extern "C" fn meikyo_checkpoint_error() -> *const c_char {
    ERROR.with(|kept| kept.borrow().as_ptr())
}
