//! The rules of an ELF file: the search table of `.eh_frame_hdr`, and `.eh_frame`.
//!
//! Only what every linker writes is read (x86-64, a table of pairs of 32 bits that are relative to its
//! begin); a file that is otherwise has no rules. Whoever may run a program chooses all of its octets: lengths are
//! limited, and nothing here trusts an address.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;

use gimli::{BaseAddresses, EhFrame, EndianSlice, LittleEndian, UnwindContext, UnwindSection as _};

use super::rules::Rules;
use crate::elf::{self, Segment, u32_at};

/// Octets of rules, and of their search table, that are read of a file at most.
const FRAMES_MAX: u64 = 64 << 20;

/// Version 1; where `.eh_frame` is, relative to where that stands; a number of 32 bits; pairs relative to
/// the begin of the header.
const HEADER_FORM: [u8; 4] = [1, 0x1b, 0x03, 0x3b];

/// Octets before the search table.
const HEADER: usize = 12;

/// Octets of an entry of it: a function's begin and its description, 32 bits each.
const ENTRY: usize = 8;

/// Rules of a file.
#[derive(Debug)]
pub(super) struct Image {
    segments: Vec<Segment>,
    header_address: u64,
    /// The search table.
    table: Vec<u8>,
    frames_address: u64,
    /// `.eh_frame`, and what follows it in its segment.
    frames: Vec<u8>,
}

impl Image {
    /// Reads the rules of the file that begins `base` octets into `file`; `None` where it has none.
    pub(super) fn read(file: &File, base: u64) -> Option<Self> {
        let octets = |offset: u64, size: u64| {
            let mut octets = vec![0; usize::try_from(size).ok()?];
            file.read_exact_at(&mut octets, base.checked_add(offset)?).ok()?;
            Some(octets)
        };
        Self::parse(octets)
    }

    /// Reads the rules of a file, whose octets `octets` gives by offset and size.
    pub(super) fn parse(octets: impl Fn(u64, u64) -> Option<Vec<u8>>) -> Option<Self> {
        let (processors, segments) = elf::segments(&octets)?;
        if processors != elf::X86_64 {
            return None;
        }
        let header = segments.iter().find(|segment| segment.kind == elf::EH_FRAME);
        let header = header.filter(|header| header.size <= FRAMES_MAX)?;
        let mut table = octets(header.offset, header.size)?;
        if !table.starts_with(&HEADER_FORM) {
            return None;
        }
        let relative = i64::from(u32_at(&table, 4)?.cast_signed());
        let frames_address = header.address.checked_add(4)?.checked_add_signed(relative)?;
        let count = usize::try_from(u32_at(&table, 8)?).ok()?;
        table.drain(..HEADER);
        table.truncate(count.checked_mul(ENTRY)?);
        let (offset, left) = elf::offset_of(&segments, frames_address)?;
        let frames = octets(offset, left.min(FRAMES_MAX))?;
        let header_address = header.address;
        Some(Self { segments, header_address, table, frames_address, frames })
    }

    /// The rules of the code that the kernel maps into every process, as this process has it.
    pub(super) fn of_own_vdso() -> Option<Self> {
        let maps = fs::read_to_string("/proc/self/maps").ok()?;
        let line = maps.lines().find(|line| line.ends_with(super::VDSO))?;
        let (begin, _) = line.split_once('-')?;
        Self::read(&File::open("/proc/self/mem").ok()?, u64::from_str_radix(begin, 16).ok()?)
    }

    /// Octets that it takes.
    pub(super) fn octets(&self) -> usize {
        self.table.len() + self.frames.len()
    }

    /// The rules at an offset in the file; `None` where it has none there.
    pub(super) fn rules_at(&self, offset: u64) -> Option<Rules> {
        let address = elf::address_of(&self.segments, offset)?;
        let description = self.description_of(address)?;
        let mut section = EhFrame::new(&self.frames, LittleEndian);
        section.set_address_size(8);
        let bases = BaseAddresses::default().set_eh_frame(self.frames_address);
        let function = section.fde_from_offset(
            &bases,
            gimli::EhFrameOffset(description),
            EhFrame::<EndianSlice<'_, LittleEndian>>::cie_from_offset,
        );
        let function = function.ok().filter(|function| function.contains(address))?;
        let mut context = UnwindContext::new();
        let row = function.unwind_info_for_address(&section, &bases, &mut context, address).ok()?;
        Rules::of(row, function.is_signal_trampoline(), &section)
    }

    /// Where in `.eh_frame` the function is described that begins last before an address.
    fn description_of(&self, address: u64) -> Option<usize> {
        let (entries, _) = self.table.as_chunks::<ENTRY>();
        let absolute = |octets: &[u8]| {
            let relative = i64::from(u32_at(octets, 0)?.cast_signed());
            self.header_address.checked_add_signed(relative)
        };
        let behind =
            entries.partition_point(|entry| absolute(entry).is_some_and(|begin| begin <= address));
        let entry = entries.get(behind.checked_sub(1)?)?;
        let description = absolute(entry.get(4..)?)?.checked_sub(self.frames_address)?;
        usize::try_from(description).ok().filter(|&at| at < self.frames.len())
    }
}
