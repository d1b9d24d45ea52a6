//! Ways in which files are damaged, chosen by a seed.

use std::ffi::CString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Random numbers from a seed (splitmix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        usize::try_from(bits % u64::try_from(limit.max(1)).unwrap()).unwrap()
    }
}

/// All files that a reader of rows may depend on, in a fixed order.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut within = vec![dir.to_path_buf()];
    while let Some(directory) = within.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                within.push(path);
            } else if !matches!(name, "lock" | "views.sql" | "next") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Damages one to three files; says what it did.
pub(crate) fn harm(dir: &Path, random: &mut Random) -> Vec<String> {
    let count = [1, 1, 1, 2, 3][random.below(5)];
    (0..count).map(|_| harm_once(dir, random)).collect()
}

fn harm_once(dir: &Path, random: &mut Random) -> String {
    let all = files(dir);
    let file = &all[random.below(all.len())];
    let other = &all[random.below(all.len())];
    let named = |what: &str| format!("{what} {}", file.strip_prefix(dir).unwrap().display());
    // What an earlier damage made is not read: a FIFO would wait.
    let octets = if file.metadata().is_ok_and(|of| of.is_file()) {
        fs::read(file).unwrap()
    } else {
        return named("leave");
    };
    let at = random.below(octets.len());
    let mut changed = octets.clone();
    let what = match random.below(14) {
        0 | 1 => {
            if let Some(octet) = changed.get_mut(at) {
                *octet ^= 1 << random.below(8);
            }
            fs::write(file, changed).unwrap();
            format!("flip a bit of octet {at} of")
        }
        2 => {
            fs::write(file, &octets[..at]).unwrap();
            format!("truncate to {at} octets")
        }
        kind @ 3..=6 => {
            fs::remove_file(file).unwrap();
            put_in_its_place(file, kind).into()
        }
        7 => {
            let page = at / 4_096 * 4_096;
            let end = (page + 4_096).min(changed.len());
            changed[page..end].fill(0);
            fs::write(file, changed).unwrap();
            format!("zero the page at {page} of")
        }
        8 if other.metadata().is_ok_and(|of| of.is_file()) => {
            let theirs = fs::read(other).unwrap();
            fs::write(file, theirs).unwrap();
            fs::write(other, octets).unwrap();
            format!("swap with {}", other.strip_prefix(dir).unwrap().display())
        }
        9 if other.metadata().is_ok_and(|of| of.is_file()) => {
            fs::copy(other, file).unwrap();
            format!("replace by {}", other.strip_prefix(dir).unwrap().display())
        }
        10 => duplicate(file, random),
        11 => {
            let end = (at + random.below(300)).min(changed.len());
            changed.drain(at..end);
            fs::write(file, changed).unwrap();
            format!("cut octets {at} to {end} out of")
        }
        12 => {
            let end = (at + random.below(300)).min(changed.len());
            let again = changed[at..end].to_vec();
            changed.splice(end..end, again);
            fs::write(file, changed).unwrap();
            format!("repeat octets {at} to {end} of")
        }
        _ => frames(file, octets, random),
    };
    named(&what)
}

/// Puts something where a file was that is none, or nothing; says what.
fn put_in_its_place(file: &Path, kind: usize) -> &'static str {
    match kind {
        3 => "delete",
        4 => {
            symlink("nowhere", file).unwrap();
            "dangle"
        }
        5 => {
            fifo(file);
            "make a FIFO of"
        }
        _ => {
            fs::create_dir(file).unwrap();
            "make a directory of"
        }
    }
}

/// Leaves out or repeats a whole frame of a segment.
fn frames(file: &Path, octets: Vec<u8>, random: &mut Random) -> String {
    let mut ends = vec![0];
    let mut at = 0;
    while octets.get(at..at + 4) == Some(b"MKYF") {
        let length: [u8; 4] = octets[at + 4..at + 8].try_into().unwrap();
        at += 56 + usize::try_from(u32::from_le_bytes(length)).unwrap();
        ends.push(at);
    }
    if ends.len() < 2 {
        return "leave".into();
    }
    let frame = random.below(ends.len() - 1);
    let (from, to) = (ends[frame], ends[frame + 1]);
    let is_left_out = random.below(2) == 0;
    let middle = if is_left_out { Vec::new() } else { octets[from..to].repeat(2) };
    fs::write(file, [&octets[..from], &middle, &octets[to..]].concat()).unwrap();
    format!("{} frame {frame} of", if is_left_out { "leave out" } else { "repeat" })
}

/// A copy under another range of sequence numbers, in the same directory.
fn duplicate(file: &Path, random: &mut Random) -> String {
    let name = file.file_name().unwrap().to_str().unwrap();
    let number = 1 + random.below(1_000);
    let copy = if let Some(stem) = name.strip_suffix(".parquet") {
        let stream = stem.split('-').next().unwrap();
        format!("{stream}-{number}-{}.parquet", number + random.below(50))
    } else if name.ends_with(".log") {
        format!("{number:010}.log")
    } else {
        return "leave".into();
    };
    let to = file.with_file_name(&copy);
    if to != *file {
        fs::copy(file, to).unwrap();
    }
    format!("duplicate as {copy}")
}

#[expect(unsafe_code, reason = "the standard library makes no FIFOs")]
pub(crate) fn fifo(path: &Path) {
    let path = CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: the pointer is to a text that ends with a zero.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
}
