//! A program in place of the kernel of user-mode Linux: it tries every way out that it knows, and writes
//! down what it could do, a line for each, into the one directory that it should be able to write.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::BorrowedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{PermissionsExt as _, chroot};
use std::os::unix::net::{SocketAddr as UnixAddress, UnixStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rustix::fs::{CWD, FileType, Mode};
use rustix::mount::{MountFlags, mount, mount_remount};
use rustix::process::{Pid, test_kill_process};

/// Beyond what any of the processes has open.
const DESCRIPTORS_MAX: i32 = 200;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.iter().any(|argument| argument == "--version") {
        return version();
    }
    let directory = arguments.last().map(PathBuf::from).unwrap_or_default();
    match try_all(&directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "goes to the lab's console")]
            {
                eprintln!("{error}");
            }
            ExitCode::FAILURE
        }
    }
}

/// That of a kernel whose modules are installed.
#[expect(clippy::print_stdout, reason = "read by who chooses a kernel")]
fn version() -> ExitCode {
    let mut versions = fs::read_dir("/usr/lib/uml/modules").into_iter().flatten();
    match versions.next() {
        Some(Ok(version)) => {
            println!("{}", version.file_name().to_string_lossy());
            ExitCode::SUCCESS
        }
        _ => ExitCode::FAILURE,
    }
}

fn try_all(directory: &Path) -> io::Result<()> {
    let is_open = |&number: &i32| {
        // SAFETY: the descriptor is only asked about, and one that is not open is an answer as well.
        #[expect(unsafe_code, reason = "numbers are tried that may not be open")]
        let fd = unsafe { BorrowedFd::borrow_raw(number) };
        rustix::io::fcntl_getfd(fd).is_ok()
    };
    let open: Vec<i32> = (0..DESCRIPTORS_MAX).filter(is_open).collect();
    let orders: serde_json::Value =
        serde_json::from_slice(&fs::read(directory.join("orders.json"))?)?;
    let files = PathBuf::from(orders["files"].as_str().unwrap_or_default());
    let told: serde_json::Value = serde_json::from_slice(&fs::read(files.join("told"))?)?;
    let told = |key: &str| told[key].as_str().unwrap_or_default().to_owned();
    let mut report = File::create(files.join("report"))?;
    let mut note = |what: &str, done: bool| {
        writeln!(report, "{what}: {}", if done { "DONE" } else { "refused" })
    };
    note("read a program", fs::read("/usr/bin/env").is_ok())?;
    note("write a file", fs::write(files.join("written"), "by the lab").is_ok())?;
    // What a lab does not show is not there; nothing is opened.
    let victim = told("victim");
    for path in [&*victim, "/etc/fstab", "/etc/hostname", "/etc/dpkg", "/proc/1/root"] {
        note(&format!("see {path}"), fs::metadata(path).is_ok())?;
    }
    for name in ["lab.json", "keeper.json", "socket", "console"] {
        note(&format!("read the lab's {name}"), fs::metadata(directory.join(name)).is_ok())?;
    }
    for place in ["/", "/usr", "/etc", "/opt", "/tmp", "/dev"] {
        let file = Path::new(place).join("meikyo-escape");
        note(&format!("write to {place}"), File::create(file).is_ok())?;
    }
    note("list processes", fs::read_dir("/proc").is_ok_and(|mut list| list.next().is_some()))?;
    let keeper = told("process").parse().ok().and_then(Pid::from_raw);
    note("signal a process", keeper.is_some_and(|id| test_kill_process(id).is_ok()))?;
    let device = rustix::fs::makedev(1, 3);
    let made = |kind| rustix::fs::mknodat(CWD, files.join("device"), kind, Mode::RUSR, device);
    note("make a device", made(FileType::CharacterDevice).is_ok())?;
    let give = |mode| fs::set_permissions(files.join("written"), fs::Permissions::from_mode(mode));
    note("set a mode", give(0o755).is_ok())?;
    note("set a user id", give(0o4755).is_ok())?;
    note("set a group id", give(0o2755).is_ok())?;
    note("mount", mount(c"none", "/tmp", c"tmpfs", MountFlags::empty(), None).is_ok())?;
    note("mount anew", mount_remount("/usr", MountFlags::BIND, c"").is_ok())?;
    note("unmount", rustix::mount::unmount("/usr", rustix::mount::UnmountFlags::DETACH).is_ok())?;
    note("change the root", chroot("/usr").is_ok())?;
    note(
        "become root",
        rustix::thread::set_thread_uid(rustix::fs::Uid::ROOT).is_ok() && {
            let own = rustix::thread::capabilities(None)?;
            !(own.effective | own.permitted | own.inheritable).is_empty()
        },
    )?;
    note("loopback", TcpStream::connect(told("listener")).is_ok())?;
    let any = SocketAddr::from(([0, 0, 0, 0], 0));
    note("a socket of the network", UdpSocket::bind(any).is_ok())?;
    let abstract_name = UnixAddress::from_abstract_name(told("abstract"))?;
    note("an abstract socket", UnixStream::connect_addr(&abstract_name).is_ok())?;
    note("the keeper's socket", UnixStream::connect(directory.join("socket")).is_ok())?;
    let crash = rustix::process::getrlimit(rustix::process::Resource::Core).maximum;
    note("leave files of crashes", crash.is_none_or(|octets| octets > 1))?;
    writeln!(report, "open: {open:?}")?;
    raw_calls(&mut note_to(&report))
}

fn note_to(mut report: &File) -> impl FnMut(&str, bool) -> io::Result<()> {
    move |what, done| writeln!(report, "{what}: {}", if done { "DONE" } else { "refused" })
}

/// What no library offers without being asked for it in numbers.
fn raw_calls(note: &mut impl FnMut(&str, bool) -> io::Result<()>) -> io::Result<()> {
    let calls: [(&str, libc::c_long, [libc::c_long; 3]); 8] = [
        ("make a user namespace", libc::SYS_unshare, [0x1000_0000, 0, 0]),
        ("a socket to the hypervisor", libc::SYS_socket, [40, 1, 0]),
        ("a socket of routes", libc::SYS_socket, [16, 3, 0]),
        ("the session's keyring", libc::SYS_keyctl, [0, -3, 0]),
        ("load a module", libc::SYS_finit_module, [0, 0, 0]),
        ("a new ring of requests", libc::SYS_io_uring_setup, [1, 0, 0]),
        ("trace the first process", libc::SYS_ptrace, [16, 1, 0]),
        ("the kernel's messages", libc::SYS_syslog, [3, 0, 0]),
    ];
    for (what, number, [one, two, three]) in calls {
        // SAFETY: none of the calls is given a pointer, and each is to fail.
        #[expect(unsafe_code, reason = "the kernel is asked directly")]
        let result = unsafe { libc::syscall(number, one, two, three, 0) };
        note(what, result >= 0)?;
    }
    Ok(())
}
