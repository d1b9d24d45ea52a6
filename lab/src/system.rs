//! What the lab asks of the kernel: namespaces, mounts, modules, sockets, signals, power.
#![expect(unsafe_code, reason = "namespaces, mounts and raw sockets are asked of the kernel")]

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// `move_mount` and `mount_setattr` on everything below, too.
const AT_RECURSIVE: libc::c_uint = 0x8000;
const AT_EMPTY_PATH: libc::c_uint = 0x1000;
const MOUNT_ATTR_RDONLY: u64 = 1;
const MOUNT_ATTR_NOSUID: u64 = 2;
const MOUNT_ATTR_NODEV: u64 = 4;
const MOUNT_ATTR_IDMAP: u64 = 0x0010_0000;
/// Experimental protocols on one's own network (IEEE 802, clause 9.2.3).
pub(crate) const ETHERTYPE_LOCAL: u16 = 0x88b5;

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn check_long(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn check_size(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// A path as the kernel wants it.
pub(crate) fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)
}

/// Puts the calling thread into new namespaces, as `CLONE_NEWNET`.
pub(crate) fn unshare(namespaces: libc::c_int) -> io::Result<()> {
    // SAFETY: the call takes no pointer.
    check(unsafe { libc::unshare(namespaces) }).map(drop)
}

/// Puts the calling thread into a namespace.
pub(crate) fn enter(namespace: &impl AsFd, kind: libc::c_int) -> io::Result<()> {
    // SAFETY: the call takes no pointer, and the descriptor is open as long as it is borrowed.
    check(unsafe { libc::setns(namespace.as_fd().as_raw_fd(), kind) }).map(drop)
}

/// Says that one user and one group are root in the user namespace that the process of this directory of
/// `/proc` has just made.
pub(crate) fn map_own_ids(process: &File, user: u32, group: u32) -> io::Result<()> {
    let write = |name: &str, text: String| {
        let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::CLOEXEC;
        let file = rustix::fs::openat(process, name, flags, rustix::fs::Mode::empty())?;
        File::from(file).write_all(text.as_bytes())
    };
    write("setgroups", "deny".into())?;
    write("uid_map", format!("0 {user} 1"))?;
    write("gid_map", format!("0 {group} 1"))
}

/// A user namespace in which this user and this group are root; only for root.
pub(crate) fn user_namespace(user: u32, group: u32) -> io::Result<OwnedFd> {
    let (mut made, mut make) = UnixStream::pair()?;
    // SAFETY: the process that keeps a lab has one thread, so the child may do whatever it could.
    let child = check(unsafe { libc::fork() })?;
    if child == 0 {
        drop(made);
        let done = unshare(libc::CLONE_NEWUSER).and_then(|()| make.write_all(&[0]));
        // Until nobody needs it any more.
        let ended = done.and_then(|()| make.read(&mut [0]));
        // SAFETY: the call does not return, and nothing is to be run at the end of this process.
        unsafe { libc::_exit(i32::from(ended.is_err())) }
    }
    drop(make);
    let place = |name: &str| format!("/proc/{child}/{name}");
    let namespace = made.read_exact(&mut [0]).and_then(|()| {
        std::fs::write(place("uid_map"), format!("0 {user} 1"))?;
        std::fs::write(place("gid_map"), format!("0 {group} 1"))?;
        File::open(place("ns/user"))
    });
    drop(made);
    let mut status = 0;
    // SAFETY: `status` is live for the call.
    check(unsafe { libc::waitpid(child, &raw mut status, 0) })?;
    namespace.map(Into::into)
}

/// Becomes root of the user namespace that the calling process has entered.
pub(crate) fn become_root() -> io::Result<()> {
    // SAFETY: the call takes no pointer.
    check(unsafe { libc::setresgid(0, 0, 0) })?;
    // SAFETY: the call takes no pointer.
    check(unsafe { libc::setresuid(0, 0, 0) }).map(drop)
}

