//! Certificate and key, which can be replaced while the server runs.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, RwLock};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// Certificate chain and key in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// The chain, the server's own certificate first.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// What handshakes are made with: the newest certificate and key that could be used.
pub(crate) struct Certificates {
    files: Tls,
    acceptor: RwLock<TlsAcceptor>,
}

impl Certificates {
    /// Reads certificate chain and key.
    pub(crate) fn read(files: &Tls) -> io::Result<Self> {
        let acceptor = RwLock::new(acceptor(files)?);
        Ok(Self { files: files.clone(), acceptor })
    }

    /// Where certificate and key are read from.
    pub(crate) const fn files(&self) -> &Tls {
        &self.files
    }

    /// What stands in the files now; nothing is replaced yet.
    pub(crate) fn read_again(&self) -> io::Result<TlsAcceptor> {
        acceptor(&self.files)
    }

    /// Uses another certificate and key for connections that come from now on.
    pub(crate) fn replace(&self, acceptor: TlsAcceptor) {
        *self.acceptor.write().expect("nothing that holds the certificate can panic") = acceptor;
    }

    /// What a handshake that begins now is made with.
    pub(super) fn current(&self) -> TlsAcceptor {
        self.acceptor.read().expect("nothing that holds the certificate can panic").clone()
    }
}

impl std::fmt::Debug for Certificates {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Certificates").field("files", &self.files).finish_non_exhaustive()
    }
}

/// What TLS needs, from PEM files. A key that does not belong to the certificate is refused.
fn acceptor(tls: &Tls) -> io::Result<TlsAcceptor> {
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
