//! Steps of a measurement become the newest values of devices.

use meikyo_live::{Frame, Step};
use meikyo_snmp::tables::{State, batches, cpu, interfaces, load, memory, polls, storage};
use meikyo_units::WallTime;

use super::{BATCH_TIMES_MAX, CPU_TICKS, Device, EVENTS_MAX, Model, Place};
use crate::top::history::Line;

/// A row of a frame: its columns by name.
struct Row<'a> {
    frame: &'a Frame,
    row: usize,
}

impl Row<'_> {
    /// A value; `None` where there is none.
    fn value(&self, column: &str) -> Option<f64> {
        let at = self.frame.columns.iter().position(|name| name == column)?;
        Some(f64::from(self.frame.values[at][self.row])).filter(|value| value.is_finite())
    }

    fn due(&self) -> i64 {
        self.frame.times[self.row]
    }

    /// Whether it is not older than what is known, which it then is. Rows of late answers, and
    /// those that a follower hands out when it begins, are.
    fn is_newest(&self, known: &mut i64) -> bool {
        let newest = self.due() >= *known;
        *known = self.due().max(*known);
        newest
    }
}

impl Model {
    /// Takes a step. Series of its frames are to be learned before; rows of unknown ones are
    /// passed over.
    pub(in crate::top) fn apply(&mut self, step: &Step) {
        for frame in &step.frames {
            match &*frame.table {
                batches::NAME => self.apply_batches(frame),
                table => {
                    for row in 0..frame.times.len() {
                        let series = usize::try_from(frame.series[row]).ok();
                        let places = self.places.get(table);
                        let place = series.and_then(|at| places?.get(at).copied().flatten());
                        let Some(place) = place else { continue };
                        self.apply_row(table, place, &Row { frame, row });
                    }
                }
            }
        }
        for interval in &step.intervals {
            self.take_interval(*interval);
        }
        for event in &step.events {
            let watched = event.device.as_ref().is_none_or(|name| self.by_name.contains_key(name));
            if !watched || self.events.contains(event) {
                continue;
            }
            if self.events.len() == EVENTS_MAX {
                self.events.pop_front();
            }
            self.events.push_back(event.clone());
        }
    }

    fn apply_batches(&mut self, frame: &Frame) {
        for row in 0..frame.times.len() {
            let row = Row { frame, row };
            let (Some(batch), Some(sent_us)) =
                (row.value(batches::BATCH.name()), row.value(batches::SENT_US.name()))
            else {
                continue;
            };
            let of_time = self.batches_sent_us.entry(row.due()).or_default();
            of_time.push((ordinal(batch), sent_us));
            if self.batches_sent_us.len() > BATCH_TIMES_MAX {
                self.batches_sent_us.pop_first();
            }
        }
        for device in &mut self.devices {
            if let Some((due, batch, received_us)) = device.unsent
                && let Some(of_time) = self.batches_sent_us.get(&due)
                && let Some((_, sent_us)) = of_time.iter().find(|(known, _)| *known == batch)
            {
                device.round_trip_s = Some((received_us - sent_us) / 1e6);
                device.unsent = None;
            }
        }
    }