/// Leaves the keyring of the session, which whoever started the lab has as well.
pub(crate) fn leave_keyrings() -> io::Result<()> {
    const JOIN_SESSION_KEYRING: libc::c_long = 1;
    let none = std::ptr::null::<libc::c_char>();
    // SAFETY: a null pointer stands for a keyring without a name.
    match check_long(unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, none) }) {
        // A kernel without keyrings has none to leave, and a lab in a lab has left them.
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => Ok(()),
        result => result.map(drop),
    }
}

/// Restricts the calling process and all that come of it to what a filter allows (`seccomp(2)`).
pub(crate) fn filter_calls(program: &[libc::sock_filter]) -> io::Result<()> {
    let len = libc::c_ushort::try_from(program.len()).map_err(io::Error::other)?;
    // The kernel only reads it.
    let filter = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW);
    // SAFETY: the filter is live for the call, and of the length that it says.
    check_long(unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const filter) })
        .map(drop)
}

/// Executes the program of a file in place of this one, with three standard streams and what has number
/// 3; returns only if that fails.
pub(crate) fn execute(
    file: &OwnedFd,
    arguments: &[CString],
    environment: &[&CStr],
) -> io::Result<()> {
    let list = |texts: &mut dyn Iterator<Item = &CStr>| -> Vec<*const libc::c_char> {
        texts.map(CStr::as_ptr).chain([std::ptr::null()]).collect()
    };
    let arguments = list(&mut arguments.iter().map(CString::as_c_str));
    let environment = list(&mut environment.iter().copied());
    // SAFETY: both lists end with a null pointer, their texts with a zero, and all outlive the call.
    check(unsafe { libc::fexecve(file.as_raw_fd(), arguments.as_ptr(), environment.as_ptr()) })
        .map(drop)
}

/// Lets nothing be inherited beyond this number by the program that is executed next.
pub(crate) fn close_on_exec_beyond(number: libc::c_uint) -> io::Result<()> {
    let flags = libc::CLOSE_RANGE_CLOEXEC.cast_signed();
    // SAFETY: the call takes no pointer, and closes nothing by itself.
    check(unsafe { libc::close_range(number + 1, libc::c_uint::MAX, flags) }).map(drop)
}

/// Mounts; an empty text stands for "none".
pub(crate) fn mount(
    source: &CStr,
    target: &CStr,
    kind: &CStr,
    flags: libc::c_ulong,
    options: &CStr,
) -> io::Result<()> {
    let (source, target, kind) = (source.as_ptr(), target.as_ptr(), kind.as_ptr());
    // SAFETY: all four texts end with a zero and outlive the call.
    check(unsafe { libc::mount(source, target, kind, flags, options.as_ptr().cast()) }).map(drop)
}

/// What is changed about a mount (`mount_setattr(2)`).
#[repr(C)]
#[derive(Debug)]
pub(crate) struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

impl MountAttributes {
    /// Nobody writes, no device is one, no file gives its owner's rights to whoever runs it.
    pub(crate) const READ_ONLY: Self = Self::restricting(MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID);
    /// The same, but for writing.
    pub(crate) const WRITABLE: Self = Self::restricting(MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);

    const fn restricting(set: u64) -> Self {
        Self { set, clear: 0, propagation: 0, user_namespace: 0 }
    }
}

fn change_mount(
    at: impl AsFd,
    path: &CStr,
    flags: libc::c_uint,
    attributes: &MountAttributes,
) -> io::Result<()> {
    // SAFETY: the path ends with a zero, the attributes are live and of the size given.
    check_long(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            at.as_fd().as_raw_fd(),
            path.as_ptr(),
            flags,
            std::ptr::from_ref(attributes),
            size_of::<MountAttributes>(),
        )
    })
    .map(drop)
}

