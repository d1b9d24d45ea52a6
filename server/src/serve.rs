//! Starting and ending the server, on threads of its own.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use meikyo_live::Catalog;
use meikyo_recording::ReadError;
use tokio::sync::watch;

use crate::access::{Access, HostError, Hosts, Rates, Sessions, TokenError, Tokens};
use crate::fabric::FabricBody;
use crate::ingest::{Event, Keeper, KeeperError};
use crate::limits::Limits;
use crate::listen::{self, Certificates, Door, Doorkeeper, Listener, Tls};
use crate::routes;
use crate::state::{Server, Shared};

/// Threads for conversations; reading has threads of its own.
const WORKERS: usize = 2;
/// Threads that read files.
const READING_THREADS: usize = 8;
/// How often the thread that takes rows looks what is on the disk by now.
const INGEST_TICK: Duration = Duration::from_millis(50);
/// How long conversations may take to end when the server ends.
const FAREWELL: Duration = Duration::from_secs(2);

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
    /// [`REQUESTS_PER_S`](crate::REQUESTS_PER_S) is enough for several pages.
    pub requests_per_s: NonZeroU32,
    /// What clients may take of the server.
    pub limits: Limits,
    /// The fabric that is drawn; `None`: the page says how to name one.
    pub fabric: Option<FabricBody>,
    /// The recording that rows of other hosts are written to; none are taken when `None`.
    pub ingest: Option<PathBuf>,
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
    #[error("cannot listen at {door:?}")]
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
    /// Ends after the conversations have.
    keeper: Option<Keeper>,
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

    /// Ends the server and waits until its threads have ended.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the server's thread has panicked");
        }
        self.keeper = None;
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
    let access = Access {
        hosts: Hosts::parse(&options.hosts, tls)?,
        tokens,
        sessions: Sessions::default(),
        rates: Rates::of_requests(options.requests_per_s),
        prefix: options.prefix.trim_end_matches('/').to_owned(),
        tls,
    };
    let (stop, stopped) = watch::channel(false);
    // First: it makes the recording that may be served, too.
    let keeper = options.ingest.as_deref().map(Keeper::start).transpose()?;
    let catalog = Catalog::open(&options.recordings)?;
    let limits = Limits {
        connections: options.limits.connections.min(listen::connections_possible()),
        ..options.limits
    };
    let fabric = options.fabric.clone();
    let server = Arc::new(Server::new(catalog, access, fabric, limits, keeper.as_ref(), stopped));
    let (ready, opened) = channel();
    let doors = options.doors.clone();
    let (shared, to_shake) = (Arc::clone(&server), certificates.clone());
    let thread = std::thread::Builder::new()
        .name("server".into())
        .spawn(move || serve(&doors, to_shake, shared, &ready))
        .map_err(|source| StartError::Threads { source })?;
    let thread = Some(thread);
    let mut running = Running { urls: Vec::new(), stop, thread, server, certificates, keeper };
    let gone = || StartError::Threads { source: io::Error::other("the thread has ended") };
    let addresses = opened.recv().map_err(|_| gone())??;
    running.urls =
        addresses.iter().zip(&options.doors).map(|(of, door)| url(options, *of, door)).collect();
    Ok(running)
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

/// The server's thread: opens the doors, tells so, and serves until it is stopped.
fn serve(doors: &[Door], certificates: Option<Arc<Certificates>>, server: Shared, ready: &Ready) {
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
    runtime.block_on(async {
        let app = routes::router(Arc::clone(&server));
        let mut listeners = Vec::new();
        for door in doors {
            match Listener::bind(door).await {
                Ok(listener) => listeners.push(listener),
                Err(source) => return tell(Err(StartError::Listen { door: door.clone(), source })),
            }
        }
        tell(Ok(listeners.iter().map(Listener::address).collect()));
        let to_warm = Arc::clone(&server);
        drop(tokio::task::spawn_blocking(move || to_warm.catalog.warm()));
        let mut accepting = tokio::task::JoinSet::new();
        let keeper = Arc::new(Doorkeeper {
            app,
            certificates,
            limits: server.limits,
            room: Arc::clone(&server.connections),
            counts: Arc::clone(&server.counts),
            stop: server.stop.clone(),
        });
        for listener in listeners {
            accepting.spawn(Arc::clone(&keeper).accept(listener));
        }
        if let Some(inbox) = server.ingest.clone() {
            drop(tokio::spawn(async move {
                let mut ticks = tokio::time::interval(INGEST_TICK);
                while inbox.tell(Event::Tick).await.is_ok() {
                    ticks.tick().await;
                }
            }));
        }
        let mut stop = server.stop.clone();
        listen::stopped(&mut stop).await;
        server.stop_following();
        let ended = async { while accepting.join_next().await.is_some() {} };
        if tokio::time::timeout(FAREWELL, ended).await.is_err() {
            tracing::debug!("some conversations were cut off");
        }
    });
    runtime.shutdown_timeout(FAREWELL);
}
