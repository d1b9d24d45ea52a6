//! `perf.data` files as profiles: samples, and what explains them, into the blocks of a recording.
//!
//! perf stamps records with a clock that begins at some boot. Unless the first instant is said, the last record
//! stands for the instant at which the file was written last.

use std::collections::BTreeMap;

use meikyo_recording::{PackError, PackedRows};
use meikyo_units::{Nanos, WallTime};

use crate::block::{BlockOptions, BlockWriter, Sample};
use crate::existing::Thread;
use crate::kernel::{KERNEL, KernelFacts};
use crate::mapping::{Mapping, hexadecimal};
use crate::perf_data::{FileRecord, FileSample, PerfData, PerfDataError};
use crate::recorder::side_band::SideBand;
use crate::records::Record;

/// How perf calls the kernel's own text.
const KALLSYMS: &str = "[kernel.kallsyms]";

/// The process of what the kernel itself maps.
const OF_KERNEL: u32 = u32::MAX;

/// Records between two times that rows beside samples are handed on.
const FLUSH_EVERY: u64 = 10_000;

/// Which file, and how it is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportOptions {
    /// The host's name, if not the one in the file.
    pub host: Option<String>,
    /// When the first record was taken, if known.
    pub begin: Option<WallTime>,
    /// When the file was written last.
    pub written: WallTime,
}

/// What was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// Samples of the event that was chosen: the one with most of them.
    pub samples: u64,
    /// Samples of other events, which are left out.
    pub other_samples: u64,
    /// Records that perf or the kernel lost.
    pub lost: u64,
    /// Records that are not laid out as their kind is.
    pub unread: u64,
    /// The host, as it is called in the recording.
    pub host: String,
}

/// Why a file cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It cannot be read.
    #[error(transparent)]
    File(#[from] PerfDataError),
    /// The file does not say which host it is of.
    #[error("the file does not name its host")]
    NoHost,
    /// Rows do not fit into a block.
    #[error("cannot pack rows")]
    Pack(#[from] PackError),
}

/// Hands on the blocks of a file.
///
/// # Errors
/// When it cannot be read, or does not name its host and nobody else does.
pub fn import(
    file: &[u8],
    options: &ImportOptions,
    sink: &mut impl FnMut(PackedRows),
) -> Result<Imported, ImportError> {
    let data = PerfData::open(file)?;
    let host = options.host.clone().or_else(|| data.host.clone()).ok_or(ImportError::NoHost)?;
    let span = Span::of(&data)?;
    let mut importing = Importing {
        clock: Clock::new(&span, options),
        event: span.event,
        kernel: data.build_ids.get(KALLSYMS).cloned(),
        build_ids: &data.build_ids,
        side: SideBand::new(&host),
        writers: BTreeMap::new(),
        blocks: Vec::new(),
        imported: Imported { host, ..Imported::default() },
    };
    importing.rate(&data);
    let mut failed = None;
    let mut records = 0_u64;
    data.records(|record| {
        importing.take(record);
        records += 1;
        if records.is_multiple_of(FLUSH_EVERY) && failed.is_none() {
            failed = importing.flush(sink).err();
        }
    })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    importing.finish(sink)?;
    Ok(importing.imported)
}

/// The first and the last time in a file, and the event with most samples.
struct Span {
    first: u64,
    last: u64,
    event: usize,
}

impl Span {
    fn of(data: &PerfData<'_>) -> Result<Self, PerfDataError> {
        let (mut first, mut last) = (u64::MAX, 0);
        let mut counts = vec![0_u64; data.events().len()];
        data.records(|record| {
            let time = match record {
                FileRecord::Sample(sample) => {
                    counts[sample.event] += 1;
                    sample.time
                }
                FileRecord::Beside(record) => time_of(&record).unwrap_or(0),
                FileRecord::Unread => 0,
            };
            // What perf itself has written down of what was there has no time.
            if time > 0 {
                first = first.min(time);
                last = last.max(time);
            }
        })?;
        let most = counts.iter().enumerate().max_by_key(|(at, count)| (**count, usize::MAX - at));
        let event = most.map_or(0, |(at, _)| at);
        Ok(Self { first: first.min(last), last, event })
    }
}

fn time_of(record: &Record<'_>) -> Option<u64> {
    match *record {
        Record::Mapping { time, .. }
        | Record::Name { time, .. }
        | Record::Fork { time, .. }
        | Record::Exit { time, .. }
        | Record::Sample { time, .. } => Some(time),
        Record::Switch { .. } | Record::Lost { .. } | Record::Throttle | Record::Other(_) => None,
    }
}

/// perf's clock against that of the day.
#[derive(Debug, Clone, Copy)]
struct Clock {
    first: u64,
    offset: i64,
}

impl Clock {
    fn new(span: &Span, options: &ImportOptions) -> Self {
        let (known, time) = match options.begin {
            Some(begin) => (begin, span.first),
            None => (options.written, span.last),
        };
        Self { first: span.first, offset: known.as_nanos().wrapping_sub(time.cast_signed()) }
    }

    fn wall(self, time: u64) -> i64 {
        time.max(self.first).cast_signed().wrapping_add(self.offset)
    }
}

struct Importing<'a> {
    clock: Clock,
    event: usize,
    /// The kernel's build ID.
    kernel: Option<String>,
    build_ids: &'a BTreeMap<String, String>,
    side: SideBand,
    /// Of each CPU the block that is being filled, and its second.
    writers: BTreeMap<u32, (i64, BlockWriter)>,
    blocks: Vec<Result<Option<PackedRows>, PackError>>,
    imported: Imported,
}

