//! The view a single time: as plain text, or as the values that it shows.

use std::collections::BTreeMap;

use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;
use meikyo_recording::Kind;
use meikyo_snmp::tables::{cpu, load, memory, storage};
use meikyo_units::WallTime;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde::Serialize;

use super::clusters::{Cluster, Overview};
use super::draw::clusters::draw as draw_clusters;
use super::draw::draw;
use super::model::{Device, Interface, Model, OtherPart};
use super::palette::Palette;
use super::screen::Screen;
use super::session::Session;

/// The size of the screen where the environment names none.
const SIZE: (u16, u16) = (120, 40);
/// The sizes that are taken over.
const SIZE_RANGE: std::ops::RangeInclusive<u16> = 8..=2_000;

/// Prints the view of the instant at which it was read; the answer is no while there is no reading.
pub(super) fn print(mut session: Session, clock: WallTime, json: bool) -> Result<Answer, Failure> {
    let screen = &mut session.screen;
    if json {
        output::print_json(&document(screen, clock))?;
    } else {
        let (width, height) = size();
        output::print(&text(screen, clock, width, height))?;
    }
    Ok(if screen.model.newest.is_some() { Answer::Yes } else { Answer::No })
}

/// Prints clusters as they were found; the answer is no while there is none.
pub(super) fn print_clusters(mut overview: Overview, json: bool) -> Result<Answer, Failure> {
    if json {
        let (schema, clusters) = ("meikyo.top.clusters/1", &overview.clusters);
        output::print_json(&ClustersDocument { schema, clusters })?;
    } else {
        let (width, height) = size();
        let draw = |area: Rect, buffer: &mut Buffer| {
            let clock = overview.asked.unwrap_or_default();
            draw_clusters(&mut overview, Palette::PLAIN, clock, area, buffer);
        };
        output::print(&drawn_text(draw, width, height))?;
    }
    Ok(if overview.clusters.is_empty() { Answer::No } else { Answer::Yes })
}

#[derive(Debug, Serialize)]
struct ClustersDocument<'a> {
    schema: &'static str,
    clusters: &'a [Cluster],
}

/// The size that the environment names.
fn size() -> (u16, u16) {
    let size = |name: &str, default: u16| {
        let given = std::env::var(name).ok().and_then(|text| text.parse().ok());
        given.filter(|given| SIZE_RANGE.contains(given)).unwrap_or(default)
    };
    (size("COLUMNS", SIZE.0), size("LINES", SIZE.1))
}

/// The view as lines without control characters.
pub(super) fn text(screen: &mut Screen, clock: WallTime, width: u16, height: u16) -> String {
    let draw = |area: Rect, buffer: &mut Buffer| draw(screen, Palette::PLAIN, clock, area, buffer);
    drawn_text(draw, width, height)
}

/// What is drawn, as lines.
pub(super) fn drawn_text(draw: impl FnOnce(Rect, &mut Buffer), width: u16, height: u16) -> String {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    draw(area, &mut buffer);
    let mut text = String::new();
    for row in buffer.content().chunks(usize::from(width)) {
        let line: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    schema: &'static str,
    recording: &'a str,
    /// `measured` or `simulated`.
    kind: &'static str,
    running: bool,
    /// The instant that is shown.
    time_us: i64,
    intervals_per_s: Option<f64>,
    /// Device intervals of the last 10 s by how they ended.
    ok: u64,
    late: u64,
    missing: u64,
    silent: Vec<&'a str>,
    /// Of the devices that answer, the value that is oldest.
    stalest: Option<StalestBody<'a>>,
    devices: Vec<DeviceBody<'a>>,
}

#[derive(Debug, Serialize)]
struct StalestBody<'a> {
    device: &'a str,
    /// Empty where all values of the device are as old as its answer.
    object: String,
    age_us: u64,
}

#[derive(Debug, Serialize)]
struct DeviceBody<'a> {
    name: &'a str,
    role: &'a str,
    group: &'a str,
    state: Option<&'static str>,
    /// The due instant of the interval that ended in that state.
    time_us: Option<i64>,
    /// When the newest answer was received.
    received_us: Option<i64>,
    age_s: Option<f64>,
    round_trip_us: Option<f64>,
    load_1min: Option<f32>,
    cpu_share: Option<f32>,
    memory_share: Option<f32>,
    disk_share: Option<f32>,
    in_octets_per_s: Option<f32>,
    out_octets_per_s: Option<f32>,
    /// The due instants of the readings that the values above are from, by table.
    table_times_us: BTreeMap<&'static str, i64>,
    interfaces: Vec<InterfaceBody<'a>>,
    /// The newest values of tables that are shown as their declarations say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    others: Vec<OtherBody<'a>>,
}

