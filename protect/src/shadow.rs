//! A copy of all arrays of a rank in a memory file, kept up while the program runs.
//!
//! The kernel notes which pages were written ([`crate::written`]). A thread copies those now and then, so that when the
//! program is stopped only what was written since then is left to be copied, at the speed of memory; the daemon
//! reads the copy when the program goes on already. The thread takes its time: what it costs, the first writes to pages
//! that are protected anew included, is a hundredth of the time that passes.
//!
//! Nothing is copied while the daemon reads: from the end of [`Shadow::copy_in_standstill`] to the daemon's answer.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use meikyo_checkpoint::image::padded;
use rustix::net::{RecvFlags, recv};

use crate::schedule::now;
use crate::written::{Written, page_bytes, whole_pages};

/// Between two looks of the thread at least.
const LEAST: Duration = Duration::from_millis(100);

/// Between two looks at most.
const MOST: Duration = Duration::from_secs(30);

/// What the first write to a page costs the program after it was protected anew: 0.65 to 0.85 µs were measured, and
/// more where huge pages have to be split.
const FIRST_WRITE: Duration = Duration::from_micros(1);

/// An array's memory, and where its copy is in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Original {
    pub(crate) memory: Range<usize>,
    pub(crate) at: usize,
}

/// Where arrays of so many octets lie in the file, one behind the other, and how long it is.
pub(crate) fn laid_out(memories: impl Iterator<Item = Range<usize>>) -> (Vec<Original>, usize) {
    let mut len = 0;
    let originals = memories.map(|memory| {
        let at = len;
        len += usize::try_from(padded(memory.len() as u64)).expect("an array fits memory");
        Original { memory, at }
    });
    (originals.collect(), len)
}

/// What a save copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Copied {
    /// Before the program was stopped, since the save before.
    pub(crate) ahead: u64,
    /// While it stood still.
    pub(crate) residue: u64,
}

#[derive(Debug)]
struct State {
    written: Written,
    originals: Vec<Original>,
    /// The address of the file's memory, and its length.
    copy: usize,
    len: usize,
    /// Everything was copied once.
    is_whole: bool,
    /// The daemon reads, or is about to be told to, and this is the connection on which its answer comes.
    handed: Option<UnixStream>,
    ahead: u64,
    is_over: bool,
}

/// The begin and the end of an array, which may share their pages with others, so that nobody tells what is written
/// there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edges {
    Copied,
    Left,
}

/// The copy, and the thread that keeps it up.
#[derive(Debug)]
pub(crate) struct Shadow {
    shared: Arc<(Mutex<State>, Condvar)>,
    thread: Option<JoinHandle<()>>,
    file: OwnedFd,
    originals: Vec<Original>,
}

fn locked(mutex: &Mutex<State>) -> MutexGuard<'_, State> {
    mutex.lock().expect("no thread panics under this lock")
}