/// Changes a mount, and none that is mounted below it.
pub(crate) fn set_mount(path: &Path, attributes: &MountAttributes) -> io::Result<()> {
    change_mount(rustix::fs::CWD, &c_path(path)?, 0, attributes)
}

/// Changes a mount and everything that is mounted below it.
pub(crate) fn set_mounts_below(path: &Path, attributes: &MountAttributes) -> io::Result<()> {
    change_mount(rustix::fs::CWD, &c_path(path)?, AT_RECURSIVE, attributes)
}

/// Shows the files of a mount that is attached nowhere yet under the owners that a user namespace says.
pub(crate) fn map_owners(mount: &OwnedFd, namespace: &OwnedFd) -> io::Result<()> {
    let namespace = u64::try_from(namespace.as_raw_fd()).map_err(io::Error::other)?;
    let attributes = MountAttributes {
        user_namespace: namespace,
        ..MountAttributes::restricting(MOUNT_ATTR_IDMAP)
    };
    change_mount(mount, c"", AT_EMPTY_PATH, &attributes)
}

/// Loads a module of the kernel; one that is loaded already is fine.
pub(crate) fn load_module(file: &impl AsFd, options: &CStr) -> io::Result<()> {
    let file = file.as_fd().as_raw_fd();
    // SAFETY: the options are a text that ends with a zero.
    let result =
        check_long(unsafe { libc::syscall(libc::SYS_finit_module, file, options.as_ptr(), 0) });
    match result {
        Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
        result => result.map(drop),
    }
}

/// Makes a character device that everybody may use.
pub(crate) fn make_device(path: &Path, major: u32, minor: u32) -> io::Result<()> {
    let path = c_path(path)?;
    let number = libc::makedev(major, minor);
    // SAFETY: the path ends with a zero and outlives the call.
    check(unsafe { libc::mknod(path.as_ptr(), libc::S_IFCHR | 0o666, number) })?;
    // The mask of new files does not apply to `chmod`.
    // SAFETY: as above.
    check(unsafe { libc::chmod(path.as_ptr(), 0o666) }).map(drop)
}

/// Gives the calling process's UTS namespace a name.
pub(crate) fn set_host_name(name: &[u8]) -> io::Result<()> {
    // SAFETY: the bytes are live and of the length given.
    check(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) }).map(drop)
}

/// Makes a terminal a plain way for bytes. What is none is one already.
pub(crate) fn make_raw(terminal: &impl AsFd) -> io::Result<()> {
    let fd = terminal.as_fd().as_raw_fd();
    // SAFETY: an all-zero termios is a valid value of the plain C struct.
    let mut settings: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: `settings` is live for the call.
    if unsafe { libc::tcgetattr(fd, &raw mut settings) } != 0 {
        return Ok(());
    }
    // SAFETY: `settings` is live for the call.
    unsafe { libc::cfmakeraw(&raw mut settings) };
    // SAFETY: `settings` is live for the call.
    check(unsafe { libc::tcsetattr(fd, libc::TCSANOW, &raw const settings) }).map(drop)
}

/// Lets reads and writes return at once.
pub(crate) fn set_nonblocking(fd: &impl AsFd) -> io::Result<()> {
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: the call takes no pointer.
    let flags = check(unsafe { libc::fcntl(fd, libc::F_GETFL) })?;
    // SAFETY: the call takes no pointer.
    check(unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) }).map(drop)
}

/// Puts a descriptor at a number, where the program that is started next finds it.
///
/// For use between `fork` and `exec`.
pub(crate) fn hand_over(fd: RawFd, number: RawFd) -> io::Result<()> {
    if fd == number {
        // SAFETY: the call takes no pointer.
        return check(unsafe { libc::fcntl(fd, libc::F_SETFD, 0) }).map(drop);
    }
    // SAFETY: the call takes no pointer.
    check(unsafe { libc::dup2(fd, number) }).map(drop)
}

