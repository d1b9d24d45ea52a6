//! What the kernel writes into the ring of a CPU, taken apart.
//!
//! The layout is that of `perf_event_open(2)` for events that are opened as in `perf_event.rs`: samples
//! with instruction, thread, time, and callers and control group where asked for; every other record
//! ends in its thread and time (`sample_id_all`).

/// What samples carry beside instruction, thread and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carried {
    /// Whether samples have the addresses of those who called.
    pub callers: bool,
    /// Whether they have the registers and a copy of the stack of the thread outside of the kernel.
    pub user: bool,
    /// The control group.
    pub cgroup: bool,
    /// The event that took them, which every other record carries then too.
    pub event: bool,
}

/// A record of a ring. Times are of the clock that the events were opened with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record<'a> {
    /// What ran.
    Sample {
        /// When the sample was taken.
        time: u64,
        /// Process and thread.
        ids: Ids,
        /// The instruction.
        address: u64,
        /// The chain as the kernel has it: the instruction first, marks of contexts among it.
        chain: Chain<'a>,
        /// The thread outside of the kernel, by which its callers are found; `None` for one of the kernel.
        user: Option<UserState<'a>>,
        /// The control group.
        cgroup: Option<u64>,
        /// The event that took it; of one that was inherited, the first one.
        event: Option<u64>,
    },
    /// Code was mapped.
    Mapping {
        /// When the mapping was made.
        time: u64,
        /// Process and thread.
        ids: Ids,
        /// Where, how far, and where in the file.
        range: [u64; 3],
        /// The build ID; empty where the kernel did not find one.
        build_id: &'a [u8],
        /// The inode of the file where there is no build ID; 0 for what lies in no file.
        inode: u64,
        /// Path of the file, or the kernel's name for the mapping.
        path: &'a [u8],
    },
    /// A thread was named.
    Name {
        /// From when on the thread has the name.
        time: u64,
        /// Process and thread.
        ids: Ids,
        /// Whether by execve(2).
        is_exec: bool,
        /// The name that it has from now on, as octets without their end.
        name: &'a [u8],
    },
    /// A thread began.
    Fork {
        /// When the thread began.
        time: u64,
        /// Process and thread.
        ids: Ids,
        /// Process and thread that began it.
        parent: Ids,
    },
    /// A thread ended.
    Exit {
        /// When the thread ended.
        time: u64,
        /// Process and thread.
        ids: Ids,
    },
    /// A thread left its CPU, or is on one again.
    Switch {
        /// When.
        time: u64,
        /// Process and thread.
        ids: Ids,
        /// Which of both.
        way: Way,
    },
    /// Records found no room.
    Lost {
        /// Number of records that were lost.
        count: u64,
    },
    /// The kernel stopped sampling for a while, because it took too long.
    Throttle,
    /// A type that is not read, by its number.
    Other(u32),
}

/// Which way a thread was switched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It is on a CPU again.
    In,
    /// It left its CPU, to wait for something.
    OutToWait,
    /// It left its CPU, though it could have run on.
    OutPreempted,
}

/// Process and thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ids {
    /// Process ID, in the PID namespace of the one who opened the event.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
}

/// Registers of a thread that are kept: the general ones and the address of the instruction.
pub const REGISTERS: usize = 17;

/// A thread outside of the kernel, as it was when the sample was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserState<'a> {
    /// Its registers by their numbers in DWARF; `None` for a program of 32 bits.
    pub registers: Option<[u64; REGISTERS]>,
    /// The newest octets of its stack, from where the stack pointer points to.
    pub stack: &'a [u8],
    /// Whether there may be more of it than was copied.
    pub has_more: bool,
}

/// A call chain as it lies in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chain<'a>(&'a [u8]);

/// Marks in chains of what follows are at this value and above (`PERF_CONTEXT_MAX`).
const CONTEXT_MAX: u64 = (-4095_i64).cast_unsigned();

impl<'a> Chain<'a> {
    /// The chain in octets of whole words.
    pub(crate) fn of(octets: &'a [u8]) -> Self {
        Self(octets)
    }
}

