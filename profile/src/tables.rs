//! The tables of a profile.
//!
//! `samples` is the profile. The others say what its addresses, threads and control groups were,
//! which cannot be found out once programs have ended: what was mapped where, what threads were
//! called, what compilers at run time made. `rates` and `losses` say what was not sampled.

use meikyo_recording::TableSchema;
use meikyo_recording::schema::{Unit, reference};

meikyo_recording::table! {
    /// One row a sample: what a CPU ran at an instant.
    pub samples: Samples, "samples", "one row per sample: what a CPU was executing",
        titled("Samples"), timed("when the sample was taken");
    HOST: Symbol, Label, "host", "name of the host";
    CPU: u64, Detail, "cpu", "number of the CPU";
    TID: u64, Detail, "tid", "thread that was running, as numbered in the initial PID namespace of the host";
    PID: u64, Detail, "pid", "process of the thread";
    ADDRESS: u64, Detail, "address", "address of the instruction; kernel addresses are 2^63 or greater";
    CGROUP: u64, Detail, "cgroup", "control group of the thread, a row of `cgroups`; null if not requested";
    STACK: Text, Detail, "stack",
        "return addresses of the callers, outermost first, in hexadecimal, separated by `;`; null if not requested";
}

meikyo_recording::table! {
    /// What is mapped where.
    pub mappings: Context, "mappings", "executable mappings, by which addresses in `samples` are resolved",
        titled("Mappings"), timed("when it was mapped, or when existing mappings were listed");
    HOST: Symbol, Label, "host", "name of the host";
    PID: u64, Detail, "pid", "process; null for the kernel";
    ADDRESS: u64, Detail, "address", "first address";
    SIZE_BYTES: u64, Detail, "size_bytes", "size of the mapping", in_unit(Unit::Bytes);
    OFFSET_BYTES: u64, Detail, "offset_bytes", "offset in the file", in_unit(Unit::Bytes);
    PATH: Text, Detail, "path",
        "file as the process sees it, or the kernel's name for the mapping; [kernel] is the text of the kernel, [boot] everything else in it";
    BUILD_ID: Text, Detail, "build_id",
        "build ID of the file in hexadecimal, null if it has none; boot ID for [boot]";
    INODE: u64, Detail, "inode", "inode of a file without a build ID";
}

meikyo_recording::table! {
    /// Names and lives of threads.
    pub threads: Context, "threads", "when threads started, ended and changed their names",
        titled("Threads"), timed("when it happened, or when existing threads were listed");
    HOST: Symbol, Label, "host", "name of the host";
    EVENT: Symbol, Detail, "event", "fork, exec, name, exit, or there: existed when sampling began, repeated every hour by an agent";
    TID: u64, Detail, "tid", "thread";
    PID: u64, Detail, "pid", "process of the thread";
    PARENT_PID: u64, Detail, "parent_pid", "for fork: the process that started the thread";
    PARENT_TID: u64, Detail, "parent_tid", "for fork: the thread that started the thread";
    CALLED: Text, Detail, "name", "for there, exec and name: the name of the thread from then on";
}

meikyo_recording::table! {
    /// Names of control groups.
    pub cgroups: Context, "cgroups", "paths of control groups",
        titled("Control groups"), timed("when the control group first appeared in a sample");
    HOST: Symbol, Label, "host", "name of the host";
    CGROUP: u64, Detail, "cgroup", "number of the control group";
    PATH: Text, Detail, "path", "path below the root of the version 2 hierarchy";
}

meikyo_recording::table! {
    /// What compilers at run time made.
    pub jit_symbols: Context, "jit_symbols", "functions compiled at run time, from perf maps",
        titled("Functions compiled at run time"), timed("when the map was read, at the latest at the end of sampling");
    HOST: Symbol, Label, "host", "name of the host";
    PID: u64, Detail, "pid", "process";
    ADDRESS: u64, Detail, "address", "first address of the function";
    SIZE_BYTES: u64, Detail, "size_bytes", "size of the function", in_unit(Unit::Bytes);
    FUNCTION: Text, Detail, "name", "name of the function";
}

meikyo_recording::table! {
    /// Functions of files that only the host has.
    pub file_symbols: Context, "file_symbols",
        "functions of files that the server does not have, told by one of the hosts that have them",
        titled("Functions of files"), timed("when they were read");
    HOST: Symbol, Label, "host", "the host that told them";
    BUILD_ID: Symbol, Label, "build_id", "build ID of the file, hexadecimal, or that of a kernel";
    OFFSET_BYTES: u64, Detail, "offset_bytes",
        "where in the file the function begins; of a kernel, how far behind the begin of its text",
        in_unit(Unit::Bytes);
    SIZE_BYTES: u64, Detail, "size_bytes", "how far it goes; 0 for up to the next one", in_unit(Unit::Bytes);
    FUNCTION: Text, Detail, "name", "the function; null in the only row of a file without functions";
}

