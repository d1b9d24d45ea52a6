//! Which devices fail and what the recording refuses, told while it is measured: a line each with
//! the remedy, and of many at once the number.

use std::collections::{BTreeMap, VecDeque};

use meikyo_recording::{Incident, IncidentKind};
use meikyo_snmp::poll::{Outage, Reason};
use meikyo_snmp::probe::Trouble;
use meikyo_units::{Nanos, WallTime};

use super::devices::Devices;

/// Lines told of one kind in a [`WINDOW`]; of the rest the number.
const TOLD_MAX: usize = 10;

/// A device that comes and goes must not fill the terminal.
const WINDOW: Nanos = Nanos::from_secs(10);

/// What is to be told, and what is wrong now.
#[derive(Debug, Default)]
pub(super) struct Troubles {
    /// Why each failing device fails.
    failing: BTreeMap<u32, Option<Reason>>,
    /// What is not told of yet of devices, oldest first.
    devices: VecDeque<(u32, Outage)>,
    /// Lines about the recording that are not told yet.
    incidents: VecDeque<String>,
    window: WallTime,
    told_devices: usize,
    told_incidents: usize,
    /// Whether the rest of this window was told as a number.
    summed: bool,
}

impl Troubles {
    /// A device has begun to fail, or answers again.
    pub(super) fn device(&mut self, ordinal: u32, outage: Outage) {
        match outage {
            Outage::Began { reason } => self.failing.insert(ordinal, reason),
            Outage::Ended => self.failing.remove(&ordinal),
        };
        self.devices.push_back((ordinal, outage));
    }

    /// Something happened to the recording.
    pub(super) fn incident(&mut self, incident: &Incident) {
        let remedy = match incident.kind {
            IncidentKind::DiskRefused => {
                "; make room (`df`) or correct its permissions: it goes on by itself, and `keep` in \
                 the cluster file bounds what a recording takes"
            }
            IncidentKind::Removed => {
                "; `--if-removed` says whether a measurement then ends or begins a new recording"
            }
            IncidentKind::QueueFull => "; the disk is too slow for this cluster and interval",
            _ => "",
        };
        self.incidents.push_back(format!("recording: {}{remedy}", incident.text));
    }

    /// Devices that are not measured any more.
    pub(super) fn forget(&mut self, removed: &[u32]) {
        for ordinal in removed {
            self.failing.remove(ordinal);
        }
        self.devices.retain(|(ordinal, _)| !removed.contains(ordinal));
    }

    /// The devices that fail now.
    pub(super) fn failing(&self, devices: &Devices) -> Vec<String> {
        self.failing.keys().map(|&ordinal| devices.name(ordinal).to_owned()).collect()
    }

    /// Tells what is new, as far as a person can read it.
    pub(super) fn tell(&mut self, now: WallTime, devices: &Devices, say: &mut dyn FnMut(&str)) {
        if now.since(self.window) >= WINDOW || now < self.window {
            self.window = now;
            (self.told_devices, self.told_incidents, self.summed) = (0, 0, false);
        }
        while self.told_incidents < TOLD_MAX
            && let Some(line) = self.incidents.pop_front()
        {
            self.told_incidents += 1;
            say(&line);
        }
        while self.told_devices < TOLD_MAX
            && let Some((ordinal, outage)) = self.devices.pop_front()
        {
            if let Some(line) = line(ordinal, outage, devices) {
                self.told_devices += 1;
                say(&line);
            }
        }
        let left = self.devices.len() + self.incidents.len();
        if left > 0 && !self.summed {
            self.tell_numbers(say);
        }
    }

    /// Tells everything that is left, as numbers where it is much: nothing comes after it.
    pub(super) fn tell_rest(&mut self, devices: &Devices, say: &mut dyn FnMut(&str)) {
        self.tell(self.window + WINDOW, devices, say);
    }

    fn tell_numbers(&mut self, say: &mut dyn FnMut(&str)) {
        self.summed = true;
        let begun = |(_, outage): &&(u32, Outage)| *outage != Outage::Ended;
        let (changed, failing) = (self.devices.len(), self.devices.iter().filter(begun).count());
        if changed > 0 {
            say(&format!(
                "{failing} more fail and {} more answer again; {} fail now (table `events` lists them)",
                changed - failing,
                self.failing.len()
            ));
        }
        if !self.incidents.is_empty() {
            say(&format!("and {} other incidents of the recording", self.incidents.len()));
        }
        self.devices.clear();
        self.incidents.clear();
    }
}

/// What is told of a device; `None` if it is not in the cluster file any more.
fn line(ordinal: u32, outage: Outage, devices: &Devices) -> Option<String> {
    let device = &devices.by_ordinal().get(&ordinal)?.device;
    let place = devices.cluster().path.display();
    Some(match outage {
        Outage::Began { reason } => {
            let Trouble { text, remedy } = Trouble::of_poll(device, reason);
            format!("`{}` (line {} of {place}): {text}; {remedy}", device.name, device.place.line)
        }
        Outage::Ended => format!("`{}` answers again", device.name),
    })
}
