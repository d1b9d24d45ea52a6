//! Datagrams in batches: up to [`BATCH`] a system call, with what the kernel says of each.
//!
//! Cost, measured on loopback: about 1 µs of kernel time per datagram, in either direction; the
//! calls themselves are shared by the batch. What the kernel is given points into memory of the batch,
//! is laid out once, and nothing is allocated when the buffers have grown.
#![expect(unsafe_code, reason = "sendmmsg(2) and recvmmsg(2) have no safe wrapper in `rustix`")]

use std::io;
use std::mem::zeroed;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd as _};

use meikyo_units::WallTime;

use crate::address::Address;
use crate::control::{self, Control, SPACE, Said, Source};

/// Most datagrams per system call. Larger batches save nothing measurable, and answers wait longer.
pub const BATCH: usize = 64;

/// What the kernel is told of one datagram: where its address, its octets and its control messages
/// are, the first and the last with their size.
fn header(
    name: (*mut Address, u32),
    octets: *mut libc::iovec,
    control: (*mut libc::c_void, usize),
) -> libc::mmsghdr {
    // SAFETY: mmsghdr is plain data; all zero bits are a valid value.
    let mut header: libc::mmsghdr = unsafe { zeroed() };
    (header.msg_hdr.msg_name, header.msg_hdr.msg_namelen) = (name.0.cast(), name.1);
    (header.msg_hdr.msg_iov, header.msg_hdr.msg_iovlen) = (octets, 1);
    (header.msg_hdr.msg_control, header.msg_hdr.msg_controllen) = control;
    header
}

/// Datagrams to be sent, one after the other in one buffer.
#[derive(Debug, Default)]
pub struct SendBatch {
    octets: Vec<u8>,
    ends: Vec<usize>,
    addresses: Vec<Address>,
    /// From which address each leaves, for all or for none.
    sources: Vec<Source>,
    /// What the kernel is given: pointers into the others, valid while `is_laid_out`.
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
    is_laid_out: bool,
}

impl SendBatch {
    /// The number of datagrams.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Where the octets of the next datagram are appended.
    #[inline]
    pub fn octets_mut(&mut self) -> &mut Vec<u8> {
        self.is_laid_out = false;
        &mut self.octets
    }

    /// Ends the datagram whose octets were appended since the last call.
    pub fn end_datagram(&mut self, to: &Address) {
        self.is_laid_out = false;
        self.ends.push(self.octets.len());
        self.addresses.push(*to);
    }

    /// As [`SendBatch::end_datagram`], leaving from an address of this machine.
    pub fn end_datagram_from(&mut self, from: Ipv4Addr, to: &Address) {
        self.end_datagram(to);
        self.sources.push(Source::new(from));
    }

    /// Empties the batch and keeps its buffers.
    pub fn clear(&mut self) {
        self.is_laid_out = false;
        self.octets.clear();
        self.ends.clear();
        self.addresses.clear();
        self.sources.clear();
    }

    /// The octets of one datagram.
    pub fn datagram(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.octets[start..self.ends[index]]
    }

    /// Where one datagram goes.
    pub fn address(&self, index: usize) -> SocketAddr {
        self.addresses[index].to_std()
    }

