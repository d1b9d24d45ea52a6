//! Perf maps of processes, read so that nobody who writes one can hold the profiler up or fill it.
//!
//! A map lies in a directory that everybody can write to. So it is read only when it is a regular file
//! of the process's own user and no link, and only up to a limit. Maps only grow: of one that was read
//! before, what is new is read.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::existing::threads_of;
use crate::records::Ids;
use crate::regular::{Links, Regular};

/// Octets of a map that are read at most: those of large Java programs have some ten million.
const MAP_BYTES_MAX: u64 = 64 << 20;

/// Octets of maps that are read at once at most, but at the end; the rest is read the next time.
const ONCE_BYTES_MAX: u64 = 4 << 20;
const END_BYTES_MAX: u64 = 256 << 20;

/// Which maps are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// Those of processes that have ended since.
    Ended,
    /// All of them.
    All,
    /// All of them, and for the last time.
    Last,
}

/// The maps of processes that may have one.
#[derive(Debug, Default)]
pub(super) struct PerfMaps(BTreeMap<u32, Followed>);

/// How far a map was read.
#[derive(Debug, Default)]
struct Followed {
    /// The process's user, where that was seen before it ended.
    owner: Option<u32>,
    read: u64,
    is_cut: bool,
    /// Whether its first thread has ended: others may go on, and no process ends before.
    has_lost_first: bool,
    has_ended: bool,
}

/// A map that is looked at.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) pid: u32,
    owner: Option<u32>,
    from: u64,
    most: u64,
    /// Whether a line without its end is one, since nothing more comes.
    is_last: bool,
}

impl PerfMaps {
    /// A process has code that nothing names.
    pub(super) fn follow(&mut self, pid: u32) {
        let followed = self.0.entry(pid).or_default();
        followed.has_ended = false;
        followed.owner = followed.owner.or_else(|| user_of(pid));
    }

    /// A thread has ended, and with the last one its process.
    pub(super) fn thread_ended(&mut self, ids: Ids) {
        if let Some(followed) = self.0.get_mut(&ids.pid) {
            followed.has_lost_first |= ids.tid == ids.pid;
            // Looking costs more than all else that is done for a thread.
            followed.has_ended = followed.has_lost_first && has_ended(ids.pid);
        }
    }

    /// Maps are read from their begin again.
    pub(super) fn forget_read(&mut self) {
        self.0.values_mut().for_each(|followed| {
            (followed.read, followed.is_cut) = (0, false);
        });
    }

    /// Hands the maps that are to be read to `read`.
    pub(super) fn look(&mut self, which: Which, mut read: impl FnMut(&Look) -> ReadMap) {
        let mut left = if which == Which::Last { END_BYTES_MAX } else { ONCE_BYTES_MAX };
        self.0.retain(|&pid, followed| {
            if which == Which::Ended && !followed.has_ended {
                return true;
            }
            // Who ended while nobody told of it is noticed here.
            followed.has_ended |= has_ended(pid);
            let of_map = MAP_BYTES_MAX - followed.read.min(MAP_BYTES_MAX);
            let is_last = followed.has_ended || which == Which::Last;
            let most = left.min(of_map);
            let (owner, from) = (followed.owner, followed.read);
            let done = read(&Look { pid, owner, from, most, is_last });
            left -= done.octets.min(left);
            followed.read = done.from + done.octets;
            !followed.has_ended || (done.octets == most && most < of_map)
        });
    }

    #[cfg(test)]
    pub(super) fn processes(&self) -> impl Iterator<Item = u32> {
        self.0.keys().copied()
    }
}

impl Look {
    /// Hands on the lines that are new.
    pub(super) fn read(&self, take: impl FnMut(&str)) -> ReadMap {
        let nothing = ReadMap { from: self.from, octets: 0, is_cut: false };
        open(self.pid, self.owner).map_or(nothing, |map| {
            // One that is shorter than what was read is another one.
            let length = map.metadata().map_or(0, |facts| facts.len());
            let from = if length < self.from { 0 } else { self.from };
            lines(map, [from, self.most], self.is_last, take)
        })
    }
}

/// The map of a process; `owner` is its user where that was seen before it ended.
fn open(pid: u32, owner: Option<u32>) -> Option<File> {
    let status = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    let owner = user_in(&status).or(owner);
    // What ended before anybody looked may have left a map, which is believed when it is of this user.
    let owner = owner.unwrap_or_else(|| rustix::process::geteuid().as_raw());
    // In a container it lies in `/tmp` as the process sees it, by its number as the process knows it.
    let inside = numbers_in(&status, "NSpid:").last().copied().unwrap_or(pid);
    let process = PathBuf::from(format!("/proc/{pid}"));
    let seen = process.join("root/tmp").join(format!("perf-{inside}.map"));
    let outside = PathBuf::from(format!("/tmp/perf-{pid}.map"));
    [seen, outside].iter().find_map(|path| of_user(path, owner))
}

