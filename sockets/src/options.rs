//! Options of sockets.
#![expect(unsafe_code, reason = "four options have no safe wrapper in `rustix`")]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd as _};

use meikyo_units::Bytes;
use rustix::io::Errno;
use rustix::net::sockopt::{
    set_socket_recv_buffer_size, set_socket_recv_buffer_size_force, set_socket_send_buffer_size,
    set_socket_send_buffer_size_force, socket_recv_buffer_size,
};

/// Lets a socket keep so much that nobody has read yet: beyond the system's limit
/// (`net.core.rmem_max`) with `CAP_NET_ADMIN`, else as much as that allows. The kernel counts its own
/// overhead and doubles what is asked for, see [`receive_buffer`].
///
/// # Errors
/// When the kernel refuses.
pub fn enlarge_receive_buffer(socket: impl AsFd, size: Bytes) -> io::Result<()> {
    let (socket, size) = (socket.as_fd(), capped(size));
    match set_socket_recv_buffer_size_force(socket, size) {
        Err(Errno::PERM) => Ok(set_socket_recv_buffer_size(socket, size)?),
        result => Ok(result?),
    }
}

/// Lets a socket keep so much that is not sent yet, as [`enlarge_receive_buffer`] does.
///
/// # Errors
/// When the kernel refuses.
pub fn enlarge_send_buffer(socket: impl AsFd, size: Bytes) -> io::Result<()> {
    let (socket, size) = (socket.as_fd(), capped(size));
    match set_socket_send_buffer_size_force(socket, size) {
        Err(Errno::PERM) => Ok(set_socket_send_buffer_size(socket, size)?),
        result => Ok(result?),
    }
}

/// The size of the receive buffer that the kernel granted, in its own accounting.
///
/// # Errors
/// When it is no socket.
pub fn receive_buffer(socket: impl AsFd) -> io::Result<Bytes> {
    Ok(Bytes::new(socket_recv_buffer_size(socket)? as u64))
}

/// The greatest size of a buffer that the kernel takes, or a smaller one.
fn capped(size: Bytes) -> usize {
    usize::try_from(size.get().min(i32::MAX.unsigned_abs().into())).expect("it has 31 bits")
}

/// Has every datagram stamped with the instant of its arrival, ns of the real-time clock.
///
/// # Errors
/// When the kernel refuses.
pub fn stamp_arrivals(socket: impl AsFd) -> io::Result<()> {
    switch_on(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS)
}

/// Has every datagram say how many the socket dropped before it.
///
/// # Errors
/// When the kernel refuses.
pub fn count_drops(socket: impl AsFd) -> io::Result<()> {
    switch_on(socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL)
}

/// Has every IPv4 datagram say to which address of this machine it was sent.
///
/// # Errors
/// When the kernel refuses.
pub fn tell_destinations(socket: impl AsFd) -> io::Result<()> {
    switch_on(socket, libc::IPPROTO_IP, libc::IP_PKTINFO)
}

/// Lets a TCP socket take no more octets while so many of those it has were not sent yet: what is
/// written later then waits with whoever writes it, where something more urgent can go first.
///
/// # Errors
/// When the kernel refuses.
///
/// # Panics
/// Never: a greater size is taken for the greatest that the kernel takes.
pub fn limit_unsent(socket: impl AsFd, size: Bytes) -> io::Result<()> {
    let size = libc::c_int::try_from(capped(size)).expect("it has 31 bits");
    set(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, size)
}

fn switch_on(socket: impl AsFd, level: libc::c_int, name: libc::c_int) -> io::Result<()> {
    set(socket, level, name, 1)
}

fn set(
    socket: impl AsFd,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let length = libc::socklen_t::try_from(size_of::<libc::c_int>()).expect("an int is small");
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the pointer and the length describe `value`, which lives across the call.
    let result =
        unsafe { libc::setsockopt(socket, level, name, (&raw const value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether root or the user of this process is at the other end of a Unix socket, as it was when it was
/// connected.
///
/// # Errors
/// When the kernel refuses.
pub fn is_of_own_user(socket: &std::os::unix::net::UnixStream) -> io::Result<bool> {
    let user = rustix::net::sockopt::socket_peercred(socket)?.uid;
    Ok(user.is_root() || user == rustix::process::geteuid())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Octets that a socket takes whose peer reads nothing.
    fn taken(limit: Option<Bytes>) -> usize {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (silent, _) = listener.accept().unwrap();
        set(&silent, libc::SOL_SOCKET, libc::SO_RCVBUF, 16 << 10).unwrap();
        set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUF, 2 << 20).unwrap();
        limit.iter().for_each(|limit| limit_unsent(&socket, *limit).unwrap());
        socket.set_nonblocking(true).unwrap();
        let mut taken = 0;
        loop {
            match socket.write(&[0; 1 << 10]) {
                Ok(count) => taken += count,
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                    return taken;
                }
            }
        }
    }

    #[test]
    fn what_is_not_sent_waits_with_whoever_writes_it() {
        let (all, limited) = (taken(None), taken(Some(Bytes::new(64 << 10))));
        assert!(limited * 2 < all, "{limited} of {all}");
    }
}
