//! What is known of the cluster at the moment that is shown: the newest values of every device.
//!
//! Pure: it takes the steps of [`meikyo_live`] as they come and reads no clock. A value
//! that did not come is missing; nothing is carried over from an earlier interval. Of objects that are
//! asked for more seldom it is the newest row, which has its age beside it.

mod apply;
mod health;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use meikyo_live::staleness::Held;
use meikyo_live::{Event, Interval, Other, Wanted};
use meikyo_snmp::tables::{State, batches, cpu, interfaces, load, memory, polls, storage};
use meikyo_units::{Nanos, WallTime};

use super::history::History;

pub(super) use health::Health;

/// What is watched of a recording by name, because something is computed of it; whatever else has
/// columns that are shown unasked is watched as well, see [`Model::others`].
pub(super) const WANTED: [Wanted<'static>; 7] = [
    // First, since the other rows are dated by it.
    Wanted { table: polls::NAME, columns: &[polls::RECEIVED_US.name(), polls::BATCH.name()] },
    Wanted { table: batches::NAME, columns: &[batches::BATCH.name(), batches::SENT_US.name()] },
    Wanted {
        table: interfaces::NAME,
        columns: &[
            interfaces::IN_OCTETS.name(),
            interfaces::OUT_OCTETS.name(),
            interfaces::IN_PACKETS.name(),
            interfaces::OUT_PACKETS.name(),
            interfaces::IN_ERRORS.name(),
            interfaces::OUT_ERRORS.name(),
            interfaces::IN_DISCARDS.name(),
            interfaces::OUT_DISCARDS.name(),
            interfaces::OPER_STATUS.name(),
        ],
    },
    Wanted { table: load::NAME, columns: &[load::LOAD_1MIN.name()] },
    Wanted {
        table: storage::NAME,
        columns: &[storage::TOTAL_BYTES.name(), storage::USED_BYTES.name()],
    },
    Wanted {
        table: memory::NAME,
        columns: &[
            memory::TOTAL_BYTES.name(),
            memory::AVAILABLE_BYTES.name(),
            memory::BUFFER_BYTES.name(),
            memory::CACHED_BYTES.name(),
        ],
    },
    Wanted { table: cpu::NAME, columns: &CPU_TICKS },
];

/// What a CPU's time is spent on, doing nothing first.
const CPU_TICKS: [&str; 8] = [
    cpu::IDLE_TICKS.name(),
    cpu::USER_TICKS.name(),
    cpu::NICE_TICKS.name(),
    cpu::SYSTEM_TICKS.name(),
    cpu::WAIT_TICKS.name(),
    cpu::INTERRUPT_TICKS.name(),
    cpu::SOFTIRQ_TICKS.name(),
    cpu::STEAL_TICKS.name(),
];

/// What is older has its age beside it.
const OLD: Nanos = Nanos::from_secs(2);
/// Events that are remembered.
const EVENTS_MAX: usize = 500;
/// Due instants whose batches are remembered, to work out round trips.
const BATCH_TIMES_MAX: usize = 100;

/// The cluster at the moment that is shown.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    pub(super) devices: Vec<Device>,
    by_name: BTreeMap<String, usize>,
    /// Tables that are shown as their declarations say.
    pub(super) others: Vec<Other>,
    /// By table and number of a series: the device and its instance; `None` for one not watched.
    places: BTreeMap<String, Vec<Option<Place>>>,
    /// When batches were handed to the kernel, µs after their due instant, by that and batch.
    batches_sent_us: BTreeMap<i64, Vec<(u64, f64)>>,
    /// The newest events, newest last.
    pub(super) events: VecDeque<Event>,
    /// The intervals of the last seconds.
    intervals: VecDeque<Interval>,
    /// The newest due instant of a poll, ns since the epoch.
    pub(super) newest: Option<i64>,
    /// The oldest, since when the recording is watched.
    oldest: Option<i64>,
    pub(super) history: History,
}

/// Which device, and which of its interfaces or disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    device: usize,
    instance: usize,
}

