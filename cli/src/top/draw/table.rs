//! The table of devices.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use meikyo_snmp::tables::State;

use super::{View, cells, line, put};
use crate::top::amounts::{MISSING, amount, behind};
use crate::top::model::Device;
use crate::top::order::Column;
use crate::top::screen::Screen;

/// Columns of the terminal that each column of the table gets, in the order of [`Column::ALL`];
/// names get what they need.
const WIDTHS: [u16; 10] = [12, 8, 13, 13, 7, 8, 9, 8, 8, 12];
const NAME_WIDTH_MAX: u16 = 24;
/// What a column gets more whose values have had their age beside them: ` (99 min)`.
const AGE_WIDTH: u16 = 9;

pub(super) fn draw(screen: &mut Screen, view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    if area.height < 2 {
        return;
    }
    let longest = screen.model.devices.iter().map(|device| device.name.chars().count()).max();
    let names = cells(longest.unwrap_or(0)).clamp(WIDTHS[0], NAME_WIDTH_MAX) + 1;
    let columns = placed(screen, view, names, area);
    heading(screen, view, &columns, buffer, area);
    let groups = screen.order.grouped;
    // Headings of groups take rows, too: at most half of them.
    let room = usize::from(area.height - 1);
    let headings = if groups { headings(screen).min(room / 2) } else { 0 };
    screen.targets.table_rows = room - headings;
    screen.keep_in_sight();
    let rows: Vec<usize> = screen.rows.iter().skip(screen.scroll).copied().collect();
    let mut at = 1;
    let mut group: Option<String> = None;
    for ordinal in rows {
        let device = &screen.model.devices[ordinal];
        if groups && group.as_ref() != Some(&device.group) {
            let name = if device.group.is_empty() { "no group" } else { &device.group };
            put(buffer, line(area, at), name, view.palette.faint());
            at += 1;
            group = Some(device.group.clone());
        }
        let row = line(area, at);
        if row.height == 0 {
            break;
        }
        at += 1;
        draw_row(device, view, &columns, row, buffer);
        if screen.selected == Some(ordinal) {
            buffer.set_style(row, view.palette.selected());
        }
        screen.targets.devices.push((row, ordinal));
    }
    if screen.rows.is_empty() {
        let text = format!("no device matches `{}`; Esc clears", screen.order.filter);
        put(buffer, line(area, 1), &text, view.palette.quiet());
    }
}

/// How many groups there are.
fn headings(screen: &Screen) -> usize {
    let groups = screen.rows.iter().map(|&row| screen.model.devices[row].group.as_str());
    groups.collect::<std::collections::BTreeSet<_>>().len()
}

/// The columns that fit, and where; those of which no device has a value are left out.
fn placed(screen: &mut Screen, view: &View<'_>, names: u16, area: Rect) -> Vec<(Column, Rect)> {
    let mut x = area.x;
    let mut placed = Vec::new();
    for (column, width) in Column::ALL.into_iter().zip(WIDTHS) {
        if let Column::Metric(metric) = column
            && column != screen.order.column
            && screen.model.devices.iter().all(|device| metric.value_of(device, view.now).is_none())
        {
            continue;
        }
        let width = match column {
            Column::Name => names,
            Column::State => width,
            Column::Metric(metric) => {
                let mut devices = screen.model.devices.iter();
                if devices.any(|device| metric.age_of(device, view.now).is_some()) {
                    screen.aged.insert(metric);
                }
                width + if screen.aged.contains(&metric) { AGE_WIDTH } else { 0 }
            }
        };
        if x + width > area.right() {
            break;
        }
        placed.push((column, Rect { x, width, height: 1, ..area }));
        x += width;
    }
    placed
}

fn heading(
    screen: &mut Screen,
    view: &View<'_>,
    columns: &[(Column, Rect)],
    buffer: &mut Buffer,
    area: Rect,
) {
    for &(column, place) in columns {
        let chosen = column == screen.order.column;
        let down = screen.order.reversed == (column == Column::Name);
        let arrow = if !chosen {
            ""
        } else if down {
            "▾"
        } else {
            "▴"
        };
        let text = format!("{}{arrow}", column.words());
        let style =
            if chosen { Style::new().add_modifier(Modifier::BOLD) } else { view.palette.faint() };
        put_cell(buffer, column, Rect { y: area.y, ..place }, &text, style);
        screen.targets.columns.push((Rect { y: area.y, ..place }, column));
    }
}

fn draw_row(
    device: &Device,
    view: &View<'_>,
    columns: &[(Column, Rect)],
    row: Rect,
    buffer: &mut Buffer,
) {
    for &(column, place) in columns {
        let place = Rect { y: row.y, ..place };
        let (text, style) = match column {
            Column::Name => (device.name.clone(), Style::new()),
            Column::State => state(device, view),
            Column::Metric(metric) => {
                let value = metric.value_of(device, view.now);
                let age = metric.age_of(device, view.now);
                let is_faint = value.is_none() || age.is_some();
                let style = if is_faint { view.palette.faint() } else { Style::new() };
                (amount(value, metric.unit()) + &behind(age), style)
            }
        };
        put_cell(buffer, column, place, &text, style);
    }
}

/// The word for how the newest interval ended.
pub(super) fn state(device: &Device, view: &View<'_>) -> (String, Style) {
    let palette = view.palette;
    match device.state {
        None => (MISSING.into(), palette.faint()),
        Some(State::Ok) => ("ok".into(), palette.quiet()),
        Some(state @ State::Late) => (state.word().into(), palette.late()),
        Some(state @ State::Skipped) => (state.word().into(), palette.quiet()),
        Some(state) => (state.word().into(), palette.missing()),
    }
}

/// Words stand left, numbers right.
fn put_cell(buffer: &mut Buffer, column: Column, place: Rect, text: &str, style: Style) {
    let room = usize::from(place.width.saturating_sub(1));
    let text: String = text.chars().take(room).collect();
    let text = match column {
        Column::Name | Column::State => text,
        Column::Metric(_) => format!("{text:>room$}"),
    };
    put(buffer, place, &text, style);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::amounts::Unit;

    /// The greatest value of a quantity that machines have.
    const fn greatest(unit: Unit) -> f64 {
        match unit {
            Unit::OctetsPerSecond | Unit::PacketsPerSecond | Unit::PerSecond => 1e12,
            Unit::Tasks => 999.0,
            Unit::Share => 1.0,
            Unit::Seconds => 1e6,
        }
    }

    #[test]
    fn no_value_and_no_heading_is_wider_than_its_column() {
        for (column, width) in Column::ALL.into_iter().zip(WIDTHS) {
            let Column::Metric(metric) = column else { continue };
            let room = usize::from(width - 1);
            let heading = column.words().chars().count() + 1;
            assert!(heading <= room, "{}", column.words());
            for exponent in -8..=12 {
                for first in [1.0, 1.25, 9.994, 9.996] {
                    let value = first * 10_f64.powi(exponent);
                    if value <= greatest(metric.unit()) {
                        let text = amount(Some(value), metric.unit());
                        let cells = text.chars().count();
                        assert!(cells <= room, "`{text}` of {}", column.words());
                    }
                }
            }
        }
    }
}
