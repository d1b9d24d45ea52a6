//! Pictures of the view, to be looked at, and what they promise.

use meikyo_units::{Nanos, WallTime};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;

use super::draw;
use crate::top::fixture::{START, TENTH, screen, step};
use crate::top::metric::Metric;
use crate::top::once::text;
use crate::top::palette::{Depth, Palette, Theme};
use crate::top::screen::{Overlay, Screen};

const TRUE: Palette = Palette { depth: Depth::True, theme: Theme::Dark };
const VERMILION: Color = Color::Rgb(240, 102, 74);
const GOLD: Color = Color::Rgb(227, 179, 65);

#[test]
fn the_whole_view() {
    let (mut screen, clock) = screen(&[(3, 4), (8, 1)]);
    insta::assert_snapshot!(text(&mut screen, clock, 124, 32), @r#"
    meikyo supernova  ● live  22:13:21.0  10.0 intervals/s
    on time 83.33 %  late 10  missing 10  silent 0  stalest node01 99.1 ms

    sent  0 ▁▂▃▄▅▆▇█ 100.0 Mbit/s   12 devices
    rack1 ▕▁▁▏▂▂ ▂▂ ×× ▄▄ ▄▄
    rack2  ▅▅ ▆▆ ▆! ▇▇ ██
           ██

    device▴      state           sent     received   load     age  round trip   node01  the last 60 s
    node01       ok       8.00 Mbit/s  4.00 Mbit/s   0.25 99.1 ms      400 µs   load 0.25   height 0.50
    node02       ok       16.0 Mbit/s  8.00 Mbit/s   0.50 99.1 ms      400 µs
    node03       ok       24.0 Mbit/s  12.0 Mbit/s   0.75 99.1 ms      400 µs                                                  ⠒
    node04       missed             –            –      –       –           –
    node05       ok       40.0 Mbit/s  20.0 Mbit/s   1.25 99.1 ms      400 µs
    node06       ok       48.0 Mbit/s  24.0 Mbit/s   1.50 99.1 ms      400 µs   eth0  ▴ received 4.00 Mbit/s  ▾ sent 8.00 Mbit/s
    node07       ok       56.0 Mbit/s  28.0 Mbit/s   1.75 99.1 ms      400 µs
    node08       ok       64.0 Mbit/s  32.0 Mbit/s   2.00 99.1 ms      400 µs                                                  ⠉
    node09       late     72.0 Mbit/s  36.0 Mbit/s   2.25 99.1 ms      400 µs
    node10       ok       80.0 Mbit/s  40.0 Mbit/s   2.50 99.1 ms      400 µs                                                  ⠤
    node11       ok       88.0 Mbit/s  44.0 Mbit/s   2.75 99.1 ms      400 µs
    sw           ok       96.0 Mbit/s  48.0 Mbit/s   3.00 99.1 ms      400 µs   eth1  ▴ received 0 bit/s  ▾ sent 0 bit/s   heigh

                                                                                                                               ⣀
                                                                                                                               ⠉




    events
    22:13:20.3  node03  reset  sysUpTime went back

    ? help  q quit  ↑↓ select  ←→ sort  Enter detail  f filter  m metric  Space pause  [ ] back, forward  every 0.1 s
    "#);
}

#[test]
fn a_view_that_is_behind_says_so_and_calls_nobody_silent() {
    let (mut screen, newest) = screen(&[]);
    let clock = newest + Nanos::from_millis(6_600);
    let header = |screen: &mut Screen| -> Vec<String> {
        text(screen, clock, 124, 32).lines().take(2).map(str::to_owned).collect()
    };
    // The recording has nothing newer: then the devices are silent indeed.
    let [first, second] = &header(&mut screen)[..] else { panic!("two lines") };
    assert!(first.contains("● live  22:13:27.6"), "{first}");
    assert!(second.contains("silent 12"), "{second}");
    screen.behind = Some(Nanos::from_millis(6_500));
    let [first, second] = &header(&mut screen)[..] else { panic!("two lines") };
    assert!(first.contains("○ this view is 6.5 s behind  22:13:20.9"), "{first}");
    assert!(second.contains("on time 100 %") && second.contains("silent 0"), "{second}");
    assert!(!second.contains("alert rules"), "{second}");
    screen.rules_set = false;
    assert!(header(&mut screen)[1].contains("no alert rules are set"));
}

/// The load is asked for every 10 s, all else every 0.1 s.
#[test]
fn what_is_older_than_the_newest_answer_has_its_age_beside_it() {
    let (mut screen, _) = screen(&[]);
    let seen = |screen: &mut Screen, tenths: i64, detail: bool| {
        let clock = WallTime::from_nanos(START + tenths * TENTH);
        screen.detail = detail;
        let text = text(screen, clock, 124, 32);
        let is_wanted = |line: &&str| {
            if detail { line.contains("load 0.") } else { line.starts_with("node01 ") }
        };
        let line = text.lines().find(is_wanted);
        line.unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    let mut steps = (10..45).map(|tenth| {
        let mut step = step(tenth, &[]);
        step.frames.retain(|frame| &*frame.table != "load");
        step
    });
    // The newest load is due at 0.9 s: at 2.9 s it is not older than 2 s, at 4.4 s it is.
    steps.by_ref().take(20).for_each(|step| screen.apply([&step]));
    assert!(!seen(&mut screen, 30, false).contains('('));
    steps.for_each(|step| screen.apply([&step]));
    let row = seen(&mut screen, 45, false);
    assert!(row.contains("0.25 (3 s)") && row.matches('(').count() == 1, "{row}");
    let detail = seen(&mut screen, 45, true);
    assert!(detail.contains("load 0.25 (3 s)"), "{detail}");
    // The column stays as wide once the load is fresh again.
    let place = |line: &str| line.find(" ms").unwrap();
    screen.apply([&step(45, &[])]);
    let fresh = seen(&mut screen, 46, false);
    assert!(!fresh.contains('(') && place(&fresh) == place(&row), "{fresh}");
}

#[test]
fn one_device_on_a_narrow_terminal() {
    let (mut screen, clock) = screen(&[]);
    screen.detail = true;
    insta::assert_snapshot!(text(&mut screen, clock, 90, 26), @r#"
    meikyo supernova  ● live  22:13:21.0  10.0 intervals/s
    on time 100 %  late 0  missing 0  silent 0  stalest node01 99.1 ms

    node01  host rack1  ok
    age 99.1 ms  round trip 400 µs  load 0.25

    interface      link     received         sent   packets in  packets out     errors
    eth0           up    4.00 Mbit/s  8.00 Mbit/s            –            –          –
    eth1           up        0 bit/s      0 bit/s            –            –          –


    node01  the last 60 s
    load 0.25   height 0.50

                                                                                            ⠐⠒






    2 more do not fit
    events
    22:13:20.3  node03  reset  sysUpTime went back

    ? help  q quit  ↑↓ select  ←→ sort  Enter detail  f filter  m metric  Space pause  [ ] bac
    "#);
}

#[test]
fn the_menu_and_the_help_lie_over_the_view() {
    let (mut screen, clock) = screen(&[]);
    screen.overlay = Overlay::Menu(1);
    let menu = text(&mut screen, clock, 80, 24);
    assert!(menu.contains("› received") && menu.contains("┌ colour by"), "{menu}");
    screen.overlay = Overlay::Help;
    let help = text(&mut screen, clock, 80, 24);
    for (_, words) in crate::top::screen::HELP {
        assert!(help.contains(words), "`{words}` is cut off in\n{help}");
    }
}

/// The colours of ink on the screen.
fn colours(states: &[(u32, u8)]) -> Vec<Color> {
    let (mut screen, clock) = screen(states);
    let mut terminal = Terminal::new(TestBackend::new(120, 40)).unwrap();
    terminal
        .draw(|frame| draw(&mut screen, TRUE, clock, frame.area(), frame.buffer_mut()))
        .unwrap();
    terminal.backend().buffer().content().iter().map(|cell| cell.fg).collect()
}

#[test]
fn nothing_is_red_or_gold_unless_something_is_missing_or_late() {
    let calm = colours(&[]);
    assert!(!calm.contains(&VERMILION) && !calm.contains(&GOLD));
    let late = colours(&[(8, 1)]);
    assert!(!late.contains(&VERMILION) && late.contains(&GOLD));
    let missed = colours(&[(3, 4)]);
    assert!(missed.contains(&VERMILION) && !missed.contains(&GOLD));
}

#[test]
fn no_size_of_the_terminal_and_no_number_of_devices_breaks_it() {
    let (mut screen, clock) = screen(&[(3, 4)]);
    for width in [1, 39, 40, 41, 99, 100, 300] {
        for height in [1, 2, 7, 8, 9, 16, 31, 100] {
            for detail in [false, true] {
                for grouped in [false, true] {
                    screen.detail = detail;
                    screen.order.grouped = grouped;
                    screen.overlay = if detail { Overlay::Help } else { Overlay::Menu(10) };
                    let area = Rect::new(0, 0, width, height);
                    let mut buffer = Buffer::empty(area);
                    draw(&mut screen, TRUE, clock, area, &mut buffer);
                }
            }
        }
    }
}

#[test]
fn ten_thousand_devices_share_cells_and_the_worst_is_seen() {
    let device = |number: u32| meikyo_live::Device {
        name: format!("node{number:05}"),
        role: "host",
        group: Some(format!("rack{:03}", number / 1_000)),
        agent: None,
    };
    let (mut screen, clock) = screen(&[]);
    screen.model = crate::top::model::Model::new((0..10_000).map(device));
    screen.metric = Metric::Load;
    for device in &mut screen.model.devices {
        device.load = Some(1.0);
        device.state = Some(meikyo_snmp::tables::State::Ok);
        device.answered = Some(clock.as_nanos());
    }
    screen.model.devices[7_777].state = Some(meikyo_snmp::tables::State::Missed);
    screen.arrange(clock);
    let text = text(&mut screen, clock, 120, 60);
    assert!(text.contains("a cell: the greatest, and the worst state"), "{text}");
    assert_eq!(text.matches('×').count(), 1, "{text}");
    assert!(text.contains("rack009"), "{text}");
}