    /// Hands datagrams to the kernel from position `from` on, at most [`BATCH`]; returns how many it
    /// took.
    ///
    /// # Errors
    /// The kernel's error for the first of them; `WouldBlock` when its send buffer is full.
    ///
    /// # Panics
    /// When some datagrams of the batch have a source and others have none.
    pub fn send(&mut self, socket: impl AsFd, from: usize) -> io::Result<usize> {
        self.lay_out();
        let rest = &mut self.headers[from..];
        let count = libc::c_uint::try_from(rest.len().min(BATCH)).expect("a batch is small");
        let socket = socket.as_fd().as_raw_fd();
        // SAFETY: `count` headers from `rest` on are live. They point at addresses, vectors, octets
        // and control messages of this batch, none of which has changed or moved since they were laid
        // out; the kernel reads them and writes only the lengths in the headers.
        let sent = unsafe { libc::sendmmsg(socket, rest.as_mut_ptr(), count, 0) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// Writes down for the kernel where everything is.
    fn lay_out(&mut self) {
        if self.is_laid_out {
            return;
        }
        let all_or_none = self.sources.is_empty() || self.sources.len() == self.len();
        assert!(all_or_none, "either all datagrams of a batch have a source or none");
        self.vectors.clear();
        self.headers.clear();
        let mut start = 0;
        for &end in &self.ends {
            let octets = &self.octets[start..end];
            // sendmmsg does not write through this pointer; iovec has no const form.
            let base = octets.as_ptr().cast_mut().cast();
            self.vectors.push(libc::iovec { iov_base: base, iov_len: octets.len() });
            start = end;
        }
        for (index, (vector, address)) in self.vectors.iter_mut().zip(&self.addresses).enumerate() {
            let (name, length) = address.name();
            let control = self.sources.get(index).map_or((std::ptr::null_mut(), 0), |source| {
                (source.0.as_ptr().cast_mut().cast(), source.0.len())
            });
            self.headers.push(header((name.cast_mut(), length), vector, control));
        }
        self.is_laid_out = true;
    }
}

/// Received datagrams and what the kernel says about them.
#[derive(Debug)]
pub struct ReceiveBatch {
    /// The longest datagram that is read whole.
    longest: usize,
    octets: Box<[u8]>,
    names: Box<[Address]>,
    controls: Box<[Control]>,
    /// Point at the three above, which never move.
    vectors: Box<[libc::iovec]>,
    headers: Box<[libc::mmsghdr]>,
    facts: Box<[Facts]>,
    count: usize,
}

/// One received datagram.
#[derive(Debug)]
pub struct Datagram<'a> {
    /// Who sent it.
    pub from: SocketAddr,
    /// To which address of this machine; `None` unless that is switched on
    /// ([`crate::options::tell_destinations`]).
    pub to: Option<Ipv4Addr>,
    /// When the kernel received it; `None` unless that is switched on
    /// ([`crate::options::stamp_arrivals`]).
    pub received: Option<WallTime>,
    /// What it holds.
    pub octets: &'a mut [u8],
    /// Whether it was longer than what could be read.
    pub cut: bool,
    /// Datagrams that this socket dropped since it was opened, as known at this one's arrival; `None`
    /// before the first, or unless that is switched on ([`crate::options::count_drops`]).
    pub drops: Option<u32>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Facts {
    length: usize,
    cut: bool,
    said: Said,
}

impl ReceiveBatch {
    /// Room for [`BATCH`] datagrams of at most `longest` octets; longer ones are cut.
    ///
    /// # Panics
    /// When `longest` is 0.
    pub fn new(longest: usize) -> Self {
        assert!(longest > 0, "a datagram needs room");
        let vector = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        let empty =
            header((std::ptr::null_mut(), 0), std::ptr::null_mut(), (std::ptr::null_mut(), 0));
        let mut batch = Self {
            longest,
            octets: vec![0; BATCH * longest].into(),
            names: vec![Address::EMPTY; BATCH].into(),
            controls: vec![Control([0; SPACE]); BATCH].into(),
            vectors: vec![vector; BATCH].into(),
            headers: vec![empty; BATCH].into(),
            facts: vec![Facts::default(); BATCH].into(),
            count: BATCH,
        };
        for (vector, octets) in batch.vectors.iter_mut().zip(batch.octets.chunks_exact_mut(longest))
        {
            *vector = libc::iovec { iov_base: octets.as_mut_ptr().cast(), iov_len: longest };
        }
        let targets = batch.names.iter_mut().zip(&mut batch.controls).zip(&mut batch.vectors);
        for (place, ((name, control), vector)) in batch.headers.iter_mut().zip(targets) {
            let length = Address::EMPTY.name().1;
            let control = (control.0.as_mut_ptr().cast(), SPACE);
            *place = header((std::ptr::from_mut(name), length), vector, control);
        }
        batch
    }

    /// Reads waiting datagrams into the batch, replacing what it held; returns how many.
    ///
    /// # Errors
    /// `WouldBlock` when none is waiting, otherwise the kernel's error.
    ///
    /// # Panics
    /// When the kernel says that it wrote more than there is room for.
    pub fn receive(&mut self, socket: impl AsFd) -> io::Result<usize> {
        self.prepare();
        let most = libc::c_uint::try_from(BATCH).expect("a batch is small");
        let (socket, headers) = (socket.as_fd().as_raw_fd(), self.headers.as_mut_ptr());
        let (flags, timeout) = (libc::MSG_DONTWAIT, std::ptr::null_mut());
        // SAFETY: every header points at an address, a vector and control messages of the stated
        // sizes, which live as long as the batch, never move, and are not borrowed during the call.
        let count = unsafe { libc::recvmmsg(socket, headers, most, flags, timeout) };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        let all = self.headers.iter().zip(&self.controls).zip(&mut self.facts);
        for ((header, control), facts) in all.take(count) {
            let length = usize::try_from(header.msg_len).expect("32 bits");
            assert!(length <= self.longest, "the kernel writes no more than there is room for");
            let said = control::read(&control.0[..header.msg_hdr.msg_controllen.min(SPACE)]);
            let cut = header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
            *facts = Facts { length, cut, said };
        }
        self.count = count;
        Ok(count)
    }

    /// Empties the batch: the sizes that the kernel wrote into used headers become those of the
    /// buffers again.
    fn prepare(&mut self) {
        for header in self.headers.iter_mut().take(self.count) {
            header.msg_hdr.msg_namelen = Address::EMPTY.name().1;
            header.msg_hdr.msg_controllen = SPACE;
        }
        self.count = 0;
    }

    /// Datagrams that the socket dropped since it was opened, as known at the newest arrival that
    /// says it.
    pub fn drops(&self) -> Option<u32> {
        self.facts[..self.count].iter().rev().find_map(|facts| facts.said.drops)
    }

    /// The octets of the datagrams of the last receive, in the order of their arrival.
    pub fn octets(&self) -> impl Iterator<Item = &[u8]> + Clone {
        let all = self.octets.chunks_exact(self.longest).zip(&self.facts).take(self.count);
        all.map(|(octets, facts)| &octets[..facts.length])
    }

    /// The datagrams of the last receive, in the order of their arrival.
    pub fn datagrams(&mut self) -> impl Iterator<Item = Datagram<'_>> {
        self.octets
            .chunks_exact_mut(self.longest)
            .zip(&self.names)
            .zip(&self.facts)
            .take(self.count)
            .map(|((octets, name), facts)| Datagram {
                from: name.to_std(),
                to: facts.said.to,
                received: facts.said.received,
                octets: &mut octets[..facts.length],
                cut: facts.cut,
                drops: facts.said.drops,
            })
    }
}

#[cfg(test)]
mod tests;
