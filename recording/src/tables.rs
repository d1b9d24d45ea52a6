//! The tables that every engine may write into, whatever it measures.

use crate::schema::Unit;

crate::table! {
    /// What happened: marks, alerts, and whatever an engine has to tell besides its values.
    pub events: Events, "events", "restarts, resets, alerts, marks and whatever else happened", titled("Events"),
        timed("when it happened");
    DEVICE: Symbol, Label, "device", "name in the cluster file; null for the collector itself";
    EVENT: Symbol, Label, "event",
        "what happened: restart, reset, failing, missing_object, mark, alert_raised, ...";
    OBJECT: Symbol, Label, "object", "interface, disk or object concerned, if any";
    TEXT: Text, Gauge, "text", "description for people";
    COUNT: u64, Detail, "count", "number, for events that count something";
}

crate::table! {
    /// Real time against monotonic time, by host.
    pub clocks: Clocks, "clocks", "real-time clock of each host compared with its monotonic clock and NTP", titled("Clocks"),
        timed("when both clocks were read");
    HOST: Symbol, Label, "host", "host whose clock it is";
    MONOTONIC_NS: u64, Detail, "monotonic_ns", "value of CLOCK_MONOTONIC at `time`",
        in_unit(Unit::Nanoseconds);
    NTP_OFFSET_NS: i64, Detail, "ntp_offset_ns",
        "offset of the real-time clock as estimated by NTP (adjtimex)", in_unit(Unit::Nanoseconds);
    NTP_ERROR_NS: u64, Detail, "ntp_error_ns", "estimated error of that offset; null if the clock is not synchronised",
        in_unit(Unit::Nanoseconds);
}
