//! The doors: TCP, TLS over TCP, and a Unix socket; one task a connection.
//!
//! Nobody can shut others out: who keeps the server waiting gives up his place for a newcomer
//! ([`crate::room`]), and nothing is waited for without an end ([`crate::limits`]).

mod certificates;
mod socket_file;
mod watched;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use meikyo_units::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub(crate) use certificates::Certificates;
pub use certificates::Tls;
use socket_file::UnixDoor;
use watched::Watched;

use crate::access::Client;
use crate::counts::{Closed, Counts};
use crate::limits::Limits;
use crate::room::{Room, Seat};

/// Where the server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Door {
    /// An address and port; port 0 lets the system choose.
    Tcp(SocketAddr),
    /// A Unix socket, which its file's permissions protect.
    Unix(PathBuf),
}

impl fmt::Display for Door {
    /// The address and port, or the socket's path.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

/// Octets of a request's head; up to twice as many can be read before they are counted.
const HEAD_BYTES_MAX: usize = 32 << 10;
/// Octets that the kernel keeps unsent for a client, an eighth of a second of 1 Mbit/s. What is more
/// waits here, where a step that has grown old is left out for a newer one; the kernel would keep
/// megabytes of them.
const UNSENT_BYTES_MAX: u64 = 16 << 10;

/// How long is waited after an accept that the system refused (no descriptors left).
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A door that is open.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixDoor),
}

impl Listener {
    /// Opens a door. A socket that nobody listens at is replaced, and no other file.
    pub(crate) async fn bind(door: &Door) -> io::Result<Self> {
        match door {
            Door::Tcp(address) => Ok(Self::Tcp(TcpListener::bind(address).await?)),
            Door::Unix(path) => Ok(Self::Unix(UnixDoor::open(path)?)),
        }
    }

    /// The address that was chosen; `None` for a Unix socket.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            Self::Unix(_) => None,
        }
    }
}

/// What all connections have in common.
#[derive(Debug, Clone)]
pub(crate) struct Doorkeeper {
    pub(crate) app: Router,
    pub(crate) certificates: Option<Arc<Certificates>>,
    pub(crate) limits: Limits,
    pub(crate) room: Arc<Room>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) stop: watch::Receiver<bool>,
}

impl Doorkeeper {
    /// Accepts connections until the server stops, then waits until they have ended.
    pub(crate) async fn accept(self: Arc<Self>, listener: Listener) {
        let mut stop = self.stop.clone();
        let mut open = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = stopped(&mut stop) => break,
                accepted = next(&listener) => accepted,
                Some(_) = open.join_next() => continue,
            };
            match accepted {
                Ok((stream, client)) => {
                    let Some(seat) = self.room.enter(client) else { continue };
                    open.spawn(Arc::clone(&self).attend(stream, client, Arc::new(seat)));
                }
                Err(error) if is_clients(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    // Where descriptors are short, somebody who only waits has one to spare.
                    self.room.shrink();
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(listener);
        while open.join_next().await.is_some() {}
    }

    /// Converses with a client until either side ends, or the place is given to another one.
    async fn attend(self: Arc<Self>, stream: Stream, client: Client, seat: Arc<Seat>) {
        let of = Arc::clone(&seat);
        let conversation = async {
            match stream {
                Stream::Tcp(stream) => {
                    let stream = self.watched(stream, &seat);
                    match &self.certificates {
                        Some(certificates) => {
                            let shaken = certificates.current().accept(stream);
                            match tokio::time::timeout(self.limits.head.to_std(), shaken).await {
                                Ok(Ok(stream)) => self.converse(stream, client, &seat).await,
                                _ => self.counts.close(Closed::Handshake),
                            }
                        }
                        None => self.converse(stream, client, &seat).await,
                    }
                }
                Stream::Unix(stream) => {
                    self.converse(self.watched(stream, &seat), client, &seat).await;
                }
            }
        };
        tokio::select! {
            () = conversation => {}
            () = of.given_up() => {}
        }
    }

    fn watched<S>(&self, stream: S, seat: &Arc<Seat>) -> Watched<S> {
        Watched::new(stream, self.limits.unread.to_std(), seat, Arc::clone(&self.counts))
    }

    async fn converse(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        client: Client,
        seat: &Arc<Seat>,
    ) {
        let app = TowerToHyperService::new(self.app.clone());
        let of = Arc::downgrade(seat);
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(client);
            if let Some(seat) = of.upgrade() {
                request.extensions_mut().insert(seat);
            }
            app.call(request)
        });
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.head.to_std())
            .max_buf_size(HEAD_BYTES_MAX);
        let connection = builder.serve_connection(TokioIo::new(stream), service).with_upgrades();
        let mut connection = pin!(connection);
        let mut stop = self.stop.clone();
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stopped(&mut stop) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            if error.is_timeout() {
                self.counts.close(Closed::Head);
            }
            tracing::debug!(%error, "a connection ended early");
        }
    }
}

#[derive(Debug)]
enum Stream {
    Tcp(tokio::net::TcpStream),
    Unix(tokio::net::UnixStream),
}

async fn next(listener: &Listener) -> io::Result<(Stream, Client)> {
    match listener {
        Listener::Tcp(listener) => {
            let (stream, peer) = listener.accept().await?;
            let prepared = stream.set_nodelay(true).and_then(|()| {
                meikyo_sockets::options::limit_unsent(&stream, Bytes::new(UNSENT_BYTES_MAX))
            });
            if let Err(error) = prepared {
                tracing::debug!(%error, "a connection goes on with delays");
            }
            Ok((Stream::Tcp(stream), Client::at(peer.ip())))
        }
        Listener::Unix(door) => {
            let (stream, user) = door.accept().await?;
            Ok((Stream::Unix(stream), Client::User(user.unwrap_or(u32::MAX))))
        }
    }
}

/// Connections that the system's limit of open files leaves room for: half of the descriptors, the
/// others are for viewers and for files.
pub(crate) fn connections_possible() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    soft.map_or(usize::MAX, |descriptors| (descriptors / 2).max(1))
}

/// Whether a client went away before its connection was accepted.
fn is_clients(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Waits until the server is to end.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that the server is gone already.
    drop(stop.wait_for(|stop| *stop).await);
}