impl Chain<'_> {
    /// The callers, innermost first: the chain without marks and without the instruction itself.
    pub fn callers(&self) -> impl Iterator<Item = u64> {
        let (words, _) = self.0.as_chunks::<8>();
        let addresses = words.iter().map(|word| u64::from_le_bytes(*word));
        addresses.filter(|address| *address < CONTEXT_MAX).skip(1)
    }

    /// How many addresses it has, that of the instruction among them and marks not.
    pub fn addresses(&self) -> usize {
        let (words, _) = self.0.as_chunks::<8>();
        words.iter().filter(|word| u64::from_le_bytes(**word) < CONTEXT_MAX).count()
    }
}

const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const THROTTLE: u32 = 5;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const LOST_SAMPLES: u32 = 13;
const SWITCH: u32 = 14;
const SWITCH_CPU_WIDE: u32 = 15;

const MISC_COMM_EXEC: u16 = 1 << 13;
const MISC_SWITCH_OUT: u16 = 1 << 13;
const MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;
const MISC_MMAP_BUILD_ID: u16 = 1 << 14;

/// Octets of a build ID at most.
const BUILD_ID_MAX: usize = 20;

/// Octets behind every record but samples: thread and time, and behind them the event if it is carried.
const IDENTITY: usize = 16;
const IDENTITY_EVENT: usize = 8;

/// Octets of the header of a record.
pub(crate) const HEADER: usize = 8;

/// The length of the record that begins with these octets; `None` when they are no header.
pub(crate) fn length(header: &[u8]) -> Option<usize> {
    let octets = header.get(6..8)?;
    let length = usize::from(u16::from_le_bytes([octets[0], octets[1]]));
    (length >= HEADER).then_some(length)
}

/// Whether the record that begins with these octets is a sample.
pub(crate) fn is_sample(header: &[u8]) -> bool {
    header.starts_with(&SAMPLE.to_le_bytes())
}

/// The record in `octets`, its header included; `None` when it is not laid out as its kind is.
pub fn read(octets: &[u8], carried: Carried) -> Option<Record<'_>> {
    let mut octets = Octets(octets);
    let kind = octets.u32()?;
    let misc = octets.u32()?.to_le_bytes();
    let misc = u16::from_le_bytes([misc[0], misc[1]]);
    if kind == SAMPLE {
        return sample(octets, carried);
    }
    if kind == LOST_SAMPLES {
        return Some(Record::Lost { count: octets.u64()? });
    }
    let tail = IDENTITY + if carried.event { IDENTITY_EVENT } else { 0 };
    let body = octets.0.len().checked_sub(tail)?;
    let (body, identity) = octets.0.split_at_checked(body)?;
    let mut identity = Octets(identity);
    let of_thread = identity.ids()?;
    let time = identity.u64()?;
    let mut octets = Octets(body);
    Some(match kind {
        LOST => {
            octets.u64()?;
            Record::Lost { count: octets.u64()? }
        }
        COMM => {
            let ids = octets.ids()?;
            let is_exec = misc & MISC_COMM_EXEC != 0;
            Record::Name { time, ids, is_exec, name: octets.until_zero() }
        }
        FORK | EXIT => {
            let [pid, parent_pid] = [octets.u32()?, octets.u32()?];
            let ids = Ids { pid, tid: octets.u32()? };
            let parent = Ids { pid: parent_pid, tid: octets.u32()? };
            if kind == FORK {
                Record::Fork { time, ids, parent }
            } else {
                Record::Exit { time, ids }
            }
        }
        THROTTLE => Record::Throttle,
        SWITCH | SWITCH_CPU_WIDE => {
            let way = match (misc & MISC_SWITCH_OUT != 0, misc & MISC_SWITCH_OUT_PREEMPT != 0) {
                (false, _) => Way::In,
                (true, false) => Way::OutToWait,
                (true, true) => Way::OutPreempted,
            };
            Record::Switch { time, ids: of_thread, way }
        }
        MMAP2 => {
            let ids = octets.ids()?;
            let range = [octets.u64()?, octets.u64()?, octets.u64()?];
            let file = octets.take(24)?;
            octets.take(8)?;
            let has_build_id = misc & MISC_MMAP_BUILD_ID != 0;
            let size = if has_build_id { usize::from(file[0]).min(BUILD_ID_MAX) } else { 0 };
            let build_id = &file[4..4 + size];
            // Without one stand device, inode and generation there.
            let inode = if has_build_id { 0 } else { Octets(&file[8..]).u64()? };
            Record::Mapping { time, ids, range, build_id, inode, path: octets.until_zero() }
        }
        other => Record::Other(other),
    })
}