#[derive(Debug, Serialize)]
struct OtherBody<'a> {
    table: &'a str,
    /// Which of the device's; empty where it has one.
    part: &'a str,
    /// The due instant of the reading.
    time_us: i64,
    /// By column; a value that did not come is not there.
    values: BTreeMap<&'a str, f32>,
}

#[derive(Debug, Serialize)]
struct InterfaceBody<'a> {
    interface: &'a str,
    /// The due instant of the reading.
    time_us: i64,
    in_octets_per_s: Option<f32>,
    out_octets_per_s: Option<f32>,
    in_packets_per_s: Option<f32>,
    out_packets_per_s: Option<f32>,
}

fn document(screen: &Screen, clock: WallTime) -> Document<'_> {
    let now = screen.instant(clock).as_nanos();
    let health = screen.model.health(now);
    let devices = &screen.model.devices;
    Document {
        schema: "meikyo.top/1",
        recording: &screen.name,
        kind: if screen.simulated { Kind::Simulated } else { Kind::Measured }.word(),
        running: screen.running,
        time_us: now.div_euclid(1_000),
        intervals_per_s: health.intervals_per_s,
        ok: health.ok,
        late: health.late,
        missing: health.missing,
        stalest: health.stalest.and_then(|stalest| {
            let device = devices.iter().find(|device| device.name == stalest.device)?;
            let age_us = stalest.age.as_micros();
            Some(StalestBody { device: &device.name, object: stalest.object, age_us })
        }),
        silent: health.silent.iter().map(|&of| devices[of].name.as_str()).collect(),
        devices: screen.rows.iter().map(|&of| body(&screen.model, &devices[of], now)).collect(),
    }
}

fn body<'a>(model: &'a Model, device: &'a Device, now: i64) -> DeviceBody<'a> {
    DeviceBody {
        name: &device.name,
        role: device.role,
        group: &device.group,
        state: device.state.map(meikyo_snmp::tables::State::word),
        time_us: device.due.map(|due| due.div_euclid(1_000)),
        received_us: device.answered.map(|at| at.div_euclid(1_000)),
        age_s: device.age_s(now),
        round_trip_us: device.round_trip_s.map(|span| span * 1e6),
        load_1min: drawn(device.load),
        cpu_share: drawn(device.cpu_share),
        memory_share: drawn(device.memory_share()),
        disk_share: drawn(device.disk_share()),
        in_octets_per_s: drawn(device.sum(|interface| interface.received)),
        out_octets_per_s: drawn(device.sum(|interface| interface.sent)),
        table_times_us: table_times_us(device),
        interfaces: device.interfaces.iter().map(interface_body).collect(),
        others: device.parts.iter().filter_map(|part| other_body(model, part)).collect(),
    }
}

fn other_body<'a>(model: &'a Model, part: &'a OtherPart) -> Option<OtherBody<'a>> {
    let other = model.others.get(part.other)?;
    let values = other.columns.iter().zip(&part.values);
    let values = values.filter_map(|(of, value)| Some((of.name.as_str(), drawn(*value)?)));
    Some(OtherBody {
        table: &other.table,
        part: &part.name,
        time_us: part.due.div_euclid(1_000),
        values: values.collect(),
    })
}

/// When the newest rows of a device were due; of its disks those of the fullest.
fn table_times_us(device: &Device) -> BTreeMap<&'static str, i64> {
    let times = [
        (load::NAME, device.load.map(|_| device.load_due())),
        (cpu::NAME, device.cpu_share.map(|_| device.cpu_due())),
        (memory::NAME, device.memory_share().map(|_| device.memory_due())),
        (storage::NAME, device.fullest_disk().map(|disk| disk.due)),
    ];
    let known = times.into_iter().filter_map(|(table, due)| Some((table, due?.div_euclid(1_000))));
    known.collect()
}

fn interface_body(interface: &Interface) -> InterfaceBody<'_> {
    InterfaceBody {
        interface: &interface.name,
        time_us: interface.due.div_euclid(1_000),
        in_octets_per_s: drawn(interface.received),
        out_octets_per_s: drawn(interface.sent),
        in_packets_per_s: drawn(interface.packets_received),
        out_packets_per_s: drawn(interface.packets_sent),
    }
}

/// A value with the digits that it has: values for drawing are of 24 bits.
#[expect(clippy::cast_possible_truncation, reason = "24 bits is what there is")]
fn drawn(value: Option<f64>) -> Option<f32> {
    value.map(|value| value as f32)
}