/// The descriptor with which this program was started, if it is open.
pub(crate) fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the call takes no pointer.
    check(unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: it is open, and whoever started this program left it to us.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Ends with the process that started it, whatever ends that. For use between `fork` and `exec`.
///
/// `parent` is what that process is called here: 0 if it is outside of a new PID namespace.
pub(crate) fn end_with_parent(parent: libc::pid_t) -> io::Result<()> {
    // SAFETY: the call takes no pointer.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
    // SAFETY: the call takes no pointer.
    let now = unsafe { libc::getppid() };
    if now == parent { Ok(()) } else { Err(io::Error::other("whoever started this has ended")) }
}

/// Makes the calling process the first of a session of its own, without a terminal.
pub(crate) fn new_session() -> io::Result<()> {
    // SAFETY: the call takes no pointer.
    check(unsafe { libc::setsid() }).map(drop)
}

/// Sends a signal to a group of processes; one that has ended is fine.
pub(crate) fn signal_group(leader: u32, signal: libc::c_int) {
    let Ok(leader) = libc::pid_t::try_from(leader) else { return };
    // SAFETY: the call takes no pointer. It fails only for groups that are gone.
    unsafe { libc::kill(-leader, signal) };
}

/// A handle of a process that cannot come to mean another one.
pub(crate) fn process_handle(id: u32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes no pointer.
    let fd = check_long(unsafe { libc::syscall(libc::SYS_pidfd_open, id, 0) })?;
    let fd = RawFd::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: the descriptor was just made and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sends a signal to the process of a handle.
pub(crate) fn signal_process(handle: &OwnedFd, signal: libc::c_int) -> io::Result<()> {
    let none = std::ptr::null::<libc::siginfo_t>();
    let fd = handle.as_raw_fd();
    // SAFETY: a null pointer stands for the usual information.
    check_long(unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, none, 0) }).map(drop)
}

/// A child that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Its process id.
    pub(crate) id: u32,
    /// Its exit code, or 128 and the signal that ended it, as shells say it.
    pub(crate) code: u8,
}

/// A child of the calling process that has ended, adopted ones included.
pub(crate) fn reap() -> Option<Ended> {
    let mut status = 0;
    // SAFETY: `status` is live for the call.
    let id = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    let id = u32::try_from(id).ok().filter(|&id| id != 0)?;
    let code = if libc::WIFSIGNALED(status) {
        128 + libc::WTERMSIG(status)
    } else {
        libc::WEXITSTATUS(status)
    };
    Some(Ended { id, code: u8::try_from(code).unwrap_or(u8::MAX) })
}

/// What one waits for at a descriptor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interest {
    /// The descriptor.
    pub(crate) fd: RawFd,
    /// Until something can be read, or the other side is gone.
    pub(crate) read: bool,
    /// Until something can be written.
    pub(crate) write: bool,
}

/// What happened at a descriptor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ready {
    /// A read returns.
    pub(crate) read: bool,
    /// A write returns.
    pub(crate) write: bool,
}

/// Waits until something happened or the milliseconds are over; −1 waits for ever.
pub(crate) fn wait(interests: &[Interest], milliseconds: i32) -> io::Result<Vec<Ready>> {
    let mut polls: Vec<libc::pollfd> = interests
        .iter()
        .map(|interest| libc::pollfd {
            fd: interest.fd,
            events: if interest.read { libc::POLLIN } else { 0 }
                | if interest.write { libc::POLLOUT } else { 0 },
            revents: 0,
        })
        .collect();
    let count = libc::nfds_t::try_from(polls.len()).map_err(io::Error::other)?;
    // SAFETY: the array is live for the call and of the length given.
    let result = check(unsafe { libc::poll(polls.as_mut_ptr(), count, milliseconds) });
    match result {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {
            return Ok(vec![Ready::default(); interests.len()]);
        }
        result => result?,
    };
    let gone = libc::POLLHUP | libc::POLLERR | libc::POLLNVAL;
    let ready = |poll: &libc::pollfd, interest: &Interest| Ready {
        read: interest.read && poll.revents & (libc::POLLIN | gone) != 0,
        write: interest.write && poll.revents & (libc::POLLOUT | gone) != 0,
    };
    Ok(polls.iter().zip(interests).map(|(poll, interest)| ready(poll, interest)).collect())
}

