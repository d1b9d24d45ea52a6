//! Which pages a program has written: the kernel write-protects them and lets every first write pass, noting the page
//! (userfaultfd in its asynchronous mode, and `PAGEMAP_SCAN`; Linux 6.7 and later, without privileges).
//!
//! It tells what was written, and stops nobody. What is written by another mapping of the same memory, by a device into
//! pinned pages, or by punching a hole into shared memory is not noted.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// Runs of pages that the kernel tells at once.
const RUNS: usize = 256;

/// `linux/userfaultfd.h`: the version, flags, and numbers of calls.
const UFFD_API: u64 = 0xAA;
const UFFD_USER_MODE_ONLY: libc::c_long = 1;
const FEATURES: u64 = 1 << 12 | 1 << 13 | 1 << 15; // WP_HUGETLBFS_SHMEM, WP_UNPOPULATED, WP_ASYNC
const UFFDIO_API: libc::c_ulong = 0xC018_AA3F;
const UFFDIO_REGISTER: libc::c_ulong = 0xC020_AA00;
const UFFDIO_WRITEPROTECT: libc::c_ulong = 0xC018_AA06;
const REGISTER_MODE_WP: u64 = 2;
const WRITEPROTECT_MODE_WP: u64 = 1;

/// `linux/fs.h`.
const PAGEMAP_SCAN: libc::c_ulong = 0xC060_6610;
const PM_SCAN_WP_MATCHING: u64 = 1;
const PM_SCAN_CHECK_WPASYNC: u64 = 2;
const PAGE_IS_WRITTEN: u64 = 2;

#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
struct Register {
    start: u64,
    len: u64,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
struct WriteProtect {
    start: u64,
    len: u64,
    mode: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Run {
    start: u64,
    end: u64,
    categories: u64,
}

#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// Octets of a page.
#[expect(unsafe_code, reason = "a call of the C library")]
pub(crate) fn page_bytes() -> usize {
    // SAFETY: it takes a number and returns one.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).expect("a page has octets")
}

/// The pages that lie in a range of addresses as a whole.
pub(crate) fn whole_pages(range: &Range<usize>) -> Range<usize> {
    let page = page_bytes();
    let begin = range.start.next_multiple_of(page);
    begin..(range.end / page * page).max(begin)
}

/// What the kernel notes of this process.
#[derive(Debug)]
pub(crate) struct Written {
    userfaultfd: OwnedFd,
    pagemap: File,
}

impl Written {
    /// Nothing is watched yet.
    ///
    /// # Errors
    /// When the kernel cannot do it, or does not let this process.
    #[expect(unsafe_code, reason = "system calls")]
    pub(crate) fn new() -> io::Result<Self> {
        let flags = libc::c_long::from(libc::O_CLOEXEC | libc::O_NONBLOCK) | UFFD_USER_MODE_ONLY;
        // SAFETY: it takes flags and returns a descriptor.
        let made = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) };
        let made = libc::c_int::try_from(made).ok().filter(|made| *made >= 0);
        let made = made.ok_or_else(io::Error::last_os_error)?;
        // SAFETY: the descriptor was made just now and belongs to nobody else.
        let userfaultfd = unsafe { OwnedFd::from_raw_fd(made) };
        let mut api = Api { api: UFFD_API, features: FEATURES, ioctls: 0 };
        // SAFETY: the call reads and writes a structure of this form.
        checked(unsafe { libc::ioctl(userfaultfd.as_raw_fd(), UFFDIO_API, &raw mut api) })?;
        Ok(Self { userfaultfd, pagemap: File::open("/proc/self/pagemap")? })
    }

    /// Watches whole pages from now on.
    ///
    /// # Errors
    /// When the kernel does not do it for memory of this kind.
    #[expect(unsafe_code, reason = "system calls")]
    pub(crate) fn watch(&self, pages: &Range<usize>) -> io::Result<()> {
        let (start, len) = (pages.start as u64, pages.len() as u64);
        let mut register = Register { start, len, mode: REGISTER_MODE_WP, ioctls: 0 };
        let descriptor = self.userfaultfd.as_raw_fd();
        // SAFETY: the call reads and writes a structure of this form, and changes no content of the memory.
        checked(unsafe { libc::ioctl(descriptor, UFFDIO_REGISTER, &raw mut register) })?;
        let mut protect = WriteProtect { start, len, mode: WRITEPROTECT_MODE_WP };
        // SAFETY: as above; writes pass and are noted, as the mode was asked for.
        checked(unsafe { libc::ioctl(descriptor, UFFDIO_WRITEPROTECT, &raw mut protect) })
    }

    /// Gives every run of pages that were written since it was given last. A page that is written from then on is given
    /// again, so it may be read at any time after this. Nothing is allocated.
    ///
    /// # Errors
    /// When pages are not watched any more: the program has put other memory there.
    #[expect(unsafe_code, reason = "a system call")]
    pub(crate) fn take(
        &self,
        pages: &Range<usize>,
        mut give: impl FnMut(Range<usize>),
    ) -> io::Result<()> {
        let mut runs = [Run::default(); RUNS];
        let end = pages.end as u64;
        let mut start = pages.start as u64;
        while start < end {
            let mut scan = Scan {
                size: size_of::<Scan>() as u64,
                flags: PM_SCAN_WP_MATCHING | PM_SCAN_CHECK_WPASYNC,
                start,
                end,
                vec: runs.as_mut_ptr().expose_provenance() as u64,
                vec_len: RUNS as u64,
                category_mask: PAGE_IS_WRITTEN,
                return_mask: PAGE_IS_WRITTEN,
                ..Scan::default()
            };
            let descriptor = self.pagemap.as_raw_fd();
            // SAFETY: the call reads and writes a structure of this form, and writes at most so many runs.
            let count = unsafe { libc::ioctl(descriptor, PAGEMAP_SCAN, &raw mut scan) };
            let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
            let address = |at: u64| usize::try_from(at).expect("addresses fit");
            runs[..count].iter().for_each(|run| give(address(run.start)..address(run.end)));
            if scan.walk_end <= start {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            start = scan.walk_end;
        }
        Ok(())
    }
}

fn checked(outcome: libc::c_int) -> io::Result<()> {
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
