//! The last minute of the selected device: load, and each interface with what it received above
//! the line and what it sent below, in braille dots.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line as TextLine, Span};

use super::{View, cells, line, put, put_heading, put_line};
use crate::top::amounts::{Unit, amount};
use crate::top::history::Line;
use crate::top::metric::Metric;
use crate::top::screen::Screen;

/// Lines of half a chart.
const HALF: u16 = 2;
/// Columns of the terminal that a column of charts takes at least.
const COLUMN_WIDTH: u16 = 60;
/// Lines of the chart of the load.
const LOAD: u16 = 3;

/// Draws them below each other, and then in further columns of the area.
pub(super) fn draw(
    screen: &Screen,
    selected: usize,
    view: &View<'_>,
    area: Rect,
    buffer: &mut Buffer,
) {
    let (palette, device) = (view.palette, &screen.model.devices[selected]);
    put_heading(buffer, area, &device.name, [Span::styled("  the last 60 s", palette.faint())]);
    let columns = (area.width / COLUMN_WIDTH).max(1);
    let width = (area.width / columns).saturating_sub(u16::from(columns > 1) * 2);
    // The last line says what does not fit.
    let room = area.height.saturating_sub(2);
    let (mut column, mut at) = (0, 0);
    let mut place = |height: u16| {
        if at + height > room {
            (column, at) = (column + 1, 0);
        }
        if column == columns || height > room {
            return None;
        }
        let x = area.x + column * (area.width / columns);
        let place = Rect { x, y: area.y + 1 + at, width, height };
        at += height + 1;
        Some(place)
    };
    if screen.model.history.has(selected, Line::Load)
        && let Some(place) = place(1 + LOAD)
    {
        draw_load(screen, selected, view, place, buffer);
    }
    let many = device.interfaces.len();
    for number in 0..many {
        let Some(place) = place(1 + 2 * HALF) else {
            let text = format!("{} more do not fit", many - number);
            return put(buffer, line(area, area.height - 1), &text, palette.faint());
        };
        draw_interface(screen, (selected, number), view, place, buffer);
    }
}

fn draw_load(screen: &Screen, device: usize, view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let palette = view.palette;
    let columns = columns(screen, device, Line::Load, view, area.width).unwrap_or_default();
    let scale = Metric::Load.scale(greatest(&columns));
    let load = amount(screen.model.devices[device].load, Unit::Tasks);
    let text = [Span::raw(format!("load {load}")), scale_span(scale, Unit::Tasks, view)];
    put_line(buffer, line(area, 0), &TextLine::from(text.to_vec()));
    paint(&columns, scale, false, part(area, 1, LOAD), palette.water(), buffer);
}

fn draw_interface(
    screen: &Screen,
    (device, number): (usize, usize),
    view: &View<'_>,
    area: Rect,
    buffer: &mut Buffer,
) {
    let palette = view.palette;
    let interface = &screen.model.devices[device].interfaces[number];
    let of = |line: Line| columns(screen, device, line, view, area.width).unwrap_or_default();
    let (received, sent) = (of(Line::Received(number)), of(Line::Sent(number)));
    let scale = Metric::Sent
        .scale(greatest(&received).into_iter().chain(greatest(&sent)).max_by(f64::total_cmp));
    let rate = |value: Option<f64>| amount(value, Unit::OctetsPerSecond);
    let text = [
        Span::raw(format!("{}  ", interface.name)),
        Span::styled("▴ ", palette.water()),
        Span::raw(format!("received {}  ", rate(interface.received))),
        Span::styled("▾ ", palette.wisteria()),
        Span::raw(format!("sent {}", rate(interface.sent))),
        scale_span(scale, Unit::OctetsPerSecond, view),
    ];
    put_line(buffer, line(area, 0), &TextLine::from(text.to_vec()));
    paint(&received, scale, false, part(area, 1, HALF), palette.water(), buffer);
    paint(&sent, scale, true, part(area, 1 + HALF, HALF), palette.wisteria(), buffer);
}

