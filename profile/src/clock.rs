//! Clocks: the monotonic one, which samples are stamped with, against that of the day.

#![expect(
    unsafe_code,
    reason = "the standard library does not tell what a monotonic instant is in ns"
)]

/// What the clock of the day is ahead of the monotonic one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offset {
    /// Added to a monotonic time, this is ns since the epoch.
    pub(crate) ns: i64,
    /// The monotonic time when it was compared.
    pub(crate) at: u64,
}

/// ns since some start (`CLOCK_MONOTONIC`).
pub(crate) fn monotonic() -> u64 {
    read(libc::CLOCK_MONOTONIC).cast_unsigned()
}

/// Compares the clocks: of several comparisons the one that took least.
pub(crate) fn offset() -> Offset {
    let compared = (0..5).map(|_| {
        let before = read(libc::CLOCK_MONOTONIC);
        let day = read(libc::CLOCK_REALTIME);
        let after = read(libc::CLOCK_MONOTONIC);
        let at = before + (after - before) / 2;
        (after - before, Offset { ns: day - at, at: at.cast_unsigned() })
    });
    compared.min_by_key(|(took, _)| *took).expect("five comparisons").1
}

/// CPU time that the calling thread has used, ns.
pub(crate) fn thread_cpu() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID).cast_unsigned()
}

/// CPU time that this process has used, ns.
pub(crate) fn process_cpu() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID).cast_unsigned()
}

fn read(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes, and the kernel writes nothing else.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    assert_eq!(result, 0, "Linux has this clock");
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Waits until the monotonic clock shows `until`, or a signal comes.
pub(crate) fn wait_until(until: u64) {
    let until = i64::try_from(until).expect("the machine is up for less than 292 years");
    let time = libc::timespec { tv_sec: until / 1_000_000_000, tv_nsec: until % 1_000_000_000 };
    // SAFETY: `time` is valid for reads; what is left of the time is not asked for.
    let result = unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const time,
            std::ptr::null_mut(),
        )
    };
    assert!(matches!(result, 0 | libc::EINTR), "Linux waits for this clock");
}