impl Importing<'_> {
    /// How often was sampled, where the event says it.
    fn rate(&mut self, data: &PerfData<'_>) {
        let Some(event) = data.events().get(self.event) else { return };
        let period = match event.frequency {
            0 => event.period,
            frequency => 1_000_000_000 / frequency,
        };
        let begin = self.clock.wall(0);
        self.side.rate(begin, "start", [Nanos::new(period), Nanos::ZERO], [None, None]);
    }

    fn take(&mut self, record: FileRecord<'_>) {
        match record {
            FileRecord::Sample(sample) if sample.event == self.event => self.sample(&sample),
            FileRecord::Sample(_) => self.imported.other_samples += 1,
            FileRecord::Beside(record) => self.beside(&record),
            FileRecord::Unread => self.imported.unread += 1,
        }
    }

    fn sample(&mut self, of: &FileSample<'_>) {
        self.imported.samples += 1;
        let time = self.clock.wall(of.time);
        let second = time.div_euclid(1_000_000_000);
        let options = BlockOptions { stacks: true, cgroups: false, whole_microseconds: false };
        let new = || (second, BlockWriter::new(&self.imported.host, of.cpu, options));
        let (of_second, writer) = self.writers.entry(of.cpu).or_insert_with(new);
        if (*of_second != second || writer.is_full()) && writer.samples() > 0 {
            self.blocks.push(writer.finish());
        }
        *of_second = second;
        writer.push(&Sample {
            time,
            tid: of.ids.tid,
            pid: of.ids.pid,
            address: of.address,
            cgroup: None,
            callers: of.chain.callers().collect(),
        });
    }

    fn beside(&mut self, record: &Record<'_>) {
        let clock = self.clock;
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        match *record {
            Record::Mapping { time, ids, range, build_id, path, .. } if ids.pid == OF_KERNEL => {
                // Modules lie elsewhere in each boot; where they lay is not looked up.
                if text(path).starts_with(KALLSYMS) {
                    if !build_id.is_empty() {
                        self.kernel = Some(hexadecimal(build_id));
                    }
                    self.kernel_text(clock.wall(time), [range[0], range[1]]);
                }
            }
            Record::Mapping { time, ids, range, build_id: [], inode, path } => {
                let path = text(path);
                let build_id = self.build_ids.get(&path).cloned();
                let inode = Some(inode).filter(|&inode| inode != 0 && build_id.is_none());
                let [address, size, offset] = range;
                let pid = Some(ids.pid);
                let mapping = Mapping { pid, address, size, offset, path, build_id, inode };
                self.side.mapping(clock.wall(time), &mapping);
            }
            Record::Name { time: 0, ids, name, .. } => {
                let thread = Thread { pid: ids.pid, tid: ids.tid, name: text(name) };
                self.side.thread_there(clock.wall(0), &thread);
            }
            Record::Lost { count } => {
                self.imported.lost += count;
                self.side.lost(clock.wall(0), "ring_full", None, count);
            }
            Record::Throttle => self.side.lost(clock.wall(0), "throttled", None, 1),
            _ => self.side.told(record, |time| clock.wall(time)),
        }
    }

    /// Where the kernel lay: as it lies now if it is the one that runs here, since the same boot then.
    fn kernel_text(&mut self, time: i64, text: [u64; 2]) {
        let here = KernelFacts::of_this_host();
        let is_here = here.text.is_some_and(|(begin, _)| begin == text[0])
            && here.build_id.is_some()
            && here.build_id == self.kernel;
        if is_here {
            here.mappings().for_each(|mapping| self.side.mapping(time, &mapping));
            return;
        }
        let [address, size] = text;
        let mapping = Mapping {
            pid: None,
            address,
            size,
            offset: 0,
            path: KERNEL.into(),
            build_id: self.kernel.clone(),
            inode: None,
        };
        self.side.mapping(time, &mapping);
    }

    fn flush(&mut self, sink: &mut impl FnMut(PackedRows)) -> Result<(), PackError> {
        for block in std::mem::take(&mut self.blocks) {
            block?.into_iter().for_each(&mut *sink);
        }
        self.side.flush(sink)
    }

    fn finish(&mut self, sink: &mut impl FnMut(PackedRows)) -> Result<(), PackError> {
        for (_, writer) in self.writers.values_mut() {
            self.blocks.push(writer.finish());
        }
        self.flush(sink)
    }
}
