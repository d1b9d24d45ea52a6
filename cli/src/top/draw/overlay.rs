//! What lies over the view, and the line below it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Widget as _};

use super::{View, cells, line, put, put_line};
use crate::top::amounts::{Unit, amount};
use crate::top::metric::Metric;
use crate::top::palette::Palette;
use crate::top::screen::{HELP, Overlay, Screen};

/// The keys that are always in sight, the filter while it is typed, or what went wrong.
pub(super) fn footer(screen: &Screen, view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let palette = view.palette;
    if let Some(trouble) = &screen.trouble {
        return put(buffer, area, trouble, palette.missing());
    }
    if screen.overlay == Overlay::Filter {
        let spans = [
            Span::styled("filter ", palette.faint()),
            Span::raw(screen.order.filter.clone()),
            Span::styled("▏", palette.water()),
            Span::styled("  Enter keeps it, Esc clears it", palette.faint()),
        ];
        return put_line(buffer, area, &Line::from(spans.to_vec()));
    }
    let every = amount(Some(screen.every.as_secs_f64()), Unit::Seconds);
    let keys = [
        ("?", " help  "),
        ("q", " quit  "),
        ("↑↓", " select  "),
        ("←→", " sort  "),
        ("Enter", " detail  "),
        ("f", " filter  "),
        ("m", " metric  "),
        ("Space", " pause  "),
        ("[ ]", " back, forward  "),
    ];
    let mut spans = Vec::new();
    for (key, words) in keys {
        spans.push(Span::raw(key));
        spans.push(Span::styled(words, palette.faint()));
    }
    spans.push(Span::styled(format!("every {every}"), palette.faint()));
    if screen.is_of_several {
        spans.push(Span::raw("  Esc"));
        spans.push(Span::styled(" all clusters", palette.faint()));
    }
    if !screen.order.filter.is_empty() {
        spans.push(Span::styled("  filter ", palette.faint()));
        spans.push(Span::raw(screen.order.filter.clone()));
    }
    put_line(buffer, area, &Line::from(spans));
}

/// All keys.
pub(super) fn help(palette: Palette, area: Rect, buffer: &mut Buffer) {
    let widest = HELP.iter().map(|(_, words)| words.chars().count()).max().unwrap_or(0);
    let inner = sheet("keys", palette, area, (cells(widest) + 14, cells(HELP.len())), buffer);
    for (at, (keys, words)) in HELP.iter().enumerate() {
        let spans = [Span::raw(format!("{keys:<12}")), Span::styled(*words, palette.quiet())];
        put_line(buffer, line(inner, cells(at)), &Line::from(spans.to_vec()));
    }
}

/// The list of metrics.
pub(super) fn menu(palette: Palette, pointed: usize, area: Rect, buffer: &mut Buffer) {
    let inner = sheet("colour by", palette, area, (24, cells(Metric::ALL.len())), buffer);
    for (at, metric) in Metric::ALL.into_iter().enumerate() {
        let row = line(inner, cells(at));
        let mark = if at == pointed { "› " } else { "  " };
        put(buffer, row, &format!("{mark}{}", metric.words()), Style::new());
        if at == pointed && row.height > 0 {
            buffer.set_style(row, palette.selected().add_modifier(Modifier::BOLD));
        }
    }
}

/// An empty sheet in the middle of an area; what is inside its border.
fn sheet(
    title: &'static str,
    palette: Palette,
    area: Rect,
    (width, height): (u16, u16),
    buffer: &mut Buffer,
) -> Rect {
    let (width, height) = ((width + 4).min(area.width), (height + 2).min(area.height));
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    Clear.render(place, buffer);
    let block = Block::bordered().title(format!(" {title} ")).border_style(palette.faint());
    let inner = block.inner(place);
    block.render(place, buffer);
    Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner }
}
