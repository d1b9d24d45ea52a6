//! The doors: TCP, TLS over TCP, and a Unix socket; one task a connection.

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
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use crate::access::Client;

/// Where the server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Door {
    /// An address and port; port 0 lets the system choose.
    Tcp(SocketAddr),
    /// A Unix socket, which its file's permissions protect.
    Unix(PathBuf),
}

/// Certificate chain and key in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// The chain, the server's own certificate first.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Connections that are open at once; more wait to be accepted.
const CONNECTIONS_MAX: usize = 1_024;
/// How long a client may take to send the head of a request, and to shake hands.
const HEAD_PATIENCE: Duration = Duration::from_secs(15);
/// Octets of a request's head; up to twice as many can be read before they are counted.
const HEAD_BYTES_MAX: usize = 32 << 10;
/// How long is waited after an accept that the system refused (no descriptors left).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A door that is open.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Opens a door. A socket file that nobody listens at is replaced.
    pub(crate) async fn bind(door: &Door) -> io::Result<Self> {
        match door {
            Door::Tcp(address) => Ok(Self::Tcp(TcpListener::bind(address).await?)),
            Door::Unix(path) => {
                if std::os::unix::net::UnixStream::connect(path).is_err() {
                    match std::fs::remove_file(path) {
                        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                        _ => {}
                    }
                }
                Ok(Self::Unix(UnixListener::bind(path)?))
            }
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

/// What TLS needs, from PEM files.
pub(crate) fn tls_acceptor(tls: &Tls) -> io::Result<TlsAcceptor> {
    let wrong = |what: &str, error: &dyn std::fmt::Display| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{what}: {error}"))
    };
    let chain = CertificateDer::pem_file_iter(&tls.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong("certificate", &error))?;
    let key =
        PrivateKeyDer::from_pem_file(&tls.key).map_err(|error| wrong("private key", &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| wrong("certificate and key", &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Accepts connections until `stop` says so, then waits until they have ended.
pub(crate) async fn accept(
    listener: Listener,
    tls: Option<TlsAcceptor>,
    app: Router,
    mut stop: watch::Receiver<bool>,
) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        let (app, tls, until) = (app.clone(), tls.clone(), stop.clone());
        let accepted = tokio::select! {
            () = stopped(&mut stop) => break,
            accepted = next(&listener) => accepted,
        };
        match accepted {
            Ok(Stream::Tcp(stream, client)) => {
                tokio::spawn(async move {
                    match tls {
                        Some(tls) => {
                            let shaken = tokio::time::timeout(HEAD_PATIENCE, tls.accept(stream));
                            if let Ok(Ok(stream)) = shaken.await {
                                converse(stream, client, app, until).await;
                            }
                        }
                        None => converse(stream, client, app, until).await,
                    }
                    drop(permit);
                });
            }
            Ok(Stream::Unix(stream, client)) => {
                tokio::spawn(async move {
                    converse(stream, client, app, until).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    let everything = u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX);
    drop(room.acquire_many(everything).await);
}

enum Stream {
    Tcp(tokio::net::TcpStream, Client),
    Unix(tokio::net::UnixStream, Client),
}

async fn next(listener: &Listener) -> io::Result<Stream> {
    match listener {
        Listener::Tcp(listener) => {
            let (stream, peer) = listener.accept().await?;
            stream.set_nodelay(true)?;
            Ok(Stream::Tcp(stream, Client::at(peer.ip())))
        }
        Listener::Unix(listener) => {
            let (stream, _) = listener.accept().await?;
            let user = stream.peer_cred().map_or(u32::MAX, |of| of.uid());
            Ok(Stream::Unix(stream, Client::User(user)))
        }
    }
}

/// Waits until the server is to end.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that the server is gone already.
    drop(stop.wait_for(|stop| *stop).await);
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    client: Client,
    app: Router,
    mut stop: watch::Receiver<bool>,
) {
    let app = TowerToHyperService::new(app);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(client);
        app.call(request)
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .max_buf_size(HEAD_BYTES_MAX);
    let connection = builder.serve_connection(TokioIo::new(stream), service).with_upgrades();
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopped(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}
