//! Blocks of samples: the rows of one CPU and one second, packed.
//!
//! A block is rows of the table [`samples`] in the packed form of a recording, so that whoever reads
//! recordings reads it. It needs no other block: addresses, threads and stacks stand in it once each.
//! What it takes in octets is in `docs/profiling.md`.

use meikyo_recording::{PackError, PackedRows, Packer, Symbol, UnpackError};

use crate::tables::samples;

/// Octets that a block takes at most: what is sent elsewhere must not be longer.
pub const BLOCK_OCTETS_MAX: usize = 1 << 20;

/// Octets that a block is filled to, so that its tables of words and what says where it is from have
/// room beside them.
pub(crate) const FILLED: usize = 900 << 10;

/// What a sample takes at most without its stack: time, address, thread, process, control group and
/// their places, each as if it were met once.
const SAMPLE_OCTETS: usize = 60;

/// How samples are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockOptions {
    /// Whether the stacks of the samples are kept.
    pub stacks: bool,
    /// Whether the control groups of the samples are kept.
    pub cgroups: bool,
    /// Whether times are rounded down to whole microseconds, which saves more than an octet a sample.
    pub whole_microseconds: bool,
}

/// A sample of a processor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample {
    /// When it was taken, ns since the epoch.
    pub time: i64,
    /// The thread that ran.
    pub tid: u32,
    /// Its process.
    pub pid: u32,
    /// The instruction.
    pub address: u64,
    /// Its control group.
    pub cgroup: Option<u64>,
    /// Where its callers go on, innermost first, as the kernel walks them.
    pub callers: Vec<u64>,
}

/// Samples of one CPU on their way into a block.
#[derive(Debug)]
pub struct BlockWriter {
    host: String,
    cpu: u64,
    options: BlockOptions,
    packer: Packer,
    /// The host's name in the block that is being filled.
    name: Option<Symbol>,
    stack: String,
    /// Of whom that tells: often those of the next sample, too.
    callers: Vec<u64>,
    /// Octets of the stacks of the block so far.
    stacks: usize,
}

impl BlockWriter {
    /// A writer of the samples of a CPU of a host.
    pub fn new(host: &str, cpu: u32, options: BlockOptions) -> Self {
        let packer = Packer::new(samples::schema());
        let (host, stack) = (host.to_owned(), String::new());
        let (callers, stacks) = (Vec::new(), 0);
        Self { host, cpu: cpu.into(), options, packer, name: None, stack, callers, stacks }
    }

    /// Whether blocks are made for somebody who watches, ten times a second: in less time, and with more octets.
    pub fn set_haste(&mut self, is_in_haste: bool) {
        self.packer.set_haste(is_in_haste);
    }

    /// Samples of the block so far.
    pub fn samples(&mut self) -> usize {
        self.packer.batch().rows()
    }

    /// Whether the block must be finished before the next sample.
    pub fn is_full(&mut self) -> bool {
        self.samples() * SAMPLE_OCTETS + self.stacks >= FILLED
    }

    /// Takes the next sample.
    pub fn push(&mut self, sample: &Sample) {
        const MICROSECOND: i64 = 1_000;
        let (host, packer) = (&self.host, &mut self.packer);
        let host = *self.name.get_or_insert_with(|| packer.symbol(host));
        let batch = self.packer.batch();
        let past = if self.options.whole_microseconds { sample.time % MICROSECOND } else { 0 };
        batch.begin_row(sample.time - past);
        batch.put(samples::HOST, host);
        batch.put(samples::CPU, self.cpu);
        batch.put(samples::TID, sample.tid.into());
        batch.put(samples::PID, sample.pid.into());
        batch.put(samples::ADDRESS, sample.address);
        if let Some(cgroup) = sample.cgroup.filter(|_| self.options.cgroups) {
            batch.put(samples::CGROUP, cgroup);
        }
        if self.options.stacks {
            if self.callers != sample.callers {
                self.callers.clone_from(&sample.callers);
                write_stack(&self.callers, &mut self.stack);
            }
            batch.put(samples::STACK, &self.stack);
            self.stacks += self.stack.len();
        }
    }