meikyo_recording::table! {
    /// How often was sampled, and what it cost.
    pub rates: Context, "rates", "sampling rate, and what sampling cost the host",
        titled("Rates"), timed("when the rate took effect");
    HOST: Symbol, Label, "host", "name of the host";
    REASON: Symbol, Detail, "reason", "why the rate changed: start, budget (sampling cost too much), recovered, or end";
    PERIOD_NS: u64, Detail, "period_ns", "time between two samples of a busy CPU",
        in_unit(Unit::Nanoseconds);
    INTERRUPT_NS: u64, Detail, "interrupt_ns",
        "time that a sample costs the interrupted thread, measured when sampling began",
        in_unit(Unit::Nanoseconds);
    DISTURBANCE_PERCENT: f64, Detail, "disturbance_percent",
        "share of the CPU time of the host that sampling took in the last second; null at the start";
    BUDGET_PERCENT: f64, Detail, "budget_percent", "share that sampling may take; null if unlimited";
}

meikyo_recording::table! {
    /// What is missing.
    pub losses: Context, "losses", "samples and records that were lost, counted by second and CPU",
        titled("Losses"), timed("when the first loss was noticed");
    HOST: Symbol, Label, "host", "name of the host";
    LOSS: Symbol, Label, "loss",
        "what was lost: ring_full (records that found no room in the buffer of their CPU), throttled (samples, because the kernel paused sampling), cut (ends of stacks of more than 127 addresses), copy_ended (ends of stacks that were not copied), not_followed (ends of stacks beyond code without rules), unread (records of unknown format), off_cpu_ring_full (records of threads that left their CPU, for which there was no room), name_cut (ends of names of more than 4,096 octets), perf_map_cut (ends of perf maps that are too large)";
    CPU: u64, Detail, "cpu", "number of the CPU; null for losses of no particular CPU";
    COUNT: u64, Detail, "count", "number of losses";
}

meikyo_recording::table! {
    /// Time off the CPU.
    pub off_cpu: Context, "off_cpu",
        "time that threads were off the CPU, summed up each second by thread, reason and from where they left",
        titled("Time off the CPU"), timed("when the first of the spans began");
    HOST: Symbol, Label, "host", "name of the host";
    CPU: u64, Detail, "cpu", "number of the CPU that the thread left";
    TID: u64, Detail, "tid", "thread that was off the CPU";
    PID: u64, Detail, "pid", "process of the thread";
    REASON: Symbol, Label, "reason", "waiting (it waited for something), or preempted (it could have run, and others ran)";
    SPANS: u64, Detail, "spans", "how often it was off the CPU";
    OFF_NS: u64, Detail, "off_ns", "for how long in all", in_unit(Unit::Nanoseconds);
    LONGEST_NS: u64, Detail, "longest_ns", "the longest of the spans", in_unit(Unit::Nanoseconds);
    ADDRESS: u64, Detail, "address", "instruction from which it left, in the kernel; 0 if that was lost";
    CGROUP: u64, Detail, "cgroup", "control group of the thread, a row of `cgroups`; null if not requested";
    STACK: Text, Detail, "stack", "return addresses of the callers, as in `samples`";
}

meikyo_recording::table! {
    /// Seconds summed up where they were sampled.
    pub summaries: Context, "summaries",
        "seconds of CPUs summed up on their host: the places of code with most samples, and the number of all",
        titled("Summaries"), timed("when the second begins");
    HOST: Symbol, Label, "host", "name of the host";
    CPU: u64, Detail, "cpu", "number of the CPU on its host";
    PID: u64, Detail, "pid", "process; null in the row of all samples";
    ADDRESS: u64, Detail, "address",
        "the instruction met most in 64 octets of code; null in the row of all samples";
    SAMPLES: u64, Detail, "samples", "samples in these 64 octets, or all of the second";
}

meikyo_recording::table! {
    /// Seconds that are unlike those before.
    pub findings: Context, "findings", "seconds of CPUs that are unlike those before, as their host saw them",
        titled("Findings"), timed("when the second begins");
    HOST: Symbol, Label, "host", "name of the host";
    CPU: u64, Detail, "cpu", "number of the CPU on its host";
    FINDING: Symbol, Detail, "finding", "phase (other code runs), or outlier (the CPU ran for another share of the second)";
    BEFORE: f64, Detail, "before", "median of the shares before, 0 to 1, for outlier";
    FOUND: f64, Detail, "found", "distance of what ran from what ran before, 0 to 1, for phase; share of the second for outlier";
}

pub use meikyo_recording::tables::clocks;

/// Every table of a profile, in the order in which a stream has them.
pub fn all() -> Vec<TableSchema> {
    vec![
        samples::schema(),
        mappings::schema(),
        threads::schema(),
        cgroups::schema(),
        jit_symbols::schema(),
        rates::schema(),
        losses::schema(),
        clocks::schema(),
        summaries::schema(),
        findings::schema(),
        file_symbols::schema(),
        off_cpu::schema(),
    ]
}

/// The tables as `docs/profile-tables.md` has them.
pub fn reference() -> String {
    let about = "# Tables of profiles\n\nThis page lists the tables and columns of a profile. It is generated \
                 from the declarations in the code: `cargo run -p meikyo-profile --example profile_tables > \
                 docs/profile-tables.md`.\n";
    format!("{about}{}", reference::markdown(&all()))
}
