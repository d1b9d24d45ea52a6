//! What a sender keeps until the receiver has it on its disk.
//!
//! In memory, or in files of a directory (a disk, or a tmpfs). Blocks are numbered by stream, the
//! oldest are sent first, and when there is no room the oldest whole blocks go: in memory one by one,
//! in files a file's worth at a time, since only a whole file gives its room back. What went becomes
//! a gap with its numbers, its rows and its span of time, which is kept like a block until the
//! receiver has it.
//!
//! A file is a row of frames as they are sent ([`crate::wire`]), with a head that says whose life it
//! is of and which number each stream goes on with. So a sender that was killed finds everything that
//! it had accepted; one whose machine went down says that nobody knows what the torn end held.
//!
//! The spool calls its [`Files`] and nothing else of the system.

mod directory;
mod entry;
mod file_names;
mod restore;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;

use meikyo_recording::origin::Ranges;
use meikyo_recording::{PackedRows, Source};
use meikyo_units::Nanos;
use rustix::io::Errno;

use crate::limits::SpoolLimits;
use crate::wire::{Gap, Message, Reason, SpoolHead, block_header, message_at};

pub use directory::Directory;
use entry::{Entry, Place, Span, joined_gap};
use file_names::{file_name, file_number, vouched_life, vouching_name};

/// The version of a file of the spool.
const FILE_VERSION: u16 = 1;

/// Once a second it is tried to read a block that the system refused to read. When it still says, after
/// so many tries, that the disk cannot be read there, the block is gone.
const READ_TRIES_MAX: u8 = 60;

/// A file ends at a sixteenth of what the spool may hold, within these bounds.
const FILE_BYTES: (u64, u64) = (4 << 10, 16 << 20);

/// Where a spool keeps its files.
pub trait Files {
    /// The names of all files.
    ///
    /// # Errors
    /// What the system said.
    fn names(&mut self) -> io::Result<Vec<String>>;
    /// Appends parts, one behind the other, to a file, which is made where there is none.
    ///
    /// # Errors
    /// What the system said; some octets may have been written.
    fn append(&mut self, name: &str, parts: &[&[u8]]) -> io::Result<()>;
    /// All octets of a file.
    ///
    /// # Errors
    /// What the system said.
    fn read(&mut self, name: &str) -> io::Result<Vec<u8>>;
    /// `len` octets of a file from `at` on.
    ///
    /// # Errors
    /// What the system said, and when the file is shorter.
    fn read_at(&mut self, name: &str, at: u64, len: usize) -> io::Result<Vec<u8>>;
    /// Forces a file, and that it is there, to the disk.
    ///
    /// # Errors
    /// What the system said.
    fn sync(&mut self, name: &str) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// What the system said.
    fn remove(&mut self, name: &str) -> io::Result<()>;
}

/// Which part of its limit a spool may have in memory of blocks that wait to be sent at once.
const FRESH_PART: u64 = 1_024;

/// What came of taking an entry out to be sent.
#[derive(Debug)]
pub(crate) enum Taken {
    /// Its octets, which are under way from then on.
    Octets(Vec<u8>),
    /// The same of a block that was accepted a moment ago, which is in memory, too.
    Fresh(PackedRows),
    /// It cannot be read and never will be; a gap tells so.
    Gone,
    /// It cannot be read now.
    Later,
}

/// A file of the spool.
#[derive(Debug)]
struct FileState {
    number: u64,
    bytes: u64,
    /// Entries in it that are still needed.
    needed: usize,
    /// Whether a write to it or a sync of it failed: nothing is appended behind that.
    is_broken: bool,
}

