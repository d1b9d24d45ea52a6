//! `perf.data` files, taken apart (`tools/perf/Documentation/perf.data-file-format.txt` of Linux).
//!
//! A header names sections: the events with how their records are laid out, the records as the kernel wrote
//! them among some of perf's own, and features such as the host's name and the build IDs of files. Records
//! are read by [`records`] once what depends on the event is taken off them. The module reads octets
//! and touches no file.

use std::collections::BTreeMap;

use crate::mapping::hexadecimal;
use crate::records::{self, Carried, Chain, HEADER, Ids, Octets, Record};

/// Why a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PerfDataError {
    /// It begins with something else.
    #[error("this is no `perf.data` file of this byte order")]
    Foreign,
    /// It was written to a pipe, which has no sections.
    #[error("this was written to a pipe; `perf inject -i - -o perf.data` makes a file of it")]
    Piped,
    /// `perf record -z` has written it.
    #[error(
        "its records are compressed (`perf record -z`); `perf inject -i perf.data -o plain.data` unpacks them"
    )]
    Compressed,
    /// A section lies outside of it, or a header is not laid out as it says.
    #[error("it is damaged or cut: {what} cannot be read")]
    Damaged {
        /// What cannot be.
        what: &'static str,
    },
    /// Its samples have no instruction, no thread or no time.
    #[error("its samples lack {what}, without which they are none")]
    Lacking {
        /// What they lack.
        what: &'static str,
    },
}

/// Bits of `sample_type` in the order in which their fields stand in a sample.
mod sample_type {
    pub(super) const IP: u64 = 1 << 0;
    pub(super) const TID: u64 = 1 << 1;
    pub(super) const TIME: u64 = 1 << 2;
    pub(super) const ADDR: u64 = 1 << 3;
    pub(super) const READ: u64 = 1 << 4;
    pub(super) const CALLCHAIN: u64 = 1 << 5;
    pub(super) const ID: u64 = 1 << 6;
    pub(super) const CPU: u64 = 1 << 7;
    pub(super) const PERIOD: u64 = 1 << 8;
    pub(super) const STREAM_ID: u64 = 1 << 9;
    pub(super) const IDENTIFIER: u64 = 1 << 16;
}

const MMAP: u32 = 1;
const SAMPLE: u32 = 9;
/// Records from here on are perf's own.
const OWN: u32 = 64;
const AUXTRACE: u32 = 71;
const COMPRESSED: [u32; 2] = [81, 83];

const MISC_MMAP_DATA: u16 = 1 << 13;

/// Features, by their bits.
const BUILD_ID: usize = 2;
const HOSTNAME: usize = 3;

/// An event of the file, as far as it says how records are laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What its samples carry.
    sample_type: u64,
    read_format: u64,
    /// Whether other records end with what identifies them.
    has_identity: bool,
    /// Its samples a second, or 0.
    pub frequency: u64,
    /// Units between two samples where no frequency is asked for.
    pub period: u64,
    /// Its numbers, by which samples name it.
    ids: Vec<u64>,
}

/// A sample with the CPU that it was taken on, where the file says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSample<'a> {
    /// When, on perf's clock.
    pub time: u64,
    /// Process and thread.
    pub ids: Ids,
    /// The CPU; 0 where it was not recorded.
    pub cpu: u32,
    /// The instruction.
    pub address: u64,
    /// The callers.
    pub chain: Chain<'a>,
    /// Which event took it, by its place among [`PerfData::events`].
    pub event: usize,
}

/// A record of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileRecord<'a> {
    /// What ran.
    Sample(FileSample<'a>),
    /// What the kernel told beside.
    Beside(Record<'a>),
    /// One that is not laid out as its kind is.
    Unread,
}

/// A file.
#[derive(Debug)]
pub struct PerfData<'a> {
    events: Vec<Event>,
    by_id: BTreeMap<u64, usize>,
    records: &'a [u8],
    /// The host's name.
    pub host: Option<String>,
    /// Build IDs by path, hexadecimal; the kernel's is that of `[kernel.kallsyms]`.
    pub build_ids: BTreeMap<String, String>,
}

