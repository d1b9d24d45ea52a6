//! Callers by `.eh_frame`: what a compiler wrote down about every function, so that programs and libraries
//! without frame pointers are followed, too.
//!
//! The kernel copies the registers and the newest part of a thread's stack with each sample. From the
//! rules of the file that an instruction lies in follow where its function keeps the address to which it
//! returns, and the registers of its caller; and so on, frame by frame. Code that no file has rules for
//! (made at run time, assembled by hand) is taken to keep a frame pointer. This happens on the host,
//! before anything is packed: copies of stacks are never kept nor sent.
//!
//! What cannot be followed to its end is counted ([`End`]); nothing is guessed beyond that. Rules are read
//! from files when they are met first, and kept up to [`TABLES_MAX`].

mod image;
mod rules;
mod spaces;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use meikyo_units::Nanos;

use crate::block::Sample;
use crate::clock;
use crate::existing::{self, Existing};
use crate::kernel::KERNEL_BEGIN;
use crate::mapping::Mapping;
use crate::records::{Chain, Record, UserState};
use crate::sampler::STACK_MAX;
use image::Image;
use rules::{RETURN, Rules, Stack, StepError};
use spaces::{Mapped, Spaces};

/// Octets of rules of files that are kept at most; beyond them, all are read anew as they are met.
const TABLES_MAX: usize = 256 << 20;

/// Files that are remembered at most, beside those that some process has mapped.
const FILES_MAX: usize = 8_192;

/// Places of a file whose rules are kept at most.
const PLACES_MAX: usize = 32_768;

/// What the kernel calls the code that it maps into every process.
const VDSO: &str = "[vdso]";

/// How far callers were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// To the outermost one.
    Whole,
    /// To as many as are kept.
    Full,
    /// To where the copy of the stack ends.
    Copy,
    /// To code about which nothing is known, or whose rules do not fit what is there.
    Unknown,
}

impl End {
    /// That of a chain that the kernel followed.
    pub(crate) fn of_kernel_chain(chain: Chain<'_>) -> Self {
        if chain.addresses() >= STACK_MAX.into() { Self::Full } else { Self::Whole }
    }

    /// What is missing, as a word of the table `losses`.
    pub(crate) fn loss(self) -> Option<&'static str> {
        match self {
            Self::Whole => None,
            Self::Full => Some("cut"),
            Self::Copy => Some("copy_ended"),
            Self::Unknown => Some("not_followed"),
        }
    }
}

/// What finding callers by `.eh_frame` took and left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unwinding {
    /// CPU time of taking the copies from the rings and of finding callers in them.
    pub cpu: Nanos,
    /// Octets of stacks that the kernel copied.
    pub copied_bytes: u64,
    /// Octets of rules of files that are kept in memory.
    pub table_bytes: u64,
    /// Stacks that go on behind what was copied.
    pub copy_ended: u64,
    /// Stacks that could not be followed to their end: code without rules, or rules that did not fit.
    pub not_followed: u64,
}

/// Finds callers.
#[derive(Debug, Default)]
pub(crate) struct Unwinder {
    spaces: Spaces,
    /// What was told of processes in this turn, not yet in the order of time: when, of which one.
    told: Vec<(u64, u32, Change)>,
    files: BTreeMap<FileKey, Rc<File>>,
    /// Octets of the rules that are kept.
    tables: usize,
    counted: Unwinding,
    /// CPU time of this thread when the turn began.
    began: u64,
}

/// What changes the code that a process has.
#[derive(Debug)]
enum Change {
    Mapped(Mapping),
    Executed,
    Forked { parent: u32 },
    Ended,
}

/// Which file it is: its build ID or, without one, its inode and path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum FileKey {
    BuildId(String),
    Inode(u64, String),
    Vdso,
}

/// A file with code, and its rules once they were met.
#[derive(Debug)]
struct File {
    key: FileKey,
    path: String,
    met: RefCell<Met>,
}

