//! What was there before sampling began: threads with their names, and code that is mapped.
//!
//! The kernel tells of what is mapped and begun from then on; the rest is read from `/proc` once. What
//! may not be read there is counted: samples in it stay without names.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A thread that was there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Thread {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) name: String,
}

/// Code that is mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// The process; `None` for the kernel.
    pub(crate) pid: Option<u32>,
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) offset: u64,
    pub(crate) path: String,
    /// Hexadecimal.
    pub(crate) build_id: Option<String>,
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
    existing.mappings.extend(kernel());
    for &pid in pids {
        let process = PathBuf::from(format!("/proc/{pid}"));
        for tid in numbers_in(&process.join("task")) {
            // A thread can end while it is looked at.
            if let Ok(name) = fs::read_to_string(process.join(format!("task/{tid}/comm"))) {
                existing.threads.push(Thread { pid, tid, name: name.trim_end().to_owned() });
            }
        }
        match fs::read_to_string(process.join("maps")) {
            Ok(maps) => {
                let mappings = maps.lines().filter_map(|line| mapping(pid, line));
                existing.mappings.extend(mappings.map(|mut mapping| {
                    mapping.build_id = build_ids.of(&process.join("root"), &mapping.path);
                    mapping
                }));
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

/// Code in a line of `/proc/PID/maps`; `None` for what is not executable.
fn mapping(pid: u32, line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (begin, end) = words.next()?.split_once('-')?;
    let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
    let (address, end) = (hexadecimal(begin)?, hexadecimal(end)?);
    let is_code = words.next()?.as_bytes().get(2) == Some(&b'x');
    let offset = hexadecimal(words.next()?)?;
    let path = words.nth(2).unwrap_or_default().trim_start();
    let path = if path.is_empty() { "//anon" } else { path }.to_owned();
    let size = end.checked_sub(address)?;
    is_code.then_some(Mapping { pid: Some(pid), address, size, offset, path, build_id: None })
}

/// Build IDs of files, each read once.
#[derive(Debug, Default)]
struct BuildIds(BTreeMap<(u64, u64), Option<String>>);

impl BuildIds {
    /// That of a file as a process sees it, whose root is at `root`.
    fn of(&mut self, root: &Path, path: &str) -> Option<String> {
        let relative = path.strip_prefix('/').filter(|path| !path.starts_with('/'))?;
        let seen = root.join(relative);
        // Who may not look through its root sees the file where it lies in most cases.
        let (file, facts) = [seen, PathBuf::from(path)]
            .into_iter()
            .find_map(|file| fs::metadata(&file).ok().map(|facts| (file, facts)))?;
        let read = || build_id_of(&file);
        self.0.entry((facts.dev(), facts.ino())).or_insert_with(read).clone()
    }
}

/// The build ID of an ELF file, hexadecimal; `None` where it has none or cannot be read.
pub(crate) fn build_id_of(file: &Path) -> Option<String> {
    let id = blazesym::helper::read_elf_build_id(file).ok()??;
    Some(hexadecimal(&id))
}

/// Octets as the text of a build ID.
pub(crate) fn hexadecimal(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// What the kernel is called in `mappings`.
pub(crate) const KERNEL: &str = "[kernel]";

/// The kernel's half of all addresses.
fn kernel() -> Option<Mapping> {
    let address = 1 << 63;
    let (size, offset) = (u64::MAX - address, 0);
    let build_id = kernel_build_id();
    Some(Mapping { pid: None, address, size, offset, path: KERNEL.to_owned(), build_id })
}

/// The build ID of the kernel that runs.
pub(crate) fn kernel_build_id() -> Option<String> {
    gnu_build_id(&fs::read("/sys/kernel/notes").ok()?)
}

/// The build ID among ELF notes: lengths of name and description, type, name, description, each
/// padded to 4 octets.
fn gnu_build_id(mut notes: &[u8]) -> Option<String> {
    const GNU_BUILD_ID: u32 = 3;
    loop {
        let (head, rest) = notes.split_at_checked(12)?;
        let word = |at: usize| head[at..at + 4].try_into().ok().map(u32::from_le_bytes);
        let [name, description] = [word(0)?, word(4)?].map(|length| usize::try_from(length).ok());
        let (name, description) = (name?, description?);
        let (of_name, rest) = rest.split_at_checked(name.next_multiple_of(4))?;
        let (of_description, rest) = rest.split_at_checked(description.next_multiple_of(4))?;
        if word(8)? == GNU_BUILD_ID && of_name.starts_with(b"GNU\0") {
            return Some(hexadecimal(&of_description[..description]));
        }
        notes = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_found_among_lines_of_maps() {
        let line = "7f00d0028000-7f00d017d000 r-xp 00028000 fd:00 131 /usr/lib/x y/libc.so.6";
        let found = mapping(7, line).unwrap();
        assert_eq!((found.pid, found.address, found.size), (Some(7), 0x7f00_d002_8000, 0x15_5000));
        assert_eq!((found.offset, &*found.path), (0x2_8000, "/usr/lib/x y/libc.so.6"));
        assert_eq!(mapping(7, &line.replace("r-xp", "r--p")), None);
        let anonymous = mapping(7, "7f00d0028000-7f00d017d000 rwxp 00000000 00:00 0 ").unwrap();
        assert_eq!(anonymous.path, "//anon");
        assert_eq!(mapping(7, "nonsense"), None);
    }

    #[test]
    fn build_ids_stand_in_notes_behind_others() {
        let mut notes = Vec::new();
        for (name, kind, description) in
            [(&b"Linux\0"[..], 257_u32, &[1, 2, 3][..]), (b"GNU\0", 3, &[0xab, 0, 0x1f])]
        {
            for number in [name.len(), description.len()] {
                notes.extend_from_slice(&u32::try_from(number).unwrap().to_le_bytes());
            }
            notes.extend_from_slice(&kind.to_le_bytes());
            for octets in [name, description] {
                notes.extend_from_slice(octets);
                notes.resize(notes.len().next_multiple_of(4), 0);
            }
        }
        assert_eq!(gnu_build_id(&notes).as_deref(), Some("ab001f"));
        assert_eq!(gnu_build_id(&notes[..notes.len() - 1]), None);
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