impl Shadow {
    /// Begins to watch; nothing is copied yet.
    ///
    /// # Errors
    /// When the kernel does not tell what is written, arrays overlap, or there is no memory.
    pub(crate) fn new(originals: Vec<Original>, len: usize) -> io::Result<Self> {
        let mut sorted: Vec<Range<usize>> =
            originals.iter().map(|original| original.memory.clone()).collect();
        sorted.sort_by_key(|memory| memory.start);
        if sorted.windows(2).any(|pair| pair[0].end > pair[1].start) {
            // What is noted once of a page would be noted for one of the two.
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let written = Written::new()?;
        for original in &originals {
            let pages = whole_pages(&original.memory);
            if !pages.is_empty() {
                written.watch(&pages)?;
            }
        }
        let (file, copy) = mapped(len.max(1))?;
        let state = State {
            written,
            originals: originals.clone(),
            copy,
            len: len.max(1),
            is_whole: false,
            handed: None,
            ahead: 0,
            is_over: false,
        };
        let shared = Arc::new((Mutex::new(state), Condvar::new()));
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("meikyo-shadow".to_owned());
        let thread = thread.spawn(move || keep_up(&of_thread))?;
        Ok(Self { shared, thread: Some(thread), file, originals })
    }

    /// Whether it is one of exactly these.
    pub(crate) fn is_of(&self, originals: &[Original]) -> bool {
        self.originals == originals
    }

    /// The descriptor of the file.
    pub(crate) fn descriptor(&self) -> i32 {
        self.file.as_raw_fd()
    }

    /// Copies what was written, then stops the program, copies the rest, and lets it go on; what fails is not copied, and
    /// what lies in the file is of no instant then. The daemon must have read what it was told to; what is copied stays as
    /// it is until its answer comes on this connection.
    pub(crate) fn copy_in_standstill<E>(
        &mut self,
        answers: UnixStream,
        stop: impl FnOnce() -> Result<(), E>,
        go_on: impl FnOnce(),
    ) -> Result<(io::Result<Copied>, Duration), E> {
        let mut state = locked(&self.shared.0);
        state.handed = None;
        let ahead = state.copy(Edges::Copied);
        let begun = now();
        stop()?;
        // From here until it goes on no memory may be asked for: a thread can stand still with its lock.
        let residue = ahead.and_then(|()| {
            let ahead = std::mem::take(&mut state.ahead);
            state.copy(Edges::Copied)?;
            Ok(Copied { ahead, residue: std::mem::take(&mut state.ahead) })
        });
        go_on();
        let stopped = begun.elapsed();
        state.is_whole &= residue.is_ok();
        // Under the same lock: the thread may wait for it, and would copy what was written since.
        state.handed = residue.is_ok().then_some(answers);
        Ok((residue, stopped))
    }
}

impl Drop for Shadow {
    fn drop(&mut self) {
        locked(&self.shared.0).is_over = true;
        self.shared.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // It does not panic; if it did, there is nothing to be done about it.
            drop(thread.join());
        }
    }
}

impl State {
    /// Copies everything that was written since the last time. Nothing is allocated.
    fn copy(&mut self, edges: Edges) -> io::Result<()> {
        let Self { written, originals, copy, is_whole, .. } = &*self;
        let mut bytes = 0;
        for Original { memory, at } in originals {
            let mut take = |range: Range<usize>| {
                bytes += range.len() as u64;
                copied(range.clone(), *copy + at + (range.start - memory.start));
            };
            if !is_whole {
                // What is written from now on is noted, and copied again.
                take(memory.clone());
            }
            let pages = whole_pages(memory);
            if edges == Edges::Copied {
                let end = pages.start.min(memory.end);
                take(memory.start..end);
                take(pages.end.max(end)..memory.end);
            }
            if !pages.is_empty() {
                written.take(&pages, take)?;
            }
        }
        self.is_whole = true;
        self.ahead += bytes;
        Ok(())
    }

    /// Whether the daemon still reads.
    fn is_being_read(&mut self) -> bool {
        let is_answered = self.handed.as_ref().is_none_or(|answers| {
            let mut octet = [0];
            let seen = recv(answers, &mut octet, RecvFlags::PEEK | RecvFlags::DONTWAIT);
            // Where nobody is at the other end any more, nobody reads.
            seen != Err(rustix::io::Errno::AGAIN)
        });
        if is_answered {
            self.handed = None;
        }
        !is_answered
    }
}

/// What the thread does.
fn keep_up(shared: &(Mutex<State>, Condvar)) {
    block_signals();
    let mut pause = LEAST;
    let (mutex, changed) = shared;
    let mut state = locked(mutex);
    while !state.is_over {
        let waited = changed.wait_timeout(state, pause);
        state = waited.expect("no thread panics under this lock").0;
        if state.is_over || !state.is_whole || state.is_being_read() {
            pause = LEAST;
            continue;
        }
        let (begun, before) = (now(), state.ahead);
        if state.copy(Edges::Left).is_err() {
            // The next save finds it, too, and tells it.
            return;
        }
        let pages = (state.ahead - before) / page_bytes() as u64;
        // Saturates: the pause is bounded below.
        let pages = u32::try_from(pages).unwrap_or(u32::MAX);
        let cost = begun.elapsed() + FIRST_WRITE.saturating_mul(pages);
        pause = cost.saturating_mul(100).clamp(LEAST, MOST);
    }
}

