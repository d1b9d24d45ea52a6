//! What a host must not forget, on a disk that can tear whatever was not synced.
//!
//! Votes are appended to one of two files, each with its length and a checksum, and synced. When a file
//! has grown, the newest vote begins the other one, and the first is removed once that is on the disk.
//! The newest record that can be read in either is what holds: each holds all of a vote, so that one that
//! was damaged in the middle of a file takes nothing with it.

use crate::register::Vote;

/// A file is left for the other when it has grown so long.
pub(crate) const FILE_BYTES_MAX: usize = 64 << 10;

/// Longest record.
const RECORD_BYTES_MAX: usize = 1 << 20;

/// Octets before a record: its length, its number, its checksum.
const HEAD_BYTES: usize = 16;

/// The two files.
pub(crate) const NAMES: [&str; 2] = ["votes-0", "votes-1"];

/// Files by name: a directory, or a virtual disk.
pub trait Files {
    /// What goes wrong with them.
    type Error;

    /// What a file holds; `None` where there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>, Self::Error>;

    /// Appends to a file, which is made where there is none, and forces it to the disk.
    ///
    /// # Errors
    /// When it cannot be written or synced.
    fn append(&mut self, name: &str, octets: &[u8]) -> Result<(), Self::Error>;

    /// Forces a file that is there to the disk.
    ///
    /// # Errors
    /// When it cannot be synced.
    fn sync(&mut self, name: &str) -> Result<(), Self::Error>;

    /// Cuts a file to a length.
    ///
    /// # Errors
    /// When it cannot be cut.
    fn truncate(&mut self, name: &str, len: usize) -> Result<(), Self::Error>;

    /// Removes a file, if there is one.
    ///
    /// # Errors
    /// When it cannot be removed.
    fn remove(&mut self, name: &str) -> Result<(), Self::Error>;
}

/// The votes of a host.
#[derive(Debug)]
pub struct Journal {
    current: usize,
    len: usize,
    number: u32,
}

impl Journal {
    /// Opens what there is, cuts off what was torn, and gives the newest vote.
    ///
    /// # Errors
    /// When the files cannot be read or cut.
    pub fn open<F: Files>(files: &mut F) -> Result<(Self, Option<Vote>), F::Error> {
        let mut journal = Self { current: 0, len: 0, number: 0 };
        let mut newest = None;
        for (current, name) in NAMES.into_iter().enumerate() {
            let octets = files.read(name)?.unwrap_or_default();
            let (records, len) = records(&octets);
            if len < octets.len() {
                files.truncate(name, len)?;
            }
            if len > 0 {
                // Whoever wrote it may have been killed before it was on the disk; from here on it counts.
                files.sync(name)?;
            }
            if let Some((number, vote)) = records
                && (newest.is_none() || number > journal.number)
            {
                journal = Self { current, len, number };
                newest = Some(vote);
            }
        }
        Ok((journal, newest))
    }

    /// Keeps a vote; it is on the disk when this returns.
    ///
    /// # Errors
    /// When it cannot be written: the vote must not be told to anybody then.
    ///
    /// # Panics
    /// If a charter is longer than 1 MiB, which none of 64 hosts is.
    pub fn keep<F: Files>(&mut self, files: &mut F, vote: &Vote) -> Result<(), F::Error> {
        let body = postcard::to_allocvec(vote).expect("a vote can be written to memory");
        assert!(body.len() <= RECORD_BYTES_MAX, "a charter of at most 64 hosts is short");
        let number = self.number + 1;
        let mut record = Vec::with_capacity(HEAD_BYTES + body.len());
        record.extend_from_slice(&u32::try_from(body.len()).expect("checked").to_le_bytes());
        record.extend_from_slice(&number.to_le_bytes());
        record.extend_from_slice(&crc32fast::hash(&body).to_le_bytes());
        record.extend_from_slice(&crc32fast::hash(&record).to_le_bytes());
        record.extend_from_slice(&body);
        let is_full = self.len + record.len() > FILE_BYTES_MAX && self.len > 0;
        let (current, begin) =
            if is_full { (1 - self.current, 0) } else { (self.current, self.len) };
        if is_full {
            files.remove(NAMES[current])?;
        }
        if let Err(error) = files.append(NAMES[current], &record) {
            // A part of it may be there; what comes next must not stand behind it.
            files.truncate(NAMES[current], begin)?;
            return Err(error);
        }
        if is_full {
            files.remove(NAMES[self.current])?;
        }
        *self = Self { current, len: begin + record.len(), number };
        Ok(())
    }
}

