//! Starting and ending the server, on threads of its own.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use meikyo_live::Catalog;
use meikyo_recording::ReadError;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use crate::access::{
    Access, HostError, Hosts, REQUESTS_PER_S, Rates, Sessions, TokenError, Tokens,
};
use crate::aging::{self, AgingOptions};
use crate::fabric::FabricBody;
use crate::heat::HeatKeeper;
use crate::ingest::{Debuginfod, Event, Fate, Keeper, KeeperError, Taking};
use crate::limits::{FAREWELL, Limits};
use crate::listen::{self, Certificates, Door, Doorkeeper, Listener, Tls};
use crate::notify::{Notifier, NotifyOptions};
use crate::onward::{Errand, Form, OnwardOptions, Recordings, Sink};
use crate::openapi;
use crate::routes;
use crate::state::{Server, Shared};
use crate::watching::Watching;

/// Threads for conversations; reading has threads of its own.
const WORKERS: usize = 2;
/// Threads that read files.
const READING_THREADS: usize = 8;
/// How often the thread that takes rows looks what is on the disk by now.
const INGEST_TICK: Duration = Duration::from_millis(50);

/// What is served, where, to whom.
#[derive(Debug, Clone)]
pub struct Options {
    /// The recordings' directories.
    pub recordings: Vec<PathBuf>,
    /// Where the server listens; at least one.
    pub doors: Vec<Door>,
    /// Certificate and key; needed for addresses that are not loopback.
    pub tls: Option<Tls>,
    /// File with hashes of tokens; needed for addresses that are not loopback.
    pub token_file: Option<PathBuf>,
    /// Names that the server may be called by besides those of loopback: `NAME`, or the origin of
    /// its pages as `SCHEME://NAME[:PORT]` where that is not the server's own, behind a proxy.
    pub hosts: Vec<String>,
    /// Path before everything, for example `/meikyo`; empty for none.
    pub prefix: String,
    /// Requests a second that a client may make lastingly, five times as many at once;
    /// [`REQUESTS_PER_S`] is enough for several pages.
    pub requests_per_s: NonZeroU32,
    /// What clients may take of the server.
    pub limits: Limits,
    /// The fabric that is drawn; `None`: the page says how to name one.
    pub fabric: Option<FabricBody>,
    /// The recording that rows of other hosts are written to; none are taken when `None`.
    pub ingest: Option<PathBuf>,
    /// Who is asked for functions of files that no host tells of.
    pub debuginfod: Option<Debuginfod>,
    /// When samples of the recording that rows are written to are made smaller.
    pub aging: AgingOptions,
    /// Where the rows of the recording that is written, or of the only one, are sent on to.
    pub onward: Vec<OnwardOptions>,
    /// Whom the alerts of all recordings are told to.
    pub notify: Vec<NotifyOptions>,
}

impl Options {
    /// A recording on loopback, at a port that the system chooses, with nobody asked for anything.
    pub fn on_loopback(recording: &Path) -> Self {
        Self {
            recordings: vec![recording.to_owned()],
            doors: vec![Door::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))],
            tls: None,
            token_file: None,
            hosts: Vec::new(),
            prefix: String::new(),
            requests_per_s: REQUESTS_PER_S,
            limits: Limits::STANDARD,
            fabric: None,
            ingest: None,
            debuginfod: None,
            aging: AgingOptions::NEVER,
            onward: Vec::new(),
            notify: Vec::new(),
        }
    }
}

