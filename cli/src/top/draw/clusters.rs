//! Clusters beside each other: a row for each, and below what is known of the selected one.

use meikyo_units::{Nanos, WallTime};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::{LEAST, cells, line, put, put_line};
use crate::top::amounts::{MISSING, Unit, amount, clock, percent};
use crate::top::clusters::{Cluster, Overview, Sender};
use crate::top::palette::Palette;

/// What is known is so old before that is said.
const OLD: Nanos = Nanos::from_secs(5);

/// Names are cut behind so many characters.
const NAME_WIDTH_MAX: u16 = 32;

/// Devices that are named in one line.
const NAMED_MAX: usize = 40;

/// A column: its heading, and how wide it is.
type Column = (&'static str, u16);

/// Behind the name; words stand left, numbers right.
const COLUMNS: [Column; 9] = [
    ("devices", 9),
    ("on time", 9),
    ("late", 8),
    ("missing", 9),
    ("silent", 8),
    ("oldest", 9),
    ("behind", 9),
    ("round trip", 12),
    ("gaps", 7),
];

/// Draws the whole view at an instant of the clock.
pub(in crate::top) fn draw(
    overview: &mut Overview,
    palette: Palette,
    now: WallTime,
    area: Rect,
    buffer: &mut Buffer,
) {
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text = format!("the terminal is smaller than {} x {}", LEAST.0, LEAST.1);
        return put(buffer, area, &text, palette.quiet());
    }
    let [top, middle, bottom] =
        Layout::vertical([Constraint::Length(3), Constraint::Fill(1), Constraint::Length(1)])
            .areas(area);
    header(overview, palette, now, top, buffer);
    footer(overview, palette, bottom, buffer);
    if overview.asked.is_none() {
        return put(buffer, middle, "reading …", palette.faint());
    }
    let facts = overview.selected_row().map(|row| facts(overview.shown()[row], palette));
    let facts = facts.unwrap_or_default();
    let below = match overview.detail {
        true => middle.height,
        false => cells(facts.len() + 1).min(middle.height * 2 / 5),
    };
    let [above, below] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(below)]).areas(middle);
    table(overview, palette, above, buffer);
    for (at, fact) in (0..).zip(&facts) {
        put_line(buffer, line(below, at), fact);
    }
}

fn header(overview: &Overview, palette: Palette, now: WallTime, area: Rect, buffer: &mut Buffer) {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut spans = vec![
        Span::styled("meikyo ", bold),
        Span::styled(format!("{}  ", overview.name), palette.quiet()),
    ];
    let age = overview.asked.map(|asked| now.since(asked));
    match age.filter(|age| *age >= OLD) {
        Some(age) => {
            let age = amount(Some(age.as_secs_f64()), Unit::Seconds);
            spans.push(Span::styled(format!("○ as of {age} ago"), palette.late()));
        }
        None => spans.push(Span::styled("● live", palette.water())),
    }
    spans.push(Span::raw(format!("  {}", clock(now))));
    put_line(buffer, line(area, 0), &Line::from(spans));
    let all = &overview.clusters;
    let sum = |of: fn(&Cluster) -> u64| all.iter().map(of).sum::<u64>();
    let label = |text: &'static str| Span::styled(text, palette.faint());
    let marked = |count: u64, style: Style| {
        Span::styled(count.to_string(), if count > 0 { style } else { Style::new() })
    };
    let spans = vec![
        label("clusters "),
        Span::raw(all.len().to_string()),
        label("  devices "),
        Span::raw(sum(|of| of.devices.len() as u64).to_string()),
        label("  on time "),
        Span::raw(percent(sum(|of| of.ok), sum(Cluster::all))),
        label("  late "),
        marked(sum(|of| of.late), palette.late()),
        label("  missing "),
        marked(sum(|of| of.missing), palette.missing()),
        label("  silent "),
        marked(sum(|of| of.silent.len() as u64), palette.missing()),
    ];
    put_line(buffer, line(area, 1), &Line::from(spans));
}

fn footer(overview: &Overview, palette: Palette, area: Rect, buffer: &mut Buffer) {
    if let Some(trouble) = &overview.trouble {
        return put(buffer, area, trouble, palette.missing());
    }
    let mut spans = Vec::new();
    let keys: &[(&str, &str)] = if overview.typing {
        &[("Enter", " keeps it  "), ("Esc", " clears it  ")]
    } else {
        &[
            ("q", " quit  "),
            ("↑↓", " select  "),
            ("Enter", " open  "),
            ("d", " details  "),
            ("f", " find clusters and devices  "),
        ]
    };
    for (key, words) in keys {
        spans.push(Span::raw(*key));
        spans.push(Span::styled(*words, palette.faint()));
    }
    if overview.typing || !overview.find.is_empty() {
        spans.push(Span::styled("find ", palette.faint()));
        spans.push(Span::raw(overview.find.clone()));
    }
    if overview.typing {
        spans.push(Span::styled("▏", palette.water()));
    }
    put_line(buffer, area, &Line::from(spans));
}