#[derive(Debug, Default)]
enum Met {
    /// Its rules have not been needed yet.
    #[default]
    Not,
    /// It has none, or is gone.
    Without,
    Read {
        image: Image,
        places: BTreeMap<u64, Option<Rc<Rules>>>,
    },
}

impl Unwinder {
    /// Takes what was there as of a time, and forgets every process that is not in it if it is all there is.
    pub(crate) fn there(&mut self, time: u64, existing: &Existing, is_all: bool) {
        for mapping in &existing.mappings {
            if let Some(pid) = mapping.pid {
                self.mapped((time, pid), mapping);
            }
        }
        if is_all {
            self.spaces.keep(&existing.threads.iter().map(|thread| thread.pid).collect());
        }
    }

    /// What the kernel tells beside samples. CPUs are read one after the other, and a process that executes a
    /// program is often moved to another one by that, so nothing is taken before all have told
    /// ([`Unwinder::all_told`]).
    pub(crate) fn told(&mut self, record: &Record<'_>) {
        let told = match *record {
            Record::Mapping { time, ids, range, build_id, inode, path } => {
                let mapping = Mapping::told(ids.pid, range, (path, build_id, inode));
                (time, ids.pid, Change::Mapped(mapping))
            }
            Record::Name { time, ids, is_exec: true, .. } => (time, ids.pid, Change::Executed),
            Record::Fork { time, ids, parent } if ids.pid != parent.pid => {
                (time, ids.pid, Change::Forked { parent: parent.pid })
            }
            Record::Exit { time, ids } if ids.pid == ids.tid => (time, ids.pid, Change::Ended),
            _ => return,
        };
        self.told.push(told);
    }

    /// All CPUs have told what they tell in this turn: takes it in the order of time, before samples are followed.
    pub(crate) fn all_told(&mut self) {
        let mut told = std::mem::take(&mut self.told);
        // Of what happens at the same time on a CPU the order in which it was told counts.
        told.sort_by_key(|(time, ..)| *time);
        for (time, pid, change) in told.drain(..) {
            match change {
                Change::Mapped(mapping) => self.mapped((time, pid), &mapping),
                Change::Executed => self.spaces.executed(time, pid),
                Change::Forked { parent } => self.spaces.forked(time, pid, parent),
                Change::Ended => self.spaces.ended(pid),
            }
        }
        self.told = told;
    }

    fn mapped(&mut self, (time, pid): (u64, u32), mapping: &Mapping) {
        let file = file_key(mapping).map(|key| {
            if self.files.len() >= FILES_MAX {
                self.files.retain(|_, file| Rc::strong_count(file) > 1);
            }
            let new =
                || File { key: key.clone(), path: mapping.path.clone(), met: RefCell::default() };
            Rc::clone(self.files.entry(key.clone()).or_insert_with(|| Rc::new(new())))
        });
        let begin = mapping.address;
        let end = begin.saturating_add(mapping.size);
        self.spaces.mapped(pid, begin, Mapped { end, offset: mapping.offset, time, file });
    }

    /// Before anything is taken from the rings.
    pub(crate) fn begin_turn(&mut self) {
        self.began = clock::thread_cpu();
    }

    /// Once the samples of a turn have been followed: processes that have ended are forgotten. What
    /// was counted so far.
    pub(crate) fn end_turn(&mut self) -> Unwinding {
        self.spaces.forget_ended();
        let taken = Nanos::new(clock::thread_cpu() - self.began);
        self.counted.cpu += taken;
        self.counted.table_bytes = self.tables as u64;
        self.counted
    }

