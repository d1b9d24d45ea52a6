//! The door with TLS: a real handshake, a certificate made for the test by `openssl`, a token.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use meikyo_server::{Door, Options, StartError, Tls, hash_token, make_token};
use meikyo_testing::http::{Answer, PATIENCE, read_answer};
use meikyo_units::Nanos;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::client::{Served, serve_with};
use crate::recorded::recording;

/// A server that asks for TLS and a token, and what a client needs.
pub(crate) struct Protected {
    pub(crate) served: Served,
    pub(crate) token: String,
    pub(crate) certificate: PathBuf,
    _dir: tempfile::TempDir,
}

/// Makes a key and a certificate for `localhost` that vouches for itself.
pub(crate) fn certificate(dir: &Path) -> Tls {
    let made = meikyo_testing::certificate::make(dir, "DNS:localhost,IP:127.0.0.1").unwrap();
    Tls { certificate: made.chain, key: made.key }
}

pub(crate) fn protected() -> Protected {
    protected_with(|_| ())
}

/// The same, as `change` wants it.
pub(crate) fn protected_with(change: impl FnOnce(&mut Options)) -> Protected {
    let dir = tempfile::tempdir().unwrap();
    let (tls, token) = (certificate(dir.path()), make_token());
    let token_file = dir.path().join("tokens");
    std::fs::write(&token_file, hash_token(&token).unwrap() + "\n").unwrap();
    let certificate = tls.certificate.clone();
    let served = serve_with(recording(), |options| {
        // Not loopback: that is what the two are for. The test itself comes by loopback.
        options.doors = vec![Door::Tcp("0.0.0.0:0".parse().unwrap())];
        options.tls = Some(tls);
        options.token_file = Some(token_file);
        change(options);
    });
    assert!(served.running.urls()[0].starts_with("https://"));
    Protected { served, token, certificate, _dir: dir }
}

impl Protected {
    pub(crate) fn connect(&self) -> TcpStream {
        let port = self.served.address.rsplit(':').next().unwrap();
        let stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// A client that trusts the certificates given, and shakes hands when it first writes.
    pub(crate) fn client(
        &self,
        trusted: RootCertStore,
    ) -> StreamOwned<ClientConnection, TcpStream> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(trusted)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").unwrap();
        StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), self.connect())
    }

    pub(crate) fn trusted(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(&self.certificate).unwrap()).unwrap();
        roots
    }

    pub(crate) fn ask(&self, path: &str, headers: &str) -> Answer {
        let mut stream = self.client(self.trusted());
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        read_answer(stream)
    }
}

#[test]
fn over_tls_the_right_token_is_served_and_no_other() {
    let protected = protected();
    let recordings = "/api/v1/recordings";
    assert_eq!(protected.ask(recordings, "").status, 401);
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let wrong = protected.ask(recordings, &bearer(&make_token()));
    assert_eq!(wrong.status, 401);
    assert!(wrong.text().contains("the token is wrong"), "{}", wrong.text());
    let right = protected.ask(recordings, &bearer(&protected.token));
    assert_eq!(right.status, 200, "{}", right.text());
    let body: serde_json::Value = serde_json::from_slice(&right.body).unwrap();
    assert_eq!(body[0]["devices"].as_array().unwrap().len(), 6);
    let welcome = protected.ask(&format!("/?token={}", protected.token), "");
    let cookie = welcome.header("set-cookie");
    assert!(cookie.contains("; Secure"), "the cookie travels encrypted only: {cookie}");
    let session = cookie.split(';').next().unwrap();
    assert_eq!(protected.ask(recordings, &format!("Cookie: {session}\r\n")).status, 200);
}

#[test]
fn a_client_that_does_not_shake_hands_is_closed_and_counted() {
    let protected = protected_with(|options| options.limits.head = Nanos::from_millis(300));
    let mut silent = protected.connect();
    assert_eq!(silent.read(&mut [0]).unwrap(), 0);
    let bearer = format!("Authorization: Bearer {}\r\n", protected.token);
    let metrics = protected.ask("/metrics", &bearer).text();
    let line = "meikyo_server_closed_connections_total{reason=\"handshake\"} 1\n";
    assert!(metrics.contains(line), "{metrics}");
}

#[test]
fn without_tls_the_door_answers_nothing() {
    let protected = protected();
    let mut stream = protected.connect();
    let bearer = &protected.token;
    let request = format!(
        "GET /api/v1/recordings HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {bearer}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut said = Vec::new();
    // The server may also reset the connection; what it said before counts.
    drop(stream.read_to_end(&mut said));
    assert!(!said.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&said));
    assert!(said.len() < 16, "an alert at most (RFC 8446, section 6): {said:?}");
    let bearer = format!("Authorization: Bearer {bearer}\r\n");
    assert_eq!(protected.ask("/api/v1/recordings", &bearer).status, 200, "others are served");
}

#[test]
fn a_client_that_does_not_trust_the_certificate_sends_nothing() {
    let protected = protected();
    let mut stream = protected.client(RootCertStore::empty());
    let error = stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap_err();
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
}

#[test]
fn a_certificate_and_a_foreign_key_are_refused_at_the_start() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tls = Tls { key: certificate(other.path()).key, ..certificate(dir.path()) };
    let mut options = Options::on_loopback(recording());
    options.tls = Some(tls);
    assert!(matches!(meikyo_server::start(&options), Err(StartError::Tls { .. })));
}
