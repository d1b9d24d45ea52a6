//! Pictures of clusters beside each other, keys, and what servers say.

use std::path::PathBuf;

use meikyo_units::{Nanos, WallTime};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;

use super::gather::Found;
use super::{Cluster, Location, Overview, OverviewWish, Sender};
use crate::top::draw::clusters::draw;
use crate::top::once::drawn_text;
use crate::top::palette::Palette;

/// 2023-11-14 22:13:20.
const NOW: WallTime = WallTime::from_nanos(1_700_000_000_000_000_000);

fn sender(name: &str, active: bool, connected: Option<bool>) -> Sender {
    let round_trip = Some(Nanos::from_millis(102));
    let lag = active.then_some(Nanos::from_millis(180));
    Sender { name: name.into(), active, connected, lag, round_trip, ..Sender::default() }
}

fn clusters() -> Vec<Cluster> {
    let names =
        |numbers: std::ops::RangeInclusive<u32>| numbers.map(|n| format!("node{n:03}")).collect();
    let west = Cluster {
        name: "west".into(),
        location: Some(Location::Here(PathBuf::from("rec/clusters/west"))),
        running: true,
        devices: names(1..=20),
        ok: 1_990,
        late: 4,
        missing: 6,
        silent: vec!["node007".into()],
        oldest_value: Some(Nanos::from_millis(2_900)),
        senders: vec![
            sender("west:measure@mon1", true, Some(true)),
            Sender {
                gaps: 2,
                missing_rows: 312,
                ..sender("west:measure@mon2", false, Some(false))
            },
        ],
        trouble: None,
    };
    let east = Cluster {
        name: "east".into(),
        running: true,
        devices: names(100..=101),
        ok: 200,
        senders: vec![sender("east:measure@mon", true, Some(false))],
        ..Cluster::default()
    };
    let lost = Some("the log cannot be read".into());
    vec![east, Cluster { name: "lab".into(), trouble: lost, ..Cluster::default() }, west]
}

fn overview() -> Overview {
    let mut overview = Overview::new("rec".into());
    overview.take(Found { asked: NOW, clusters: Ok(clusters()) });
    overview
}

fn text(overview: &mut Overview, after: Nanos, (width, height): (u16, u16)) -> String {
    let draw = |area: Rect, buffer: &mut Buffer| {
        draw(overview, Palette::PLAIN, NOW + after, area, buffer);
    };
    drawn_text(draw, width, height)
}

/// Presses keys one after another; what the last one wishes.
fn press(overview: &mut Overview, keys: &[KeyCode]) -> Option<OverviewWish> {
    let mut wish = None;
    for key in keys {
        wish = overview.key(KeyEvent::new(*key, KeyModifiers::NONE));
    }
    wish
}

fn letters(text: &str) -> Vec<KeyCode> {
    text.chars().map(KeyCode::Char).collect()
}

#[test]
fn the_whole_view() {
    let mut overview = overview();
    press(&mut overview, &letters("jj"));
    insta::assert_snapshot!(text(&mut overview, Nanos::SECOND, (124, 20)), @r"
    meikyo rec  ● live  22:13:21.0
    clusters 3  devices 22  on time 99.54 %  late 4  missing 6  silent 1

    cluster   devices  on time    late  missing  silent   oldest   behind  round trip   gaps  sender
    east            2    100 %       0        0       0        –    0.2 s       0.1 s      0  east:measure@mon not connected
    lab             0        –       0        0       0        –        –           –      0  the log cannot be read
    west           20  99.50 %       4        6       1    2.9 s    0.2 s       0.1 s      2  west:measure@mon1 +1







    west
    west:measure@mon1  active  behind 0.2 s  round trip 0.1 s  gaps 0
    west:measure@mon2  not connected  behind –  round trip 0.1 s  gaps 2  312 rows lost
    silent node007
    devices node001 node002 node003 node004 node005 node006 node007 node008 node009 node010 node011 node012 node013 node014 node
    q quit  ↑↓ select  Enter open  d details  f find clusters and devices
    ");
}

#[test]
fn what_is_not_heard_of_any_more_says_how_old_it_is() {
    let mut overview = overview();
    assert!(text(&mut overview, Nanos::from_secs(4), (80, 12)).contains("● live"));
    overview.take(Found { asked: NOW, clusters: Err("no route".into()) });
    let later = text(&mut overview, Nanos::from_secs(61), (80, 12));
    assert!(later.contains("○ as of 61.0 s ago") && later.contains("no route"), "{later}");
    assert!(later.contains("west"), "what was known is shown still: {later}");
}

#[test]
fn a_cluster_is_found_by_its_name_or_a_device_and_opened() {
    let mut overview = overview();
    assert_eq!(overview.selected.as_deref(), Some("east"));
    press(&mut overview, &letters("/node02"));
    let shown: Vec<_> = overview.shown().iter().map(|of| of.name.clone()).collect();
    assert_eq!(shown, ["west"], "only it has a device that is called so");
    press(&mut overview, &[KeyCode::Enter]);
    let west = OverviewWish::Open(Location::Here(PathBuf::from("rec/clusters/west")));
    assert_eq!(press(&mut overview, &[KeyCode::Enter]), Some(west));
    // Esc clears what is looked for first, and quits when there is nothing left to close.
    assert_eq!(press(&mut overview, &[KeyCode::Esc]), None);
    assert_eq!(overview.shown().len(), 3);
    // What nobody writes at a server is not opened, and that is told.
    assert_eq!(press(&mut overview, &[KeyCode::Home, KeyCode::Enter]), None);
    assert!(overview.trouble.as_ref().is_some_and(|text| text.contains("of `east` now")));
    assert_eq!(press(&mut overview, &letters("d")), None);
    assert!(overview.detail);
    assert_eq!(press(&mut overview, &[KeyCode::Esc]), None);
    assert!(!overview.detail);
    assert_eq!(press(&mut overview, &[KeyCode::Esc]), Some(OverviewWish::Quit));
    press(&mut overview, &letters("fnothing"));
    assert!(overview.shown().is_empty() && overview.selected.is_none());
    assert_eq!(press(&mut overview, &[KeyCode::Enter, KeyCode::Enter]), None);
}

#[test]
fn the_selection_stays_with_its_cluster_and_in_sight() {
    let mut overview = Overview::new("rec".into());
    let many = |numbers: std::ops::Range<u32>| {
        numbers.map(|n| Cluster { name: format!("c{n:03}"), ..Cluster::default() }).collect()
    };
    overview.take(Found { asked: NOW, clusters: Ok(many(10..60)) });
    press(&mut overview, &[KeyCode::End]);
    let shown = text(&mut overview, Nanos::ZERO, (80, 16));
    assert!(shown.contains("c059") && !shown.contains("c010"), "{shown}");
    overview.take(Found { asked: NOW, clusters: Ok(many(0..60)) });
    assert_eq!(overview.selected.as_deref(), Some("c059"));
    overview.take(Found { asked: NOW, clusters: Ok(many(0..20)) });
    assert_eq!(overview.selected.as_deref(), Some("c000"), "the selected one is gone");
    let shown = text(&mut overview, Nanos::ZERO, (80, 16));
    assert!(shown.contains("c000"), "{shown}");
}