/// A part of the file: where it begins, and how far it goes.
fn section<'a>(
    file: &'a [u8],
    [offset, size]: [u64; 2],
    what: &'static str,
) -> Result<&'a [u8], PerfDataError> {
    let range = || {
        let begin = usize::try_from(offset).ok()?;
        let end = begin.checked_add(usize::try_from(size).ok()?)?;
        file.get(begin..end)
    };
    range().ok_or(PerfDataError::Damaged { what })
}

impl<'a> PerfData<'a> {
    /// Reads the headers of a file.
    ///
    /// # Errors
    /// When it is none that can be read.
    pub fn open(file: &'a [u8]) -> Result<Self, PerfDataError> {
        let damaged = |what| PerfDataError::Damaged { what };
        let mut octets = Octets(file);
        if octets.take(8) != Some(b"PERFILE2") {
            return Err(PerfDataError::Foreign);
        }
        let mut words = [0; 8];
        let size = octets.u64().ok_or_else(|| damaged("the header"))?;
        if size == 16 {
            return Err(PerfDataError::Piped);
        }
        for word in &mut words {
            *word = octets.u64().ok_or_else(|| damaged("the header"))?;
        }
        // The size of an event, events, records, and event types, which are not written any more.
        let [event_size, events_at, events_size, records_at, records_size, _, _, features] = words;
        let events_of = section(file, [events_at, events_size], "the list of events")?;
        let events = events(file, events_of, event_size)?;
        let records = section(file, [records_at, records_size], "the records")?;
        let table = records_at.checked_add(records_size).and_then(|at| usize::try_from(at).ok());
        let mut sections = Octets(table.and_then(|at| file.get(at..)).unwrap_or_default());
        let (mut host, mut build_ids) = (None, BTreeMap::new());
        for feature in (0..64).filter(|bit| features >> bit & 1 == 1) {
            let (Some(offset), Some(size)) = (sections.u64(), sections.u64()) else { break };
            // What says more about samples is of use, and samples are of use without it.
            let Ok(body) = section(file, [offset, size], "a feature") else { continue };
            match feature {
                HOSTNAME => host = text(body),
                BUILD_ID => build_ids = build_ids_in(body),
                _ => {}
            }
        }
        let ids = events.iter().enumerate();
        let by_id = ids.flat_map(|(at, event)| event.ids.iter().map(move |id| (*id, at))).collect();
        Ok(Self { events, by_id, records, host, build_ids })
    }

