//! The view as cells of a terminal: health, grid, table, charts, events, and what lies over them.
//!
//! No boxes in boxes: headings in faint ink and empty lines part the view.

mod charts;
pub(super) mod clusters;
mod device;
mod events;
mod grid;
mod header;
mod overlay;
mod table;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use meikyo_console::printable;
use meikyo_units::WallTime;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::model::Health;
use super::palette::Palette;
use super::screen::{Overlay, Screen, Targets};

/// The least that something can be shown on.
const LEAST: (u16, u16) = (40, 8);
/// From this width on charts stand beside the table.
const BESIDE: u16 = 100;

/// What all parts need.
#[derive(Debug)]
struct View<'a> {
    palette: Palette,
    /// The instant that is shown, ns since the epoch.
    now: i64,
    health: &'a Health,
}

/// Draws the whole view at an instant of the clock, and notes where things are.
pub(super) fn draw(
    screen: &mut Screen,
    palette: Palette,
    clock: WallTime,
    area: Rect,
    buffer: &mut Buffer,
) {
    screen.targets = Targets::default();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text = format!("the terminal is smaller than {} x {}", LEAST.0, LEAST.1);
        put(buffer, area, &text, palette.quiet());
        return;
    }
    let now = screen.instant(clock).as_nanos();
    let health = screen.model.health(now);
    let view = View { palette, now, health: &health };
    let [top, middle, bottom] =
        Layout::vertical([Constraint::Length(3), Constraint::Fill(1), Constraint::Length(1)])
            .areas(area);
    header::draw(screen, &view, top, buffer);
    draw_middle(screen, &view, middle, buffer);
    overlay::footer(screen, &view, bottom, buffer);
    match screen.overlay {
        Overlay::Help => overlay::help(palette, area, buffer),
        Overlay::Menu(at) => overlay::menu(palette, at, area, buffer),
        Overlay::None | Overlay::Filter => {}
    }
}

fn draw_middle(screen: &mut Screen, view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    if screen.model.devices.is_empty() {
        let text = "No device yet. A measurement fills this: meikyo measure --cluster cluster.toml";
        return put(buffer, area, text, view.palette.quiet());
    }
    let events = match area.height {
        _ if !screen.parts.events => 0,
        0..=15 => 0,
        // Heading, some events, an empty line.
        16..=30 => cells(screen.model.events.len()).clamp(1, 3) + 2,
        _ => cells(screen.model.events.len()).clamp(1, 6) + 2,
    };
    let [main, below] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(events)]).areas(area);
    events::draw(screen, view, below, buffer);
    if screen.detail
        && let Some(selected) = screen.selected
    {
        let facts = device::height(&screen.model.devices[selected]).min(main.height * 2 / 3);
        let [above, below] =
            Layout::vertical([Constraint::Length(facts), Constraint::Fill(1)]).areas(main);
        device::draw(screen, selected, view, above, buffer);
        return charts::draw(screen, selected, view, below, buffer);
    }
    let wanted = if screen.parts.grid { grid::height(screen, main.width) } else { 0 };
    let others = screen.parts.table || screen.parts.charts;
    let most = if others { main.height * 2 / 5 } else { main.height };
    let [above, rest] =
        Layout::vertical([Constraint::Length(wanted.min(most)), Constraint::Fill(1)]).areas(main);
    grid::draw(screen, view, above, buffer);
    let beside = screen.parts.charts && (rest.width >= BESIDE || !screen.parts.table);
    let share = match (screen.parts.table, beside) {
        (true, true) => rest.width * 3 / 5,
        (true, false) => rest.width,
        (false, _) => 0,
    };
    let [left, right] =
        Layout::horizontal([Constraint::Length(share), Constraint::Fill(1)]).areas(rest);
    if screen.parts.table {
        table::draw(screen, view, left, buffer);
    }
    if beside && let Some(selected) = screen.selected {
        let gap = if screen.parts.table { 2 } else { 0 };
        let right = Rect { x: right.x + gap, width: right.width.saturating_sub(gap), ..right };
        charts::draw(screen, selected, view, right, buffer);
    }
}

/// Puts a text at the begin of an area's first line.
fn put(buffer: &mut Buffer, area: Rect, text: &str, style: Style) {
    put_line(buffer, area, &Line::styled(text, style));
}

/// Puts the name of what an area shows on its first line, and facts behind it.
fn put_heading<'a>(
    buffer: &mut Buffer,
    area: Rect,
    name: &'a str,
    facts: impl IntoIterator<Item = Span<'a>>,
) {
    let name = Span::styled(name, Style::new().add_modifier(Modifier::BOLD));
    let spans = std::iter::once(name).chain(facts);
    put_line(buffer, line(area, 0), &Line::from_iter(spans));
}

/// The line with what would steer the terminal shown: the buffer would leave it out without a word.
fn fit<'a>(line: &'a Line<'_>) -> Cow<'a, Line<'a>> {
    let is_fit = |span: &Span<'_>| matches!(printable::line(&span.content), Cow::Borrowed(_));
    if line.spans.iter().all(is_fit) {
        return Cow::Borrowed(line);
    }
    let shown = |span: &'a Span<'_>| Span::styled(printable::line(&span.content), span.style);
    Cow::Owned(Line { spans: line.spans.iter().map(shown).collect(), ..*line })
}

/// Puts spans at the begin of an area's first line.
fn put_line(buffer: &mut Buffer, area: Rect, line: &Line<'_>) {
    if area.height > 0 {
        buffer.set_line(area.x, area.y, &fit(line), area.width);
    }
}

/// The line of an area at some distance from its top; of no height beyond its end.
fn line(area: Rect, at: u16) -> Rect {
    let below = at >= area.height;
    Rect { y: area.y.saturating_add(at), height: u16::from(!below), ..area }
}

/// A number of lines or columns; saturates at what a terminal can have.
fn cells(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}
