//! The ring of one CPU: memory that the kernel writes records into and this side reads from.
//!
//! The kernel moves `head` behind whole records, this side moves `tail` behind what it has read; what
//! lies between belongs to the reader (`linux/perf_event.h`, `struct perf_event_mmap_page`).

#![expect(unsafe_code, reason = "the ring is memory that is shared with the kernel")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::records::{HEADER, length};

/// Where `data_head` and `data_tail` stand in the first page.
const HEAD_AT: usize = 1024;
const TAIL_AT: usize = 1032;

/// A mapped ring.
#[derive(Debug)]
pub(crate) struct Ring {
    base: NonNull<u8>,
    mapped: usize,
    page: usize,
    /// Octets of the records' part, a power of two.
    size: usize,
    /// A record that lies around the end of the ring, put together.
    whole: Vec<u8>,
}

impl Ring {
    /// Maps the ring of an event: at least `size` octets of records.
    pub(crate) fn map(event: &File, size: usize) -> io::Result<Self> {
        // SAFETY: asks for a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let page = usize::try_from(page).map_err(io::Error::other)?;
        let size = size.max(page).next_power_of_two();
        let mapped = page + size;
        // SAFETY: a new mapping of a descriptor at an address of the kernel's choice touches no memory
        // that anybody has.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at 0"))?;
        Ok(Self { base, mapped, page, size, whole: Vec::new() })
    }

    /// How far the kernel has written.
    pub(crate) fn head(&self) -> u64 {
        // Pairs with the kernel's barrier before it moves `head`: the records are there.
        self.position(HEAD_AT).load(Ordering::Acquire)
    }

    /// Octets of records that were not drained.
    pub(crate) fn unread(&self) -> u64 {
        self.head().saturating_sub(self.position(TAIL_AT).load(Ordering::Relaxed))
    }

    /// Hands on the records that the kernel has written up to a place, oldest first, and makes their room
    /// free.
    pub(crate) fn drain(&mut self, head: u64, take: impl FnMut(&[u8])) {
        let tail = self.walk(head, |_| true, take);
        // Pairs with the kernel's reading of `tail`: all of it has been read.
        self.position(TAIL_AT).store(tail, Ordering::Release);
    }

    /// Hands on those records whose header is wanted, and leaves all of them where they are.
    pub(crate) fn look_ahead(
        &mut self,
        is_wanted: impl Fn(&[u8]) -> bool,
        take: impl FnMut(&[u8]),
    ) {
        self.walk(self.head(), is_wanted, take);
    }

    /// Goes through the records up to a place; where it ended.
    fn walk(
        &mut self,
        head: u64,
        is_wanted: impl Fn(&[u8]) -> bool,
        mut take: impl FnMut(&[u8]),
    ) -> u64 {
        let mut tail = self.position(TAIL_AT).load(Ordering::Relaxed);
        let mut whole = std::mem::take(&mut self.whole);
        while tail < head {
            let there =
                usize::try_from(head - tail).map_or(self.size, |there| there.min(self.size));
            // Records begin at multiples of a word, as a header is long: none lies around the end.
            let Some(length) =
                length(self.octets(tail, HEADER.min(there)).0).filter(|&length| length <= there)
            else {
                // No kernel writes this; what is behind it cannot be told apart.
                tail = head;
                break;
            };
            let record = match self.octets(tail, length) {
                (record, []) => record,
                (first, rest) => {
                    whole.clear();
                    whole.extend_from_slice(first);
                    whole.extend_from_slice(rest);
                    &whole
                }
            };
            if is_wanted(record) {
                take(record);
            }
            tail += length as u64;
        }
        self.whole = whole;
        tail
    }

    /// `count` octets, which the kernel has written and does not touch before `tail` is moved: up to the end of the
    /// ring, and from its begin on.
    fn octets(&self, from: u64, count: usize) -> (&[u8], &[u8]) {
        let size = self.size as u64;
        let at = usize::try_from(from % size).expect("less than the size");
        let first = count.min(self.size - at);
        let part = |at: usize, count: usize| {
            // SAFETY: the octets lie in the mapping behind its first page, and the kernel leaves them
            // alone as long as they are between `tail` and `head`.
            unsafe {
                std::slice::from_raw_parts(self.base.as_ptr().wrapping_add(self.page + at), count)
            }
        };
        (part(at, first), part(0, count - first))
    }

    fn position(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the first page of the mapping has the number there, aligned to 8 octets, and both
        // sides access it atomically.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().wrapping_add(at).cast()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map`, and no reference into it is left.
        let result = unsafe { libc::munmap(self.base.as_ptr().cast(), self.mapped) };
        debug_assert_eq!(result, 0, "what was mapped can be unmapped");
    }
}