/// What became of blocks, for people and tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpoolCounts {
    /// Blocks that wait for the receiver, and their octets.
    pub blocks: u64,
    /// Octets that the spool takes, in memory or in files.
    pub bytes: u64,
    /// Gaps that the receiver does not know of yet.
    pub gaps: u64,
    /// Blocks of streams that this life does not declare: they wait for one that does, and go when
    /// there is no room.
    pub undeclared_blocks: u64,
    /// Blocks that had to go since the sender began.
    pub dropped_blocks: u64,
    /// Rows in them.
    pub dropped_rows: u64,
    /// Calls that the system refused; blocks stay in memory then.
    pub refused_calls: u64,
}

/// Blocks and gaps in the order of their age.
#[derive(Debug)]
pub(crate) struct Spool<F> {
    limits: SpoolLimits,
    files: Option<F>,
    head: SpoolHead,
    sender: String,
    entries: BTreeMap<u64, Entry>,
    /// First and last number and place of all entries.
    numbers: BTreeMap<Source, BTreeSet<(u64, u64, u64)>>,
    gaps: BTreeSet<u64>,
    unsent_gaps: BTreeSet<u64>,
    unsent_blocks: BTreeSet<u64>,
    /// Blocks that were not sent yet and are in memory beside their place, by ordinal, and octets of them: what is
    /// sent at once need not be read back.
    fresh: (BTreeMap<u64, PackedRows>, u64),
    /// Blocks that the system refused to read; they are tried again.
    put_aside: BTreeSet<u64>,
    /// What is of streams that this life does not declare: it is not sent.
    undeclared: BTreeSet<u64>,
    next_ordinal: u64,
    order: VecDeque<FileState>,
    /// Octets of entries in memory.
    in_memory: u64,
    next_file: u64,
    /// What of a source the receiver has.
    acknowledged: BTreeMap<Source, Ranges>,
    counts: SpoolCounts,
    /// Files with octets that are not on the disk yet.
    unsynced: BTreeSet<u64>,
    /// Whether the directory says that it holds everything.
    is_vouched: bool,
    earlier: Earlier,
}

/// What says how earlier lives ended.
#[derive(Debug, Default, PartialEq, Eq)]
struct Earlier {
    /// Their files, each of which is needed once more for it.
    files: Vec<u64>,
    /// The names of files that vouch for them.
    vouching: Vec<String>,
}

impl<F: Files> Spool<F> {
    /// A spool of a sender's new life, with what earlier lives left in its files.
    pub(crate) fn open(
        limits: SpoolLimits,
        files: Option<F>,
        sender: &str,
        head: SpoolHead,
    ) -> io::Result<Self> {
        let mut spool = Self {
            limits,
            files,
            head,
            sender: sender.into(),
            entries: BTreeMap::new(),
            numbers: BTreeMap::new(),
            gaps: BTreeSet::new(),
            unsent_gaps: BTreeSet::new(),
            unsent_blocks: BTreeSet::new(),
            fresh: Default::default(),
            put_aside: BTreeSet::new(),
            undeclared: BTreeSet::new(),
            next_ordinal: 0,
            order: VecDeque::new(),
            in_memory: 0,
            next_file: 1,
            acknowledged: BTreeMap::new(),
            counts: SpoolCounts::default(),
            unsynced: BTreeSet::new(),
            is_vouched: false,
            earlier: Earlier::default(),
        };
        if spool.files.is_some() {
            // A sender that is killed in the midst of this leaves what its next life takes for the same.
            let told = spool.restore()?;
            let files = spool.order.iter_mut();
            spool.earlier.files = files
                .map(|file| {
                    file.needed += 1;
                    file.number
                })
                .collect();
            spool.earlier.vouching = spool.vouch();
            spool.begin_file();
            told.into_iter().for_each(|(source, gap)| spool.tell_gap(source, gap));
            spool.leave_earlier_lives();
        }
        Ok(spool)
    }