/// A regular file of a user, opened.
fn of_user(path: &Path, user: u32) -> Option<File> {
    let file = Regular::at(path, Links::Refused).ok()?;
    if file.facts().uid() == user { file.open().ok() } else { None }
}

/// Whether a process has ended, also when nobody has waited for it yet.
fn has_ended(pid: u32) -> bool {
    let status = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let is_zombie = status.lines().any(|line| line.starts_with("State:\tZ"));
    // A first thread that has ended is one too, as long as others go on.
    status.is_empty() || (is_zombie && threads_of(pid).len() <= 1)
}

/// The user whom a process acts for; `None` when it has ended.
fn user_of(pid: u32) -> Option<u32> {
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
    /// Where reading began.
    from: u64,
    /// Octets of the lines that were handed on.
    octets: u64,
    /// Whether the map is longer than maps are read.
    pub(super) is_cut: bool,
}

/// Hands on lines of a map from an octet on, of which a number of octets are read.
fn lines(map: File, [from, most]: [u64; 2], is_last: bool, mut take: impl FnMut(&str)) -> ReadMap {
    let mut read = ReadMap { from, octets: 0, is_cut: false };
    let mut map = map;
    if map.seek(SeekFrom::Start(from)).is_err() {
        return read;
    }
    let mut map = BufReader::new(map.take(most));
    let (mut line, mut seen) = (Vec::new(), 0);
    // Of a map that cannot be read to its end, what was read so far is kept.
    while let Ok(count @ 1..) = map.read_until(b'\n', &mut line) {
        seen += count as u64;
        // A line that is not whole would be another name.
        if line.last() != Some(&b'\n') && (!is_last || seen == most) {
            break;
        }
        read.octets = seen;
        take(&String::from_utf8_lossy(&line));
        line.clear();
    }
    let mut rest = map.into_inner().into_inner();
    let is_whole = from + most >= MAP_BYTES_MAX;
    read.is_cut = is_whole && seen == most && rest.read(&mut [0]).is_ok_and(|more| more > 0);
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_read_up_to_a_limit_and_from_there_on_whatever_octets_it_has() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("map");
        fs::write(&path, b"1 2 a\n3 4 b\xff\n5 6 c").unwrap();
        let read = |range, is_last| {
            let mut found = Vec::new();
            let read = lines(File::open(&path).unwrap(), range, is_last, |line| {
                found.push(line.trim_end().to_owned());
            });
            (found, read.octets)
        };
        let all = ["1 2 a", "3 4 b\u{fffd}", "5 6 c"].map(str::to_owned);
        assert_eq!(read([0, 100], true), (all.to_vec(), 18));
        // A line that is not whole would be another name; it is read the next time.
        assert_eq!(read([0, 100], false), (all[..2].to_vec(), 13));
        assert_eq!(read([0, 15], true), (all[..2].to_vec(), 13));
        assert_eq!(read([6, 7], false), (all[1..2].to_vec(), 7));
        assert_eq!(read([13, 100], true), (all[2..].to_vec(), 5));
        assert_eq!(read([0, 0], true), (vec![], 0));
    }

    #[test]
    fn maps_are_followed_while_they_grow_and_forgotten_with_their_process() {
        let mut maps = PerfMaps::default();
        let me = std::process::id();
        // Nobody has that number.
        let gone = 4_194_305;
        maps.follow(me);
        maps.follow(gone);
        let mut looks = |which, octets| {
            let mut seen = Vec::new();
            maps.look(which, |look| {
                seen.push((look.pid, look.from, look.is_last));
                ReadMap { from: look.from, octets, is_cut: false }
            });
            seen
        };
        assert_eq!(looks(Which::Ended, 10), []);
        assert_eq!(looks(Which::All, 10), [(me, 0, false), (gone, 0, true)]);
        assert_eq!(looks(Which::All, ONCE_BYTES_MAX), [(me, 10, false)]);
        assert_eq!(looks(Which::Last, 0), [(me, 10 + ONCE_BYTES_MAX, true)]);
        // A map of which there was more than was read at once stays until it is read.
        maps.follow(gone);
        let mut looks = |octets: u64| {
            let mut seen = Vec::new();
            maps.look(Which::All, |look| {
                seen.push((look.pid, look.most));
                ReadMap { from: look.from, octets: octets.min(look.most), is_cut: false }
            });
            seen
        };
        let rest = MAP_BYTES_MAX - ONCE_BYTES_MAX - 10;
        assert_eq!(looks(ONCE_BYTES_MAX), [(me, ONCE_BYTES_MAX.min(rest)), (gone, 0)]);
        maps.thread_ended(Ids { pid: gone, tid: gone });
        maps.forget_read();
        let mut first = Vec::new();
        maps.look(Which::Ended, |look| {
            first.push((look.pid, look.from));
            ReadMap { from: 0, octets: 0, is_cut: false }
        });
        assert_eq!(first, [(gone, 0)]);
        assert_eq!(maps.processes().collect::<Vec<_>>(), [me]);
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