fn sample(mut octets: Octets<'_>, carried: Carried) -> Option<Record<'_>> {
    let address = octets.u64()?;
    let ids = octets.ids()?;
    let time = octets.u64()?;
    let event = if carried.event { Some(octets.u64()?) } else { None };
    let chain = if carried.callers {
        let count = usize::try_from(octets.u64()?).ok()?;
        octets.take(count.checked_mul(8)?)?
    } else {
        &[]
    };
    let user = if carried.user { user_state(&mut octets)? } else { None };
    let cgroup = if carried.cgroup { Some(octets.u64()?) } else { None };
    octets.0.is_empty().then_some(Record::Sample {
        time,
        ids,
        address,
        chain: Chain(chain),
        user,
        cgroup,
        event,
    })
}

/// Registers and stack of a sample; `Some(None)` where the thread has none outside of the kernel.
fn user_state<'a>(octets: &mut Octets<'a>) -> Option<Option<UserState<'a>>> {
    /// Of the form of the registers: none, those of 32 bits, and those of 64.
    const NONE: u64 = 0;
    const WIDE: u64 = 2;
    /// Which number DWARF gives to the registers, in the order in which the kernel writes them.
    const NUMBERS: [usize; REGISTERS] = [0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15];
    let form = octets.u64()?;
    let mut registers = [0; REGISTERS];
    if form != NONE {
        for number in NUMBERS {
            registers[number] = octets.u64()?;
        }
    }
    let size = octets.u64()?;
    let (mut stack, mut has_more): (&[u8], _) = (&[], false);
    if size > 0 {
        let room = octets.take(usize::try_from(size).ok()?)?;
        let copied = octets.u64()?;
        stack = room.get(..usize::try_from(copied).ok()?)?;
        has_more = copied == size;
    }
    let registers = (form == WIDE).then_some(registers);
    Some((form != NONE).then_some(UserState { registers, stack, has_more }))
}

/// Octets that are taken from their begin.
pub(crate) struct Octets<'a>(pub(crate) &'a [u8]);