    /// Gives up what says how earlier lives ended, once that is told on the disk, or the receiver knows it: until
    /// then a sender that is killed finds the same again.
    pub(crate) fn leave_earlier_lives(&mut self) {
        if self.earlier == Earlier::default() {
            return;
        }
        let boot = self.head.boot;
        let untold = |spool: &Self| -> Vec<u64> {
            let is_untold = |entry: &Entry| {
                entry.source.boot != boot && matches!(entry.place, Place::Memory(_))
            };
            spool.gaps.iter().filter(|at| is_untold(&spool.entries[*at])).copied().collect()
        };
        untold(self).into_iter().for_each(|at| self.write_again(at));
        self.sync();
        if self.unsynced.is_empty() && untold(self).is_empty() {
            self.forget_earlier_lives();
        }
    }

    fn forget_earlier_lives(&mut self) {
        let Earlier { files, vouching } = std::mem::take(&mut self.earlier);
        files.into_iter().for_each(|file| self.release(file));
        self.remove_unneeded();
        self.remove_vouching(&vouching);
    }

    /// Says in the directory that everything that this life accepts is in it; the files that say so of
    /// earlier lives.
    fn vouch(&mut self) -> Vec<String> {
        let Some(files) = &mut self.files else { return Vec::new() };
        let mut earlier = files.names().unwrap_or_default();
        earlier.retain(|name| vouched_life(name).is_some());
        let name = vouching_name(self.head.boot);
        self.is_vouched = files.append(&name, &[]).and_then(|()| files.sync(&name)).is_ok();
        if !self.is_vouched {
            drop(files.remove(&name));
        }
        earlier
    }

    /// Takes that back: something is in memory only, and gone when the sender is killed. A full disk
    /// lets a file be removed.
    fn stop_vouching(&mut self) {
        if std::mem::take(&mut self.is_vouched) {
            self.remove_vouching(&[vouching_name(self.head.boot)]);
        }
    }

    fn remove_vouching(&mut self, names: &[String]) {
        let Some(files) = &mut self.files else { return };
        let refused = names.iter().filter(|name| files.remove(name).is_err()).count();
        self.counts.refused_calls += refused as u64;
    }

    pub(crate) fn counts(&self) -> SpoolCounts {
        let undeclared_gaps = self.gaps.intersection(&self.undeclared).count();
        let undeclared_blocks = (self.undeclared.len() - undeclared_gaps) as u64;
        let gaps = (self.gaps.len() - undeclared_gaps) as u64;
        let blocks = (self.entries.len() - self.undeclared.len()) as u64 - gaps;
        SpoolCounts { blocks, gaps, undeclared_blocks, bytes: self.used(), ..self.counts }
    }

    /// Whether blocks and gaps of a stream can be sent in this life.
    fn declares(&self, stream: &str) -> bool {
        self.head.next.iter().any(|(declared, _)| declared == stream)
    }

    /// Accepts rows as the next block of a stream; its number.
    pub(crate) fn accept(&mut self, now: Nanos, source: Source, number: u64, rows: PackedRows) {
        let frame = [&block_header(&rows)[..], rows.payload()];
        self.make_room(frame.iter().map(|part| part.len() as u64).sum());
        let (from_ns, until_ns) = rows.times();
        let span = Span { rows: Some(rows.rows() as u64), from_ns, until_ns };
        let stream = source.stream.clone();
        self.put(Some(now), (source, number, number), span, None, &frame);
        // Not before: a file whose head knows the number must not be without its block.
        self.note_number(&stream, number + 1);
        self.keep_fresh(rows);
    }

    /// Keeps the block that was accepted last in memory, too, as far as there is room; older ones go first.
    fn keep_fresh(&mut self, rows: PackedRows) {
        let room = self.limits.bytes.get() / FRESH_PART;
        let (blocks, bytes) = &mut self.fresh;
        *bytes += rows.payload().len() as u64;
        blocks.insert(self.next_ordinal, rows);
        while *bytes > room
            && let Some((_, oldest)) = blocks.pop_first()
        {
            *bytes -= oldest.payload().len() as u64;
        }
    }