/// Why the server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A recording cannot be opened.
    #[error(transparent)]
    Recording(#[from] ReadError),
    /// The token file cannot be used.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// A name that the server may be called by is none.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Rows from other hosts cannot be taken.
    #[error(transparent)]
    Ingest(#[from] KeeperError),
    /// Rows of several recordings would be one in a database.
    #[error("rows of one recording are sent on, not of {count}")]
    Several {
        /// How many recordings are served.
        count: usize,
    },
    /// Another address than loopback needs protection.
    #[error("`{address}` is not loopback: other addresses need TLS and a token")]
    Unprotected {
        /// Where it was to listen.
        address: SocketAddr,
    },
    /// The prefix cannot stand in an address.
    #[error("`{prefix}` is no path prefix: write for example `/meikyo`")]
    Prefix {
        /// The prefix as it was given.
        prefix: String,
    },
    /// Certificate or key cannot be used.
    #[error("cannot use `{certificate}` and `{key}` for TLS")]
    Tls {
        /// The certificate chain.
        certificate: PathBuf,
        /// The file with the private key.
        key: PathBuf,
        /// What the system or the parser said.
        source: io::Error,
    },
    /// The system gives no address, or no threads.
    #[error("cannot listen at `{door}`")]
    Listen {
        /// Where it was to listen.
        door: Door,
        /// What the system said.
        source: io::Error,
    },
    /// The runtime could not be started.
    #[error("cannot start the server's threads")]
    Threads {
        /// What the system said.
        source: io::Error,
    },
}

/// A server that runs; it ends when this is dropped.
#[derive(Debug)]
pub struct Running {
    /// Where a browser finds it, one a door.
    urls: Vec<String>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
    server: Shared,
    certificates: Option<Arc<Certificates>>,
    /// Ends before the conversations do: senders are told.
    keeper: Option<Keeper>,
    fate: Option<Fate>,
    /// Makes old samples smaller, until this is dropped.
    _aging: Option<Errand>,
    _heat: Option<HeatKeeper>,
    _sinks: Vec<(Form, Sink)>,
    _notifiers: Vec<(&'static str, Notifier)>,
}

/// What was read anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reloaded {
    /// Certificate and key.
    pub certificate: bool,
    /// The hashes of tokens.
    pub tokens: bool,
}

impl Running {
    /// Addresses for a browser, one a door.
    pub fn urls(&self) -> &[String] {
        &self.urls
    }

    /// Reads certificate, key and token file anew, if there are any. Connections that come from now
    /// on see the new certificate; sessions and sockets of tokens that are gone end at once.
    ///
    /// # Errors
    /// [`StartError`] when one of the files cannot be used; all that was in use stays in use then.
    pub fn reload(&self) -> Result<Reloaded, StartError> {
        let acceptor = self.certificates.as_ref().map(|certificates| {
            certificates.read_again().map_err(|source| unusable(certificates.files(), source))
        });
        let acceptor = acceptor.transpose()?;
        let tokens = self.server.access.tokens.as_ref();
        let hashes = tokens.map(Tokens::read_again).transpose()?;
        let reloaded = Reloaded { certificate: acceptor.is_some(), tokens: hashes.is_some() };
        if let (Some(certificates), Some(acceptor)) = (&self.certificates, acceptor) {
            certificates.replace(acceptor);
        }
        if let (Some(tokens), Some(hashes)) = (tokens, hashes) {
            tokens.replace(hashes);
        }
        Ok(reloaded)
    }

    /// Whether something that was asked for cannot go on: the thread that takes rows has panicked.
    /// Pages are served nevertheless, until this is dropped.
    pub fn has_failed(&self) -> bool {
        self.fate.as_ref().is_some_and(Fate::has_failed)
    }

    /// Writes an octet to a socket when that happens.
    pub fn wake_on_failure(&self, waker: UnixStream) {
        if let Some(fate) = &self.fate {
            fate.wake(waker);
        }
    }

    /// Ends the server and waits until its threads have ended.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.keeper = None;
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the server's thread has panicked");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Opens the recordings and the doors, and serves.
///
/// # Errors
/// [`StartError`] when something that is asked for cannot be had; nothing is served then.
pub fn start(options: &Options) -> Result<Running, StartError> {
    let certificates = checked(options)?.map(Arc::new);
    let tls = certificates.is_some();
    let tokens = options.token_file.as_deref().map(Tokens::read).transpose()?;
    let addresses = options.doors.iter().filter_map(|door| match door {
        Door::Tcp(address) => Some(address.ip()),
        Door::Unix(_) => None,
    });
    let access = Access {
        hosts: addresses.fold(Hosts::parse(&options.hosts, tls)?, Hosts::and_address),
        tokens,
        sessions: Sessions::default(),
        rates: Rates::of_requests(options.requests_per_s),
        prefix: options.prefix.trim_end_matches('/').to_owned(),
        tls,
    };
    let (stop, stopped) = watch::channel(false);
    // The doors first: where one is taken nothing is made.
    let mut opening = Opening::begin(&options.doors)?;
    let addresses = opening.addresses()?;
    // Before the catalogue: it makes the recording that may be served, too.
    let watching = Watching::default();
    let taken = options.ingest.as_deref().map(Taking::prepare).transpose()?;
    let heat = options.ingest.as_deref();
    let heat = heat.map(|dir| HeatKeeper::start(dir, watching.clone())).transpose();
    let heat = heat.map_err(|source| StartError::Threads { source })?;
    let kept = options.ingest.clone().zip(heat.as_ref().map(HeatKeeper::heat));
    let is_aged = options.aging != AgingOptions::NEVER;
    let aging = kept.as_ref().filter(|_| is_aged);
    let aging = aging.map(|(dir, heat)| aging::start(dir, heat.clone(), options.aging));
    let aging = aging.transpose().map_err(|source| StartError::Threads { source })?;
    let catalog = Arc::new(Catalog::open(&options.recordings)?);
    let take = |taken: Taking| {
        taken.start(Arc::clone(&catalog), watching.clone(), options.debuginfod.clone())
    };
    let keeper = taken.map(take).transpose()?;
    let sinks = options.onward.iter().map(|onward| Ok((onward.form, sink(options, onward)?)));
    let sinks: Vec<(Form, Sink)> = sinks.collect::<Result<_, StartError>>()?;
    let limits = Limits {
        connections: options.limits.connections.min(listen::connections_possible()),
        ..options.limits
    };
    let fabric = options.fabric.clone();
    let notifiers = notifiers(options)?;
    let counts = sinks.iter().map(|(form, sink)| (*form, sink.counts())).collect();
    let told = notifiers.iter().map(|(name, notifier)| (*name, notifier.counts())).collect();
    let taking = (keeper.as_ref(), kept, (counts, told));
    let server = Arc::new(Server::new(catalog, access, fabric, limits, taking, stopped));
    let thread = Some(opening.serve(Arc::clone(&server), certificates.clone()));
    let urls = addresses.iter().zip(&options.doors);
    let urls = urls.map(|(of, door)| url(options, *of, door)).collect();
    let fate = keeper.as_ref().map(Keeper::fate);
    Ok(Running {
        urls,
        stop,
        thread,
        server,
        certificates,
        keeper,
        fate,
        _aging: aging,
        _heat: heat,
        _sinks: sinks,
        _notifiers: notifiers,
    })
}

/// Sends on what is written, or the only recording.
fn sink(options: &Options, onward: &OnwardOptions) -> Result<Sink, StartError> {
    let from = match (&options.ingest, &*options.recordings) {
        (Some(taken), _) => Recordings::OfIngest(taken.clone()),
        (None, [one]) => Recordings::One(one.clone()),
        (None, several) => return Err(StartError::Several { count: several.len() }),
    };
    Sink::start(from, onward).map_err(|source| StartError::Threads { source })
}

/// Tells of the alerts of every recording, by the name of who is told.
fn notifiers(options: &Options) -> Result<Vec<(&'static str, Notifier)>, StartError> {
    let served = options.recordings.iter().cloned().map(Recordings::One);
    let all: Vec<_> = served.chain(options.ingest.clone().map(Recordings::OfIngest)).collect();
    let start = |notify: &NotifyOptions| {
        let notifier = Notifier::start(all.clone(), notify);
        notifier.map(|notifier| (notify.to.name(), notifier))
    };
    let all: io::Result<_> = options.notify.iter().map(start).collect();
    all.map_err(|source| StartError::Threads { source })
}

/// What the server's thread is handed once everything else is there.
type Served = (Shared, Option<Arc<Certificates>>);

/// The server's thread while nothing is served yet; it ends when this is dropped.
#[derive(Debug)]
struct Opening {
    opened: Receiver<Result<Vec<Option<SocketAddr>>, StartError>>,
    /// `None` once it was handed over.
    served: Option<Sender<Served>>,
    thread: Option<JoinHandle<()>>,
}

impl Opening {
    fn begin(doors: &[Door]) -> Result<Self, StartError> {
        let (ready, opened) = channel();
        let (hand_over, served) = channel();
        let doors = doors.to_vec();
        let thread = std::thread::Builder::new()
            .name("server".into())
            .spawn(move || run(&doors, &ready, &served))
            .map_err(|source| StartError::Threads { source })?;
        Ok(Self { opened, served: Some(hand_over), thread: Some(thread) })
    }

    /// Waits until all doors are open; the address of each that has one.
    fn addresses(&self) -> Result<Vec<Option<SocketAddr>>, StartError> {
        let gone = || StartError::Threads { source: io::Error::other("the thread has ended") };
        self.opened.recv().map_err(|_| gone())?
    }

    fn serve(&mut self, server: Shared, certificates: Option<Arc<Certificates>>) -> JoinHandle<()> {
        let hand_over = self.served.take().expect("it is served once");
        // A thread that has ended is noticed by whoever asks the server for something.
        drop(hand_over.send((server, certificates)));
        self.thread.take().expect("it is served once")
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.served = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the server's thread has panicked");
        }
    }
}

/// The address for a browser.
fn url(options: &Options, address: Option<SocketAddr>, door: &Door) -> String {
    let prefix = options.prefix.trim_end_matches('/');
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    match (address, door) {
        (Some(address), _) => format!("{scheme}://{address}{prefix}/"),
        (None, Door::Unix(path)) => format!("unix:{}", path.display()),
        (None, Door::Tcp(address)) => format!("{scheme}://{address}{prefix}/"),
    }
}

/// Refuses what would be open to everybody.
fn checked(options: &Options) -> Result<Option<Certificates>, StartError> {
    let prefix = options.prefix.trim_end_matches('/');
    let part = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
            && part != ".."
            && part != "."
    };
    let usable =
        prefix.is_empty() || prefix.strip_prefix('/').is_some_and(|path| path.split('/').all(part));
    if !usable {
        return Err(StartError::Prefix { prefix: options.prefix.clone() });
    }
    for door in &options.doors {
        if let Door::Tcp(address) = door
            && !address.ip().is_loopback()
            && (options.tls.is_none() || options.token_file.is_none())
        {
            return Err(StartError::Unprotected { address: *address });
        }
    }
    let certificates = options.tls.as_ref();
    let read = |tls| Certificates::read(tls).map_err(|source| unusable(tls, source));
    certificates.map(read).transpose()
}