    /// The block of the samples so far, and begins the next one; `None` when there are none.
    ///
    /// # Errors
    /// When the samples are more than a block holds, which they are not as long as it is finished
    /// whenever [`BlockWriter::is_full`] says so.
    pub fn finish(&mut self) -> Result<Option<PackedRows>, PackError> {
        self.name = None;
        self.stacks = 0;
        match self.packer.pack() {
            Err(PackError::Empty) => Ok(None),
            packed => packed.map(Some),
        }
    }
}

/// Samples of a block by their host and CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockSamples {
    /// The host; `None` where the block does not say.
    pub host: Option<String>,
    /// The CPU; `None` where the block does not say.
    pub cpu: Option<u64>,
    /// The samples in their order.
    pub samples: Vec<Sample>,
}

/// The samples of a block.
///
/// # Errors
/// When it is of another table, or damaged.
pub fn read(block: &PackedRows) -> Result<BlockSamples, UnpackError> {
    let (batch, words) = block.unpack(&samples::schema())?;
    let bits = |column: usize, row| batch.bits(column, row);
    let host = bits(samples::HOST.position(), 0).and_then(|at| usize::try_from(at).ok());
    let host = host.and_then(|at| words.get(at).cloned());
    let cpu = bits(samples::CPU.position(), 0);
    let narrow = |value: Option<u64>| {
        u32::try_from(value.unwrap_or(0))
            .map_err(|_| UnpackError::Malformed { what: "the number of a thread is too large" })
    };
    let samples = (0..batch.rows()).map(|row| {
        Ok(Sample {
            time: bits(0, row).unwrap_or(0).cast_signed(),
            tid: narrow(bits(samples::TID.position(), row))?,
            pid: narrow(bits(samples::PID.position(), row))?,
            address: bits(samples::ADDRESS.position(), row).unwrap_or(0),
            cgroup: bits(samples::CGROUP.position(), row),
            callers: read_stack(batch.text(samples::STACK.position(), row).unwrap_or_default())
                .ok_or(UnpackError::Malformed { what: "a stack is no list of addresses" })?,
        })
    });
    let samples = samples.collect::<Result<_, _>>()?;
    Ok(BlockSamples { host, cpu, samples })
}

/// Writes callers, innermost first, as the text of a stack, which begins with the outermost.
pub(crate) fn write_stack(callers: &[u64], stack: &mut String) {
    stack.clear();
    let mut text = std::mem::take(stack).into_bytes();
    for &caller in callers.iter().rev() {
        if !text.is_empty() {
            text.push(b';');
        }
        push_hexadecimal(caller, &mut text);
    }
    *stack = String::from_utf8(text).expect("digits are ASCII");
}

/// Appends a number as `{:x}` writes it, whose way through the formatter took a seventh of the agent's time.
fn push_hexadecimal(number: u64, text: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [0; 16];
    let (mut first, mut rest) = (digits.len(), number);
    while first == digits.len() || rest != 0 {
        first -= 1;
        digits[first] = DIGITS[usize::try_from(rest & 15).expect("four bits")];
        rest >>= 4;
    }
    text.extend_from_slice(&digits[first..]);
}