    /// Keeps a gap; neighbours that were not sent become one with it.
    pub(crate) fn tell_gap(&mut self, source: Source, mut gap: Gap) {
        let joins = |entry: &Entry| {
            entry.reason == Some(gap.reason)
                && !entry.was_sent
                && entry.source == source
                && self.follows(&source, entry.last, gap.first)
        };
        let joined = self.gaps.iter().rev().find(|ordinal| joins(&self.entries[*ordinal])).copied();
        let joined = joined.and_then(|ordinal| self.take_out(ordinal));
        if let Some(before) = joined.as_ref().and_then(Entry::gap) {
            gap = joined_gap(&before, &gap);
        }
        let span = Span { rows: gap.rows, from_ns: gap.from_ns, until_ns: gap.until_ns };
        let numbers = (source, gap.first, gap.last);
        let reason = Some(gap.reason);
        self.put(None, numbers, span, reason, &[&Message::Gap(gap).encoded()]);
        // What it joined is written again before it is gone.
        joined.iter().for_each(|entry| self.leave(&entry.place));
    }

    fn put(
        &mut self,
        accepted: Option<Nanos>,
        (source, first, last): (Source, u64, u64),
        span: Span,
        reason: Option<Reason>,
        frame: &[&[u8]],
    ) {
        let place = self.place(frame);
        let (was_sent, refused_reads) = (false, 0);
        let entry =
            Entry { source, first, last, span, reason, place, accepted, was_sent, refused_reads };
        self.insert(entry);
    }

    fn insert(&mut self, entry: Entry) {
        if let Place::Memory(octets) = &entry.place {
            self.in_memory += octets.len() as u64;
        }
        self.next_ordinal += 1;
        let ordinal = self.next_ordinal;
        let numbers = (entry.first, entry.last, ordinal);
        self.numbers.entry(entry.source.clone()).or_default().insert(numbers);
        if entry.reason.is_some() {
            self.gaps.insert(ordinal);
        }
        if !self.declares(&entry.source.stream) {
            self.undeclared.insert(ordinal);
        } else if entry.reason.is_some() {
            self.unsent_gaps.insert(ordinal);
        } else {
            self.unsent_blocks.insert(ordinal);
        }
        self.entries.insert(ordinal, entry);
    }

    /// Writes a frame to the file that is being filled; keeps it in memory where the system refuses.
    fn place(&mut self, frame: &[&[u8]]) -> Place {
        let is_full = |file: &FileState| file.is_broken || file.bytes >= self.file_bytes();
        let full = self.order.back().is_none_or(is_full);
        if self.files.is_some() && full {
            self.begin_file();
            self.remove_unneeded();
        }
        let file = self.order.back_mut().filter(|file| !file.is_broken);
        let (Some(files), Some(file)) = (&mut self.files, file) else {
            self.stop_vouching();
            return Place::Memory(frame.concat());
        };
        match files.append(&file_name(file.number), frame) {
            Ok(()) => {
                let len = frame.iter().map(|part| part.len()).sum();
                let place = Place::File { file: file.number, at: file.bytes, len };
                file.bytes += len as u64;
                file.needed += 1;
                self.unsynced.insert(file.number);
                place
            }
            Err(_) => {
                self.counts.refused_calls += 1;
                file.is_broken = true;
                self.stop_vouching();
                Place::Memory(frame.concat())
            }
        }
    }

    fn file_bytes(&self) -> u64 {
        (self.limits.bytes.get() / 16).clamp(FILE_BYTES.0, FILE_BYTES.1)
    }

    /// Begins a file: its head is on the disk before anything is in it.
    fn begin_file(&mut self) {
        self.sync();
        let Some(files) = &mut self.files else { return };
        let head = Message::SpoolHead(self.head.clone()).encoded();
        let name = file_name(self.next_file);
        let begun = files.append(&name, &[&head]).and_then(|()| files.sync(&name));
        let number = self.next_file;
        self.next_file += 1;
        if begun.is_err() {
            self.counts.refused_calls += 1;
            // Whatever is there is not gone on with, and the next call tries another one.
            drop(files.remove(&name));
            return;
        }
        let (bytes, needed, is_broken) = (head.len() as u64, 0, false);
        self.order.push_back(FileState { number, bytes, needed, is_broken });
    }