/// What is shown of one device.
#[derive(Debug, Clone, Default)]
pub(super) struct Device {
    pub(super) name: String,
    pub(super) role: &'static str,
    pub(super) group: String,
    /// How its newest interval ended.
    pub(super) state: Option<State>,
    /// The due instant of that interval, ns since the epoch.
    pub(super) due: Option<i64>,
    /// Between its two newest intervals.
    interval: Option<Nanos>,
    /// When its newest answer was received, ns since the epoch.
    pub(super) answered: Option<i64>,
    /// How its agent updates values that answers hold older ones of.
    pub(super) held: Held,
    /// Due instant, batch and receive time (µs) of the newest answer until its batch is known.
    unsent: Option<(i64, u64, f64)>,
    pub(super) round_trip_s: Option<f64>,
    /// Mean of 1 minute.
    pub(super) load: Option<f64>,
    pub(super) cpu_share: Option<f64>,
    pub(super) memory: Memory,
    /// Due instants of the newest rows of `load`, `memory` and `cpu`.
    dues: [i64; 3],
    pub(super) interfaces: Vec<Interface>,
    pub(super) disks: Vec<Disk>,
    /// The newest values of other tables.
    pub(super) parts: Vec<OtherPart>,
}

/// The newest values of one series of one of [`Model::others`].
#[derive(Debug, Clone, Default)]
pub(super) struct OtherPart {
    /// Which of them.
    pub(super) other: usize,
    /// Which of the device's, `fan 1`; empty where a device has one row.
    pub(super) name: String,
    pub(super) due: i64,
    /// By column.
    pub(super) values: Vec<Option<f64>>,
}

/// The newest values of an interface; rates a second.
#[derive(Debug, Clone, Default)]
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) due: i64,
    pub(super) received: Option<f64>,
    pub(super) sent: Option<f64>,
    pub(super) packets_received: Option<f64>,
    pub(super) packets_sent: Option<f64>,
    /// `in_errors`, `out_errors`, `in_discards`, `out_discards`.
    pub(super) trouble: [Option<f64>; 4],
    /// Whether the link is up.
    pub(super) up: Option<bool>,
}

/// The newest values of a disk, octets.
#[derive(Debug, Clone, Default)]
pub(super) struct Disk {
    pub(super) path: String,
    pub(super) due: i64,
    pub(super) total: Option<f64>,
    pub(super) used: Option<f64>,
}

/// Memory, octets.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Memory {
    pub(super) total: Option<f64>,
    pub(super) available: Option<f64>,
    pub(super) buffer: Option<f64>,
    pub(super) cached: Option<f64>,
}

impl Model {
    /// A cluster of which nothing is known but its devices.
    pub(super) fn new(devices: impl IntoIterator<Item = meikyo_live::Device>) -> Self {
        let mut model = Self::default();
        for device in devices {
            model.by_name.insert(device.name.clone(), model.devices.len());
            model.devices.push(Device {
                name: device.name,
                role: device.role,
                group: device.group.unwrap_or_default(),
                ..Device::default()
            });
        }
        model.history = History::new(model.devices.len());
        model
    }

    /// The same cluster with these tables shown besides.
    pub(super) fn showing(mut self, others: &[Other]) -> Self {
        self.others = others.to_vec();
        self
    }

    /// The same devices, and nothing known of them.
    pub(super) fn emptied(&self) -> Self {
        let devices = self.devices.iter().map(|device| meikyo_live::Device {
            name: device.name.clone(),
            role: device.role,
            group: Some(device.group.clone()),
            agent: None,
        });
        Self::new(devices).showing(&self.others)
    }