/// A routing socket of the namespace that the calling thread is in.
pub(crate) fn netlink_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: the call takes no pointer.
    let fd = check(unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) })?;
    // SAFETY: the descriptor was just made and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A socket for whole Ethernet frames at an interface of the namespace that the calling thread is
/// in, which receives those of one type and never waits.
pub(crate) fn packet_socket(interface: u32, ethertype: u16) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // Type 0 receives nothing until the socket is bound to its interface.
    // SAFETY: the call takes no pointer.
    let fd = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
    // SAFETY: the descriptor was just made and nobody else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let (address, length) = packet_address(interface, ethertype)?;
    // SAFETY: the address is live for the call and of the length given.
    check(unsafe { libc::bind(fd, (&raw const address).cast(), length) })?;
    Ok(socket)
}

fn packet_address(
    interface: u32,
    ethertype: u16,
) -> io::Result<(libc::sockaddr_ll, libc::socklen_t)> {
    // SAFETY: an all-zero sockaddr_ll is a valid value of the plain C struct.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = u16::try_from(libc::AF_PACKET).map_err(io::Error::other)?;
    address.sll_protocol = ethertype.to_be();
    address.sll_ifindex = i32::try_from(interface).map_err(io::Error::other)?;
    let length = libc::socklen_t::try_from(size_of_val(&address)).map_err(io::Error::other)?;
    Ok((address, length))
}

/// Sends a whole Ethernet frame, as one of the type that stands in it: rules of `tc` go by what the
/// sender says, and not by the bytes.
pub(crate) fn send_frame(socket: &OwnedFd, interface: u32, frame: &[u8]) -> io::Result<usize> {
    let ethertype = frame.get(12..).and_then(|rest| rest.first_chunk());
    let ethertype = ethertype.map_or(ETHERTYPE_LOCAL, |bytes| u16::from_be_bytes(*bytes));
    let (address, length) = packet_address(interface, ethertype)?;
    let (fd, data, address) = (socket.as_raw_fd(), frame.as_ptr().cast(), &raw const address);
    // SAFETY: frame and address are live for the call and of the lengths given.
    check_size(unsafe { libc::sendto(fd, data, frame.len(), 0, address.cast(), length) })
}

/// A socket for ICMP messages in the namespace that the calling thread is in, which never waits.
pub(crate) fn icmp_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the call takes no pointer.
    let fd = check(unsafe { libc::socket(libc::AF_INET, kind, libc::IPPROTO_ICMP) })?;
    // SAFETY: the descriptor was just made and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Lets a socket keep this much that nobody has read yet: beyond the system's limit in a machine of
/// its own, else as much as that allows.
pub(crate) fn set_receive_buffer(socket: &OwnedFd, bytes: i32) -> io::Result<()> {
    let length = libc::socklen_t::try_from(size_of::<i32>()).map_err(io::Error::other)?;
    let (fd, level, value) = (socket.as_raw_fd(), libc::SOL_SOCKET, (&raw const bytes).cast());
    let set = |name| {
        // SAFETY: the value is live for the call and of the length given.
        check(unsafe { libc::setsockopt(fd, level, name, value, length) }).map(drop)
    };
    match set(libc::SO_RCVBUFFORCE) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => set(libc::SO_RCVBUF),
        result => result,
    }
}

