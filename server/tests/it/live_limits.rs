//! Viewers that hold a place and give nothing for it.

use meikyo_units::{Nanos, WallTime};
use serde_json::json;
use tungstenite::Message;
use tungstenite::protocol::frame::coding::CloseCode;

use crate::client::{Served, client, serve_with};
use crate::live::{Collector, Viewer};
use crate::ranges::id;
use crate::recorded::recording;

const NEVER: Nanos = Nanos::from_secs(36_000);

fn see_loads(viewer: &mut Viewer) {
    viewer.subscribe(&json!({ "table": "load", "columns": ["load_1min"] }));
    assert!(viewer.text(&mut Vec::new()).get("subscribed").is_some());
}

/// Reads until the server ends the conversation, and how it says so.
fn farewell(viewer: &mut Viewer) -> Option<CloseCode> {
    loop {
        match viewer.socket.read() {
            Ok(Message::Close(frame)) => return frame.map(|frame| frame.code),
            Ok(_) => {}
            Err(_) => return None,
        }
    }
}

/// Viewers of an address who see something.
fn seeing(served: &Served, id: &str, from: u8, count: usize) -> Vec<Viewer> {
    let viewer = |_| {
        let mut viewer = Viewer::connect_from(served, client(from), id).unwrap();
        see_loads(&mut viewer);
        viewer
    };
    (0..count).map(viewer).collect()
}

#[test]
fn sockets_that_see_nothing_give_up_their_places() {
    let served = serve_with(recording(), |options| options.limits.subscription = NEVER);
    let id = id(&served);
    let connect = |from| Viewer::connect_from(&served, client(from), &id);
    let mut idle: Vec<_> = (0..128).map(|_| connect(2).unwrap()).collect();
    let mut newcomers = [3, 2].map(|from| {
        let mut viewer = connect(from).unwrap();
        see_loads(&mut viewer);
        viewer
    });
    assert_eq!(farewell(&mut idle[0]), Some(CloseCode::Again));
    assert_eq!(served.closed("displaced", ""), 2);
    newcomers.iter_mut().for_each(see_loads);
}

#[test]
fn one_address_holds_no_place_that_another_one_needs() {
    let served = serve_with(recording(), |options| options.limits.viewers = 4);
    let id = id(&served);
    let mut rich = seeing(&served, &id, 2, 4);
    let refused = Viewer::connect_from(&served, client(2), &id).err();
    assert_eq!(refused, Some(503), "nobody has fewer places");
    let _poor = seeing(&served, &id, 3, 2);
    assert_eq!(farewell(&mut rich[0]), Some(CloseCode::Again));
    assert_eq!(farewell(&mut rich[1]), Some(CloseCode::Again));
    assert_eq!(Viewer::connect_from(&served, client(3), &id).err(), Some(503), "two and two");
    assert_eq!((served.closed("displaced", ""), served.closed("full", "")), (2, 2));
}

#[test]
fn a_viewer_who_asks_for_nothing_is_sent_away() {
    let served = serve_with(recording(), |options| {
        options.limits.subscription = Nanos::from_millis(200);
    });
    let mut idle = Viewer::connect(&served);
    idle.subscribe(&json!({ "table": "none", "columns": ["x"] }));
    assert_eq!(farewell(&mut idle), Some(CloseCode::Policy));
    assert_eq!(served.closed("unsubscribed", ""), 1);
}

#[test]
fn a_viewer_who_answers_no_ping_is_sent_away_and_one_who_does_stays() {
    let served = serve_with(recording(), |options| {
        options.limits.ping = Nanos::from_millis(100);
        options.limits.silence = Nanos::from_secs(3);
    });
    let id = id(&served);
    let _silent = seeing(&served, &id, 2, 1);
    let mut lively = seeing(&served, &id, 3, 1);
    let mut pings = 0;
    // Twice as long as one may be silent.
    while pings < 60 {
        if let Message::Ping(_) = lively[0].socket.read().unwrap() {
            pings += 1;
        }
    }
    assert_eq!(served.closed("silent", ""), 1);
    see_loads(&mut lively[0]);
}

#[test]
fn a_viewer_who_reads_nothing_is_closed_and_his_steps_count_as_lost() {
    let dir = tempfile::tempdir().unwrap();
    let mut collector = Collector::open(dir.path(), 2_000);
    collector.interval();
    let served = serve_with(dir.path(), |options| {
        options.limits.unread = Nanos::from_secs(1);
        options.limits.silence = NEVER;
    });
    let mut stalled = Viewer::of_octets(&served);
    stalled.text(&mut Vec::new());
    let deadline = WallTime::now() + Nanos::from_secs(120);
    while served.closed("unread", "") == 0 {
        assert!(WallTime::now() < deadline, "nobody minds");
        (0..10).for_each(|_| collector.interval());
    }
    while served.metric("viewers", "") > 0 {
        assert!(WallTime::now() < deadline, "he keeps his place");
    }
    assert!(served.metric("lost_steps_total", "") > 0);
    collector.writer.close().unwrap();
}
