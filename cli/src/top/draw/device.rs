//! Everything about one device: how it answers, its interfaces, disks and memory.

use meikyo_live::Other;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::{View, cells, line, put, put_heading, put_line, table};
use crate::top::amounts::{Unit, amount, behind, number, octets};
use crate::top::metric::Metric;
use crate::top::model::{Device, Interface, OtherPart};
use crate::top::screen::Screen;

/// The lines that a device needs.
pub(super) fn height(device: &Device) -> u16 {
    cells(device.interfaces.len() + device.disks.len() + device.parts.len()).saturating_add(6)
}

pub(super) fn draw(
    screen: &Screen,
    selected: usize,
    view: &View<'_>,
    area: Rect,
    buffer: &mut Buffer,
) {
    let (palette, device) = (view.palette, &screen.model.devices[selected]);
    let (state, style) = table::state(device, view);
    let facts = [
        Span::styled(format!("  {} {}  ", device.role, device.group), palette.faint()),
        Span::styled(state, style),
    ];
    put_heading(buffer, area, &device.name, facts);
    let mut facts = Vec::new();
    for metric in [Metric::Age, Metric::RoundTrip, Metric::Load, Metric::Cpu, Metric::Memory] {
        let Some(value) = metric.value_of(device, view.now) else { continue };
        facts.push(Span::styled(format!("{} ", metric.words()), palette.faint()));
        let age = behind(metric.age_of(device, view.now));
        facts.push(Span::raw(format!("{}{age}  ", amount(Some(value), metric.unit()))));
    }
    if device.memory.total.is_some() {
        facts.push(Span::styled("of ", palette.faint()));
        facts.push(Span::raw(octets(device.memory.total)));
    }
    put_line(buffer, line(area, 1), &Line::from(facts));
    let headings = ["interface", "link", "received", "sent", "packets in", "packets out", "errors"];
    put(buffer, line(area, 3), &columns(headings.map(str::to_owned)), palette.faint());
    let mut at = 4;
    for interface in &device.interfaces {
        let style = if interface.up == Some(false) { palette.missing() } else { Style::new() };
        let age = behind(device.age_behind_answers(interface.due, view.now));
        put(buffer, line(area, at), &(columns(texts(interface)) + &age), style);
        at += 1;
    }
    for disk in &device.disks {
        let (used, total) = (octets(disk.used), octets(disk.total));
        let share = amount(disk.share(), Unit::Share);
        let age = behind(device.age_behind_answers(disk.due, view.now));
        let text = format!("disk {:<13} {used} of {total}, {share} used{age}", disk.path);
        put(buffer, line(area, at), &text, Style::new());
        at += 1;
    }
    for part in &device.parts {
        let Some(other) = screen.model.others.get(part.other) else { continue };
        let age = behind(device.age_behind_answers(part.due, view.now));
        put(buffer, line(area, at), &(of_part(other, part) + &age), Style::new());
        at += 1;
    }
}

/// A series of a table that is shown as its declaration says: `sensor fan 1  fan speed 1200 rpm`.
fn of_part(other: &Other, part: &OtherPart) -> String {
    let mut text = format!("{} {:<13}", other.noun, part.name);
    for (column, value) in other.columns.iter().zip(&part.values) {
        if value.is_some() {
            text.push_str(&format!(" {} {}", column.words, number(*value, &column.unit)));
        }
    }
    text
}

fn texts(interface: &Interface) -> [String; 7] {
    let link = interface.up.map_or("–", |up| if up { "up" } else { "down" });
    [
        interface.name.clone(),
        link.to_owned(),
        amount(interface.received, Unit::OctetsPerSecond),
        amount(interface.sent, Unit::OctetsPerSecond),
        amount(interface.packets_received, Unit::PacketsPerSecond),
        amount(interface.packets_sent, Unit::PacketsPerSecond),
        amount(interface.trouble_per_s(), Unit::PerSecond),
    ]
}

fn columns([name, link, received, sent, into, out, errors]: [String; 7]) -> String {
    format!("{name:<14} {link:<4} {received:>12} {sent:>12} {into:>12} {out:>12} {errors:>10}")
}
