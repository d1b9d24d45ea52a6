//! The headers of an ELF file: which octets of it lie at which addresses, and in which sections.
//!
//! Section headers serve names only: the dynamic loader does without them, and so does everything else here. Only files
//! of 64 bits whose least octets come first are read. Whoever may run a program chooses all of its octets: lengths
//! are limited, and nothing here trusts an address.

/// Program headers that are read at most.
const HEADERS_MAX: u16 = 512;

/// Section headers that are read at most.
const SECTIONS_MAX: u16 = 1_024;

/// Octets of a program header, of a section's, and of the file's own.
const PROGRAM_HEADER: usize = 56;
const SECTION_HEADER: usize = 64;
const FILE_HEADER: u64 = 64;

/// A part that is loaded.
pub(crate) const LOAD: u32 = 1;

/// Where the search table of `.eh_frame` lies.
pub(crate) const EH_FRAME: u32 = 0x6474_e550;

/// Processors of the family x86-64.
pub(crate) const X86_64: u16 = 62;

/// A part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) kind: u32,
    pub(crate) offset: u64,
    /// Octets of the file.
    pub(crate) size: u64,
    pub(crate) address: u64,
}

/// The processors that a file is for, and its parts; `octets` gives its octets by offset and size. `None` where it is
/// no such file.
pub(crate) fn segments(
    octets: impl Fn(u64, u64) -> Option<Vec<u8>>,
) -> Option<(u16, Vec<Segment>)> {
    let head = octets(0, FILE_HEADER)?;
    let (at, size, count) = (u64_at(&head, 32)?, u16_at(&head, 54)?, u16_at(&head, 56)?);
    // 64 bits, least octet first.
    let is_read = head.starts_with(b"\x7fELF\x02\x01");
    if !is_read || usize::from(size) != PROGRAM_HEADER || count > HEADERS_MAX {
        return None;
    }
    let headers = octets(at, u64::from(size) * u64::from(count))?;
    let segment = |of: &[u8]| {
        Some(Segment {
            kind: u32_at(of, 0)?,
            offset: u64_at(of, 8)?,
            address: u64_at(of, 16)?,
            size: u64_at(of, 32)?,
        })
    };
    let segments = headers.chunks_exact(PROGRAM_HEADER).map(segment).collect::<Option<_>>()?;
    Some((u16_at(&head, 18)?, segments))
}

/// A section of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) kind: u32,
    pub(crate) address: u64,
    pub(crate) offset: u64,
    /// Octets of the file, unless it is of a kind that has none.
    pub(crate) size: u64,
    /// Another section that it needs, by its place among all.
    pub(crate) link: usize,
    /// Octets of an entry; 0 where it has none.
    pub(crate) entry: u64,
}

/// The sections of a file; `octets` gives its octets by offset and size. `None` where it is no file that is read here,
/// or has no sections.
pub(crate) fn sections(octets: impl Fn(u64, u64) -> Option<Vec<u8>>) -> Option<Vec<Section>> {
    let head = octets(0, FILE_HEADER)?;
    let (at, size, count) = (u64_at(&head, 40)?, u16_at(&head, 58)?, u16_at(&head, 60)?);
    let is_read = head.starts_with(b"\x7fELF\x02\x01");
    if !is_read || usize::from(size) != SECTION_HEADER || count > SECTIONS_MAX {
        return None;
    }
    let headers = octets(at, u64::from(size) * u64::from(count))?;
    let headers: Vec<&[u8]> = headers.chunks_exact(SECTION_HEADER).collect();
    let names = headers.get(usize::from(u16_at(&head, 62)?))?;
    let names = octets(u64_at(names, 24)?, u64_at(names, 32)?.min(NAMES_MAX))?;
    let section = |of: &&[u8]| {
        Some(Section {
            name: text_at(&names, u32_at(of, 0)?)?.to_owned(),
            kind: u32_at(of, 4)?,
            address: u64_at(of, 16)?,
            offset: u64_at(of, 24)?,
            size: u64_at(of, 32)?,
            link: usize::try_from(u32_at(of, 40)?).ok()?,
            entry: u64_at(of, 56)?,
        })
    };
    headers.iter().map(section).collect()
}

/// Octets of the names of all sections that are read at most.
const NAMES_MAX: u64 = 1 << 20;

/// The text that begins at a place and ends with a zero.
pub(crate) fn text_at(octets: &[u8], at: u32) -> Option<&str> {
    let text = octets.get(usize::try_from(at).ok()?..)?;
    let end = text.iter().position(|&octet| octet == 0)?;
    std::str::from_utf8(text.get(..end)?).ok()
}

/// The address of an offset in a file.
pub(crate) fn address_of(segments: &[Segment], offset: u64) -> Option<u64> {
    let mut addresses = segments.iter().filter(|of| of.kind == LOAD).filter_map(|segment| {
        let into = offset.checked_sub(segment.offset).filter(|into| *into < segment.size)?;
        segment.address.checked_add(into)
    });
    addresses.next()
}

/// The offset in a file of an address, and how many octets of it there are from there on.
pub(crate) fn offset_of(segments: &[Segment], address: u64) -> Option<(u64, u64)> {
    let mut offsets = segments.iter().filter(|of| of.kind == LOAD).filter_map(|segment| {
        let into = address.checked_sub(segment.address)?;
        let left = segment.size.checked_sub(into).filter(|left| *left > 0)?;
        Some((segment.offset.checked_add(into)?, left))
    });
    offsets.next()
}

pub(crate) fn u16_at(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*octets.get(at..)?.first_chunk()?))
}

pub(crate) fn u32_at(octets: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*octets.get(at..)?.first_chunk()?))
}

pub(crate) fn u64_at(octets: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*octets.get(at..)?.first_chunk()?))
}
