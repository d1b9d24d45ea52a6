//! Hosts behind switches: which cables carry what, and how fast.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "measures how long a transfer takes")]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use meikyo_spaces::links::Shape;
use meikyo_spaces::process;
use meikyo_spaces::switched::{Lane, Place, Switched, SwitchedError, SwitchedPlan, Way};
use meikyo_units::{BitsPerSecond, Bytes};
use rustix::thread::LinkNameSpaceType;

const OCTETS: u64 = 200_000;
/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Ethernet, Internet and TCP headers with time stamps.
const HEADERS: u64 = 66;

/// Whether namespaces can be made here.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        meikyo_testing::lacking("only root makes networks of namespaces");
    }
    is_root
}

/// Hosts 0 and 1 on switch 0, host 2 on switch 1, and two cables between the switches: 3 and 4, the second one the other way
/// around. What host 0 sends takes the first of them and what host 2 sends to it the second; with host 1 it is the other way.
fn plan(rate: BitsPerSecond) -> SwitchedPlan {
    use Place::{Host, Switch};
    let there = |cable| Lane { cable, back: false };
    let back = |cable| Lane { cable, back: true };
    let way = |from, to, trunk| Way { from, to, lanes: vec![there(from), trunk, back(to)] };
    SwitchedPlan {
        hosts: 3,
        switches: 2,
        cables: vec![
            [Host(0), Switch(0)],
            [Host(1), Switch(0)],
            [Host(2), Switch(1)],
            [Switch(0), Switch(1)],
            [Switch(1), Switch(0)],
        ],
        ways: vec![
            way(0, 2, there(3)),
            way(2, 0, there(4)),
            way(1, 2, back(4)),
            way(2, 1, back(3)),
        ],
        shape: Shape { rate, burst: Bytes::new(1_816), queue: Bytes::new(262_144) },
        window: Bytes::new(65_536),
    }
}

fn within<T: Send>(space: &File, what: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let there = scope.spawn(|| {
            process::enter(space, LinkNameSpaceType::Network).unwrap();
            what()
        });
        there.join().unwrap()
    })
}

/// Sends octets from one host to another, and how long they take until the last one has come.
fn send(network: &Switched, from: usize, to: usize) -> Duration {
    let address = (Switched::address(to), 7_000);
    let listener = within(network.space(to), || TcpListener::bind(address).unwrap());
    let connect = || TcpStream::connect_timeout(&address.into(), PATIENCE).unwrap();
    let mut out = within(network.space(from), connect);
    let (mut come, peer) = listener.accept().unwrap();
    assert_eq!(peer.ip(), Switched::address(from));
    let begin = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(move || out.write_all(&vec![7; usize::try_from(OCTETS).unwrap()]).unwrap());
        let mut octets = Vec::new();
        come.read_to_end(&mut octets).unwrap();
        assert_eq!(octets.len() as u64, OCTETS);
    });
    begin.elapsed()
}

#[test]
fn each_pair_of_hosts_takes_the_cables_that_are_said() {
    if !is_root() {
        return;
    }
    let mut network = Switched::make(&plan(BitsPerSecond::new(100_000_000))).unwrap();
    // By cable and end, what carries data and what carries acknowledgements; and what carries nothing.
    let cases = [
        (0, 2, [(0, 0), (3, 0), (2, 1)], [(2, 0), (4, 0), (0, 1)], [(3, 1), (4, 1), (1, 0)]),
        (1, 2, [(1, 0), (4, 1), (2, 1)], [(2, 0), (3, 1), (1, 1)], [(3, 0), (4, 0), (0, 0)]),
    ];
    for (from, to, data, told, idle) in cases {
        let before = network.sent().unwrap();
        send(&network, from, to);
        let after = network.sent().unwrap();
        let payload = |(cable, end): (usize, usize)| {
            let (before, after) = (before[cable][end], after[cable][end]);
            let frames = after.frames - before.frames;
            (frames, (after.bytes - before.bytes).saturating_sub(HEADERS * frames))
        };
        for lane in data {
            let (frames, payload) = payload(lane);
            // The options of the first segment, and what is sent again on a machine that others keep busy.
            assert!((OCTETS..OCTETS + OCTETS / 50).contains(&payload), "{lane:?}: {payload}");
            // Nothing larger than a frame has gone over a cable.
            assert!(frames >= OCTETS / 1448, "{lane:?}: {frames}");
        }
        for lane in told {
            let (frames, payload) = payload(lane);
            assert!(frames > 20 && payload < OCTETS / 50, "{lane:?}: {frames}, {payload}");
        }
        for lane in idle {
            assert_eq!(payload(lane), (0, 0), "{lane:?}");
        }
    }
}