    /// The events that were recorded.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// All records in the order of the file, which is that of each ring.
    ///
    /// # Errors
    /// When they are compressed, or a record claims a length that it cannot have.
    pub fn records(&self, mut take: impl FnMut(FileRecord<'_>)) -> Result<(), PerfDataError> {
        let mut rest = self.records;
        let mut plain = Vec::new();
        while !rest.is_empty() {
            let length = records::length(rest).filter(|length| *length <= rest.len());
            let length = length.ok_or(PerfDataError::Damaged { what: "a record" })?;
            let (record, behind) = rest.split_at(length);
            rest = behind;
            let kind = u32::from_le_bytes([record[0], record[1], record[2], record[3]]);
            if COMPRESSED.contains(&kind) {
                return Err(PerfDataError::Compressed);
            }
            if kind == AUXTRACE {
                // Its own size is behind its header, and data of that size behind it.
                let size =
                    Octets(&record[HEADER..]).u64().and_then(|size| usize::try_from(size).ok());
                let skipped = size.and_then(|size| rest.get(size..));
                rest = skipped.ok_or(PerfDataError::Damaged { what: "a trace" })?;
            }
            if kind >= OWN {
                continue;
            }
            if kind == SAMPLE {
                let sample = self.sample(&record[HEADER..]);
                take(sample.map_or(FileRecord::Unread, FileRecord::Sample));
            } else {
                take(match self.beside(record, kind, &mut plain) {
                    Some(record) => FileRecord::Beside(record),
                    None => FileRecord::Unread,
                });
            }
        }
        Ok(())
    }

    /// The event that a sample names; the first one where samples name none.
    fn event_of(&self, body: &[u8]) -> Option<usize> {
        let first = self.events.first()?;
        let number = if first.sample_type & sample_type::IDENTIFIER != 0 {
            Octets(body).u64()
        } else if first.sample_type & sample_type::ID != 0 {
            let before = [sample_type::IP, sample_type::TID, sample_type::TIME, sample_type::ADDR];
            let fields = before.into_iter().filter(|bit| first.sample_type & bit != 0).count();
            Octets(body.get(fields * 8..)?).u64()
        } else {
            None
        };
        number.map_or(Some(0), |number| self.by_id.get(&number).copied())
    }

    fn sample<'b>(&self, body: &'b [u8]) -> Option<FileSample<'b>> {
        let event = self.event_of(body)?;
        let Event { sample_type: carries, read_format, .. } = self.events[event];
        let has = |bit| carries & bit != 0;
        let mut octets = Octets(body);
        let mut word = |bit| if has(bit) { octets.u64() } else { Some(0) };
        word(sample_type::IDENTIFIER)?;
        let address = word(sample_type::IP)?;
        let ids = word(sample_type::TID)?.to_le_bytes();
        let time = word(sample_type::TIME)?;
        word(sample_type::ADDR)?;
        word(sample_type::ID)?;
        word(sample_type::STREAM_ID)?;
        let cpu = word(sample_type::CPU)?.to_le_bytes();
        word(sample_type::PERIOD)?;
        if has(sample_type::READ) {
            skip_read(&mut octets, read_format)?;
        }
        let chain = if has(sample_type::CALLCHAIN) {
            let count = usize::try_from(octets.u64()?).ok()?;
            octets.take(count.checked_mul(8)?)?
        } else {
            &[]
        };
        let ids = Octets(&ids).ids()?;
        let cpu = Octets(&cpu).u32()?;
        Some(FileSample { time, ids, cpu, address, chain: Chain::of(chain), event })
    }

    /// A record beside samples, as it would be in a ring of ours: what identifies it is thread and time.
    fn beside<'b>(&self, record: &[u8], kind: u32, plain: &'b mut Vec<u8>) -> Option<Record<'b>> {
        let Event { sample_type: carries, has_identity, .. } = *self.events.first()?;
        let tail = [
            sample_type::TID,
            sample_type::TIME,
            sample_type::ID,
            sample_type::STREAM_ID,
            sample_type::CPU,
            sample_type::IDENTIFIER,
        ];
        let fields = tail.into_iter().filter(|bit| carries & bit != 0).count();
        let length = if has_identity { fields * 8 } else { 0 };
        let (body, identity) = record.split_at_checked(record.len().checked_sub(length)?)?;
        let mut identity = Octets(identity);
        let mut word = |bit| {
            if has_identity && carries & bit != 0 { identity.u64() } else { Some(0) }
        };
        let (ids, time) = (word(sample_type::TID)?, word(sample_type::TIME)?);
        plain.clear();
        if kind == MMAP {
            return mapping(body, time, plain);
        }
        plain.extend_from_slice(body);
        plain.extend_from_slice(&ids.to_le_bytes());
        plain.extend_from_slice(&time.to_le_bytes());
        let carried = Carried { callers: false, user: false, cgroup: false, event: false };
        records::read(plain, carried)
    }
}

/// What an older kernel, and perf of the kernel's own code, say of code that was mapped.
fn mapping<'b>(record: &[u8], time: u64, plain: &'b mut Vec<u8>) -> Option<Record<'b>> {
    let misc = u16::from_le_bytes([*record.get(4)?, *record.get(5)?]);
    let mut octets = Octets(record.get(HEADER..)?);
    let ids = octets.ids()?;
    let range = [octets.u64()?, octets.u64()?, octets.u64()?];
    if misc & MISC_MMAP_DATA != 0 {
        return Some(Record::Other(MMAP));
    }
    plain.extend_from_slice(octets.until_zero());
    Some(Record::Mapping { time, ids, range, build_id: &[], inode: 0, path: plain })
}

