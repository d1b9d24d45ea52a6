//! The grid: a cell a device, by group, in the colour of the metric.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use meikyo_snmp::tables::State;

use super::{View, cells, line, put, put_line};
use crate::top::amounts::amount;
use crate::top::order::passes;
use crate::top::palette::{Depth, HEIGHTS, height as sign};
use crate::top::screen::Screen;

/// Widest name of a group that is written out.
const GROUP_WIDTH_MAX: usize = 12;
/// Cells that a group may have before they are drawn smaller.
const WIDE_MAX: usize = 300;

/// How cells are laid out.
#[derive(Debug, Clone, Copy)]
struct Shape {
    /// Columns of the groups' names.
    names: u16,
    /// Columns of a cell, the gap not counted.
    cell: u16,
    gap: u16,
    a_line: usize,
}

/// The devices by group, groups in the order in which they appear.
fn groups(screen: &Screen) -> Vec<(&str, Vec<usize>)> {
    let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
    let mut at = std::collections::BTreeMap::new();
    for (ordinal, device) in screen.model.devices.iter().enumerate() {
        if !passes(device, &screen.order.filter) {
            continue;
        }
        let place = *at.entry(device.group.as_str()).or_insert_with(|| {
            groups.push((device.group.as_str(), Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(ordinal);
    }
    groups
}

fn shape(groups: &[(&str, Vec<usize>)], width: u16) -> Shape {
    let longest = groups.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let names = match cells(longest.min(GROUP_WIDTH_MAX)) {
        0 => 0,
        longest => longest + 1,
    };
    let all: usize = groups.iter().map(|(_, devices)| devices.len()).sum();
    let (cell, gap) = if all <= WIDE_MAX { (2, 1) } else { (1, 0) };
    let a_line = usize::from(width.saturating_sub(names + gap) / (cell + gap)).max(1);
    Shape { names, cell, gap, a_line }
}

/// The lines that the grid needs at a width: heading, cells, an empty line.
pub(super) fn height(screen: &Screen, width: u16) -> u16 {
    let groups = groups(screen);
    let shape = shape(&groups, width);
    let lines = groups.iter().map(|(_, devices)| devices.len().div_ceil(shape.a_line));
    cells(lines.sum::<usize>()).saturating_add(2)
}

pub(super) fn draw(screen: &mut Screen, view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    if area.height < 2 {
        return;
    }
    let groups: Vec<(String, Vec<usize>)> =
        groups(screen).into_iter().map(|(name, of)| (name.to_owned(), of)).collect();
    let borrowed: Vec<(&str, Vec<usize>)> =
        groups.iter().map(|(name, of)| (name.as_str(), of.clone())).collect();
    let shape = shape(&borrowed, area.width);
    let room = usize::from(area.height.saturating_sub(2)).max(1);
    let fold = fold(&groups, shape, room);
    let values = groups.iter().flat_map(|(_, devices)| devices);
    let values =
        values.filter_map(|&of| screen.metric.value_of(&screen.model.devices[of], view.now));
    let greatest = values.max_by(f64::total_cmp);
    let before = screen.scale.filter(|(metric, _)| *metric == screen.metric);
    let scale = screen.metric.next_scale(before.map(|(_, scale)| scale), greatest);
    screen.scale = Some((screen.metric, scale));
    heading(screen, view, scale, fold, line(area, 0), buffer);
    let mut at = 1;
    for (name, devices) in &groups {
        let folded: Vec<&[usize]> = devices.chunks(fold).collect();
        for (number, of_line) in folded.chunks(shape.a_line).enumerate() {
            // The last line stays empty.
            if at + 1 >= area.height {
                return;
            }
            let row = line(area, at);
            at += 1;
            if number == 0 {
                put(buffer, Rect { width: shape.names, ..row }, name, view.palette.faint());
            }
            let mut x = row.x + shape.names + shape.gap;
            for devices in of_line {
                let cell = Rect { x, width: shape.cell, ..row };
                draw_cell(screen, view, (devices, scale), cell, shape.gap > 0, buffer);
                screen.targets.devices.push((cell, devices[0]));
                x += shape.cell + shape.gap;
            }
        }
    }
}

/// How many devices share a cell, so that all groups fit into some lines.
fn fold(groups: &[(String, Vec<usize>)], shape: Shape, room: usize) -> usize {
    let fits = |fold: &usize| {
        let lines = groups.iter().map(|(_, devices)| devices.len().div_ceil(*fold));
        lines.map(|cells| cells.div_ceil(shape.a_line)).sum::<usize>() <= room
    };
    // With more groups than lines the last ones are cut off; the table has them.
    (1..=256).find(fits).unwrap_or(256)
}

fn heading(
    screen: &Screen,
    view: &View<'_>,
    scale: f64,
    fold: usize,
    area: Rect,
    buffer: &mut Buffer,
) {
    let palette = view.palette;
    let unit = screen.metric.unit();
    let mut spans = vec![
        Span::raw(format!("{}  ", screen.metric.words())),
        Span::styled("0 ", palette.faint()),
    ];
    for (step, height) in (0_u8..).zip(HEIGHTS) {
        let sign = if palette.depth == Depth::None { height } else { "█" };
        spans.push(Span::styled(sign, palette.ramp(f64::from(step) / 7.0)));
    }
    spans.push(Span::styled(format!(" {}", amount(Some(scale), unit)), palette.faint()));
    let (shown, all) = (screen.rows.len(), screen.model.devices.len());
    let count = if shown == all { all.to_string() } else { format!("{shown} of {all}") };
    spans.push(Span::styled(format!("   {count} devices"), palette.faint()));
    if fold > 1 {
        let text = format!(", {fold} a cell: the greatest, and the worst state");
        spans.push(Span::styled(text, palette.faint()));
    }
    put_line(buffer, area, &Line::from(spans));
}

fn draw_cell(
    screen: &Screen,
    view: &View<'_>,
    (devices, scale): (&[usize], f64),
    cell: Rect,
    marks: bool,
    buffer: &mut Buffer,
) {
    let palette = view.palette;
    let of = devices.iter().map(|&ordinal| &screen.model.devices[ordinal]);
    let value = of.clone().filter_map(|device| screen.metric.value_of(device, view.now));
    let value = value.max_by(f64::total_cmp);
    // The worst, but what is not asked for a reason is not broken.
    let broken =
        of.clone().any(|device| matches!(device.state, Some(State::Missed | State::Error)));
    let late = of.clone().any(|device| device.state == Some(State::Late));
    let silent = devices.iter().any(|ordinal| view.health.silent.binary_search(ordinal).is_ok());
    let part = value.unwrap_or(0.0) / scale;
    let plain = palette.depth == Depth::None;
    let (signs, style) = if broken || silent {
        ("××".to_owned(), palette.missing())
    } else if value.is_none() {
        ("··".to_owned(), palette.faint())
    } else if late {
        let height = if plain { sign(part) } else { "█" };
        (format!("{height}{}", if plain { "!" } else { height }), palette.late())
    } else {
        let height = if plain { sign(part) } else { "█" };
        (height.repeat(2), palette.ramp(part))
    };
    let selected = screen.selected.is_some_and(|selected| devices.contains(&selected));
    let style = if selected && !marks { style.add_modifier(Modifier::REVERSED) } else { style };
    let signs: String = signs.chars().take(usize::from(cell.width)).collect();
    put(buffer, cell, &signs, style);
    if selected && marks && cell.x > 0 {
        buffer.set_string(cell.x - 1, cell.y, "▕", palette.water());
        let right = Rect { x: cell.right(), width: 1, ..cell };
        if right.x < buffer.area().right() {
            put(buffer, right, "▏", palette.water());
        }
    }
}
