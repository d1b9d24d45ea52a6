//! What was there before sampling began: threads with their names, and code that is mapped.
//!
//! The kernel tells of what is mapped and begun from then on; the rest is read from `/proc` once. What
//! may not be read there is counted: samples in it stay without names. Names are octets that anybody
//! chooses: what is no UTF-8 in them is kept as the replacement character.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::kernel::KernelFacts;
use crate::mapping::{Mapping, hexadecimal};
use crate::regular::{Links, Regular};

/// A thread that was there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Thread {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) name: String,
}

/// Everything that was there.
#[derive(Debug, Default)]
pub(crate) struct Existing {
    pub(crate) threads: Vec<Thread>,
    pub(crate) mappings: Vec<Mapping>,
    /// Processes whose mappings this process may not read.
    pub(crate) unreadable: u64,
}

/// Reads what there is of some processes, or of all, and of the kernel.
pub(crate) fn read(pids: Option<&[u32]>) -> Existing {
    let all;
    let pids = match pids {
        Some(pids) => pids,
        None => {
            all = numbers_in(Path::new("/proc"));
            &all
        }
    };
    let mut existing = Existing::default();
    let mut build_ids = BuildIds::default();
    existing.mappings.extend(KernelFacts::of_this_host().mappings());
    for &pid in pids {
        let process = PathBuf::from(format!("/proc/{pid}/task"));
        let tids = numbers_in(&process);
        for &tid in &tids {
            // A thread can end while it is looked at.
            if let Ok(name) = fs::read(process.join(format!("{tid}/comm"))) {
                let name = String::from_utf8_lossy(name.trim_ascii_end()).into_owned();
                existing.threads.push(Thread { pid, tid, name });
            }
        }
        match maps(&process, &tids) {
            Ok((root, maps)) => {
                existing.mappings.extend(mappings(pid, &maps, &root, &mut build_ids));
            }
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                existing.unreadable += 1;
            }
            // It has ended.
            Err(_) => {}
        }
    }
    existing
}

/// What a process has mapped, and its root, as one of its threads sees them: the first one tells nothing
/// any more once it has ended, though the process goes on.
fn maps(threads: &Path, tids: &[u32]) -> std::io::Result<(PathBuf, Vec<u8>)> {
    let mut found = Ok((PathBuf::new(), Vec::new()));
    for tid in tids {
        let thread = threads.join(tid.to_string());
        found = fs::read(thread.join("maps")).map(|maps| (thread.join("root"), maps));
        if found.as_ref().is_ok_and(|(_, maps)| !maps.is_empty()) {
            break;
        }
    }
    found
}

/// The threads of a process that there are.
pub(crate) fn threads_of(pid: u32) -> Vec<u32> {
    numbers_in(Path::new(&format!("/proc/{pid}/task")))
}

fn numbers_in(directory: &Path) -> Vec<u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// Code in `/proc/PID/maps`, with the build IDs of its files, which a process sees below `root`.
fn mappings(pid: u32, maps: &[u8], root: &Path, build_ids: &mut BuildIds) -> Vec<Mapping> {
    let lines = maps.split(|&octet| octet == b'\n').filter_map(|line| mapping(pid, line));
    let with_build_id = lines.map(|(mapping, path)| {
        let build_id = build_ids.build_id_of(root, Path::new(OsStr::from_bytes(path)));
        let inode = mapping.inode.filter(|_| build_id.is_none());
        Mapping { build_id, inode, ..mapping }
    });
    with_build_id.collect()
}

/// Code in a line of `/proc/PID/maps`, and its path; `None` for what is not executable.
fn mapping(pid: u32, line: &[u8]) -> Option<(Mapping, &[u8])> {
    let mut words = line.splitn(6, |&octet| octet == b' ');
    let mut word = || std::str::from_utf8(words.next()?).ok();
    let (begin, end) = word()?.split_once('-')?;
    let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
    let (address, end) = (hexadecimal(begin)?, hexadecimal(end)?);
    let is_code = word()?.as_bytes().get(2) == Some(&b'x');
    let offset = hexadecimal(word()?)?;
    word()?;
    let inode = word()?.parse().ok().filter(|&inode| inode != 0);
    let path = words.next().unwrap_or_default().trim_ascii_start();
    let path = if path.is_empty() { b"//anon" } else { path };
    let size = end.checked_sub(address)?;
    let name = String::from_utf8_lossy(path).into_owned();
    let mapping =
        Mapping { pid: Some(pid), address, size, offset, path: name, build_id: None, inode };
    is_code.then_some((mapping, path))
}