    /// Adds the callers outside of the kernel to a sample that has those in the kernel.
    pub(crate) fn add_callers(
        &mut self,
        at: (u64, u32),
        user: &UserState<'_>,
        sample: &mut Sample,
    ) -> End {
        // Whoever is in the kernel was called by the instruction outside of it.
        let called = user.registers.filter(|_| sample.address >= KERNEL_BEGIN);
        sample.callers.extend(called.map(|registers| registers[RETURN]));
        let end = self.callers(at, user, &mut sample.callers);
        self.counted.copied_bytes += user.stack.len() as u64;
        match end {
            End::Copy => self.counted.copy_ended += 1,
            End::Unknown => self.counted.not_followed += 1,
            End::Whole | End::Full => {}
        }
        end
    }

    /// Adds the callers of a thread's own code, innermost first, to those in `callers`.
    fn callers(
        &mut self,
        (time, pid): (u64, u32),
        user: &UserState<'_>,
        callers: &mut Vec<u64>,
    ) -> End {
        let Some(registers) = user.registers else { return End::Unknown };
        let mut registers = registers.map(Some);
        let stack = Stack::of(user);
        // The instruction itself runs; of a caller, the instruction after the call has not begun.
        let mut back = 0;
        while callers.len() < usize::from(STACK_MAX) {
            let Some(address) = registers[RETURN] else { return End::Unknown };
            let Some(at) = self.spaces.at((time, pid), address.wrapping_sub(back)) else {
                return End::Unknown;
            };
            let stepped = match self.rules(pid, &at) {
                Some(rules) => {
                    back = if rules.is_signal() { 0 } else { 1 };
                    rules.step(&mut registers, &stack)
                }
                None => {
                    back = 1;
                    rules::step_by_frame_pointer(&mut registers, &stack)
                }
            };
            match stepped {
                Ok(()) => {}
                Err(StepError::Outermost) => return End::Whole,
                Err(StepError::BeyondCopy) => return End::Copy,
                Err(StepError::Unknown) => return End::Unknown,
            }
            match registers[RETURN] {
                None | Some(0) => return End::Whole,
                Some(caller) => {
                    // What is no code is no caller.
                    if self.spaces.at((time, pid), caller.wrapping_sub(back)).is_none() {
                        return End::Unknown;
                    }
                    callers.push(caller);
                }
            }
        }
        End::Full
    }

    /// The rules at a place; `None` where there are none.
    fn rules(&mut self, pid: u32, at: &spaces::At) -> Option<Rc<Rules>> {
        let file = at.file.as_ref()?;
        let mut met = file.met.borrow_mut();
        if matches!(*met, Met::Not) {
            let image = file.read(pid);
            let octets = image.as_ref().map_or(0, Image::octets);
            if self.tables + octets > TABLES_MAX {
                for other in self.files.values().filter(|other| !Rc::ptr_eq(other, file)) {
                    other.met.take();
                }
                self.tables = 0;
            }
            self.tables += octets;
            *met = image.map_or(Met::Without, |image| Met::Read { image, places: BTreeMap::new() });
        }
        let Met::Read { image, places } = &mut *met else { return None };
        if places.len() >= PLACES_MAX {
            places.clear();
        }
        let known = places.entry(at.offset);
        known.or_insert_with(|| image.rules_at(at.offset).map(Rc::new)).clone()
    }
}

impl File {
    /// Its rules, as a process has it or as it lies where its path leads to.
    fn read(&self, pid: u32) -> Option<Image> {
        let file = match &self.key {
            FileKey::Vdso => return Image::of_own_vdso(),
            FileKey::BuildId(build_id) => existing::mapped_file(pid, &self.path, |file| {
                existing::build_id_in(file).as_deref() == Some(build_id)
            }),
            FileKey::Inode(inode, _) => existing::mapped_file(pid, &self.path, |file| {
                std::os::unix::fs::MetadataExt::ino(file.facts()) == *inode
            }),
        };
        Image::read(&file?.open().ok()?, 0)
    }
}

