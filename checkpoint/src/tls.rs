//! Connections between the hosts of a job: TLS 1.3 with one key for all of them.
//!
//! Whoever has the job's key is a host of the job, and nobody else is. Both sides show the key's public
//! half as a raw public key (RFC 7250) and prove that they have the other, so that no certificate is
//! made and none can expire during a run. A connection carries data one way only; [`crate::exchange`]
//! has one in each direction where both are needed, and a thread at each end.

use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::client::AlwaysResolvesClientRawPublicKeys;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, DistinguishedName,
    PeerIncompatible, ServerConfig, ServerConnection, SignatureScheme, StreamOwned,
};

/// Octets that are read from a socket at once.
const READ_BYTES: usize = 128 << 10;

/// A text that is no key of a job.
#[derive(Debug, thiserror::Error)]
#[error("this is no key of a job: {reason}")]
pub struct KeyError {
    reason: String,
}

/// The key of a job. It is never shown.
#[derive(Clone)]
pub struct JobKey {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl fmt::Debug for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JobKey(..)")
    }
}

impl JobKey {
    /// A new key, as PKCS #8 (RFC 8410), which is what a job's key file holds.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn generate() -> Result<Vec<u8>, KeyError> {
        let random = ring::rand::SystemRandom::new();
        let document = ring::signature::Ed25519KeyPair::generate_pkcs8(&random);
        let document = document
            .map_err(|_| KeyError { reason: "the system gives no random numbers".to_owned() })?;
        Ok(document.as_ref().to_vec())
    }

    /// The key in a key file.
    ///
    /// # Errors
    /// When it is none.
    ///
    /// # Panics
    /// Never: an Ed25519 key has a public half.
    pub fn from_pkcs8(octets: &[u8]) -> Result<Self, KeyError> {
        let refused = |error: rustls::Error| KeyError { reason: error.to_string() };
        let private = PrivatePkcs8KeyDer::from(octets.to_vec());
        let signing = rustls::crypto::ring::sign::any_eddsa_type(&private).map_err(refused)?;
        let public = signing.public_key().expect("an Ed25519 key has a public half").to_vec();
        let shown = CertificateDer::from(public.clone());
        let certified = Arc::new(CertifiedKey::new(vec![shown], signing));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Arc::new(SameKey { public, provider: Arc::clone(&provider) });
        let versions = [&rustls::version::TLS13];
        let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)
            .map_err(refused)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&verifier) as _)
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(
                Arc::clone(&certified),
            )));
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .map_err(refused)?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(certified)));
        // Connections are few and long, and data goes one way: no ticket is ever used.
        server.send_tls13_tickets = 0;
        Ok(Self { client: Arc::new(client), server: Arc::new(server) })
    }

    /// Begins the sending end of a connection; the other end has `patience` for all of its part.
    ///
    /// # Errors
    /// When the other end does not have the job's key, or the connection breaks.
    ///
    /// # Panics
    /// Never: the name that nobody looks at is one.
    pub fn connect(&self, socket: TcpStream, patience: Duration) -> io::Result<Outbound> {
        // The name is not looked at; the key is.
        let name = ServerName::try_from("job").expect("it is a name");
        let connection =
            ClientConnection::new(Arc::clone(&self.client), name).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(connection, Limited::new(socket, patience));
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        stream.sock.deadline = None;
        Ok(Outbound { stream })
    }

    /// Begins the receiving end of a connection; the other end has `patience` for all that it says until
    /// [`Inbound::wait_at_most`] is called.
    ///
    /// # Errors
    /// When the other end does not have the job's key, or the connection breaks.
    pub fn accept(&self, socket: TcpStream, patience: Duration) -> io::Result<Inbound> {
        let connection =
            ServerConnection::new(Arc::clone(&self.server)).map_err(io::Error::other)?;
        let mut stream =
            StreamOwned::new(connection, Buffered::new(Limited::new(socket, patience)));
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(Inbound { stream })
    }
}

/// The sending end of a connection.
#[derive(Debug)]
pub struct Outbound {
    stream: StreamOwned<ClientConnection, Limited>,
}

impl Outbound {
    /// The socket, to break the connection from another thread.
    ///
    /// # Errors
    /// When the system has no more descriptors.
    pub fn socket(&self) -> io::Result<TcpStream> {
        self.stream.sock.socket.try_clone()
    }

