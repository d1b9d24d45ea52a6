//! What a program says that is captured as it is: it writes it into a file, and whoever runs the job passes it on, once.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

/// What the program has said is passed on in such pieces.
const PIECE_BYTES: usize = 64 << 10;

/// What a program has said, and how much of it was passed on.
#[derive(Debug)]
pub(super) struct Shown {
    path: PathBuf,
    at: u64,
    is_error: bool,
    /// What was passed on last, up to `at`.
    last: Vec<u8>,
    /// What was passed on already and the program says again.
    again: Vec<u8>,
}

/// So much of what was passed on is known again.
const AGAIN_BYTES_MAX: usize = 1 << 20;

impl Shown {
    /// Passes on what comes behind what is there.
    pub(super) fn new(path: PathBuf, is_error: bool) -> Self {
        let at = fs::metadata(&path).map_or(0, |data| data.len());
        Self { path, at, is_error, last: Vec::new(), again: Vec::new() }
    }

    /// What stood behind the end that the file has now is not there any more.
    pub(super) fn roll_back(&mut self) {
        let length = fs::metadata(&self.path).map_or(0, |data| data.len());
        // Saturates: more than was kept is all of it.
        let gone = usize::try_from(self.at.saturating_sub(length)).unwrap_or(usize::MAX);
        let kept = self.last.len().saturating_sub(gone);
        self.again = self.last.split_off(kept);
        self.at = self.at.min(length);
    }

    /// A program that was brought back says again what it had said since its checkpoint: that is not shown twice.
    pub(super) fn pass_on(&mut self) -> io::Result<()> {
        let mut file = File::open(&self.path)?;
        if file.metadata()?.len() <= self.at {
            return Ok(());
        }
        file.seek(SeekFrom::Start(self.at))?;
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let count = file.read(&mut piece)?;
            let Some(piece) = piece.get(..count).filter(|piece| !piece.is_empty()) else {
                return Ok(());
            };
            let new = self.behind_known(piece);
            if self.is_error {
                io::stderr().write_all(new)?;
            } else {
                io::stdout().write_all(new)?;
                io::stdout().flush()?;
            }
            self.at += count as u64;
            self.last.extend_from_slice(piece);
            let too_many = self.last.len().saturating_sub(AGAIN_BYTES_MAX);
            self.last.drain(..too_many);
        }
    }

    /// What of a piece is not said again. Behind the first octet that is different, all is new.
    fn behind_known<'a>(&mut self, piece: &'a [u8]) -> &'a [u8] {
        let same = piece.iter().zip(&self.again).take_while(|(new, old)| new == old).count();
        let (_, new) = piece.split_at(same);
        if new.is_empty() {
            self.again.drain(..same);
        } else {
            self.again.clear();
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_says_again_is_not_new_until_it_says_something_else() {
        let again = b"step 1\nstep 2\n".to_vec();
        let shown = |again: &[u8]| Shown {
            path: PathBuf::new(),
            at: 0,
            is_error: false,
            last: Vec::new(),
            again: again.to_vec(),
        };
        let mut same = shown(&again);
        assert_eq!(same.behind_known(b"step 1\nst"), b"");
        assert_eq!(same.behind_known(b"ep 2\nstep 3\n"), b"step 3\n");
        assert_eq!(same.behind_known(b"step 1\n"), b"step 1\n");
        let mut other = shown(&again);
        assert_eq!(other.behind_known(b"step 1 again\n"), b" again\n");
        assert_eq!(other.behind_known(b"step 2\n"), b"step 2\n");
    }

    #[test]
    fn what_was_cut_off_is_known_again() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("output");
        fs::write(&path, "one\ntwo\n").expect("room");
        let mut shown = Shown::new(path.clone(), true);
        fs::write(&path, "one\ntwo\nthree\nfour\n").expect("room");
        shown.pass_on().expect("it is there");
        fs::write(&path, "one\ntwo\nthree\n").expect("room");
        shown.roll_back();
        assert_eq!(
            (shown.at, &shown.again[..], &shown.last[..]),
            (14, &b"four\n"[..], &b"three\n"[..])
        );
    }
}
