//! The rules of an ELF file: its program headers, the search table of `.eh_frame_hdr`, and `.eh_frame`.
//!
//! Section headers are not needed: the dynamic loader does without them, too. Only what every linker
//! writes is read (64 bits, x86-64, a table of pairs of 32 bits that are relative to its begin); a file
//! that is otherwise has no rules. Whoever may run a program chooses all of its octets: lengths are
//! limited, and nothing here trusts an address.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;

use gimli::{BaseAddresses, EhFrame, EndianSlice, LittleEndian, UnwindContext, UnwindSection as _};

use super::rules::Rules;

/// Octets of rules, and of their search table, that are read of a file at most.
const FRAMES_MAX: u64 = 64 << 20;

/// Program headers that are read at most.
const HEADERS_MAX: u16 = 512;

const PROGRAM_HEADER: usize = 56;
const PT_LOAD: u32 = 1;
const PT_GNU_EH_FRAME: u32 = 0x6474_e550;

/// Version 1; where `.eh_frame` is, relative to where that stands; a number of 32 bits; pairs relative to
/// the begin of the header.
const HEADER_FORM: [u8; 4] = [1, 0x1b, 0x03, 0x3b];

/// Octets before the search table.
const HEADER: usize = 12;

/// Octets of an entry of it: a function's begin and its description, 32 bits each.
const ENTRY: usize = 8;

/// A loaded part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    offset: u64,
    size: u64,
    address: u64,
}

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
        let head = octets(0, 64)?;
        // 64 bits, least octet first, x86-64.
        let is_read = head.starts_with(b"\x7fELF\x02\x01") && u16_at(&head, 18)? == 62;
        let (at, size, count) = (u64_at(&head, 32)?, u16_at(&head, 54)?, u16_at(&head, 56)?);
        if !is_read || usize::from(size) != PROGRAM_HEADER || count > HEADERS_MAX {
            return None;
        }
        let headers = octets(at, u64::from(size) * u64::from(count))?;
        let (mut segments, mut header) = (Vec::new(), None);
        for of in headers.chunks_exact(PROGRAM_HEADER) {
            let segment =
                Segment { offset: u64_at(of, 8)?, address: u64_at(of, 16)?, size: u64_at(of, 32)? };
            match u32_at(of, 0)? {
                PT_LOAD => segments.push(segment),
                PT_GNU_EH_FRAME => header = Some(segment),
                _ => {}
            }
        }
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
        let mut in_segments = segments.iter().filter_map(|segment| {
            let into = frames_address.checked_sub(segment.address)?;
            let left = segment.size.checked_sub(into)?;
            Some((segment.offset.checked_add(into)?, left.min(FRAMES_MAX)))
        });
        let (offset, size) = in_segments.find(|&(_, size)| size > 0)?;
        let frames = octets(offset, size)?;
        Some(Self { segments, header_address: header.address, table, frames_address, frames })
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
        let mut addresses = self.segments.iter().filter_map(|segment| {
            let into = offset.checked_sub(segment.offset).filter(|into| *into < segment.size)?;
            segment.address.checked_add(into)
        });
        let address = addresses.next()?;
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

fn u16_at(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(octets.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(octets: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(octets.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(octets: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(octets.get(at..at + 8)?.try_into().ok()?))
}
