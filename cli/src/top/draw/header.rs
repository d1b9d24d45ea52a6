//! The header: where the view is in time, and whether it can be trusted.

use meikyo_units::{Nanos, WallTime};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::{View, line, put_line};
use crate::top::amounts::{Unit, amount, clock, date_and_clock, percent};
use crate::top::screen::{Place, Screen};

/// Silent devices that are named.
const NAMED_MAX: usize = 3;

pub(super) fn draw(screen: &Screen, view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    put_line(buffer, line(area, 0), &place(screen, view));
    put_line(buffer, line(area, 1), &health(screen, view));
}

/// Where the view is in time.
fn place(screen: &Screen, view: &View<'_>) -> Line<'static> {
    let palette = view.palette;
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let now = WallTime::from_nanos(view.now);
    let mut spans = vec![
        Span::styled("meikyo ", bold),
        Span::styled(format!("{}  ", screen.name), palette.quiet()),
    ];
    match (screen.place, screen.behind) {
        (Place::Live { paused_at: None }, Some(behind)) => {
            let behind = amount(Some(behind.as_secs_f64()), Unit::Seconds);
            spans.push(Span::styled(format!("○ this view is {behind} behind"), palette.late()));
            spans.push(Span::raw(format!("  {}", clock(now))));
        }
        (Place::Live { paused_at: None }, None) => {
            spans.push(Span::styled("● live", palette.water()));
            spans.push(Span::raw(format!("  {}", clock(now))));
        }
        (Place::Live { paused_at: Some(at) }, _) => {
            spans.push(Span::styled("‖ paused", bold));
            spans.push(Span::raw(format!("  {}", clock(at))));
        }
        (Place::Past { playing, .. }, _) => {
            let words = if playing { "▸ replayed" } else { "‖ past" };
            spans.push(Span::styled(words, bold));
            spans.push(Span::raw(format!("  {}", date_and_clock(now))));
            if let Some((_, end)) = screen.times {
                let behind = end.since(now);
                let words = if behind == Nanos::ZERO {
                    "  at the end".to_owned()
                } else {
                    format!(
                        "  {} before the end",
                        amount(Some(behind.as_secs_f64()), Unit::Seconds)
                    )
                };
                spans.push(Span::styled(words, palette.quiet()));
            }
        }
    }
    if !matches!(screen.place, Place::Live { .. }) && screen.speed != 0 {
        spans.push(Span::raw(format!("  ×{}", 2f64.powi(screen.speed))));
    }
    let rate = view.health.intervals_per_s.map(|rate| format!("{rate:.1}"));
    let rate = rate.unwrap_or_else(|| "–".into());
    spans.push(Span::styled(format!("  {rate} intervals/s"), palette.quiet()));
    if screen.simulated {
        spans.push(Span::styled("  simulated", palette.late()));
    }
    if screen.reading {
        spans.push(Span::styled("  reading …", palette.faint()));
    }
    Line::from(spans)
}

/// On time, late, missing, silent, stalest: of the last 10 s.
fn health(screen: &Screen, view: &View<'_>) -> Line<'static> {
    let (palette, health) = (view.palette, view.health);
    let name = |ordinal: usize| screen.model.devices[ordinal].name.clone();
    let label = |text: &'static str| Span::styled(text, palette.faint());
    let marked = |count: u64, style: Style| {
        let style = if count > 0 { style } else { Style::new() };
        Span::styled(count.to_string(), style)
    };
    let silent = health.silent.len() as u64;
    let mut spans = vec![
        label("on time "),
        Span::raw(percent(health.ok, health.all)),
        label("  late "),
        marked(health.late, palette.late()),
        label("  missing "),
        marked(health.missing, palette.missing()),
        label("  silent "),
        marked(silent, palette.missing()),
    ];
    if silent > 0 {
        let named: Vec<_> = health.silent.iter().take(NAMED_MAX).map(|&of| name(of)).collect();
        let more = if health.silent.len() > NAMED_MAX { " …" } else { "" };
        spans.push(Span::styled(format!(" {}{more}", named.join(" ")), palette.missing()));
    }
    if let Some(stalest) = &health.stalest {
        spans.push(label("  stalest "));
        let age = amount(Some(stalest.age.as_secs_f64()), Unit::Seconds);
        spans.push(Span::raw(format!("{} {age}", stalest.device)));
    }
    if !screen.rules_set {
        spans.push(Span::styled("  no alert rules are set", palette.late()));
    }
    Line::from(spans)
}
