//! What the lab asks of the kernel: namespaces, mounts, modules, sockets, signals, power.
#![expect(unsafe_code, reason = "namespaces, mounts and raw sockets are asked of the kernel")]

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use meikyo_sockets::{PollFd, PollFlags};
use meikyo_spaces::process;
use meikyo_units::Nanos;
use rustix::fs::{CWD, FileType, MemfdFlags, Mode};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto};
use rustix::process::{Gid, Pid, Uid, WaitOptions};
use rustix::termios::OptionalActions;
use rustix::thread::UnshareFlags;

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

/// A path as the kernel wants it.
pub(crate) fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)
}

/// A user namespace in which this user and this group are root; only for root.
pub(crate) fn user_namespace(user: u32, group: u32) -> io::Result<OwnedFd> {
    let (mut made, mut make) = UnixStream::pair()?;
    // SAFETY: the process that keeps a lab has one thread, so the child may do whatever it could.
    let child = check(unsafe { libc::fork() })?;
    if child == 0 {
        drop(made);
        let done = process::unshare(UnshareFlags::NEWUSER).and_then(|()| make.write_all(&[0]));
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
    rustix::process::waitpid(Pid::from_raw(child), WaitOptions::empty())?;
    namespace.map(Into::into)
}

/// Becomes root of the user namespace that the calling process, which has one thread, has entered.
pub(crate) fn become_root() -> io::Result<()> {
    rustix::thread::set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT)?;
    Ok(rustix::thread::set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT)?)
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
    change_mount(CWD, &c_path(path)?, 0, attributes)
}

/// Changes a mount and everything that is mounted below it.
pub(crate) fn set_mounts_below(path: &Path, attributes: &MountAttributes) -> io::Result<()> {
    change_mount(CWD, &c_path(path)?, AT_RECURSIVE, attributes)
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
    match rustix::system::finit_module(file, options, 0) {
        Err(Errno::EXIST) => Ok(()),
        result => Ok(result?),
    }
}

/// Makes a character device that everybody may use.
pub(crate) fn make_device(path: &Path, major: u32, minor: u32) -> io::Result<()> {
    let (mode, number) = (Mode::from_raw_mode(0o666), rustix::fs::makedev(major, minor));
    rustix::fs::mknodat(CWD, path, FileType::CharacterDevice, mode, number)?;
    // The mask of new files does not apply to `chmod`.
    Ok(rustix::fs::chmod(path, mode)?)
}

/// Makes a terminal a plain way for bytes. What is none is one already.
pub(crate) fn make_raw(terminal: &impl AsFd) -> io::Result<()> {
    let Ok(mut settings) = rustix::termios::tcgetattr(terminal) else { return Ok(()) };
    settings.make_raw();
    Ok(rustix::termios::tcsetattr(terminal, OptionalActions::Now, &settings)?)
}

/// Lets reads and writes return at once.
pub(crate) fn set_nonblocking(fd: &impl AsFd) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(fd, true)?)
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

/// What one waits for at a descriptor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interest<'a> {
    /// The descriptor.
    pub(crate) fd: BorrowedFd<'a>,
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

/// Waits until something happened or the span is over; `None` waits for ever.
pub(crate) fn wait(interests: &[Interest<'_>], span: Option<Nanos>) -> io::Result<Vec<Ready>> {
    let flags = |is_wanted: bool, flags| if is_wanted { flags } else { PollFlags::empty() };
    let mut polls = Vec::with_capacity(interests.len());
    for interest in interests {
        let wanted = flags(interest.read, PollFlags::IN) | flags(interest.write, PollFlags::OUT);
        polls.push(PollFd::from_borrowed_fd(interest.fd, wanted));
    }
    meikyo_sockets::wait(&mut polls, span)?;
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    let ready = |(poll, interest): (&PollFd<'_>, &Interest<'_>)| Ready {
        read: interest.read && poll.revents().intersects(PollFlags::IN | gone),
        write: interest.write && poll.revents().intersects(PollFlags::OUT | gone),
    };
    Ok(polls.iter().zip(interests).map(ready).collect())
}

/// A socket for ICMP messages in the namespace that the calling thread is in, which never waits.
pub(crate) fn icmp_socket() -> io::Result<OwnedFd> {
    let (family, flags) = (AddressFamily::INET, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK);
    Ok(rustix::net::socket_with(family, SocketType::RAW, flags, Some(ipproto::ICMP))?)
}

/// Sends an ICMP message to an Internet address.
pub(crate) fn send_to(socket: &OwnedFd, bytes: &[u8], to: Ipv4Addr) -> io::Result<usize> {
    let to = std::net::SocketAddrV4::new(to, 0);
    Ok(rustix::net::sendto(socket, bytes, SendFlags::empty(), &to)?)
}

/// Receives a datagram, and how long it is.
pub(crate) fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    let (length, _) = rustix::net::recv(socket, buffer, RecvFlags::empty())?;
    Ok(length)
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
    Ok(rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)?)
}

/// A file in memory that holds these bytes, to be read from their beginning.
pub(crate) fn file_of(name: &CStr, bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(memory_file(name)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// Everything that was written reaches what it was written to.
pub(crate) fn sync() {
    rustix::fs::sync();
}

/// Ends the machine; returns only if that is refused.
pub(crate) fn power_off() -> io::Result<()> {
    Ok(rustix::system::reboot(rustix::system::RebootCommand::PowerOff)?)
}

/// Who runs this process.
pub(crate) fn user() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}
