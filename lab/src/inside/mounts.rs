//! What is mounted inside: the lab's own view of the kernel, memory where programs
//! write, one directory of the host's to be written.

use std::io;
use std::path::Path;

use rustix::mount::{MountFlags, mount, mount_bind};

use super::{Orders, PROGRAMS_INSIDE};
use crate::system;

/// Directories that programs write to and that start empty.
const MEMORY: [&str; 4] = ["/run", "/tmp", "/var/tmp", "/dev/shm"];
/// Name, major and minor number (the kernel's list of devices).
const DEVICES: [(&str, u32, u32); 7] = [
    ("/dev/null", 1, 3),
    ("/dev/zero", 1, 5),
    ("/dev/full", 1, 7),
    ("/dev/random", 1, 8),
    ("/dev/urandom", 1, 9),
    ("/dev/tty", 5, 0),
    ("/dev/ptmx", 5, 2),
];

/// Something could not be mounted.
#[derive(Debug, thiserror::Error)]
#[error("cannot mount {what}")]
pub(crate) struct MountError {
    what: String,
    #[source]
    source: io::Error,
}

fn failed<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> MountError {
    let what = what.into();
    move |source| MountError { what, source: source.into() }
}

/// Devices of a machine of its own; a kernel that has mounted them itself is content.
pub(crate) fn devices() -> Result<(), MountError> {
    if Path::new("/dev/null").exists() && Path::new("/dev/ttyS0").exists() {
        return Ok(());
    }
    mount(c"dev", c"/dev", c"tmpfs", MountFlags::NOSUID, c"mode=755").map_err(failed("/dev"))?;
    for (path, major, minor) in DEVICES {
        system::make_device(Path::new(path), major, minor).map_err(failed(path))?;
    }
    Ok(())
}

/// Everything that is mounted before the network is set up.
pub(super) fn set_up(orders: &Orders) -> Result<(), MountError> {
    if orders.machine {
        mount(c"proc", c"/proc", c"proc", MountFlags::empty(), None).map_err(failed("/proc"))?;
        for path in ["/dev/pts", "/dev/shm"] {
            std::fs::create_dir_all(path).map_err(failed(path))?;
        }
    }
    // In namespaces, what is there shows the network from before.
    mount(c"sys", c"/sys", c"sysfs", MountFlags::empty(), None).map_err(failed("/sys"))?;
    let options = c"ptmxmode=666,mode=620";
    mount(c"devpts", c"/dev/pts", c"devpts", MountFlags::NOSUID, options)
        .map_err(failed("/dev/pts"))?;
    // Whatever hides them below: all stay reachable by descriptors that are opened before.
    let program = std::fs::File::open("/proc/self/exe").map_err(failed("the program"))?;
    let files = std::fs::File::open(&orders.files).map_err(failed("the lab's files"))?;
    let hidden = orders.read.iter().filter(|path| MEMORY.iter().any(|own| path.starts_with(own)));
    let hidden = hidden.map(|path| std::fs::File::open(path).map(|file| (path, file)));
    let hidden = hidden.collect::<Result<Vec<_>, _>>().map_err(failed("what is to be read"))?;
    for path in MEMORY.into_iter().filter(|path| Path::new(path).is_dir()) {
        let options = if path == "/run" { c"mode=755" } else { c"mode=1777" };
        mount(c"tmpfs", path, c"tmpfs", MountFlags::NOSUID, options).map_err(failed(path))?;
    }
    bind(&program, &Path::new(PROGRAMS_INSIDE).join("meikyo"))?;
    for (path, file) in &hidden {
        bind(file, path)?;
    }
    writable_files(orders, &files)?;
    std::env::set_current_dir(&orders.files).map_err(failed(orders.files.to_string_lossy()))
}

fn bind(file: &std::fs::File, target: &Path) -> Result<(), MountError> {
    use std::os::fd::AsRawFd as _;
    let what = target.to_string_lossy().into_owned();
    if let Some(parent) = target.parent() {
        std::fs::create_dir_all(parent).map_err(failed(what.clone()))?;
    }
    if file.metadata().is_ok_and(|what| what.is_dir()) {
        std::fs::create_dir_all(target).map_err(failed(what.clone()))?;
    } else if !target.exists() {
        std::fs::File::create(target).map_err(failed(what.clone()))?;
    }
    let source = format!("/proc/self/fd/{}", file.as_raw_fd());
    mount_bind(source, target).map_err(failed(what))
}

/// The one directory of the host that may be written, at the place where it is on the host.
fn writable_files(orders: &Orders, files: &std::fs::File) -> Result<(), MountError> {
    use std::os::fd::AsRawFd as _;
    let what = orders.files.to_string_lossy().into_owned();
    // In one of the memory directories its place is gone and has to be made anew.
    std::fs::create_dir_all(&orders.files).map_err(failed(what.clone()))?;
    if orders.machine {
        let place = system::c_path(&orders.files).map_err(failed(what.clone()))?;
        return mount(c"none", &*place, c"hostfs", MountFlags::empty(), &*place)
            .map_err(failed(what));
    }
    let source = format!("/proc/self/fd/{}", files.as_raw_fd());
    mount_bind(source, &orders.files).map_err(failed(what))
}