/// What counters showed when the sample was taken (`PERF_FORMAT_*`).
fn skip_read(octets: &mut Octets<'_>, format: u64) -> Option<()> {
    const ENABLED: u64 = 1;
    const RUNNING: u64 = 2;
    const ID: u64 = 4;
    const GROUP: u64 = 8;
    const LOST: u64 = 16;
    let has = |bit| usize::from(format & bit != 0);
    let times = has(ENABLED) + has(RUNNING);
    let of_each = 1 + has(ID) + has(LOST);
    let words = if has(GROUP) == 1 {
        times.checked_add(usize::try_from(octets.u64()?).ok()?.checked_mul(of_each)?)?
    } else {
        times + of_each
    };
    octets.take(words.checked_mul(8)?).map(drop)
}

fn events(file: &[u8], list: &[u8], size: u64) -> Result<Vec<Event>, PerfDataError> {
    const WHAT: &str = "the list of events";
    let damaged = PerfDataError::Damaged { what: WHAT };
    // A section of numbers stands behind each.
    let size = usize::try_from(size)
        .ok()
        .filter(|size| *size >= 64 + 16)
        .ok_or_else(|| damaged.clone())?;
    let mut events = Vec::new();
    for one in list.chunks_exact(size) {
        let word = |at: usize| {
            let octets = one[at..at + 8].try_into().expect("it has 64 octets at least");
            u64::from_le_bytes(octets)
        };
        const FREQUENCY: u32 = 10;
        const IDENTITY: u32 = 18;
        let flags = word(40);
        let (is_frequency, has_identity) =
            (flags >> FREQUENCY & 1 == 1, flags >> IDENTITY & 1 == 1);
        let ids = section(file, [word(size - 16), word(size - 8)], WHAT)?;
        let (ids, _) = ids.as_chunks::<8>();
        let ids = ids.iter().map(|id| u64::from_le_bytes(*id)).collect();
        events.push(Event {
            sample_type: word(24),
            read_format: word(32),
            has_identity,
            frequency: if is_frequency { word(16) } else { 0 },
            period: if is_frequency { 0 } else { word(16) },
            ids,
        });
    }
    let first = events.first().ok_or(damaged)?;
    for (bit, what) in [
        (sample_type::IP, "the instruction"),
        (sample_type::TID, "the thread"),
        (sample_type::TIME, "the time (`perf record -T`)"),
    ] {
        if first.sample_type & bit == 0 {
            return Err(PerfDataError::Lacking { what });
        }
    }
    Ok(events)
}

/// A text behind its length.
fn text(body: &[u8]) -> Option<String> {
    let mut octets = Octets(body);
    let length = usize::try_from(octets.u32()?).ok()?;
    let mut text = Octets(octets.take(length)?);
    Some(String::from_utf8_lossy(text.until_zero()).into_owned())
}

/// Build IDs of files: a header of a record, the process, 24 octets of the ID, the path.
fn build_ids_in(body: &[u8]) -> BTreeMap<String, String> {
    const MISC_SIZE: u16 = 1 << 15;
    const SIZE: usize = 20;
    let mut found = BTreeMap::new();
    let mut rest = body;
    while let Some(length) = records::length(rest)
        && let Some((record, behind)) = rest.split_at_checked(length)
    {
        rest = behind;
        let misc = u16::from_le_bytes([record[4], record[5]]);
        let mut octets = Octets(&record[HEADER..]);
        let (Some(_), Some(id)) = (octets.u32(), octets.take(24)) else { break };
        let size = if misc & MISC_SIZE == 0 { SIZE } else { usize::from(id[SIZE]).min(SIZE) };
        let path = String::from_utf8_lossy(octets.until_zero()).into_owned();
        found.insert(path, hexadecimal(&id[..size]));
    }
    found
}
