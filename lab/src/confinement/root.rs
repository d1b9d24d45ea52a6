//! What a lab sees of the host's files: a root of its own, in memory, with the system's directories and
//! the program to be read, and one directory to be written.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::mount::{
    MountFlags, MoveMountFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, move_mount,
    unmount,
};

use super::doing;
use crate::system::{self, MountAttributes};

/// Where a kernel that is a process has its memory.
pub(super) const SCRATCH: &str = "/scratch";
/// Programs and libraries.
const SYSTEM: [&str; 8] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt"];
/// What programs have to know about the system that they are installed in, and nobody's secrets.
const SETTINGS: [&str; 52] = [
    "ImageMagick-6",
    "OpenCL",
    "alternatives",
    "bash.bashrc",
    "bash_completion.d",
    "bindresvport.blacklist",
    "ca-certificates",
    "ca-certificates.conf",
    "debian_version",
    "ethertypes",
    "fonts",
    "gai.conf",
    "glvnd",
    "group",
    "host.conf",
    "inputrc",
    "iproute2",
    "java-17-openjdk",
    "java-21-openjdk",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ld.so.preload",
    "libibverbs.d",
    "libnl-3",
    "locale.alias",
    "locale.conf",
    "localtime",
    "login.defs",
    "magic",
    "magic.mime",
    "mime.types",
    "mpich",
    "nanorc",
    "netconfig",
    "networks",
    "nsswitch.conf",
    "openmpi",
    "os-release",
    "passwd",
    "perl",
    "pki/tls",
    "profile",
    "profile.d",
    "protocols",
    "python3",
    "rpc",
    "services",
    "shells",
    "ssl/certs",
    "ssl/openssl.cnf",
    "vim",
];
/// Empty ones that the inside puts something in place of, or that programs expect.
const EMPTY: [&str; 9] =
    ["/dev", "/etc", "/proc", "/run", "/sys", "/tmp", "/var/lib", "/var/log", "/var/tmp"];
/// The same, but that users may have shown.
const HOMES: [&str; 2] = ["/home", "/root"];

/// What of the host a lab cannot be shown beside the system's directories: what it has of its own, and
/// what holds its own directory; and its own directory cannot be in what is shown.
pub(crate) fn clash(read: &[PathBuf], directory: &Path) -> Option<PathBuf> {
    let shown = SYSTEM.iter().map(|path| (*path).into()).chain(read.iter().cloned());
    let holds = |path: &PathBuf| directory.starts_with(path);
    let own = |path: &&PathBuf| **path == *"/" || EMPTY.iter().any(|own| Path::new(own) == *path);
    shown.into_iter().find(holds).or_else(|| read.iter().find(own).cloned())
}

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
];
/// Directories and copies of the lab's own files.
const ROOT_OPTIONS: &std::ffi::CStr = c"mode=755,size=256m";

/// What is to be seen.
#[derive(Debug)]
pub(super) struct View {
    /// Where the root is put together, on the host.
    pub(super) place: PathBuf,
    /// Directories and files that can be read beside the system's.
    pub(super) read: Vec<PathBuf>,
    /// Files that are copied: what the lab itself has to know.
    pub(super) copies: Vec<PathBuf>,
    /// The directory that can be written.
    pub(super) files: PathBuf,
    /// The memory of a kernel that is a process, in MiB; `None` is a lab in namespaces.
    pub(super) memory_mib: Option<u64>,
}

