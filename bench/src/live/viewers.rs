//! What viewers cost the collector: ten of them, one stalled, against none, in alternated rounds.
//!
//! In each round, as a control, a bystander: a thread that knows nothing of Meikyo and touches as
//! much memory as a core's cache of the second level holds, ten times a second, where viewers run. What
//! it costs the collector, viewers cost because the agents share that core with them, and would not if
//! the agents were elsewhere.
//!
//! Agents and viewers stand for other machines: they run on the last core, the agents first, the
//! viewers at low priority. Were they really elsewhere, that core would be free for the server, which
//! therefore runs there, too, behind the agents; the collector runs wherever the system puts it. Where
//! server and collector share a core, each finds the caches as the other left them. What the server
//! costs is said as well, since a ratio hides it on a large machine.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use meikyo_console::failure::Failure;
use meikyo_units::{Nanos, WallTime};
use tungstenite::client::client_with_config;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Message, WebSocket};

use crate::live::measurement::{EVERY, Measurement};
use crate::live::server_process::ServerProcess;
use crate::placement::{Placement, place_thread, wait_until};
use crate::reading::Intervals;
use crate::statistics::Observations;

const DEVICES: u32 = 256;
pub(super) const VIEWERS: usize = 10;
const ROUNDS: usize = 5;
/// How long the collector runs in each part of a round.
const SPAN: Nanos = Nanos::from_secs(15);
/// Octets that a viewer reads at once. The library clears as many before each reading; its own 128 KiB
/// for each of ten viewers would drive the agents out of the core's caches, which no browser elsewhere
/// does.
const READ_BUFFER_BYTES: usize = 4 << 10;
/// A viewer looks this often whether it is to end.
const PATIENCE: Duration = Duration::from_millis(200);
/// What the bystander touches: the second level of this machine's and most others' cores.
const BYSTANDER_BYTES: usize = 2 << 20;
const CACHE_LINE_BYTES: usize = 64;

/// Who is there beside collector, agents and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Company {
    Nobody,
    Viewers,
    Bystander,
}

impl fmt::Display for Company {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody => f.write_str("nobody looks on"),
            Self::Viewers => write!(f, "{VIEWERS} viewers look on"),
            Self::Bystander => f.write_str("a bystander touches memory"),
        }
    }
}

/// Completion in company by completion without, round by round.
#[derive(Debug)]
pub(super) struct Ratios {
    pub(super) viewers: Observations,
    pub(super) bystander: Observations,
}

/// Runs all rounds.
pub(super) fn run() -> Result<Ratios, Failure> {
    let (mut viewers, mut bystander) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        crate::progress(&format!("viewers: round {round} of {ROUNDS}"));
        // Alternated, so that a machine that grows warm or busy favours neither.
        let mut order = [Company::Nobody, Company::Viewers, Company::Bystander];
        if round % 2 == 0 {
            order.reverse();
        }
        let mut took = BTreeMap::new();
        for company in order {
            took.insert(company, completion_us(company)?);
        }
        viewers.push(took[&Company::Viewers] / took[&Company::Nobody]);
        bystander.push(took[&Company::Bystander] / took[&Company::Nobody]);
    }
    let (viewers, bystander) = (Observations::new(viewers), Observations::new(bystander));
    Ok(Ratios { viewers, bystander })
}

/// Due instant until the last answer is kept, median in µs.
fn completion_us(company: Company) -> Result<f64, Failure> {
    let begin = WallTime::now();
    let measurement = Measurement::start(DEVICES, SPAN, true)?;
    let server = ServerProcess::start_at(&measurement.recording, Placement::elsewhere(false))?;
    wait_until(begin + Nanos::from_secs(2))?;
    let mut onlookers = match company {
        Company::Viewers => Onlookers::of(&server)?,
        Company::Nobody | Company::Bystander => Onlookers::default(),
    };
    if company == Company::Bystander {
        onlookers.add(stand_by);
    }
    let before = server.cpu()?;
    let since = WallTime::now();
    wait_until(begin + SPAN)?;
    let served = server.cpu()?.saturating_sub(before);
    let passed = WallTime::now().since(since);
    let (recording, _scratch) = measurement.finish()?;
    let frames = onlookers.end()?;
    if company == Company::Viewers && frames < 50 * (VIEWERS as u64 - 1) {
        return Err(Failure::new(format!("{VIEWERS} viewers saw only {frames} frames")));
    }
    let intervals = Intervals::read(&recording, EVERY)?;
    let kept_us = intervals.kept_us.median();
    let kept_us = kept_us.ok_or_else(|| Failure::new("the collector recorded no interval"))?;
    crate::progress(&format!(
        "viewers: {company}: kept after {kept_us:.0} µs (median); the server uses {:.2} % of a core",
        100.0 * served.as_secs_f64() / passed.as_secs_f64()
    ));
    Ok(kept_us)
}

