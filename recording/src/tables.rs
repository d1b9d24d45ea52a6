//! The tables that every engine may write into, whatever it measures.

use crate::schema::Unit;

crate::table! {
    /// What happened: marks, alerts, and whatever an engine has to tell besides its values.
    pub events: Events, "events", "what happened", titled("Events");
    DEVICE: Symbol, Label, "device", "name in the cluster file; null for the collector itself";
    EVENT: Symbol, Label, "event",
        "kind: restart, reset, failing, missing_object, mark, alert_raised, and others";
    OBJECT: Symbol, Label, "object", "interface, disk or object that it concerns";
    TEXT: Text, Gauge, "text", "for people";
    COUNT: u64, Detail, "count", "how many, where the kind counts something";
}

crate::table! {
    /// Real time against monotonic time, by host.
    pub clocks: Clocks, "clocks", "real time against monotonic time", titled("Clocks");
    HOST: Symbol, Label, "host", "whose clock";
    MONOTONIC_NS: u64, Detail, "monotonic_ns", "CLOCK_MONOTONIC at `time`",
        in_unit(Unit::Nanoseconds);
    NTP_OFFSET_NS: i64, Detail, "ntp_offset_ns",
        "estimated offset of the real-time clock (adjtimex)", in_unit(Unit::Nanoseconds);
    NTP_ERROR_NS: u64, Detail, "ntp_error_ns", "its estimated error; null when not synchronised",
        in_unit(Unit::Nanoseconds);
}
