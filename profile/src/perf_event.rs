//! Events of the kernel: `perf_event_open(2)` and its ioctls, and nothing else.
//!
//! Constants are those of `linux/perf_event.h`. The structure is that of Linux 5.12 (128 octets);
//! what older kernels do not know is refused by them with `E2BIG` or `EINVAL`.

#![expect(unsafe_code, reason = "the kernel is called: perf_event_open and its ioctls")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, RawFd};

use meikyo_units::Nanos;

/// `struct perf_event_attr`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config_1: u64,
    config_2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clock_id: i32,
    sample_regs_interrupt: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved_2: u16,
    aux_sample_size: u32,
    reserved_3: u32,
    signal_data: u64,
}

const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const COUNT_HARDWARE_CYCLES: u64 = 0;
const COUNT_SOFTWARE_CPU_CLOCK: u64 = 0;
const COUNT_SOFTWARE_CONTEXT_SWITCHES: u64 = 3;
const COUNT_SOFTWARE_DUMMY: u64 = 9;

const SAMPLE_IP: u64 = 1;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_CALLCHAIN: u64 = 1 << 5;
const SAMPLE_ID: u64 = 1 << 6;
const SAMPLE_REGS_USER: u64 = 1 << 12;
const SAMPLE_STACK_USER: u64 = 1 << 13;
const SAMPLE_CGROUP: u64 = 1 << 21;

const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_IDLE: u64 = 1 << 7;
const MMAP: u64 = 1 << 8;
const COMM: u64 = 1 << 9;
const FREQUENCY: u64 = 1 << 10;
const ENABLE_ON_EXEC: u64 = 1 << 12;
const TASK: u64 = 1 << 13;
const WATERMARK: u64 = 1 << 14;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const EXCLUDE_KERNEL_CHAIN: u64 = 1 << 21;
const EXCLUDE_USER_CHAIN: u64 = 1 << 22;
const MMAP2: u64 = 1 << 23;
const COMM_EXEC: u64 = 1 << 24;
const USE_CLOCK_ID: u64 = 1 << 25;
const CONTEXT_SWITCH: u64 = 1 << 26;
const BUILD_ID: u64 = 1 << 34;

/// The general registers of x86-64 and the address of the instruction (`asm/perf_regs.h`).
const USER_REGISTERS: u64 = 0xff_01ff;

const FLAG_PID_CGROUP: libc::c_ulong = 1 << 2;
const FLAG_CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

const IOCTL_ENABLE: libc::Ioctl = 0x2400;
const IOCTL_DISABLE: libc::Ioctl = 0x2401;
const IOCTL_PERIOD: libc::Ioctl = 0x4008_2404;
const IOCTL_SET_OUTPUT: libc::Ioctl = 0x2405;
const IOCTL_ID: libc::Ioctl = 0x8008_2407;

/// What drives samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// A timer of each CPU, which every machine has.
    CpuClock,
    /// Cycles of the processor, where it counts them for this system.
    Cycles,
}

/// What takes the samples of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TakenBy {
    /// Time or cycles that have passed.
    Clock(Clock),
    /// Every thread that leaves its CPU; when it left and was back is told, too.
    Leaving,
    /// Nothing: it only tells what is mapped, named and begun.
    Nothing,
}

/// What an event does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventOptions {
    /// What takes samples.
    pub(crate) taken_by: TakenBy,
    /// Span between two samples.
    pub(crate) period: Nanos,
    /// Addresses of a chain at most; 0 takes none.
    pub(crate) chain_max: u16,
    /// Whether chains have no part in the kernel.
    pub(crate) user_chains_only: bool,
    /// Octets of the stack that are copied beside the registers, in place of the chain outside of the
    /// kernel; 0 copies none.
    pub(crate) copied: u16,
    /// Whether samples carry their control group.
    pub(crate) cgroups: bool,
    /// Whether records carry the event that wrote them.
    pub(crate) events: bool,
    /// Whether it tells what is mapped, named, begun and ended.
    pub(crate) side_band: bool,
    /// Whether threads that begin later are sampled too.
    pub(crate) inherit: bool,
    /// Whether it begins when the thread calls execve(2).
    pub(crate) on_exec: bool,
}

/// Whose samples are taken.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Subject<'a> {
    /// Of everything that runs on the CPU.
    Everything,
    /// Of one thread, by its number in the system.
    Thread(u32),
    /// Of a control group of version 2, by its open directory.
    Cgroup(&'a File),
}

/// An event on one CPU.
#[derive(Debug)]
pub(crate) struct Event(File);

impl Event {
    /// Opens an event, which is disabled.
    pub(crate) fn open(subject: Subject<'_>, cpu: u32, options: &EventOptions) -> io::Result<Self> {
        let mut attributes = attributes(options);
        match Self::open_with(subject, cpu, &attributes) {
            // Build IDs are told since Linux 5.12.
            Err(error) if is_unknown(&error) && attributes.flags & BUILD_ID != 0 => {
                attributes.flags &= !BUILD_ID;
                Self::open_with(subject, cpu, &attributes)
            }
            opened => opened,
        }
    }