fn unusable(tls: &Tls, source: io::Error) -> StartError {
    StartError::Tls { certificate: tls.certificate.clone(), key: tls.key.clone(), source }
}

type Ready = Sender<Result<Vec<Option<SocketAddr>>, StartError>>;

/// The server's thread: opens the doors, tells so, and serves what it is handed until it is stopped.
fn run(doors: &[Door], ready: &Ready, served: &Receiver<Served>) {
    meikyo_recording::lower_priority();
    let tell = |outcome| drop(ready.send(outcome));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(READING_THREADS)
        .thread_name("server")
        .enable_all()
        .on_thread_start(meikyo_recording::lower_priority)
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(source) => return tell(Err(StartError::Threads { source })),
    };
    let listeners = runtime.block_on(async {
        let mut listeners = Vec::new();
        for door in doors {
            let bound = Listener::bind(door).await;
            listeners
                .push(bound.map_err(|source| StartError::Listen { door: door.clone(), source })?);
        }
        Ok(listeners)
    });
    let listeners = match listeners {
        Ok(listeners) => listeners,
        Err(error) => return tell(Err(error)),
    };
    tell(Ok(listeners.iter().map(Listener::address).collect()));
    // An error says that something else could not be had.
    let Ok((server, certificates)) = served.recv() else { return };
    runtime.block_on(serve(listeners, certificates, server));
    runtime.shutdown_timeout(FAREWELL);
}

