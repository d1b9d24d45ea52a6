//! What every process has mapped now, and since when.
//!
//! `symbols::AddressSpaces` remembers all that ever was, for readers; here is only what is, so that an agent
//! that runs for months does not grow. A sample that is older than what is mapped where it was taken is
//! not followed rather than followed by the rules of another file.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::File;
use crate::existing::threads_of;

/// Code that is mapped; where it begins is its key.
#[derive(Debug, Clone)]
pub(super) struct Mapped {
    pub(super) end: u64,
    /// Where in the file it begins.
    pub(super) offset: u64,
    /// Since when.
    pub(super) time: u64,
    /// The file; `None` for code that lies in none.
    pub(super) file: Option<Rc<File>>,
}

/// Where an address lies.
#[derive(Debug, Clone)]
pub(super) struct At {
    pub(super) file: Option<Rc<File>>,
    pub(super) offset: u64,
}

/// What a process has mapped, which it may share with the one that began it.
#[derive(Debug, Clone, Default)]
struct Space {
    /// When it began or executed its program.
    since: u64,
    mapped: Rc<BTreeMap<u64, Mapped>>,
}

/// Every process.
#[derive(Debug, Default)]
pub(super) struct Spaces {
    of_processes: BTreeMap<u32, Space>,
    ended: BTreeSet<u32>,
}

impl Spaces {
    /// Code was mapped from `begin` on, in place of whatever lay there, unless the process has executed another
    /// program since.
    pub(super) fn mapped(&mut self, pid: u32, begin: u64, new: Mapped) {
        let space = self.of_processes.entry(pid).or_default();
        if new.time < space.since {
            return;
        }
        let is_known = space.mapped.get(&begin).is_some_and(|old| {
            let is_same_file = match (&old.file, &new.file) {
                (Some(old), Some(new)) => Rc::ptr_eq(old, new),
                (None, None) => true,
                _ => false,
            };
            (old.end, old.offset) == (new.end, new.offset) && is_same_file
        });
        if is_known || new.end <= begin {
            return;
        }
        let mapped = Rc::make_mut(&mut space.mapped);
        let below = mapped.range(..new.end).rev().take_while(|(_, old)| old.end > begin);
        let covered: Vec<u64> = below.map(|(&old, _)| old).collect();
        for old_begin in covered {
            let Some(old) = mapped.remove(&old_begin) else { continue };
            if old.end > new.end {
                let offset = old.offset.wrapping_add(new.end - old_begin);
                mapped.insert(new.end, Mapped { offset, ..old.clone() });
            }
            if old_begin < begin {
                mapped.insert(old_begin, Mapped { end: begin, ..old });
            }
        }
        mapped.insert(begin, new);
    }

    pub(super) fn executed(&mut self, time: u64, pid: u32) {
        if !self.has_begun(time, pid) {
            self.of_processes.insert(pid, Space { since: time, ..Space::default() });
        }
    }

    pub(super) fn forked(&mut self, time: u64, pid: u32, parent: u32) {
        if self.has_begun(time, pid) {
            return;
        }
        let mapped = self.of_processes.get(&parent).map(|of| Rc::clone(&of.mapped));
        let mapped = mapped.unwrap_or_default();
        self.of_processes.insert(pid, Space { since: time, mapped });
        self.ended.remove(&pid);
    }

    /// Whether it is told late or again that a process began or executed a program at a time.
    fn has_begun(&self, time: u64, pid: u32) -> bool {
        self.of_processes.get(&pid).is_some_and(|space| space.since >= time)
    }

    /// The first thread of a process ended; samples of it may still come in this turn.
    pub(super) fn ended(&mut self, pid: u32) {
        self.ended.insert(pid);
    }

    /// Forgets the processes that have ended with all of their threads.
    pub(super) fn forget_ended(&mut self) {
        let of_processes = &mut self.of_processes;
        self.ended.retain(|&pid| {
            let is_there = !threads_of(pid).is_empty();
            if !is_there {
                of_processes.remove(&pid);
            }
            is_there
        });
    }