/// Threads that look on, or stand by, where the agents are.
#[derive(Debug, Default)]
pub(super) struct Onlookers {
    looking: Arc<Looking>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

/// What they share.
#[derive(Debug, Default)]
struct Looking {
    end: AtomicBool,
    /// Frames that were read.
    frames: AtomicU64,
}

impl Onlookers {
    /// Viewers who all see the same of a server, one of them without ever reading.
    pub(super) fn of(server: &ServerProcess) -> Result<Self, Failure> {
        let mut onlookers = Self::default();
        for viewer in 1..=VIEWERS {
            let socket = subscribe(server)?;
            onlookers.add(move |looking| look(socket, looking, viewer == VIEWERS));
        }
        Ok(onlookers)
    }

    fn add(&mut self, what: impl FnOnce(&Looking) -> io::Result<()> + Send + 'static) {
        let looking = Arc::clone(&self.looking);
        self.threads.push(std::thread::spawn(move || {
            place_thread(Placement::elsewhere(false))?;
            meikyo_recording::lower_priority();
            what(&looking)
        }));
    }

    /// Ends them; the frames that all of them have read.
    pub(super) fn end(self) -> Result<u64, Failure> {
        self.looking.end.store(true, Ordering::Relaxed);
        for thread in self.threads {
            let looked =
                thread.join().map_err(|_| Failure::new("a viewer's thread has panicked"))?;
            looked?;
        }
        Ok(self.looking.frames.load(Ordering::Relaxed))
    }
}

/// Touches memory once an interval, when the collector has long been done with it.
fn stand_by(looking: &Looking) -> io::Result<()> {
    let mut memory = vec![0_u8; BYSTANDER_BYTES];
    while !looking.end.load(Ordering::Relaxed) {
        let next = WallTime::now().floor(EVERY) + EVERY + Nanos::new(EVERY.get() / 5);
        wait_until(next)?;
        for line in memory.chunks_mut(CACHE_LINE_BYTES) {
            line[0] = line[0].wrapping_add(1);
        }
        std::hint::black_box(&memory);
    }
    Ok(())
}

fn subscribe(server: &ServerProcess) -> Result<WebSocket<TcpStream>, Failure> {
    let id = first_recording(server)?;
    let stream = TcpStream::connect(server.authority())?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let url = format!("{}api/v1/recordings/{id}/live", server.url.replacen("http", "ws", 1));
    let config = WebSocketConfig::default().read_buffer_size(READ_BUFFER_BYTES);
    let (mut socket, _) = client_with_config(url, stream, Some(config))
        .map_err(|error| Failure::new(format!("the server takes no viewer: {error}")))?;
    let wish = r#"{"subscribe":{"table":"interfaces","columns":["in_octets","out_octets"]}}"#;
    socket.send(Message::from(wish)).map_err(|error| Failure::new(error.to_string()))?;
    Ok(socket)
}

/// The id of the recording that a server serves.
fn first_recording(server: &ServerProcess) -> Result<String, Failure> {
    let text = super::http::get(server, "api/v1/recordings")?;
    let recordings: serde_json::Value = serde_json::from_slice(&text)?;
    let id = recordings[0]["id"].as_str();
    id.map(str::to_owned).ok_or_else(|| Failure::new("the server serves no recording"))
}

fn look(mut socket: WebSocket<TcpStream>, looking: &Looking, stalled: bool) -> io::Result<()> {
    while !looking.end.load(Ordering::Relaxed) {
        if stalled {
            std::thread::park_timeout(PATIENCE);
            continue;
        }
        match socket.read() {
            Ok(Message::Binary(_)) => {
                looking.frames.fetch_add(1, Ordering::Relaxed);
            }
            Ok(_) => {}
            Err(tungstenite::Error::Io(error))
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => return Err(io::Error::other(error)),
        }
    }
    Ok(())
}