/// Signals are the program's, and none of its handlers runs on a thread that it does not know.
#[expect(unsafe_code, reason = "a call of the C library")]
fn block_signals() {
    // SAFETY: all zeros are a set of no signals.
    let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: it is a set, and is filled.
    unsafe { libc::sigfillset(&raw mut all) };
    // SAFETY: the mask is that of this thread only, and the old one is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut()) };
}

/// Copies memory that other threads may be writing: what they write is noted, and copied once more.
#[expect(unsafe_code, reason = "arrays are memory of the program")]
fn copied(from: Range<usize>, to: usize) {
    let source = std::ptr::with_exposed_provenance::<u8>(from.start);
    let target = std::ptr::with_exposed_provenance_mut::<u8>(to);
    // SAFETY: the program has said that its arrays lie there as long as they are named, and the copy has room for each;
    // the two do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(source, target, from.len()) };
}

/// A memory file, and the address where it is mapped for as long as the process runs or [`State`] lives.
#[expect(unsafe_code, reason = "memory files are mapped by the system")]
fn mapped(len: usize) -> io::Result<(OwnedFd, usize)> {
    // SAFETY: the label is a string that ends with a zero.
    let made = unsafe { libc::memfd_create(c"meikyo".as_ptr(), libc::MFD_CLOEXEC) };
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was made just now and belongs to nobody else.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(made) });
    file.set_len(len as u64)?;
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    // SAFETY: a new mapping of a file that is as long as is mapped, at an address of the kernel's choice.
    let address =
        unsafe { libc::mmap(std::ptr::null_mut(), len, prot, flags, file.as_raw_fd(), 0) };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok((file.into(), address.expose_provenance()))
}