/// Which file is mapped; `None` for code that lies in no file.
fn file_key(mapping: &Mapping) -> Option<FileKey> {
    if mapping.path == VDSO {
        return Some(FileKey::Vdso);
    }
    let is_file = mapping.path.starts_with('/') && !mapping.path.starts_with("//");
    match (&mapping.build_id, mapping.inode) {
        (Some(build_id), _) if is_file => Some(FileKey::BuildId(build_id.clone())),
        (None, Some(inode)) if is_file => Some(FileKey::Inode(inode, mapping.path.clone())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use proptest::prelude::*;

    use super::*;
    use crate::records::REGISTERS;

    /// The code that the kernel maps into every process: an ELF file of some pages with rules.
    fn vdso() -> Vec<u8> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.ends_with(VDSO)).unwrap();
        let (begin, rest) = line.split_once('-').unwrap();
        let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
        let (begin, end) = (number(begin), number(rest.split(' ').next().unwrap()));
        let mut octets = vec![0; usize::try_from(end - begin).unwrap()];
        let memory = std::fs::File::open("/proc/self/mem").unwrap();
        memory.read_exact_at(&mut octets, begin).unwrap();
        octets
    }

    fn parsed(octets: &[u8]) -> Option<Image> {
        Image::parse(|offset, size| {
            let (offset, size) = (usize::try_from(offset).ok()?, usize::try_from(size).ok()?);
            Some(octets.get(offset..offset.checked_add(size)?)?.to_vec())
        })
    }

    /// The offsets of a file at which it has rules.
    fn ruled(image: &Image, size: usize) -> Vec<u64> {
        (0..size as u64).filter(|&offset| image.rules_at(offset).is_some()).collect()
    }

    #[test]
    fn a_function_has_the_same_caller_at_its_first_instruction_whatever_it_saves_later() {
        let octets = vdso();
        let image = parsed(&octets).unwrap();
        assert_eq!(image.octets(), Image::of_own_vdso().unwrap().octets());
        let ruled = ruled(&image, octets.len());
        assert!(ruled.len() > 100, "{}", ruled.len());
        // What stands on the stack before a function has done anything: where it returns to.
        let begins = ruled.iter().filter(|&&at| at == 0 || !ruled.contains(&(at - 1)));
        let caller = 0x1234_5678_u64.to_le_bytes();
        let mut registers = [Some(1); REGISTERS];
        registers[7] = Some(0x7000);
        let user = UserState {
            registers: Some(registers.map(Option::unwrap)),
            stack: &caller,
            has_more: false,
        };
        for &begin in begins {
            let mut registers = registers;
            image.rules_at(begin).unwrap().step(&mut registers, &Stack::of(&user)).unwrap();
            assert_eq!((registers[RETURN], registers[7]), (Some(0x1234_5678), Some(0x7008)));
        }
    }

    proptest! {
        #[test]
        fn no_file_and_no_stack_stop_the_one_who_reads_them(
            changed in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..24),
            offset in 0_u64..8_192,
            registers in prop::collection::vec(any::<u64>(), REGISTERS),
            stack in prop::collection::vec(any::<u8>(), 0..64),
            has_more: bool,
        ) {
            let mut octets = vdso();
            for (at, octet) in changed {
                let at = at.index(octets.len());
                octets[at] = octet;
            }
            let mut registers: [u64; REGISTERS] = registers.try_into().unwrap();
            registers[6] = registers[7].wrapping_add(8);
            let user = UserState { registers: Some(registers), stack: &stack, has_more };
            let mut registers = registers.map(Some);
            if let Some(rules) = parsed(&octets).and_then(|image| image.rules_at(offset))
                && rules.step(&mut registers, &Stack::of(&user)).is_ok()
            {
                prop_assert!(registers[RETURN].is_some());
            }
            let by_pointer = rules::step_by_frame_pointer(&mut registers, &Stack::of(&user));
            prop_assert!(by_pointer.is_err() || registers[RETURN].is_some());
        }
    }
}
