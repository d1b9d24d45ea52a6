//! Figures 5 to 8: creates a second, between theory's two bounds.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use meikyo_console::benches::metadata::MetadataArgs;
use meikyo_console::failure::Failure;
use meikyo_console::output::TextTable;
use meikyo_models::metadata_service::Metadata;
use meikyo_models::storage::Medium;
use meikyo_sim::{Options, RunError, Scheduler, Unobserved};
use meikyo_units::Nanos;
use serde_json::{Value, json};

use super::picture::{Axis, Line, Lines};
use crate::progress;

/// Room below mean value analysis and above the bound.
const ROOM: f64 = 0.005;

/// A thread that panics ends the scope in which they all run.
const NO_PANIC: &str = "no thread panicked while it told its point";

/// What one point is made of.
#[derive(Debug, Clone, Copy)]
struct Setting {
    figure: u8,
    servers: u16,
    clients: u32,
    startup: Nanos,
    store: Nanos,
}

/// One point of a figure.
#[derive(Debug, Clone)]
pub(super) struct Point {
    setting: Setting,
    creates_per_s: f64,
    bound_per_s: f64,
    mva_per_s: f64,
    bottleneck: Option<(String, f64)>,
}

impl Point {
    /// Whether the point lies where theory says.
    pub(super) fn is_right(&self) -> bool {
        let allowed = self.mva_per_s * (1.0 - ROOM)..=self.bound_per_s * (1.0 + ROOM);
        allowed.contains(&self.creates_per_s)
    }

    pub(super) fn row(&self) -> Value {
        let Setting { figure, servers, clients, startup, store } = self.setting;
        json!({
            "figure": figure,
            "servers": servers,
            "clients": clients,
            "startup_ns": startup.get(),
            "store_ns": store.get(),
            "creates_per_s": self.creates_per_s,
            "bound_per_s": self.bound_per_s,
            "mva_per_s": self.mva_per_s,
            "bottleneck": self.bottleneck.as_ref().map(|(name, _)| name),
            "bottleneck_busy_share": self.bottleneck.as_ref().map(|(_, busy)| busy),
            "right": self.is_right(),
        })
    }
}

/// Runs the points of `figure`, spread over the cores.
///
/// # Errors
/// If a run ends with a fault.
pub(super) fn run(args: &MetadataArgs, figure: u8) -> Result<Vec<Point>, Failure> {
    let settings = settings(args, figure);
    progress(&format!("figure {figure}: {} points", settings.len()));
    let next = AtomicUsize::new(0);
    let points = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(setting) = settings.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let point = point(*setting, args.creates);
                    points.lock().expect(NO_PANIC).push(point);
                }
            });
        }
    });
    let points = points.into_inner().expect(NO_PANIC);
    let mut points = points.into_iter().collect::<Result<Vec<_>, _>>()?;
    points.sort_by_key(|point| {
        let Setting { servers, clients, startup, store, .. } = point.setting;
        (servers, startup, store, clients)
    });
    Ok(points)
}

fn settings(args: &MetadataArgs, figure: u8) -> Vec<Setting> {
    let micros = Nanos::from_micros;
    let (servers, clients): (&[u16], &[u32]) = match figure {
        5 => (&[1, 2, 3, 4, 8, 14], &[11, 22, 33, 44, 55, 66, 77, 88]),
        6 => (&[1, 2, 3, 4, 8, 14], &[11, 22, 44, 88, 176, 352, 704]),
        _ => (&[2], &[11, 22, 33, 44, 55, 66, 77, 88, 176, 352]),
    };
    let startups = if figure == 7 { vec![10, 20, 32, 50, 100] } else { vec![32] };
    let stores = if figure == 8 { vec![0, 100, 250, 500, 1000] } else { vec![500] };
    let servers = if args.servers.is_empty() { servers } else { &args.servers };
    let clients = if args.clients.is_empty() { clients } else { &args.clients };
    let mut settings = Vec::new();
    for servers in servers {
        for startup in startups.iter().copied().map(micros) {
            for store in stores.iter().copied().map(micros) {
                settings.extend(clients.iter().map(|clients| Setting {
                    figure,
                    servers: *servers,
                    clients: *clients,
                    startup,
                    store,
                }));
            }
        }
    }
    settings
}

fn point(setting: Setting, creates: u32) -> Result<Point, RunError> {
    let mut metadata = Metadata::paper(setting.servers, setting.clients, creates);
    metadata.net_startup = setting.startup;
    metadata.store = Medium::Delay(setting.store);
    let report = metadata.run(&Options::new(Scheduler::Sequential, 1), &mut Unobserved)?;
    let figure = |name| report.figure(name).unwrap_or(f64::NAN);
    Ok(Point {
        setting,
        creates_per_s: figure("creates_per_s"),
        bound_per_s: figure("bound_per_s"),
        mva_per_s: figure("mva_per_s"),
        bottleneck: report.bottleneck.clone(),
    })
}

/// The points as a table.
pub(super) fn table(points: &[Point]) -> String {
    let mut table = TextTable::new(&[
        "servers",
        "clients",
        "start-up",
        "store",
        "MVA/s",
        "creates/s",
        "bound/s",
        "busy_%",
        "right",
        "bottleneck",
    ]);
    for point in points {
        let Setting { servers, clients, startup, store, .. } = point.setting;
        let (name, busy) = match &point.bottleneck {
            Some((name, busy)) => (name.clone(), format!("{:.1}", busy * 100.0)),
            None => (String::new(), String::new()),
        };
        table.row([
            servers.to_string(),
            clients.to_string(),
            startup.to_string(),
            store.to_string(),
            format!("{:.0}", point.mva_per_s),
            format!("{:.0}", point.creates_per_s),
            format!("{:.0}", point.bound_per_s),
            busy,
            if point.is_right() { "yes" } else { "NO" }.to_owned(),
            name,
        ]);
    }
    table.to_string()
}

/// The points as the lines of a picture.
pub(super) fn lines(figure: u8, points: &[Point]) -> Lines {
    let mut lines: Vec<Line> = Vec::new();
    for point in points {
        let Setting { servers, clients, startup, store, .. } = point.setting;
        let name = match figure {
            7 => format!("start-up {startup}"),
            8 => format!("store {store}"),
            _ => format!("{servers} servers"),
        };
        let at = (f64::from(clients), point.creates_per_s / 1000.0);
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(at),
            None => lines.push(Line { name, points: vec![at] }),
        }
    }
    Lines {
        x: Axis { name: "clients".to_owned() },
        y: Axis { name: "thousand creates a second".to_owned() },
        lines,
    }
}