    /// Forces what was accepted to the disk. What the disk refuses to take is tried again the next
    /// time, and nothing is appended to that file any more.
    pub(crate) fn sync(&mut self) {
        let Some(files) = &mut self.files else { return };
        let (counts, order) = (&mut self.counts, &mut self.order);
        self.unsynced.retain(|&number| {
            let is_refused = files.sync(&file_name(number)).is_err();
            counts.refused_calls += u64::from(is_refused);
            if is_refused && let Some(file) = order.iter_mut().find(|file| file.number == number) {
                file.is_broken = true;
            }
            is_refused
        });
    }

    fn note_number(&mut self, stream: &str, next: u64) {
        match self.head.next.iter_mut().find(|(name, _)| name == stream) {
            Some((_, known)) => *known = next,
            None => self.head.next.push((stream.to_owned(), next)),
        }
    }

    /// Octets that the spool takes.
    fn used(&self) -> u64 {
        self.in_memory + self.order.iter().map(|file| file.bytes).sum::<u64>()
    }

    /// Lets the oldest blocks go until so many octets fit.
    fn make_room(&mut self, octets: u64) {
        let limit = self.limits.bytes.get();
        let is_full = |spool: &Self| {
            spool.used() + octets > limit || spool.entries.len() >= spool.limits.blocks
        };
        if is_full(self) {
            self.gather_gaps();
        }
        if is_full(self) {
            self.forget_earlier_lives();
        }
        while is_full(self) {
            if !self.drop_oldest() {
                return;
            }
        }
    }

    /// Gives files back that hold no block any more: the gaps in them are written again.
    fn gather_gaps(&mut self) {
        let lies_in = |entry: &Entry| match entry.place {
            Place::File { file, .. } => Some(file),
            Place::Memory(_) => None,
        };
        let blocks = self.entries.values().filter(|entry| entry.reason.is_none());
        let with_blocks: BTreeSet<u64> = blocks.filter_map(lies_in).collect();
        let last = self.order.back().map(|file| file.number);
        let is_lean = |file: &u64| !with_blocks.contains(file) && Some(*file) != last;
        let lean = |at: &&u64| lies_in(&self.entries[*at]).as_ref().is_some_and(is_lean);
        let gaps: Vec<u64> = self.gaps.iter().filter(lean).copied().collect();
        let are_rewritten = !gaps.is_empty();
        gaps.into_iter().for_each(|at| self.write_again(at));
        if are_rewritten {
            self.sync();
        }
        self.remove_unneeded();
    }

    /// Writes a gap to the file that is being filled, so that the one it lies in can go.
    fn write_again(&mut self, ordinal: u64) {
        let Some(gap) = self.entries.get(&ordinal).and_then(Entry::gap) else { return };
        let place = self.place(&[&Message::Gap(gap).encoded()]);
        if let Place::Memory(octets) = &place {
            self.in_memory += octets.len() as u64;
        }
        if let Some(entry) = self.entries.get_mut(&ordinal) {
            let before = std::mem::replace(&mut entry.place, place);
            self.leave(&before);
        }
    }

    /// Lets the oldest block go, with all that lies in its file; whether there was one.
    fn drop_oldest(&mut self) -> bool {
        let mut blocks = self.entries.iter().filter(|(_, entry)| entry.reason.is_none());
        let Some((&ordinal, oldest)) = blocks.next() else { return false };
        let Place::File { file, .. } = oldest.place else {
            self.give_up(&[ordinal], Reason::SpoolFull);
            return true;
        };
        let lies_there =
            |entry: &Entry| matches!(entry.place, Place::File { file: of, .. } if of == file);
        let inside: Vec<u64> =
            self.entries.iter().filter(|(_, entry)| lies_there(entry)).map(|(&at, _)| at).collect();
        if self.order.back().is_some_and(|last| last.number == file) {
            self.begin_file();
        }
        // Gaps that it tells of are written again before it goes.
        let (gaps, blocks): (Vec<u64>, Vec<u64>) =
            inside.into_iter().partition(|at| self.entries[at].reason.is_some());
        gaps.into_iter().for_each(|at| self.write_again(at));
        self.give_up(&blocks, Reason::SpoolFull);
        self.sync();
        self.remove_unneeded();
        true
    }