async fn serve(listeners: Vec<Listener>, certificates: Option<Arc<Certificates>>, server: Shared) {
    let to_warm = Arc::clone(&server);
    drop(tokio::task::spawn_blocking(move || to_warm.catalog.warm()));
    let mut accepting = tokio::task::JoinSet::new();
    let doorkeeper = Arc::new(Doorkeeper {
        app: routes::router(Arc::clone(&server), openapi::document()),
        certificates,
        limits: server.limits,
        room: Arc::clone(&server.connections),
        counts: Arc::clone(&server.counts),
        stop: server.stop.clone(),
    });
    for listener in listeners {
        accepting.spawn(Arc::clone(&doorkeeper).accept(listener));
    }
    if let Some(inbox) = server.ingest.clone() {
        drop(tokio::spawn(async move {
            let mut ticks = tokio::time::interval(INGEST_TICK);
            // Ticks that the thread had no time for are not made up for.
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            while inbox.tell(Event::Tick).await.is_ok() {
                ticks.tick().await;
            }
        }));
    }
    let mut stop = server.stop.clone();
    listen::stopped(&mut stop).await;
    server.stop_following();
    let ended = async {
        while accepting.join_next().await.is_some() {}
        // Connections of senders are nobody's any more.
        server.senders.all_free().await;
    };
    if tokio::time::timeout(FAREWELL, ended).await.is_err() {
        tracing::debug!("some conversations were cut off");
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    use meikyo_testing::http;

    use super::*;

    fn options(dir: &Path) -> Options {
        Options { ingest: Some(dir.to_owned()), ..Options::on_loopback(dir) }
    }

    #[test]
    fn a_thread_that_panicked_takes_no_rows_and_wakes_who_waits_for_that() {
        let dir = tempfile::tempdir().unwrap();
        let running = start(&options(&dir.path().join("rec"))).unwrap();
        let (mut woken, waker) = UnixStream::pair().unwrap();
        running.wake_on_failure(waker);
        assert!(!running.has_failed());
        running.keeper.as_ref().unwrap().inbox().tell_blocking(Event::Panic);
        woken.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        woken.read_exact(&mut [0]).unwrap();
        assert!(running.has_failed());
        let address = running.urls()[0].split('/').nth(2).unwrap().to_owned();
        let request = "GET /api/v1/ingest HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n\
                       Upgrade: meikyo-rows/1\r\n\r\n";
        let deadline = meikyo_units::WallTime::now() + meikyo_units::Nanos::from_secs(30);
        loop {
            let mut stream = TcpStream::connect(&address).unwrap();
            stream.set_read_timeout(Some(http::PATIENCE)).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let answer = http::read_answer(stream);
            // The unwinding thread may hold its inbox for a moment longer.
            if answer.status == 503 {
                assert!(answer.text().contains("must be started again"), "{answer:?}");
                break;
            }
            assert!(meikyo_units::WallTime::now() < deadline, "{answer:?}");
        }
        // Pages are still there, and a waker that comes later is woken, too.
        assert_eq!(http::ask(&address, "GET", "/api/v1/recordings", "").unwrap().status, 200);
        let (mut late, waker) = UnixStream::pair().unwrap();
        running.wake_on_failure(waker);
        late.read_exact(&mut [0]).unwrap();
        running.stop();
    }

    #[test]
    fn where_a_door_is_taken_nothing_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let path = dir.path().join("rec");
        let options = Options { doors: vec![Door::Tcp(address)], ..options(&path) };
        let error = start(&options).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot listen at `{address}`"));
        assert!(!path.exists());
    }

    #[test]
    fn rows_are_written_to_recordings_of_their_own_only() {
        let dir = tempfile::tempdir().unwrap();
        let foreign = dir.path().join("papers");
        std::fs::create_dir(&foreign).unwrap();
        std::fs::write(foreign.join("thesis.tex"), "precious").unwrap();
        let refused = start(&options(&foreign)).unwrap_err();
        assert!(matches!(refused, StartError::Ingest(KeeperError::Foreign { .. })), "{refused}");
        assert_eq!(std::fs::read_dir(&foreign).unwrap().count(), 1);
        let path = dir.path().join("rec");
        let first = start(&options(&path)).unwrap();
        let second = start(&options(&path)).unwrap_err();
        assert!(matches!(second, StartError::Ingest(KeeperError::Taken { .. })), "{second}");
        first.stop();
        start(&options(&path)).unwrap().stop();
    }
}
