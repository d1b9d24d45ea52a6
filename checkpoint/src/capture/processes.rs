//! The processes of a program on a host, from `/proc`: which they are, what they have open, and what of it cannot be
//! captured.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Where files are in memory, and a container has its own: they are part of a capture.
pub const SHARED_MEMORY: &str = "/dev/shm";

/// A regular file that a process has open to write.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Written {
    /// Where it is.
    pub path: PathBuf,
    /// Its octets when it was captured.
    pub bytes: u64,
    /// Whether what is written goes to its end, so that cutting it off there undoes it.
    pub is_appended: bool,
}

/// What CRIU cannot capture, or brings back nothing of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obstacle {
    /// Shared memory of System V.
    SystemV,
    /// What a person types at, whose other end is not in the program.
    Terminal,
    /// Watches of files.
    Inotify,
    /// Pages that the process serves itself.
    Userfaultfd,
    /// A queue to the kernel.
    IoUring,
    /// A network card that writes into memory past the kernel.
    Rdma,
    /// A graphics card.
    Gpu,
    /// Counters of the processor, or a program in the kernel.
    Tracing,
}

impl Obstacle {
    /// What it is, and what to do.
    pub const fn remedy(self) -> (&'static str, &'static str) {
        match self {
            Self::SystemV => (
                "shared memory of System V",
                "with MPICH: UCX_TLS=posix,self,tcp; other programs: use POSIX shared memory, or save arrays with the library",
            ),
            Self::Terminal => (
                "an open terminal",
                "redirect it, or start the program without: `checkpoint run --as-is` gives it none",
            ),
            Self::Inotify => {
                ("watches of files (inotify)", "switch the watching of files off in the program")
            }
            Self::Userfaultfd => (
                "pages that the program serves itself (userfaultfd)",
                "a program with libmeikyo_checkpoint is protected by it: leave --as-is out",
            ),
            Self::IoUring => ("a queue of io_uring", "have the program use plain reads and writes"),
            Self::Rdma => (
                "memory that a network card writes into (RDMA)",
                "use TCP: UCX_TLS=posix,self,tcp, or OMPI_MCA_btl=self,vader,tcp; or save arrays with the library",
            ),
            Self::Gpu => ("a graphics card", "save its arrays with the library"),
            Self::Tracing => {
                ("counters or programs in the kernel (perf, BPF)", "start the program without them")
            }
        }
    }

    fn of_descriptor(target: &str) -> Option<Self> {
        let begins = |with: &str| target.starts_with(with);
        if begins("/dev/pts/") || begins("/dev/tty") {
            Some(Self::Terminal)
        } else if begins("anon_inode:inotify") {
            Some(Self::Inotify)
        } else if begins("anon_inode:[userfaultfd]") {
            Some(Self::Userfaultfd)
        } else if begins("anon_inode:[io_uring]") {
            Some(Self::IoUring)
        } else if begins("anon_inode:[perf_event]") || begins("anon_inode:bpf") {
            Some(Self::Tracing)
        } else {
            Self::of_device(target)
        }
    }

    fn of_mapping(line: &str) -> Option<Self> {
        let path = &line[line.find('/')?..];
        if path.starts_with("/SYSV") { Some(Self::SystemV) } else { Self::of_device(path) }
    }

    fn of_device(path: &str) -> Option<Self> {
        if path.starts_with("/dev/infiniband/") {
            Some(Self::Rdma)
        } else if ["/dev/nvidia", "/dev/dri/", "/dev/kfd"].iter().any(|gpu| path.starts_with(gpu)) {
            Some(Self::Gpu)
        } else {
            None
        }
    }
}

/// Numbers and parents of all processes of this namespace.
fn parents() -> io::Result<BTreeMap<u32, u32>> {
    let mut parents = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(process) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        // It may have ended.
        let Ok(status) = fs::read_to_string(format!("/proc/{process}/stat")) else { continue };
        if let Some(parent) = parent_in(&status) {
            parents.insert(process, parent);
        }
    }
    Ok(parents)
}

/// The parent in a line of `/proc/PID/stat`: the second word behind the name, which may have any octets but ends with the last
/// parenthesis.
fn parent_in(status: &str) -> Option<u32> {
    let (_, behind) = status.rsplit_once(')')?;
    behind.split_whitespace().nth(1)?.parse().ok()
}

/// The arguments of all processes of this namespace, each with its number; one that has ended has none.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn arguments() -> io::Result<Vec<(u32, Vec<String>)>> {
    let of = |process: u32| {
        let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        let words = line.split(|&octet| octet == 0);
        (process, words.map(|word| String::from_utf8_lossy(word).into_owned()).collect())
    };
    Ok(parents()?.into_keys().map(of).collect())
}

/// Children of the first process whose arguments behind the program's name begin with these words.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn roots(words: &[&str]) -> io::Result<Vec<u32>> {
    let is_root = |process: u32| {
        let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        let mut own = line.split(|&octet| octet == 0).skip(1);
        words.iter().all(|word| own.next() == Some(word.as_bytes()))
    };
    let children = parents()?.into_iter().filter(|&(_, parent)| parent == 1);
    Ok(children.map(|(process, _)| process).filter(|&process| is_root(process)).collect())
}

/// Processes and all that descend from them, numbers ascending.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn with_descendants(roots: &[u32]) -> io::Result<BTreeSet<u32>> {
    let parents = parents()?;
    let mut found: BTreeSet<u32> =
        roots.iter().copied().filter(|root| parents.contains_key(root)).collect();
    loop {
        let more: Vec<u32> = parents
            .iter()
            .filter(|(process, parent)| found.contains(parent) && !found.contains(process))
            .map(|(&process, _)| process)
            .collect();
        if more.is_empty() {
            return Ok(found);
        }
        found.extend(more);
    }
}