    /// Makes gaps of blocks.
    pub(crate) fn give_up(&mut self, ordinals: &[u64], reason: Reason) {
        let mut gaps: Vec<(Source, Gap)> = Vec::new();
        let mut places = Vec::new();
        for ordinal in ordinals {
            let Some(entry) = self.take_out(*ordinal) else { continue };
            self.counts.dropped_blocks += 1;
            self.counts.dropped_rows += entry.span.rows.unwrap_or(0);
            let Entry { source, first, last, span, place, .. } = entry;
            places.push(place);
            let Span { rows, from_ns, until_ns } = span;
            let (boot, stream) = (source.boot, source.stream.clone());
            let gap = Gap { boot, stream, first, last, rows, from_ns, until_ns, reason };
            let before = gaps.iter_mut().rev().find(|(of, _)| *of == source);
            match before.filter(|(_, before)| self.follows(&source, before.last, first)) {
                Some((_, before)) => *before = joined_gap(before, &gap),
                None => gaps.push((source, gap)),
            }
        }
        for (source, gap) in gaps {
            self.tell_gap(source, gap);
        }
        // The gaps are written before what they tell of is gone.
        for place in places {
            self.leave(&place);
        }
    }

    /// Whether a gap that ends with `last` can go on with `first`: what lies between them the receiver
    /// has. Of an earlier life's numbers that is known only when the receiver has said so.
    fn follows(&self, source: &Source, last: u64, first: u64) -> bool {
        let own = self.numbers.get(source).into_iter();
        let mut own = own.flat_map(|numbers| numbers.range((last + 1, 0, 0)..(first, 0, 0)));
        // A block between them is still to come.
        let nothing_comes = last < first && own.all(|(_, _, ordinal)| self.gaps.contains(ordinal));
        let known = self.acknowledged.get(source);
        let is_known = source.boot == self.head.boot
            || last + 1 == first
            || known.is_some_and(|known| known.missing(last + 1, first - 1) == 0);
        nothing_comes && is_known
    }

    fn leave(&mut self, place: &Place) {
        match place {
            Place::Memory(octets) => self.in_memory -= octets.len() as u64,
            Place::File { file, .. } => self.release(*file),
        }
    }

    fn release(&mut self, file: u64) {
        let Some(file) = self.order.iter_mut().find(|state| state.number == file) else { return };
        file.needed -= 1;
        // What nobody needs need not be on the disk.
        if file.needed == 0 {
            self.unsynced.remove(&file.number);
        }
    }

    /// Removes an entry and gives its room back.
    fn forget(&mut self, ordinal: u64) -> Option<Entry> {
        let entry = self.take_out(ordinal)?;
        self.leave(&entry.place);
        Some(entry)
    }

    /// Takes an entry out; its octets stay where they are.
    fn take_out(&mut self, ordinal: u64) -> Option<Entry> {
        let entry = self.entries.remove(&ordinal)?;
        if let Some(rows) = self.fresh.0.remove(&ordinal) {
            self.fresh.1 -= rows.payload().len() as u64;
        }
        for set in [
            &mut self.gaps,
            &mut self.unsent_gaps,
            &mut self.unsent_blocks,
            &mut self.put_aside,
            &mut self.undeclared,
        ] {
            set.remove(&ordinal);
        }
        if let Some(numbers) = self.numbers.get_mut(&entry.source) {
            numbers.remove(&(entry.first, entry.last, ordinal));
            if numbers.is_empty() {
                self.numbers.remove(&entry.source);
            }
        }
        Some(entry)
    }