    /// Sends two pieces as one.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn send(&mut self, head: &[u8], body: &[u8]) -> io::Result<()> {
        let mut sent = 0;
        while sent < head.len() + body.len() {
            let count = if sent < head.len() {
                self.stream.write_vectored(&[IoSlice::new(&head[sent..]), IoSlice::new(body)])?
            } else {
                self.stream.write(&body[sent - head.len()..])?
            };
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            sent += count;
        }
        Ok(())
    }

    /// Sends what is left and says that nothing more comes. Whoever has read its last frame may have
    /// closed the connection already, which is no failure; whoever has not will miss it.
    pub fn close(mut self) {
        self.stream.conn.send_close_notify();
        drop(self.stream.flush());
        drop(self.stream.sock.socket.shutdown(Shutdown::Write));
    }
}

/// The receiving end of a connection.
#[derive(Debug)]
pub struct Inbound {
    stream: StreamOwned<ServerConnection, Buffered>,
}

impl Inbound {
    /// The socket, to break the connection from another thread.
    ///
    /// # Errors
    /// When the system has no more descriptors.
    pub fn socket(&self) -> io::Result<TcpStream> {
        self.stream.sock.socket.socket.try_clone()
    }

    /// Waits at most so long for each piece from now on, or for ever.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn wait_at_most(&mut self, stall: Option<Duration>) -> io::Result<()> {
        self.stream.sock.socket.deadline = None;
        self.stream.sock.socket.socket.set_read_timeout(stall)
    }

    /// Fills `octets`.
    ///
    /// # Errors
    /// When the connection breaks or ends before.
    pub fn receive(&mut self, octets: &mut [u8]) -> io::Result<()> {
        self.stream.read_exact(octets)
    }
}

/// A socket that is read in large pieces: `rustls` asks for 4 KiB at a time.
#[derive(Debug)]
struct Buffered {
    socket: Limited,
    octets: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Buffered {
    fn new(socket: Limited) -> Self {
        Self { socket, octets: vec![0; READ_BYTES], begin: 0, end: 0 }
    }
}

impl Read for Buffered {
    fn read(&mut self, octets: &mut [u8]) -> io::Result<usize> {
        if self.begin == self.end {
            self.end = self.socket.read(&mut self.octets)?;
            self.begin = 0;
        }
        let count = octets.len().min(self.end - self.begin);
        octets[..count].copy_from_slice(&self.octets[self.begin..self.begin + count]);
        self.begin += count;
        Ok(count)
    }
}

impl Write for Buffered {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.socket.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

/// A socket that has to have said all by a deadline, so that nobody holds it by one octet now and then.
#[derive(Debug)]
struct Limited {
    socket: TcpStream,
    deadline: Option<Instant>,
}

impl Limited {
    fn new(socket: TcpStream, patience: Duration) -> Self {
        Self { socket, deadline: Some(now() + patience) }
    }
}

impl Read for Limited {
    fn read(&mut self, octets: &mut [u8]) -> io::Result<usize> {
        if let Some(deadline) = self.deadline {
            let left = deadline.saturating_duration_since(now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.socket.set_read_timeout(Some(left))?;
        }
        self.socket.read(octets)
    }
}

impl Write for Limited {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.socket.write(octets)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.socket.write_vectored(pieces)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

#[expect(clippy::disallowed_methods, reason = "a greeting is waited for by the clock")]
fn now() -> Instant {
    Instant::now()
}

/// Accepts who shows the job's own public key; TLS then has it prove that it has the private half.
#[derive(Debug)]
struct SameKey {
    public: Vec<u8>,
    provider: Arc<CryptoProvider>,
}

impl SameKey {
    fn check(&self, shown: &CertificateDer<'_>) -> Result<(), rustls::Error> {
        if shown.as_ref() == self.public {
            Ok(())
        } else {
            Err(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer))
        }
    }

    fn verify(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let public = SubjectPublicKeyInfoDer::from(shown.as_ref());
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &public, signed, algorithms)
    }

    fn no_tls12() -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered))
    }
}

impl ServerCertVerifier for SameKey {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.check(shown).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Self::no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verify(message, shown, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for SameKey {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.check(shown).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Self::no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verify(message, shown, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