impl View {
    /// Puts the root together; `files` is the writable directory, if it is a mount already.
    pub(super) fn build(&self, files: Option<&OwnedFd>) -> io::Result<()> {
        let plain = MountFlags::NOSUID | MountFlags::NODEV;
        doing(&"mount a root", mount(c"root", &self.place, c"tmpfs", plain, ROOT_OPTIONS))?;
        for path in EMPTY {
            self.make_directory(Path::new(path))?;
        }
        for path in SYSTEM {
            self.show(Path::new(path))?;
        }
        for name in SETTINGS {
            self.show(&Path::new("/etc").join(name))?;
        }
        self.own_settings()?;
        for path in &self.read {
            self.show(path)?;
        }
        for path in HOMES {
            self.make_directory(Path::new(path))?;
        }
        for path in &self.copies {
            self.make_parent(path)?;
            doing(&path.display(), self.copy(path))?;
        }
        if self.memory_mib.is_none() {
            self.devices()?;
        }
        self.make_directory(&self.files)?;
        doing(
            &"restrict the root",
            system::set_mounts_below(&self.place, &MountAttributes::READ_ONLY),
        )?;
        let target = self.at(&self.files);
        let shown = match files {
            Some(tree) => {
                let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
                move_mount(tree, c"", CWD, &target, flags)
            }
            None => mount_bind(&self.files, &target),
        };
        doing(&self.files.display(), shown)?;
        doing(
            &"restrict the writable directory",
            system::set_mount(&target, &MountAttributes::WRITABLE),
        )?;
        if let Some(mib) = self.memory_mib {
            // Nobody else is in here, and it belongs to whoever mounts it.
            let options = format!("mode=777,size={}m,nr_inodes=64", mib + 16);
            let target = self.at(Path::new(SCRATCH));
            doing(
                &"mount memory",
                mount(c"memory", &target, c"tmpfs", plain, &*system::c_path(Path::new(&options))?),
            )?;
        } else {
            let flags = plain | MountFlags::NOEXEC;
            doing(
                &"mount /proc",
                mount(c"proc", self.at(Path::new("/proc")), c"proc", flags, None),
            )?;
            doing(&"mount /sys", mount(c"sys", self.at(Path::new("/sys")), c"sysfs", flags, None))?;
        }
        Ok(())
    }

    /// Makes it the root, and takes the host's away.
    pub(super) fn enter(&self) -> io::Result<()> {
        doing(&"enter the root", rustix::process::chdir(&self.place))?;
        // Both at one place: the old root is then on top of the new one, and taken off it.
        doing(&"change the root", rustix::process::pivot_root(c".", c"."))?;
        doing(&"leave the host's root", unmount(c".", UnmountFlags::DETACH))?;
        doing(&"enter the root", rustix::process::chdir(c"/"))
    }

    fn at(&self, path: &Path) -> PathBuf {
        self.place.join(path.strip_prefix("/").unwrap_or(path))
    }

    fn make_directory(&self, path: &Path) -> io::Result<()> {
        let mut builder = std::fs::DirBuilder::new();
        doing(&path.display(), builder.mode(0o755).recursive(true).create(self.at(path)))
    }

    fn make_parent(&self, path: &Path) -> io::Result<()> {
        path.parent().map_or(Ok(()), |parent| self.make_directory(parent))
    }

    fn copy(&self, path: &Path) -> io::Result<()> {
        let target = self.at(path);
        std::fs::copy(path, &target)?;
        // The directory that it is from is its owner's only; nobody else is in here.
        std::fs::set_permissions(target, std::fs::Permissions::from_mode(0o644))
    }

    /// Shows a directory or a file of the host where it is there; what is not there is left out.
    fn show(&self, path: &Path) -> io::Result<()> {
        let target = self.at(path);
        let Ok(what) = std::fs::symlink_metadata(path) else { return Ok(()) };
        if std::fs::symlink_metadata(&target).is_ok() {
            // A directory that is shown already has it.
            return Ok(());
        }
        self.make_parent(path)?;
        let shown = if what.is_symlink() {
            std::fs::read_link(path).and_then(|to| std::os::unix::fs::symlink(to, &target))
        } else {
            let made = if what.is_dir() {
                std::fs::create_dir(&target)
            } else {
                std::fs::File::create(&target).map(drop)
            };
            made.and_then(|()| Ok(mount_bind_recursive(path, &target)?))
        };
        doing(&path.display(), shown)
    }

    /// What every lab has of its own in `/etc` and `/var`.
    fn own_settings(&self) -> io::Result<()> {
        let link = |to: &str, path: &str| {
            let linked = std::os::unix::fs::symlink(to, self.at(Path::new(path)));
            doing(&path, linked)
        };
        link("/proc/mounts", "/etc/mtab")?;
        link("/run", "/var/run")?;
        // In place of it is what each host of the lab sees.
        doing(&"/etc/hosts", std::fs::write(self.at(Path::new("/etc/hosts")), ""))?;
        self.make_directory(Path::new(SCRATCH))
    }

    fn devices(&self) -> io::Result<()> {
        for name in DEVICES {
            self.show(&Path::new("/dev").join(name))?;
        }
        for (to, name) in DEVICE_LINKS {
            let linked = std::os::unix::fs::symlink(to, self.at(&Path::new("/dev").join(name)));
            doing(&name, linked)?;
        }
        self.make_directory(Path::new("/dev/pts"))?;
        self.make_directory(Path::new("/dev/shm"))
    }
}
