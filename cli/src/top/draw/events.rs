//! What happened, newest first.

use meikyo_units::WallTime;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{View, cells, line, put, put_line};
use crate::top::amounts::clock;
use crate::top::screen::Screen;

pub(super) fn draw(screen: &Screen, view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    if area.height < 2 {
        return;
    }
    let palette = view.palette;
    let events = &screen.model.events;
    let heading = if events.is_empty() { "events: none" } else { "events" };
    put(buffer, line(area, 0), heading, palette.faint());
    for (at, event) in events.iter().rev().take(usize::from(area.height - 2)).enumerate() {
        let kind = event.event.replace('_', " ");
        let style = match event.event.as_str() {
            "alert_raised" => palette.missing(),
            _ => palette.quiet(),
        };
        let time = clock(WallTime::from_nanos(event.time));
        let device = event.device.as_deref().unwrap_or("collector");
        let mut spans = vec![
            Span::styled(format!("{time}  "), palette.faint()),
            Span::raw(format!("{device}  ")),
            Span::styled(kind, style),
        ];
        for text in [&event.object, &event.text].into_iter().flatten() {
            spans.push(Span::styled(format!("  {text}"), palette.quiet()));
        }
        if let Some(count) = event.count {
            spans.push(Span::styled(format!("  {count}"), palette.quiet()));
        }
        put_line(buffer, line(area, cells(at + 1)), &Line::from(spans));
    }
}