#[test]
fn a_cable_carries_its_rate() {
    if !is_root() {
        return;
    }
    let rate = BitsPerSecond::new(4_000_000);
    let network = Switched::make(&plan(rate)).unwrap();
    // All but the first frames wait for the rate; each has 1,448 octets of data in 1,514.
    let due_s = 8.0 * 200_000.0 * 1514.0 / 1448.0 / 4e6;
    let taken_s = send(&network, 0, 2).as_secs_f64();
    assert!((due_s * 0.97..due_s * 2.0).contains(&taken_s), "{taken_s} s, {due_s} s");
}

#[test]
fn frames_in_switches_do_not_keep_their_sender_from_sending() {
    if !is_root() {
        return;
    }
    // Hosts 0 and 1 share the cable to host 2, so that what they send waits at the switch before it: their windows, while a
    // sender may have two segments waiting at its own card. A window is no larger than said, however long they send.
    const PIECES: usize = 1_000;
    let mut network = Switched::make(&plan(BitsPerSecond::new(20_000_000))).unwrap();
    let address = (Switched::address(2), 7_000);
    let listener = within(network.space(2), || TcpListener::bind(address).unwrap());
    let connect = || TcpStream::connect_timeout(&address.into(), PATIENCE).unwrap();
    let senders = [0, 1].map(|host| within(network.space(host), connect));
    let mut receivers = [(); 2].map(|()| listener.accept().unwrap().0);
    std::thread::scope(|scope| {
        for mut sender in senders {
            scope.spawn(move || sender.write_all(&[7; 1_448 * PIECES]).unwrap());
        }
        let (mut most, mut octets) = (0, [0; 1_448]);
        for _ in 0..PIECES {
            for receiver in &mut receivers {
                receiver.read_exact(&mut octets).unwrap();
            }
            let sent = network.sent().unwrap();
            let left = sent[0][0].frames + sent[1][0].frames;
            most = left.saturating_sub(sent[2][1].frames).max(most);
        }
        // Two windows are 90 full frames.
        assert!((45..110).contains(&most), "{most} frames");
    });
}

#[test]
fn what_cannot_be_joined_is_refused() {
    let refused = |change: &dyn Fn(&mut SwitchedPlan)| {
        let mut plan = plan(BitsPerSecond::GIGABIT);
        change(&mut plan);
        Switched::make(&plan).unwrap_err()
    };
    let error = refused(&|plan| plan.hosts = 0);
    assert!(matches!(error, SwitchedError::Hosts(0)), "{error}");
    let error = refused(&|plan| plan.hosts = 4);
    assert!(matches!(error, SwitchedError::Cables { host: 3, cables: 0 }), "{error}");
    let error = refused(&|plan| plan.cables.push([Place::Host(0), Place::Switch(1)]));
    assert!(matches!(error, SwitchedError::Cables { host: 0, cables: 2 }), "{error}");
    for change in [
        // No cable, one that does not follow, one that is missing, and the end of another host.
        &(|plan: &mut SwitchedPlan| plan.ways[0].lanes[1].cable = 9) as &dyn Fn(&mut SwitchedPlan),
        &|plan| plan.ways[0].lanes[1].back = true,
        &|plan| plan.ways[0].lanes.truncate(2),
        &|plan| plan.ways[0].to = 1,
    ] {
        let error = refused(change);
        assert!(matches!(error, SwitchedError::Way { from: 0, .. }), "{error}");
    }
}