/// Regular files that processes have open to write, but those in shared memory and those that nobody else can open.
pub fn written(processes: &BTreeSet<u32>) -> Vec<Written> {
    let mut found = BTreeSet::new();
    for process in processes {
        for (descriptor, target) in descriptors(*process) {
            if target.starts_with(SHARED_MEMORY) {
                continue;
            }
            let Ok(data) = fs::metadata(&descriptor) else { continue };
            if !data.is_file() || data.nlink() == 0 {
                continue;
            }
            let number = descriptor.file_name().unwrap_or_default();
            let info = Path::new("/proc").join(process.to_string()).join("fdinfo").join(number);
            let Some((position, flags)) =
                fs::read_to_string(info).ok().as_deref().and_then(position_and_flags)
            else {
                continue;
            };
            if flags & ACCESS_MODE == 0 {
                continue;
            }
            let is_appended = flags & APPEND != 0 || position == data.len();
            found.insert(Written { path: target, bytes: data.len(), is_appended });
        }
    }
    found.into_iter().collect()
}

/// How a file was opened: `O_ACCMODE` and `O_APPEND`.
const ACCESS_MODE: u64 = 0o3;
const APPEND: u64 = 0o2000;

/// What `/proc/PID/fdinfo/FD` says first.
fn position_and_flags(info: &str) -> Option<(u64, u64)> {
    let value = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    Some((value("pos:")?.parse().ok()?, u64::from_str_radix(value("flags:")?, 8).ok()?))
}

/// Descriptors of a process, and what they are of; none of one that has ended.
fn descriptors(process: u32) -> Vec<(PathBuf, PathBuf)> {
    let entries = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.path(), fs::read_link(entry.path()).ok()?))).collect()
}

/// What processes have that cannot be captured, each with one that has it.
pub fn obstacles(processes: &BTreeSet<u32>) -> BTreeMap<Obstacle, u32> {
    let mut found = BTreeMap::new();
    let mut has_terminals = false;
    for &process in processes {
        let targets: Vec<PathBuf> =
            descriptors(process).into_iter().map(|(_, target)| target).collect();
        // A terminal whose other end is in the program, too, is captured with it: Open MPI gives its ranks such.
        has_terminals |= targets.iter().any(|target| target.ends_with("ptmx"));
        let of_descriptors =
            targets.iter().filter_map(|target| Obstacle::of_descriptor(&target.to_string_lossy()));
        let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
        for obstacle in of_descriptors.chain(maps.lines().filter_map(Obstacle::of_mapping)) {
            found.entry(obstacle).or_insert(process);
        }
    }
    if has_terminals {
        found.remove(&Obstacle::Terminal);
    }
    found
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, SeekFrom, Write as _};

    use super::*;

    #[test]
    fn a_parent_is_found_behind_any_name() {
        assert_eq!(parent_in("12 (sh) S 7 12 12 0"), Some(7));
        assert_eq!(parent_in("12 (a) b) (c) R 1 2 3"), Some(1));
        assert_eq!(parent_in("12 (a"), None);
    }

    #[test]
    fn what_a_process_writes_is_told_with_whether_it_is_appended() {
        let home = tempfile::tempdir().expect("a directory");
        let path = |name: &str| home.path().join(name);
        let open = |name: &str, append: bool| {
            let mut options = fs::OpenOptions::new();
            let file = options.create(true).append(append).write(true).open(path(name));
            let mut file = file.expect("a file");
            file.write_all(b"octets").expect("there is room");
            file
        };
        let (_log, _out, mut inside) = (open("log", true), open("out", false), open("in", false));
        inside.seek(SeekFrom::Start(2)).expect("a file has places");
        let _read = fs::File::open(path("log")).expect("it is there");
        let own = BTreeSet::from([std::process::id()]);
        let found: Vec<Written> =
            written(&own).into_iter().filter(|file| file.path.starts_with(home.path())).collect();
        let expected = [("in", false), ("log", true), ("out", true)];
        let expected =
            expected.map(|(name, is_appended)| Written { path: path(name), bytes: 6, is_appended });
        assert_eq!(found, expected);
    }

    #[test]
    fn what_cannot_be_captured_is_recognised() {
        let of = Obstacle::of_descriptor;
        assert_eq!(of("/dev/pts/3"), Some(Obstacle::Terminal));
        assert_eq!(of("anon_inode:inotify"), Some(Obstacle::Inotify));
        assert_eq!(of("/dev/infiniband/uverbs0"), Some(Obstacle::Rdma));
        assert_eq!(of("/dev/nvidiactl"), Some(Obstacle::Gpu));
        assert_eq!(of("/dev/null"), None);
        assert_eq!(of("socket:[12]"), None);
        let mapping =
            "7f00-7f01 rw-s 00000000 00:01 5                          /SYSV00000000 (deleted)";
        assert_eq!(Obstacle::of_mapping(mapping), Some(Obstacle::SystemV));
        assert_eq!(Obstacle::of_mapping("7f00-7f01 rw-p 00000000 00:00 0 [heap]"), None);
    }

    #[test]
    fn descendants_are_found_with_those_that_they_descend_from() {
        let (own, parent) = (std::process::id(), std::os::unix::process::parent_id());
        let found = with_descendants(&[parent]).expect("/proc is there");
        assert!(found.contains(&parent) && found.contains(&own));
        assert!(with_descendants(&[u32::MAX]).expect("/proc is there").is_empty());
    }
}