    /// The ordinal of a device.
    pub(super) fn device(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Takes how agents update their values.
    pub(super) fn hold(&mut self, mut held: BTreeMap<String, Held>) {
        for device in &mut self.devices {
            device.held = held.remove(&device.name).unwrap_or_default();
        }
    }

    /// How many series of a table are known.
    pub(super) fn known(&self, table: &str) -> usize {
        self.places.get(table).map_or(0, Vec::len)
    }

    /// Takes the labels of series of a table behind those that are known: device, then instance.
    pub(super) fn learn(&mut self, table: &str, labels: &[Vec<String>]) {
        let other = self.others.iter().position(|other| other.table == table);
        for labels in labels {
            let device = labels.first().and_then(|name| self.by_name.get(name)).copied();
            let instance = labels.get(1).map_or("", String::as_str);
            let place = device.map(|device| Place {
                device,
                instance: match other {
                    Some(other) => self.devices[device].part(other, instance),
                    None => self.devices[device].instance(table, instance),
                },
            });
            self.places.entry(table.to_owned()).or_default().push(place);
        }
    }

    /// Takes the labels of all series of a table anew, in place of what was known of their numbers.
    pub(super) fn relearn(&mut self, table: &str, labels: &[Vec<String>]) {
        self.places.remove(table);
        self.learn(table, labels);
    }

    /// The instant that is newest in it.
    pub(super) fn now(&self) -> Option<WallTime> {
        self.newest.map(WallTime::from_nanos)
    }
}

impl Device {
    /// The place of an interface or a disk; a new one when it is not known.
    fn instance(&mut self, table: &str, name: &str) -> usize {
        match table {
            interfaces::NAME => {
                let at = self.interfaces.iter().position(|interface| interface.name == name);
                at.unwrap_or_else(|| {
                    self.interfaces.push(Interface { name: name.into(), ..Interface::default() });
                    self.interfaces.len() - 1
                })
            }
            storage::NAME => {
                let at = self.disks.iter().position(|disk| disk.path == name);
                at.unwrap_or_else(|| {
                    self.disks.push(Disk { path: name.into(), ..Disk::default() });
                    self.disks.len() - 1
                })
            }
            _ => 0,
        }
    }

    /// The place of a series of another table; a new one when it is not known.
    fn part(&mut self, other: usize, name: &str) -> usize {
        let at = self.parts.iter().position(|part| part.other == other && part.name == name);
        at.unwrap_or_else(|| {
            self.parts.push(OtherPart { other, name: name.into(), ..OtherPart::default() });
            self.parts.len() - 1
        })
    }

    /// The sum over all interfaces that have a value; `None` when none has.
    pub(super) fn sum(&self, value: impl Fn(&Interface) -> Option<f64>) -> Option<f64> {
        self.interfaces.iter().filter_map(value).reduce(|sum, value| sum + value)
    }

    /// How old its newest values are at an instant, s: since when they were true at the agent.
    pub(super) fn age_s(&self, now: i64) -> Option<f64> {
        let answered = WallTime::from_nanos(self.answered?);
        Some(self.held.age(answered, WallTime::from_nanos(now)).as_secs_f64())
    }

    /// The share of memory that is neither free nor buffers or cache.
    pub(super) fn memory_share(&self) -> Option<f64> {
        let Memory { total, available, buffer, cached } = self.memory;
        let total = total.filter(|total| *total > 0.0)?;
        let free = available? + buffer.unwrap_or(0.0) + cached.unwrap_or(0.0);
        Some(((total - free) / total).clamp(0.0, 1.0))
    }

    /// The disk of which the greatest share is used.
    pub(super) fn fullest_disk(&self) -> Option<&Disk> {
        let known = self.disks.iter().filter_map(|disk| Some((disk.share()?, disk)));
        known.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, disk)| disk)
    }

    /// The share of its fullest disk that is used.
    pub(super) fn disk_share(&self) -> Option<f64> {
        self.fullest_disk().and_then(Disk::share)
    }

    /// The due instant of the newest row of `load`, ns since the epoch.
    pub(super) const fn load_due(&self) -> i64 {
        self.dues[0]
    }

    /// The due instant of the newest row of `memory`.
    pub(super) const fn memory_due(&self) -> i64 {
        self.dues[1]
    }

    /// The due instant of the newest row of `cpu`.
    pub(super) const fn cpu_due(&self) -> i64 {
        self.dues[2]
    }

    /// The age at `now` of a reading that was due at `due`, if it is so much older than the device's newest
    /// interval that its own age tells nothing of it.
    pub(super) fn age_behind_answers(&self, due: i64, now: i64) -> Option<Nanos> {
        let instant = WallTime::from_nanos;
        let behind = instant(self.due?).since(instant(due));
        (behind > OLD).then(|| instant(now).since(instant(due)))
    }
}

impl Disk {
    /// The share that is used.
    pub(super) fn share(&self) -> Option<f64> {
        let total = self.total.filter(|total| *total > 0.0)?;
        Some((self.used? / total).clamp(0.0, 1.0))
    }
}

impl Interface {
    /// Errors and discards of both directions, a second.
    pub(super) fn trouble_per_s(&self) -> Option<f64> {
        self.trouble.iter().flatten().copied().reduce(|sum, value| sum + value)
    }
}