impl Drop for State {
    #[expect(unsafe_code, reason = "memory files are mapped by the system")]
    fn drop(&mut self) {
        let copy = std::ptr::with_exposed_provenance_mut(self.copy);
        // SAFETY: it was mapped so, and nobody else has its address.
        unsafe { libc::munmap(copy, self.len) };
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::FileExt as _;

    use meikyo_worlds::Random;

    use super::*;

    /// Longest that anything may take on a loaded machine.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Memory of a program: pages of its own, and a few octets beside them.
    struct Memory {
        address: usize,
        len: usize,
    }

    impl Memory {
        #[expect(unsafe_code, reason = "memory is mapped by the system")]
        fn new(pages: usize) -> Self {
            let len = pages * page_bytes();
            let (prot, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            // SAFETY: a new mapping at an address of the kernel's choice.
            let made = unsafe { libc::mmap(std::ptr::null_mut(), len, prot, flags, -1, 0) };
            assert_ne!(made, libc::MAP_FAILED);
            Self { address: made.expose_provenance(), len }
        }

        #[expect(unsafe_code, reason = "a test writes memory of its own")]
        fn write(&self, at: usize, octet: u8) {
            assert!(at < self.len);
            let place = std::ptr::with_exposed_provenance_mut::<u8>(self.address + at);
            // SAFETY: it was mapped for this, and only this thread writes it.
            unsafe { place.write_volatile(octet) };
        }

        #[expect(unsafe_code, reason = "a test reads memory of its own")]
        fn read(&self, range: &Range<usize>) -> Vec<u8> {
            let begin = std::ptr::with_exposed_provenance::<u8>(range.start);
            // SAFETY: it was mapped, and nobody writes it now.
            unsafe { std::slice::from_raw_parts(begin, range.len()) }.to_vec()
        }
    }

    /// Nothing where the kernel is older, or a sandbox forbids it.
    fn shadow(originals: &[Original], len: usize) -> Option<Shadow> {
        if let Err(error) = Written::new() {
            meikyo_testing::lacking(&format!("the kernel does not tell what is written: {error}"));
            return None;
        }
        Some(Shadow::new(originals.to_vec(), len).unwrap())
    }

    /// A save for a daemon that has read it at once.
    fn copy(shadow: &mut Shadow) -> io::Result<Copied> {
        let (_, answers) = UnixStream::pair().unwrap();
        shadow.copy_in_standstill(answers, || Ok::<(), ()>(()), || {}).unwrap().0
    }

    fn is_same(shadow: &Shadow, memory: &Memory, originals: &[Original]) -> bool {
        let file = File::open(format!("/proc/self/fd/{}", shadow.descriptor())).unwrap();
        originals.iter().all(|original| {
            let mut copy = vec![0; original.memory.len()];
            file.read_exact_at(&mut copy, original.at as u64).unwrap();
            copy == memory.read(&original.memory)
        })
    }

    #[test]
    fn what_was_written_is_copied_and_hardly_more() {
        let (memory, page) = (Memory::new(200), page_bytes());
        let begin = memory.address;
        // One that begins and ends inside of pages, one of whole pages, and one that has none.
        let ranges = [
            begin + 100..begin + 90 * page + 7,
            begin + 91 * page..begin + 191 * page,
            begin + 195 * page + 9..begin + 195 * page + 70,
        ];
        let (originals, len) = laid_out(ranges.into_iter());
        let Some(mut shadow) = shadow(&originals, len) else { return };
        let mut random = Random::new(2);
        for turn in 0..50 {
            let mut written = std::collections::BTreeSet::new();
            for _ in 0..random.index(12) {
                let at = random.index(memory.len);
                memory.write(at, u8::try_from(random.below(256)).unwrap());
                written.insert(at / page);
            }
            let copied = copy(&mut shadow).unwrap();
            assert!(is_same(&shadow, &memory, &originals));
            if turn > 0 {
                // Ends of arrays are copied twice, less than five pages in all; the thread may have come by once.
                let pages = (copied.ahead + copied.residue) / page as u64;
                assert!(pages <= 2 * written.len() as u64 + 5, "{pages} of {}", written.len());
            }
        }
    }

    #[test]
    fn the_copy_is_brought_up_to_date_while_nobody_saves() {
        let (memory, page) = (Memory::new(50), page_bytes());
        let (originals, len) =
            laid_out(std::iter::once(memory.address..memory.address + 50 * page));
        let Some(mut shadow) = shadow(&originals, len) else { return };
        copy(&mut shadow).unwrap();
        for turn in 1..4 {
            (0..50).for_each(|at| memory.write(at * page + 5, turn));
            let begun = now();
            while !is_same(&shadow, &memory, &originals) {
                assert!(begun.elapsed() < PATIENCE);
                std::thread::park_timeout(Duration::from_millis(5));
            }
        }
        let copied = copy(&mut shadow).unwrap();
        assert_eq!((copied.ahead / page as u64 >= 150, copied.residue), (true, 0));
        // While the daemon reads, nothing is copied: also by a thread that has waited while the program stood still.
        let (mut daemon, answers) = UnixStream::pair().unwrap();
        let stop = || {
            std::thread::park_timeout(2 * LEAST);
            Ok::<(), ()>(())
        };
        let saved = shadow.copy_in_standstill(answers, stop, || {});
        assert!(saved.unwrap().0.is_ok());
        assert!(locked(&shadow.shared.0).is_being_read());
        memory.write(3, 77);
        assert!(!is_same(&shadow, &memory, &originals));
        daemon.write_all(b"\n").unwrap();
        assert!(!locked(&shadow.shared.0).is_being_read());
    }

    #[test]
    #[expect(unsafe_code, reason = "memory is mapped by the system")]
    fn memory_that_the_program_has_replaced_is_noticed() {
        let (memory, page) = (Memory::new(10), page_bytes());
        let (originals, len) =
            laid_out(std::iter::once(memory.address..memory.address + 10 * page));
        let Some(mut shadow) = shadow(&originals, len) else { return };
        copy(&mut shadow).unwrap();
        let place =
            std::ptr::with_exposed_provenance_mut::<libc::c_void>(memory.address + 4 * page);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: it takes the place of memory of this test.
        assert_eq!(unsafe { libc::mmap(place, page, prot, flags, -1, 0) }, place);
        copy(&mut shadow).unwrap_err();
        drop(shadow);
        let again = Shadow::new(originals.clone(), len);
        assert!(copy(&mut again.unwrap()).is_ok());
    }

    #[test]
    fn arrays_that_overlap_are_not_copied_ahead() {
        let memory = Memory::new(10);
        let begin = memory.address;
        let (originals, len) =
            laid_out([begin..begin + 100, begin + 99..begin + 9_000].into_iter());
        assert!(Shadow::new(originals, len).is_err());
    }
}