    /// Removes files that nothing is needed of, but one that is being filled.
    fn remove_unneeded(&mut self) {
        let Some(files) = &mut self.files else { return };
        let last = self.order.back().map(|file| file.number);
        let (counts, unsynced) = (&mut self.counts, &mut self.unsynced);
        self.order.retain(|file| {
            if file.needed > 0 || (Some(file.number) == last && !file.is_broken) {
                return true;
            }
            unsynced.remove(&file.number);
            let removed = files.remove(&file_name(file.number));
            counts.refused_calls += u64::from(removed.is_err());
            false
        });
    }

    /// What the receiver has; whatever it accounts for is not needed any more.
    pub(crate) fn acknowledge(&mut self, source: &Source, ranges: &[(u64, u64)]) {
        let known = self.acknowledged.entry(source.clone()).or_default();
        let mut done = Vec::new();
        for &(first, last) in ranges {
            known.add(first, last);
            // With what was acknowledged before: a gap may be known only in parts so far.
            let Some((begin, end)) = known.around(first) else { continue };
            let own = self.numbers.get(source).into_iter();
            let whole = (begin, 0, 0)..=(end, u64::MAX, u64::MAX);
            let own = own.flat_map(|numbers| numbers.range(whole.clone()));
            done.extend(own.filter(|(_, last, _)| *last <= end).map(|(_, _, ordinal)| *ordinal));
        }
        for ordinal in done {
            self.forget(ordinal);
        }
        self.remove_unneeded();
    }

    /// Whether anything of a source is still needed.
    pub(crate) fn holds(&self, source: &Source) -> bool {
        self.numbers.contains_key(source)
    }

    /// Nothing is under way any more.
    pub(crate) fn reset_sent(&mut self) {
        self.put_aside.clear();
        let is_declared = |(ordinal, _): &(&u64, &Entry)| !self.undeclared.contains(*ordinal);
        for (&ordinal, entry) in self.entries.iter().filter(is_declared) {
            let is_gap = entry.reason.is_some();
            let unsent = if is_gap { &mut self.unsent_gaps } else { &mut self.unsent_blocks };
            unsent.insert(ordinal);
        }
    }

    /// Whether anything is to be synced, to be read again, or to be told on the disk.
    pub(crate) fn waits_for_time(&self) -> bool {
        let has_earlier = self.earlier != Earlier::default();
        !self.unsynced.is_empty() || !self.put_aside.is_empty() || has_earlier
    }

    /// Whether it is filled by a quarter at most.
    pub(crate) fn has_room(&self) -> bool {
        self.used() <= self.limits.bytes.get() / 4 && self.entries.len() <= self.limits.blocks / 4
    }

