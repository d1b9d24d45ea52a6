//! Starting and ending the server, on threads of its own.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use meikyo_recording::ReadError;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::access::{Access, Rates, Sessions, TokenError, Tokens};
use crate::catalog::Catalog;
use crate::fabric::FabricBody;
use crate::listen::{self, Door, Listener, Tls};
use crate::routes;
use crate::state::{Server, Shared};

/// Threads for conversations; reading has threads of its own.
const WORKERS: usize = 2;
/// Threads that read files.
const READING_THREADS: usize = 8;
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
    /// Names that the server may be called by besides those of loopback.
    pub hosts: Vec<String>,
    /// Path before everything, for example `/meikyo`; empty for none.
    pub prefix: String,
    /// Requests a second that a client may make lastingly, five times as many at once;
    /// [`REQUESTS_PER_S`](crate::REQUESTS_PER_S) is enough for several pages.
    pub requests_per_s: NonZeroU32,
    /// The fabric that is drawn; `None`: the page says how to name one.
    pub fabric: Option<FabricBody>,
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
    /// Another address than loopback needs protection.
    #[error("`{address}` is not loopback: other addresses need TLS and a token")]
    Unprotected {
        /// The address.
        address: SocketAddr,
    },
    /// The prefix cannot stand in an address.
    #[error("`{prefix}` is no path prefix: write for example `/meikyo`")]
    Prefix {
        /// The prefix.
        prefix: String,
    },
    /// Certificate or key cannot be used.
    #[error("cannot use `{certificate}` and `{key}` for TLS")]
    Tls {
        /// The certificate chain.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The system gives no address, or no threads.
    #[error("cannot listen at {door:?}")]
    Listen {
        /// The door.
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
    sockets: Vec<PathBuf>,
}

impl Running {
    /// Addresses for a browser, one a door.
    pub fn urls(&self) -> &[String] {
        &self.urls
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
        for socket in self.sockets.drain(..) {
            if let Err(error) = std::fs::remove_file(&socket) {
                tracing::debug!(%error, "the socket was gone already");
            }
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
    let tls = checked(options)?;
    let tokens = options.token_file.as_deref().map(Tokens::read).transpose()?;
    let access = Access {
        hosts: options.hosts.clone(),
        tokens,
        sessions: Sessions::default(),
        rates: Rates::new(options.requests_per_s),
        prefix: options.prefix.trim_end_matches('/').to_owned(),
        tls: tls.is_some(),
    };
    let (stop, stopped) = watch::channel(false);
    let catalog = Catalog::open(&options.recordings)?;
    let server = Arc::new(Server::new(catalog, access, options.fabric.clone(), stopped.clone()));
    let (ready, opened) = channel();
    let doors = options.doors.clone();
    let thread = std::thread::Builder::new()
        .name("server".into())
        .spawn(move || serve(&doors, tls, server, &stopped, &ready))
        .map_err(|source| StartError::Threads { source })?;
    let sockets = options.doors.iter().filter_map(|door| match door {
        Door::Unix(path) => Some(path.clone()),
        Door::Tcp(_) => None,
    });
    let mut running = Running { urls: Vec::new(), stop, thread: Some(thread), sockets: Vec::new() };
    let gone = || StartError::Threads { source: io::Error::other("the thread has ended") };
    let addresses = opened.recv().map_err(|_| gone())??;
    running.sockets = sockets.collect();
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
fn checked(options: &Options) -> Result<Option<TlsAcceptor>, StartError> {
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
    let acceptor = options.tls.as_ref().map(|tls| {
        listen::tls_acceptor(tls).map_err(|source| StartError::Tls {
            certificate: tls.certificate.clone(),
            key: tls.key.clone(),
            source,
        })
    });
    acceptor.transpose()
}

type Ready = Sender<Result<Vec<Option<SocketAddr>>, StartError>>;

/// The server's thread: opens the doors, tells so, and serves until it is stopped.
fn serve(
    doors: &[Door],
    tls: Option<TlsAcceptor>,
    server: Shared,
    stopped: &watch::Receiver<bool>,
    ready: &Ready,
) {
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
        for listener in listeners {
            let tls = tls.clone().filter(|_| matches!(listener, Listener::Tcp(_)));
            accepting.spawn(listen::accept(listener, tls, app.clone(), stopped.clone()));
        }
        let mut stop = stopped.clone();
        listen::stopped(&mut stop).await;
        server.catalog.stop();
        let ended = async { while accepting.join_next().await.is_some() {} };
        if tokio::time::timeout(FAREWELL, ended).await.is_err() {
            tracing::debug!("some conversations were cut off");
        }
    });
    runtime.shutdown_timeout(FAREWELL);
}