/// The newest whole record, and where the last whole one ends. What cannot be read is stepped over.
fn records(octets: &[u8]) -> (Option<(u32, Vote)>, usize) {
    let (mut newest, mut end, mut at): (Option<(u32, Vote)>, _, _) = (None, 0, 0);
    while at + HEAD_BYTES <= octets.len() {
        let Some((number, vote, len)) = record(&octets[at..]) else {
            at += 1;
            continue;
        };
        at += len;
        end = at;
        if newest.as_ref().is_none_or(|(known, _)| number > *known) {
            newest = Some((number, vote));
        }
    }
    (newest, end)
}

/// The record that octets begin with: its number, its vote, and how long it is.
fn record(octets: &[u8]) -> Option<(u32, Vote, usize)> {
    let (head, rest) = octets.split_at_checked(HEAD_BYTES)?;
    let four = |from: usize| {
        u32::from_le_bytes(head[from..from + 4].try_into().expect("it is four octets"))
    };
    let len = four(0) as usize;
    if four(12) != crc32fast::hash(&head[..12]) || len > RECORD_BYTES_MAX {
        return None;
    }
    let body = rest.get(..len)?;
    if crc32fast::hash(body) != four(8) {
        return None;
    }
    Some((four(4), postcard::from_bytes(body).ok()?, HEAD_BYTES + len))
}

/// Reads a journal's file as it may have been left, for those who feed it anything.
pub fn newest_vote(octets: &[u8]) -> Option<Vote> {
    records(octets).0.map(|(_, vote)| vote)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::charter::{Charter, Incarnation};

    /// Files that never fail.
    #[derive(Default)]
    struct InMemory([Option<Vec<u8>>; 2]);

    impl InMemory {
        fn file(&mut self, name: &str) -> &mut Option<Vec<u8>> {
            &mut self.0[NAMES.iter().position(|known| *known == name).unwrap()]
        }
    }

    impl Files for InMemory {
        type Error = Infallible;

        fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>, Infallible> {
            Ok(self.file(name).clone())
        }

        fn append(&mut self, name: &str, octets: &[u8]) -> Result<(), Infallible> {
            self.file(name).get_or_insert_default().extend_from_slice(octets);
            Ok(())
        }

        fn sync(&mut self, _: &str) -> Result<(), Infallible> {
            Ok(())
        }

        fn truncate(&mut self, name: &str, len: usize) -> Result<(), Infallible> {
            self.file(name).get_or_insert_default().truncate(len);
            Ok(())
        }

        fn remove(&mut self, name: &str) -> Result<(), Infallible> {
            *self.file(name) = None;
            Ok(())
        }
    }

    fn vote(round: u64) -> Vote {
        let mut vote = Vote::first(Charter::founding(vec![Incarnation(7); 3]));
        vote.promised.round = round;
        vote
    }

    #[test]
    fn a_damaged_octet_before_the_newest_vote_takes_nothing_with_it() {
        let mut files = InMemory::default();
        let (mut journal, none) = Journal::open(&mut files).unwrap();
        assert_eq!(none, None);
        let mut ends = Vec::new();
        for round in 1..=3 {
            journal.keep(&mut files, &vote(round)).unwrap();
            ends.push(files.file(NAMES[0]).as_ref().unwrap().len());
        }
        let whole = files.file(NAMES[0]).clone().unwrap();
        for at in 0..ends[2] {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            let mut files = InMemory([Some(damaged), None]);
            let (mut journal, newest) = Journal::open(&mut files).unwrap();
            // The last record may be torn; every other one is not what holds.
            let expected = if at < ends[1] { 3 } else { 2 };
            assert_eq!(newest, Some(vote(expected)), "octet {at}");
            journal.keep(&mut files, &vote(9)).unwrap();
            assert_eq!(Journal::open(&mut files).unwrap().1, Some(vote(9)), "octet {at}");
        }
    }
}