/// What the height of a chart stands for.
fn scale_span(scale: f64, unit: Unit, view: &View<'_>) -> Span<'static> {
    Span::styled(format!("   height {}", amount(Some(scale), unit)), view.palette.faint())
}

/// The greatest value that is positive.
fn greatest(columns: &[Option<f64>]) -> Option<f64> {
    columns.iter().flatten().copied().filter(|value| *value > 0.0).max_by(f64::total_cmp)
}

fn columns(
    screen: &Screen,
    device: usize,
    line: Line,
    view: &View<'_>,
    width: u16,
) -> Option<Vec<Option<f64>>> {
    screen.model.history.columns(device, line, view.now, usize::from(width) * 2)
}

/// Some lines of an area.
fn part(area: Rect, at: u16, height: u16) -> Rect {
    let y = area.y.saturating_add(at).min(area.bottom());
    Rect { y, height: height.min(area.bottom() - y), ..area }
}

fn paint(
    columns: &[Option<f64>],
    scale: f64,
    down: bool,
    area: Rect,
    style: Style,
    buffer: &mut Buffer,
) {
    for (at, text) in braille(columns, scale, down, area.height).iter().enumerate() {
        put(buffer, line(area, cells(at)), text, style);
    }
}

/// A line chart of braille signs, each 2 dots wide and 4 high (Unicode, U+2800 to U+28FF): two
/// values a sign. The line goes up from the bottom, or down from the top; where a value is
/// missing it is broken.
fn braille(columns: &[Option<f64>], scale: f64, down: bool, height: u16) -> Vec<String> {
    // Bits of the dots of a sign, by column and then from top to bottom.
    const DOTS: [[u32; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
    let dots = usize::from(height) * 4;
    if dots == 0 {
        return Vec::new();
    }
    let mut signs = vec![vec![0_u32; columns.len().div_ceil(2)]; usize::from(height)];
    let mut before: Option<usize> = None;
    for (x, value) in columns.iter().enumerate() {
        let dot = value.map(|value| nearest_dot(value / scale, dots));
        if let Some(dot) = dot {
            let from = before.unwrap_or(dot);
            // From the dot beside the one before, so that steps stay thin.
            let range =
                if from < dot { from + 1..=dot } else { dot..=from.saturating_sub(1).max(dot) };
            for dot in range {
                let y = if down { dot } else { dots - 1 - dot };
                signs[y / 4][x / 2] |= DOTS[x % 2][y % 4];
            }
        }
        before = dot;
    }
    let text = |row: &Vec<u32>| -> String {
        let sign = |bits: &u32| match bits {
            0 => ' ',
            bits => char::from_u32(0x2800 + bits).unwrap_or(' '),
        };
        row.iter().map(sign).collect()
    };
    signs.iter().map(text).collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a place among some dozen dots"
)]
fn nearest_dot(part: f64, dots: usize) -> usize {
    let last = dots.saturating_sub(1);
    ((part.clamp(0.0, 1.0) * last as f64).round() as usize).min(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_rises_with_its_values_and_breaks_where_they_are_missing() {
        let rising: Vec<_> = (0..8).map(|at| Some(f64::from(at))).collect();
        assert_eq!(braille(&rising, 7.0, false, 2), ["  ⡠⠊", "⡠⠊  "]);
        assert_eq!(braille(&rising, 7.0, true, 2), ["⠑⢄  ", "  ⠑⢄"]);
        let broken = [Some(0.0), Some(0.0), None, None, Some(9.0), None];
        assert_eq!(braille(&broken, 7.0, false, 1), ["⣀ ⠁"]);
    }

    #[test]
    fn a_jump_is_drawn_as_an_upright() {
        let jump = [Some(0.0), Some(3.0), Some(0.0), Some(0.0)];
        assert_eq!(braille(&jump, 3.0, false, 1), ["⡸⣆"]);
        assert_eq!(braille(&[], 1.0, false, 2), ["", ""]);
    }
}