/// Sends an ICMP message to an Internet address.
pub(crate) fn send_to(socket: &OwnedFd, bytes: &[u8], to: std::net::Ipv4Addr) -> io::Result<usize> {
    // SAFETY: an all-zero sockaddr_in is a valid value of the plain C struct.
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    address.sin_family = u16::try_from(libc::AF_INET).map_err(io::Error::other)?;
    address.sin_addr.s_addr = u32::from(to).to_be();
    let length = libc::socklen_t::try_from(size_of_val(&address)).map_err(io::Error::other)?;
    let (fd, data) = (socket.as_raw_fd(), bytes.as_ptr().cast());
    // SAFETY: bytes and address are live for the call and of the lengths given.
    check_size(unsafe {
        libc::sendto(fd, data, bytes.len(), 0, (&raw const address).cast(), length)
    })
}

/// Sends a datagram.
pub(crate) fn send(socket: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the bytes are live for the call and of the length given.
    check_size(unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) })
}

/// Receives a datagram, and how long it is.
pub(crate) fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    let (fd, data) = (socket.as_raw_fd(), buffer.as_mut_ptr().cast());
    // SAFETY: the buffer is live for the call and of the length given.
    check_size(unsafe { libc::recv(fd, data, buffer.len(), 0) })
}

/// The features of a device that put several packets together or leave sums to the hardware:
/// `ETHTOOL_STXCSUM`, `SSG`, `STSO`, `SGSO` and `SGRO`.
const OFFLOADS: [u32; 5] = [0x17, 0x19, 0x1f, 0x24, 0x2c];

#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// Turns off what makes byte counts differ from what went over the wire.
///
/// `socket` is any socket of the device's namespace.
pub(crate) fn turn_offloads_off(socket: &OwnedFd, device: &str) -> io::Result<()> {
    for command in OFFLOADS {
        let mut value = EthtoolValue { command, data: 0 };
        // SAFETY: an all-zero ifreq is a valid value of the plain C struct.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (slot, &byte) in request.ifr_name.iter_mut().zip(device.as_bytes()).take(15) {
            *slot = byte.cast_signed();
        }
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        // SAFETY: request and value are live for the call, and the command takes such a value.
        let result =
            unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
        match check(result) {
            // A device without the feature has it off.
            Err(error) if error.raw_os_error() != Some(libc::EOPNOTSUPP) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// A file in memory that can be executed.
pub(crate) fn memory_file(name: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: the name ends with a zero and outlives the call.
    let fd = check(unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) })?;
    // SAFETY: the descriptor was just made and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A file in memory that holds these bytes, to be read from their beginning.
pub(crate) fn file_of(name: &CStr, bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(memory_file(name)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// Continues in a child, while the caller waits for it and ends as it does.
///
/// For use between `fork` and `exec`: after this, the child is the first process of a PID namespace
/// that was unshared before. The caller keeps no descriptor, as nobody is to wait for its end.
pub(crate) fn continue_as_first_process() -> io::Result<()> {
    // SAFETY: this process has one thread, and the child goes on as the caller would have.
    let child = check(unsafe { libc::fork() })?;
    if child == 0 {
        return end_with_parent(0);
    }
    // SAFETY: nothing of this process is used after this but the calls below.
    unsafe { libc::close_range(0, libc::c_uint::MAX, 0) };
    let mut status = 0;
    // SAFETY: `status` is live for the call.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } < 0 {
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            break;
        }
    }
    // SAFETY: the call does not return, and nothing is to be run at the end of this process.
    unsafe { libc::_exit(libc::WEXITSTATUS(status)) }
}

/// Everything that was written reaches what it was written to.
pub(crate) fn sync() {
    // SAFETY: the call takes no pointer.
    unsafe { libc::sync() };
}

/// Ends the machine.
pub(crate) fn power_off() {
    // SAFETY: the call takes no pointer; it does not return when it works.
    unsafe { libc::reboot(libc::RB_POWER_OFF) };
}

/// Who runs this process.
pub(crate) fn user() -> (u32, u32) {
    // SAFETY: the call takes no pointer and cannot fail.
    let user = unsafe { libc::geteuid() };
    // SAFETY: as above.
    (user, unsafe { libc::getegid() })
}