impl<'a> Octets<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    pub(crate) fn ids(&mut self) -> Option<Ids> {
        Some(Ids { pid: self.u32()?, tid: self.u32()? })
    }

    /// What is before the first zero, or all.
    pub(crate) fn until_zero(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|&octet| octet == 0).unwrap_or(self.0.len());
        &self.0[..end]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLAIN: Carried = Carried { callers: false, user: false, cgroup: false, event: false };

    /// Thread 8 of process 7, and when.
    const IDENTITY_WORDS: [u64; 2] = [8 << 32 | 7, 1_000];

    /// A record as the kernel lays it out: header, words of 64 bits, octets, and words again.
    fn record(kind: u32, misc: u16, words: &[u64], octets: &[u8], tail: &[u64]) -> Vec<u8> {
        let of_words = |words: &[u64]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_le_bytes()).collect()
        };
        let body = [of_words(words), octets.to_vec(), of_words(tail)].concat();
        let length = u16::try_from(HEADER + body.len()).unwrap();
        [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &length.to_le_bytes(), &body].concat()
    }

    #[test]
    fn samples_are_read_with_what_they_carry() {
        let ids = Ids { pid: 7, tid: 8 };
        let plain = record(SAMPLE, 0, &[0xabc, IDENTITY_WORDS[0], 1_000], &[], &[]);
        let Some(Record::Sample { time, address, chain, user: None, cgroup, event, ids: found }) =
            read(&plain, PLAIN)
        else {
            panic!("a sample")
        };
        assert_eq!((time, address, cgroup, event, found), (1_000, 0xabc, None, None, ids));
        assert_eq!(chain.addresses(), 0);
        let mark = (-128_i64).cast_unsigned();
        let user = (-512_i64).cast_unsigned();
        let words = [0xabc, IDENTITY_WORDS[0], 1_000, 5, mark, 0xabc, user, 0x20, 0x30, 99];
        let whole = record(SAMPLE, 0, &words, &[], &[]);
        let carried = Carried { callers: true, cgroup: true, ..PLAIN };
        let Some(Record::Sample { chain, cgroup, .. }) = read(&whole, carried) else {
            panic!("a sample")
        };
        assert_eq!((chain.callers().collect(), chain.addresses()), (vec![0x20, 0x30], 3));
        assert_eq!(cgroup, Some(99));
        // A chain that claims more than there is.
        let mut cut = whole;
        cut[HEADER + 24] = 7;
        assert_eq!(read(&cut, carried), None);
        let with_event = record(SAMPLE, 0, &[0xabc, IDENTITY_WORDS[0], 1_000, 55], &[], &[]);
        let found = read(&with_event, Carried { event: true, ..PLAIN });
        assert!(matches!(found, Some(Record::Sample { event: Some(55), .. })), "{found:?}");
        assert_eq!(length(&plain), Some(plain.len()));
        assert_eq!([length(&[0; 8]), length(&[9; 7])], [None, None]);
    }

    #[test]
    fn registers_and_stacks_are_read_as_far_as_the_kernel_copied_them() {
        let carried = Carried { user: true, cgroup: true, ..PLAIN };
        let head = [0xabc, IDENTITY_WORDS[0], 1_000];
        // Registers as the kernel orders them: rax is 100, rbx 101, ..., rip 108, r8 109, ..., r15 116.
        let registers: Vec<u64> = (100..117).collect();
        let by_number: [u64; REGISTERS] =
            [100, 103, 102, 101, 104, 105, 106, 107, 109, 110, 111, 112, 113, 114, 115, 116, 108];
        let taken = |form: u64, registers: &[u64], size: u64, copied: &[u64]| {
            let stack =
                [&[size][..], &vec![7; usize::try_from(size / 8).unwrap()], copied].concat();
            let words = [&head[..], &[form], registers, &stack, &[99]].concat();
            record(SAMPLE, 0, &words, &[], &[])
        };
        let seven = [7, 0, 0, 0, 0, 0, 0, 0];
        let whole = taken(2, &registers, 16, &[16]);
        let Some(Record::Sample { user: Some(user), cgroup: Some(99), .. }) = read(&whole, carried)
        else {
            panic!("a sample")
        };
        assert_eq!(user.registers, Some(by_number));
        assert_eq!((user.stack, user.has_more), (&[seven, seven].concat()[..], true));
        let user = |octets: &[u8]| match read(octets, carried) {
            Some(Record::Sample { user, .. }) => {
                Some(user.map(|of| (of.registers.is_some(), of.stack.len(), of.has_more)))
            }
            _ => None,
        };
        assert_eq!(user(&taken(2, &registers, 16, &[8])), Some(Some((true, 8, false))));
        assert_eq!(user(&taken(1, &registers, 16, &[16])), Some(Some((false, 16, true))));
        assert_eq!(user(&taken(0, &[], 0, &[])), Some(None));
        // More copied than there is room for.
        assert_eq!(user(&taken(2, &registers, 16, &[24])), None);
    }

    #[test]
    fn what_is_mapped_named_and_begun_is_read() {
        let ids = Ids { pid: 7, tid: 8 };
        let mut octets = vec![3, 0, 0, 0, 0xab, 0xcd, 0xef];
        octets.resize(24 + 8, 0);
        octets.extend_from_slice(b"/bin/x\0\0");
        let words = [IDENTITY_WORDS[0], 0x1000, 0x200, 0x40];
        let mapped = record(MMAP2, MISC_MMAP_BUILD_ID, &words, &octets, &IDENTITY_WORDS);
        let expected = Record::Mapping {
            time: 1_000,
            ids,
            range: [0x1000, 0x200, 0x40],
            build_id: &[0xab, 0xcd, 0xef],
            inode: 0,
            path: b"/bin/x",
        };
        assert_eq!(read(&mapped, PLAIN), Some(expected));
        octets[8..16].copy_from_slice(&131_u64.to_le_bytes());
        let plain = record(MMAP2, 0, &words, &octets, &IDENTITY_WORDS);
        let found = read(&plain, PLAIN);
        assert!(matches!(found, Some(Record::Mapping { build_id: &[], inode: 131, .. })));
        let named = record(COMM, MISC_COMM_EXEC, &words[..1], b"sh\0\0\0\0\0\0", &IDENTITY_WORDS);
        let expected = Record::Name { time: 1_000, ids, is_exec: true, name: b"sh" };
        assert_eq!(read(&named, PLAIN), Some(expected));
        let tail = [IDENTITY_WORDS[0], 1_000, 55];
        let with_event = record(COMM, MISC_COMM_EXEC, &words[..1], b"sh\0\0\0\0\0\0", &tail);
        let carried = Carried { event: true, ..PLAIN };
        assert_eq!(read(&with_event, carried), read(&named, PLAIN));
        let words = [5 << 32 | 9, 6 << 32 | 10, 0];
        let begun = record(FORK, 0, &words, &[], &IDENTITY_WORDS);
        let ids = Ids { pid: 9, tid: 10 };
        let parent = Ids { pid: 5, tid: 6 };
        assert_eq!(read(&begun, PLAIN), Some(Record::Fork { time: 1_000, ids, parent }));
        let ended = record(EXIT, 0, &words, &[], &IDENTITY_WORDS);
        assert_eq!(read(&ended, PLAIN), Some(Record::Exit { time: 1_000, ids }));
        let lost = record(LOST, 0, &[3, 12], &[], &IDENTITY_WORDS);
        assert_eq!(read(&lost, PLAIN), Some(Record::Lost { count: 12 }));
        let throttled = record(THROTTLE, 0, &[1, 2, 3], &[], &IDENTITY_WORDS);
        assert_eq!(read(&throttled, PLAIN), Some(Record::Throttle));
        let ids = Ids { pid: 7, tid: 8 };
        for (kind, misc, words, way) in [
            (SWITCH, 0, &[][..], Way::In),
            (SWITCH_CPU_WIDE, MISC_SWITCH_OUT, &[5 << 32 | 5][..], Way::OutToWait),
            (SWITCH, MISC_SWITCH_OUT | MISC_SWITCH_OUT_PREEMPT, &[][..], Way::OutPreempted),
        ] {
            let switched = record(kind, misc, words, &[], &IDENTITY_WORDS);
            assert_eq!(read(&switched, PLAIN), Some(Record::Switch { time: 1_000, ids, way }));
        }
        let other = record(77, 0, &[], &[], &IDENTITY_WORDS);
        assert_eq!(read(&other, PLAIN), Some(Record::Other(77)));
    }

    proptest! {
        #[test]
        fn no_octets_make_a_reader_panic(
            kind in 0_u8..20,
            octets: Vec<u8>,
            callers: bool,
            user: bool,
            cgroup: bool,
            event: bool,
        ) {
            let octets = [&[kind, 0, 0, 0][..], &octets].concat();
            let carried = Carried { callers, user, cgroup, event };
            if let Some(Record::Sample { chain, .. }) = read(&octets, carried) {
                prop_assert_eq!(chain.callers().count(), chain.addresses().saturating_sub(1));
            }
        }
    }
}