    /// Whether anything that can be sent is not under way.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent_blocks.is_empty() || !self.unsent_gaps.is_empty() || !self.put_aside.is_empty()
    }

    /// Blocks that the system refused to read are tried again.
    pub(crate) fn read_again(&mut self) {
        self.unsent_blocks.append(&mut self.put_aside);
    }

    /// What the spool holds of each source that can be sent, as one span each.
    pub(crate) fn holdings(&self) -> BTreeMap<Source, (u64, u64)> {
        let mut holdings: BTreeMap<Source, (u64, u64)> = BTreeMap::new();
        let is_declared = |(ordinal, _): &(&u64, &Entry)| !self.undeclared.contains(*ordinal);
        for (_, entry) in self.entries.iter().filter(is_declared) {
            match holdings.get_mut(&entry.source) {
                Some(span) => *span = (span.0.min(entry.first), span.1.max(entry.last)),
                None => drop(holdings.insert(entry.source.clone(), (entry.first, entry.last))),
            }
        }
        holdings
    }

    /// The oldest gap that was not sent.
    pub(crate) fn next_gap(&self) -> Option<u64> {
        self.unsent_gaps.first().copied()
    }

    /// The oldest block that was not sent and was accepted at `since` or later.
    pub(crate) fn next_live(&self, since: Nanos) -> Option<u64> {
        let is_live = |ordinal: &&u64| {
            self.entries[*ordinal].accepted.is_some_and(|accepted| accepted >= since)
        };
        self.unsent_blocks.iter().rev().take_while(is_live).last().copied()
    }

    /// The oldest block that was not sent and was accepted before `since`.
    pub(crate) fn next_late(&self, since: Nanos) -> Option<u64> {
        let oldest = self.unsent_blocks.first().copied()?;
        let accepted = self.entries[&oldest].accepted;
        accepted.is_none_or(|accepted| accepted < since).then_some(oldest)
    }

    /// Whose numbers an entry accounts for.
    pub(crate) fn numbers_of(&self, ordinal: u64) -> Option<(&Source, u64, u64)> {
        self.entries.get(&ordinal).map(|entry| (&entry.source, entry.first, entry.last))
    }

    pub(crate) fn bytes_of(&self, ordinal: u64) -> u64 {
        self.entries.get(&ordinal).map_or(0, Entry::bytes)
    }

    /// The octets to be sent of an entry.
    pub(crate) fn send(&mut self, ordinal: u64) -> Taken {
        let Some(entry) = self.entries.get_mut(&ordinal) else { return Taken::Gone };
        if let Some(rows) = self.fresh.0.remove(&ordinal) {
            self.fresh.1 -= rows.payload().len() as u64;
            entry.was_sent = true;
            self.unsent_blocks.remove(&ordinal);
            return Taken::Fresh(rows);
        }
        let read = match (&entry.place, &mut self.files) {
            (Place::Memory(octets), _) => Ok(octets.clone()),
            (Place::File { file, at, len }, Some(files)) => {
                let read = files.read_at(&file_name(*file), *at, *len);
                read.and_then(|octets| match is_whole(&octets) {
                    true => Ok(octets),
                    false => Err(io::ErrorKind::InvalidData.into()),
                })
            }
            (Place::File { .. }, None) => Err(io::ErrorKind::NotFound.into()),
        };
        let error = match read {
            Ok(octets) => {
                entry.was_sent = true;
                self.unsent_gaps.remove(&ordinal);
                self.unsent_blocks.remove(&ordinal);
                return Taken::Octets(octets);
            }
            Err(error) => error,
        };
        self.counts.refused_calls += 1;
        if let Some(gap) = entry.gap() {
            // What it said is known without the file.
            let octets = Message::Gap(gap).encoded();
            self.in_memory += octets.len() as u64;
            let place = std::mem::replace(&mut entry.place, Place::Memory(octets));
            self.leave(&place);
            return Taken::Later;
        }
        entry.refused_reads += 1;
        if is_damage(&error, entry.refused_reads) {
            self.give_up(&[ordinal], Reason::SpoolDamaged);
            return Taken::Gone;
        }
        self.unsent_blocks.remove(&ordinal);
        self.put_aside.insert(ordinal);
        Taken::Later
    }

    /// Whether everything was delivered.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.len() == self.undeclared.len()
    }
}

fn is_whole(octets: &[u8]) -> bool {
    message_at(octets).is_some()
}

/// Whether an error says that octets are gone, when they could not be read for the `tries`th time. Short
/// descriptors, short memory and missing rights pass; a disk that cannot be read may recover.
fn is_damage(error: &io::Error, tries: u8) -> bool {
    use io::ErrorKind::{InvalidData, NotFound, UnexpectedEof};
    let is_gone = matches!(error.kind(), InvalidData | NotFound | UnexpectedEof);
    let is_unreadable = error.raw_os_error() == Some(Errno::IO.raw_os_error());
    is_gone || (is_unreadable && tries >= READ_TRIES_MAX)
}
