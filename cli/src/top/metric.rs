//! The quantities that devices are compared by.

use clap::ValueEnum;
use meikyo_units::Nanos;

use super::amounts::Unit;
use super::model::{Device, Interface};

/// A quantity of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Metric {
    /// Octets sent, all interfaces
    Sent,
    /// Octets received, all interfaces
    Received,
    /// Packets sent, all interfaces
    PacketsSent,
    /// Packets received, all interfaces
    PacketsReceived,
    /// Errors and discards, all interfaces
    Errors,
    /// Load, mean of 1 minute
    Load,
    /// Share of CPU time that was not idle
    Cpu,
    /// Share of memory that is neither free nor buffers or cache
    Memory,
    /// Share of the fullest disk that is used
    Disk,
    /// Age of the newest value
    Age,
    /// Round trip of the newest poll
    RoundTrip,
}

impl Metric {
    /// All of them, in the order of the menu.
    pub(super) const ALL: [Self; 11] = [
        Self::Sent,
        Self::Received,
        Self::PacketsSent,
        Self::PacketsReceived,
        Self::Errors,
        Self::Load,
        Self::Cpu,
        Self::Memory,
        Self::Disk,
        Self::Age,
        Self::RoundTrip,
    ];

    /// In the user's words.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Received => "received",
            Self::PacketsSent => "packets sent",
            Self::PacketsReceived => "packets received",
            Self::Errors => "errors and discards",
            Self::Load => "load",
            Self::Cpu => "cpu busy",
            Self::Memory => "memory used",
            Self::Disk => "disk used",
            Self::Age => "age",
            Self::RoundTrip => "round trip",
        }
    }

    /// What its values are told in.
    pub(super) const fn unit(self) -> Unit {
        match self {
            Self::Sent | Self::Received => Unit::OctetsPerSecond,
            Self::PacketsSent | Self::PacketsReceived => Unit::PacketsPerSecond,
            Self::Errors => Unit::PerSecond,
            Self::Load => Unit::Tasks,
            Self::Cpu | Self::Memory | Self::Disk => Unit::Share,
            Self::Age | Self::RoundTrip => Unit::Seconds,
        }
    }

    /// The value of a device at an instant, ns since the epoch; `None` where it is not known.
    pub(super) fn value_of(self, device: &Device, now: i64) -> Option<f64> {
        match self {
            Self::Sent => device.sum(|interface| interface.sent),
            Self::Received => device.sum(|interface| interface.received),
            Self::PacketsSent => device.sum(|interface| interface.packets_sent),
            Self::PacketsReceived => device.sum(|interface| interface.packets_received),
            Self::Errors => device.sum(Interface::trouble_per_s),
            Self::Load => device.load,
            Self::Cpu => device.cpu_share,
            Self::Memory => device.memory_share(),
            Self::Disk => device.disk_share(),
            Self::Age => device.age_s(now),
            Self::RoundTrip => device.round_trip_s,
        }
    }

    /// How old a value is, where its device answers more often than that: objects that are asked for seldom
    /// have values from before the newest answer. `None` where the device's own age tells.
    pub(super) fn age_of(self, device: &Device, now: i64) -> Option<Nanos> {
        self.value_of(device, now)?;
        device.age_behind_answers(self.due_of(device)?, now)
    }

    /// The due instant of the oldest reading that the value is from, ns since the epoch; `None` for what
    /// every answer tells.
    fn due_of(self, device: &Device) -> Option<i64> {
        match self {
            Self::Sent
            | Self::Received
            | Self::PacketsSent
            | Self::PacketsReceived
            | Self::Errors => device.interfaces.iter().map(|interface| interface.due).min(),
            Self::Load => Some(device.load_due()),
            Self::Cpu => Some(device.cpu_due()),
            Self::Memory => Some(device.memory_due()),
            Self::Disk => device.fullest_disk().map(|disk| disk.due),
            Self::Age | Self::RoundTrip => None,
        }
    }

    /// The scale when the greatest value was `before` on its scale and is another now: it grows at
    /// once, and shrinks only when it has become far too long, so that colours stand still.
    pub(super) fn next_scale(self, before: Option<f64>, greatest: Option<f64>) -> f64 {
        /// Below this share of the scale it shrinks, as on the page.
        const SHRINK: f64 = 0.18;
        let fits = |scale: &f64| {
            greatest.is_none_or(|greatest| greatest <= *scale && greatest >= scale * SHRINK)
        };
        before.filter(fits).unwrap_or_else(|| self.scale(greatest))
    }

    /// What the whole ramp stands for when `greatest` is the greatest value: a round number that
    /// does not move with every reading. Shares have a scale of their own.
    pub(super) fn scale(self, greatest: Option<f64>) -> f64 {
        if self.unit() == Unit::Share {
            return 1.0;
        }
        // Rates are shown in bits: their round numbers are those of bits.
        let factor = if self.unit() == Unit::OctetsPerSecond { 8.0 } else { 1.0 };
        let greatest = greatest.unwrap_or(0.0) * factor;
        if !greatest.is_finite() || greatest <= 0.0 {
            return 1.0;
        }
        let power = 10f64.powf(greatest.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
        let round = steps.into_iter().find(|step| *step >= greatest);
        round.unwrap_or(greatest) / factor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_round_and_hold_the_greatest_value() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9 * b;
        assert!(close(Metric::Sent.scale(Some(101_550_000.0)), 1e9 / 8.0));
        assert!(close(Metric::Load.scale(Some(3.2)), 5.0));
        assert!(close(Metric::Load.scale(None), 1.0));
        assert!(close(Metric::Disk.scale(Some(0.2)), 1.0));
        assert!(close(Metric::Load.next_scale(Some(5.0), Some(1.0)), 5.0));
        assert!(close(Metric::Load.next_scale(Some(5.0), Some(0.5)), 0.5));
        assert!(close(Metric::Load.next_scale(Some(5.0), Some(5.1)), 10.0));
        assert!(close(Metric::Load.next_scale(Some(5.0), None), 5.0));
        for value in [1e-6, 0.019, 1.0, 7.3, 999.0, 1e12] {
            let scale = Metric::Load.scale(Some(value));
            assert!(scale >= value * 0.999_999 && scale <= value * 10.0, "{value} on {scale}");
        }
    }
}
