//! The ranks that `mpirun` started, as one of them sees them.
#![expect(unsafe_code, reason = "the library of the ranks is called")]

use std::ffi::c_int;
use std::sync::OnceLock;

use crate::compiler;
use crate::failure::JoinError;
use crate::kept;
use crate::loaded::Loaded;

/// Loaded once in a process.
static LOADED: OnceLock<Loaded> = OnceLock::new();

/// What this process is among all ranks, until it is dropped, which waits for the others to do so too.
///
/// All must be asked on the thread that joined.
#[derive(Debug)]
pub struct World {
    own: usize,
    count: usize,
    loaded: &'static Loaded,
}

impl World {
    /// How many processes the `mpirun` that started this one has started, as it says in the environment;
    /// none if there was no `mpirun`.
    pub fn started() -> Option<usize> {
        // MPICH and Slurm, Open MPI.
        ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE"]
            .iter()
            .find_map(|name| std::env::var(name).ok()?.parse().ok())
    }

    /// Joins the other ranks. None if this process has done so before: that cannot be repeated.
    ///
    /// # Errors
    /// If the compiler of the MPI at hand is missing, or belongs to another MPI.
    pub fn join() -> Result<Option<Self>, JoinError> {
        let compiler = compiler::of_this_rank();
        let loaded = match LOADED.get() {
            Some(loaded) => loaded,
            None => {
                let loaded = kept::load(&compiler)?;
                LOADED.get_or_init(|| loaded)
            }
        };
        let (mut own, mut count): (c_int, c_int) = (0, 0);
        // SAFETY: both places are ours and hold a number.
        let joined = unsafe { (loaded.join)(&raw mut own, &raw mut count) };
        if joined == 0 {
            return Ok(None);
        }
        let world = Self { own: number(own), count: number(count), loaded };
        match Self::started() {
            Some(started) if started != world.count => {
                let joined = world.count;
                Err(JoinError::OtherMpi { compiler, started, joined })
            }
            _ => Ok(Some(world)),
        }
    }

    /// The number of this process, from 0.
    pub fn own(&self) -> usize {
        self.own
    }

    /// How many ranks there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Ends all ranks.
    pub fn abort(&self, code: i32) {
        // SAFETY: the ranks are joined, and it does not come back.
        unsafe { (self.loaded.abort)(code) }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // SAFETY: joined once, and left once.
        unsafe { (self.loaded.leave)() }
    }
}

fn number(rank: c_int) -> usize {
    usize::try_from(rank).expect("MPI counts from 0")
}

/// Some of the ranks. All of them must ask the same in the same order, on the thread that joined.
#[derive(Debug)]
pub struct Communicator {
    number: i64,
    count: usize,
    loaded: &'static Loaded,
}

impl Communicator {
    /// The first `count` ranks; none on a rank that is not among them. All ranks must call this together,
    /// after they joined.
    ///
    /// # Panics
    /// If they did not.
    pub fn among_first(count: usize) -> Option<Self> {
        let loaded = LOADED.get().expect("the ranks are joined");
        let mut number = 0;
        // SAFETY: the ranks are joined, and the place is ours.
        let is_among = unsafe { (loaded.among_first)(int(count), &raw mut number) };
        (is_among != 0).then_some(Self { number, count, loaded })
    }

    /// Publishes `row`, and receives those of all ranks one after the other in `table`.
    ///
    /// # Panics
    /// If the table has no room for just them.
    pub fn all_gather(&self, row: &[u64], table: &mut [u64]) {
        assert_eq!(table.len(), row.len() * self.count, "a row for each rank");
        let width = int(row.len());
        // SAFETY: the row holds that many words, and the table that many for each rank.
        unsafe {
            (self.loaded.all_gather)(self.number, row.as_ptr(), table.as_mut_ptr(), width);
        }
    }

    /// Sends each rank what `out` has for it, and receives what each sends here in `inbox`, whose lengths are
    /// what they send.
    ///
    /// # Panics
    /// If there is not one of both for each rank.
    pub fn exchange(&self, out: &[&[u8]], inbox: &mut [Vec<u8>]) {
        assert_eq!((out.len(), inbox.len()), (self.count, self.count), "one for each rank");
        let length = |bytes: &[u8]| u64::try_from(bytes.len()).expect("memory has fewer octets");
        let out_lengths: Vec<u64> = out.iter().map(|bytes| length(bytes)).collect();
        let in_lengths: Vec<u64> = inbox.iter().map(|bytes| length(bytes)).collect();
        let out: Vec<*const u8> = out.iter().map(|bytes| bytes.as_ptr()).collect();
        let into: Vec<*mut u8> = inbox.iter_mut().map(Vec::as_mut_ptr).collect();
        // SAFETY: there is a place and a length for each rank, each place holds that many octets, and it
        // returns when all have been sent and received.
        unsafe {
            (self.loaded.exchange)(
                self.number,
                int(self.count),
                out.as_ptr(),
                out_lengths.as_ptr(),
                into.as_ptr(),
                in_lengths.as_ptr(),
            );
        }
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        // SAFETY: made once, and given back once.
        unsafe { (self.loaded.free)(self.number) }
    }
}

fn int(count: usize) -> c_int {
    c_int::try_from(count).expect("MPI counts in 31 bits")
}