/// The callers, innermost first, in the text of a stack; `None` when it is none.
pub fn read_stack(stack: &str) -> Option<Vec<u64>> {
    if stack.is_empty() {
        return Some(Vec::new());
    }
    stack.rsplit(';').map(|caller| u64::from_str_radix(caller, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample() -> impl Strategy<Value = Sample> {
        let callers = prop::collection::vec(any::<u64>(), 0..6);
        (any::<i64>(), 0_u32..9, any::<u32>(), any::<u64>(), prop::option::of(0_u64..4), callers)
            .prop_map(|(time, tid, pid, address, cgroup, callers)| Sample {
                time,
                tid,
                pid,
                address,
                cgroup,
                callers,
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn samples_come_back_as_they_were(
            samples in prop::collection::vec(sample(), 1..200),
            is_in_haste: bool,
        ) {
            let options = BlockOptions { stacks: true, cgroups: true, whole_microseconds: false };
            let mut writer = BlockWriter::new("node001", 7, options);
            writer.set_haste(is_in_haste);
            samples.iter().for_each(|sample| writer.push(sample));
            let block = writer.finish().unwrap().unwrap();
            let sent = PackedRows::received(block.payload().to_vec(), block.checksum()).unwrap();
            let read = read(&sent).unwrap();
            prop_assert_eq!((read.host.as_deref(), read.cpu), (Some("node001"), Some(7)));
            prop_assert_eq!(read.samples, samples);
        }
    }

    #[test]
    fn a_full_block_is_no_longer_than_can_be_sent_whatever_is_in_it() {
        // Numbers that nothing can be saved on.
        let mut random = 1_u64;
        let mut next = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        for callers in [0, 127] {
            let options = BlockOptions { stacks: true, cgroups: true, whole_microseconds: false };
            let mut writer = BlockWriter::new("node001", 7, options);
            while !writer.is_full() {
                writer.push(&Sample {
                    time: next().cast_signed(),
                    tid: u32::try_from(next() >> 32).unwrap(),
                    pid: u32::try_from(next() >> 32).unwrap(),
                    address: next(),
                    cgroup: Some(next()),
                    callers: (0..callers).map(|_| next()).collect(),
                });
            }
            let octets = writer.finish().unwrap().unwrap().payload().len();
            assert!((FILLED / 4..BLOCK_OCTETS_MAX).contains(&octets), "{octets} octets");
        }
    }

    proptest! {
        #[test]
        fn hexadecimal_numbers_are_those_of_the_formatter(number: u64, shift in 0_u32..64) {
            let mut text = Vec::new();
            push_hexadecimal(number >> shift, &mut text);
            prop_assert_eq!(text, format!("{:x}", number >> shift).into_bytes());
        }
    }

    #[test]
    fn blocks_of_few_samples_are_longer_in_haste_and_others_are_not() {
        let octets = |samples: u32, is_in_haste: bool| {
            let options = BlockOptions { stacks: false, cgroups: false, whole_microseconds: false };
            let mut writer = BlockWriter::new("node001", 7, options);
            writer.set_haste(is_in_haste);
            for at in 0..samples {
                let (time, address) = (i64::from(at) * 1_000_000, u64::from(at % 7) * 8);
                writer.push(&Sample { time, tid: at % 2, address, ..Sample::default() });
            }
            writer.finish().unwrap().unwrap().payload().len()
        };
        assert!(octets(100, true) > octets(100, false));
        assert_eq!(octets(1_000, true), octets(1_000, false));
    }

    #[test]
    fn stacks_are_texts_that_a_person_reads_from_the_outermost_on() {
        let mut stack = String::new();
        write_stack(&[0x30, 0x2f, u64::MAX], &mut stack);
        assert_eq!(stack, "ffffffffffffffff;2f;30");
        assert_eq!(read_stack(&stack), Some(vec![0x30, 0x2f, u64::MAX]));
        assert_eq!(read_stack(""), Some(vec![]));
        assert_eq!([read_stack("x"), read_stack("1;"), read_stack(";")], [None, None, None]);
    }

    #[test]
    fn a_block_that_is_damaged_or_of_another_table_is_refused() {
        let options = BlockOptions { stacks: false, cgroups: false, whole_microseconds: false };
        let mut writer = BlockWriter::new("node001", 0, options);
        writer.push(&Sample::default());
        let block = writer.finish().unwrap().unwrap();
        let mut octets = block.payload().to_vec();
        let last = octets.len() - 1;
        octets[last] ^= 1;
        let damaged = PackedRows::received(octets, block.checksum());
        assert!(matches!(damaged, Err(UnpackError::Checksum { .. })));
        let mut packer = Packer::new(crate::tables::cgroups::schema());
        packer.batch().begin_row(1);
        let other = read(&packer.pack().unwrap());
        assert!(matches!(other, Err(UnpackError::Table { .. })));
    }
}