    /// Forgets all processes but these.
    pub(super) fn keep(&mut self, pids: &BTreeSet<u32>) {
        self.of_processes.retain(|pid, _| pids.contains(pid));
        self.ended.retain(|pid| pids.contains(pid));
    }

    /// Where an address of a process lay at a time; `None` where no code is known to have been there then.
    pub(super) fn at(&self, (time, pid): (u64, u32), address: u64) -> Option<At> {
        let space = self.of_processes.get(&pid).filter(|space| space.since <= time)?;
        let (begin, mapped) = space.mapped.range(..=address).next_back()?;
        let is_there = address < mapped.end && mapped.time <= time;
        let offset = mapped.offset.wrapping_add(address - begin);
        is_there.then(|| At { file: mapped.file.clone(), offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_offset(end: u64, offset: u64, time: u64) -> Mapped {
        Mapped { end, offset, time, file: None }
    }

    fn offset(spaces: &Spaces, time: u64, pid: u32, address: u64) -> Option<u64> {
        spaces.at((time, pid), address).map(|at| at.offset)
    }

    #[test]
    fn what_is_mapped_over_other_code_leaves_the_rest_of_it() {
        let mut spaces = Spaces::default();
        spaces.mapped(7, 0x1000, of_offset(0x5000, 0, 10));
        spaces.mapped(7, 0x2000, of_offset(0x3000, 0x9000, 20));
        let found = [0xfff, 0x1fff, 0x2001, 0x3000, 0x5000].map(|at| offset(&spaces, 20, 7, at));
        assert_eq!(found, [None, Some(0xfff), Some(0x9001), Some(0x2000), None]);
        // Before it was mapped it is not known what lay there.
        assert_eq!([offset(&spaces, 19, 7, 0x2001), offset(&spaces, 9, 7, 0x1000)], [None, None]);
        spaces.mapped(7, 0, of_offset(0x10_000, 0x8_0000, 30));
        assert_eq!(spaces.of_processes[&7].mapped.len(), 1);
        // What is told again is as old as it was.
        spaces.mapped(7, 0, of_offset(0x10_000, 0x8_0000, 40));
        assert_eq!(offset(&spaces, 30, 7, 0x2000), Some(0x8_2000));
    }

    #[test]
    fn processes_begin_with_what_was_mapped_and_execute_with_nothing() {
        let mut spaces = Spaces::default();
        spaces.mapped(7, 0x1000, of_offset(0x2000, 0, 10));
        spaces.forked(20, 8, 7);
        spaces.mapped(8, 0x4000, of_offset(0x5000, 0, 21));
        assert_eq!([19, 20].map(|time| offset(&spaces, time, 8, 0x1004)), [None, Some(4)]);
        assert_eq!(offset(&spaces, 30, 7, 0x4000), None);
        spaces.executed(30, 8);
        assert_eq!([29, 31].map(|time| offset(&spaces, time, 8, 0x1004)), [None, None]);
        // A CPU that was read before it told so tells of the program before, and of the fork.
        spaces.mapped(8, 0x7000, of_offset(0x8000, 0, 31));
        spaces.mapped(8, 0x9000, of_offset(0xa000, 0, 29));
        spaces.executed(25, 8);
        spaces.forked(20, 8, 7);
        // What comes after where rings are read up to is told again in the next turn.
        spaces.executed(30, 8);
        assert_eq!([0x7001, 0x9001].map(|at| offset(&spaces, 31, 8, at)), [Some(1), None]);
        spaces.ended(u32::MAX);
        spaces.mapped(u32::MAX, 0x1000, of_offset(0x2000, 0, 10));
        assert_eq!(offset(&spaces, 30, u32::MAX, 0x1004), Some(4));
        spaces.forget_ended();
        assert_eq!(offset(&spaces, 30, u32::MAX, 0x1004), None);
        spaces.keep(&BTreeSet::from([8]));
        assert_eq!(offset(&spaces, 30, 7, 0x1004), None);
    }
}