fn table(overview: &mut Overview, palette: Palette, area: Rect, buffer: &mut Buffer) {
    if area.height < 2 {
        return;
    }
    overview.keep_in_sight(usize::from(area.height - 1));
    let shown = overview.shown();
    if shown.is_empty() {
        let text = match overview.find.as_str() {
            "" => "No cluster yet. A collector brings one: meikyo measure --to URL --spool DIR"
                .to_owned(),
            find => format!("no cluster and no device is called `{find}`; Esc clears"),
        };
        return put(buffer, area, &text, palette.quiet());
    }
    let longest = shown.iter().map(|cluster| cluster.name.chars().count()).max();
    let names = cells(longest.unwrap_or(0)).clamp(8, NAME_WIDTH_MAX) + 1;
    let faint = palette.faint();
    let headings = COLUMNS.map(|(heading, _)| (heading.to_owned(), faint));
    row(
        line(area, 0),
        names,
        ("cluster".into(), faint),
        headings,
        ("sender".into(), faint),
        buffer,
    );
    for (at, cluster) in (1..).zip(shown.iter().skip(overview.scroll)) {
        let place = line(area, at);
        if place.height == 0 {
            break;
        }
        let name = if cluster.running { Style::new() } else { faint };
        let sender = sender_words(cluster, palette);
        row(place, names, (cluster.name.clone(), name), values(cluster, palette), sender, buffer);
        if overview.selected.as_deref() == Some(&*cluster.name) {
            buffer.set_style(place, palette.selected());
        }
    }
}

type Cell = (String, Style);

/// One line of the table; columns that do not fit are left out.
fn row(area: Rect, names: u16, name: Cell, values: [Cell; 9], last: Cell, buffer: &mut Buffer) {
    let mut x = area.x;
    let mut place = |width: u16| {
        let left = area.right().saturating_sub(x);
        let place = Rect { x, width: width.min(left), ..area };
        x += place.width;
        (place, left >= width)
    };
    let text: String = name.0.chars().take(usize::from(names - 1)).collect();
    put(buffer, place(names).0, &text, name.1);
    for ((_, width), (text, style)) in COLUMNS.into_iter().zip(values) {
        let (place, fits) = place(width);
        if fits {
            put(buffer, place, &format!("{text:>room$}", room = usize::from(width - 1)), style);
        }
    }
    let (place, _) = place(u16::MAX);
    put(
        buffer,
        Rect { x: place.x + 1, width: place.width.saturating_sub(1), ..place },
        &last.0,
        last.1,
    );
}

fn span(value: Option<Nanos>) -> String {
    amount(value.map(Nanos::as_secs_f64), Unit::Seconds)
}

fn values(cluster: &Cluster, palette: Palette) -> [Cell; 9] {
    let plain = Style::new();
    let if_any =
        |count: u64, style: Style| (count.to_string(), if count > 0 { style } else { plain });
    let active = cluster.active();
    let lost: u64 = cluster.senders.iter().map(|sender| sender.gaps).sum();
    [
        (cluster.devices.len().to_string(), plain),
        (percent(cluster.ok, cluster.all()), plain),
        if_any(cluster.late, palette.late()),
        if_any(cluster.missing, palette.missing()),
        if_any(cluster.silent.len() as u64, palette.missing()),
        (span(cluster.oldest_value), plain),
        (span(active.and_then(|sender| sender.lag)), plain),
        (span(active.and_then(|sender| sender.round_trip)), plain),
        if_any(lost, palette.missing()),
    ]
}

/// Who sends a cluster, in a few words.
fn sender_words(cluster: &Cluster, palette: Palette) -> Cell {
    if let Some(trouble) = &cluster.trouble {
        return (trouble.clone(), palette.missing());
    }
    let Some(active) = cluster.active() else { return (MISSING.into(), palette.faint()) };
    let others = match cluster.senders.len() - 1 {
        0 => String::new(),
        others => format!(" +{others}"),
    };
    match active.connected {
        Some(false) => (format!("{}{others} not connected", active.name), palette.missing()),
        _ => (format!("{}{others}", active.name), palette.quiet()),
    }
}

/// What is known of a cluster, line by line.
fn facts<'a>(cluster: &Cluster, palette: Palette) -> Vec<Line<'a>> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut lines = vec![Line::default(), Line::styled(cluster.name.clone(), bold)];
    lines.extend(cluster.senders.iter().map(|sender| sender_line(sender, palette)));
    let mut named = |what: &'static str, names: &[String], style: Style| {
        if names.is_empty() {
            return;
        }
        let more = match names.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let some: Vec<_> = names.iter().take(NAMED_MAX).map(String::as_str).collect();
        lines.push(Line::from(vec![
            Span::styled(what, palette.faint()),
            Span::styled(some.join(" ") + &more, style),
        ]));
    };
    named("silent ", &cluster.silent, palette.missing());
    named("devices ", &cluster.devices, palette.quiet());
    lines
}

fn sender_line<'a>(sender: &Sender, palette: Palette) -> Line<'a> {
    let state = match (sender.connected, sender.active) {
        (Some(false), _) => ("not connected", palette.missing()),
        (_, true) => ("active", palette.water()),
        (_, false) => ("stands by", palette.quiet()),
    };
    let label = |text: &'static str| Span::styled(text, palette.faint());
    let mut spans = vec![
        Span::raw(format!("{}  ", sender.name)),
        Span::styled(state.0, state.1),
        label("  behind "),
        Span::raw(span(sender.lag)),
        label("  round trip "),
        Span::raw(span(sender.round_trip)),
        label("  gaps "),
        Span::raw(sender.gaps.to_string()),
    ];
    if sender.missing_rows > 0 {
        let rows = format!("  {} rows lost", sender.missing_rows);
        spans.push(Span::styled(rows, palette.missing()));
    }
    Line::from(spans)
}
