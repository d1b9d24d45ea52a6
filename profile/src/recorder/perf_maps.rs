//! Perf maps of processes, read so that nobody who writes one can hold the profiler up or fill it.
//!
//! A map lies in a directory that everybody can write to. So it is read only when it is a regular file
//! of the process's own user and no link, and only up to a limit.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::regular::{Links, Regular};

/// Octets of a map that are read at most: those of large Java programs have some ten million.
pub(super) const MAP_BYTES_MAX: u64 = 64 << 20;

/// Octets of all maps of a recording that are read at most.
pub(super) const ALL_BYTES_MAX: u64 = 256 << 20;

/// The map of a process; `owner` is its user where that was seen before it ended.
pub(super) fn open(pid: u32, owner: Option<u32>) -> Option<File> {
    let status = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    let owner = user_in(&status).or(owner);
    // What ended before anybody looked may have left a map, which is believed when it is of this user.
    let owner = owner.unwrap_or_else(|| rustix::process::geteuid().as_raw());
    // In a container it lies in `/tmp` as the process sees it, by its number as the process knows it.
    let inside = numbers_in(&status, "NSpid:").last().copied().unwrap_or(pid);
    let seen = PathBuf::from(format!("/proc/{pid}/root/tmp/perf-{inside}.map"));
    let outside = PathBuf::from(format!("/tmp/perf-{pid}.map"));
    [seen, outside].iter().find_map(|path| of_user(path, owner))
}

/// A regular file of a user, opened.
fn of_user(path: &Path, user: u32) -> Option<File> {
    let file = Regular::at(path, Links::Refused).ok()?;
    if file.facts().uid() == user { file.open().ok() } else { None }
}

/// The user whom a process acts for; `None` when it has ended.
pub(super) fn user_of(pid: u32) -> Option<u32> {
    user_in(&fs::read(format!("/proc/{pid}/status")).ok()?)
}

/// The second user of a status is the one that files are made as.
fn user_in(status: &[u8]) -> Option<u32> {
    numbers_in(status, "Uid:").get(1).copied()
}

/// The numbers of a line of a status, which holds a name that need not be UTF-8.
fn numbers_in(status: &[u8], line: &str) -> Vec<u32> {
    let status = String::from_utf8_lossy(status);
    let numbers = status.lines().find_map(|it| it.strip_prefix(line));
    let numbers = numbers.unwrap_or_default().split_whitespace();
    numbers.filter_map(|number| number.parse().ok()).collect()
}

/// What was read of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReadMap {
    /// Octets.
    pub(super) octets: u64,
    /// Whether there are more.
    pub(super) is_cut: bool,
}

/// Hands on the lines of a map, of which `most` octets are read.
pub(super) fn lines(map: File, most: u64, mut take: impl FnMut(&str)) -> ReadMap {
    let mut map = BufReader::new(map.take(most));
    let (mut line, mut octets) = (Vec::new(), 0);
    // Of a map that cannot be read to its end, what was read so far is kept.
    while let Ok(read @ 1..) = map.read_until(b'\n', &mut line) {
        octets += read as u64;
        let is_partial = octets == most && line.last() != Some(&b'\n');
        if !is_partial {
            take(&String::from_utf8_lossy(&line));
        }
        line.clear();
    }
    let mut rest = map.into_inner().into_inner();
    let is_cut = octets == most && rest.read(&mut [0]).is_ok_and(|more| more > 0);
    ReadMap { octets, is_cut }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_read_up_to_its_limit_whatever_octets_it_has() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("map");
        fs::write(&path, b"1 2 a\n3 4 b\xff\n5 6 c\n").unwrap();
        let read = |most| {
            let mut found = Vec::new();
            let read = lines(File::open(&path).unwrap(), most, |line| {
                found.push(line.trim_end().to_owned());
            });
            (found, read.octets, read.is_cut)
        };
        let all = ["1 2 a", "3 4 b\u{fffd}", "5 6 c"].map(str::to_owned);
        assert_eq!(read(100), (all.to_vec(), 19, false));
        assert_eq!(read(19), (all.to_vec(), 19, false));
        // A line that is not whole would be another name.
        assert_eq!(read(17), (all[..2].to_vec(), 17, true));
        assert_eq!(read(0), (vec![], 0, true));
    }

    #[test]
    fn a_map_is_believed_only_as_a_file_of_the_user_and_no_link() {
        let directory = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| directory.path().join(name));
        fs::write(&file, "1 2 a\n").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let me = rustix::process::geteuid().as_raw();
        assert!(of_user(&file, me).is_some());
        assert!(of_user(&file, me + 1).is_none());
        assert!(of_user(&link, me).is_none());
        assert_eq!(user_of(std::process::id()), Some(me));
    }

    #[test]
    fn a_status_is_read_whatever_its_name_is() {
        let status = b"Name:\to\xffd\nUid:\t1\t2\t3\t4\nNSpid:\t4711\t8\n";
        assert_eq!(user_in(status), Some(2));
        assert_eq!(numbers_in(status, "NSpid:"), [4711, 8]);
    }
}