/// Build IDs of files, each read once.
#[derive(Debug, Default)]
struct BuildIds(BTreeMap<(u64, u64), Option<String>>);

impl BuildIds {
    /// That of a file as a process sees it, whose root is at `root`.
    fn build_id_of(&mut self, root: &Path, path: &Path) -> Option<String> {
        let relative = path.strip_prefix("/").ok()?;
        if path.as_os_str().as_bytes().starts_with(b"//") {
            return None;
        }
        let seen = root.join(relative);
        // Who may not look through its root sees the file where it lies in most cases.
        let mut files = [&*seen, path].into_iter();
        let file = files.find_map(|file| Regular::at(file, Links::Followed).ok())?;
        let key = (file.facts().dev(), file.facts().ino());
        self.0.entry(key).or_insert_with(|| build_id_in(&file)).clone()
    }
}

/// The file that a process has mapped, where it sees it or where its path leads to; `None` where no file that
/// is the same is there any more.
pub(crate) fn mapped_file(
    pid: u32,
    path: &str,
    is_the_same: impl Fn(&Regular) -> bool,
) -> Option<Regular> {
    let relative = path.strip_prefix('/')?;
    let of_process = Path::new("/proc").join(pid.to_string()).join("root").join(relative);
    let files = [of_process.as_path(), Path::new(path)].into_iter();
    files.filter_map(|path| Regular::at(path, Links::Followed).ok()).find(is_the_same)
}

/// The build ID of an ELF file, hexadecimal; `None` where it has none or cannot be read.
pub(crate) fn build_id_in(file: &Regular) -> Option<String> {
    let id = blazesym::helper::read_elf_build_id(&file.path()).ok()??;
    Some(hexadecimal(&id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_found_among_lines_of_maps() {
        let line = "7f00d0028000-7f00d017d000 r-xp 00028000 fd:00 131 /usr/lib/x y/libc.so.6";
        let (found, path) = mapping(7, line.as_bytes()).unwrap();
        assert_eq!((found.pid, found.address, found.size), (Some(7), 0x7f00_d002_8000, 0x15_5000));
        assert_eq!((found.offset, &*found.path), (0x2_8000, "/usr/lib/x y/libc.so.6"));
        assert_eq!((found.inode, path), (Some(131), found.path.as_bytes()));
        assert_eq!(mapping(7, line.replace("r-xp", "r--p").as_bytes()), None);
        let line = b"7f00d0028000-7f00d017d000 rwxp 00000000 00:00 0 ";
        let (anonymous, _) = mapping(7, line).unwrap();
        assert_eq!((&*anonymous.path, anonymous.inode), ("//anon", None));
        assert_eq!(mapping(7, b"nonsense"), None);
    }

    #[test]
    fn a_path_that_is_no_utf_8_hides_neither_itself_nor_others() {
        let directory = tempfile::tempdir().unwrap();
        let odd = directory.path().join(OsStr::from_bytes(b"od\xffd"));
        let own = std::env::current_exe().unwrap();
        fs::copy(&own, &odd).unwrap();
        let mut maps = b"1000-2000 r-xp 00000000 fd:00 131 ".to_vec();
        maps.extend_from_slice(odd.as_os_str().as_bytes());
        maps.extend_from_slice(b"\n3000-4000 r-xp 00000000 fd:00 132 /none\n");
        let found = mappings(7, &maps, Path::new("/"), &mut BuildIds::default());
        assert_eq!(found.len(), 2);
        assert!(found[0].path.ends_with("od\u{fffd}d"), "{}", found[0].path);
        let own = Regular::at(&own, Links::Followed).unwrap();
        assert_eq!(found[0].build_id, build_id_in(&own));
        assert_eq!((&*found[1].path, found[1].inode), ("/none", Some(132)));
    }

    #[test]
    fn what_lies_where_code_was_mapped_cannot_hold_the_reader_up() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("x (deleted)");
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        // Opened as it is, it would wait for a writer for ever.
        assert_eq!(BuildIds::default().build_id_of(Path::new("/"), &fifo), None);
    }

    #[test]
    fn this_process_is_there_with_its_own_code() {
        let me = std::process::id();
        let existing = read(Some(&[me]));
        assert!(existing.threads.iter().any(|thread| thread.pid == me && thread.tid == me));
        let own = std::env::current_exe().unwrap();
        let own = own.to_str().unwrap();
        assert!(existing.mappings.iter().any(|mapping| mapping.path == own));
        assert_eq!(existing.mappings[0].pid, None);
    }
}