    fn apply_row(&mut self, table: &str, place: Place, row: &Row<'_>) {
        let device = &mut self.devices[place.device];
        match table {
            polls::NAME => {
                self.newest = self.newest.max(Some(row.due()));
                let due = row.due();
                self.oldest = Some(self.oldest.map_or(due, |oldest| oldest.min(due)));
                take_poll(device, row);
            }
            interfaces::NAME => {
                take_interface(device, place.instance, row);
                let mut push = |line, column| {
                    self.history.push(place.device, line, row.due(), row.value(column));
                };
                push(Line::Received(place.instance), interfaces::IN_OCTETS.name());
                push(Line::Sent(place.instance), interfaces::OUT_OCTETS.name());
            }
            load::NAME => {
                let mean = row.value(load::LOAD_1MIN.name());
                self.history.push(place.device, Line::Load, row.due(), mean);
                if row.is_newest(&mut device.dues[0]) {
                    device.load = mean;
                }
            }
            storage::NAME => {
                let disk = &mut device.disks[place.instance];
                if row.is_newest(&mut disk.due) {
                    disk.total = row.value(storage::TOTAL_BYTES.name());
                    disk.used = row.value(storage::USED_BYTES.name());
                }
            }
            memory::NAME if row.is_newest(&mut device.dues[1]) => {
                device.memory.total = row.value(memory::TOTAL_BYTES.name());
                device.memory.available = row.value(memory::AVAILABLE_BYTES.name());
                device.memory.buffer = row.value(memory::BUFFER_BYTES.name());
                device.memory.cached = row.value(memory::CACHED_BYTES.name());
            }
            cpu::NAME if row.is_newest(&mut device.dues[2]) => device.cpu_share = cpu_share(row),
            _ => {
                let Some(part) = device.parts.get_mut(place.instance) else { return };
                let Some(other) = self.others.get(part.other).filter(|it| it.table == table) else {
                    return;
                };
                if row.is_newest(&mut part.due) {
                    part.values = other.columns.iter().map(|of| row.value(&of.name)).collect();
                }
            }
        }
    }
}

/// How an interval of a device ended, of all of its PDUs the worst.
fn take_poll(device: &mut Device, row: &Row<'_>) {
    let (due, state) = (row.due(), row.frame.states[row.row]);
    let state = State::of_rank(state);
    if device.due.is_none_or(|known| known < due) {
        let instant = WallTime::from_nanos;
        device.interval = device.due.map(|known| instant(due).since(instant(known)));
        device.due = Some(due);
        device.state = state;
    } else if device.due == Some(due) {
        device.state = device.state.max(state);
    }
    let Some(received_us) = row.value(polls::RECEIVED_US.name()) else { return };
    let answered = due.saturating_add(whole(received_us).saturating_mul(1_000));
    if device.answered.is_none_or(|known| known <= answered) {
        device.answered = Some(answered);
        if let Some(batch) = row.value(polls::BATCH.name()) {
            device.unsent = Some((due, ordinal(batch), received_us));
        }
    }
}

fn take_interface(device: &mut Device, instance: usize, row: &Row<'_>) {
    let interface = &mut device.interfaces[instance];
    if !row.is_newest(&mut interface.due) {
        return;
    }
    interface.received = row.value(interfaces::IN_OCTETS.name());
    interface.sent = row.value(interfaces::OUT_OCTETS.name());
    interface.packets_received = row.value(interfaces::IN_PACKETS.name());
    interface.packets_sent = row.value(interfaces::OUT_PACKETS.name());
    let trouble = [
        interfaces::IN_ERRORS,
        interfaces::OUT_ERRORS,
        interfaces::IN_DISCARDS,
        interfaces::OUT_DISCARDS,
    ];
    interface.trouble = trouble.map(|column| row.value(column.name()));
    // ifOperStatus: 1 is up (RFC 2863).
    interface.up = row.value(interfaces::OPER_STATUS.name()).map(|status| ordinal(status) == 1);
}

/// The share of time that was not idle, from hundredths of a second per second of all kinds.
fn cpu_share(row: &Row<'_>) -> Option<f64> {
    let [idle, busy @ ..] = CPU_TICKS;
    let idle = row.value(idle)?;
    let busy: f64 = busy.iter().filter_map(|kind| row.value(kind)).sum();
    (idle + busy > 0.0).then(|| busy / (idle + busy))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "ordinals and states are small; what is not saturates"
)]
fn ordinal(value: f64) -> u64 {
    value as u64
}

#[expect(clippy::cast_possible_truncation, reason = "spans in µs; what is not saturates")]
fn whole(value: f64) -> i64 {
    value as i64
}