    fn open_with(subject: Subject<'_>, cpu: u32, attributes: &Attributes) -> io::Result<Self> {
        let (pid, flag) = match subject {
            Subject::Everything => (-1, 0),
            Subject::Thread(tid) => (libc::pid_t::try_from(tid).map_err(io::Error::other)?, 0),
            Subject::Cgroup(directory) => (directory.as_raw_fd(), FLAG_PID_CGROUP),
        };
        let cpu = libc::c_int::try_from(cpu).map_err(io::Error::other)?;
        // SAFETY: the structure is plain data of the size that it names and is only read; the other
        // arguments are numbers.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                std::ptr::from_ref(attributes),
                pid,
                cpu,
                -1 as libc::c_int,
                flag | FLAG_CLOSE_ON_EXEC,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = RawFd::try_from(fd).map_err(io::Error::other)?;
        // SAFETY: the kernel has just made the descriptor for this call, and nobody else knows it.
        Ok(Self(unsafe { File::from_raw_fd(fd) }))
    }

    /// The descriptor, to map its ring.
    pub(crate) fn file(&self) -> &File {
        &self.0
    }

    pub(crate) fn enable(&self) -> io::Result<()> {
        self.control(IOCTL_ENABLE, 0)
    }

    pub(crate) fn disable(&self) -> io::Result<()> {
        self.control(IOCTL_DISABLE, 0)
    }

    /// Lets the records of this event go into the ring of another one of the same CPU.
    pub(crate) fn output_to(&self, other: &Self) -> io::Result<()> {
        self.control(IOCTL_SET_OUTPUT, other.0.as_raw_fd().into())
    }

    /// Sets the span between two samples; of threads that inherited the event before it stays.
    pub(crate) fn set_period(&self, clock: Clock, period: Nanos) -> io::Result<()> {
        let value = match clock {
            Clock::CpuClock => period.get(),
            Clock::Cycles => frequency(period),
        };
        // SAFETY: the ioctl reads a number of 64 bits at the address, which lives past the call.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), IOCTL_PERIOD, &raw const value) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Its number, which the records of the events that threads inherit from it carry too.
    pub(crate) fn id(&self) -> io::Result<u64> {
        let mut id = 0_u64;
        // SAFETY: the ioctl writes a number of 64 bits to the address, which lives past the call.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), IOCTL_ID, &raw mut id) };
        if result == 0 { Ok(id) } else { Err(io::Error::last_os_error()) }
    }

    fn control(&self, request: libc::Ioctl, argument: libc::c_long) -> io::Result<()> {
        // SAFETY: these ioctls take a number and no address.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), request, argument) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// Whether the kernel does not know what was asked of it.
fn is_unknown(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::E2BIG))
}

fn attributes(options: &EventOptions) -> Attributes {
    let mut flags = DISABLED | EXCLUDE_IDLE | WATERMARK | SAMPLE_ID_ALL | USE_CLOCK_ID;
    let mut sample_type = SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME;
    for (is_wanted, flag) in [
        (options.side_band, MMAP | MMAP2 | COMM | COMM_EXEC | TASK | BUILD_ID),
        (options.inherit, INHERIT),
        (options.on_exec, ENABLE_ON_EXEC),
        (options.user_chains_only, EXCLUDE_KERNEL_CHAIN),
        (options.copied > 0, EXCLUDE_USER_CHAIN),
        (options.taken_by == TakenBy::Clock(Clock::Cycles), FREQUENCY),
        (options.taken_by == TakenBy::Leaving, CONTEXT_SWITCH),
    ] {
        flags |= if is_wanted { flag } else { 0 };
    }
    if options.chain_max > 0 {
        sample_type |= SAMPLE_CALLCHAIN;
    }
    if options.copied > 0 {
        sample_type |= SAMPLE_REGS_USER | SAMPLE_STACK_USER;
    }
    if options.events {
        sample_type |= SAMPLE_ID;
    }
    if options.cgroups {
        sample_type |= SAMPLE_CGROUP;
    }
    let (kind, config, sample_period) = match options.taken_by {
        TakenBy::Clock(Clock::CpuClock) => {
            (TYPE_SOFTWARE, COUNT_SOFTWARE_CPU_CLOCK, options.period.get())
        }
        TakenBy::Clock(Clock::Cycles) => {
            (TYPE_HARDWARE, COUNT_HARDWARE_CYCLES, frequency(options.period))
        }
        TakenBy::Leaving => (TYPE_SOFTWARE, COUNT_SOFTWARE_CONTEXT_SWITCHES, 1),
        TakenBy::Nothing => (TYPE_SOFTWARE, COUNT_SOFTWARE_DUMMY, 0),
    };
    Attributes {
        kind,
        size: u32::try_from(size_of::<Attributes>()).expect("128 octets"),
        config,
        sample_period,
        sample_type,
        flags,
        // Rings are drained by the clock: nobody is to be woken.
        wakeup: u32::MAX,
        clock_id: libc::CLOCK_MONOTONIC,
        sample_regs_user: if options.copied > 0 { USER_REGISTERS } else { 0 },
        sample_stack_user: options.copied.into(),
        sample_max_stack: options.chain_max,
        ..Attributes::default()
    }
}

/// Samples a second, at least 1.
fn frequency(period: Nanos) -> u64 {
    (1_000_000_000 / period.get().max(1)).max(1)
}
