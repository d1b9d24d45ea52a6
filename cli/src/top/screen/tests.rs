//! Keys and clicks, as a person makes them.

use meikyo_units::{Nanos, WallTime};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{
    KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::layout::Rect;

use super::{Overlay, Place, Screen, Wish};
use crate::top::draw::draw;
use crate::top::fixture::screen;
use crate::top::metric::Metric;
use crate::top::order::Column;
use crate::top::palette::Palette;

/// Presses keys one after another; what the last one wishes.
fn press(screen: &mut Screen, clock: WallTime, keys: &[KeyCode]) -> Option<Wish> {
    let mut wish = None;
    for key in keys {
        wish = screen.key(KeyEvent::new(*key, KeyModifiers::NONE), clock);
    }
    wish
}

fn letters(text: &str) -> Vec<KeyCode> {
    text.chars().map(KeyCode::Char).collect()
}

fn selected(screen: &Screen) -> &str {
    &screen.model.devices[screen.selected.unwrap()].name
}

#[test]
fn arrows_and_letters_select_and_stop_at_the_ends() {
    let (mut screen, clock) = screen(&[]);
    assert_eq!(selected(&screen), "node01");
    press(&mut screen, clock, &letters("jjk"));
    assert_eq!(selected(&screen), "node02");
    press(&mut screen, clock, &[KeyCode::Up, KeyCode::Up, KeyCode::Up]);
    assert_eq!(selected(&screen), "node01");
    press(&mut screen, clock, &[KeyCode::End, KeyCode::Down]);
    assert_eq!(selected(&screen), "sw");
    press(&mut screen, clock, &[KeyCode::Home]);
    assert_eq!(selected(&screen), "node01");
}

#[test]
fn the_column_is_chosen_with_left_and_right_and_the_selection_stays_with_the_device() {
    let (mut screen, clock) = screen(&[]);
    press(&mut screen, clock, &[KeyCode::Right, KeyCode::Char('l')]);
    assert_eq!(screen.order.column, Column::Metric(Metric::Sent));
    // The greatest first; the device that was selected is still.
    assert_eq!(screen.rows.first().copied(), screen.model.device("sw"));
    assert_eq!(selected(&screen), "node01");
    assert_eq!(screen.selected_row(), Some(11));
    press(&mut screen, clock, &letters("r"));
    assert_eq!(screen.selected_row(), Some(0));
    press(&mut screen, clock, &[KeyCode::Left, KeyCode::Char('h')]);
    assert_eq!(screen.order.column, Column::Name);
    press(&mut screen, clock, &letters("re"));
    assert!(screen.order.grouped);
    // The switch is in no group, which comes first.
    assert_eq!(screen.rows.first().copied(), screen.model.device("sw"));
}

#[test]
fn a_filter_is_typed_kept_and_cleared() {
    let (mut screen, clock) = screen(&[]);
    press(&mut screen, clock, &letters("/rack2q"));
    assert!(screen.rows.is_empty() && screen.selected.is_none());
    press(&mut screen, clock, &[KeyCode::Backspace, KeyCode::Enter]);
    assert_eq!((screen.rows.len(), selected(&screen)), (5, "node07"));
    assert_eq!(screen.overlay, Overlay::None);
    // Esc clears the filter first, and quits when there is nothing left to close.
    assert_eq!(press(&mut screen, clock, &[KeyCode::Esc]), None);
    assert_eq!(screen.rows.len(), 12);
    assert_eq!(press(&mut screen, clock, &[KeyCode::Esc]), Some(Wish::Quit));
    press(&mut screen, clock, &letters("fzz"));
    press(&mut screen, clock, &[KeyCode::Esc]);
    assert_eq!(screen.rows.len(), 12);
}

#[test]
fn the_menu_chooses_the_metric_and_the_help_closes_with_any_key() {
    let (mut screen, clock) = screen(&[]);
    press(&mut screen, clock, &[KeyCode::Char('m'), KeyCode::Down, KeyCode::Enter]);
    assert_eq!((screen.metric, screen.overlay), (Metric::Received, Overlay::None));
    press(&mut screen, clock, &[KeyCode::Char('m'), KeyCode::Up, KeyCode::Up, KeyCode::Enter]);
    assert_eq!(screen.metric, Metric::RoundTrip);
    press(&mut screen, clock, &[KeyCode::F(1)]);
    assert_eq!(screen.overlay, Overlay::Help);
    assert_eq!(press(&mut screen, clock, &letters("x")), None);
    assert_eq!(screen.overlay, Overlay::None);
    assert_eq!(press(&mut screen, clock, &letters("?q")), Some(Wish::Quit));
}

#[test]
fn pausing_holds_the_view_still() {
    let (mut screen, clock) = screen(&[]);
    let later = clock + Nanos::from_secs(5);
    press(&mut screen, clock, &letters(" "));
    assert!(!screen.follows());
    assert_eq!(screen.instant(later), clock);
    press(&mut screen, later, &letters(" "));
    assert!(screen.follows());
    assert_eq!(screen.instant(later), later);
}

#[test]
fn the_past_is_gone_to_played_at_a_pace_and_left() {
    let (mut screen, clock) = screen(&[]);
    let (from, to) = screen.times.unwrap();
    // The recording is 1 s old: 10 s back is its begin.
    assert_eq!(press(&mut screen, clock, &letters("[")), Some(Wish::Seek(from)));
    press(&mut screen, clock, &letters("> "));
    assert_eq!(screen.place, Place::Past { at: from, playing: true });
    // Not beyond what was read, twice as fast as life, and not beyond the end.
    let read = from + Nanos::from_millis(500);
    screen.play(Nanos::from_millis(100), Some(read));
    assert_eq!(screen.place, Place::Past { at: from + Nanos::from_millis(200), playing: true });
    screen.play(Nanos::from_secs(1), Some(read));
    assert_eq!(screen.place, Place::Past { at: read, playing: true });
    screen.play(Nanos::from_secs(1), Some(to));
    assert_eq!(screen.place, Place::Past { at: to, playing: false });
    assert_eq!(press(&mut screen, clock, &letters("n")), Some(Wish::GoLive));
    assert!(screen.follows());
    // Nothing lies ahead of what is live.
    assert_eq!(press(&mut screen, clock, &letters("]")), None);
    assert!(screen.follows());
}

#[test]
fn a_finished_recording_is_replayed_from_its_begin() {
    let (mut screen, clock) = screen(&[]);
    let (from, to) = screen.times.unwrap();
    screen.running = false;
    screen.place = Place::Past { at: to, playing: false };
    assert_eq!(press(&mut screen, clock, &letters(" ")), Some(Wish::Seek(from)));
    assert_eq!(screen.place, Place::Past { at: from, playing: true });
    assert_eq!(press(&mut screen, clock, &letters("n")), Some(Wish::Seek(to)));
}

#[test]
fn the_interval_of_repaints_stays_within_its_bounds() {
    let (mut screen, clock) = screen(&[]);
    press(&mut screen, clock, &letters("+"));
    assert_eq!(screen.every, Nanos::from_millis(200));
    press(&mut screen, clock, &letters("------------"));
    assert_eq!(screen.every, Nanos::from_millis(50));
    press(&mut screen, clock, &letters("++++++++++++"));
    assert_eq!(screen.every, Nanos::from_secs(10));
}

#[test]
fn a_click_selects_opens_and_sorts() {
    let (mut screen, clock) = screen(&[]);
    let area = Rect::new(0, 0, 120, 40);
    let mut buffer = Buffer::empty(area);
    draw(&mut screen, Palette::PLAIN, clock, area, &mut buffer);
    let click = |screen: &mut Screen, place: Rect| {
        let kind = MouseEventKind::Down(MouseButton::Left);
        let modifiers = KeyModifiers::NONE;
        let event = MouseEvent { kind, column: place.x, row: place.y, modifiers };
        screen.mouse(event, clock);
    };
    let places: Vec<_> = screen
        .targets
        .devices
        .iter()
        .filter(|(_, device)| *device == 4)
        .map(|(place, _)| *place)
        .collect();
    // A cell and a row.
    assert_eq!(places.len(), 2, "{places:?}");
    click(&mut screen, places[0]);
    assert_eq!((selected(&screen), screen.detail), ("node05", false));
    click(&mut screen, places[1]);
    assert!(screen.detail);
    let (heading, _) = screen.targets.columns[2];
    click(&mut screen, heading);
    assert_eq!(screen.order.column, Column::Metric(Metric::Sent));
    click(&mut screen, heading);
    assert!(screen.order.reversed);
    let wheel = MouseEvent {
        kind: MouseEventKind::ScrollUp,
        column: 0,
        row: 0,
        modifiers: KeyModifiers::NONE,
    };
    screen.mouse(wheel, clock);
    assert_eq!(selected(&screen), "node04");
}
