//! The tables of a profile.
//!
//! `samples` is the profile. The others say what its addresses, threads and control groups were,
//! which cannot be found out once programs have ended: what was mapped where, what threads were
//! called, what compilers at run time made. `rates` and `losses` say what was not sampled.

use meikyo_recording::TableSchema;
use meikyo_recording::schema::{Unit, reference};

meikyo_recording::table! {
    /// One row a sample: what a CPU ran at an instant.
    pub samples: Samples, "samples", "samples of processors: what ran at `time`",
        titled("Samples"), timed("instant of the sample");
    HOST: Symbol, Label, "host", "name of the host";
    CPU: u64, Detail, "cpu", "number of the CPU on its host";
    TID: u64, Detail, "tid", "ID of the thread that ran, as the host's first PID namespace has it";
    PID: u64, Detail, "pid", "ID of its process";
    ADDRESS: u64, Detail, "address", "instruction; at 2^63 and above in the kernel";
    CGROUP: u64, Detail, "cgroup", "its control group, see `cgroups`; null where not asked for";
    STACK: Text, Detail, "stack",
        "where each caller goes on, outermost first, hexadecimal with `;` between; null where not asked for";
}

meikyo_recording::table! {
    /// What is mapped where.
    pub mappings: Context, "mappings", "code that was mapped: what addresses of `samples` mean",
        titled("Mappings"), timed("when it was mapped, or when what was there was written down");
    HOST: Symbol, Label, "host", "name of the host";
    PID: u64, Detail, "pid", "process; null for the kernel";
    ADDRESS: u64, Detail, "address", "where it begins";
    SIZE_BYTES: u64, Detail, "size_bytes", "how far it goes", in_unit(Unit::Bytes);
    OFFSET_BYTES: u64, Detail, "offset_bytes", "where in the file it begins", in_unit(Unit::Bytes);
    PATH: Text, Detail, "path",
        "the file as its process sees it, what the kernel calls it, [kernel] for its own text, [boot] for all else in it";
    BUILD_ID: Text, Detail, "build_id",
        "build ID of the file, hexadecimal; null where it has none; for [boot] the ID of the boot";
    INODE: u64, Detail, "inode", "inode of a file without a build ID";
}

meikyo_recording::table! {
    /// Names and lives of threads.
    pub threads: Context, "threads", "threads that began, were named or ended",
        titled("Threads"), timed("when it happened, or when what was there was written down");
    HOST: Symbol, Label, "host", "name of the host";
    EVENT: Symbol, Detail, "event", "there (when sampling began, and every hour of an agent), fork, exec, name or exit";
    TID: u64, Detail, "tid", "the thread";
    PID: u64, Detail, "pid", "its process";
    PARENT_PID: u64, Detail, "parent_pid", "process that began it, for fork";
    PARENT_TID: u64, Detail, "parent_tid", "thread that began it, for fork";
    CALLED: Text, Detail, "name", "what it is called from then on, for there, exec and name";
}

meikyo_recording::table! {
    /// Names of control groups.
    pub cgroups: Context, "cgroups", "control groups by their numbers",
        titled("Control groups"), timed("when it was first sampled");
    HOST: Symbol, Label, "host", "name of the host";
    CGROUP: u64, Detail, "cgroup", "number of the control group";
    PATH: Text, Detail, "path", "its path below the root of the hierarchy of version 2";
}

meikyo_recording::table! {
    /// What compilers at run time made.
    pub jit_symbols: Context, "jit_symbols", "functions that compilers made at run time (perf maps)",
        titled("Functions made at run time"), timed("when it was read, at the latest when sampling ended");
    HOST: Symbol, Label, "host", "name of the host";
    PID: u64, Detail, "pid", "process";
    ADDRESS: u64, Detail, "address", "where the function begins";
    SIZE_BYTES: u64, Detail, "size_bytes", "how far it goes", in_unit(Unit::Bytes);
    FUNCTION: Text, Detail, "name", "the function";
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
    pub rates: Context, "rates", "how often each CPU was sampled, and what that took from the host",
        titled("Rates"), timed("from when on");
    HOST: Symbol, Label, "host", "name of the host";
    REASON: Symbol, Detail, "reason", "start, budget (it took too much), recovered, or end";
    PERIOD_NS: u64, Detail, "period_ns", "span between two samples of a CPU that runs",
        in_unit(Unit::Nanoseconds);
    INTERRUPT_NS: u64, Detail, "interrupt_ns",
        "what a sample takes from the thread that it interrupts, measured when sampling began",
        in_unit(Unit::Nanoseconds);
    DISTURBANCE_PERCENT: f64, Detail, "disturbance_percent",
        "share of all CPUs of the host that sampling took in the second before; null at the start";
    BUDGET_PERCENT: f64, Detail, "budget_percent", "what it may take; null where nothing limits it";
}

meikyo_recording::table! {
    /// What is missing.
    pub losses: Context, "losses", "what was lost, by second and CPU",
        titled("Losses"), timed("when the first of them was noticed");
    HOST: Symbol, Label, "host", "name of the host";
    LOSS: Symbol, Label, "loss",
        "ring_full (records of a CPU), throttled (the kernel stopped sampling), cut (stacks of more than 127 addresses), unread (records of unknown form), name_cut (names of more than 4,096 octets), perf_map_cut (perf maps of more octets than are read)";
    CPU: u64, Detail, "cpu", "number of the CPU; null for what is of none";
    COUNT: u64, Detail, "count", "how many";
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
    ]
}

/// The tables as `docs/profile-tables.md` has them.
pub fn reference() -> String {
    let about = "# Tables of profiles\n\nWhat the columns of a profile are. This page is written by \
                 the declarations themselves: `cargo run -p meikyo-profile --example profile_tables > \
                 docs/profile-tables.md`.\n";
    format!("{about}{}", reference::markdown(&all()))
}
