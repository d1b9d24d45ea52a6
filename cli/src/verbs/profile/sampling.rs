//! How samples are taken, and what is said of what they lack: the same for every verb that samples.

use clap::{Args, ValueEnum};
use meikyo_console::failure::Failure;
use meikyo_console::output::{self, counted, real};
use meikyo_profile::governor::percent;
use meikyo_profile::kernel_has_names;
use meikyo_profile::recorder::{OffCpuCounts, RecordError, RecorderOptions, Unwinding};
use meikyo_profile::sampler::{CallChains, Clock, OpenSamplerError, Phase, SamplerOptions};
use meikyo_units::{Bytes, Nanos};
use serde::Serialize;

use crate::this_host::host_name;

/// How samples are taken.
#[derive(Debug, Args)]
pub(super) struct SamplingArgs {
    /// Samples per second on each busy CPU
    #[arg(long, value_name = "N", default_value_t = 1_000,
          value_parser = clap::value_parser!(u64).range(1..=100_000))]
    hz: u64,
    /// Also record the callers, found by frame pointers, or as `--stacks=eh-frame` by what compilers
    /// wrote about their functions, which also follows libraries without frame pointers and costs more
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true,
          default_missing_value = "frame-pointers")]
    stacks: Option<StacksChoice>,
    /// For --stacks=eh-frame: how much of each stack is copied; what lies further out is not followed,
    /// and counted
    #[arg(long, value_name = "SIZE", default_value = "8KiB", value_parser = stack_copy)]
    stack_copy: u16,
    /// Record the control group of each sample
    #[arg(long)]
    cgroups: bool,
    /// Also record how long threads are off the CPU, and from where they left it
    #[arg(long)]
    off_cpu: bool,
    /// What drives the samples
    #[arg(long, value_enum, value_name = "CLOCK", default_value_t = ClockChoice::CpuClock)]
    clock: ClockChoice,
    /// Timing of samples across CPUs
    #[arg(long, value_enum, value_name = "PHASE", default_value_t = PhaseChoice::Staggered)]
    phase: PhaseChoice,
    /// The share of the host's CPU time that sampling may take; if it takes more, the rate is
    /// lowered. `none` for no limit
    #[arg(long, value_name = "PERCENT", default_value = "0.5%", value_parser = budget)]
    budget: Budget,
    /// Round times down to whole microseconds, which saves more than one octet per sample
    #[arg(long)]
    microseconds: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StacksChoice {
    /// The kernel follows frame pointers
    FramePointers,
    /// Stacks are copied, and followed on this host by the rules in `.eh_frame`
    EhFrame,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ClockChoice {
    /// A timer per CPU, which every machine has
    CpuClock,
    /// Processor cycles, where the machine can count them
    Cycles,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PhaseChoice {
    /// Spread over the span between two samples
    Staggered,
    /// All at the same time
    Aligned,
}

/// A share of the host in millionths; none limits nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Budget(Option<u64>);

/// Octets of a stack: what the kernel accepts is a multiple of 8 that leaves room in a record of 64 KiB.
fn stack_copy(text: &str) -> Result<u16, String> {
    const MAX: u64 = 60 << 10;
    let size: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    let octets = u16::try_from(size.get()).ok();
    let fits = octets.filter(|_| (512..=MAX).contains(&size.get()) && size.get().is_multiple_of(8));
    fits.ok_or_else(|| "a multiple of 8 B from 512 B to 60KiB can be copied".to_owned())
}

fn budget(text: &str) -> Result<Budget, String> {
    if text == "none" {
        return Ok(Budget(None));
    }
    let refused = || format!("`{text}` is no share: write for example `0.5%` or `none`");
    let number = text.strip_suffix('%').ok_or_else(refused)?;
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    if part.len() > 4 || part.is_empty() || !part.bytes().all(|octet| octet.is_ascii_digit()) {
        return Err(refused());
    }
    let whole: u64 = whole.parse().map_err(|_| refused())?;
    let part: u64 = format!("{part:0<4}").parse().map_err(|_| refused())?;
    let ppm = whole.saturating_mul(10_000).saturating_add(part);
    if ppm == 0 || ppm > 1_000_000 { Err(refused()) } else { Ok(Budget(Some(ppm))) }
}

impl SamplingArgs {
    /// The options of the recorder; `on_exec` where a program is held until it is sampled.
    pub(super) fn options(&self, on_exec: bool, retell_every: Option<Nanos>) -> RecorderOptions {
        RecorderOptions {
            host: host_name(),
            sampling: SamplerOptions {
                clock: match self.clock {
                    ClockChoice::CpuClock => Clock::CpuClock,
                    ClockChoice::Cycles => Clock::Cycles,
                },
                period: Nanos::new(1_000_000_000 / self.hz),
                phase: match self.phase {
                    PhaseChoice::Staggered => Phase::Staggered,
                    PhaseChoice::Aligned => Phase::Aligned,
                },
                stacks: self.stacks.map(|choice| match choice {
                    StacksChoice::FramePointers => CallChains::FramePointers,
                    StacksChoice::EhFrame => CallChains::EhFrame { copied: self.stack_copy },
                }),
                cgroups: self.cgroups,
                off_cpu: self.off_cpu,
                on_exec,
            },
            whole_microseconds: self.microseconds,
            budget_ppm: self.budget.0,
            retell_every,
            flight: None,
        }
    }

    /// What sampling may take, %.
    pub(super) fn budget_percent(&self) -> Option<f64> {
        self.budget.0.map(percent)
    }
}

/// What finding callers by `.eh_frame` took and left out.
#[derive(Debug, Serialize)]
pub(super) struct UnwindingSummary {
    cpu_ns: u64,
    copied_bytes: u64,
    table_bytes: u64,
    copy_ended: u64,
    not_followed: u64,
}

impl UnwindingSummary {
    pub(super) fn of(unwinding: Unwinding) -> Self {
        let Unwinding { cpu, copied_bytes, table_bytes, copy_ended, not_followed } = unwinding;
        Self { cpu_ns: cpu.get(), copied_bytes, table_bytes, copy_ended, not_followed }
    }

    /// For people, of so many samples.
    pub(super) fn text(&self, samples: u64) -> String {
        let mut text = format!(
            "callers by .eh_frame: {:.1} us of this program's CPU time and {} octets of stack a sample, {} of \
             rules in memory\n",
            real(self.cpu_ns) / 1e3 / real(samples.max(1)),
            self.copied_bytes / samples.max(1),
            Bytes::new(self.table_bytes),
        );
        for (count, what) in [
            (self.copy_ended, "stacks go on behind what was copied: see --stack-copy"),
            (self.not_followed, "stacks could not be followed to their end: code without rules"),
        ] {
            if count > 0 {
                text += &format!("{count} {what}\n");
            }
        }
        text
    }
}

/// Time off the CPU.
#[derive(Debug, Serialize)]
pub(super) struct OffCpuSummary {
    spans: u64,
    waiting_ns: u64,
    preempted_ns: u64,
    rows: u64,
    lost: u64,
}

impl OffCpuSummary {
    pub(super) fn of(counts: OffCpuCounts) -> Self {
        let OffCpuCounts { spans, waiting_ns, preempted_ns, rows, lost } = counts;
        Self { spans, waiting_ns, preempted_ns, rows, lost }
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "off the CPU: {} in {}, {:.3} s of waiting, {:.3} s while others ran\n",
            counted(self.spans, "span"),
            counted(self.rows, "row"),
            real(self.waiting_ns) / 1e9,
            real(self.preempted_ns) / 1e9,
        );
        if self.lost > 0 {
            text +=
                &format!("{} records of threads that left their CPU found no room\n", self.lost);
        }
        text
    }
}

/// Says what will stay without a name, before a program runs; `unreadable` processes hide what they have
/// mapped.
pub(super) fn tell_what_is_missing(unreadable: u64) {
    if unreadable > 0 {
        let processes = if unreadable == 1 { "process" } else { "processes" };
        output::say(&format!(
            "meikyo: {unreadable} running {processes}: functions stay unnamed, since reading what is mapped \
             there needs CAP_SYS_PTRACE"
        ));
    }
    if !kernel_has_names() {
        output::say(
            "meikyo: the kernel: functions stay unnamed, since reading its addresses needs CAP_SYSLOG",
        );
    }
}

/// A failure with what to do about it.
pub(super) fn explained(error: RecordError) -> Failure {
    let hint = match &error {
        RecordError::Open(OpenSamplerError::Permission(_)) => {
            "run it as root, or once: setcap cap_perfmon,cap_sys_ptrace,cap_syslog+ep PATH_OF_MEIKYO"
        }
        RecordError::Open(OpenSamplerError::OffCpuOfCgroups) => {
            "leave --off-cpu out, or sample `--all`"
        }
        RecordError::Open(OpenSamplerError::EhFrame) => "follow frame pointers: `--stacks`",
        RecordError::Open(OpenSamplerError::NoCycles(_)) => "sample by time: `--clock cpu-clock`",
        RecordError::Open(OpenSamplerError::Cgroup { .. }) => {
            "name a directory below the place where cgroup2 is mounted: see `grep cgroup2 /proc/mounts`"
        }
        RecordError::Open(OpenSamplerError::Processes { .. }) => {
            "`ps -e` lists the processes that there are"
        }
        RecordError::Open(OpenSamplerError::Descriptors { .. }) => {
            "raise the limit (`ulimit -n 1048576`, as root), or sample the host: `--all`"
        }
        RecordError::Open(OpenSamplerError::Ring { .. }) => {
            "raise the limit: sysctl kernel.perf_event_mlock_kb=4096"
        }
        _ => return Failure::new(error),
    };
    Failure::new(error).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::{Budget, budget, stack_copy};

    #[test]
    fn copies_of_stacks_have_a_size_that_the_kernel_accepts() {
        assert_eq!(["512B", "8KiB", "60KiB"].map(stack_copy), [Ok(512), Ok(8_192), Ok(61_440)]);
        for wrong in ["", "0B", "504B", "1001B", "64KiB", "1GiB"] {
            assert!(stack_copy(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn budgets_are_shares_of_the_host() {
        assert_eq!(budget("0.5%"), Ok(Budget(Some(5_000))));
        assert_eq!(budget("2%"), Ok(Budget(Some(20_000))));
        assert_eq!(budget("0.0001%"), Ok(Budget(Some(1))));
        assert_eq!(budget("none"), Ok(Budget(None)));
        for wrong in ["", "0.5", "0%", "101%", "1.00001%", "-1%", "1.%", "x%"] {
            assert!(budget(wrong).is_err(), "{wrong}");
        }
    }
}
